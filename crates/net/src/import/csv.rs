//! A table with one line for each link.

use super::{Cable, Inventory, quantities};
use crate::builders::fault;
use crate::error::SpecError;
use crate::text::{count, sample};

/// A file that works, for errors.
pub(super) const EXAMPLE: &str = "a CSV of links has the header `device,port,device,port,rate,length` and lines such as `leaf1,Ethernet0,spine1,Ethernet4,400Gbps,20m`";

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Device(usize),
    Port(usize),
    Role(usize),
    /// Bits per second of a bare number.
    Rate(Option<u64>),
    /// Picoseconds of a bare number.
    Delay(Option<u64>),
    LengthUnit,
    Other,
}

/// Names of ends at the beginning or the end of a column's name, for the first and the second end.
const SIDES: [&[&str]; 2] = [
    &["sidea", "aend", "start", "source", "src", "local", "from", "terminationa", "enda", "a", "1", "left"],
    &[
        "sideb",
        "zend",
        "bend",
        "end",
        "destination",
        "target",
        "dest",
        "dst",
        "remote",
        "to",
        "terminationb",
        "endb",
        "peer",
        "neighbor",
        "neighbour",
        "b",
        "2",
        "z",
        "right",
    ],
];

/// The side that a column's name begins or ends with, and the rest of the name.
fn side(name: &str) -> Option<(usize, &str)> {
    SIDES.iter().enumerate().find_map(|(side, words)| {
        words.iter().find_map(|word| {
            let rest = name.strip_prefix(word).or_else(|| name.strip_suffix(word))?;
            kind(rest).is_some().then_some((side, rest))
        })
    })
}

/// Which property of an end it is.
fn kind(rest: &str) -> Option<fn(usize) -> Column> {
    Some(match rest {
        "" | "device" | "node" | "host" | "hostname" | "name" | "switch" | "router" | "system" => {
            Column::Device
        }
        "port" | "interface" | "if" | "intf" | "ifname" | "int" => Column::Port,
        "role" | "devicerole" => Column::Role,
        _ => return None,
    })
}

fn column(name: &str, netbox: bool, seen: &[Column]) -> Column {
    let plain: String =
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    let unit = plain.as_str();
    // SONiC's lists of links have `BandWidth` in Mbit/s.
    let rate = match unit {
        "rate" | "speed" | "capacity" | "bw" => Some(Column::Rate(None)),
        "bandwidth" => Some(Column::Rate(name.contains('W').then_some(1_000_000))),
        "ratebps" | "speedbps" | "bandwidthbps" => Some(Column::Rate(Some(1))),
        "ratekbps" | "speedkbps" | "bandwidthkbps" => Some(Column::Rate(Some(1_000))),
        "ratembps" | "speedmbps" | "bandwidthmbps" | "mbps" => Some(Column::Rate(Some(1_000_000))),
        "rategbps" | "speedgbps" | "bandwidthgbps" | "gbps" => Some(Column::Rate(Some(1_000_000_000))),
        _ => None,
    };
    let measured = ["cablelength", "length", "cablelen", "len", "distance", "delay", "latency"]
        .iter()
        .find_map(|word| {
            let rest = unit.strip_prefix(word)?;
            match rest {
                "" => Some(Column::Delay(None)),
                "unit" => Some(Column::LengthUnit),
                unit => quantities::delay_unit(unit).map(|unit| Column::Delay(Some(unit))),
            }
        });
    if let Some(found) = rate.or(measured) {
        return found;
    }
    // NetBox calls the names of ports `side_a_name` or `Termination A`.
    match (netbox, unit) {
        (true, "sideaname" | "terminationa" | "aterminations") => return Column::Port(0),
        (true, "sidebname" | "terminationb" | "bterminations") => return Column::Port(1),
        _ => {}
    }
    if let Some((side, rest)) = side(unit) {
        return kind(rest).expect("side() has looked")(side);
    }
    // `device,port,device,port`: the second one is the other end's.
    match kind(unit).filter(|_| !unit.is_empty()) {
        Some(of) if seen.contains(&of(0)) => of(1),
        Some(of) => of(0),
        None => Column::Other,
    }
}

pub(super) fn read(text: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let header = text.lines().find(|l| !l.trim().is_empty() && !l.starts_with('#')).unwrap_or("");
    let delimiter =
        [b',', b';', b'\t'].into_iter().max_by_key(|&d| header.bytes().filter(|&b| b == d).count());
    let delimiter = delimiter.unwrap_or(b',');
    let mut rows = ::csv::ReaderBuilder::new()
        .has_headers(false)
        .delimiter(delimiter)
        .flexible(true)
        .comment(Some(b'#'))
        .trim(::csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut record = ::csv::StringRecord::new();
    let mut columns: Vec<Column> = Vec::new();
    let (mut left_out, mut names) = (0u64, Vec::new());
    loop {
        let more = rows.read_record(&mut record).map_err(|e| {
            let line = e.position().map_or(1, |p| p.line() as usize);
            fault(line, "this line is not a valid row of a CSV file", EXAMPLE)
        })?;
        if !more {
            break;
        }
        let line = record.position().map_or(1, |p| p.line() as usize);
        if record.iter().all(str::is_empty) {
            continue;
        }
        if columns.is_empty() {
            columns = header_columns(line, &record)?;
            names = record.iter().map(str::to_string).collect();
            inventory.remarks.extend(unused(&columns, &names));
            continue;
        }
        if record.len() != columns.len() {
            let (fields, header) = (count(record.len() as u64, "field"), columns.len());
            let message = format!("this line has {fields}, but the header has {header}");
            return Err(fault(line, message, "write an empty field for a missing value"));
        }
        left_out += u64::from(!row(text, line, delimiter, &record, &columns, &names, inventory)?);
    }
    if left_out > 0 {
        let lines = count(left_out, "line");
        inventory.remarks.push(format!("{lines} left out: a link needs devices at both ends"));
    }
    Ok(())
}

/// What to say of columns that are not used, if none has the rate, or none the delay: one of them may be it.
fn unused(columns: &[Column], names: &[String]) -> Option<String> {
    let has = |is: fn(&Column) -> bool| columns.iter().any(is);
    if has(|c| matches!(c, Column::Rate(_))) && has(|c| matches!(c, Column::Delay(_))) {
        return None;
    }
    let others =
        columns.iter().zip(names).filter(|(column, name)| **column == Column::Other && !name.is_empty());
    let others: Vec<&str> = others.map(|(_, name)| name.as_str()).collect();
    (!others.is_empty()).then(|| format!("columns that are not used: {}", sample(&others)))
}

fn header_columns(line: usize, record: &::csv::StringRecord) -> Result<Vec<Column>, SpecError> {
    let plain = |name: &str| name.to_ascii_lowercase().replace([' ', '_'], "");
    let netbox =
        record.iter().any(|name| matches!(plain(name).as_str(), "sideaname" | "devicea" | "sideadevice"));
    let mut columns: Vec<Column> = Vec::new();
    for name in record {
        let found = column(name, netbox, &columns);
        let counts = !matches!(found, Column::Other | Column::Rate(_) | Column::Delay(_));
        columns.push(if counts && columns.contains(&found) { Column::Other } else { found });
    }
    for side in [0, 1] {
        if !columns.contains(&Column::Device(side)) {
            let which = ["first", "second"][side];
            let read: Vec<&str> =
                record.iter().map(|name| if name.is_empty() { "(empty)" } else { name }).collect();
            let message =
                format!("no column has the {which} device of a link; the columns are {}", sample(&read));
            return Err(fault(line, message, EXAMPLE));
        }
    }
    Ok(columns)
}

/// Adds the link of a row; false if an end has no device.
fn row(
    text: &str,
    line: usize,
    delimiter: u8,
    record: &::csv::StringRecord,
    columns: &[Column],
    names: &[String],
    inventory: &mut Inventory,
) -> Result<bool, SpecError> {
    let field = |wanted: Column| {
        columns
            .iter()
            .position(|&column| column == wanted)
            .map(|i| &record[i])
            .filter(|field| !field.is_empty())
    };
    let (Some(a), Some(b)) = (field(Column::Device(0)), field(Column::Device(1))) else { return Ok(false) };
    let unit = field(Column::LengthUnit);
    let (mut rate, mut delay) = (None, None);
    for (i, (&column, value)) in columns.iter().zip(record).enumerate().filter(|(_, (_, v))| !v.is_empty()) {
        let refused = |message: String| {
            let message = format!("{message} (column `{}`)", names[i]);
            fault(line, message, EXAMPLE).in_column(column_of(text, line, delimiter, i))
        };
        match column {
            Column::Rate(bare) if rate.is_none() => {
                rate = Some(quantities::rate(value, bare).map_err(refused)?)
            }
            Column::Delay(bare) if delay.is_none() => {
                let bare = unit.and_then(quantities::delay_unit).or(bare);
                delay = Some(quantities::delay(value, bare).map_err(refused)?);
            }
            _ => {}
        }
    }
    let ends = [inventory.end(a, field(Column::Port(0))), inventory.end(b, field(Column::Port(1)))];
    for (side, device) in [(0, a), (1, b)] {
        if let Some(role) = field(Column::Role(side)) {
            inventory.set_role(device, role);
        }
    }
    inventory.connect(Cable { ends, rate, delay, loss: 0.0, line })?;
    Ok(true)
}

/// Where field `index` of a line begins, from 1.
fn column_of(text: &str, line: usize, delimiter: u8, index: usize) -> usize {
    let content = text.lines().nth(line - 1).unwrap_or("");
    let (mut field, mut quoted) = (0, false);
    for (at, c) in content.char_indices() {
        if field == index {
            return at + 1;
        }
        match c {
            '"' => quoted = !quoted,
            c if c == char::from(delimiter) && !quoted => field += 1,
            _ => {}
        }
    }
    content.len().max(1)
}
