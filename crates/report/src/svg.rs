//! Figures drawn for paper: legible at the width of a column, in colour and without.
//!
//! Each is a stack: title, rows of panels, legend, notes. A [`Panel`] is a plot with its labels around it. Nothing in
//! a drawing has an identifier, so that many of them can share a page.

mod fabric;
mod heat;
mod panel;
mod spans;

use crate::drawing::{Colour, Drawing, Font, Hold, Item, Path, Place, Shape, Step, Stroke, Text};
use crate::figure::{Figure, Series, Sheet, Style};
use crate::palette::{colour, dash, marker};
use crate::text::{self, shorten, wrap};
use panel::Panel;

/// Width of a figure and height of its plot.
const FIGURE: (f64, f64) = (520.0, 240.0);
/// The same for a panel of a sheet.
const PANEL: (f64, f64) = (350.0, 210.0);
/// Air around a drawing.
const MARGIN: f64 = 8.0;
/// Line height over font size.
const LINE: f64 = 1.28;
/// Where the baseline lies below the middle of a line, over font size: half the height of a capital.
const MIDDLE: f64 = 0.365;
/// Font sizes of titles, of axis labels, of legends, and of the small print. Ticks have theirs in `scale`.
const TITLE: f64 = 15.0;
const LABEL: f64 = 14.0;
const LEGEND: f64 = 13.0;
const SMALL: f64 = 12.0;
/// Width of a legend's sample of a line, and the air after it.
const SAMPLE: (f64, f64) = (30.0, 6.0);

const INK: &str = "#1f1f1f";
const GREY: &str = "#5a5a5a";

impl Figure {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// The figure as a drawing.
    pub fn drawing(&self) -> Drawing {
        let panels = vec![Panel::new(self, FIGURE, None)];
        Stack { title: &self.title, subtitle: &self.subtitle, caption: &self.caption, columns: 1, panels }.draw()
    }
}

impl Sheet {
    /// The sheet as SVG.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// The sheet as a drawing.
    pub fn drawing(&self) -> Drawing {
        let panels = self.figures.iter().zip(letters()).map(|(figure, letter)| Panel::new(figure, PANEL, Some(letter)));
        let columns = if self.columns == 0 { 3 } else { self.columns }.min(self.figures.len()).max(1);
        let (title, subtitle, caption, panels) = (&self.title, &self.subtitle, &self.caption, panels.collect());
        Stack { title, subtitle, caption, columns, panels }.draw()
    }
}

/// The letters of panels.
pub(crate) fn letters() -> impl Iterator<Item = char> {
    (b'a'..=b'z').map(char::from).cycle()
}

const fn font(size: f64, fill: &'static str) -> Font {
    Font { size, bold: false, fill, halo: false }
}

/// A drawing as it grows.
#[derive(Default)]
struct Pen {
    items: Vec<Item>,
}

impl Pen {
    fn put(&mut self, item: impl Into<Item>) {
        self.items.push(item.into());
    }

    /// Text on a baseline, turned around the place where it is held.
    fn text(&mut self, place: Place, hold: Hold, font: Font, turn: f64, text: &str) {
        self.items.push(Item::Text(Text { place, hold, font, turn, text: text.into() }));
    }

    /// Lines of text below each other; `y` is where the first begins. Gives back where the next would.
    fn lines(&mut self, x: f64, mut y: f64, hold: Hold, font: Font, lines: &[String]) -> f64 {
        for line in lines {
            y += LINE * font.size;
            self.text((x, y - (LINE / 2.0 - MIDDLE) * font.size), hold, font, 0.0, line);
        }
        y
    }
}

/// The line of a series. Dashes are lost in one that goes up and down within each of them: it is drawn thin instead.
fn stroke(series: &Series, look: impl Into<Colour>) -> Stroke {
    match series.is_dense() {
        true => Stroke::new(look, 1.2),
        false => Stroke { dashes: dash(series.slot), ..Stroke::new(look, 2.0) },
    }
}

/// A series' marker at a place.
fn shape(series: &Series, look: impl Into<Colour>, place: Place) -> Shape {
    let outline = Shape::path(marker(series.slot)).at(place);
    match series.style {
        Style::Stated => outline.pale("#ffffff", 0.7).stroke(Stroke::new(look, 1.6)),
        _ => outline.fill(look).stroke(Stroke::new("#ffffff", 0.8)),
    }
}

/// What a series looks like, in a legend: its middle is at the origin's height.
pub(crate) fn sample(series: &Series, look: &'static str) -> Vec<Item> {
    let line =
        || Shape::path(Path(vec![Step::Move((0.0, 0.0)), Step::Across(SAMPLE.0)])).stroke(stroke(series, look)).into();
    let shape = || shape(series, look, (SAMPLE.0 / 2.0, 0.0)).into();
    match series.style {
        Style::Bars => vec![Shape::rect((8.0, -6.0), (14.0, 12.0)).fill(look).into()],
        Style::Line | Style::Step => vec![line()],
        Style::LineMarkers => vec![line(), shape()],
        Style::Markers | Style::Stated => vec![shape()],
    }
}

/// A whole drawing.
struct Stack<'a> {
    title: &'a str,
    subtitle: &'a str,
    caption: &'a str,
    columns: usize,
    panels: Vec<Panel<'a>>,
}

impl Stack<'_> {
    fn draw(&self) -> Drawing {
        let panel = self.panels.first().map_or(FIGURE.0, |panel| panel.width);
        let width = (panel * self.columns as f64).max(FIGURE.0);
        let room = width - 2.0 * MARGIN;
        let mut pen = Pen::default();
        let title = Font { bold: true, ..font(TITLE, INK) };
        let mut y = pen.lines(MARGIN, MARGIN, Hold::Start, title, &wrap(self.title, TITLE, true, room));
        y = pen.lines(MARGIN, y, Hold::Start, font(SMALL, GREY), &wrap(self.subtitle, SMALL, false, room));
        y += 8.0;
        for row in self.panels.chunks(self.columns) {
            let tallest = |height: fn(&Panel) -> f64| row.iter().map(height).fold(0.0, f64::max);
            let (head, foot) = (tallest(|panel| panel.head()), tallest(|panel| panel.foot()));
            for (at, panel) in row.iter().enumerate() {
                panel.draw(&mut pen, at as f64 * panel.width, y, y + head);
            }
            y += head + tallest(|panel| panel.plot.1) + foot + 10.0;
        }
        y = self.legend(&mut pen, width, y);
        let mut notes: Vec<&String> = Vec::new();
        for note in self.panels.iter().flat_map(|panel| &panel.data.notes) {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        for note in notes {
            y = pen.lines(MARGIN, y + 2.0, Hold::Start, font(SMALL, GREY), &wrap(note, SMALL, false, room));
        }
        let (title, caption) = (self.title.into(), self.caption.into());
        Drawing { width, height: (y + MARGIN).ceil(), title, caption, items: pen.items }
    }

    /// One entry for every name, in as many rows as it takes. Gives back where it ends.
    fn legend(&self, pen: &mut Pen, width: f64, mut y: f64) -> f64 {
        let mut known: Vec<(&Series, bool)> = Vec::new();
        for panel in self.panels.iter().filter(|panel| !panel.figure.is_its_own_legend()) {
            for (series, runs) in panel.figure.series.iter().zip(&panel.data.runs) {
                match known.iter_mut().find(|(other, _)| other.name == series.name) {
                    Some((_, data)) => *data |= !runs.is_empty(),
                    None => known.push((series, !runs.is_empty())),
                }
            }
        }
        let (room, gap) = (width - 2.0 * MARGIN, 22.0);
        let entry = |(series, data): (_, bool)| {
            let series: &Series = series;
            let name = if data { series.name.clone() } else { format!("{} (no data)", series.name) };
            (series, shorten(&name, LEGEND, room - SAMPLE.0 - SAMPLE.1))
        };
        let entries: Vec<(&Series, String)> = known.into_iter().map(entry).collect();
        let wide = |(_, name): &(&Series, String)| SAMPLE.0 + SAMPLE.1 + text::width(name, LEGEND, false);
        let widths = |columns: usize| -> Vec<f64> {
            (0..columns).map(|at| entries.iter().skip(at).step_by(columns).map(wide).fold(0.0, f64::max)).collect()
        };
        let total = |widths: &[f64]| widths.iter().sum::<f64>() + gap * (widths.len() as f64 - 1.0);
        // As few rows as can be, and as few columns as those rows need.
        let columns = (1..=entries.len()).rev().find(|&columns| total(&widths(columns)) <= room).unwrap_or(1);
        let columns = entries.len().div_ceil(entries.len().div_ceil(columns).max(1)).max(1);
        let widths = widths(columns);
        for row in entries.chunks(columns) {
            let mut x = (width - total(&widths)) / 2.0;
            let middle = y + LINE * LEGEND / 2.0;
            for ((series, name), wide) in row.iter().zip(&widths) {
                pen.put(Item::Group { shift: (x, middle), items: sample(series, colour(series.slot)) });
                let place = (x + SAMPLE.0 + SAMPLE.1, middle + MIDDLE * LEGEND);
                pen.text(place, Hold::Start, font(LEGEND, INK), 0.0, name);
                x += wide + gap;
            }
            y += LINE * LEGEND + 3.0;
        }
        y
    }
}
