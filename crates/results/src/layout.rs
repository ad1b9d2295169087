//! The format of a run directory and the names of its files. Those of its data are in
//! [`DataFile`](crate::data::DataFile).

/// Value of `format` in every manifest.
pub const FORMAT: &str = "xoff run";
/// Version of the directory's layout; grows when a file or column changes its meaning.
pub const FORMAT_VERSION: u32 = 3;
/// The manifest's file name.
pub const MANIFEST: &str = "manifest.json";
/// The summary's file name.
pub const SUMMARY: &str = "summary.json";
/// The page's file name in the directory of the run or grid that it is about.
pub const PAGE: &str = "report.html";
/// The page of a run beside another one.
pub const BESIDE: &str = "beside.html";
