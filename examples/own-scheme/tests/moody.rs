//! A scheme that depends on the process, which no scheme may: two workers of a store get different results, and the
//! second one says so.
//!
//! This program is its own worker: with arguments it is xoff with the scheme.

#[path = "../src/keys.rs"]
mod keys;
#[path = "../src/port_pause.rs"]
mod port_pause;

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use keys::PortPauseKeys;
use port_pause::PortPause;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use xoff_net::topology::{PortId, Topology};
use xoff_net::units::{Bytes, Threshold};
use xoff_schemes::flow_control::FlowControlParams;
use xoff_schemes::flow_control::fabric::{Account, Fabric, Lane};
use xoff_schemes::flow_control::keys::{Complaint, Keys, Setting, Whole};
use xoff_schemes::flow_control::own::OwnScheme;

const MOODY: OwnScheme = OwnScheme::new::<MoodyKeys, PortPause>(
    "moody",
    "A pause of the whole link, at another threshold in each process.",
);

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
struct MoodyKeys(PortPauseKeys);

impl Whole for MoodyKeys {}

impl Keys for MoodyKeys {
    fn check(&self, cx: &mut Setting<'_>) -> Result<(), Complaint> {
        self.0.check(cx)
    }

    fn covered(&self, cx: &mut Setting<'_>, used: &[u8]) -> Result<Vec<u8>, Complaint> {
        self.0.covered(cx, used)
    }

    fn lossless(
        &self,
        cx: &mut Setting<'_>,
        priority: u8,
        key: &str,
        wanted: Option<bool>,
        covered: bool,
    ) -> Result<bool, Complaint> {
        self.0.lossless(cx, priority, key, wanted, covered)
    }

    fn account(
        &self,
        cx: &Setting<'_>,
        topology: &Topology,
        port: PortId,
        lanes: &[Lane],
    ) -> Result<Option<Account>, Complaint> {
        self.0.account(cx, topology, port, lanes)
    }

    fn params(&self, cx: &mut Setting<'_>, fabric: Fabric<'_>) -> Result<FlowControlParams, Complaint> {
        let mood = Bytes(150_000 - 3_000 * u64::from(std::process::id() % 16));
        PortPauseKeys { xoff: Threshold::Bytes(mood), xon: None, ..self.0.clone() }.params(cx, fabric)
    }
}

fn main() -> ExitCode {
    if std::env::args().len() > 1 && std::env::var_os("MOODY").is_some() {
        return xoff::main_with(&[MOODY]);
    }
    the_second_worker_names_both();
    println!("1 passed, 0 failed");
    ExitCode::SUCCESS
}

fn the_second_worker_names_both() {
    let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("moody");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).unwrap();
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("scenario.toml")).unwrap();
    fs::write(place.join("moody.toml"), text.replace("port-pause", "moody")).unwrap();
    let xoff = |line: &str| {
        let program = std::env::current_exe().unwrap();
        let mut command = Command::new(program);
        command.args(line.split(' ')).current_dir(&place).envs([("MOODY", "1"), ("NO_COLOR", "1")]);
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let (mood, mut errors) = (child.id() % 16, String::new());
        std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
        (mood, child.wait().unwrap().code(), errors)
    };
    let (_, planned, errors) = xoff("grid plan moody.toml --seeds 1..2 --chunk 2 --store st --quiet");
    assert_eq!(planned, Some(0), "{errors}");
    let (first, made, errors) = xoff("work st --lease 200ms");
    assert_eq!(made, Some(0), "{errors}");
    // The chunk is made again, as after its worker was lost before it could say that it is done.
    let worker = fs::read_to_string(place.join("st/leases/0000000/000001.json")).unwrap();
    let worker = worker.split('"').nth(3).unwrap().to_string();
    loop {
        fs::remove_file(place.join("st/done/0000000.json")).unwrap();
        let (second, status, errors) = xoff("work st --lease 200ms");
        if first == second {
            assert_eq!(status, Some(0), "the same mood: {errors}");
            continue;
        }
        assert_eq!(status, Some(1), "{errors}");
        assert!(errors.contains("differs") && errors.contains(&worker), "{worker}: {errors}");
        break;
    }
    let (_, status, _) = xoff("grid status st");
    assert_eq!(status, Some(1), "the store says so");
    assert!(!place.join("st/done/0000000.json").exists(), "nothing looks complete");
}
