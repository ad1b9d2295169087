//! Run directory, statistics, tables.
