//! The Parquet files of a run directory, read back: whole columns by name.
//!
//! A run may have tens of millions of flows. So a column is read when a caller first needs it, and each
//! different text is stored once.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::ROWS_PER_GROUP;
use crate::integrity;

/// The values of a column; nulls are `None`.
enum Values {
    Ints(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
    Texts(Texts),
}

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Ints(v) => v.len(),
            Values::Floats(v) => v.len(),
            Values::Texts(v) => v.rows.len(),
        }
    }
}

/// A column of texts. Most of them come again and again.
pub struct Texts {
    /// The different texts, in the order in which they come.
    different: Vec<String>,
    /// By row: which of them, or [`NO_TEXT`].
    rows: Vec<u32>,
}

/// In a row: no text.
const NO_TEXT: u32 = u32::MAX;

impl Texts {
    pub fn get(&self, row: usize) -> Option<&str> {
        self.different.get(self.rows[row] as usize).map(String::as_str)
    }

    /// Which rows have a text that `passes`: a test of a row's number.
    pub fn select<'a>(&'a self, passes: &dyn Fn(&str) -> bool) -> impl Fn(usize) -> bool + use<'a> {
        let passes: Vec<bool> = self.different.iter().map(|text| passes(text)).collect();
        move |row| passes.get(self.rows[row] as usize).is_some_and(|&passes| passes)
    }
}

/// A file whose columns are read when they are needed, and kept.
pub struct Columns {
    path: PathBuf,
    rows: RefCell<usize>,
    found: RefCell<BTreeMap<String, Rc<Values>>>,
}

impl Columns {
    pub fn of(path: PathBuf) -> Self {
        Self { path, rows: RefCell::default(), found: RefCell::default() }
    }

    pub fn table(&self, names: &[&str]) -> std::result::Result<Table, String> {
        let mut found = self.found.borrow_mut();
        let missing: Vec<&str> = names.iter().copied().filter(|&n| !found.contains_key(n)).collect();
        if !missing.is_empty() {
            let read = Table::read(&self.path, &missing)?;
            *self.rows.borrow_mut() = read.rows;
            found.extend(read.columns);
        }
        let columns = names.iter().map(|&n| (n.to_string(), Rc::clone(&found[n]))).collect();
        Ok(Table { rows: *self.rows.borrow(), columns })
    }
}

/// Some columns of a file. Its methods panic on a column that was not read, or holds something else.
pub struct Table {
    rows: usize,
    columns: Vec<(String, Rc<Values>)>,
}

impl Table {
    pub fn read(path: &Path, columns: &[&str]) -> std::result::Result<Self, String> {
        guarded(|| read(path, columns))
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The text in a row; empty if there is none.
    pub fn text(&self, column: &str, row: usize) -> &str {
        self.texts(column).get(row).unwrap_or_default()
    }

    /// The whole number in a row, if there is one.
    pub fn maybe_int(&self, column: &str, row: usize) -> Option<u64> {
        self.ints(column)[row].map(i64::unsigned_abs)
    }

    /// The same; 0 if there is none.
    pub fn int(&self, column: &str, row: usize) -> u64 {
        self.maybe_int(column, row).unwrap_or(0)
    }

    fn column(&self, name: &str) -> &Values {
        let found = self.columns.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("column {name} was asked for")).1
    }

    pub fn ints(&self, name: &str) -> &[Option<i64>] {
        let Values::Ints(v) = self.column(name) else { panic!("column {name} has integers") };
        v
    }

    pub fn floats(&self, name: &str) -> &[Option<f64>] {
        let Values::Floats(v) = self.column(name) else { panic!("column {name} has numbers") };
        v
    }

    pub fn texts(&self, name: &str) -> &Texts {
        let Values::Texts(v) = self.column(name) else { panic!("column {name} has text") };
        v
    }
}

/// The result of reading a file that may be damaged, or why it cannot be read.
pub fn guarded<T>(read: impl FnOnce() -> Result<T>) -> std::result::Result<T, String> {
    let cannot = |why: &dyn fmt::Display| format!("cannot be read: {why}");
    // The Parquet library panics on some damaged files.
    integrity::caught(read).map_err(|e| cannot(&e))?.map_err(|e| cannot(&e))
}

fn read(path: &Path, names: &[&str]) -> Result<Table> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    let schema = file.metadata().file_metadata().schema_descr_ptr();
    let mut columns = Vec::new();
    for &name in names {
        let at = schema.columns().iter().position(|c| c.name() == name);
        let at = at.ok_or_else(|| ParquetError::General(format!("it has no column {name}")))?;
        let values = match schema.column(at).physical_type() {
            Physical::INT64 => Values::Ints(values::<Int64Type, _>(&file, at, |v| *v)?),
            Physical::DOUBLE => Values::Floats(values::<DoubleType, _>(&file, at, |v| *v)?),
            Physical::BYTE_ARRAY => Values::Texts(texts(&file, at)?),
            other => return Err(ParquetError::General(format!("column {name} is of type {other}"))),
        };
        columns.push((name.to_string(), Rc::new(values)));
    }
    let rows = file.metadata().file_metadata().num_rows() as usize;
    if let Some((name, values)) = columns.iter().find(|(_, values)| values.len() != rows) {
        let message = format!("column {name} has {} values, and the file {rows} rows", values.len());
        return Err(ParquetError::General(message));
    }
    Ok(Table { rows, columns })
}

/// A column of texts, each different one held once.
fn texts(file: &SerializedFileReader<File>, column: usize) -> Result<Texts> {
    let mut numbers: BTreeMap<Vec<u8>, u32> = BTreeMap::new();
    // Many a text is that of the row before.
    let (mut before, mut number): (Vec<u8>, u32) = (Vec::new(), NO_TEXT);
    let rows = values::<ByteArrayType, u32>(file, column, |text| {
        let text = text.data();
        if number == NO_TEXT || before != text {
            before.clear();
            before.extend_from_slice(text);
            number = numbers.get(text).copied().unwrap_or_else(|| {
                let next = numbers.len() as u32;
                numbers.insert(text.to_vec(), next);
                next
            });
        }
        number
    })?;
    let mut different = vec![String::new(); numbers.len()];
    for (text, number) in numbers {
        different[number as usize] = String::from_utf8_lossy(&text).into_owned();
    }
    Ok(Texts { different, rows: rows.into_iter().map(|row| row.unwrap_or(NO_TEXT)).collect() })
}

fn values<T: DataType, V>(
    file: &SerializedFileReader<File>,
    column: usize,
    mut convert: impl FnMut(&T::T) -> V,
) -> Result<Vec<Option<V>>> {
    // A damaged file may claim more rows than any memory holds: room is made for those of a row group.
    let mut all =
        Vec::with_capacity((file.metadata().file_metadata().num_rows() as usize).min(ROWS_PER_GROUP));
    for i in 0..file.num_row_groups() {
        let group = file.get_row_group(i)?;
        let rows = group.metadata().num_rows() as usize;
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
        let rows = rows.min(ROWS_PER_GROUP);
        let (mut found, mut levels) = (Vec::with_capacity(rows), Vec::new());
        while reader.read_records(rows, Some(&mut levels), None, &mut found)?.0 > 0 {}
        let mut found = found.iter();
        // A required column has no levels: every value is there.
        if levels.is_empty() {
            all.extend(found.map(|v| Some(convert(v))));
        } else {
            all.extend(levels.iter().map(|&l| if l > 0 { found.next().map(&mut convert) } else { None }));
        }
    }
    Ok(all)
}
