//! Figures and pages: what a reader of results looks at.
//!
//! Nothing here knows what a simulation is. Results come in as tables of numbers, text and bytes go out, and the same numbers
//! give the same bytes on every machine. [`curves`] turns results into figures, [`pages`] puts these on pages.
//!
//! The data's path through it: a [`Figure`] says *what* is to be seen (axes with units, series with confidence
//! intervals, reference marks) and never how. [`Axis`] knows how a person writes its numbers (`100 KB`, `20 µs`, `5%`); the
//! ticks are chosen by measuring the labels in the very font they are drawn in, so nothing overlaps or is cut off. From there it
//! goes to two outputs:
//!
//! * **To paper**: [`Figure::drawing`] draws it for a column of a paper, [`Drawing::svg`] writes that down, and [`Drawing::png`]
//!   paints it with a font that is part of the program. A [`Sheet`] sets several figures side by side as (a), (b), (c) with one legend.
//! * **To a browser**: a [`Page`] holds headings, tables, code and figures. [`Page::html`] is one file that loads
//!   nothing from anywhere. Its figures can be hovered, zoomed, and a scheme switched off in one is switched off in
//!   all; printed, or without scripts, the page shows the paper's drawings instead.
//!
//! A [`fabric::Picture`] shows nodes and links in their places instead, with a cycle of waits or the congestion tree on them.
//!
//! Of a sweep over two keys a [`heat::Heat`] map has a cell for each pair; [`sweeps`] makes these and the lines over one key.
//!
//! Where the time of flows went, [`spans::Spans`] show beside a ruler: [`parts`] makes a waterfall of slow flows, and bars of shares.
//!
//! A scheme looks the same in every figure of a report because a [`Palette`] hands out its slot once: slot 2 is the same
//! colour, dash and marker everywhere.
//!
//! ```
//! use report::{Axis, Figure, Format, Mark, Palette, Style};
//!
//! let mut palette = Palette::default();
//! let x = Axis::categories("Flow size", ["≤1 KB", "≤10 KB", "≤100 KB"]);
//! let mut figure = Figure::new("slowdown", "Tail slowdown by flow size", x, Axis::log("p99 slowdown"));
//! figure.series.push(palette.series("BFC", Style::LineMarkers, [(0.0, 1.9), (1.0, 2.2), (2.0, 4.1)]));
//! figure.series.push(palette.series("DCQCN", Style::LineMarkers, [(0.0, 22.0), (1.0, 18.5), (2.0, 9.7)]));
//! figure.marks.push(Mark::y(1.0, "alone in the network"));
//! let svg = figure.svg();
//! assert!(svg.contains("p99 slowdown") && svg.contains("DCQCN"));
//! assert!(figure.drawing().png().unwrap().starts_with(b"\x89PNG"));
//! assert_eq!(Format::Bytes.show(12_000_000.0), "12 MB");
//! ```

pub mod claims;
pub mod collectives;
pub mod curves;
mod drawing;
pub mod fabric;
mod figure;
pub mod folder;
mod format;
pub mod heat;
mod interactive;
mod page;
pub mod pages;
mod palette;
pub mod parts;
mod png;
mod scale;
pub mod spans;
mod svg;
pub mod sweeps;
mod text;
mod training;

pub use drawing::Drawing;
pub use figure::{Axis, Figure, Mark, Point, Scale, Series, Sheet, Style};
pub use format::Format;
pub use page::{Block, Cell, Column, Link, Page, Section, Table, Tone};
pub use palette::Palette;
pub use png::DrawingError;
