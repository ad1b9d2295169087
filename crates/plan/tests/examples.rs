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

/// The bases of Bifrost's experiments, as they are and under the schemes that they
/// serve. Their loads are those of the long link: at a load of 1 of what saturates first,
/// the long link carries its 400 Gbps in every direction that the traffic has.
#[test]
fn the_bases_of_bifrosts_experiments_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/bifrost/scenarios");
    // 16 of the 31 other hosts are in the other datacenter.
    let saturated = [("two-dc", 400e9), ("two-dc-all", 800e9 * 31.0 / 16.0), ("two-dc-priorities", 800e9)];
    let mut found = 0;
    for entry in fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_string();
        let with = |overrides: &[(String, String)]| {
            let text = fs::read(&path).unwrap();
            load(path.to_str().unwrap(), &text, overrides, &|p| fs::read(folder.join(p)))
                .unwrap_or_else(|e| panic!("{overrides:?}: {}", e.one_line()))
        };
        let own = with(&[]);
        assert!(own.warnings.is_empty(), "{name}: {:?}", own.warnings);
        if let Some((_, rate)) = saturated.iter().find(|(n, _)| *n == name) {
            let first = own.saturation[0].expect("a link is full").rate;
            assert!((first / rate - 1.0).abs() < 1e-9, "{name}: {first}");
            found += 1;
        }
        for scheme in ["pfc", "bifrost", "swing", "none"] {
            let loaded = with(&[("flow_control.scheme".into(), scheme.into())]);
            let others = loaded.warnings.iter().filter(|w| !w.message.starts_with("had no effect"));
            let others: Vec<_> = others.collect();
            assert!(others.is_empty(), "{name}, {scheme}: {others:?}");
        }
    }
    assert_eq!(found, saturated.len());
}
