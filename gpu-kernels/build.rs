//! Tells the build script of the library where the packed PTX of this package is: in its variable
//! `DEP_ALLPAIRS_KERNELS_PACKED`, which Cargo makes of the manifest's key `links` and this line.

use std::env;
use std::path::Path;

fn main() {
    let folder = env::var_os("CARGO_MANIFEST_DIR").expect("Cargo sets it for build scripts");
    let packed = Path::new(&folder).join("ptx/kernels.bin");
    println!("cargo::metadata=packed={}", packed.display());
    // That path is all that this script tells: without this line it would run after each change of a kernel.
    println!("cargo::rerun-if-changed=build.rs");
}
