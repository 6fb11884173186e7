//! Spans beside a common ruler: a waterfall, whose rows follow each other in time, or bars of shares.

use crate::Format;

/// A chart of spans.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Spans {
    /// Names its files and its place on a page; letters, digits and dashes.
    pub id: String,
    /// What is seen, in a few words.
    pub title: String,
    /// The setting, in a line.
    pub subtitle: String,
    /// What to notice.
    pub caption: String,
    /// What the ruler measures.
    pub x: String,
    /// How its numbers are written.
    pub format: Format,
    /// From the top down.
    pub rows: Vec<SpanRow>,
}

/// A row of the chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SpanRow {
    /// Its name, to the left.
    pub name: String,
    /// What stands behind its spans, to the right.
    pub note: String,
    /// Whether it begins something new: there is air above it.
    pub apart: bool,
    /// Its spans.
    pub spans: Vec<Span>,
}

/// From one value to another, of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// The lower end.
    pub from: f64,
    /// The upper end.
    pub to: f64,
    /// What it is; the legend has an entry for each.
    pub kind: String,
}

/// The kinds that have a colour of their own, in the order of the legend: what costs nothing anew in blue, queues in orange and red, the
/// sender's own limits in green, what a scheme does in pink.
const KINDS: [(&str, &str); 18] = [
    ("serialisation", "#0072b2"),
    ("propagation", "#8cc9ee"),
    ("queueing", "#e69f00"),
    ("stopped", "#d55e00"),
    ("pause", "#8f2d00"),
    ("hold", "#cc79a7"),
    ("turn", "#8a8a8a"),
    ("window", "#009e73"),
    ("pacing", "#7fd1b9"),
    ("grant", "#00573f"),
    ("line", "#c4c4c4"),
    ("retransmission", "#222222"),
    ("answer", "#5e5e5e"),
    ("down", "#6a3d9a"),
    ("forwarding", "#56b4e9"),
    ("receiver", "#6b4c00"),
    ("host", "#a08040"),
    ("retry", "#b2182b"),
];

/// The place of a kind in the legend; those without a colour of their own come last.
pub(crate) fn rank(kind: &str) -> usize {
    KINDS.iter().position(|(name, _)| *name == kind).unwrap_or(KINDS.len())
}

/// The colour of a kind.
pub(crate) fn look(kind: &str) -> &'static str {
    KINDS.get(rank(kind)).map_or("#b0b0b0", |(_, colour)| colour)
}

impl Spans {
    /// The kinds of its spans, in the order of the legend.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = self.rows.iter().flat_map(|row| &row.spans).map(|span| span.kind.as_str()).collect();
        kinds.sort_by_key(|kind| (rank(kind), *kind));
        kinds.dedup();
        kinds
    }
}
