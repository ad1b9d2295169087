//! Exploration.
use std::path::Path;
use xoff_plan::plan::Plan;

const FLOWS: &str = include_str!("reference/fattree128-incast720.csv");
const CLASSES: [&str; 3] = ["incast", "victim", "other"];

fn plan(flow_control: &str, seed: u64) -> Plan {
    let mut text = format!(
        "[topology]\nkind = \"fat-tree\"\nk = 8\nlink = {{ rate = \"100Gbps\", delay = \"600ns\" }}\n\
         [switch]\nbuffer = \"20MB\"\n[transport]\nmtu = \"1460B\"\nheader = \"76B\"\nack = \"84B\"\nrto = \"100ms\"\n\
         [run]\nseed = {seed}\n[flow_control]\n{flow_control}\n"
    );
    for class in CLASSES {
        text += &format!("[[traffic]]\nkind = \"flows\"\nname = \"{class}\"\nfile = \"{class}.csv\"\n");
    }
    let files = |path: &Path| {
        let class = path.file_stem().and_then(|s| s.to_str()).unwrap_or_default();
        let mut csv = String::from("src,dst,bytes,start_ns\n");
        for line in FLOWS.lines().skip(1) {
            if let Some(flow) = line.strip_suffix(class).and_then(|l| l.strip_suffix(',')) {
                csv += flow;
                csv.push('\n');
            }
        }
        Ok(csv.into_bytes())
    };
    match xoff_plan::load("reference.toml", text.as_bytes(), &[], &files) {
        Ok(loaded) => loaded.plan,
        Err(error) => panic!("{:?}", miette::Report::new(error)),
    }
}

#[test]
fn explore() {
    let fc = std::env::var("FC").unwrap().replace(';', "\n");
    let seeds: u64 = std::env::var("SEEDS").unwrap_or("1".into()).parse().unwrap();
    for seed in 1..=seeds {
        let t = std::time::Instant::now();
        let plan = plan(&fc, seed);
        let o = xoff_sim::run(&plan, &mut |_| true);
        let mut text = String::new();
        for (class, name) in CLASSES.iter().enumerate() {
            let mut fct: Vec<f64> = plan
                .flows
                .iter()
                .zip(&o.flows)
                .filter(|(f, _)| usize::from(f.class) == class)
                .map(|(f, r)| (r.completed.expect("completed") - f.start) as f64 / 1e6)
                .collect();
            fct.sort_by(f64::total_cmp);
            let mean = fct.iter().sum::<f64>() / fct.len() as f64;
            text += &format!("{name} {mean:.1}/{:.1}  ", fct[(fct.len() as f64 * 0.99).ceil() as usize - 1]);
        }
        println!(
            "{seed}: {text} buf {} pauses {} drops {:?} end {} ev {} {:.2?}",
            o.buffer_peaks.iter().max().unwrap(),
            o.pauses.len(),
            o.drops.len(),
            o.end / 1_000_000,
            o.counters.events,
            t.elapsed()
        );
    }
}
