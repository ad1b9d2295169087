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
use arrow_schema::{Field, Schema, SchemaRef, ffi::FFI_ArrowSchema};
use parquet::basic::{Repetition, Type as Physical};
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type as stored;
use parquet::errors::{ParquetError, Result as Read};
use parquet::file::reader::{FileReader, SerializedFileReader};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};
use xoff_results::{columns, grid::directory, storage};

use crate::{errors, supervise::detached};

const STREAM: &CStr = c"arrow_array_stream";
const SCHEMA: &CStr = c"arrow_schema";
/// The unit of a column, in the metadata of its field.
const UNIT: &str = "unit";

/// A table of results in memory, in Arrow's form.
#[pyclass(frozen, module = "xoff._xoff")]
pub struct Table {
    schema: SchemaRef,
    /// One, or one for each run of a grid.
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// Number of rows.
    #[getter]
    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Names of the columns, with the unit of each: `ps`, `B`, `bit/s`, or an empty text for counts, ratios and names.
    #[getter]
    fn units(&self) -> Vec<(String, String)> {
        let unit = |f: &Arc<Field>| f.metadata().get(UNIT).cloned().unwrap_or_default();
        self.schema.fields().iter().map(|f| (f.name().clone(), unit(f))).collect()
    }

    /// The first values of a column as a list, at most `rows`.
    #[pyo3(signature = (name, rows) -> "list[Any]")]
    fn head<'py>(&self, py: Python<'py>, name: &str, rows: usize) -> PyResult<Bound<'py, PyList>> {
        let mut left = rows;
        let mut part = |batch: &RecordBatch| {
            let taken = batch.slice(0, batch.num_rows().min(left));
            left -= taken.num_rows();
            taken
        };
        let batches = self.batches.iter().map(&mut part).collect();
        Self { schema: Arc::clone(&self.schema), batches }.column(py, name)
    }

    /// The values of a column as a list; nulls are None. Fails if there is no such column.
    #[pyo3(signature = (name) -> "list[Any]")]
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        if self.schema.column_with_name(name).is_none() {
            let known: Vec<String> = self.units().into_iter().map(|(name, _)| name).collect();
            let remedy = format!("the columns are {}", known.join(", "));
            return Err(errors::of_argument(py, format!("there is no column `{name}`"), Some(name), &remedy));
        }
        let list = PyList::empty(py);
        for column in self.batches.iter().filter_map(|batch| batch.column_by_name(name)) {
            let values = if let Some(ints) = column.as_any().downcast_ref::<PrimitiveArray<Int64Type>>() {
                ints.iter().collect::<Vec<_>>().into_pyobject(py)?
            } else if let Some(floats) = column.as_any().downcast_ref::<PrimitiveArray<Float64Type>>() {
                floats.iter().collect::<Vec<_>>().into_pyobject(py)?
            } else if let Some(texts) = column.as_any().downcast_ref::<LargeStringArray>() {
                texts.iter().collect::<Vec<_>>().into_pyobject(py)?
            } else {
                return Err(errors::of_bug(py, "a column has a type that no file has"));
            };
            list.call_method1("extend", (values,))?;
        }
        Ok(list)
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
        let batches = self.batches.clone().into_iter().map(Ok);
        let batches = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    /// Names and types of the columns (Arrow's PyCapsule interface).
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref());
        let schema = schema.map_err(|e| errors::of_bug(py, &e.to_string()))?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}

/// Reads a Parquet file of a run or a grid.
#[pyfunction]
pub fn read_table(py: Python<'_>, path: PathBuf) -> PyResult<Table> {
    let batch = detached(py, || guarded(&path))?.map_err(|error| errors::of_results(py, &error))?;
    Ok(Table { schema: batch.schema(), batches: vec![batch] })
}

/// Reads the Parquet file of this name of every finished run of the grid at `path`, as one table. The columns of
/// `grid.parquet` up to `seed` come first: they tell which run a row is of.
#[pyfunction]
pub fn read_runs(py: Python<'_>, path: PathBuf, file: &str) -> PyResult<Table> {
    let read = detached(py, || runs(&path, file))?;
    let (schema, batches) = read.map_err(|error| errors::of_results(py, &error))?;
    Ok(Table { schema, batches })
}

fn runs(path: &Path, file: &str) -> Result<(SchemaRef, Vec<RecordBatch>), storage::Error> {
    let at = path.join(directory::TABLE);
    let grid = guarded(&at)?;
    let wrong = |e: &dyn std::fmt::Display| damaged(&at, format!("is damaged: {e}"));
    let last = grid.schema().index_of("seed").map_err(|e| wrong(&e))?;
    let names = grid.column(0).as_any().downcast_ref::<LargeStringArray>();
    let names = names.ok_or_else(|| wrong(&"its first column is not the name of a run"))?;
    let mut all: Option<(SchemaRef, Vec<RecordBatch>)> = None;
    for (row, name) in names.iter().enumerate() {
        let run = guarded(&path.join(directory::RUNS).join(name.unwrap_or_default()).join(file))?;
        let mut fields: Vec<Arc<Field>> = grid.schema().fields()[..=last].to_vec();
        fields.extend(run.schema().fields().iter().cloned());
        let schema = Arc::clone(&all.get_or_insert_with(|| (Arc::new(Schema::new(fields)), Vec::new())).0);
        let mut columns = Vec::new();
        for key in &grid.columns()[..=last] {
            columns.push(repeated(key, row, run.num_rows()).map_err(|e| wrong(&e))?);
        }
        columns.extend(run.columns().iter().cloned());
        let batch = RecordBatch::try_new(schema, columns).map_err(|e| wrong(&e))?;
        all.as_mut().expect("made above").1.push(batch);
    }
    all.ok_or_else(|| storage::Error {
        path: path.to_path_buf(),
        message: "has no finished run".into(),
        help: "Repeat the command of the grid with --resume.".into(),
    })
}

/// A column with the value of one row in `rows` rows.
fn repeated(column: &ArrayRef, row: usize, rows: usize) -> Read<ArrayRef> {
    Ok(if let Some(ints) = column.as_any().downcast_ref::<PrimitiveArray<Int64Type>>() {
        Arc::new(PrimitiveArray::<Int64Type>::from(vec![ints.value(row); rows]))
    } else if let Some(floats) = column.as_any().downcast_ref::<PrimitiveArray<Float64Type>>() {
        Arc::new(PrimitiveArray::<Float64Type>::from(vec![floats.value(row); rows]))
    } else if let Some(texts) = column.as_any().downcast_ref::<LargeStringArray>() {
        Arc::new(LargeStringArray::from(vec![texts.value(row); rows]))
    } else {
        return Err(ParquetError::General("a column has an unknown type".into()));
    })
}

fn damaged(path: &Path, message: String) -> storage::Error {
    storage::Error { path: path.to_path_buf(), message, help: "Run the scenario again.".into() }
}

fn guarded(path: &Path) -> Result<RecordBatch, storage::Error> {
    columns::read::guarded(|| read(path)).map_err(|message| damaged(path, message))
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
            other => {
                return Err(ParquetError::General(format!("column {} is of type {other}", column.name())));
            }
        };
        let field = Field::new(column.name(), array.data_type().clone(), nullable);
        let unit = columns::unit(column.name());
        fields.push(match unit {
            "" => field,
            unit => field.with_metadata(HashMap::from([(UNIT.to_string(), unit.to_string())])),
        });
        arrays.push(array);
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)
        .map_err(|e| ParquetError::General(e.to_string()))
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
