//! Names the compiler and the target, for `xoff --version`.

use std::{env, process::Command};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let rustc = env::var("RUSTC").expect("Cargo names the compiler");
    let said = Command::new(rustc).arg("--version").output().expect("the compiler says its version");
    let version = String::from_utf8_lossy(&said.stdout);
    println!("cargo::rustc-env=XOFF_RUSTC={}", version.trim());
    println!("cargo::rustc-env=XOFF_TARGET={}", env::var("TARGET").expect("Cargo names the target"));
}
