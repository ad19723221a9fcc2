//! Tells the linker to write down in few bytes which addresses the system has to place when the program starts: they were
//! half a megabyte of the program, read at every start.

use std::env;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = |what: &str| env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    // Since glibc 2.36. A linker that does not know it says so and goes on.
    if target("OS") == "linux" && target("ENV") == "gnu" {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}
