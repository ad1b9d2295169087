//! Random scenarios: every table and every key of a scenario file.
//!
//! Most values are such that a network might have them; some are extreme. A scenario sends so
//! little that a run takes milliseconds.

mod congestion;
mod faults;
mod flow_control;
mod links;
mod observe;
mod patterns;
mod place;
mod priorities;
mod recorded;
mod routing;
mod topology;
mod traffic;
mod transport;
mod zeropod;

use std::collections::BTreeMap;

use toml::{Table, Value};

use crate::draw::{Draw, int};
use crate::scenario::Scenario;
use place::Place;

/// Values that the tables of one scenario share.
struct Sketch {
    draw: Draw,
    table: Table,
    files: BTreeMap<String, Vec<u8>>,
    /// Whether values far from those of real networks are allowed.
    extreme: bool,
    /// Largest payload of a packet.
    mtu: u64,
    /// Priorities that flows may have.
    priorities: Vec<u64>,
    /// The run has an end time.
    ends: bool,
    /// The flow control, …
    scheme: &'static str,
    /// … the transport, …
    transport: &'static str,
    /// … and how flows spread over equal paths.
    balancing: &'static str,
    /// There is an arbiter.
    arbiter: bool,
}

impl Sketch {
    /// Adds a table, unless it is empty.
    fn add(&mut self, name: &str, table: Table) {
        if !table.is_empty() {
            self.table.insert(name.into(), Value::Table(table));
        }
    }

    /// Sets a key of a table once in `n` times.
    fn maybe<V: Into<Value>>(
        &mut self,
        table: &mut Table,
        n: u64,
        key: &str,
        value: impl FnOnce(&mut Self) -> V,
    ) {
        if self.draw.one_in(n) {
            table.put(key, value(self));
        }
    }

    /// Adds an array of tables, unless it is empty.
    fn add_all(&mut self, name: &str, tables: Vec<Table>) {
        if !tables.is_empty() {
            self.table.insert(name.into(), Value::Array(tables.into_iter().map(Value::Table).collect()));
        }
    }
}

/// Shorthand for building tables.
trait Put {
    fn put(&mut self, key: &str, value: impl Into<Value>);
}

impl Put for Table {
    fn put(&mut self, key: &str, value: impl Into<Value>) {
        self.insert(key.into(), value.into());
    }
}

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let mut draw = Draw::new(seed);
    let extreme = draw.one_in(5);
    let mtu = match draw.between(0, 9) {
        0 => draw.log(1, 65_535),
        1 => 9_000,
        2 => 256,
        3 => 4_096,
        4 => 1_460,
        _ => 1_000,
    };
    let priorities = match draw.between(0, 5) {
        0 => (0..8).collect(),
        1 | 2 => draw.few(&[0, 1, 2, 3, 4, 5, 6, 7], 1, 3),
        _ => vec![3],
    };
    let mut sketch = Sketch {
        ends: draw.one_in(2),
        draw,
        table: Table::new(),
        files: BTreeMap::new(),
        extreme,
        mtu,
        priorities,
        scheme: "pfc",
        transport: "go-back-n",
        balancing: "ecmp",
        arbiter: false,
    };
    let topology = topology::draw(&mut sketch);
    sketch.add("topology", topology);
    match Place::of(&sketch) {
        Some(place) => rest(&mut sketch, &place),
        // The topology is refused: that is the scenario.
        None => sketch.add_all("traffic", vec![traffic::simplest()]),
    }
    Scenario { table: sketch.table, files: sketch.files }
}

/// All tables beside the topology.
fn rest(sketch: &mut Sketch, place: &Place) {
    if place.kind == "zeropod" {
        zeropod::draw(sketch, place);
    } else {
        flow_control::choose(sketch, place);
        transport::choose(sketch);
        routing::draw(sketch, place);
        flow_control::draw(sketch, place);
        transport::draw(sketch, place);
        congestion::draw(sketch, place);
        priorities::draw(sketch);
    }
    // Keys without effect beside a Zeropod cause a warning, and are accepted.
    let far = place.rates.1 / 8 * (place.delay / 1_000) / 1_000_000_000 * 4;
    if far > 8_000_000 || sketch.draw.one_in(4) {
        memory(sketch, far);
    }
    traffic::draw(sketch, place);
    faults::draw(sketch, place);
    observe::draw(sketch, place);
}

/// Buffers of switches and hosts, where the headroom of a link takes `far` bytes.
fn memory(sketch: &mut Sketch, far: u64) {
    let room = |sketch: &mut Sketch| {
        let packet = sketch.mtu + 100;
        let tiny = sketch.draw.one_in(if sketch.extreme { 3 } else { 20 });
        let low = if tiny { packet / 2 } else { packet * 60 + far * 8 };
        crate::draw::bytes(sketch.draw.log(low.max(1), (100 * low).max(10_000_000)))
    };
    if far > 0 || !sketch.draw.one_in(3) {
        let mut table = Table::new();
        table.put("buffer", room(sketch));
        sketch.add("switch", table);
    }
    if far > 0 || sketch.draw.one_in(3) {
        let mut table = Table::new();
        table.put("buffer", room(sketch));
        sketch.add("host", table);
    }
}

/// A weight of 1 to 1000, as several tables have it.
fn weight(draw: &mut Draw) -> Value {
    int(draw.log(1, 1_000))
}
