//! Frames as bytes (filled below).
