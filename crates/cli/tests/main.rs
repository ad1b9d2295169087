//! The tests of the command in one program: each file is a module, so that they are linked once.

use std::{fs, path::Path};

mod book;
mod captures;
mod check;
mod cli;
mod common;
mod damage;
mod docs;
mod experiments;
mod explain;
mod faults;
mod grid;
mod import;
mod init;
mod live;
mod measured;
mod memory;
mod outside;
mod report;
mod repro;
mod size;
mod store;

/// Tests in a file that is no module of its program would not run.
#[test]
fn every_file_of_tests_is_a_module() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut programs = 0;
    for tests in fs::read_dir(crates).unwrap().map(|of| of.unwrap().path().join("tests")) {
        let Ok(modules) = fs::read_to_string(tests.join("main.rs")) else { continue };
        programs += 1;
        for file in fs::read_dir(&tests).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let is_module = path.extension().is_some_and(|end| end == "rs") || path.join("mod.rs").exists();
            if !is_module || name == "main" {
                continue;
            }
            assert!(
                modules.contains(&format!("\nmod {name};\n")),
                "{} lacks `mod {name};`",
                tests.join("main.rs").display()
            );
        }
    }
    assert!(programs >= 7, "{programs}");
}
