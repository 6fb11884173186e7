//! A fabric drawn: boxes, lines, and what happened on them.

use super::{GREY, INK, LEGEND, LINE, MARGIN, MIDDLE, Pen, SMALL, TITLE, font};
use crate::drawing::{Drawing, Font, Hold, Item, Path, Place as Point, Shape, Step, Stroke};
use crate::fabric::{Layout, Picture, Places, Spot};
use crate::format::Format;
use crate::text::{self, shorten, wrap};
use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// Width of a picture.
const WIDTH: f64 = 960.0;
/// The least room for a box in a row, so that its name can be read.
const ROOM: f64 = 11.0;
/// Font size in boxes, as far as there is room.
const NAME: f64 = 11.0;
/// A link on which nothing happened.
const QUIET: &str = "#bcc3cb";
/// A cycle of waits.
const CYCLE: &str = "#b4005a";
/// Colours of a direction by share of the time paused: lighter is less, for any colour vision and without colours.
const PAUSED: [(f64, &str, &str); 4] = [
    (0.01, "#f0bf5f", "up to 1 %"),
    (0.1, "#ea8f2c", "up to 10 %"),
    (0.3, "#cf5410", "up to 30 %"),
    (1.0, "#7d2604", "more"),
];
/// Colours of a switch by the most it held, as a share of the fullest.
const HELD: [(f64, &str); 4] = [(0.25, "#e3eef8"), (0.5, "#bdd7ec"), (0.75, "#8fbbdd"), (1.0, "#5f9dcd")];

/// Room for hosts around the switches at the edge of a picture.
const AROUND: f64 = 56.0;

/// How wide and high the places of switches are, and where they begin.
fn extent(spots: &[Spot]) -> (Point, Point) {
    let span = |of: fn(&Spot) -> f64| {
        let low = spots.iter().map(of).fold(f64::MAX, f64::min);
        (spots.iter().map(of).fold(f64::MIN, f64::max) - low, low)
    };
    let (x, y) = (span(|spot| spot.at.0), span(|spot| spot.at.1));
    ((x.0, y.0), (x.1, y.1))
}

/// The distance of the two switches that are nearest to each other.
fn nearest(spots: &[Spot]) -> f64 {
    let far = |a: &Spot, b: &Spot| libm::hypot(a.at.0 - b.at.0, a.at.1 - b.at.1);
    let pairs = spots.iter().enumerate().flat_map(|(at, one)| spots[at + 1..].iter().map(move |other| (one, other)));
    pairs.map(|(a, b)| far(a, b)).fold(f64::MAX, f64::min)
}

/// How long a unit is: so that the picture fills its width, and boxes stay apart.
fn scale(spots: &[Spot]) -> f64 {
    let ((wide, high), _) = extent(spots);
    let fits = ((WIDTH - 2.0 * (MARGIN + AROUND)) / wide.max(0.1)).min(720.0 / high.max(0.1));
    fits.max(52.0 / nearest(spots))
}

/// A box and how its name stands in it.
#[derive(Clone, Copy, Default)]
struct Place {
    x: f64,
    y: f64,
    wide: f64,
    high: f64,
    size: f64,
    upright: bool,
}

impl Place {
    /// The last point of a line from the middle of the box towards `(x, y)` that is still in it.
    fn edge(&self, (x, y): Point) -> Point {
        let (dx, dy) = (x - self.x, y - self.y);
        let reach = (self.wide / 2.0 / dx.abs().max(1e-9)).min(self.high / 2.0 / dy.abs().max(1e-9)).min(1.0);
        (self.x + dx * reach, self.y + dy * reach)
    }
}

/// A line between two boxes, moved to the right of its direction.
#[derive(Clone, Copy)]
struct Curve {
    from: Point,
    bend: Point,
    to: Point,
}

impl Curve {
    fn at(&self, t: f64) -> Point {
        let mix = |a: f64, b: f64, c: f64| (1.0 - t) * (1.0 - t) * a + 2.0 * t * (1.0 - t) * b + t * t * c;
        (mix(self.from.0, self.bend.0, self.to.0), mix(self.from.1, self.bend.1, self.to.1))
    }

    fn steps(&self) -> [Step; 2] {
        [Step::Move(self.from), Step::Bend(self.bend, self.to)]
    }

    fn path(&self) -> Path {
        Path(self.steps().into())
    }

    /// An arrowhead at a share of the curve's length.
    fn head(&self, t: f64, size: f64) -> Path {
        let ((x, y), (bx, by)) = (self.at(t), self.at(t - 0.02));
        let long = libm::hypot(x - bx, y - by).max(1e-9);
        let (ux, uy) = ((x - bx) / long * size, (y - by) / long * size);
        let back = |side: f64| (x - ux - side * uy * 0.8, y - uy + side * ux * 0.8);
        Path::around(&[(x + ux, y + uy), back(1.0), back(-1.0)])
    }
}

/// A picture being drawn.
struct Canvas<'a> {
    picture: &'a Picture,
    layout: Layout,
    places: Vec<Place>,
    /// The row of every item, if there are rows.
    rows: Vec<Option<usize>>,
    width: f64,
    bottom: f64,
}

impl Picture {
    /// The picture as SVG.
    pub fn svg(&self) -> String {
        self.drawing().svg()
    }

    /// The picture as a drawing.
    pub fn drawing(&self) -> Drawing {
        let layout = self.layout();
        let width = match &layout.places {
            Places::Circle(circle) => WIDTH.max(2.0 * radius(circle.len()) + 300.0),
            Places::Spots(spots) => WIDTH.max(extent(spots).0.0 * scale(spots) + 2.0 * (MARGIN + AROUND)),
            Places::Rows(rows) => {
                let most = rows.iter().map(Vec::len).max().unwrap_or(0);
                (most as f64 * ROOM + 2.0 * MARGIN).max(WIDTH)
            }
        };
        let room = width - 2.0 * MARGIN;
        let mut pen = Pen::default();
        let title = Font { bold: true, ..font(TITLE, INK) };
        let mut y = pen.lines(MARGIN, MARGIN, Hold::Start, title, &wrap(&self.title, TITLE, true, room));
        y = pen.lines(MARGIN, y, Hold::Start, font(SMALL, GREY), &wrap(&self.subtitle, SMALL, false, room));
        let canvas = Canvas::new(self, layout, width, y + 12.0);
        canvas.links(&mut pen);
        canvas.boxes(&mut pen);
        canvas.cycle(&mut pen);
        y = canvas.legend(&mut pen);
        for (place, wait) in self.cycle.iter().enumerate() {
            let name = |at: u32| self.nodes.get(at as usize).map_or("?", |node| node.name.as_str());
            let label = if wait.label.is_empty() { String::new() } else { format!(" ({})", wait.label) };
            let next = if place + 1 == self.cycle.len() { 1 } else { place + 2 };
            let line = format!("{}. {} → {}{label} waits for {next}", place + 1, name(wait.from), name(wait.to));
            y = pen.lines(MARGIN, y, Hold::Start, font(SMALL, INK), &wrap(&line, SMALL, false, room));
        }
        let (title, caption) = (self.title.clone(), self.caption.clone());
        Drawing { width, height: (y + MARGIN).ceil(), title, caption, items: pen.items }
    }
}

/// The radius at which so many switches have room.
fn radius(switches: usize) -> f64 {
    (switches as f64 * 64.0 / TAU).clamp(130.0, 520.0)
}

impl<'a> Canvas<'a> {
    fn new(picture: &'a Picture, layout: Layout, width: f64, top: f64) -> Canvas<'a> {
        let places = vec![Place::default(); layout.items.len()];
        let rows = vec![None; layout.items.len()];
        let mut canvas = Canvas { picture, layout, places, rows, width, bottom: top };
        match canvas.layout.places.clone() {
            Places::Rows(rows) => canvas.in_rows(&rows, top),
            Places::Circle(circle) => canvas.in_circle(&circle, top),
            Places::Spots(spots) => canvas.at_spots(&spots, top),
        }
        canvas
    }

    fn widest(&self, row: &[usize], size: f64) -> f64 {
        row.iter().map(|&item| text::width(&self.layout.items[item].name, size, false)).fold(0.0, f64::max)
    }

    fn in_rows(&mut self, rows: &[Vec<usize>], top: f64) {
        let loops = self.picture.links.iter().any(|&(a, b)| self.row_of(rows, a) == self.row_of(rows, b));
        let mut y = top + if loops { 46.0 } else { 0.0 };
        for (level, row) in rows.iter().enumerate().rev() {
            let step = (self.width - 2.0 * MARGIN) / row.len() as f64;
            let level_width = self.widest(row, NAME) + 10.0;
            let upright = level_width > step * 0.94;
            let size = if upright { NAME.min(step * 0.8) } else { NAME };
            let (wide, high) = match upright {
                true => ((size + 5.0).min(step * 0.86), self.widest(row, size) + 8.0),
                false => (level_width.max(34.0).min(step * 0.94), 20.0),
            };
            for (place, &item) in row.iter().enumerate() {
                let x = MARGIN + step * (place as f64 + 0.5);
                self.places[item] = Place { x, y: y + high / 2.0, wide, high, size, upright };
                self.rows[item] = Some(level);
            }
            y += high + if level == 0 { 14.0 } else { 120.0 };
        }
        self.bottom = y;
    }

    fn row_of(&self, rows: &[Vec<usize>], node: u32) -> Option<usize> {
        let item = self.layout.item_of[node as usize];
        rows.iter().position(|row| row.contains(&item))
    }

    fn in_circle(&mut self, circle: &[(usize, Vec<usize>)], top: f64) {
        let inner = radius(circle.len());
        let names = |hosts: bool| -> Vec<usize> {
            (0..self.layout.items.len()).filter(|&item| self.layout.items[item].host == hosts).collect()
        };
        let (widest_switch, widest_host) = (self.widest(&names(false), NAME), self.widest(&names(true), NAME));
        // Names are drawn as far as there is room along the circle.
        let room = TAU * inner / circle.len().max(1) as f64;
        let outer = inner + 92.0;
        let most = circle.iter().map(|(_, hosts)| hosts.len()).max().unwrap_or(0).max(1);
        let host_room = TAU * outer / circle.len().max(1) as f64 * 0.86 / most as f64;
        let fit = |widest: f64, room: f64| {
            if room > 14.0 { (NAME * ((room - 6.0) / widest.max(1.0)).max(0.62)).min(NAME) } else { 0.0 }
        };
        let (switch_size, host_size) = (fit(widest_switch, room), fit(widest_host, host_room.max(30.0)));
        let centre = (self.width / 2.0, top + outer + 24.0);
        let first = if circle.len() == 2 { TAU / 2.0 } else { -TAU / 4.0 };
        let at = |radius: f64, angle: f64| (centre.0 + radius * libm::cos(angle), centre.1 + radius * libm::sin(angle));
        for (place, (switch, hosts)) in circle.iter().enumerate() {
            let share = TAU / circle.len() as f64;
            let angle = first + share * place as f64;
            let width = |item: usize, size: f64| text::width(&self.layout.items[item].name, size, false) + 8.0;
            let (x, y) = at(inner, angle);
            let wide = width(*switch, switch_size).max(if switch_size > 0.0 { 26.0 } else { 10.0 });
            let high = if switch_size > 0.0 { 20.0 } else { 10.0 };
            let mut placed = vec![(*switch, Place { x, y, wide, high, size: switch_size, upright: false })];
            for (number, &host) in hosts.iter().enumerate() {
                let spread = share.min(TAU / 3.0) * 0.86;
                let turn = angle + spread * ((number as f64 + 0.5) / hosts.len() as f64 - 0.5);
                let (x, y) = at(outer, turn);
                // Where names would touch, hosts are dots.
                let crowded = host_room < 20.0;
                let size = if crowded { 0.0 } else { host_size };
                let (wide, high) = if crowded { (6.0, 6.0) } else { (width(host, size), 16.0) };
                placed.push((host, Place { x, y, wide, high, size, upright: false }));
            }
            placed.into_iter().for_each(|(item, place)| self.places[item] = place);
        }
        self.bottom = centre.1 + outer + 34.0;
    }

    fn at_spots(&mut self, spots: &[Spot], top: f64) {
        let ((wide, high), (left, up)) = extent(spots);
        let scale = scale(spots);
        let room = nearest(spots) * scale;
        let (from, down) = ((self.width - wide * scale) / 2.0, top + AROUND);
        let reach = (room * 0.45).clamp(24.0, 42.0);
        for spot in spots {
            let (x, y) = (from + (spot.at.0 - left) * scale, down + (spot.at.1 - up) * scale);
            let name = text::width(&self.layout.items[spot.item].name, NAME, false) + 8.0;
            let size = (NAME * ((room * 0.7 - 6.0) / name).clamp(0.6, 1.0)).min(NAME);
            let wide = text::width(&self.layout.items[spot.item].name, size, false) + 8.0;
            self.places[spot.item] = Place { x, y, wide: wide.max(22.0), high: 17.0, size, upright: false };
            // Hosts are dots, unless there are few with room for their names.
            let named = spot.hosts.len() == 1 && room > 90.0;
            let spread = (spot.hosts.len() as f64 - 1.0).min(6.0) * 0.3;
            for (number, &host) in spot.hosts.iter().enumerate() {
                let turn = spread * ((number as f64 + 0.5) / spot.hosts.len() as f64 - 0.5);
                let (x, y) = (x + reach * libm::cos(spot.out + turn), y + reach * libm::sin(spot.out + turn));
                let wide = text::width(&self.layout.items[host].name, 9.0, false) + 6.0;
                let (wide, high, size) = if named { (wide, 14.0, 9.0) } else { (6.0, 6.0, 0.0) };
                self.places[host] = Place { x, y, wide, high, size, upright: false };
            }
        }
        self.bottom = down + high * scale + AROUND;
    }

    /// The line from item to item, so far to the right.
    fn curve(&self, from: usize, to: usize, right: f64) -> Curve {
        let (a, b) = (self.places[from], self.places[to]);
        let level = self.rows[from].is_some() && self.rows[from] == self.rows[to];
        let (mut start, mut end) = match (self.rows[from], self.rows[to]) {
            _ if level => ((a.x, a.y - a.high / 2.0), (b.x, b.y - b.high / 2.0)),
            (Some(low), Some(high)) if low < high => ((a.x, a.y - a.high / 2.0), (b.x, b.y + b.high / 2.0)),
            (Some(_), Some(_)) => ((a.x, a.y + a.high / 2.0), (b.x, b.y - b.high / 2.0)),
            _ => (a.edge((b.x, b.y)), b.edge((a.x, a.y))),
        };
        let (dx, dy) = (end.0 - start.0, end.1 - start.1);
        let long = libm::hypot(dx, dy).max(1e-9);
        let (ox, oy) = (-dy / long * right, dx / long * right);
        // Lines meet at narrow boxes: there they are moved less.
        let at_ends = |place: &Place| {
            if self.rows[from].is_some() && !level { (place.wide * 0.3 / right.abs().max(1e-9)).min(1.0) } else { 1.0 }
        };
        let (ka, kb) = (at_ends(&a), at_ends(&b));
        start = (start.0 + ox * ka, start.1 + oy * ka);
        end = (end.0 + ox * kb, end.1 + oy * kb);
        let lift = if level { 60.0_f64.min(20.0 + long * 0.12) + right } else { 0.0 };
        let bend = ((start.0 + end.0) / 2.0 + ox, (start.1 + end.1) / 2.0 + oy - lift);
        Curve { from: start, bend, to: end }
    }

    fn links(&self, pen: &mut Pen) {
        let item = |node: u32| self.layout.item_of[node as usize];
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for &(a, b) in &self.picture.links {
            let (a, b) = (item(a).min(item(b)), item(a).max(item(b)));
            if a != b {
                pairs.push((a, b));
            }
        }
        pairs.sort_unstable();
        pairs.dedup();
        let thin = if pairs.len() > 1000 { 0.4 } else { 0.9 };
        let mut plain = Path::default();
        pairs.iter().for_each(|&(a, b)| plain.extend(self.curve(a, b, 0.0).steps()));
        pen.put(Shape::path(plain).stroke(Stroke::new(QUIET, thin)));
        // Of what is drawn as one, the worst.
        let mut loads: BTreeMap<(usize, usize), (f64, f64)> = BTreeMap::new();
        for load in &self.picture.loads {
            let (from, to) = (item(load.from), item(load.to));
            if from != to {
                let worst = loads.entry((from, to)).or_insert((0.0, 0.0));
                *worst = (worst.0.max(load.paused), worst.1.max(load.used));
            }
        }
        let mut order: Vec<_> = loads.into_iter().collect();
        order.sort_by(|a, b| a.1.0.total_cmp(&b.1.0).then(a.0.cmp(&b.0)));
        for ((from, to), (paused, used)) in
            order.into_iter().filter(|(_, (paused, used))| *paused > 0.0 || *used > 0.005)
        {
            let colour = PAUSED.iter().find(|(most, ..)| paused <= *most).map_or(PAUSED[3].1, |(_, colour, _)| *colour);
            let colour = if paused > 0.0 { colour } else { "#94a1ae" };
            let width = 0.7 + 3.0 * used.clamp(0.0, 1.0) + if paused > 0.0 { 0.9 } else { 0.0 };
            let curve = self.curve(from, to, 0.6 + width / 2.0);
            pen.put(Shape::path(curve.path()).stroke(Stroke::new(colour, width)));
            if paused > 0.0 {
                pen.put(Shape::path(curve.head(0.6, 2.6 + width / 2.0)).fill(colour));
            }
        }
    }

    fn fullest(&self) -> f64 {
        self.picture.nodes.iter().filter_map(|node| node.peak).fold(0.0, f64::max)
    }

    fn boxes(&self, pen: &mut Pen) {
        let fullest = self.fullest();
        let mut waits = vec![false; self.layout.items.len()];
        for wait in &self.picture.cycle {
            for end in [wait.from, wait.to] {
                waits[self.layout.item_of[end as usize]] = true;
            }
        }
        for (at, (item, place)) in self.layout.items.iter().zip(&self.places).enumerate() {
            let share = item.peak.filter(|_| fullest > 0.0).map_or(0.0, |peak| peak / fullest);
            let full = HELD.iter().find(|(most, _)| share <= *most).map_or(HELD[3].1, |(_, colour)| *colour);
            let fill = if share > 0.0 {
                full
            } else if item.host {
                "#f6f7f9"
            } else {
                "#ffffff"
            };
            let (edge, thick) = if waits[at] {
                (CYCLE, 1.8)
            } else if item.host {
                ("#98a1ab", 0.7)
            } else {
                ("#3c444d", 1.0)
            };
            let (corner, size) = ((place.x - place.wide / 2.0, place.y - place.high / 2.0), (place.wide, place.high));
            let round = if item.host { 1.5 } else { 4.0_f64.min(place.wide / 3.0) };
            let edged = |corner: Point, fill: &'static str| {
                Shape::round_rect(corner, size, round).fill(fill).stroke(Stroke::new(edge, thick))
            };
            // Several drawn as one stand out as a stack.
            if item.members.len() > 1 {
                pen.put(edged((corner.0 + 2.5, corner.1 - 2.5), "#ffffff"));
            }
            let held = item.peak.map_or(String::new(), |peak| format!(": at most {}", Format::Bytes.show(peak)));
            pen.put(Shape { title: format!("{}{held}", item.name), ..edged(corner, fill) });
            if place.size >= 3.0 {
                match place.upright {
                    false => {
                        let name = shorten(&item.name, place.size, place.wide - 2.0);
                        pen.text(
                            (place.x, place.y + MIDDLE * place.size),
                            Hold::Middle,
                            font(place.size, INK),
                            0.0,
                            &name,
                        );
                    }
                    true => {
                        let spot = (place.x + MIDDLE * place.size, place.y);
                        pen.text(spot, Hold::Middle, font(place.size, INK), -90.0, &item.name);
                    }
                }
            }
        }
    }

    fn cycle(&self, pen: &mut Pen) {
        let mut taken: Vec<Point> = Vec::new();
        let mut badges = Vec::new();
        for (place, wait) in self.picture.cycle.iter().enumerate() {
            let item = |node: u32| self.layout.item_of[node as usize];
            let (from, to) = (item(wait.from), item(wait.to));
            if from == to {
                continue;
            }
            let curve = self.curve(from, to, 4.0);
            pen.put(Shape::path(curve.path()).stroke(Stroke::new(CYCLE, 3.2)));
            pen.put(Shape::path(curve.head(0.86, 6.5)).fill(CYCLE));
            let apart = |&(x, y): &Point| taken.iter().all(|&(a, b)| libm::hypot(x - a, y - b) > 19.0);
            let spots = [0.5, 0.35, 0.65, 0.25, 0.72, 0.42, 0.58].map(|t| curve.at(t));
            let spot = spots.into_iter().find(apart).unwrap_or(spots[0]);
            taken.push(spot);
            badges.push((place + 1, spot));
        }
        for (number, (x, y)) in badges {
            let badge = Shape::path(Path::circle((x, y), 8.5)).fill("#ffffff");
            pen.put(badge.stroke(Stroke::new(CYCLE, 1.4)));
            let size = if number < 100 { 10.0 } else { 8.0 };
            let bold = Font { bold: true, ..font(size, CYCLE) };
            pen.text((x, y + MIDDLE * size), Hold::Middle, bold, 0.0, &number.to_string());
        }
    }

    /// What the looks mean. Gives back where it ends.
    fn legend(&self, pen: &mut Pen) -> f64 {
        let mut entries: Vec<(Vec<Item>, String)> = Vec::new();
        let line = |colour: &'static str, width: f64| -> Vec<Item> {
            let line = Path(vec![Step::Move((0.0, 0.0)), Step::Across(22.0)]);
            vec![Shape::path(line).stroke(Stroke::new(colour, width)).into()]
        };
        let square = |corner: Point, fill: &'static str| -> Item {
            Shape::round_rect(corner, (14.0, 12.0), 2.5).fill(fill).stroke(Stroke::new("#3c444d", 1.0)).into()
        };
        const CORNER: Point = (4.0, -6.0);
        if self.picture.loads.iter().any(|load| load.paused > 0.0) {
            for (place, (_, colour, text)) in PAUSED.iter().enumerate() {
                let text = if place == 0 { format!("paused {text} of the time") } else { text.to_string() };
                entries.push((line(colour, 3.0), text));
            }
        }
        if self.picture.loads.iter().any(|load| load.used > 0.005) {
            entries.push((line("#94a1ae", 1.2), "carried little".into()));
            entries.push((line("#94a1ae", 3.7), "all it can".into()));
        }
        let fullest = self.fullest();
        if fullest > 0.0 {
            entries.push((vec![square(CORNER, HELD[0].1)], "held little".into()));
            entries.push((vec![square(CORNER, HELD[3].1)], format!("at most {}", Format::Bytes.show(fullest))));
        }
        if !self.picture.cycle.is_empty() {
            entries.push((line(CYCLE, 3.2), "waits for the next in the cycle".into()));
        }
        if self.layout.items.iter().any(|item| item.members.len() > 1) {
            let stack = vec![square((6.0, -8.0), "#ffffff"), square(CORNER, "#ffffff")];
            entries.push((stack, "several, the worst of them shown".into()));
        }
        let (mut x, mut y) = (MARGIN, self.bottom);
        if entries.is_empty() {
            return y;
        }
        for (sample, name) in entries {
            let wide = 28.0 + text::width(&name, LEGEND, false) + 18.0;
            if x + wide > self.width - MARGIN && x > MARGIN {
                (x, y) = (MARGIN, y + LINE * LEGEND + 4.0);
            }
            let middle = y + LINE * LEGEND / 2.0;
            pen.put(Item::Group { shift: (x, middle), items: sample });
            pen.text((x + 28.0, middle + MIDDLE * LEGEND), Hold::Start, font(LEGEND, INK), 0.0, &name);
            x += wide;
        }
        y + LINE * LEGEND + 10.0
    }
}
