//! A scheme is one room: who reads the program for a scheme reads its folder, and who adds one edits
//! nothing else but the registry. So no other file may say a scheme's name.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

const FLOW_CONTROL: &str = "crates/schemes/src/flow_control/";

/// Each scheme's name, the words that give it away, and its folders.
const SCHEMES: [(&str, &[&str], &[&str]); 20] = [
    // A word of the field, which every file may say.
    ("pause", &[], &["crates/schemes/src/flow_control/pause/"]),
    ("pfc", &["pfc"], &["crates/schemes/src/flow_control/pfc/"]),
    ("bfc", &["bfc"], &["crates/schemes/src/flow_control/bfc/"]),
    ("bifrost", &["bifrost", "bifrostx"], &["crates/schemes/src/flow_control/bifrost/"]),
    ("breakers", &["breaker", "breakers"], &["crates/schemes/src/flow_control/breakers/"]),
    ("cbfc", &["cbfc"], &["crates/schemes/src/flow_control/cbfc/"]),
    ("dsh", &["dsh"], &["crates/schemes/src/flow_control/dsh/"]),
    ("gfc", &["gfc"], &["crates/schemes/src/flow_control/gfc/"]),
    ("itsy", &["itsy"], &["crates/schemes/src/flow_control/itsy/"]),
    ("llr", &["llr"], &["crates/schemes/src/link_layer/"]),
    (
        "per-flow-queue",
        &["per flow queue", "per flow queues"],
        &["crates/schemes/src/flow_control/per_flow_queue/"],
    ),
    ("portfc", &["portfc", "port fc"], &["crates/schemes/src/flow_control/portfc/"]),
    ("pyrrha", &["pyrrha"], &["crates/schemes/src/flow_control/pyrrha/"]),
    ("roundabout", &["roundabout"], &["crates/schemes/src/flow_control/roundabout/"]),
    ("swing", &["swing"], &["crates/schemes/src/flow_control/swing/"]),
    ("tagger", &["tagger"], &["crates/schemes/src/flow_control/tagger/"]),
    // The switches of every scheme may trim, and its transport knows trimmed packets.
    ("trimming", &["trimming"], &["crates/schemes/src/flow_control/trimming/"]),
    ("uec-cbfc", &["uec cbfc"], &["crates/schemes/src/flow_control/uec_cbfc/"]),
    ("watchdog", &["watchdog", "watchdogs"], &["crates/schemes/src/flow_control/watchdog/"]),
    ("zeropod", &["zeropod"], &["crates/schemes/src/scheduling/zeropod/", "crates/zeropod/"]),
];

/// The registry, with its modules, and the generator of scenarios under all schemes.
const REGISTRY: [&str; 3] = [
    "crates/schemes/src/flow_control/registry.rs",
    "crates/schemes/src/flow_control/mod.rs",
    "crates/swarm/",
];

/// Files that may name schemes, each with the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/check/src/roots.rs", "pfc", "neighbours that know only the base"),
    ("crates/cli/src/lib.rs", "pfc", "examples in the help"),
    ("crates/net/src/builders/mod.rs", "zeropod", "a topology of this name"),
    ("crates/outcome/src/lib.rs", "pfc", "the frames of 802.1Qbb"),
    ("crates/plan/src/plan.rs", "pfc", "hosts and relays that pass the base's pauses on"),
    ("crates/plan/src/reference.rs", "pfc", "the default scheme"),
    ("crates/plan/src/resolve/memory.rs", "pfc", "accounts and headroom of the base"),
    ("crates/plan/src/resolve/mod.rs", "pfc", "the default scheme"),
    ("crates/plan/src/resolve/transport.rs", "pfc", "the frames of 802.1Qbb"),
    ("crates/plan/src/scenario/mod.rs", "pfc", "the default scheme"),
    ("crates/plan/src/scenario/mod.rs", "zeropod", "the table of the topology of this name"),
    ("crates/plan/src/schema.rs", "pfc", "the default scheme"),
    ("crates/results/src/effects.rs", "pfc", "the remark on a base that never acted"),
    ("crates/results/src/notes.rs", "pfc", "headroom of the base"),
    ("crates/results/src/size/text.rs", "pfc", "the base, to compare with"),
    ("crates/results/src/stuck.rs", "pfc", "the frames of 802.1Qbb"),
    ("crates/schemes/src/flow_control/bifrost/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/breakers/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/dsh/", "pfc", "both of its levels are one of it"),
    ("crates/schemes/src/flow_control/frame.rs", "pfc", "the frames of 802.1Qbb, which others join"),
    ("crates/schemes/src/flow_control/gfc/", "pfc", "the bytes that arrive after a crossing"),
    ("crates/schemes/src/flow_control/itsy/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/keys.rs", "pfc", "keys of schemes that build on it"),
    ("crates/schemes/src/flow_control/mac_control.rs", "pfc", "the frames of 802.1Qbb"),
    ("crates/schemes/src/flow_control/none.rs", "pfc", "the keys of the default, which are checked"),
    ("crates/schemes/src/flow_control/pause/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/portfc/", "pfc", "compares with it"),
    ("crates/schemes/src/flow_control/pyrrha/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/roundabout/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/seam.rs", "pfc", "hooks whose default it is"),
    ("crates/schemes/src/flow_control/size/", "pfc", "the base, to compare with"),
    ("crates/schemes/src/flow_control/swing/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/tagger/", "pfc", "builds on it"),
    ("crates/schemes/src/flow_control/watchdog/", "pfc", "builds on it"),
    ("crates/schemes/src/lib.rs", "zeropod", "a registry: whose facts there are"),
    ("crates/schemes/src/scheduling/mod.rs", "zeropod", "a registry: modules"),
    ("crates/sim/src/lib.rs", "zeropod", "a registry: the worlds"),
    ("crates/sim/src/observe.rs", "pfc", "the frames of 802.1Qbb"),
    ("crates/sim/src/oracle/blocking/mod.rs", "pfc", "the frames of 802.1Qbb"),
    ("crates/sim/src/oracle/livelock.rs", "pfc", "the longest pause of 802.1Qbb"),
    ("crates/sim/src/switch/control_plane.rs", "breakers", "a test's scenario"),
    ("crates/wire/", "pfc", "the frames of 802.1Qbb"),
];

/// Every Rust file under `folder`.
fn files(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()) {
        if entry.is_dir() {
            files(&entry, all);
        } else if entry.extension().is_some_and(|extension| extension == "rs") {
            all.push(entry);
        }
    }
}

/// The words of a text and of the identifiers in it, in lower case and between single spaces.
fn words(text: &str) -> String {
    let mut words = String::from(" ");
    let mut last = ' ';
    for c in text.chars() {
        let begins = last.is_ascii_lowercase() && c.is_ascii_uppercase();
        if (begins || !c.is_ascii_alphabetic()) && !words.ends_with(' ') {
            words.push(' ');
        }
        if c.is_ascii_alphabetic() {
            words.push(c.to_ascii_lowercase());
        }
        last = c;
    }
    words + " "
}

/// The text without citations such as `portfc.ate-formula`, which name an open point of a paper.
fn without_citations(text: &str) -> String {
    let cites = |quoted: &&str| {
        quoted.split_once('.').is_some_and(|(paper, point)| {
            SCHEMES.iter().any(|scheme| scheme.0 == paper)
                && point.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        })
    };
    text.split('`').filter(|quoted| !cites(quoted)).collect::<Vec<_>>().join("`")
}

/// The words without longer spellings of other schemes, which contain this one: `uec cbfc` is not `cbfc`.
fn without_longer(words: &str, spelling: &str) -> String {
    let all = SCHEMES.iter().flat_map(|scheme| scheme.1);
    let longer = all.filter(|other| other.ends_with(&format!(" {spelling}")));
    // Twice: of two in a row, which share a space, the first pass finds one.
    let replace = |words: String, other: &&str| words.replace(&format!(" {other} "), "  ");
    longer.fold(words.to_string(), |words, other| replace(replace(words, other), other))
}

/// Each file and scheme that it names outside of the scheme's folders.
fn named() -> BTreeSet<(String, &'static str)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = Vec::new();
    for entry in fs::read_dir(root.join("crates")).expect("the crates").flatten() {
        let src = entry.path().join("src");
        if src.is_dir() {
            files(&src, &mut all);
        }
    }
    let mut named = BTreeSet::new();
    for path in all {
        let name = path.strip_prefix(&root).expect("within the root").to_string_lossy().replace('\\', "/");
        if REGISTRY.iter().any(|registry| name.starts_with(registry)) {
            continue;
        }
        let text = words(&without_citations(&fs::read_to_string(&path).expect("a text")));
        for (scheme, spellings, folders) in SCHEMES {
            let own = folders.iter().any(|folder| name.starts_with(folder));
            let names = |spelling: &&str| without_longer(&text, spelling).contains(&format!(" {spelling} "));
            if !own && spellings.iter().any(names) {
                named.insert((name.clone(), scheme));
            }
        }
    }
    named
}

/// Whether an entry of a list is about this file and scheme.
fn covers((file, schemes): (&str, &str), name: &str, scheme: &str) -> bool {
    let here = if file.ends_with('/') { name.starts_with(file) } else { name == file };
    here && schemes.split(' ').any(|s| s == scheme)
}

#[test]
fn only_a_schemes_folder_and_the_registry_name_it() {
    let entries = || ALLOWED.iter().map(|&(file, schemes, _)| (file, schemes));
    let named = named();
    let new: Vec<_> =
        named.iter().filter(|(name, scheme)| !entries().any(|e| covers(e, name, scheme))).collect();
    assert!(
        new.is_empty(),
        "say the mechanism instead of the scheme, or move what belongs to it into its folder: {new:#?}"
    );
    let gone: Vec<_> = entries()
        .flat_map(|(file, schemes)| schemes.split(' ').map(move |scheme| (file, scheme)))
        .filter(|&entry| !named.iter().any(|(name, scheme)| covers(entry, name, scheme)))
        .collect();
    assert!(gone.is_empty(), "these name the scheme no longer; remove them from the list: {gone:#?}");
}

/// Congestion controls that nothing but their folder and the registry may name: those that are no part of a transport,
/// in the simulator and the planner, and there all others, too.
const CONTROLS: [(&str, &[&str]); 2] = [
    ("sim", &["dcqcn", "timely", "hpcc", "power tcp", "swift"]),
    ("plan", &["dcqcn", "timely", "power tcp", "powertcp", "swift", "nscc", "rccc"]),
];

#[test]
fn only_a_congestion_controls_folder_and_the_registry_name_it() {
    for (room, controls) in CONTROLS {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{room}/src"));
        let mut all = Vec::new();
        files(&root, &mut all);
        for path in all {
            // Scenarios of its tests choose one.
            let text = fs::read_to_string(&path).expect("a text");
            let text = words(text.split("#[cfg(test)]\nmod tests {").next().expect("a beginning"));
            let named: Vec<_> =
                controls.iter().filter(|control| text.contains(&format!(" {control} "))).collect();
            assert!(named.is_empty(), "say the mechanism instead of {named:?}: {}", path.display());
        }
    }
}

/// The names of transports that nothing but their folder and the registry may say. Every file may say TCP, and the text of
/// a scenario's keys says what they mean under each transport.
const TRANSPORTS: [&str; 4] = ["irn", "ndp", "new reno", "rud"];

#[test]
fn only_a_transports_folder_and_the_registry_name_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for room in ["sim", "plan", "check", "results", "repro"] {
        files(&crates.join(room).join("src"), &mut all);
    }
    for path in all.iter().filter(|path| !path.ends_with("scenario/mod.rs")) {
        let text = fs::read_to_string(path).expect("a text");
        // Scenarios of its tests choose one, and helps have examples.
        let text = text.split("#[cfg(test)]\nmod tests {").next().expect("a beginning");
        let text = words(&text.replace("\\\"irn\\\"", ""));
        let named: Vec<_> = TRANSPORTS.iter().filter(|name| text.contains(&format!(" {name} "))).collect();
        assert!(named.is_empty(), "say the mechanism instead of {named:?}: {}", path.display());
    }
}

/// The names of load balancing that only its folder and the registry may say. Every file may say `spray` and `adaptive`:
/// they are words of the field.
const BALANCINGS: [&str; 5] = ["drill", "plb", "reps", "ugal", "valiant"];

#[test]
fn only_a_load_balancings_folder_and_the_registry_name_it() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for room in ["sim", "plan", "check", "results", "cli", "repro", "schemes"] {
        files(&crates.join(room).join("src"), &mut all);
    }
    for path in all.iter().filter(|path| !path.components().any(|part| part.as_os_str() == "load_balancing"))
    {
        let text = words(&fs::read_to_string(path).expect("a text"));
        let named: Vec<_> = BALANCINGS.iter().filter(|name| text.contains(&format!(" {name} "))).collect();
        assert!(named.is_empty(), "say the mechanism instead of {named:?}: {}", path.display());
    }
}

#[test]
fn names_are_found_in_texts_and_identifiers() {
    assert_eq!(words("PortFc of_pfc, PfcKeys; BFC's"), " port fc of pfc pfc keys bfc s ");
    assert_eq!(without_longer(" a uec cbfc cbfc b ", "cbfc"), " a  cbfc b ");
    assert_eq!(without_longer(" uec cbfc uec cbfc uec cbfc ", "cbfc").trim(), "");
    assert_eq!(without_citations("T_H (`portfc.ate-formula`) of `portfc`"), "T_H (`) of `portfc`");
}

#[test]
fn every_folder_of_a_scheme_is_known() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for entry in fs::read_dir(root.join(FLOW_CONTROL)).expect("the folder").flatten() {
        let name = format!("{FLOW_CONTROL}{}/", entry.file_name().to_string_lossy());
        let known = SCHEMES.iter().any(|scheme| scheme.2.contains(&name.as_str()));
        assert!(!entry.path().is_dir() || known || name.ends_with("/size/"), "{name}");
    }
}
