//! Every example is a scenario.

use std::fs;
use std::path::{Path, PathBuf};
use xoff_plan::{describe::describe, load};

fn examples() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "toml"))
        .collect();
    files.sort();
    files
}

#[test]
fn every_example_loads_without_a_warning() {
    let files = examples();
    assert!(files.len() >= 3, "{files:?}");
    for path in files {
        let folder = path.parent().unwrap().to_path_buf();
        let loaded =
            load(path.to_str().unwrap(), &fs::read(&path).unwrap(), &[], &|p| fs::read(folder.join(p)));
        let loaded = loaded.unwrap_or_else(|e| panic!("{}", e.one_line()));
        assert!(loaded.warnings.is_empty(), "{}: {:?}", path.display(), loaded.warnings);
        assert!(!loaded.plan.flows.is_empty());
        insta::assert_snapshot!(
            format!("describe-{}", path.file_stem().unwrap().to_str().unwrap()),
            describe(&loaded)
        );
    }
}
