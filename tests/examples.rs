//! The examples, each of which asserts its result.

use std::error::Error;
use std::fs;

/// Modules, and a list of their names and functions.
macro_rules! examples {
    ($($name:ident: $path:literal),* $(,)?) => {
        $(
            #[path = $path]
            mod $name;

            #[test]
            fn $name() -> Result<(), Box<dyn Error>> {
                $name::main()
            }
        )*

        const FILES: &[&str] = &[$($path),*];
    };
}

examples! {
    two_body: "../examples/01_two_body.rs",
    where_it_runs: "../examples/02_where_it_runs.rs",
    cluster_with_diagnostics: "../examples/03_cluster_with_diagnostics.rs",
    own_integrator: "../examples/04_own_integrator.rs",
    formats: "../examples/05_formats.rs",
    pictures: "../examples/06_pictures.rs",
}

#[test]
fn none_is_left_out() {
    let folder = crate::support::root().join("examples");
    let entries = fs::read_dir(folder).expect("a readable folder");
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("a readable folder").file_name())
        .map(|name| format!("../examples/{}", name.to_string_lossy()))
        .collect();
    files.sort();
    assert_eq!(files, FILES);
}
