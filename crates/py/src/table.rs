//! Parquet files of results as Arrow data, which Polars, pandas, DuckDB and others read without a copy of numbers.

use std::collections::HashMap;
use std::ffi::CStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::builder::LargeStringBuilder;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, ArrayRef, LargeStringArray, PrimitiveArray, RecordBatch, RecordBatchIterator};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, ScalarBuffer};
use arrow_schema::{Field, Schema, ffi::FFI_ArrowSchema};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type as stored;
use parquet::errors::{ParquetError, Result as Read};
use parquet::file::reader::{FileReader, SerializedFileReader};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use xoff_results::columns;
use xoff_results::storage;

use crate::{errors, supervise::detached};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
/// The unit of a column, in the metadata of its field.
const UNIT: &str = "unit";

/// A table of results in memory, in Arrow's form.
#[pyclass(frozen, module = "xoff._xoff")]
pub struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// Names of the columns, with the unit of each: `ps`, `B`, `bit/s`, or an empty text for counts, ratios and names.
    #[getter]
    fn units(&self) -> Vec<(String, String)> {
        let unit = |f: &Arc<Field>| f.metadata().get(UNIT).cloned().unwrap_or_default();
        self.batch.schema().fields().iter().map(|f| (f.name().clone(), unit(f))).collect()
    }

    /// The values of a column as a list; nulls are None. Fails if there is no such column.
    #[pyo3(signature = (name) -> "list[int] | list[float] | list[str] | list[int | None] | list[float | None] | list[str | None]")]
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let Some(column) = self.batch.column_by_name(name) else {
            let known: Vec<String> = self.units().into_iter().map(|(name, _)| name).collect();
            let remedy = format!("the columns are {}", known.join(", "));
            return Err(errors::of_argument(py, format!("there is no column `{name}`"), Some(name), &remedy));
        };
        if let Some(ints) = column.as_any().downcast_ref::<PrimitiveArray<Int64Type>>() {
            ints.iter().collect::<Vec<_>>().into_pyobject(py)
        } else if let Some(floats) = column.as_any().downcast_ref::<PrimitiveArray<Float64Type>>() {
            floats.iter().collect::<Vec<_>>().into_pyobject(py)
        } else if let Some(texts) = column.as_any().downcast_ref::<LargeStringArray>() {
            texts.iter().collect::<Vec<_>>().into_pyobject(py)
        } else {
            Err(errors::of_bug(py, "a column has a type that no file has"))
        }
    }

    /// The whole table as a stream, any number of times (Arrow's PyCapsule interface).
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol allows to leave casts to the consumer.
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// Names and types of the columns (Arrow's PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema().as_ref());
        let schema = schema.map_err(|e| errors::of_bug(py, &e.to_string()))?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}

/// Reads a Parquet file of a run or a grid.
#[pyfunction]
pub fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    let batch = detached(py, || columns::read::guarded(|| read(&path)))?;
    let damaged = |message: String| storage::Error {
        path: path.clone(),
        message,
        help: "Run the scenario again.".into(),
    };
    Ok(Table { batch: batch.map_err(|message| errors::of_results(py, &damaged(message)))? })
}

fn read(path: &Path) -> Read<RecordBatch> {
    let file = SerializedFileReader::new(File::open(path)?)?;
    let described = file.metadata().file_metadata().schema_descr_ptr();
    let (mut fields, mut arrays): (Vec<Field>, Vec<ArrayRef>) = (Vec::new(), Vec::new());
    for (i, column) in described.columns().iter().enumerate() {
        let nullable = column.self_type().get_basic_info().repetition() == Repetition::OPTIONAL;
        let array: ArrayRef = match column.physical_type() {
            Physical::INT64 => numbers::<stored::Int64Type, Int64Type>(&file, i)?,
            Physical::DOUBLE => numbers::<stored::DoubleType, Float64Type>(&file, i)?,
            Physical::BYTE_ARRAY => texts(&file, i)?,
            other => return Err(ParquetError::General(format!("column {} is of type {other}", column.name()))),
        };
        let field = Field::new(column.name(), array.data_type().clone(), nullable);
        let unit = columns::unit(column.name());
        fields.push(match unit {
            "" => field,
            unit => field.with_metadata(HashMap::from([(UNIT.to_string(), unit.to_string())])),
        });
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(|e| ParquetError::General(e.to_string()))
}

/// Calls `found` with the values of a column in one row group, and a level for each of its rows if some may be null.
fn groups<T: stored::DataType>(
    file: &SerializedFileReader<File>,
    column: usize,
    mut found: impl FnMut(Vec<T::T>, Vec<i16>),
) -> Read<()> {
    for i in 0..file.num_row_groups() {
        let group = file.get_row_group(i)?;
        // A damaged file may claim more rows than any memory holds.
        let rows = (group.metadata().num_rows() as usize).min(columns::ROWS_PER_GROUP);
        let mut reader = get_typed_column_reader::<T>(group.get_column_reader(column)?);
        let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::new());
        while reader.read_records(rows.max(1), Some(&mut levels), None, &mut values)?.0 > 0 {}
        found(values, levels);
    }
    Ok(())
}

fn numbers<T, A>(file: &SerializedFileReader<File>, column: usize) -> Read<ArrayRef>
where
    T: stored::DataType<T = A::Native>,
    A: arrow_array::ArrowPrimitiveType,
{
    let mut all: Vec<A::Native> = Vec::new();
    let mut there = BooleanBufferBuilder::new(0);
    groups::<T>(file, column, |values, levels| {
        if levels.is_empty() {
            there.append_n(values.len(), true);
            all.extend(values);
        } else {
            let mut values = values.into_iter();
            for level in levels {
                there.append(level > 0);
                let value = if level > 0 { values.next() } else { None };
                all.push(value.unwrap_or_default());
            }
        }
    })?;
    let nulls = Some(NullBuffer::new(there.finish())).filter(|nulls| nulls.null_count() > 0);
    Ok(Arc::new(PrimitiveArray::<A>::new(ScalarBuffer::from(all), nulls)))
}

fn texts(file: &SerializedFileReader<File>, column: usize) -> Read<ArrayRef> {
    let mut all = LargeStringBuilder::new();
    let mut invalid = false;
    groups::<stored::ByteArrayType>(file, column, |values, levels| {
        let mut values = values.iter();
        let rows = if levels.is_empty() { values.len() } else { levels.len() };
        for row in 0..rows {
            let is_there = levels.get(row).is_none_or(|level| *level > 0);
            match is_there.then(|| values.next()).flatten() {
                None => all.append_null(),
                Some(value) => match std::str::from_utf8(value.data()) {
                    Ok(text) => all.append_value(text),
                    Err(_) => invalid = true,
                },
            }
        }
    })?;
    if invalid {
        return Err(ParquetError::General("a text is not valid UTF-8".into()));
    }
    Ok(Arc::new(all.finish()))
}
