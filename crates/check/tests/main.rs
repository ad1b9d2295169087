//! The tests of the checker in one program: each file is a module, so that they are linked once.

mod blocking;
mod choices;
mod common;
mod credit;
mod dsh;
mod graph;
mod isolation;
mod load_balancing;
mod model;
mod pause;
mod pictures;
mod portfc;
mod proofs;
mod pyrrha;
mod textbook;

/// A file that is not a module here would not be compiled, and its tests would not run.
#[test]
fn every_file_is_a_module() {
    let modules = include_str!("main.rs");
    for file in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs").filter(|name| *name != "main") else { continue };
        assert!(modules.contains(&format!("\nmod {name};\n")), "tests/main.rs lacks `mod {name};`");
    }
}
