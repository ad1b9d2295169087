//! TCP: NewReno, and DCTCP, which differs in its reaction to marks. Both have the same ends.

pub mod dctcp;
pub mod ends;
mod keys;
pub mod newreno;

pub use keys::{TcpDctcp, TcpNewReno};
