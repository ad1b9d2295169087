//! The Parquet files of a run directory, read back: whole columns by name.

use std::fs::File;
use std::path::Path;

use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{FileReader, SerializedFileReader};

/// The values of a column; nulls are `None`.
enum Values {
    Ints(Vec<Option<i64>>),
    Floats(Vec<Option<f64>>),
    Texts(Vec<Option<String>>),
}

/// Some columns of a file.
pub struct Table {
    rows: usize,
    columns: Vec<(String, Values)>,
}

impl Table {
    /// Reads `columns` of a file.
    ///
    /// # Errors
    /// The file is not there, is damaged, or lacks a column.
    pub fn read(path: &Path, columns: &[&str]) -> std::result::Result<Self, String> {
        read(path, columns).map_err(|e| format!("{} cannot be read: {e}", path.display()))
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    fn column(&self, name: &str) -> &Values {
        let found = self.columns.iter().find(|(n, _)| n == name);
        &found.unwrap_or_else(|| panic!("column {name} was asked for")).1
    }

    /// Integers of a column that was read.
    ///
    /// # Panics
    /// If it was not read, or holds something else.
    pub fn ints(&self, name: &str) -> &[Option<i64>] {
        match self.column(name) {
            Values::Ints(v) => v,
            _ => panic!("column {name} has integers"),
        }
    }

    /// Numbers of a column that was read.
    ///
    /// # Panics
    /// If it was not read, or holds something else.
    pub fn floats(&self, name: &str) -> &[Option<f64>] {
        match self.column(name) {
            Values::Floats(v) => v,
            _ => panic!("column {name} has numbers"),
        }
    }

    /// Texts of a column that was read.
    ///
    /// # Panics
    /// If it was not read, or holds something else.
    pub fn texts(&self, name: &str) -> &[Option<String>] {
        match self.column(name) {
            Values::Texts(v) => v,
            _ => panic!("column {name} has text"),
        }
    }
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
            Physical::BYTE_ARRAY => Values::Texts(values::<ByteArrayType, _>(&file, at, |v| {
                String::from_utf8_lossy(v.data()).into_owned()
            })?),
            other => return Err(ParquetError::General(format!("column {name} is of type {other}"))),
        };
        columns.push((name.to_string(), values));
    }
    Ok(Table { rows: file.metadata().file_metadata().num_rows() as usize, columns })
}

fn values<T: DataType, V>(
    file: &SerializedFileReader<File>,
    column: usize,
    convert: impl Fn(&T::T) -> V,
) -> Result<Vec<Option<V>>> {
    let mut all = Vec::new();
    for i in 0..file.num_row_groups() {
        let group = file.get_row_group(i)?;
        let rows = group.metadata().num_rows() as usize;
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
        let (mut found, mut levels) = (Vec::with_capacity(rows), Vec::new());
        while reader.read_records(rows, Some(&mut levels), None, &mut found)?.0 > 0 {}
        let mut found = found.iter();
        // A required column has no levels: every value is there.
        if levels.is_empty() {
            all.extend(found.map(|v| Some(convert(v))));
        } else {
            all.extend(levels.iter().map(|&l| if l > 0 { found.next().map(&convert) } else { None }));
        }
    }
    Ok(all)
}
