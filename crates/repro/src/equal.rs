//! Whether the runs that a claim compares have equal set-ups.

use crate::experiment::{Experiment, Unequal};
use xoff_plan::plan::Setup;

/// A part of a set-up: its key in `[unequal]`, in words, the reason for a difference, and whether it differs.
struct Part {
    key: &'static str,
    words: &'static str,
    reason: fn(&Unequal) -> &Option<String>,
    differs: fn(&Setup, &Setup) -> bool,
}

const PARTS: [Part; 4] = [
    Part {
        key: "acks",
        words: "the treatment of ACKs",
        reason: |u| &u.acks,
        differs: |a, b| a.acks != b.acks,
    },
    Part {
        key: "marking",
        words: "ECN marking",
        reason: |u| &u.marking,
        // Without senders that react to marks it is a difference of the congestion control.
        differs: |a, b| a.marking != b.marking && !a.marking.is_empty() && !b.marking.is_empty(),
    },
    Part {
        key: "buffers",
        words: "the size of switch buffers",
        reason: |u| &u.buffers,
        differs: |a, b| a.buffers != b.buffers,
    },
    Part {
        key: "congestion_control",
        words: "the congestion control",
        reason: |u| &u.congestion_control,
        differs: |a, b| a.congestion_control != b.congestion_control,
    },
];

/// Refuses a claim that compares runs with different set-ups, unless the experiment says why, and a reason that no
/// claim needs, if `whole` says that all claims are here. A run without a set-up, of pods without buffers, differs
/// from no other.
pub fn check<'a>(
    e: &Experiment,
    whole: bool,
    of: &dyn Fn(usize) -> Option<&'a Setup>,
) -> Result<(), (String, &'static str)> {
    let setup = |run: &str| of(e.run_index(run).expect("a measure was checked"));
    let measures = || e.claim.iter().flat_map(|c| c.measure.iter().map(move |m| (c, m)));
    for part in &PARTS {
        let differ = measures().find_map(|(claim, m)| {
            let (a, b) = (&m.run, m.against.as_ref()?);
            (part.differs)(setup(a)?, setup(b)?).then_some((&claim.id, a, b))
        });
        match (differ, (part.reason)(&e.unequal)) {
            (Some((claim, a, b)), None) => {
                let (words, key) = (part.words, part.key);
                let message = format!(
                    "{claim} compares unequal runs: {words} differs between {a} and {b} (unequal.{key} is missing)"
                );
                return Err((message, "make it equal, or give the reason for the difference in [unequal]"));
            }
            (None, Some(_)) if whole => {
                let message = format!(
                    "unequal.{} has no effect: no claim compares runs between which {} differs",
                    part.key, part.words
                );
                return Err((message, "remove it"));
            }
            _ => {}
        }
    }
    Ok(())
}

impl Unequal {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Each reason, after the part of the set-ups that differs.
    pub fn reasons(&self) -> impl Iterator<Item = (&'static str, &str)> {
        PARTS.iter().filter_map(|part| Some((part.words, (part.reason)(self).as_deref()?)))
    }
}
