//! Roundabout: deadlocks found by election and dissolved with spare headroom.

pub mod registers;
