//! Without other traffic, the FCT of a flow is exactly the computed one.

use crate::common;

use common::{fcts, plan, run};
use proptest::prelude::*;

/// When the sender has the last ACK, by the max-plus recursion over every packet
/// and every store-and-forward hop. Each serialisation is rounded up to whole
/// picoseconds.
fn by_recursion(size: u64, mtu: u64, header: u64, ack: u64, every: u64, links: &[(u64, u64)]) -> u64 {
    let wire =
        |bytes: u64, rate: u64| (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(rate)) as u64;
    let packets = size.div_ceil(mtu);
    let mut free = vec![0u64; 2 * links.len()];
    let mut last = 0;
    for k in 0..packets {
        let bytes = (size - k * mtu).min(mtu) + header;
        let mut at = 0;
        for (hop, &(rate, delay)) in links.iter().enumerate() {
            let done = at.max(free[hop]) + wire(bytes, rate);
            free[hop] = done;
            at = done + delay;
        }
        if (k + 1) % every == 0 || k + 1 == packets {
            for (hop, &(rate, delay)) in links.iter().rev().enumerate() {
                let done = at.max(free[links.len() + hop]) + wire(ack, rate);
                free[links.len() + hop] = done;
                at = done + delay;
            }
            last = at;
        }
    }
    last
}

/// A chain of switches between two hosts.
fn chain(links: &[(u64, u64)], transport: &str, size: u64) -> String {
    let switches: Vec<String> = (1..links.len()).map(|i| format!("\"X{i}\"")).collect();
    let end = |i: usize| {
        if i == 0 {
            "A".into()
        } else if i == links.len() {
            "B".into()
        } else {
            format!("X{i}")
        }
    };
    let links: Vec<String> = links
        .iter()
        .enumerate()
        .map(|(i, (rate, delay))| {
            format!("{{a=\"{}\", b=\"{}\", rate=\"{rate}bps\", delay=\"{delay}ps\"}}", end(i), end(i + 1))
        })
        .collect();
    format!(
        "[topology]\nkind = \"custom\"\nhosts = [\"A\", \"B\"]\nswitches = [{}]\nlinks = [{}]\n\
         [switch]\nbuffer = \"2GB\"\n[host]\nbuffer = \"2GB\"\n\
         [transport]\nrto = \"10s\"\n{transport}\n\
         [[traffic]]\nkind = \"flow\"\nsrc = \"A\"\ndst = \"B\"\nsize = \"{size}B\"\n",
        switches.join(", "),
        links.join(", ")
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases * 300 / 256))]
    #[test]
    fn a_flow_alone_takes_the_closed_form(
        links in prop::collection::vec((1_000_000_000u64..900_000_000_000, 0u64..3_000_000), 2..7),
        round in any::<bool>(),
        size in 1u64..400_000, mtu in 64u64..9_000, header in 1u64..120, ack in 20u64..130, every in 1u64..6,
        scheme in prop::sample::select(vec!["pfc", "none"]),
    ) {
        let links: Vec<_> = links
            .into_iter()
            .map(|(rate, delay)| (if round { rate / 25_000_000_000 * 25_000_000_000 + 25_000_000_000 } else { rate }, delay))
            .collect();
        let transport = format!("mtu = \"{mtu}B\"\nheader = \"{header}B\"\nack = \"{ack}B\"\nack_every = {every}");
        // A slow link after a fast one fills the buffer before it: PFC would pause correctly; with thresholds
        // beyond the flow's size it does not.
        let control = match scheme {
            "pfc" => "[flow_control]\nscheme = \"pfc\"\nxoff = \"60MB\"\nxon = \"50MB\"\n",
            _ => "[flow_control]\nscheme = \"none\"\n[[priority]]\nid = 3\nalpha = 8.0\n",
        };
        let plan = plan(&(control.to_owned() + &chain(&links, &transport, size)));
        let outcome = run(&plan);
        let expected = by_recursion(size, mtu, header, ack, every, &links);
        prop_assert_eq!(fcts(&plan, &outcome), [expected]);
        prop_assert_eq!(plan.flows[0].ideal, expected, "the plan's ideal");
    }
}

/// Reference case R1 (csg-htsim): 2,500 packets of 4,000 B and 64 B header, 64 B
/// ACKs, 100 Gbit/s, 1 us, one switch: 817.135 us there, printed to the
/// nanosecond. Its pieces give 817.13536 us.
#[test]
fn reference_r1() {
    let link = (100_000_000_000, 1_000_000);
    let transport = "mtu = \"4000B\"\nheader = \"64B\"\nack = \"64B\"";
    let plan = plan(&chain(&[link, link], transport, 10_000_000));
    let fct = fcts(&plan, &run(&plan))[0];
    assert_eq!(fct, 2500 * 325_120 + 325_120 + 4_000_000 + 2 * 5_120);
    assert_eq!((fct + 500) / 1_000, 817_135);
}

/// Reference case R2 (ns-3's RDMA stack), which truncates each serialisation to
/// whole nanoseconds: 84.16 to 84 and 4.8 to 4.
#[test]
fn reference_r2() {
    let link = (100_000_000_000, 1_000_000);
    let transport = "mtu = \"1000B\"\nheader = \"52B\"\nack = \"60B\"";
    for (size, ns) in
        [(1_000, 4_176), (2_000, 4_260), (10_000, 4_932), (1_000_000, 88_092), (10_000_000, 844_092)]
    {
        let plan = plan(&chain(&[link, link], transport, size));
        let fct = fcts(&plan, &run(&plan))[0];
        let packets = size / 1_000;
        assert_eq!(fct, 4_000_000 + 2 * 84_160 + 2 * 4_800 + 84_160 * (packets - 1));
        let truncated = (packets + 1) * 160 + 2 * 800;
        assert_eq!(fct - truncated, ns * 1_000);
    }
}

/// A paced flow sends each packet one pace interval after the last.
#[test]
fn pace_is_exact() {
    let link = (100_000_000_000, 1_000_000);
    let text = chain(&[link, link], "mtu = \"1000B\"\nheader = \"0B\"\nack = \"64B\"", 50_000)
        + "rate = \"10Gbps\"\n";
    let plan = plan(&text);
    assert_eq!(fcts(&plan, &run(&plan)), [49 * 800_000 + 2 * 80_000 + 2 * 5_120 + 4_000_000]);
}

/// A window of one packet makes each packet wait for the last one's ACK.
#[test]
fn a_window_of_one_is_stop_and_wait() {
    let link = (100_000_000_000, 1_000_000);
    let text =
        chain(&[link, link], "mtu = \"1000B\"\nheader = \"0B\"\nack = \"64B\"\nwindow = \"1000B\"", 20_000);
    let plan = plan(&text);
    assert_eq!(fcts(&plan, &run(&plan)), [20 * (2 * 80_000 + 2 * 5_120 + 4_000_000)]);
}
