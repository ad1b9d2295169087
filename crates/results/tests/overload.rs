//! The notes on traffic that the network cannot carry.

use xoff_results::overload::notes;

/// Eight hosts at one switch; a port carries 100 Gbps.
const STAR: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 8
link = { rate = "100Gbps", delay = "1us" }
"#;

/// The texts and the advice of the notes on a scenario of these tables.
fn said(tables: &str) -> Vec<(String, String)> {
    let text = format!("{STAR}{tables}");
    let files = |_: &std::path::Path| Err(std::io::ErrorKind::NotFound.into());
    let loaded = xoff_plan::load("t.toml", text.as_bytes(), &[], &files).expect("a good scenario");
    notes(&loaded).into_iter().map(|note| (note.text, note.help.unwrap_or_default())).collect()
}

fn poisson(name: &str, load: f64, more: &str) -> String {
    format!("[[traffic]]\nname = \"{name}\"\nkind = \"poisson\"\nsizes = \"10kB\"\nload = {load}\n{more}\n")
}

fn incast(size: &str, more: &str) -> String {
    format!("[[traffic]]\nkind = \"incast\"\nfan_in = 4\nsize = \"{size}\"\nto = \"H0\"\n{more}\n")
}

#[test]
fn a_load_above_one_is_said() {
    let run = "[run]\nduration = \"100us\"\ndrain = \"10ms\"";
    assert_eq!(said(&(poisson("a", 1.0, "") + run)), []);
    let [(text, help)] = &said(&(poisson("a", 1.25, "") + run))[..] else { panic!("one note") };
    assert!(
        text.starts_with("The offered load of \"a\" is 1.25, and a load of 1 fills the busiest link."),
        "{text}"
    );
    assert_eq!(help, "Lower traffic.0.load.");
    // Loads of the same pairs add up, others do not.
    let both = |more: &str| said(&(poisson("a", 0.6, "") + &poisson("b", 0.7, more) + run));
    let [(text, help)] = &both("")[..] else { panic!("one note") };
    assert!(text.starts_with("The offered loads of \"a\" and \"b\" add up to 1.3, and"), "{text}");
    assert_eq!(help, "Lower traffic.0.load and traffic.1.load.");
    assert_eq!(both("to = [\"H0..H3\"]"), []);
    assert_eq!(said(&(poisson("a", 1.25, "load_of = \"10Gbps\"") + run)), []);
}

#[test]
fn incasts_that_overlap_are_said() {
    let run = "[run]\nduration = \"1ms\"\ndrain = \"10ms\"";
    // 4 times 100 packets of 1,062 B are 34 us of the link.
    assert_eq!(said(&(incast("100kB", "period = \"35us\"") + run)), []);
    let [(text, help)] = &said(&(incast("100kB", "period = \"20us\"") + run))[..] else { panic!("one note") };
    let begin = "The incasts of \"incast\" offer 1.7 of what the link of a receiver carries: each needs 33.98 us, and \
                 the next one starts 20 us later.";
    assert!(text.starts_with(begin), "{text}");
    assert!(help.starts_with("Raise traffic.0.period"), "{help}");
    // Eight receivers take turns.
    let turns = incast("100kB", "period = \"20us\"").replace("\"H0\"", "\"rotate\"");
    assert_eq!(said(&(turns + run)), []);
}

#[test]
fn incasts_that_outlast_the_run_are_said() {
    let [(text, help)] = &said(&(incast("10MB", "") + "[run]\nduration = \"1ms\""))[..] else {
        panic!("one note")
    };
    let begin = "The incast \"incast\" cannot finish before the run ends at 1 ms: the one at 0 s keeps the link of its \
                 receiver busy for 3.398 ms or longer.";
    assert_eq!(text, begin);
    assert!(help.contains("run.drain") && help.contains("traffic.0.stop"), "{help}");
    let last = incast("100kB", "period = \"200us\"\nstart = \"190us\"") + "[run]\nduration = \"1ms\"";
    let [(text, _)] = &said(&last)[..] else { panic!("one note") };
    assert!(
        text.starts_with("1 of the 5 incasts of \"incast\" cannot finish before the run ends at 1 ms"),
        "{text}"
    );
    assert_eq!(said(&(last + "\ndrain = \"100us\"")), []);
    // Without a duration the run ends after its last flow.
    assert_eq!(said(&incast("10MB", "")), []);
}
