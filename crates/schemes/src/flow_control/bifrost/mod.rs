//! Bifrost.

pub mod slots;
