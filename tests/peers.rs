//! The comparison with other programs, `benchmarks/peers`, which is a package of its own and not
//! built with the rest: what of it rests on this library is built and run here.

#[path = "../benchmarks/peers/src/ours.rs"]
mod ours;

use allpairs::variants::{Method, VARIANTS};
use std::time::Duration;

#[test]
fn our_rows_are_of_right_forces() {
    let case = ours::system(200);
    let mut rows = vec![];
    ours::rows(&case, Duration::ZERO, |row| rows.push(row));
    let on_cpu = VARIANTS
        .iter()
        .filter(|variant| matches!(variant.method, Method::Cpu(_)));
    assert_eq!(rows.len(), on_cpu.count());
    for row in rows {
        assert!(row.rate > 0.0 && row.spread >= 0.0, "{row}");
        assert!(row.error <= 1e-3, "{row}");
        let columns = |line: &str| line.matches('|').count();
        let header = ours::Row::HEADER.lines().next().expect("a line");
        assert_eq!(columns(&row.to_string()), columns(header));
    }
}
