//! Tables for a terminal.

use std::io;

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle,
};
use terminal_size::{Width, terminal_size_of};

/// A line under the header, and nothing else that would come along when a table is copied.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// An empty table with these columns; those whose name starts with `#` hold numbers.
pub(super) fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(STYLE);
    table.set_header(columns.iter().map(|name| name.trim_start_matches('#')));
    for (index, name) in columns.iter().enumerate() {
        if name.starts_with('#')
            && let Some(column) = table.column_mut(index)
        {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Fewer columns than this leave single letters of a sentence beside the names.
const LEAST_COLUMNS: u16 = 72;

/// Lets the sentences of a table wrap within their columns on a terminal too narrow for them; names,
/// in the first column, stay whole.
pub(super) fn wrap_sentences(table: &mut Table) {
    match terminal_size_of(io::stdout()) {
        Some((Width(columns), _)) if columns >= LEAST_COLUMNS => {
            table.set_content_arrangement(ContentArrangement::Dynamic);
            table.set_width(columns);
        }
        _ => return,
    }
    if let Some(names) = table.column_mut(0) {
        names.set_constraint(ColumnConstraint::ContentWidth);
    }
}
