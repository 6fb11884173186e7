//! Heat maps as drawings.

use super::{FIGURE, GREY, INK, LABEL, LINE, MARGIN, MIDDLE, Pen, SMALL, TITLE, font};
use crate::drawing::{Colour, Drawing, Font, Hold, Shape, Stroke};
use crate::heat::Heat;
use crate::text::{self, shorten, wrap};

/// The least width of a cell with a number in it, and the height of one.
const CELL: (f64, f64) = (44.0, 30.0);
/// The largest part of the drawing that the names of the rows take.
const NAMES: f64 = 130.0;

impl Heat {
    /// The map as SVG.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// The map as a drawing.
    pub fn drawing(&self) -> Drawing {
        let (columns, rows) = (self.x.1.len().max(1) as f64, self.y.1.len().max(1) as f64);
        let shown = |name: &String| shorten(name, SMALL, NAMES);
        let names = self.y.1.iter().map(|name| text::width(&shown(name), SMALL, false)).fold(0.0, f64::max);
        let left = MARGIN + LINE * LABEL + 4.0 + names + 6.0;
        let width = FIGURE.0.max(left + columns * CELL.0 + MARGIN);
        let cell = (width - left - MARGIN) / columns;
        let room = width - 2.0 * MARGIN;
        let mut pen = Pen::default();
        let title = Font { bold: true, ..font(TITLE, INK) };
        let mut y = pen.lines(MARGIN, MARGIN, Hold::Start, title, &wrap(&self.title, TITLE, true, room));
        y = pen.lines(MARGIN, y, Hold::Start, font(SMALL, GREY), &wrap(&self.subtitle, SMALL, false, room)) + 8.0;
        let bottom = y + rows * CELL.1;
        for (row, values) in self.values.iter().enumerate() {
            let top = bottom - (row + 1) as f64 * CELL.1;
            for (column, value) in values.iter().enumerate() {
                let x = left + column as f64 * cell;
                let middle = (x + cell / 2.0, top + CELL.1 / 2.0 + MIDDLE * SMALL);
                let (fill, ink): (Colour, _) = match value.filter(|value| value.is_finite()) {
                    Some(value) => {
                        let (fill, ink) = self.look(value);
                        (fill.into(), ink)
                    }
                    None => ("#f0f0f0".into(), GREY),
                };
                let square = Shape::rect((x, top), (cell, CELL.1)).fill(fill);
                pen.put(square.stroke(Stroke::new("#ffffff", 1.0)));
                let number =
                    value.filter(|value| value.is_finite()).map_or("–".into(), |value| self.format.show(value));
                pen.text(middle, Hold::Middle, font(SMALL, ink), 0.0, &number);
            }
            if let Some(name) = self.y.1.get(row) {
                let place = (left - 6.0, top + CELL.1 / 2.0 + MIDDLE * SMALL);
                pen.text(place, Hold::End, font(SMALL, INK), 0.0, &shown(name));
            }
        }
        for (column, name) in self.x.1.iter().enumerate() {
            let place = (left + (column as f64 + 0.5) * cell, bottom + LINE * SMALL);
            pen.text(place, Hold::Middle, font(SMALL, INK), 0.0, &shorten(name, SMALL, cell - 4.0));
        }
        let below = bottom + LINE * SMALL + 4.0;
        let label = shorten(&self.x.0, LABEL, width - left);
        let end = below + LINE * LABEL;
        pen.text((left + columns * cell / 2.0, end - 4.0), Hold::Middle, font(LABEL, INK), 0.0, &label);
        let upright = (MARGIN + LABEL, (y + bottom) / 2.0);
        let label = shorten(&self.y.0, LABEL, (bottom - y).max(80.0));
        pen.text(upright, Hold::Middle, font(LABEL, INK), -90.0, &label);
        let (title, caption) = (self.title.clone(), String::new());
        Drawing { width, height: (end + MARGIN).ceil(), title, caption, items: pen.items }
    }
}
