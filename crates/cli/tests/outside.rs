//! Input from outside: hidden characters in texts and names, pipes and devices in place of files, limits of
//! the system, numbers too large to be written.

use crate::common::{self, xoff};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const HELLO: &str = r#"
[topology]
kind = "line"
switches = 1
hosts_per_switch = 2
link = { rate = "100Gbps", delay = "1us" }

[[traffic]]
kind = "flow"
src = "H0"
dst = "H1"
size = "10kB"
"#;

/// An empty directory for one test, with `hello.toml` in it.
fn scratch(test: &str) -> PathBuf {
    let path = common::scratch(test);
    fs::write(path.join("hello.toml"), HELLO).unwrap();
    path
}

/// The same by a shell, in which `$XOFF` is the program.
fn shell(dir: &Path, script: &str) -> Output {
    Command::new("bash")
        .current_dir(dir)
        .args(["-c", script])
        .env("XOFF", env!("CARGO_BIN_EXE_xoff"))
        .env("NO_COLOR", "1")
        .output()
        .unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// All that was printed, in which nothing is hidden.
fn clean(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &err(output);
    let hidden = |c: char| {
        c.is_control() && c != '\n'
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(hidden), "{text:?}");
    text
}

#[test]
fn hidden_characters_from_outside_are_printed_as_escapes() {
    let dir = scratch("hidden");
    let evil = "a\u{1b}[31mb\u{202e}c\u{200b}\u{7f}";
    // A class, as TOML writes such characters. (Controls are refused in names.)
    let (name, class) = (r#"name = "b\u202ec\u200b""#, r"b\u{202e}c\u{200b}");
    fs::write(dir.join("named.toml"), format!("{HELLO}{name}\n")).unwrap();
    let run = xoff(&dir, &["run", "named.toml", "--out", "named"]);
    assert!(clean(&run).contains(class), "{}", clean(&run));
    for verb in [&["traffic", "named.toml"][..], &["run", "named.toml", "--no-out"]] {
        assert!(clean(&xoff(&dir, verb)).contains(class), "{verb:?}");
        let json = xoff(&dir, &[verb, &["--json"]].concat());
        let value: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
        clean(&json);
        assert!(value.to_string().contains('\u{202e}'), "{value}");
    }
    assert_eq!(xoff(&dir, &["report", "named"]).status.code(), Some(0));
    let page = fs::read_to_string(dir.join("named/report.html")).unwrap();
    let data = &page[page.find("id=\"document\"").unwrap()..];
    let data = &data[data.find('>').unwrap() + 1..data.find("</script>").unwrap()];
    let value: serde_json::Value = serde_json::from_str(data).unwrap();
    assert!(value.to_string().contains(&class.replace('\\', "\\\\")), "the class is on the page");
    assert!(!value.to_string().contains(['\u{202e}', '\u{7f}']) && !data.contains("\\u001b"));

    // A line of the file, in which the fault is marked.
    fs::write(dir.join("line.toml"), HELLO.replace("\"10kB\"", &format!("\"{}\" # {evil}", "zkB"))).unwrap();
    let wrong = xoff(&dir, &["run", "line.toml", "--no-out"]);
    assert_eq!(wrong.status.code(), Some(1));
    let wrong = clean(&wrong);
    assert!(
        wrong.contains(r"a\u{1b}[31mb\u{202e}c\u{200b}\u{7f}") && wrong.contains("line.toml:"),
        "{wrong}"
    );

    // Names of files, present and absent, overrides, and unknown arguments.
    let file = format!("{evil}.toml");
    fs::write(dir.join(&file), HELLO).unwrap();
    for args in [
        &["run", &file][..],
        &["run", &file, "--json"],
        &["run", &format!("no{file}")],
        &["run", "hello.toml", "--set", &format!("{evil}=1")],
        &["run", "hello.toml", "--out", evil],
        &["run", "hello.toml", "--vary", &format!("traffic.0.size=1kB,{evil}"), "--no-out"],
        &["run", "hello.toml", &format!("--{evil}")],
        &["run", "hello.toml", "--threads", evil],
        &["explain", &format!("no{evil}")],
        &["report", evil],
        &["schemes", evil],
    ] {
        let output = xoff(&dir, args);
        let text = clean(&output);
        assert!(text.contains("202e"), "{args:?}: {text}");
    }
}

#[test]
#[cfg(unix)]
fn pipes_are_read_while_somebody_writes_and_refused_else() {
    let dir = scratch("pipes");
    assert!(Command::new("mkfifo").arg(dir.join("pipe")).status().unwrap().success());
    let csv = "[[traffic]]\nkind = \"flows\"\nfile = \"pipe\"\n";
    let text = HELLO[..HELLO.find("[[traffic]]").unwrap()].to_string() + csv;
    fs::write(dir.join("csv.toml"), text).unwrap();
    for args in [
        &["run", "pipe", "--no-out"][..],
        &["run", "csv.toml", "--no-out"],
        &["check", "hello.toml", "--verify", "pipe"],
    ] {
        let refused = xoff(&dir, args);
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(err(&refused).contains("no program writes into it"), "{args:?}: {}", err(&refused));
    }
    for device in ["/dev/zero", "/dev/null"] {
        let refused = xoff(&dir, &["run", device, "--no-out"]);
        assert_eq!(refused.status.code(), Some(1));
        assert!(err(&refused).contains("it is a device"), "{}", err(&refused));
    }
    for script in [
        "\"$XOFF\" run <(cat hello.toml) --no-out",
        "\"$XOFF\" run <(sleep 1.5; cat hello.toml) --no-out",
        "cat hello.toml | \"$XOFF\" run /dev/stdin --no-out",
        "\"$XOFF\" run /dev/stdin --no-out < hello.toml",
        "(sleep 0.3; cat hello.toml > pipe) & \"$XOFF\" run pipe --no-out",
    ] {
        let done = shell(&dir, script);
        assert_eq!(done.status.code(), Some(0), "{script}: {}", err(&done));
    }
}

#[test]
#[cfg(unix)]
fn a_limit_on_files_is_an_error_that_names_it() {
    let dir = scratch("limit");
    let stopped = shell(&dir, "ulimit -f 1; exec \"$XOFF\" run hello.toml --out run");
    assert_eq!(stopped.status.code(), Some(1), "{}", err(&stopped));
    let text = err(&stopped);
    assert!(text.contains("ulimit -f") && text.contains(".parquet"), "{text}");
    assert!(!dir.join("run").exists());
}

#[test]
fn numbers_that_files_cannot_hold_are_refused_at_the_start() {
    let dir = scratch("seeds");
    let most = "9223372036854775807";
    let over = "9223372036854775808";
    for args in [
        &["--seed", over][..],
        &["--seeds", "9223372036854775806..9223372036854775808"],
        &["--set", &format!("run.seed={over}")],
        &["--vary", &format!("run.seed=1,{over}")],
        &["--set", &format!("routing.seed={over}")],
        &["--set", "run.seed=0x8000000000000000"],
    ] {
        let refused = xoff(&dir, &[&["run", "hello.toml", "--out", "none"], args].concat());
        assert!(matches!(refused.status.code(), Some(1 | 2)), "{args:?}");
        assert!(err(&refused).contains(most), "{args:?}: {}", err(&refused));
        assert!(!dir.join("none").exists());
    }
    let fine = xoff(&dir, &["run", "hello.toml", "--seeds", &format!("1,{most}"), "--out", "grid"]);
    assert_eq!(fine.status.code(), Some(0), "{}", err(&fine));
}

#[test]
fn the_needs_of_a_core_without_room_are_reported() {
    let dir = scratch("zeropod");
    let text = "[topology]\nkind = \"zeropod\"\npods = 3\nracks = 1\nhosts_per_rack = 4\naggs = 1\ncores = 1\n\
        link = { rate = \"100Gbps\", delay = \"1us\" }\n[zeropod]\ncore_buffer = \"10kB\"\n[run]\nduration = \"1ms\"\n\
        [[traffic]]\nkind = \"all-to-all\"\nsize = \"10kB\"\n";
    fs::write(dir.join("pods.toml"), text).unwrap();
    let run = xoff(&dir, &["run", "pods.toml", "--no-out"]);
    let out = String::from_utf8_lossy(&run.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains("core's buffer of 10 kB was full") && out.contains("Raise zeropod.core_buffer"),
        "{out}"
    );
    assert!(!out.contains("switch.buffer"), "{out}");
}

#[test]
fn standard_input_that_is_closed_is_no_scenario() {
    let dir = scratch("closed");
    let refused = Command::new(env!("CARGO_BIN_EXE_xoff"))
        .current_dir(&dir)
        .args(["run", "/dev/stdin", "--no-out"])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(1));
}
