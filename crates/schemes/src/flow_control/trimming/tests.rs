use super::super::registry::FlowControlParams;
use super::*;

/// The simulator acts by these: no hook is called, and nothing is paused.
#[test]
fn the_device_trims_by_itself() {
    let params = FlowControlParams::Trimming(TrimmingParams { size: 64, priority: 7, lane: 0 });
    let trims = params.traits().trims;
    assert_eq!(trims.map(|trim| (trim.size, trim.lane, trim.cause.name)), Some((64, 0, "trimmed")));
    assert_eq!(Traits { trims: None, ..params.traits() }, Traits::NONE);
}
