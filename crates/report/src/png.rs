//! A drawing as an image.

use crate::drawing::{Drawing, Fill, HALO, Hold, Item, Outline, PAPER, Path, Shape, Step, Stroke, Text};
use crate::text;
use std::error::Error;
use std::fmt;
use tiny_skia::{Color, FillRule, LineCap, LineJoin, Mask, Paint, PathBuilder, Pixmap, Rect, StrokeDash, Transform};

/// Pixels per unit of the drawing.
const SCALE: f32 = 2.0;

/// Why there is no image of a drawing.
#[derive(Debug)]
pub enum DrawingError {
    /// The image has more pixels than fit into memory.
    TooLarge,
    /// The image cannot be written as PNG.
    Encoding(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for DrawingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawingError::TooLarge => f.write_str("the drawing is too large for an image"),
            DrawingError::Encoding(error) => write!(f, "the image cannot be encoded: {error}"),
        }
    }
}

impl Error for DrawingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            DrawingError::Encoding(error) => Some(error.as_ref()),
            DrawingError::TooLarge => None,
        }
    }
}

impl Drawing {
    /// The drawing as a PNG image, two pixels to the unit. Fonts are the program's own, so it looks the same everywhere.
    pub fn png(&self) -> Result<Vec<u8>, DrawingError> {
        let pixels = |length: f64| (length.ceil() * f64::from(SCALE)) as u32;
        let mut image = Pixmap::new(pixels(self.width), pixels(self.height)).ok_or(DrawingError::TooLarge)?;
        image.fill(colour(PAPER, 1.0));
        paint(&self.items, &mut image, Transform::from_scale(SCALE, SCALE), None);
        image.encode_png().map_err(|error| DrawingError::Encoding(error.into()))
    }
}

/// Paints items in order; with a mask, only where it lets them.
fn paint(items: &[Item], image: &mut Pixmap, transform: Transform, mask: Option<&Mask>) {
    for item in items {
        match item {
            Item::Shape(shape) => shape.paint(image, transform, mask),
            Item::Text(text) => text.paint(image, transform, mask),
            Item::Group { shift, items } => {
                paint(items, image, transform.pre_translate(shift.0 as f32, shift.1 as f32), mask);
            }
            Item::Clip { corner, size, items } => {
                let area = rect(*corner, *size).map(PathBuilder::from_rect);
                let (Some(area), Some(mut inner)) = (area, Mask::new(image.width(), image.height())) else { continue };
                inner.fill_path(&area, FillRule::Winding, true, transform);
                paint(items, image, transform, Some(&inner));
            }
        }
    }
}

fn rect(corner: (f64, f64), size: (f64, f64)) -> Option<Rect> {
    Rect::from_xywh(corner.0 as f32, corner.1 as f32, size.0 as f32, size.1 as f32)
}

/// `#rrggbb` as a colour; anything else is black.
fn colour(hex: &str, opacity: f64) -> Color {
    let part = |at: usize| hex.get(at..at + 2).and_then(|part| u8::from_str_radix(part, 16).ok()).unwrap_or(0);
    Color::from_rgba8(part(1), part(3), part(5), (opacity * 255.0).round() as u8)
}

fn ink(hex: &str, opacity: f64) -> Paint<'static> {
    let mut ink = Paint::default();
    ink.set_color(colour(hex, opacity));
    ink
}

impl Shape {
    fn paint(&self, image: &mut Pixmap, transform: Transform, mask: Option<&Mask>) {
        let path = match &self.outline {
            Outline::Path(path) => path.build(),
            Outline::Rect { corner, size, round: 0.0 } => rect(*corner, *size).map(PathBuilder::from_rect),
            Outline::Rect { corner, size, round } => rect(*corner, *size).and_then(|rect| rounded(rect, *round as f32)),
        };
        let Some(path) = path else { return };
        let transform = transform.pre_translate(self.shift.0 as f32, self.shift.1 as f32);
        if let Some(Fill { colour, opacity }) = &self.fill {
            image.fill_path(&path, &ink(colour, *opacity), FillRule::Winding, transform, mask);
        }
        if let Some(stroke) = &self.stroke {
            image.stroke_path(&path, &ink(&stroke.colour, stroke.opacity), &stroke.build(), transform, mask);
        }
    }
}

impl Stroke {
    fn build(&self) -> tiny_skia::Stroke {
        tiny_skia::Stroke {
            width: self.width as f32,
            line_cap: if self.round { LineCap::Round } else { LineCap::Butt },
            line_join: LineJoin::Round,
            dash: StrokeDash::new(self.dashes.iter().map(|length| *length as f32).collect(), 0.0),
            ..tiny_skia::Stroke::default()
        }
    }
}

impl Path {
    fn build(&self) -> Option<tiny_skia::Path> {
        let mut path = PathBuilder::new();
        let (mut x, mut y) = (0.0, 0.0);
        for step in &self.0 {
            match *step {
                Step::Move(to) => {
                    (x, y) = (to.0 as f32, to.1 as f32);
                    path.move_to(x, y);
                    continue;
                }
                Step::Dot(at) => {
                    (x, y) = (at.0 as f32, at.1 as f32);
                    path.move_to(x, y);
                }
                Step::Bend((a, b), to) => {
                    (x, y) = (to.0 as f32, to.1 as f32);
                    path.quad_to(a as f32, b as f32, x, y);
                    continue;
                }
                Step::Circle(middle, radius) => {
                    path.push_circle(middle.0 as f32, middle.1 as f32, radius as f32);
                    continue;
                }
                Step::Close => {
                    path.close();
                    continue;
                }
                Step::Line(to) => (x, y) = (to.0 as f32, to.1 as f32),
                Step::Across(to) => x = to as f32,
                Step::Down(to) => y = to as f32,
            }
            path.line_to(x, y);
        }
        path.finish()
    }
}

/// A rectangle whose corners are quarters of circles.
fn rounded(rect: Rect, radius: f32) -> Option<tiny_skia::Path> {
    let (left, top, right, bottom) = (rect.left(), rect.top(), rect.right(), rect.bottom());
    let r = radius.min(rect.width() / 2.0).min(rect.height() / 2.0);
    // How far the handles of a cubic curve lie from the corner for it to pass for a circle.
    let h = r * (1.0 - 0.552_284_8);
    let mut path = PathBuilder::new();
    path.move_to(left + r, top);
    path.line_to(right - r, top);
    path.cubic_to(right - h, top, right, top + h, right, top + r);
    path.line_to(right, bottom - r);
    path.cubic_to(right, bottom - h, right - h, bottom, right - r, bottom);
    path.line_to(left + r, bottom);
    path.cubic_to(left + h, bottom, left, bottom - h, left, bottom - r);
    path.line_to(left, top + r);
    path.cubic_to(left, top + h, left + h, top, left + r, top);
    path.close();
    path.finish()
}

/// Takes the outline of a glyph in the font's units, where up is positive, to a place on the baseline.
struct Letter<'a> {
    path: &'a mut PathBuilder,
    x: f32,
    scale: f32,
}

impl Letter<'_> {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl ttf_parser::OutlineBuilder for Letter<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, a: f32, b: f32, x: f32, y: f32) {
        let ((a, b), (x, y)) = (self.at(a, b), self.at(x, y));
        self.path.quad_to(a, b, x, y);
    }

    fn curve_to(&mut self, a: f32, b: f32, c: f32, d: f32, x: f32, y: f32) {
        let ((a, b), (c, d), (x, y)) = (self.at(a, b), self.at(c, d), self.at(x, y));
        self.path.cubic_to(a, b, c, d, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

impl Text {
    fn paint(&self, image: &mut Pixmap, transform: Transform, mask: Option<&Mask>) {
        let Some(face) = text::face(self.font.bold) else { return };
        let (glyphs, wide) = text::set(face, &self.text);
        let scale = self.font.size as f32 / f32::from(face.units_per_em());
        let from = match self.hold {
            Hold::Start => 0.0,
            Hold::Middle => wide / -2.0,
            Hold::End => -wide,
        };
        let mut path = PathBuilder::new();
        for (glyph, x) in glyphs {
            face.outline_glyph(glyph, &mut Letter { path: &mut path, x: (from + x) * scale, scale });
        }
        let Some(path) = path.finish() else { return };
        let transform = transform.pre_translate(self.place.0 as f32, self.place.1 as f32).pre_rotate(self.turn as f32);
        if self.font.halo {
            let edge = Stroke::new(HALO.0, HALO.1).build();
            image.stroke_path(&path, &ink(HALO.0, 1.0), &edge, transform, mask);
        }
        image.fill_path(&path, &ink(self.font.fill, 1.0), FillRule::Winding, transform, mask);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drawing::Font;

    fn image(items: Vec<Item>) -> Pixmap {
        let drawing = Drawing { width: 30.0, height: 20.0, title: String::new(), caption: String::new(), items };
        Pixmap::decode_png(&drawing.png().unwrap()).unwrap()
    }

    fn rgb(image: &Pixmap, x: u32, y: u32) -> (u8, u8, u8) {
        let colour = image.pixel(x, y).unwrap().demultiply();
        (colour.red(), colour.green(), colour.blue())
    }

    const BLUE: (u8, u8, u8) = (0, 0x72, 0xb2);
    const WHITE: (u8, u8, u8) = (255, 255, 255);

    #[test]
    fn an_image_has_two_pixels_to_the_unit() {
        let image = image(vec![Shape::rect((0.0, 0.0), (15.0, 20.0)).fill("#0072b2").into()]);
        assert_eq!((image.width(), image.height()), (60, 40));
        assert_eq!((rgb(&image, 29, 20), rgb(&image, 31, 20)), (BLUE, WHITE));
    }

    #[test]
    fn groups_move_and_clips_cut_off() {
        let square = |size| Shape::rect((0.0, 0.0), (size, size)).fill("#0072b2").into();
        let clip = Item::Clip { corner: (1.0, 1.0), size: (3.0, 3.0), items: vec![square(10.0)] };
        let image = image(vec![Item::Group { shift: (10.0, 5.0), items: vec![clip] }]);
        assert_eq!((rgb(&image, 21, 13), rgb(&image, 23, 13)), (WHITE, BLUE), "the clip begins at 11");
        assert_eq!((rgb(&image, 27, 13), rgb(&image, 29, 13)), (BLUE, WHITE), "and ends at 14");
    }

    #[test]
    fn dashes_have_gaps_and_opacity_mixes() {
        let line = Path::through(&[(0.0, 10.0), (30.0, 10.0)]);
        let stroke = Stroke { dashes: &[6.0, 4.0], opacity: 0.5, ..Stroke::new("#000000", 4.0) };
        let image = image(vec![Shape::path(line).stroke(stroke).into()]);
        assert_eq!(rgb(&image, 16, 20), WHITE, "a gap");
        assert!((120..136).contains(&rgb(&image, 4, 20).0), "a dash, half of it paper");
    }

    #[test]
    fn text_is_set_from_where_it_is_held_and_turned_around_that() {
        let font = Font { size: 8.0, bold: false, fill: "#000000", halo: false };
        let columns = |hold, turn| {
            let text = Text { place: (15.0, 10.0), hold, font, turn, text: "HH".into() };
            let image = image(vec![Item::Text(text)]);
            let dark = |x: u32| (0..40).any(|y| rgb(&image, x, y).0 < 100);
            let dark: Vec<u32> = (0..60).filter(|&x| dark(x)).collect();
            (*dark.first().unwrap(), *dark.last().unwrap())
        };
        // Two letters of 0.752 em: 24 pixels.
        let (left, right) = columns(Hold::Start, 0.0);
        assert!((30..34).contains(&left) && (50..54).contains(&right), "{left} to {right}");
        let (left, right) = columns(Hold::End, 0.0);
        assert!((6..10).contains(&left) && (26..30).contains(&right), "{left} to {right}");
        let (left, right) = columns(Hold::Middle, 0.0);
        assert!((18..22).contains(&left) && (38..42).contains(&right), "{left} to {right}");
        let (left, right) = columns(Hold::Middle, -90.0);
        assert!(
            (17..20).contains(&left) && (28..31).contains(&right),
            "upright, above its baseline: {left} to {right}"
        );
    }
}
