//! Charts of spans as drawings.

use super::{GREY, INK, LABEL, LEGEND, LINE, MARGIN, MIDDLE, Pen, SMALL, TITLE, font};
use crate::drawing::{Drawing, Font, Hold, Path, Shape, Step, Stroke};
use crate::figure::Axis;
use crate::scale::{Room, Ruler, TICK};
use crate::spans::{Spans, look};
use crate::text::{self, shorten, wrap};

/// Width of a chart on a telephone.
const NARROW: f64 = 330.0;
/// Width of a chart, height of a row and of the bar in it, and the air above a row that stands apart.
const WIDTH: f64 = 680.0;
const ROW: f64 = 22.0;
const BAR: f64 = 14.0;
const APART: f64 = 9.0;
/// The largest part of the drawing that names take, and notes.
const NAMES: f64 = 210.0;
const NOTES: f64 = 90.0;
/// The least width of a span that can be seen.
const LEAST: f64 = 0.75;

impl Spans {
    /// The chart as SVG.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// The same for a narrow page.
    pub fn narrow_svg(&self) -> String {
        self.drawn(NARROW).svg()
    }

    /// The chart as a drawing.
    pub fn drawing(&self) -> Drawing {
        self.drawn(WIDTH)
    }

    fn drawn(&self, width: f64) -> Drawing {
        let (most_names, most_notes) = (NAMES.min(width / 3.0), NOTES.min(width / 4.0));
        let shown = |name: &str, room: f64| shorten(name, SMALL, room);
        let widest = |texts: &mut dyn Iterator<Item = &str>, room: f64| {
            texts.map(|name| text::width(&shown(name, room), SMALL, false)).fold(0.0, f64::max)
        };
        let names = widest(&mut self.rows.iter().map(|row| row.name.as_str()), most_names);
        let notes = widest(&mut self.rows.iter().map(|row| row.note.as_str()), most_notes);
        let left = MARGIN + names + 8.0;
        let length = width - left - notes - 6.0 - MARGIN;
        let room = width - 2.0 * MARGIN;
        let mut pen = Pen::default();
        let title = Font { bold: true, ..font(TITLE, INK) };
        let mut y = pen.lines(MARGIN, MARGIN, Hold::Start, title, &wrap(&self.title, TITLE, true, room));
        y = pen.lines(MARGIN, y, Hold::Start, font(SMALL, GREY), &wrap(&self.subtitle, SMALL, false, room)) + 8.0;

        let ends = self.rows.iter().flat_map(|row| &row.spans).map(|span| span.to).fold(0.0, f64::max);
        let axis = Axis::linear(&self.x).format(self.format);
        let axis = if ends > 0.0 { axis.range(0.0, ends) } else { axis };
        let ruler = Ruler::new(&axis, Some((0.0, ends)), &Room { length, level: true, zero: true, air: false });
        let place = |value: f64| left + ruler.place(value) * length;

        let apart = self.rows.iter().skip(1).filter(|row| row.apart).count() as f64;
        let bottom = y + self.rows.len() as f64 * ROW + apart * APART + 4.0;
        for tick in &ruler.ticks {
            let x = place(tick.at);
            let line = Path(vec![Step::Move((x, y)), Step::Line((x, bottom))]);
            pen.put(Shape::path(line).stroke(Stroke::new("#e2e2e2", 1.0)));
            pen.text((x, bottom + LINE * TICK), Hold::Middle, font(TICK, INK), 0.0, &tick.label);
        }
        for (number, row) in self.rows.iter().enumerate() {
            if row.apart && number > 0 {
                y += APART;
            }
            let middle = y + ROW / 2.0;
            let baseline = middle + MIDDLE * SMALL;
            pen.text((left - 8.0, baseline), Hold::End, font(SMALL, INK), 0.0, &shown(&row.name, most_names));
            let note = (width - MARGIN, baseline);
            pen.text(note, Hold::End, font(SMALL, GREY), 0.0, &shown(&row.note, most_notes));
            for span in &row.spans {
                let (from, to) = (place(span.from), place(span.to));
                let wide = (to - from).max(LEAST);
                let mut bar = Shape::rect((from, middle - BAR / 2.0), (wide, BAR)).fill(look(&span.kind));
                bar.title = format!("{}: {}", span.kind, self.format.show(span.to - span.from));
                pen.put(bar);
            }
            y += ROW;
        }
        y = bottom + LINE * TICK + 6.0;
        let label = shorten(&ruler.label, LABEL, length.max(width / 2.0));
        y += LINE * LABEL;
        pen.text((left + length / 2.0, y - 4.0), Hold::Middle, font(LABEL, INK), 0.0, &label);
        y = self.key(&mut pen, width, y + 6.0);
        let (title, caption) = (self.title.clone(), self.caption.clone());
        Drawing { width, height: (y + MARGIN).ceil(), title, caption, items: pen.items }
    }

    /// An entry for every kind, in as many lines as it takes. Gives where they end.
    fn key(&self, pen: &mut Pen, width: f64, mut y: f64) -> f64 {
        let wide = |kind: &str| 14.0 + 6.0 + text::width(kind, LEGEND, false) + 16.0;
        let mut x = MARGIN;
        for kind in self.kinds() {
            if x > MARGIN && x + wide(kind) > width - MARGIN {
                (x, y) = (MARGIN, y + LINE * LEGEND + 3.0);
            }
            let middle = y + LINE * LEGEND / 2.0;
            pen.put(Shape::rect((x, middle - 6.0), (14.0, 12.0)).fill(look(kind)));
            pen.text((x + 20.0, middle + MIDDLE * LEGEND), Hold::Start, font(LEGEND, INK), 0.0, kind);
            x += wide(kind);
        }
        y + LINE * LEGEND + 3.0
    }
}
