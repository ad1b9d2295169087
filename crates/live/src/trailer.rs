//! The trailer of a frame: data that a device of a real fabric has from its own tables and its clock.
//!
//! ```text
//! byte  0  the frame, as captures have it, without its check sequence
//!       n  label of the simulator: position on the route, size, number of the queue, notes of oracles,
//!          telemetry
//!          when its event is due, in ps, 64 bits
//!          the kind of that event
//!          bytes of the label, 16 bits
//!          "xoff"
//! ```

use xoff_sim::Delivery;

const MAGIC: &[u8; 4] = b"xoff";
/// Bytes after the label.
const END: usize = 15;

/// Appends the trailer of a delivery to its frame; `None` if its label is longer than any frame.
#[must_use]
pub fn append(frame: &mut Vec<u8>, delivery: &Delivery) -> Option<()> {
    let length = u16::try_from(delivery.label.len()).ok()?;
    frame.extend(&delivery.label);
    frame.extend(delivery.time.to_be_bytes());
    frame.push(delivery.kind);
    frame.extend(length.to_be_bytes());
    frame.extend(MAGIC);
    Some(())
}

/// A frame without its trailer, and the trailer's content: when its event is due, its kind, and the label.
pub struct Trailed<'a> {
    pub frame: &'a [u8],
    pub time: u64,
    pub kind: u8,
    pub label: &'a [u8],
}

/// Splits a frame; `None` if it has no trailer.
pub fn split(bytes: &[u8]) -> Option<Trailed<'_>> {
    let (rest, end) = bytes.split_last_chunk::<END>()?;
    if !end.ends_with(MAGIC) {
        return None;
    }
    let length = usize::from(u16::from_be_bytes([end[9], end[10]]));
    let (frame, label) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
    let time = u64::from_be_bytes(std::array::from_fn(|i| end[i]));
    Some(Trailed { frame, time, kind: end[8], label })
}

#[cfg(test)]
mod tests {
    use super::*;
    use xoff_outcome::tap::Crosser;

    #[test]
    fn a_trailer_survives_the_wire_and_foreign_frames_have_none() {
        let what = Crosser::Frame([7; 60].into());
        let delivery = Delivery { time: 1 << 40, kind: 3, port: 0, what, label: vec![1, 2, 3] };
        let mut bytes = vec![7; 60];
        append(&mut bytes, &delivery).unwrap();
        let read = split(&bytes).unwrap();
        assert_eq!(
            (read.frame, read.time, read.kind, read.label),
            (&[7; 60][..], 1 << 40, 3, &[1, 2, 3][..])
        );
        assert!(split(&[7; 60]).is_none());
        bytes.pop();
        assert!(split(&bytes).is_none());
        let delivery = Delivery { label: vec![0; 1 << 16], ..delivery };
        assert_eq!(append(&mut bytes, &delivery), None);
        assert!(split(b"\0\0\0\0\0\0\0\0\0\0\x09xoff").is_none());
    }
}
