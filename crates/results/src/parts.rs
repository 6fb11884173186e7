//! Where the time of flows went: the rows of `parts.parquet`.

use crate::records::PARTS;
use crate::tables::{self, Table};
use files::problem::Problem;
use std::path::Path;

/// Time that a flow spent on one thing in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRow<'a> {
    /// The flow's row.
    pub flow: usize,
    /// On what.
    pub part: &'a str,
    /// Where: a host, or a port as `from->to`.
    pub place: &'a str,
    /// Which link of the path; none at the sender and at the receiver.
    pub hop: Option<u64>,
    /// How long.
    pub time_ps: u64,
}

/// The table of parts of a folder of results, if it has one.
pub fn open(folder: &Path) -> Result<Option<Table>, Problem> {
    let path = folder.join(PARTS);
    path.is_file().then(|| tables::read(&path)).transpose()
}

/// The rows of the table, in order of flow.
pub fn rows(table: &Table) -> Result<Vec<PartRow<'_>>, Problem> {
    let (flow, part, place) = (table.counts("flow")?, table.texts("part")?, table.texts("place")?);
    let (hop, time) = (table.maybe_counts("hop")?, table.counts("time_ps")?);
    let row = |row: usize| PartRow {
        flow: flow[row] as usize,
        part: part[row],
        place: place[row],
        hop: hop[row],
        time_ps: time[row],
    };
    Ok((0..table.rows()).map(row).collect())
}
