//! `[link_layer]`: what repairs links.

use super::Context;
use crate::error::Error;
use xoff_net::topology::Topology;
use xoff_schemes::link_layer::{LinkLayerScheme, Params};

/// The parameters of the link layer, if there is one.
pub(super) fn read(cx: &mut Context<'_>, topology: &Topology) -> Result<Option<Params>, Error> {
    let Some(keys) = cx.scenario.link_layer else { return Ok(None) };
    let scheme = keys.scheme;
    if scheme == LinkLayerScheme::None {
        for key in cx.doc.keys("link_layer").into_iter().filter(|key| *key != "scheme") {
            cx.warn(format!("link_layer.{key}"), "had no effect: no link layer is chosen");
        }
        return Ok(None);
    }
    let name = scheme.name();
    if cx.scenario.topology.is_bufferless() {
        let message =
            format!("`{name}` is incompatible with pods without buffers: their cells have no link layer");
        return cx.refuse("link_layer.scheme", message, "remove [link_layer]");
    }
    if !cx.scenario.failure.is_empty() {
        let message = format!("`{name}` is incompatible with [[failure]]: a failed link would begin anew");
        return cx.refuse(
            "link_layer.scheme",
            message,
            "use [[loss]], or remove [[failure]] or [link_layer]",
        );
    }
    let largest = cx.packet.largest().max(cx.scenario.flow_control.longest_frame());
    let params = keys.resolve(topology, largest).map_err(|complaint| cx.located(complaint))?;
    if cx.scenario.loss.is_empty() && topology.ports.iter().all(|p| p.loss == 0.0) {
        cx.warn("link_layer.scheme", "retries nothing: no link loses frames (`[[loss]]`)");
    }
    Ok(params)
}
