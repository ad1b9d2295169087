//! The output of `xoff size`, for people and programs.

use std::io;
use std::path::Path;
use xoff_net::units::Bytes;
use xoff_plan::size::Question;
use xoff_results::size;

fn question() -> Question {
    Question::new("400Gbps".parse().unwrap())
}

#[test]
fn a_link_in_words() {
    let buffer = Some(Bytes(64 << 20));
    let text = size::render(&question(), "600km".parse().unwrap(), buffer);
    insta::assert_snapshot!("size_table", text);
    let narrow = text.lines().all(|l| l.chars().count() <= xoff_results::table::WIDTH);
    assert!(narrow, "{text}");
    let three = Question { priorities: 3, update: Some("100ns".parse().unwrap()), ..question() };
    insta::assert_snapshot!("size_table_priorities", size::render(&three, "1km".parse().unwrap(), None));
}

#[test]
fn a_link_as_data() {
    let value = size::json(&question(), "600km".parse().unwrap(), Some(Bytes(64 << 20)));
    insta::assert_snapshot!("size_json", serde_json::to_string_pretty(&value).unwrap());
    // Terms are the share, shares are the buffer.
    for scheme in value["schemes"].as_array().unwrap() {
        let sum: u64 = scheme["terms"].as_array().unwrap().iter().map(|t| t["bytes"].as_u64().unwrap()).sum();
        assert_eq!(sum, scheme["share_bytes"].as_u64().unwrap());
        assert_eq!(sum * scheme["shares"].as_u64().unwrap(), scheme["buffer_bytes"].as_u64().unwrap());
    }
}

#[test]
fn a_curve_has_a_line_for_each_scheme_and_ends_where_the_answer_does() {
    let figure = size::curve::curve(&question());
    let lines = &figure.panels[0].lines;
    assert_eq!(lines.iter().map(|l| l.name.as_str()).collect::<Vec<_>>(), size::curve::drawn());
    for line in lines {
        assert_eq!((line.points[0].x, line.points[line.points.len() - 1].x), (10.0, 2_000.0));
        let last = line.points[line.points.len() - 1].y * (1u64 << 20) as f64;
        let needed = question().compute_size(&line.name, "2000km".parse().unwrap()).buffer();
        assert!((last - needed as f64).abs() < 1.0, "{}", line.name);
    }
    let svg = figure.svg();
    assert_eq!(svg, size::curve::curve(&question()).svg());
    assert!(size::curve::drawn().iter().all(|s| svg.contains(&format!(">{s}</text>"))));
}

#[test]
fn measured_buffers_are_marked_beside_the_curve() {
    let table = "\"distance_km\",scheme,measured_B\n10,pfc,1048576\n2000,cbfc,2097152\n20,pfc,1\n";
    let (figure, marks) = size::curve::measured(&question(), table).unwrap();
    assert_eq!(figure, size::curve::curve(&question()));
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
