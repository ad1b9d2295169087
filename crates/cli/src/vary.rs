//! The values of `--vary` and `--seeds`, and their errors.

use miette::{IntoDiagnostic, miette};
use serde_json::Value;
use xoff_plan::variants::{ALL, Variant};
use xoff_results::grid::{Axis, Grid};

use crate::load::Source;
use crate::output;
use crate::schemes::resolve;

/// Most runs of a grid.
pub const LARGEST: usize = 100_000;

/// Largest seed: files of results have whole numbers of 64 bits with a sign.
pub const LARGEST_SEED: u64 = i64::MAX as u64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Reads `key=a,b,c`. Commas in quotes and brackets belong to a value.
pub fn axis(text: &str) -> Result<Axis, String> {
    let example = "expected KEY=VALUE,VALUE,..., such as traffic.0.load=0.4,0.8";
    let (key, values) = text.split_once('=').ok_or(example)?;
    if key.trim().is_empty() {
        return Err(example.into());
    }
    let values = split(values)?;
    if let Some(i) = values.iter().position(String::is_empty) {
        return Err(format!("value {} is empty; for an empty text write \"\"", i + 1));
    }
    for (i, value) in values.iter().enumerate() {
        if values[..i].contains(value) {
            return Err(format!("the value {value} is given twice"));
        }
    }
    Ok(Axis { key: plain(key), values, named: false })
}

/// A key in its plain form: `traffic[0].load` is `traffic.0.load`.
fn plain(key: &str) -> String {
    key.trim().replace('[', ".").replace(']', "")
}

/// Splits at commas outside of quotes and brackets; blanks around values go.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut values = vec![String::new()];
    let mut open: Vec<char> = Vec::new(); // closing brackets that are awaited
    let mut quote = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let value = values.last_mut().expect("begins with one");
        match (quote, c) {
            (None, ',') if open.is_empty() => {
                values.push(String::new());
                continue;
            }
            (Some('"'), '\\') => {
                value.push(c);
                value.extend(chars.next());
                continue;
            }
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '[') => open.push(']'),
            (None, '{') => open.push('}'),
            (None, ']' | '}') if open.pop() != Some(c) => {
                return Err(format!("{c} has no opening bracket"));
            }
            (None, _) => {}
        }
        value.push(c);
    }
    match (quote, open.pop()) {
        (Some(q), _) => Err(format!("the quote {q} is not closed")),
        (None, Some(c)) => Err(format!("a bracket is not closed: {c} is missing")),
        (None, None) => Ok(values.into_iter().map(|v| v.trim().to_string()).collect()),
    }
}

/// Reads `1..5` (both included), `1,3,9` or a mixture.
pub fn seeds(text: &str) -> Result<Seeds, String> {
    at_most(text, LARGEST)
}

/// The same with more seeds.
pub fn many_seeds(text: &str) -> Result<Seeds, String> {
    at_most(text, 100 * LARGEST)
}

/// Says that one number is one seed, which is easily taken for the number of seeds.
pub fn one_seed(grid: &Grid) {
    match grid.seeds[..] {
        [seed] if seed > 1 => output::complain(&format!(
            "--seeds {seed} is one seed, number {seed}; for {seed} seeds type --seeds 1..{seed}"
        )),
        [1] => output::complain("--seeds 1 is one seed, number 1"),
        _ => {}
    }
}

fn at_most(text: &str, most: usize) -> Result<Seeds, String> {
    let number = |text: &str| {
        let text = text.trim();
        let wrong = |_| format!("`{text}` is not a seed; expected whole numbers such as 1..5 or 1,3,9");
        let seed = text.parse::<u64>().map_err(wrong)?;
        if seed > LARGEST_SEED {
            return Err(format!("seed {seed} is too large: the maximum is {LARGEST_SEED}"));
        }
        Ok(seed)
    };
    let mut all = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once("..") {
            // `..=` is how Rust writes a range with its end.
            Some((from, to)) => (number(from)?, number(to.strip_prefix('=').unwrap_or(to))?),
            None => (number(part)?, number(part)?),
        };
        if from > to {
            return Err(format!("{from}..{to} is empty: the first seed is greater than the last"));
        }
        if (to - from) as usize >= most - all.len().min(most) {
            return Err(format!("more than the maximum of {most} seeds"));
        }
        all.extend(from..=to);
    }
    let mut sorted = all.clone();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|w| w[0] == w[1]) {
        return Err(format!("seed {} is given twice", twice[0]));
    }
    Ok(Seeds(all))
}

/// The grid of these axes and seeds. Refuses a key that is given twice, so that one of its values has no effect. `by`
/// names the origin of the keys of `set`.
fn grid(by: &str, set: &[(String, String)], axes: &[Axis], seeds: Option<&Seeds>) -> miette::Result<Grid> {
    let grid = Grid { axes: axes.to_vec(), seeds: seeds.map_or_else(Vec::new, |s| s.0.clone()) };
    let mut given: Vec<(&str, &str)> = set.iter().map(|(key, _)| (by, key.as_str())).collect();
    given.extend(axes.iter().map(|axis| ("--vary", axis.key.as_str())));
    given.extend(seeds.map(|_| ("--seeds", "run.seed")));
    complete(&given)?;
    given_once(&given)?;
    Ok(grid)
}

/// Refuses more runs than one command makes.
pub fn bounded(grid: Grid) -> miette::Result<Grid> {
    match grid.runs() {
        Some(runs) if runs <= LARGEST => Ok(grid),
        _ => Err(miette!(
            help = "vary fewer keys, or give fewer values or seeds; `xoff grid plan` takes more",
            "the grid has more than the maximum of {LARGEST} runs"
        )),
    }
}

/// The variants that a command names, if none replaces what its `--set` says.
pub fn for_command(
    source: &Source,
    names: &[String],
    overrides: &[(String, String)],
) -> miette::Result<Vec<Variant>> {
    let variants = match names {
        [] => Vec::new(),
        names => chosen(source.variants()?, names)?,
    };
    for variant in &variants {
        let by = format!("variant `{}`", variant.name);
        let set = overrides.iter().map(|(key, _)| ("--set", key.as_str()));
        let all = set.chain(variant.set.iter().map(|(key, _)| (&*by, key.as_str())));
        given_once(&all.collect::<Vec<_>>())?;
    }
    Ok(variants)
}

/// The axis of the variants, as `grid.parquet` calls it.
pub const VARIANT: &str = "variant";

/// The grid of these axes and seeds, with the variants as first axis. Neither `set` nor a variant has a key in common
/// with the axes.
pub fn with_variants(
    set: &[(String, String)],
    variants: &[Variant],
    mut axes: Vec<Axis>,
    seeds: Option<&Seeds>,
) -> miette::Result<Grid> {
    for Variant { name, set } in variants {
        grid(&format!("variant `{name}`"), set, &axes, seeds)?;
    }
    if !variants.is_empty() {
        axes.insert(0, Axis::named(VARIANT, variants.iter().map(|v| v.name.clone()).collect()));
    }
    grid("--set", set, &axes, seeds)
}

/// The overrides of a run before those of the grid: `set`, and what its variant sets instead or besides.
pub fn of_variant(
    grid: &Grid,
    variants: &[Variant],
    run: usize,
    set: &[(String, String)],
) -> Vec<(String, String)> {
    let per_variant = grid.points().unwrap_or(0) / variants.len().max(1);
    let mut overrides = set.to_vec();
    for (key, value) in variants.get(grid.point_of(run) / per_variant.max(1)).map_or(&[][..], |v| &v.set) {
        overrides.retain(|(other, _)| !replaces(key, other));
        overrides.push((key.clone(), value.clone()));
    }
    overrides
}

/// The variants of these names, or of the name `all`, in the order of the names.
fn chosen(known: Vec<Variant>, names: &[String]) -> miette::Result<Vec<Variant>> {
    if let [all] = names
        && all == ALL
        && !known.is_empty()
    {
        return Ok(known);
    }
    let mut chosen: Vec<Variant> = Vec::new();
    for name in names {
        let Some(variant) = known.iter().find(|v| v.name == *name) else {
            let names: Vec<&str> = known.iter().map(|v| v.name.as_str()).collect();
            let help = match names[..] {
                [] => "write a table such as [[variant]] name = \"irn\" set = { transport.kind = \"irn\" } into it".to_string(),
                _ => format!("its variants are {}; type {ALL} for every one", names.join(", ")),
            };
            return Err(miette!(help = help, "--variant: the scenario has no variant `{name}`"));
        };
        if chosen.contains(variant) {
            return Err(miette!(help = "remove one of the two", "--variant: `{name}` is given twice"));
        }
        chosen.push(variant.clone());
    }
    Ok(chosen)
}

/// Checks that each key has its table: a bare `load` means `traffic.0.load`.
pub fn complete(given: &[(&str, &str)]) -> miette::Result<()> {
    for &(by, key) in given.iter().filter(|(_, key)| !key.contains(['.', '['])) {
        let schema = serde_json::to_value(xoff_plan::schema::schema()).into_diagnostic()?;
        let paths = paths(&schema, key);
        if !paths.is_empty() {
            return Err(miette!(
                help = format!("type {}", paths.join(" or ")),
                "`{key}` of {} is not a complete key",
                option(by, key)
            ));
        }
    }
    Ok(())
}

/// The full names of a key in the tables of a scenario; none for a table's name.
fn paths(schema: &Value, key: &str) -> Vec<String> {
    let tables = schema["properties"].as_object().into_iter().flatten();
    let mut paths = Vec::new();
    for (name, table) in tables {
        if name == key {
            return Vec::new();
        }
        // A table may be absent, and a list of tables is named by the number of one.
        let present = table["anyOf"].as_array().and_then(|any| any.iter().find(|v| v["type"] != "null"));
        let table = resolve(schema, present.unwrap_or(table));
        let list = table["items"].is_object();
        let table = if list { resolve(schema, &table["items"]) } else { table };
        let kinds = table["oneOf"].as_array().into_iter().flatten();
        if kinds.chain([table]).any(|kind| kind["properties"][key].is_object()) {
            paths.push(format!("{name}{}.{key}", if list { ".0" } else { "" }));
        }
    }
    paths
}

/// Whether a value of `key` takes the place of one of `other`: it is the same key, or a table around it.
pub fn replaces(key: &str, other: &str) -> bool {
    let (key, other) = (plain(key), plain(other));
    let rest = other.strip_prefix(key.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// Refuses a key (with its option) that a later one replaces, as the same key or a table around it.
pub fn given_once(given: &[(&str, &str)]) -> miette::Result<()> {
    for (i, &(by, key)) in given.iter().enumerate() {
        let mut before = given[..i].iter().copied();
        if let Some((other, below)) = before.find(|(_, below)| replaces(key, below)) {
            let (key, below) = (plain(key), plain(below));
            return Err(miette!(
                help = "remove one of the two",
                "`{below}` of {} has no effect, because `{key}` of {} replaces it",
                option(other, &below),
                option(by, &key)
            ));
        }
    }
    Ok(())
}

/// The option by which a key was given: `--seed` counts as `--set run.seed`.
fn option<'a>(by: &'a str, key: &str) -> &'a str {
    match (by, key) {
        ("--set", "run.seed") => "--set or --seed",
        _ => by,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str) -> Vec<String> {
        axis(text).unwrap().values
    }

    #[test]
    fn values_are_split_at_commas_outside_of_quotes_and_brackets() {
        assert_eq!(axis(" traffic[0].load =0.4, 0.8").unwrap().key, "traffic.0.load");
        assert_eq!(values("k=0.4, 0.8 ,1"), ["0.4", "0.8", "1"]);
        assert_eq!(values("k=one"), ["one"]);
        assert_eq!(values("k=\"a,b\",'c,d',e"), ["\"a,b\"", "'c,d'", "e"]);
        assert_eq!(
            values("k=[1,2],[3,[4,5]],{ a = 1, b = \"]\" }"),
            ["[1,2]", "[3,[4,5]]", "{ a = 1, b = \"]\" }"]
        );
        assert_eq!(values(r#"k="a\",b",c"#), [r#""a\",b""#, "c"]);
        assert_eq!(values(r"k='a\',b"), [r"'a\'", "b"]);
        assert_eq!(values("k=a=b,c"), ["a=b", "c"]);
        assert_eq!(values("k=\"\",é"), ["\"\"", "é"]);
    }

    #[test]
    fn invalid_lists_of_values_are_refused() {
        for (text, why) in [
            ("k", "expected KEY="),
            ("=1", "expected KEY="),
            ("k=", "value 1 is empty"),
            ("k=1,,2", "value 2 is empty"),
            ("k=1,", "value 2 is empty"),
            ("k=1,2, 1", "the value 1 is given twice"),
            ("k=\"a,b", "the quote \" is not closed"),
            ("k=[1,2", "not closed: ] is missing"),
            ("k=1],2", "] has no opening bracket"),
            ("k={1]", "] has no opening bracket"),
        ] {
            let error = axis(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn seeds_are_ranges_and_lists() {
        assert_eq!(seeds("1..5").unwrap().0, [1, 2, 3, 4, 5]);
        assert_eq!(seeds("1..=2").unwrap().0, [1, 2]);
        assert_eq!(seeds("9, 1,3").unwrap().0, [9, 1, 3]);
        assert_eq!(seeds("7..7,1..2").unwrap().0, [7, 1, 2]);
        for (text, why) in [
            ("", "is not a seed"),
            ("1..", "is not a seed"),
            ("-1", "is not a seed"),
            ("1.5", "is not a seed"),
            ("5..1", "5..1 is empty"),
            ("1..3,2", "seed 2 is given twice"),
            ("0..18446744073709551615", "the maximum is 9223372036854775807"),
            ("1,9223372036854775808", "seed 9223372036854775808 is too large"),
            ("0..9223372036854775807", "more than the maximum of 100000 seeds"),
            ("1..99999,200000..200001", "more than the maximum of 100000 seeds"),
        ] {
            let error = seeds(text).unwrap_err();
            assert!(error.contains(why), "{text}: {error}");
        }
        assert_eq!(seeds("1..100000").unwrap().0.len(), LARGEST);
        assert_eq!(seeds("9223372036854775807").unwrap().0, [LARGEST_SEED]);
    }

    #[test]
    fn no_key_is_given_twice() {
        let set = |keys: &[&str]| keys.iter().map(|k| (k.to_string(), "1".to_string())).collect::<Vec<_>>();
        let axes = |texts: &[&str]| texts.iter().map(|t| axis(t).unwrap()).collect::<Vec<_>>();
        let one = Seeds(vec![1]);
        let fine = |s: &[&str], a: &[&str], seeds: Option<&Seeds>| {
            let made = grid("--set", &set(s), &axes(a), seeds);
            made.is_ok() || !made.unwrap_err().to_string().contains("has no effect")
        };
        assert!(fine(&["a.b", "a.d"], &["a.c=1,2"], Some(&one)));
        assert!(!fine(&["a.b", "a.b"], &["a.c=1,2"], Some(&one)));
        assert!(fine(&["a"], &["a.b=1,2"], None), "a part of what was set");
        assert!(fine(&["ab"], &["a=1,2"], None));
        assert!(fine(&[], &["run={},{ seed = 2 }"], Some(&one)));
        assert!(!fine(&["a.0.b"], &["a[0].b=1,2"], None));
        assert!(!fine(&["a.b"], &["a=1,2"], None), "the whole of what was set");
        assert!(!fine(&[], &["a.b=1", "a.b=2"], None));
        assert!(!fine(&["run.seed"], &[], Some(&one)));
        assert!(!fine(&[], &["run.seed=1,2"], Some(&one)));
        assert!(given_once(&[("--set", "a"), ("--set", "a.b"), ("--set", "a.bc")]).is_ok());
        for (first, second) in [("a[0].b", "a.0.b"), ("a.b", "a"), ("run.seed", "run.seed")] {
            let error = given_once(&[("--set", first), ("--set", "c"), ("--set", second)]).unwrap_err();
            assert!(error.to_string().contains("has no effect"), "{error}");
        }
        let wide = Axis { key: "a".into(), values: (0..1000).map(|i| i.to_string()).collect(), named: false };
        let more = Axis { key: "b".into(), values: (0..101).map(|i| i.to_string()).collect(), named: false };
        assert!(
            bounded(grid("--set", &[], &[wide, more], None).unwrap())
                .unwrap_err()
                .to_string()
                .contains("more than the maximum of 100000 runs")
        );
    }
}
