//! Tells the linker to write down in few bytes which addresses the system has to place when the program starts: they were
//! half a megabyte of the program, read at every start.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let of = |name: &str| env::var(name).unwrap_or_default();
    let is_for_glibc = of("CARGO_CFG_TARGET_OS") == "linux" && of("CARGO_CFG_TARGET_ENV") == "gnu";
    // The program then needs glibc 2.36 to start, so it is left alone where it may have to do with less.
    if is_for_glibc && of("HOST") == of("TARGET") && glibc().is_some_and(|version| version >= (2, 36)) {
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// The glibc of this machine.
fn glibc() -> Option<(u32, u32)> {
    let said = Command::new("getconf").arg("GNU_LIBC_VERSION").output().ok()?.stdout;
    let said = String::from_utf8(said).ok()?;
    let (major, minor) = said.trim().strip_prefix("glibc ")?.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}
