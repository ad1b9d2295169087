//! What scenarios that are worked out one after the other have in common.

use crate::error::Error;
use xoff_net::builders::TopologySpec;
use xoff_net::routing::Router;
use xoff_net::topology::Topology;

/// The network of the last scenario, and the distances in it that its routes needed. The next scenario takes them over
/// where it has the same network.
#[derive(Debug, Default)]
pub struct Known {
    /// The `[topology]` table as JSON, its file, and what they give.
    network: Option<(String, String, Topology)>,
    router: Option<Router>,
}

impl Known {
    /// The topology of a table and the text of its file, as `build` would make it.
    pub(crate) fn topology(
        &mut self,
        spec: &TopologySpec,
        text: &str,
        build: impl FnOnce() -> Result<Topology, Error>,
    ) -> Result<Topology, Error> {
        let table = serde_json::to_string(spec).expect("plain data becomes JSON");
        match &self.network {
            Some((known, file, topology)) if *known == table && file == text => Ok(topology.clone()),
            _ => {
                let topology = build()?;
                self.network = Some((table, text.into(), topology.clone()));
                Ok(topology)
            }
        }
    }

    /// Tells a router the distances.
    pub(crate) fn teach(&self, router: &mut Router) {
        if let Some(known) = &self.router {
            router.learn(known);
        }
    }

    /// Keeps the distances that a router has found.
    pub(crate) fn keep(&mut self, router: &Router) {
        self.router = Some(router.clone());
    }
}
