//! A drawing: shapes and texts in order. It is written as SVG here, and painted in [`png`](crate::png).

use crate::text::{FAMILY, escape};
use std::borrow::Cow;
use std::fmt::{self, Display, Write};

/// A place, to the right and down from the upper left.
pub(crate) type Place = (f64, f64);

/// A finished drawing, to be written as SVG or painted as PNG.
#[derive(Clone, Debug)]
pub struct Drawing {
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) title: String,
    pub(crate) caption: String,
    pub(crate) items: Vec<Item>,
}

/// Something in a drawing.
#[derive(Clone, Debug)]
pub(crate) enum Item {
    Shape(Shape),
    Text(Text),
    /// Several, moved together.
    Group {
        shift: Place,
        items: Vec<Item>,
    },
    /// Several, of which only what lies in a rectangle is seen.
    Clip {
        corner: Place,
        size: Place,
        items: Vec<Item>,
    },
}

/// An outline with its paint.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shape {
    pub outline: Outline,
    /// How far it is moved.
    pub shift: Place,
    pub fill: Option<Fill>,
    pub stroke: Option<Stroke>,
    /// What a browser says of it.
    pub title: String,
}

#[derive(Clone, Debug)]
pub(crate) enum Outline {
    Path(Path),
    /// With the radius of its corners.
    Rect {
        corner: Place,
        size: Place,
        round: f64,
    },
}

impl Default for Outline {
    fn default() -> Outline {
        Outline::Path(Path::default())
    }
}

/// A colour as SVG has it: `#rrggbb`, or `currentColor` where a page decides.
pub(crate) type Colour = Cow<'static, str>;

#[derive(Clone, Debug)]
pub(crate) struct Fill {
    pub colour: Colour,
    pub opacity: f64,
}

#[derive(Clone, Debug)]
pub(crate) struct Stroke {
    pub colour: Colour,
    pub width: f64,
    pub opacity: f64,
    /// Lengths of dashes and of the gaps between them, in turn; a solid line if empty.
    pub dashes: &'static [f64],
    /// Whether its ends are round rather than cut off.
    pub round: bool,
}

impl Stroke {
    pub fn new(colour: impl Into<Colour>, width: f64) -> Stroke {
        Stroke { colour: colour.into(), width, opacity: 1.0, dashes: &[], round: false }
    }
}

impl Shape {
    pub fn path(path: Path) -> Shape {
        Shape { outline: Outline::Path(path), ..Shape::default() }
    }

    pub fn rect(corner: Place, size: Place) -> Shape {
        Shape::round_rect(corner, size, 0.0)
    }

    pub fn round_rect(corner: Place, size: Place, round: f64) -> Shape {
        Shape { outline: Outline::Rect { corner, size, round }, ..Shape::default() }
    }

    pub fn fill(self, colour: impl Into<Colour>) -> Shape {
        self.pale(colour, 1.0)
    }

    /// Filled, with what is below shining through.
    pub fn pale(self, colour: impl Into<Colour>, opacity: f64) -> Shape {
        Shape { fill: Some(Fill { colour: colour.into(), opacity }), ..self }
    }

    pub fn stroke(self, stroke: Stroke) -> Shape {
        Shape { stroke: Some(stroke), ..self }
    }

    pub fn at(self, shift: Place) -> Shape {
        Shape { shift, ..self }
    }
}

impl From<Shape> for Item {
    fn from(shape: Shape) -> Item {
        Item::Shape(shape)
    }
}

/// Where a text is held.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hold {
    Start,
    Middle,
    End,
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Font {
    pub size: f64,
    pub bold: bool,
    pub fill: &'static str,
    /// Whether a white edge sets it apart from what is below.
    pub halo: bool,
}

/// A line of text on its baseline, turned around the place where it is held.
#[derive(Clone, Debug)]
pub(crate) struct Text {
    pub place: Place,
    pub hold: Hold,
    pub font: Font,
    /// In degrees.
    pub turn: f64,
    pub text: String,
}

/// The colour and the width of the edge around a text with a halo.
pub(crate) const HALO: (&str, f64) = ("#ffffff", 3.0);

/// The outline of a shape, or a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Path(pub Vec<Step>);

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Step {
    Move(Place),
    /// A line of no length, of which its round ends are seen.
    Dot(Place),
    Line(Place),
    /// A level line to an x.
    Across(f64),
    /// An upright line to a y.
    Down(f64),
    /// A curve that is drawn towards a place and ends at another.
    Bend(Place, Place),
    /// A circle of its own around a place.
    Circle(Place, f64),
    Close,
}

impl Path {
    /// A line through places.
    pub fn through(places: &[Place]) -> Path {
        let step = |(at, place): (usize, &Place)| if at == 0 { Step::Move(*place) } else { Step::Line(*place) };
        Path(places.iter().enumerate().map(step).collect())
    }

    /// A closed line through places.
    pub fn around(places: &[Place]) -> Path {
        let mut path = Path::through(places);
        path.0.push(Step::Close);
        path
    }

    pub fn circle(middle: Place, radius: f64) -> Path {
        Path(vec![Step::Circle(middle, radius)])
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn extend(&mut self, more: impl IntoIterator<Item = Step>) {
        self.0.extend(more);
    }
}

/// As the attribute `d` of SVG's paths.
impl Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.0 {
            match *step {
                Step::Move((x, y)) => write!(f, "M{} {}", n(x), n(y)),
                Step::Dot((x, y)) => write!(f, "M{} {}h0", n(x), n(y)),
                Step::Line((x, y)) => write!(f, "L{} {}", n(x), n(y)),
                Step::Across(x) => write!(f, "H{}", n(x)),
                Step::Down(y) => write!(f, "V{}", n(y)),
                Step::Bend((a, b), (x, y)) => write!(f, "Q{} {} {} {}", n(a), n(b), n(x), n(y)),
                Step::Circle((x, y), radius) => {
                    let (left, right, y, r) = (n(x - radius), n(x + radius), n(y), n(radius));
                    write!(f, "M{left} {y}A{r} {r} 0 1 1 {right} {y}A{r} {r} 0 1 1 {left} {y}Z")
                }
                Step::Close => f.write_str("Z"),
            }?;
        }
        Ok(())
    }
}

/// A coordinate: two decimals at most, always written the same.
pub(crate) fn n(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

/// Lengths of dashes as SVG has them.
pub(crate) fn dashes(lengths: &[f64]) -> String {
    lengths.iter().map(|length| n(*length)).collect::<Vec<_>>().join(" ")
}

impl Drawing {
    /// The drawing as SVG.
    pub fn svg(&self) -> String {
        let (width, height) = (n(self.width), n(self.height));
        let mut out = format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\"");
        let _ = write!(out, " viewBox=\"0 0 {width} {height}\" role=\"img\" font-family=\"{FAMILY}\" fill=\"none\"");
        let _ = writeln!(out, " stroke-linejoin=\"round\">\n<title>{}</title>", escape(&self.title));
        if !self.caption.is_empty() {
            let _ = writeln!(out, "<desc>{}</desc>", escape(&self.caption));
        }
        let _ = writeln!(out, "<rect width=\"{width}\" height=\"{height}\" fill=\"{PAPER}\"/>");
        svg(&self.items, &mut out);
        out.push_str("</svg>\n");
        out
    }
}

/// What drawings are drawn on.
pub(crate) const PAPER: &str = "#ffffff";

/// Items as SVG, each on a line of its own.
pub(crate) fn svg(items: &[Item], out: &mut String) {
    for item in items {
        match item {
            Item::Shape(shape) => shape.svg(out),
            Item::Text(text) => text.svg(out),
            Item::Group { shift, items } => {
                let _ = writeln!(out, "<g transform=\"translate({} {})\">", n(shift.0), n(shift.1));
                svg(items, out);
                out.push_str("</g>\n");
            }
            // A nested drawing is cut off at its edges, and needs no name as a clip path would.
            Item::Clip { corner, size, items } => {
                let [x, y, wide, high] = [corner.0, corner.1, size.0, size.1].map(n);
                let _ = writeln!(
                    out,
                    "<svg x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\" viewBox=\"{x} {y} {wide} {high}\">"
                );
                svg(items, out);
                out.push_str("</svg>\n");
            }
        }
    }
}

impl Shape {
    fn svg(&self, out: &mut String) {
        let tag = if matches!(self.outline, Outline::Path(_)) { "path" } else { "rect" };
        let _ = write!(out, "<{tag}");
        if self.shift != (0.0, 0.0) {
            let _ = write!(out, " transform=\"translate({} {})\"", n(self.shift.0), n(self.shift.1));
        }
        match &self.outline {
            Outline::Path(path) => {
                let _ = write!(out, " d=\"{path}\"");
            }
            Outline::Rect { corner, size, round } => {
                let [x, y, wide, high] = [corner.0, corner.1, size.0, size.1].map(n);
                let _ = write!(out, " x=\"{x}\" y=\"{y}\" width=\"{wide}\" height=\"{high}\"");
                if *round > 0.0 {
                    let _ = write!(out, " rx=\"{}\"", n(*round));
                }
            }
        }
        if let Some(fill) = &self.fill {
            let _ = write!(out, " fill=\"{}\"", fill.colour);
            if fill.opacity < 1.0 {
                let _ = write!(out, " fill-opacity=\"{}\"", n(fill.opacity));
            }
        }
        if let Some(stroke) = &self.stroke {
            let _ = write!(out, " stroke=\"{}\"", stroke.colour);
            if stroke.width != 1.0 {
                let _ = write!(out, " stroke-width=\"{}\"", n(stroke.width));
            }
            if !stroke.dashes.is_empty() {
                let _ = write!(out, " stroke-dasharray=\"{}\"", dashes(stroke.dashes));
            }
            if stroke.round {
                out.push_str(" stroke-linecap=\"round\"");
            }
            if stroke.opacity < 1.0 {
                let _ = write!(out, " stroke-opacity=\"{}\"", n(stroke.opacity));
            }
        }
        let _ = match self.title.is_empty() {
            true => writeln!(out, "/>"),
            false => writeln!(out, "><title>{}</title></{tag}>", escape(&self.title)),
        };
    }
}

impl Text {
    fn svg(&self, out: &mut String) {
        let (x, y, size, fill) = (n(self.place.0), n(self.place.1), n(self.font.size), self.font.fill);
        let _ = write!(out, "<text x=\"{x}\" y=\"{y}\" font-size=\"{size}\" fill=\"{fill}\"");
        match self.hold {
            Hold::Start => {}
            Hold::Middle => out.push_str(" text-anchor=\"middle\""),
            Hold::End => out.push_str(" text-anchor=\"end\""),
        }
        if self.font.bold {
            out.push_str(" font-weight=\"bold\"");
        }
        if self.font.halo {
            let _ = write!(out, " stroke=\"{}\" stroke-width=\"{}\" paint-order=\"stroke\"", HALO.0, n(HALO.1));
        }
        if self.turn != 0.0 {
            let _ = write!(out, " transform=\"rotate({} {x} {y})\"", n(self.turn));
        }
        let _ = writeln!(out, ">{}</text>", escape(&self.text));
    }
}
