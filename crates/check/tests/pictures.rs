//! The pictures: well-formed, reproducible, and with the required parts.

use xoff_check::certificate::Routes;

fn pictures(text: &str) -> Vec<(&'static str, String)> {
    let files = |path: &std::path::Path| Err(std::io::Error::other(format!("{path:?} in a test")));
    let loaded = match xoff_plan::load("test.toml", text.as_bytes(), &[], &files) {
        Ok(loaded) => loaded,
        Err(error) => panic!("{:?}\n{text}", miette::Report::new(error)),
    };
    let check = || xoff_check::check(&loaded, "test", Routes::Scenario, &mut |_| true);
    let found = check().expect("it can be checked").expect("it is not interrupted").pictures;
    assert_eq!(found, check().expect("again").expect("again").pictures, "the same again");
    for (name, svg) in &found {
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{name}");
        // Every element ends by itself or has its end.
        for tag in ["svg", "text", "title", "defs", "marker"] {
            // Names of elements that begin like another one's are no matter here.
            let count = |text: String| svg.matches(&text).count();
            assert_eq!(count(format!("<{tag}")), count(format!("</{tag}>")), "{name}: {tag}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{name}");
    }
    found
}

#[test]
fn a_ring_shows_its_cycle() {
    let found = pictures(
        "[topology]\nkind = \"ring\"\nswitches = 5\nhosts_per_switch = 2\nlink = {rate=\"100Gbps\", delay=\"1us\"}\n\
         [[traffic]]\nkind = \"permutation\"\nsize = \"1MB\"\n[run]\nseed = 3\n",
    );
    let (_, cycle) = found.iter().find(|p| p.0 == "cycle.svg").expect("there is a cycle");
    (0..5).for_each(|s| assert!(cycle.contains(&format!(">S0.{s}</text>")), "{s}"));
    assert!(cycle.contains("A cycle of 5 queues that can block each other"));
}

#[test]
fn a_large_incast_is_cut_with_a_note() {
    let found = pictures(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 16\n\
         host_link = {rate=\"100Gbps\", delay=\"1us\"}\nfabric_link = {rate=\"400Gbps\", delay=\"1us\"}\n\
         [switch]\nbuffer = \"100MB\"\n\
         [[traffic]]\nkind = \"incast\"\nfan_in = 63\nsize = \"100kB\"\nto = \"H0\"\nperiod = \"1ms\"\n[run]\nduration = \"10us\"\n",
    );
    assert!(found.iter().all(|p| p.0 != "cycle.svg"));
    let (_, tree) = found.iter().find(|p| p.0 == "blocking.svg").expect("a port is congested");
    assert!(tree.contains("S0.0:2 congested") || tree.contains("S0.0:0 congested"), "{tree}");
    assert!(tree.contains("more queues</text>") && tree.contains("Not drawn: "));
}
