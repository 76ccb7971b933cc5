//! Charts of tables of measurements: a column over another, with a line for each value of a third.

use std::io;
use std::path::{Path, PathBuf};

use allpairs::output::chart::axis::Scale;
use allpairs::output::chart::lines::{Line, Lines, Marks};
use allpairs::output::chart::{Chart, ChartError};
use allpairs::units::parts_of_heading;
use thiserror::Error;

/// Columns that a chart shows, and its words.
#[derive(Clone, Debug)]
pub struct TableChart {
    /// Names of the columns across and up.
    pub columns: [String; 2],
    /// Spacing of both.
    pub scales: [Scale; 2],
    /// Name of the column with the names of the lines; without one, all rows are one line.
    pub by: Option<String>,
    /// Title.
    pub title: String,
    /// Line below the title.
    pub subtitle: String,
}

/// Reason why a table gives no chart.
#[derive(Debug, Error)]
#[error("cannot draw the table `{}`: {fault}", path.display())]
pub struct TableError {
    /// The file.
    pub path: PathBuf,
    /// The reason.
    pub fault: TableFault,
}

/// Fault of a table. Lines are counted from 1.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TableFault {
    /// The file could not be read.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Not CSV.
    #[error("{0}")]
    Csv(#[from] csv::Error),
    /// A column that is not there.
    #[error("there is no column `{name}`; the columns are {}", there.join(", "))]
    NoColumn {
        /// The name.
        name: String,
        /// Columns that there are.
        there: Vec<String>,
    },
    /// A field that is not a number.
    #[error("line {line}, column `{column}`: `{text}` is not a number")]
    Number {
        /// The line.
        line: u64,
        /// The column.
        column: String,
        /// Text found there.
        text: String,
    },
    /// Nothing to draw, or the drawing failed.
    #[error("{0}")]
    Chart(#[from] ChartError),
}

impl TableChart {
    /// The chart of a file: CSV whose first line names its columns. Lines are in the order in which they
    /// begin, and so are their points.
    ///
    /// # Errors
    /// [`TableError`] names the file and the fault.
    pub fn of_file(&self, path: &Path) -> Result<Chart, TableError> {
        let chart = || self.of_text(&allpairs::io::read_text(path)?);
        chart().map_err(|fault| TableError {
            path: path.to_owned(),
            fault,
        })
    }

    fn of_text(&self, text: &str) -> Result<Chart, TableFault> {
        let mut reader = csv::ReaderBuilder::new()
            .trim(csv::Trim::All)
            .from_reader(text.as_bytes());
        let header = reader.headers()?.clone();
        let column = |name: &str| {
            let position = |is: &dyn Fn(&str) -> bool| header.iter().position(is);
            let found = position(&|column| column == name);
            // Tables of runs have units in their headings.
            let found = found.or_else(|| position(&|column| parts_of_heading(column).0 == name));
            found.ok_or_else(|| TableFault::NoColumn {
                name: name.to_owned(),
                there: header.iter().map(str::to_owned).collect(),
            })
        };
        let [across, up] = [column(&self.columns[0])?, column(&self.columns[1])?];
        let by = self.by.as_deref().map(column).transpose()?;
        let mut lines: Vec<Line> = vec![];
        for row in reader.records() {
            let row = row?;
            let number = |column: usize| {
                let text = &row[column];
                text.parse::<f64>().map_err(|_| TableFault::Number {
                    line: row.position().map_or(0, csv::Position::line),
                    column: header[column].to_owned(),
                    text: text.to_owned(),
                })
            };
            let point = [number(across)?, number(up)?];
            let name = by.map_or("", |column| &row[column]);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(point),
                None => lines.push(Line {
                    marks: Marks::All,
                    ..Line::new(name, vec![point])
                }),
            }
        }
        let chart = Lines {
            title: self.title.clone(),
            subtitle: self.subtitle.clone(),
            axes: [(across, 0), (up, 1)]
                .map(|(column, k)| (header[column].to_owned(), self.scales[k])),
            lines,
            map: false,
            ticks: vec![],
        };
        Ok(chart.chart()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(by: Option<&str>) -> TableChart {
        TableChart {
            columns: ["error".into(), "seconds".into()],
            scales: [Scale::Log; 2],
            by: by.map(str::to_owned),
            title: "a title".into(),
            subtitle: String::new(),
        }
    }

    #[test]
    fn each_value_has_a_line() {
        let table = "scheme, seconds, error\nb, 1, 1e-3\na, 2, 1e-4\nb, 3, 1e-5\n";
        let texts = |by| {
            let svg = chart(by).of_text(table).unwrap().svg().unwrap();
            // Each on a line of its own, after what it looks like.
            svg.lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let of_two = texts(Some("scheme"));
        let [b, a] = ["b", "a"].map(|name| of_two.iter().position(|text| text == name));
        assert!(b < a && b.is_some(), "in the order of the table");
        assert!(!texts(None).iter().any(|text| text == "b"));
    }

    #[test]
    fn columns_are_found_without_their_units() {
        let svg = |table: &str| chart(None).of_text(table).unwrap().svg().unwrap();
        let of_run = svg("error [pc],seconds\n1,2\n3,4\n");
        assert!(of_run.contains("error [pc]"), "{of_run}");
        let both = svg("error [pc],error,seconds\n1,2,3\n3,4,5\n");
        assert!(!both.contains("error [pc]"), "{both}");
    }

    #[test]
    fn faults_are_named() {
        let fault = |by, table: &str| chart(by).of_text(table).unwrap_err().to_string();
        let there = "there is no column `seconds`; the columns are error, time";
        assert_eq!(fault(None, "error,time\n1,2\n"), there);
        assert!(fault(Some("x"), "error,seconds\n1,2\n").contains("no column `x`"));
        let number = "line 3, column `seconds`: `long` is not a number";
        assert_eq!(fault(None, "error,seconds\n1,2\n3,long\n"), number);
        assert!(fault(None, "error,seconds\n1,2,3\n").contains("line: 2"));
        assert!(fault(None, "error,seconds\n").contains("nothing to draw"));
    }
}
