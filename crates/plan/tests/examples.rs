//! Every example is a scenario; `examples.toml` has the description of each.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use toml::Table;
use xoff_plan::{describe::describe, load};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Names of all examples, with those of traces.
fn examples() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for prefix in ["", "trace/"] {
        let files = fs::read_dir(folder().join(prefix)).unwrap().map(|e| e.unwrap().path());
        let scenarios = files.filter(|p| p.extension().is_some_and(|e| e == "toml"));
        names.extend(scenarios.map(|p| format!("{prefix}{}", p.file_stem().unwrap().to_str().unwrap())));
    }
    names
}

#[test]
fn every_example_loads_without_a_warning() {
    let table = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/examples.toml");
    let name = |case: &Table| case["name"].as_str().unwrap().to_string();
    assert_eq!(crate::common::cases(&table).iter().map(name).collect::<BTreeSet<_>>(), examples());
    let description = |case: &Table| {
        let path = folder().join(format!("{}.toml", name(case)));
        let beside = |p: &Path| fs::read(path.with_file_name("").join(p));
        let loaded = load(path.to_str().unwrap(), &fs::read(&path).unwrap(), &[], &beside);
        let loaded = loaded.unwrap_or_else(|e| panic!("{}", e.one_line()));
        assert!(loaded.warnings.is_empty(), "{}: {:?}", path.display(), loaded.warnings);
        assert!(!loaded.plan.flows.is_empty());
        format!("{}\n", describe(&loaded).trim_end())
    };
    let differences = crate::common::compare(&table, "description", description);
    assert!(differences.is_empty(), "expected (-), actual (+); UPDATE=1 accepts:\n{differences}");
}

/// The bases of Bifrost's experiments, as they are and under the schemes that they serve. Loads of two of them
/// are those of the long link: at a load of 1 of the first saturated link, the long link carries its 400 Gbps
/// in every direction that the traffic has.
#[test]
fn the_bases_of_bifrosts_experiments_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/bifrost/scenarios");
    // 16 of the 31 other hosts are in the other datacenter.
    let saturated = [("two-dc", 400e9), ("two-dc-all", 800e9 * 31.0 / 16.0)];
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
