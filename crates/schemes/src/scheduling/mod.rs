//! Central scheduling: who sends when, to whom and by which path, decided at one place for
//! all hosts together.

pub mod matching;
pub mod zeropod;
