//! For any text, loading returns; it never panics.

use proptest::prelude::*;
use std::io;
use std::path::Path;
use xoff_plan::load;

const SEEDS: [&str; 4] = [
    include_str!("../../../examples/hello.toml"),
    include_str!("../../../examples/bcube-deadlock.toml"),
    "[topology]\nkind = \"ring\"\nswitches = 4\nhosts_per_switch = 1\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
     [[priority]]\nid = 3\ntier = 1\nweight = 2\n[ecn]\nk_min = \"10kB\"\nk_max = \"20kB\"\np_max = 0.1\n\
     [routing]\noverrides = [{ at = \"S0.0\", to = \"H2\", via = \"S0.3\" }]\n\
     [[slow_receiver]]\nhost = \"H2\"\nrate = \"1Gbps\"\nstall_from = \"1us\"\nstall_until = \"2us\"\n\
     [transport]\nwindow = \"2bdp\"\nack_every = 2\nmtu = \"1500B\"\n[measure]\nports = [\"S0.0:1\"]\ninterval = \"1us\"\n\
     [[traffic]]\nkind = \"poisson\"\nsizes = { uniform = [\"1kB\", \"9kB\"] }\nload = 0.1\nstop = \"100us\"\n\
     [[traffic]]\nkind = \"flow\"\nsrc = \"H0\"\ndst = \"H2\"\nsize = \"5kB\"\n",
    "[topology]\nkind = \"fat-tree\"\nk = 2\noversubscription = 2\nlink = { rate = \"10Gbps\", delay = \"1us\" }\n\
     [run]\nduration = \"20us\"\n\
     [[traffic]]\nkind = \"training-step\"\nlayers = 2\nhidden = 8\nsequence = 4\nmicro_batches = 2\nparameters = 90\n\
     pipeline = 2\nforward = \"1us\"\nsteps = 2\n\
     [[traffic]]\nkind = \"moe\"\ngroups = 2\nphase = \"1us\"\nexperts = 2\nweights = [3, 1]\ntokens = 20\n\
     token_size = \"100B\"\nexperts_per_token = 1\nrounds = 2\ncompute = \"1us\"\ngap = \"2us\"\n\
     [[traffic]]\nkind = \"parameter-server\"\nsize = \"1kB\"\nservers = [\"rack:0\"]\nworkers = [\"H2..H3\"]\n\
     [[traffic]]\nkind = \"ring-all-reduce\"\nsize = \"1kB\"\nhosts = [\"all\"]\n\
     [[traffic]]\nkind = \"probe\"\nperiod = \"5us\"\n\
     [[traffic]]\nkind = \"incast\"\nfan_in = 2\nsize = \"1kB\"\nload = 0.2\nto = \"rotate\"\nreceivers = [\"pod:1\"]\n\
     [[traffic]]\nkind = \"poisson\"\nsizes = \"1kB\"\nload = 0.1\npriorities = { 3 = 1, 4 = 2 }\n\
     matrix = [{ from = \"rack:0\", to = \"H2\", share = 2 }]\n\
     [[traffic]]\nkind = \"poisson\"\nsizes = \"1kB\"\nload = 0.1\nname = \"x\"\nlocality = { rack = 1, other = 2 }\n",
];
/// The insertions of mutations: pieces of the language and of quantities.
const PIECES: [&str; 20] = [
    "0",
    "-",
    "9999999999",
    "\"",
    "[",
    "]",
    "{",
    "}",
    "=",
    ",",
    ".",
    "\n",
    "e9",
    "nan",
    "inf",
    "µ",
    "km",
    "bdp",
    "true",
    "1e308",
];

fn no_files(_: &Path) -> io::Result<Vec<u8>> {
    Err(io::Error::other("no files here"))
}

/// Text on which a run of an hour or a huge network would be built in earnest
/// tests nothing here.
fn small(text: &str) -> bool {
    let digits = |c: char| c.is_ascii_digit();
    text.split(|c| !digits(c)).all(|number| number.len() < 4 || number.len() > 7)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 2000 / 256, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn loading_never_panics(
        seed in 0..SEEDS.len(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), 0usize..6, any::<prop::sample::Index>()), 1..4),
        key in "[a-z_]{1,12}(\\.[a-z_]{1,8}|\\[[0-9]\\]){0,2}",
        value in "[ -~]{0,10}",
    ) {
        let mut text: Vec<char> = SEEDS[seed].chars().collect();
        for (at, cut, piece) in edits {
            let at = at.index(text.len());
            let end = (at + cut).min(text.len());
            text.splice(at..end, PIECES[piece.index(PIECES.len())].chars());
        }
        let text: String = text.into_iter().collect();
        if !small(&text) {
            return Ok(());
        }
        let overrides = [(key, value)];
        for overrides in [&overrides[..0], &overrides[..]] {
            if let Err(e) = load("fuzz.toml", text.as_bytes(), overrides, &no_files) {
                prop_assert!(!e.one_line().is_empty());
            }
        }
    }
}
