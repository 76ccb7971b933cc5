//! Measurements and proofs about Allpairs: the ladders of the studies, benchmarks and their
//! records, tuning sweeps, verification of every kernel, validation of whole runs, and what PTX
//! says.

pub mod bench;
pub mod bench_charts;
pub mod bench_record;
pub mod choices;
pub mod ptx;
pub mod studies;
pub mod sweep;
pub mod table_chart;
pub mod validate;
pub mod verify;
