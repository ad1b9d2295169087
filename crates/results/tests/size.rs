//! The output of `xoff size`, for people and programs.

use std::io;
use std::path::Path;
use xoff_net::units::{Bytes, Length};
use xoff_plan::size::response::Asic;
use xoff_plan::size::{Question, SCHEMES};
use xoff_results::size::{self, Request, Response, curve};
use xoff_results::table::WIDTH;

fn question() -> Question {
    Question::new("400Gbps".parse().unwrap())
}

fn request<'a>(question: &'a Question, distance: &str) -> Request<'a> {
    Request {
        question,
        distance: distance.parse().unwrap(),
        buffer: None,
        schemes: &[],
        response: Response::NotGiven,
    }
}

fn is_narrow(text: &str) -> bool {
    text.lines().all(|line| line.chars().count() <= WIDTH)
}

#[test]
fn a_link_in_words() {
    let question = question();
    let text = size::render_all(&Request { buffer: Some(Bytes(64 << 20)), ..request(&question, "600km") });
    insta::assert_snapshot!("size_table", text);
    assert!(is_narrow(&text), "{text}");
    let three = Question { priorities: 3, update: Some("100ns".parse().unwrap()), ..question };
    insta::assert_snapshot!("size_table_priorities", size::render_all(&request(&three, "1km")));
}

#[test]
fn the_short_output_begins_with_the_answer() {
    let question = question();
    let text = size::render(&request(&question, "30km"));
    assert!(text.starts_with("PFC needs 15 MB of headroom per port and priority, "), "{text}");
    insta::assert_snapshot!("size_brief", text);
    let asic = Asic::find("spectrum").unwrap();
    let response_time = asic.response_time(question.rate).unwrap();
    let question = Question { mtu: Bytes(9_216), priorities: 2, response_time, ..question };
    let all = Request {
        buffer: Some(Bytes(1_500_000)),
        schemes: &SCHEMES,
        response: Response::Asic(asic),
        ..request(&question, "50m")
    };
    let text = size::render(&all);
    assert!(is_narrow(&text), "{text}");
    insta::assert_snapshot!("size_brief_all", text);
}

/// At 50 m a response time of 1 us is most of the headroom.
#[test]
fn a_missing_response_time_is_a_warning() {
    let long = Question { mtu: Bytes(9_216), ..question() };
    let without = size::render(&request(&long, "50m"));
    assert!(without.starts_with("PFC needs 43.5 kB of headroom"), "{without}");
    let flat = without.split_whitespace().collect::<Vec<_>>().join(" ");
    let warning = "warning: The response time of the switches is not included (--response-time or --asic): \
                   each 1 us adds 50 kB at 400Gbps.";
    assert!(flat.contains(warning), "{flat}");
    let question = Question { response_time: "1us".parse().unwrap(), ..long };
    let with = size::render(&Request { response: Response::Given, ..request(&question, "50m") });
    assert!(with.starts_with("PFC needs 93.5 kB of headroom"), "{with}");
    assert!(with.contains("PFC headroom; largest part: peer's response time (53.5%)"), "{with}");
    assert!(!with.contains("warning") && with.contains("(--response-time): 50 kB at 400Gbps"), "{with}");
}

/// The parts are the need, of every scheme.
#[test]
fn the_need_is_the_sum_of_its_terms() {
    for rate in ["10Gbps", "400Gbps"] {
        let question = Question { priorities: 2, ..Question::new(rate.parse().unwrap()) };
        for scheme in SCHEMES {
            for metres in [0, 1, 50, 30_000, 2_000_000] {
                let sizing = question.compute_size(scheme, Length(metres * 1_000));
                let (terms, need) = sizing.need();
                assert_eq!(terms.iter().map(|term| term.1).sum::<u64>(), need, "{scheme} {metres}");
                assert!(need > 0 && need <= sizing.share(), "{scheme} {metres}");
            }
        }
    }
}

#[test]
fn a_link_as_data() {
    let question = question();
    let asked = Request { buffer: Some(Bytes(64 << 20)), ..request(&question, "600km") };
    let value = size::json(&asked);
    insta::assert_snapshot!("size_json", serde_json::to_string_pretty(&value).unwrap());
    // Terms are the share, shares are the buffer.
    for scheme in value["schemes"].as_array().unwrap() {
        let sum: u64 = scheme["terms"].as_array().unwrap().iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, scheme["share_bytes"].as_u64().unwrap());
        assert_eq!(sum * scheme["shares"].as_u64().unwrap(), scheme["buffer_bytes"].as_u64().unwrap());
    }
    let named = size::json(&Request { schemes: &["swing"], ..asked });
    assert_eq!(named["schemes"].as_array().unwrap().len(), 1);
    assert_eq!(named["schemes"][0], value["schemes"][11]);
}

#[test]
fn a_curve_has_a_line_for_each_scheme_and_ends_where_the_answer_does() {
    let wide = || curve::curve(&question(), &curve::drawn(), curve::Range::WIDE, None);
    let (figure, marks) = wide();
    assert!(marks.is_empty());
    let lines = &figure.panels[0].lines;
    assert_eq!(lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), size::curve::drawn());
    for line in lines {
        assert_eq!((line.points[0].x, line.points[line.points.len() - 1].x), (10.0, 2_000.0));
        let last = line.points[line.points.len() - 1].y * (1u64 << 20) as f64;
        let needed = question().compute_size(&line.name, "2000km".parse().unwrap()).buffer();
        assert!((last - needed as f64).abs() < 1.0, "{}", line.name);
    }
    let svg = figure.svg();
    assert_eq!(svg, wide().0.svg());
    assert!(size::curve::drawn().iter().all(|s| svg.contains(&format!(">{s}</text>"))));
}

/// Distances are near the middle of the axis, and marked.
#[test]
fn a_curve_fits_its_distance() {
    for (distance, last, x, y) in [
        ("50m", 100.0, "length of the link (m)", "buffer at one end (KiB)"),
        ("1m", 10.0, "length of the link (m)", "buffer at one end (KiB)"),
        ("1700m", 5_000.0, "length of the link (m)", "buffer at one end (MiB)"),
        ("30km", 100.0, "length of the link (km)", "buffer at one end (MiB)"),
        ("600km", 2_000.0, "length of the link (km)", "buffer at one end (MiB)"),
        ("40000km", 40_000.0, "length of the link (km)", "buffer at one end (GiB)"),
    ] {
        let at: Length = distance.parse().unwrap();
        let question = question();
        let (figure, marks) = curve::curve(&question, &["swing"], curve::Range::around(at), Some(at));
        assert_eq!((figure.x.as_str(), figure.y.as_str()), (x, y), "{distance}");
        let points = &figure.panels[0].lines[0].points;
        assert_eq!((points[0].x, points[points.len() - 1].x), (0.0, last), "{distance}");
        let mark = &marks[0].points[0];
        assert!(mark.x > 0.0 && mark.x <= last && mark.y <= points[points.len() - 1].y, "{distance}");
        assert!(figure.title.ends_with(&format!("marks at {distance}")), "{}", figure.title);
    }
}

#[test]
fn measured_buffers_are_marked_beside_the_curve() {
    let table = "\"distance_km\",scheme,measured_B\n10,pfc,1048576\n2000,cbfc,2097152\n20,pfc,1\n";
    let (figure, marks) = size::curve::measured(&question(), table).unwrap();
    assert_eq!(figure.panels, curve::curve(&question(), &curve::drawn(), curve::Range::WIDE, None).0.panels);
    let near =
        size::curve::measured(&question(), "distance_km,scheme,measured_B\n80,pfc,1048576\n").unwrap().0;
    let points = &near.panels[0].lines[0].points;
    assert_eq!((points[0].x, points[points.len() - 1].x), (0.0, 100.0));
    let points: Vec<_> = marks.iter().map(|m| (m.name.as_str(), m.points[0].x, m.points[0].y)).collect();
    assert_eq!(points, [("pfc", 10.0, 1.0), ("cbfc-ideal", 2_000.0, 2.0)]);
    let svg = figure.svg_with(&marks);
    let strokes =
        |colour: &str| svg.lines().filter(|l| l.contains("class=\"mark\"") && l.contains(colour)).count();
    assert_eq!(
        (strokes("#0072b2"), strokes("#e69f00")),
        (3, 2),
        "points in their line's colour, and the legend"
    );
    assert_eq!((strokes("#"), svg.matches("class=\"mark\"").count()), (5, 5));
    let (figure, _) = size::curve::measured(
        &question(),
        "distance_km,scheme,formula_B,measured_B\n20,pfc,2097152,1\n10,pfc,1048576,1\n",
    )
    .unwrap();
    let line: Vec<_> = figure.panels[0].lines[0].points.iter().map(|p| (p.x, p.y)).collect();
    assert_eq!((figure.panels[0].lines.len(), &line[..]), (1, &[(10.0, 1.0), (20.0, 2.0)][..]));
    for (table, why) in [
        ("km,measured_B\n", "the column `distance_km` is missing"),
        ("distance_km,measured_B\n", "the column `scheme` is missing"),
        ("distance_km,scheme\n", "the column `measured_B` is missing"),
        ("distance_km,scheme,measured_B\n", "the file has no points"),
        ("distance_km,scheme,measured_B,measured_B\n", "the column `measured_B` is given more than once"),
        (
            "distance_km,scheme,measured_B\n10,pyrrha,1\n",
            "row 1: unknown scheme `pyrrha`; the schemes are pfc,",
        ),
        (
            "distance_km,scheme,measured_B\n5,pfc,1\n",
            "row 1: distance_km = `5` is not a whole number from 10 to 2000",
        ),
        (
            "distance_km,scheme,measured_B\n10,pfc,1\n10,pfc,x\n",
            "row 2: measured_B = `x` is not a whole number from 0",
        ),
    ] {
        let error = size::curve::measured(&question(), table).unwrap_err();
        assert!(error.starts_with(why), "{error}");
    }
}

#[test]
fn a_scenario_s_links_in_words() {
    let text = "[topology]
kind = \"dumbbell\"
left = 2
right = 2
link = { rate = \"100Gbps\", delay = \"1us\" }
bottleneck = { rate = \"100Gbps\", delay = \"80km\" }
[switch]
buffer = \"64MB\"
[flow_control]
scheme = \"pfc\"
xoff = \"1MB\"
xon = \"1MB\"
headroom = \"100kB\"
[[traffic]]
kind = \"flow\"
src = \"H0\"
dst = \"H2\"
size = \"1MB\"
";
    let files = |_: &Path| Err(io::Error::other("it names no file"));
    let loaded = xoff_plan::load("size.toml", text.as_bytes(), &[], &files).unwrap();
    let report = xoff_plan::size::links::links(&loaded.plan).unwrap();
    insta::assert_snapshot!("size_links", size::links::render("size", &report));
}
