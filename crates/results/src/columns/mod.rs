//! Parquet files from plain columns.
//!
//! The bytes depend only on the rows: no timestamps, a constant creator, one compression. Integers are signed
//! 64-bit (every tool subtracts them safely), text is UTF-8, absent values are nulls.

pub mod read;

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

/// Rows of a row group, which memory holds during writing.
pub const ROWS_PER_GROUP: usize = 65_536;

/// The values of a column in one row group.
#[derive(Clone, Debug)]
pub enum Column {
    Int(Vec<u64>),
    MaybeInt(Vec<Option<u64>>),
    MaybeFloat(Vec<Option<f64>>),
    Text(Vec<String>),
    MaybeText(Vec<Option<String>>),
}

impl Column {
    /// Number of values.
    pub fn rows(&self) -> usize {
        match self {
            Column::Int(v) => v.len(),
            Column::MaybeInt(v) => v.len(),
            Column::MaybeFloat(v) => v.len(),
            Column::Text(v) => v.len(),
            Column::MaybeText(v) => v.len(),
        }
    }

    fn schema(&self, name: &str) -> Result<Type> {
        let (physical, logical) = match self {
            Column::Int(_) | Column::MaybeInt(_) => (Physical::INT64, None),
            Column::MaybeFloat(_) => (Physical::DOUBLE, None),
            Column::Text(_) | Column::MaybeText(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition = match self {
            Column::Int(_) | Column::Text(_) => Repetition::REQUIRED,
            _ => Repetition::OPTIONAL,
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }
}

/// Columns of bytes whose names do not end with their unit.
const BYTES: [&str; 14] = [
    "size",
    "buffer",
    "shared",
    "buffer_peak",
    "reserve",
    "static_limit",
    "headroom",
    "main_peak",
    "headroom_peak",
    "queue_peak",
    "bytes",
    "delivered_bytes",
    "buffer_peak_max",
    "queue_peak_max",
];

/// The unit of a column's values: `ps`, `B` or `bit/s`; empty for counts, ratios, texts, and for the values of
/// `series.parquet`, which have a column of units.
pub fn unit(column: &str) -> &'static str {
    match column {
        _ if column.ends_with("_ps") => "ps",
        _ if column.ends_with("_bps") => "bit/s",
        _ if BYTES.contains(&column) => "B",
        _ => "",
    }
}

/// Writes a table of `rows` rows into `sink`, row group by row group. `columns` makes the columns (name and
/// values) of a range of rows; it is called with the empty range once, for the schema. Returns the sink,
/// flushed. Integers above 2^63 - 1 are an error.
pub fn write<W: Write + Send, N: AsRef<str>>(
    sink: W,
    rows: usize,
    columns: impl Fn(std::ops::Range<usize>) -> Vec<(N, Column)>,
) -> Result<W> {
    let mut groups = Groups::new(sink, &columns(0..0))?;
    for first in (0..rows).step_by(ROWS_PER_GROUP) {
        groups.push(columns(first..rows.min(first + ROWS_PER_GROUP)))?;
    }
    groups.finish()
}

/// A table that is written row group by row group.
pub struct Groups<W: Write + Send> {
    file: SerializedFileWriter<W>,
}

impl<W: Write + Send> Groups<W> {
    /// A table with columns of these names and types.
    pub fn new<N: AsRef<str>>(sink: W, columns: &[(N, Column)]) -> Result<Self> {
        let fields = columns
            .iter()
            .map(|(name, column)| column.schema(name.as_ref()).map(Arc::new))
            .collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("rows").with_fields(fields).build()?;
        let properties = WriterProperties::builder()
            .set_created_by("xoff".into())
            .set_compression(Compression::SNAPPY)
            .build();
        Ok(Self { file: SerializedFileWriter::new(sink, Arc::new(schema), Arc::new(properties))? })
    }

    /// Writes rows, at most [`ROWS_PER_GROUP`], as a row group. Integers above 2^63 - 1 are an error.
    ///
    /// # Panics
    /// The columns have different numbers of rows.
    pub fn push<N: AsRef<str>>(&mut self, columns: Vec<(N, Column)>) -> Result<()> {
        let rows = columns.first().map_or(0, |(_, column)| column.rows());
        let mut group = self.file.next_row_group()?;
        for (name, column) in columns {
            let name = name.as_ref();
            assert_eq!(column.rows(), rows, "column {name} has a value per row");
            let mut writer = group
                .next_column()?
                .ok_or_else(|| ParquetError::General(format!("no column {name} in the schema")))?;
            let ints = |v: Vec<u64>| v.into_iter().map(|x| int(name, x)).collect::<Result<Vec<_>>>();
            let texts = |v: Vec<String>| v.iter().map(|s| s.as_str().into()).collect::<Vec<ByteArray>>();
            match column {
                Column::Int(v) => writer.typed::<Int64Type>().write_batch(&ints(v)?, None, None)?,
                Column::MaybeInt(v) => {
                    let (v, levels) = present(v);
                    writer.typed::<Int64Type>().write_batch(&ints(v)?, Some(&levels), None)?
                }
                Column::MaybeFloat(v) => {
                    let (v, levels) = present(v);
                    writer.typed::<DoubleType>().write_batch(&v, Some(&levels), None)?
                }
                Column::Text(v) => writer.typed::<ByteArrayType>().write_batch(&texts(v), None, None)?,
                Column::MaybeText(v) => {
                    let (v, levels) = present(v);
                    writer.typed::<ByteArrayType>().write_batch(&texts(v), Some(&levels), None)?
                }
            };
            writer.close()?;
        }
        group.close()?;
        Ok(())
    }

    /// The sink, flushed.
    pub fn finish(self) -> Result<W> {
        self.file.into_inner()
    }
}

fn int(column: &str, value: u64) -> Result<i64> {
    i64::try_from(value)
        .map_err(|_| ParquetError::General(format!("{value} in column {column} exceeds 63 bits")))
}

/// The values that are there, and a definition level per row.
fn present<T>(values: Vec<Option<T>>) -> (Vec<T>, Vec<i16>) {
    let levels = values.iter().map(|v| i16::from(v.is_some())).collect();
    (values.into_iter().flatten().collect(), levels)
}
