//! Central scheduling: who sends when, to whom and by which path, decided at one place for
//! all hosts together.

pub mod matching;
pub mod zeropod;

// Pods without buffers have one scheme.
pub use zeropod::describe::describe as describe_pods;
pub use zeropod::keys::ZeropodKeys as PodsKeys;
pub use zeropod::params::ZeropodParams as PodsParams;
pub use zeropod::resolve as pods;
