//! A plot with its labels around it. How much room they take is measured first, so that the plots of a row line up and
//! no text leaves the drawing. Where bars or markers stand over names that have no room beside each other, the plot is turned on its side,
//! with a row for each name.

use super::{GREY, INK, LABEL, LINE, MARGIN, MIDDLE, Pen, SMALL, font, shape, stroke};
use crate::drawing::{Font, Hold, Item, Path, Place, Shape, Step, Stroke};
use crate::figure::{CLOUD, Drawable, Figure, Mark, Point, Scale, Series, Style, corners, thin, thin_markers};
use crate::palette::colour;
use crate::scale::{Room, Ruler, TICK};
use crate::text::{self, shorten_apart, well_broken, wrap};

const AXIS: &str = "#444444";
const GRID: &str = "#dcdcdc";
const FINE_GRID: &str = "#f1f1f1";
/// How far slanted names turn, and its sine and cosine.
const SLANT: (f64, f64, f64) = (-35.0, 0.573_576, 0.819_152);
/// The same of names that would lie on each other even so.
const STEEP: (f64, f64, f64) = (-90.0, 1.0, 0.0);
/// The least size of theirs.
const SMALLEST: f64 = 9.0;
/// Height of a row of a plot on its side, and of a bar or a marker in it where there are several.
const ROW: (f64, f64) = (20.0, 9.0);
/// The radius of a lone point of a line.
const DOT: f64 = 2.2;
/// Markers along a line are at least this far apart.
const APART: f64 = 14.0;

/// A plot and its labels, measured.
pub(super) struct Panel<'a> {
    pub figure: &'a Figure,
    pub data: Drawable,
    pub width: f64,
    /// Width and height of the plot.
    pub plot: (f64, f64),
    /// Room to the left of the plot.
    left: f64,
    /// Whether it lies on its side: then `x` has the values and `y` the names.
    turned: bool,
    x: Ruler,
    y: Ruler,
    names: Names,
    /// Whether values are written above bars.
    figures: bool,
    title: Vec<String>,
    subtitle: Vec<String>,
    x_label: Vec<String>,
    y_label: Vec<String>,
}

impl<'a> Panel<'a> {
    pub fn new(figure: &'a Figure, (width, height): (f64, f64), letter: Option<char>) -> Panel<'a> {
        let data = figure.drawable();
        let has = |style| figure.series.iter().any(|series| series.style == style);

        // The value is written above each bar if there is room for all. The plot's width is not known yet, but nearly.
        let slots = if let Scale::Categories(names) = &data.x.scale { names.len() as f64 } else { 1.0 };
        let (_, thick) = bar_width(figure, (width - 90.0) / slots);
        let short = |point: &Point| text::width(&figure.y.format.show(point.y), SMALL, false) + 3.0 <= thick;
        let bars = figure.series.iter().zip(&data.runs).filter(|(series, _)| series.style == Style::Bars);
        let figures = has(Style::Bars) && bars.flat_map(|(_, runs)| runs.iter().flatten()).all(short);

        let room = Room { length: height, level: false, zero: has(Style::Bars), air: figures };
        let y = Ruler::new(&data.y, data.y_bounds, &room);
        let y_label = wrap(&y.label, LABEL, false, height);
        let ticks = y.ticks.iter().map(|tick| text::width(&tick.label, TICK, false)).fold(0.0, f64::max);
        let mut left = MARGIN + y_label.len() as f64 * LINE * LABEL + 6.0 + ticks + 8.0;
        let mut right = MARGIN + 4.0;

        // Labels at the ends of the x axis may reach beyond the plot; that takes from its width, which may change the ticks.
        let air = has(Style::Markers) || has(Style::Stated) || has(Style::LineMarkers);
        let (length, x, names) = loop {
            let length = width - left - right;
            let x = Ruler::new(&data.x, data.x_bounds, &Room { length, level: true, zero: false, air });
            let names = Names::new(&x, &data.x.scale, length);
            let (beyond_left, beyond_right) = names.reach(&x, length);
            let (more_left, more_right) = (beyond_left - left + MARGIN / 2.0, beyond_right - right + MARGIN / 2.0);
            if (more_left <= 0.0 && more_right <= 0.0) || length < 120.0 {
                break (length, x, names);
            }
            left += more_left.max(0.0).ceil();
            right += more_right.max(0.0).ceil();
        };
        let room = width - 2.0 * MARGIN;
        let title = letter.map(|letter| wrap(&format!("({letter}) {}", figure.title), LABEL, true, room));
        let subtitle = letter.map(|_| wrap(&figure.subtitle, SMALL, false, room));
        let x_label = wrap(&x.label, LABEL, false, room);
        let (title, subtitle, plot) = (title.unwrap_or_default(), subtitle.unwrap_or_default(), (length, height));
        let turned = names.slant.is_some() && figure.can_turn();
        let upright =
            Panel { figure, data, width, plot, left, turned, x, y, names, figures, title, subtitle, x_label, y_label };
        if turned { upright.turn() } else { upright }
    }

    /// The same on its side.
    fn turn(self) -> Panel<'a> {
        let Scale::Categories(names) = &self.data.x.scale else { return self };
        let has = |style| self.figure.series.iter().any(|series| series.style == style);
        let names = shorten_apart(names.iter(), TICK, 0.45 * self.width);
        let widest = |texts: &mut dyn Iterator<Item = f64>| texts.fold(0.0, f64::max);
        let left = MARGIN + widest(&mut names.iter().map(|name| text::width(name, TICK, false))) + 8.0;
        // Values stand at the end of their rows.
        let figures = self.figure.stands_alone();
        let points = || self.data.runs.iter().flatten().flatten();
        let value = |point: &Point| text::width(&self.figure.y.format.exact(point.y), SMALL, false);
        let values = if figures { widest(&mut points().map(value)) + 10.0 } else { 0.0 };
        let rows = names.len().max(1) as f64;
        let (apart, _) = if has(Style::Bars) { bar_width(self.figure, 1.0) } else { (self.figure.apart(), 0.0) };
        let height = rows * ROW.0.max(f64::from(apart) * ROW.1 / 0.82);
        let mut right = MARGIN + 4.0 + values;
        let room = |length| Room { length, level: true, zero: has(Style::Bars), air: !has(Style::Bars) };
        let mut x = Ruler::new(&self.data.y, self.data.y_bounds, &room(self.width - left - right));
        let mut ticks = Names::new(&x, &Scale::Linear, self.width - left - right);
        let beyond = ticks.reach(&x, self.width - left - right).1 - right + MARGIN / 2.0;
        if beyond > 0.0 {
            right += beyond.ceil();
            x = Ruler::new(&self.data.y, self.data.y_bounds, &room(self.width - left - right));
            ticks = Names::new(&x, &Scale::Linear, self.width - left - right);
        }
        let x_label = wrap(&x.label, LABEL, false, self.width - 2.0 * MARGIN);
        // The first name is at the top.
        let mut y = Ruler::of_names(&names);
        (y.low, y.high) = (y.high, y.low);
        let plot = (self.width - left - right, height);
        Panel { turned: true, plot, left, x, y, names: ticks, figures, x_label, y_label: Vec::new(), ..self }
    }

    /// Height above the plot.
    pub fn head(&self) -> f64 {
        let text = self.title.len() as f64 * LINE * LABEL + self.subtitle.len() as f64 * LINE * SMALL;
        // The upper half of a tick label stands above the plot.
        text + if text > 0.0 { 8.0 } else { 2.0 }
    }

    /// Height below the plot.
    pub fn foot(&self) -> f64 {
        12.0 + self.names.height() + self.x_label.len() as f64 * LINE * LABEL
    }

    /// Draws the panel with its left end at `x`, its text from `head` and its plot from `top`.
    pub fn draw(&self, pen: &mut Pen, x: f64, head: f64, top: f64) {
        let (wide, high) = self.plot;
        let title = Font { bold: true, ..font(LABEL, INK) };
        let below = pen.lines(x + MARGIN, head, Hold::Start, title, &self.title);
        pen.lines(x + MARGIN, below, Hold::Start, font(SMALL, GREY), &self.subtitle);
        let mut inner = Pen::default();
        let axes = self.grid(&mut inner);
        if self.data.x_bounds.is_some() {
            let (ink, texts) = self.series(&mut inner);
            self.marks(&mut inner, ink, texts);
        } else {
            let middle = (wide / 2.0, high / 2.0 + MIDDLE * LABEL);
            inner.text(middle, Hold::Middle, font(LABEL, GREY), 0.0, "no data");
        }
        inner.put(axes);
        self.labels(&mut inner);
        pen.put(Item::Group { shift: (x + self.left, top), items: inner.items });
    }

    /// Where an x is.
    fn across(&self, x: f64) -> f64 {
        self.x.place(x) * self.plot.0
    }

    /// Where a y is.
    fn down(&self, y: f64) -> f64 {
        (1.0 - self.y.place(y)) * self.plot.1
    }

    /// Where a point is, moved along the names by `shift`.
    fn spot(&self, point: &Point, shift: f64) -> Place {
        match self.turned {
            true => (self.across(point.y), self.down(point.x) + shift),
            false => (self.across(point.x) + shift, self.down(point.y)),
        }
    }

    /// Whether the place of a point among the names, and whether its value, is on the plot.
    fn holds(&self, point: &Point) -> (bool, bool) {
        match self.turned {
            true => (self.y.holds(point.x), self.x.holds(point.y)),
            false => (self.x.holds(point.x), self.y.holds(point.y)),
        }
    }

    /// Draws the grid and gives back the axes with their ticks, to be drawn over the data.
    fn grid(&self, pen: &mut Pen) -> Shape {
        let (wide, high) = self.plot;
        let named = matches!(self.data.x.scale, Scale::Categories(_));
        let ticks = |ruler: &Ruler| ruler.ticks.iter().map(|tick| tick.at).collect::<Vec<_>>();
        let mut axes = Path(vec![Step::Move((0.0, 0.0)), Step::Down(high), Step::Across(wide)]);
        for (rows, columns, look, size) in
            [(&self.y.minor, &self.x.minor, FINE_GRID, 2.5), (&ticks(&self.y), &ticks(&self.x), GRID, 5.0)]
        {
            let mut lines = Path::default();
            for y in rows.iter().map(|&at| self.down(at)) {
                if !self.turned {
                    lines.extend([Step::Move((0.0, y)), Step::Across(wide)]);
                }
                axes.extend([Step::Move((-size, y)), Step::Across(0.0)]);
            }
            for x in columns.iter().map(|&at| self.across(at)) {
                if !named || self.turned {
                    lines.extend([Step::Move((x, 0.0)), Step::Down(high)]);
                }
                axes.extend([Step::Move((x, high)), Step::Down(high + size)]);
            }
            if !lines.is_empty() {
                pen.put(Shape::path(lines).stroke(Stroke::new(look, 1.0)));
            }
        }
        Shape::path(axes).stroke(Stroke::new(AXIS, 1.0))
    }

    fn labels(&self, pen: &mut Pen) {
        let (wide, high) = self.plot;
        for tick in &self.y.ticks {
            let place = (-8.0, self.down(tick.at) + MIDDLE * TICK);
            pen.text(place, Hold::End, font(TICK, INK), 0.0, &tick.label);
        }
        for (tick, lines) in self.x.ticks.iter().zip(&self.names.lines) {
            let (x, look) = (self.across(tick.at), font(self.names.size, INK));
            if lines.is_empty() {
                continue;
            }
            if let Some(slant) = self.names.slant {
                let beside = slant.1 * MIDDLE * TICK + slant.2 * 2.0;
                pen.text(
                    (x + beside, high + 8.0 + slant.2 * MIDDLE * TICK),
                    Hold::End,
                    look,
                    slant.0,
                    &lines.join(" "),
                );
            } else {
                pen.lines(x, high + 8.0, Hold::Middle, look, lines);
            }
        }
        // Centred under the plot, unless it is wider than that.
        let widest = self.x_label.iter().map(|line| text::width(line, LABEL, false)).fold(0.0, f64::max);
        let inside = MARGIN + widest / 2.0 - self.left;
        let middle = (wide / 2.0).min(self.width - 2.0 * self.left - inside).max(inside);
        pen.lines(middle, high + 10.0 + self.names.height(), Hold::Middle, font(LABEL, INK), &self.x_label);
        for (line, label) in self.y_label.iter().enumerate() {
            let x = MARGIN - self.left + ((line as f64 + 0.5) * LINE + MIDDLE) * LABEL;
            pen.text((x, high / 2.0), Hold::Middle, font(LABEL, INK), -90.0, label);
        }
    }

    /// Draws the data and gives back where its ink is, by and large, and the boxes of the texts in it.
    fn series(&self, pen: &mut Pen) -> (Vec<Place>, Vec<[f64; 4]>) {
        let slot = match self.turned {
            true => self.plot.1 / self.y.ticks.len().max(1) as f64,
            false => self.plot.0 / self.x.ticks.len().max(1) as f64,
        };
        let (part, most) = if self.figure.has_dots() { (0.8, 18.0) } else { (0.5, 7.0) };
        let apart = |all: f64| if self.figure.dodges(&self.data.x) { (part * slot / all).min(most) } else { 0.0 };
        let (sets, thick) = bar_width(self.figure, slot);
        let mut bars = 0;
        let mut besides: Vec<(usize, f64)> = Vec::new();
        let mut layers = Layers::default();
        for (series, runs) in self.figure.series.iter().zip(&self.data.runs) {
            if series.style == Style::Bars {
                let beside = (f64::from(bars % sets) - f64::from(sets) / 2.0) * thick;
                self.bars(&mut layers, runs, Bar { look: colour(series.slot), beside, thick });
                besides.push((series.slot, beside + thick / 2.0));
                bars += 1;
            } else {
                // What is stated of a bar stands where that does.
                let bar = besides.iter().find(|(slot, _)| *slot == series.slot).map(|(_, beside)| *beside);
                let (nth, all) = self.figure.among(series);
                self.line(&mut layers, series, runs, bar.unwrap_or((nth - (all - 1.0) / 2.0) * apart(all)));
            }
        }
        let inside = [layers.bands.items, layers.bars.items, layers.lines.items].concat();
        let size = (self.plot.0 + 4.0, self.plot.1 + 4.0);
        pen.put(Item::Clip { corner: (-2.0, -2.0), size, items: inside });
        pen.items.extend(layers.over.items);
        (layers.ink, layers.texts)
    }

    /// Draws a series that is no bars, moved sideways by `shift`.
    fn line(&self, layers: &mut Layers, series: &Series, runs: &[Vec<Point>], shift: f64) {
        let look = colour(series.slot);
        let (step, scatter) = (series.style == Style::Step, matches!(series.style, Style::Markers | Style::Stated));
        let marked = scatter || series.style == Style::LineMarkers;
        let cloud = scatter && series.points.len() > CLOUD;
        let [mut line, mut whiskers, mut dots] = [(); 3].map(|()| Path::default());
        let mut shapes: Vec<Item> = Vec::new();
        let mut last = f64::NEG_INFINITY;
        for run in runs {
            let place = |point: &Point| {
                let (x, y) = self.spot(point, 0.0);
                (x / self.plot.0, 1.0 - y / self.plot.1)
            };
            let run = if scatter { thin_markers(run, self.plot.0, place) } else { thin(run, 1.5 * self.plot.0, place) };
            let heights = |y: fn(&Point) -> f64| -> Vec<Place> {
                run.iter().map(|point| (self.across(point.x) + shift, self.down(y(point)))).collect()
            };
            let places: Vec<Place> = run.iter().map(|point| self.spot(point, shift)).collect();
            if !scatter {
                let corners = corners(&places, step);
                line.extend(Path::through(&corners).0);
                layers.ink.extend(corners.windows(2).flat_map(|pair| along(pair[0], pair[1])));
            }
            layers.ink.extend(&places);
            let named = matches!(self.data.x.scale, Scale::Categories(_));
            let banded = !named && !scatter && run.iter().any(|point| point.interval.is_some());
            if banded {
                let mut outline = corners(&heights(|point| point.interval.map_or(point.y, |(_, high)| high)), step);
                let low = corners(&heights(|point| point.interval.map_or(point.y, |(low, _)| low)), step);
                outline.extend(low.iter().rev());
                layers.ink.extend(&outline);
                layers.bands.put(Shape::path(Path::around(&outline)).pale(look, 0.18));
            }
            for (point, &(x, y)) in run.iter().zip(&places).filter(|(point, _)| self.holds(point).0) {
                if let Some(interval) = point.interval.filter(|_| !banded) {
                    whiskers.extend(self.whisker(if self.turned { y } else { x }, interval));
                }
                if self.turned && self.figures {
                    self.value(layers, point, y);
                }
                let near = !scatter && (x - last).abs() < APART && run.len() as f64 * APART > self.plot.0;
                match self.holds(point).1 {
                    true if cloud => dots.extend([Step::Dot((x, y))]),
                    true if marked && !near => {
                        shapes.push(shape(series, look, (x, y)).into());
                        last = x;
                    }
                    // A lone point of a line has no line.
                    true if !marked && run.len() == 1 => {
                        shapes.push(Shape::path(Path::circle((x, y), DOT)).fill(look).into());
                    }
                    _ => {}
                }
            }
        }
        if !line.is_empty() {
            layers.lines.put(Shape::path(line).stroke(stroke(series, look)));
        }
        if !dots.is_empty() {
            let stroke = Stroke { round: true, opacity: 0.6, ..Stroke::new(look, 3.4) };
            layers.over.put(Shape::path(dots).stroke(stroke));
        }
        if !whiskers.is_empty() {
            layers.over.put(Shape::path(whiskers).stroke(Stroke::new(look, 1.3)));
        }
        layers.over.items.extend(shapes);
    }

    /// Draws the bars of a series.
    fn bars(&self, layers: &mut Layers, runs: &[Vec<Point>], Bar { look, beside, thick }: Bar) {
        let gap = if thick > 6.0 { 1.5 } else { 0.0 };
        let ground = if self.y.log { self.plot.1 } else { self.down(0.0).clamp(0.0, self.plot.1) };
        if self.turned {
            return self.level_bars(layers, runs, Bar { look, beside, thick });
        }
        for point in runs.iter().flatten() {
            let left = self.across(point.x) + beside;
            let (centre, y) = (left + thick / 2.0, self.down(point.y));
            // A hairline distinguishes a small value from zero.
            let tall = (y - ground).abs().max(1.0);
            let top = if y > ground { ground } else { ground - tall };
            layers.bars.put(Shape::rect((left + gap / 2.0, top), (thick - gap, tall)).fill(look));
            let rows = (0..=(tall / 6.0).min(100.0) as usize).map(|row| top + 6.0 * row as f64);
            layers.ink.extend(rows.flat_map(|row| along((left, row), (left + thick, row))));
            let mut above = top.max(0.0);
            if let Some(interval) = point.interval {
                let strokes = Path(self.whisker(centre, interval).into());
                layers.over.put(Shape::path(strokes).stroke(Stroke::new(INK, 1.3)));
                above = self.down(interval.1).clamp(0.0, above);
            }
            let cut = self.data.cut && point.y > self.y.high;
            if cut {
                layers.bars.put(gap_of((left, 14.0), (left + thick, 10.0)));
            }
            if (self.figures || cut) && point.y >= 0.0 {
                // Over a bar that reaches the top of the plot there is no room but inside.
                let value = self.figure.y.format.show(point.y);
                let half = text::width(&value, SMALL, false) / 2.0;
                let middle = if cut { centre.min(self.plot.0 - half).max(half) } else { centre };
                let place = (middle, if cut { SMALL + 15.0 } else { (above - 4.0).max(SMALL) });
                layers.texts.push([middle - half, place.1 - SMALL, middle + half, place.1 + 3.0]);
                layers.over.text(place, Hold::Middle, Font { halo: cut, ..font(SMALL, INK) }, 0.0, &value);
            }
        }
    }

    /// Draws the bars of a series in the rows of their names.
    fn level_bars(&self, layers: &mut Layers, runs: &[Vec<Point>], Bar { look, beside, thick }: Bar) {
        let gap = if thick > 6.0 { 1.5 } else { 0.0 };
        let ground = if self.x.log { 0.0 } else { self.across(0.0).clamp(0.0, self.plot.0) };
        for point in runs.iter().flatten() {
            let (end, top) = (self.across(point.y), self.down(point.x) + beside);
            // A hairline distinguishes a small value from zero.
            let long = (end - ground).abs().max(1.0);
            let left = if end < ground { ground - long } else { ground };
            layers.bars.put(Shape::rect((left, top + gap / 2.0), (long, thick - gap)).fill(look));
            if self.data.cut && point.y > self.x.high {
                let at = self.plot.0 - 14.0;
                layers.bars.put(gap_of((at, top + thick), (at + 6.0, top)));
            }
            let middle = top + thick / 2.0;
            layers.ink.extend(along((left, middle), (left + long.min(self.plot.0), middle)));
            if let Some(interval) = point.interval {
                let strokes = Path(self.whisker(middle, interval).into());
                layers.over.put(Shape::path(strokes).stroke(Stroke::new(INK, 1.3)));
            }
            if self.figures {
                self.value(layers, point, middle);
            } else if self.data.cut && point.y > self.x.high {
                let (value, place) =
                    (self.figure.y.format.show(point.y), (self.plot.0 - 18.0, middle + MIDDLE * SMALL));
                layers.over.text(place, Hold::End, Font { halo: true, ..font(SMALL, INK) }, 0.0, &value);
            }
        }
    }

    /// Writes a value at the end of its row.
    fn value(&self, layers: &mut Layers, point: &Point, middle: f64) {
        let (value, end) = (self.figure.y.format.exact(point.y), self.width - self.left - MARGIN);
        layers.over.text((end, middle + MIDDLE * SMALL), Hold::End, font(SMALL, INK), 0.0, &value);
    }

    /// The strokes of a confidence interval, at a place along the names.
    fn whisker(&self, at: f64, (low, high): (f64, f64)) -> [Step; 6] {
        if self.turned {
            let [low, high] = [low, high].map(|value| self.across(value).clamp(0.0, self.plot.0));
            return [
                Step::Move((low, at)),
                Step::Across(high),
                Step::Move((low, at - 3.0)),
                Step::Down(at + 3.0),
                Step::Move((high, at - 3.0)),
                Step::Down(at + 3.0),
            ];
        }
        let [low, high] = [low, high].map(|value| self.down(value).clamp(0.0, self.plot.1));
        [
            Step::Move((at, low)),
            Step::Down(high),
            Step::Move((at - 3.0, low)),
            Step::Across(at + 3.0),
            Step::Move((at - 3.0, high)),
            Step::Across(at + 3.0),
        ]
    }

    /// Draws the reference lines, each with its label where it hides the least.
    fn marks(&self, pen: &mut Pen, mut ink: Vec<Place>, mut taken: Vec<[f64; 4]>) {
        let (wide, high) = self.plot;
        let upright = |mark: &Mark| mark.upright != self.turned;
        let ruler = |mark: &Mark| if upright(mark) { &self.x } else { &self.y };
        let marks: Vec<&Mark> =
            self.figure.marks.iter().filter(|mark| mark.at.is_finite() && ruler(mark).holds(mark.at)).collect();
        for mark in &marks {
            let (x, y) = (self.across(mark.at), self.down(mark.at));
            let (from, to) = if upright(mark) { ((x, 0.0), (x, high)) } else { ((0.0, y), (wide, y)) };
            let stroke = Stroke { dashes: &[1.5, 3.0], round: true, ..Stroke::new(GREY, 1.2) };
            pen.put(Shape::path(Path::through(&[from, to])).stroke(stroke));
            ink.extend(along(from, to));
        }
        for mark in marks {
            let lines = wrap(&mark.label, SMALL, false, 0.7 * wide);
            let tall = lines.len() as f64 * LINE * SMALL;
            let across = lines.iter().map(|line| text::width(line, SMALL, false)).fold(0.0, f64::max);
            let steps = (0..=16).map(|step| f64::from(step) / 16.0);
            let places: Vec<Place> = if upright(mark) {
                let x = self.across(mark.at);
                steps.flat_map(|part| [x + 5.0, x - 5.0 - across].map(|x| (x, part * (high - tall)))).collect()
            } else {
                let y = self.down(mark.at);
                let along = steps.rev().map(|part| 5.0 + part * (wide - across - 10.0));
                along.flat_map(|x| [y - 1.0 - tall, y + 1.0].map(|y| (x, y))).collect()
            };
            let hidden = |&(x, y): &Place| {
                let (right, low) = (x + across, y + tall);
                let over = ink.iter().filter(|p| p.0 > x - 3.0 && p.0 < right + 3.0 && p.1 > y && p.1 < low).count();
                let on = taken.iter().filter(|t| x < t[2] && right > t[0] && y < t[3] && low > t[1]).count();
                let out = x < 0.0 || right > wide || y < 0.0 || low > high;
                over + 1_000 * on + 1_000_000 * usize::from(out)
            };
            let Some((x, y)) = places.into_iter().min_by_key(hidden) else { continue };
            let (x, y) = (x.min(wide - across).max(0.0), y.min(high - tall).max(0.0));
            taken.push([x, y, x + across, y + tall]);
            pen.lines(x, y, Hold::Start, Font { halo: true, ..font(SMALL, "#444444") }, &lines);
        }
    }
}

/// What is drawn in which order, and where there is ink.
#[derive(Default)]
struct Layers {
    bands: Pen,
    bars: Pen,
    lines: Pen,
    over: Pen,
    ink: Vec<Place>,
    /// Boxes of texts: left, top, right, bottom.
    texts: Vec<[f64; 4]>,
}

/// What the bars of a series have in common: colour, place beside the category's middle, thickness.
struct Bar {
    look: &'static str,
    beside: f64,
    thick: f64,
}

/// The gap in a bar that goes on beyond the plot: a stripe from one corner to the other.
fn gap_of(from: Place, to: Place) -> Shape {
    Shape::path(Path::through(&[from, to])).stroke(Stroke::new(crate::drawing::PAPER, 3.0))
}

/// How many bars stand beside each other in a category and how thick they are.
fn bar_width(figure: &Figure, slot: f64) -> (u32, f64) {
    let sets = figure.series.iter().filter(|series| series.style == Style::Bars).count() as u32;
    let sets = if figure.bars_stand_alone() { 1 } else { sets.max(1) };
    (sets, (0.82 * slot / f64::from(sets)).min(56.0))
}

/// How the names along an axis are set: level, each in lines of its own, or slanting up to their place.
struct Names {
    lines: Vec<Vec<String>>,
    size: f64,
    /// How far they turn, and its sine and cosine.
    slant: Option<(f64, f64, f64)>,
}

impl Names {
    fn new(ruler: &Ruler, scale: &Scale, length: f64) -> Names {
        let labels = || ruler.ticks.iter().map(|tick| &tick.label);
        if !matches!(scale, Scale::Categories(_)) {
            return Names { lines: labels().map(|label| vec![label.clone()]).collect(), size: TICK, slant: None };
        }
        let slot = length / ruler.ticks.len().max(1) as f64;
        // A little smaller is better than broken, broken better than slanted.
        for (most, size) in [(1, TICK), (1, SMALL), (1, 11.0), (3, TICK), (3, SMALL)] {
            let lines: Vec<Vec<String>> = labels().map(|label| wrap(label, size, false, slot - 4.0)).collect();
            let good = |(lines, label): (&Vec<String>, &String)| lines.len() <= most && well_broken(lines, label);
            if lines.iter().zip(labels()).all(good) {
                return Names { lines, size, slant: None };
            }
        }
        if SLANT.1 * slot >= 1.05 * TICK {
            let lines = shorten_apart(labels(), TICK, 150.0).into_iter().map(|label| vec![label]).collect();
            return Names { lines, size: TICK, slant: Some(SLANT) };
        }
        // As large as there is room, and in the end not all of them.
        let size = (slot / 1.2).clamp(SMALLEST, TICK).floor();
        let every = (1.2 * size / slot).ceil().max(1.0) as usize;
        let line = |(at, label)| match at % every {
            0 => vec![label],
            _ => Vec::new(),
        };
        let lines = shorten_apart(labels(), size, 150.0).into_iter().enumerate().map(line).collect();
        Names { lines, size, slant: Some(STEEP) }
    }

    fn width(&self, line: &str) -> f64 {
        text::width(line, self.size, false)
    }

    /// How far they reach beyond the left and the right end of a ruler.
    fn reach(&self, ruler: &Ruler, length: f64) -> (f64, f64) {
        let (mut left, mut right) = (0.0f64, 0.0f64);
        for (tick, lines) in ruler.ticks.iter().zip(&self.lines) {
            let at = ruler.place(tick.at) * length;
            for wide in lines.iter().map(|line| self.width(line)) {
                let (before, after) = match self.slant {
                    Some((_, sine, cosine)) => (cosine * wide + sine * TICK, 0.0),
                    None => (wide / 2.0, wide / 2.0),
                };
                (left, right) = (left.max(before - at), right.max(at + after - length));
            }
        }
        (left, right)
    }

    fn height(&self) -> f64 {
        if let Some((_, sine, cosine)) = self.slant {
            let widest = self.lines.iter().flatten().map(|line| self.width(line)).fold(0.0, f64::max);
            return sine * widest + cosine * self.size;
        }
        self.lines.iter().map(Vec::len).max().unwrap_or(0) as f64 * LINE * self.size
    }
}

/// Places along a line, a few units apart.
fn along(from: Place, to: Place) -> impl Iterator<Item = Place> {
    let steps = (((to.0 - from.0).abs() + (to.1 - from.1).abs()) / 6.0).clamp(1.0, 200.0) as usize;
    (0..steps).map(move |step| {
        let part = step as f64 / steps as f64;
        (from.0 + part * (to.0 - from.0), from.1 + part * (to.1 - from.1))
    })
}
