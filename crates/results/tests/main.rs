//! The tests of result files and texts in one program: each file is a module, so that they are linked once.

mod answers;
mod common;
mod explain;
mod files;
mod grid;
mod offered;
mod overload;
mod size;
mod temporary;
