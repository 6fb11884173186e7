//! The format of scenario files as data.

mod schema;
