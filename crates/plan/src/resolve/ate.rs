//! Asymmetric traffic engineering: which flows have a choice of their first hop.

use super::{Context, LONGEST, SHORTEST_TIMER, routes};
use crate::error::Error;
use crate::plan::Ate;
use crate::scenario::AteUpdate;
use xoff_net::builders::TopologySpec;
use xoff_net::routing::{Route, RouteError, Router};
use xoff_net::topology::{NodeId, Topology};
use xoff_net::units::Span;
use xoff_schemes::load_balancing::ate::{AteParams, Update};

const TABLE: &str = "routing.ate";

/// The choices of a scenario's flows, as they are routed.
pub(super) struct Choices {
    /// Hosts of one switch of layer 0: the base of the address digits.
    n: u32,
    params: AteParams,
    /// As [`Ate::routes`].
    pub(super) routes: Vec<[u32; 2]>,
}

/// Whether the scenario asks for it, if that is possible.
pub(super) fn read(cx: &Context<'_>, topology: &Topology) -> Result<Option<Choices>, Error> {
    let Some(ate) = cx.scenario.routing.ate else { return Ok(None) };
    let n = match (&cx.scenario.topology, topology.cube) {
        (TopologySpec::RailOnly(spec), _) => spec.n,
        (TopologySpec::Ndc(_), Some(cube)) if cube.k == 1 => cube.n,
        _ => {
            let message = "`ate` is not available in this topology: it needs two layers";
            return cx.refuse(TABLE, message, "choose the topology `rail-only`, or `ndc` with k = 1");
        }
    };
    let kind = routes::kind(cx, topology);
    if kind.has_tiers() {
        let message = format!(
            "`{}` is incompatible with [routing.ate], whose two paths are shortest ones",
            kind.name()
        );
        return cx.refuse("routing.kind", message, "write kind = \"shortest-path\", or remove [routing.ate]");
    }
    if !cx.scenario.routing.overrides.is_empty() {
        let message = "incompatible with [routing.ate]: static routes leave no choice";
        return cx.refuse("routing.overrides", message, "remove the overrides, or [routing.ate]");
    }
    if !cx.scenario.failure.is_empty() {
        let message = "incompatible with [routing.ate]: the choice of the first hop ignores failures";
        let help = "remove [[failure]], or remove [routing.ate]: routes then avoid failed links";
        return cx.refuse("failure", message, help);
    }
    if !(ate.p > 0.0 && ate.p <= 1.0) {
        return cx.out_of_range(TABLE, "p", ate.p, "write a number above 0, up to 1, such as 0.9");
    }
    if !(0.0..=1.0).contains(&ate.least) {
        return cx.out_of_range(TABLE, "least", ate.least, "write a number from 0 to 1, such as 0.01");
    }
    if let Some(first) = ate.first.filter(|first| !(ate.least..=1.0).contains(first)) {
        let help = format!("write a number from least = {} to 1, such as 0.5", ate.least);
        return cx.out_of_range(TABLE, "first", first, help);
    }
    // In a shorter window there is hardly a packet.
    if !(SHORTEST_TIMER..=LONGEST).contains(&ate.window.0) {
        let help = format!("write {} to {}, such as \"100us\"", Span(SHORTEST_TIMER), Span(LONGEST));
        return cx.out_of_range(TABLE, "window", ate.window, help);
    }
    let update = match ate.update {
        AteUpdate::BothWays => Update::BothWays,
        AteUpdate::ToCapacity => Update::ToCapacity,
        AteUpdate::OneSided => Update::OneSided,
    };
    let params = AteParams { p: ate.p, window: ate.window.0, update, first: ate.first, least: ate.least };
    Ok(Some(Choices { n, params, routes: Vec::new() }))
}

impl Choices {
    /// The routes over layer 0 first and over layer 1 first; `None` if the two hosts have a switch in common.
    /// Cannot fail in a whole network of two layers.
    pub(super) fn of(
        &self,
        router: &Router,
        topology: &Topology,
        src: NodeId,
        dst: NodeId,
    ) -> Result<Option<[Route; 2]>, RouteError> {
        let n = self.n;
        if src % n == dst % n || src / n == dst / n {
            return Ok(None);
        }
        // The relay has one digit of each: in the source's domain, or on its rail.
        let relays = [src / n * n + dst % n, dst / n * n + src % n];
        let over = |layer: usize| {
            let switch =
                |host: NodeId, layer: usize| topology.neighbour(topology.nodes[host as usize].ports[layer]);
            let nodes = [src, switch(src, layer), relays[layer], switch(dst, 1 - layer), dst];
            router.explicit(&nodes)
        };
        Ok(Some([over(0)?, over(1)?]))
    }

    pub(super) fn plan(self, cx: &mut Context<'_>) -> Ate {
        if self.routes.iter().all(|[first, second]| first == second) {
            cx.warn(TABLE, "had no effect: no flow has two routes");
        }
        Ate { params: self.params, routes: self.routes }
    }
}
