//! Whether the runs that a claim compares treat ACKs alike.

use crate::experiment::Experiment;
use xoff_plan::plan::AckQueue;

/// Refuses a claim that compares runs with different treatment of ACKs, unless the experiment says why.
pub fn check(e: &Experiment, of: &dyn Fn(usize) -> AckQueue) -> Result<(), (String, &'static str)> {
    let queue = |run: &str| of(e.run_index(run).expect("a measure was checked"));
    let measures = e.claim.iter().flat_map(|c| c.measure.iter().map(move |m| (c, m)));
    let differ = measures.into_iter().find_map(|(claim, m)| {
        let (a, b) = (&m.run, m.against.as_ref()?);
        let pair = (queue(a), queue(b));
        let differ = pair.0 != pair.1 && pair.0 != AckQueue::None && pair.1 != AckQueue::None;
        differ.then(|| {
            let with = |at, run| match at {
                AckQueue::Data => format!("among the data in {run}"),
                AckQueue::Own | AckQueue::None => format!("in a queue of their own in {run}"),
            };
            format!(
                "{} compares unequal runs: ACKs wait {}, and {}",
                claim.id,
                with(pair.0, a),
                with(pair.1, b)
            )
        })
    });
    match (differ, &e.acks) {
        (Some(message), None) => {
            Err((message, "set the same treatment, or give the reason for the difference in `acks`"))
        }
        (None, Some(_)) => Err((
            "`acks` has no effect: every claim compares runs with the same treatment of ACKs".into(),
            "remove it",
        )),
        _ => Ok(()),
    }
}
