//! The seam between load balancing and the reader of scenarios: the table of a rule, and what is made of it.

use crate::flow_control::keys::{Complaint, Warning};
use std::fmt;

/// The keys of a load balancing.
pub trait Keys: Copy + Default {
    /// Devices or senders that follow it.
    type Rule;

    /// Whether packets of a flow overtake each other where paths differ.
    fn reorders(&self) -> bool {
        true
    }

    /// The rule; an error if a value is out of range.
    fn rule(&self, cx: &mut Setting<'_>) -> Result<Self::Rule, Complaint>;
}

/// The view of a load balancing on the scenario.
pub struct Setting<'s> {
    /// Whether the scenario writes a key, such as `routing.drill.d`.
    pub is_written: &'s dyn Fn(&str) -> bool,
    /// Allowed settings that may have another effect than the author expects.
    pub warnings: Vec<Warning>,
}

/// `routing.{key}`, such as that of `drill.d`, with a value that is out of range.
pub(super) fn out_of_range(key: &str, value: impl fmt::Display, help: impl Into<String>) -> Complaint {
    Complaint::new(&format!("routing.{key}"), format!("{key} = {value} is out of range"), help)
}
