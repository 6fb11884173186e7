//! Figures and pages, drawn.

mod figures;
mod page;
