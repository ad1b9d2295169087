//! The output of `show lldp table` of SONiC: the ports of one switch, and the neighbour of each.

use super::{Cable, Inventory};
use crate::builders::fault;
use crate::error::SpecError;

const FORM: &str =
    "expected the output of `show lldp table`, with the columns LocalPort, RemoteDevice and RemotePortID";

pub(super) fn read(text: &str, device: &str, inventory: &mut Inventory) -> Result<(), SpecError> {
    let mut places: Option<[usize; 3]> = None;
    for (line, content) in (1..).zip(text.lines()) {
        let fields: Vec<&str> = content.split_whitespace().collect();
        let Some(&[local, remote, port]) = places.as_ref() else {
            let place = |name: &str| fields.iter().position(|&field| field == name);
            if let (Some(local), Some(remote), Some(port)) =
                (place("LocalPort"), place("RemoteDevice"), place("RemotePortID"))
            {
                places = Some([local, remote, port]);
            }
            continue;
        };
        let rule = |field: &&str| field.bytes().all(|b| b == b'-');
        if fields.is_empty() || fields.iter().all(rule) || fields[0] == "Total" {
            continue;
        }
        let (Some(local), Some(remote), Some(port)) =
            (fields.get(local), fields.get(remote), fields.get(port))
        else {
            return Err(fault(line, "this line has no remote device and port", FORM));
        };
        let ends = [inventory.end(device, Some(local)), inventory.end(remote, Some(port))];
        inventory.connect(Cable { ends, rate: None, delay: None, loss: 0.0, line })?;
    }
    places.map(|_| ()).ok_or_else(|| fault(1, "this file has no header of an LLDP table", FORM))
}
