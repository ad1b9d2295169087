//! The buffer that links need, before there is a scenario and for a scenario's own links: `xoff size`.

pub use xoff_schemes::flow_control::size::{question::*, response, trial};

/// Which links of a scenario have less memory than its scheme needs on them.
pub mod links {
    use crate::plan::Plan;
    pub use xoff_schemes::flow_control::size::links::*;

    /// Compares every link of a plan with the buffer that its scheme needs.
    /// Fails with the name of a scheme under which no memory is known to suffice.
    pub fn links(plan: &Plan) -> Result<Report, &'static str> {
        let mut data = vec![false; plan.lanes.len()];
        plan.flows.iter().for_each(|f| data[usize::from(f.lane)] = true);
        let links = Links {
            topology: &plan.topology,
            lanes: &plan.lanes,
            data,
            buffers: &plan.buffers,
            accounts: &plan.accounts,
            packet: plan.packet,
            retries: plan.link_layer.iter().flat_map(|params| params.retries()).collect(),
        };
        let mut report = Report { scheme: plan.flow_control.name(), ..Report::default() };
        let mut compared = plan.flow_control.compare(&links, &mut report);
        if let Some(params) = &plan.link_layer {
            xoff_schemes::link_layer::compare(params, &links, &mut report);
            compared = true;
        }
        if !compared {
            return Err(report.scheme);
        }
        report.sort();
        Ok(report)
    }
}
