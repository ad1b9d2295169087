use super::super::registry::FlowControlParams;
use super::*;

/// The simulator acts by these: no hook is called, and nothing is paused.
#[test]
fn the_device_trims_by_itself() {
    for (trims, last) in [(Trimmed::Arriving, None), (Trimmed::ArrivingOrLast, Some("trimming"))] {
        let params = FlowControlParams::Trimming(TrimmingParams { size: 64, priority: 7, lane: 0, trims });
        let trim = params.traits().trims.expect("it trims");
        assert_eq!((trim.size, trim.lane, trim.cause.name, trim.last), (64, 0, "trimmed", last));
        assert_eq!(Traits { trims: None, ..params.traits() }, Traits::NONE);
    }
}
