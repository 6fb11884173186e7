//! Figures drawn for paper: legible at the width of a column, in colour and without.
//!
//! A drawing is a stack: title, rows of panels, legend, notes. A [`Panel`] is a plot with its labels around it. Nothing in
//! a drawing has an identifier, so that many of them can share a page.

mod fabric;
mod heat;
mod panel;

use crate::figure::{Figure, Series, Sheet, Style};
use crate::palette::{colour, dash, marker};
use crate::text::{self, escape, shorten, wrap};
use panel::Panel;
use std::fmt::{Display, Write};

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
    /// The figure as an SVG drawing.
    pub fn svg(&self) -> String {
        let panels = vec![Panel::new(self, FIGURE, None)];
        Stack { title: &self.title, subtitle: &self.subtitle, caption: &self.caption, columns: 1, panels }.draw()
    }
}

impl Sheet {
    /// The sheet as an SVG drawing.
    pub fn svg(&self) -> String {
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

/// A coordinate: two decimals at most, always written the same.
fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// Where a text is held.
#[derive(Clone, Copy)]
enum Hold {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy)]
struct Font {
    size: f64,
    bold: bool,
    fill: &'static str,
}

const fn font(size: f64, fill: &'static str) -> Font {
    Font { size, bold: false, fill }
}

/// A drawing as it grows.
#[derive(Default)]
struct Pen {
    out: String,
}

impl Pen {
    fn put(&mut self, text: impl Display) {
        let _ = writeln!(self.out, "{text}");
    }

    /// Text on a baseline, turned around the place where it is held.
    fn text(&mut self, (x, y): (f64, f64), hold: Hold, font: Font, turn: f64, text: &str) {
        let (x, y, size, fill) = (n(x), n(y), n(font.size), font.fill);
        let _ = write!(self.out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\"");
        let _ = match hold {
            Hold::Start => Ok(()),
            Hold::Middle => write!(self.out, " text-anchor=\"middle\""),
            Hold::End => write!(self.out, " text-anchor=\"end\""),
        };
        if font.bold {
            self.out.push_str(" font-weight=\"bold\"");
        }
        if turn != 0.0 {
            let _ = write!(self.out, " transform=\"rotate({} {x} {y})\"", n(turn));
        }
        self.put(format_args!(">{}</text>", escape(text)));
    }

    /// Lines of text below each other; `y` is where the first begins. Gives back where the next would.
    fn lines(&mut self, x: f64, mut y: f64, hold: Hold, font: Font, lines: &[String]) -> f64 {
        for line in lines {
            y += LINE * font.size;
            self.text((x, y - (LINE / 2.0 - MIDDLE) * font.size), hold, font, 0.0, line);
        }
        y
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), look: &str) {
        let (x1, y1, x2, y2) = (n(x1), n(y1), n(x2), n(y2));
        self.put(format_args!("<path d=\"M{x1} {y1}L{x2} {y2}\" {look}/>"));
    }
}

/// The line of a series. Dashes are lost in one that goes up and down within each of them: it is drawn thin instead.
fn stroke(series: &Series, look: &str) -> String {
    let (width, dashes) = match dash(series.slot) {
        _ if series.is_dense() => ("1.2", String::new()),
        "" => ("2", String::new()),
        dashes => ("2", format!(" stroke-dasharray=\"{dashes}\"")),
    };
    format!("stroke=\"{look}\" stroke-width=\"{width}\"{dashes}")
}

/// A series' marker at a place.
fn shape(series: &Series, look: &str, (x, y): (f64, f64)) -> String {
    let (x, y, d) = (n(x), n(y), marker(series.slot));
    let paint = match series.style {
        Style::Stated => format!("fill=\"#ffffff\" fill-opacity=\"0.7\" stroke=\"{look}\" stroke-width=\"1.6\""),
        _ => format!("fill=\"{look}\" stroke=\"#ffffff\" stroke-width=\"0.8\""),
    };
    format!("<path transform=\"translate({x} {y})\" d=\"{d}\" {paint}/>")
}

/// What a series looks like, in a legend: its middle is at the origin's height.
pub(crate) fn sample(series: &Series, look: &str) -> String {
    let line = || format!("<path d=\"M0 0H{}\" {}/>", n(SAMPLE.0), stroke(series, look));
    let shape = || shape(series, look, (SAMPLE.0 / 2.0, 0.0));
    match series.style {
        Style::Bars => format!("<rect x=\"8\" y=\"-6\" width=\"14\" height=\"12\" fill=\"{look}\"/>"),
        Style::Line | Style::Step => line(),
        Style::LineMarkers => line() + &shape(),
        Style::Markers | Style::Stated => shape(),
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
    fn draw(&self) -> String {
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
        let (width, height, family) = (n(width), n((y + MARGIN).ceil()), text::FAMILY);
        let mut out = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"");
        let _ = write!(out, " viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{family}\" fill=\"none\"");
        let _ = writeln!(out, " stroke-linejoin=\"round\">\n<title>{}</title>", escape(self.title));
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<desc>{}</desc>", escape(self.caption));
        }
        let _ = write!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n{}</svg>\n", pen.out);
        out
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
                pen.put(format_args!(
                    "<g transform=\"translate({} {})\">{}</g>",
                    n(x),
                    n(middle),
                    sample(series, colour(series.slot))
                ));
                let place = (x + SAMPLE.0 + SAMPLE.1, middle + MIDDLE * LEGEND);
                pen.text(place, Hold::Start, font(LEGEND, INK), 0.0, name);
                x += wide + gap;
            }
            y += LINE * LEGEND + 3.0;
        }
        y
    }
}
