//! A drawing as an image.

use resvg::{tiny_skia, usvg};
use std::error::Error;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Pixels per unit of the drawing.
const SCALE: f32 = 2.0;

/// Why there is no image of a drawing.
#[derive(Debug)]
pub enum DrawingError {
    /// The drawing is not SVG that the rasteriser understands.
    Unreadable(usvg::Error),
    /// The drawing has no size.
    NoSize,
    /// The image has more pixels than fit into memory.
    TooLarge,
    /// The image cannot be written as PNG.
    Encoding(Box<dyn Error + Send + Sync>),
}

impl fmt::Display for DrawingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DrawingError::Unreadable(error) => write!(f, "the drawing cannot be read: {error}"),
            DrawingError::NoSize => f.write_str("the drawing has no size"),
            DrawingError::TooLarge => f.write_str("the drawing is too large for an image"),
            DrawingError::Encoding(error) => write!(f, "the image cannot be encoded: {error}"),
        }
    }
}

impl Error for DrawingError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            DrawingError::Unreadable(error) => Some(error),
            DrawingError::Encoding(error) => Some(error.as_ref()),
            DrawingError::NoSize | DrawingError::TooLarge => None,
        }
    }
}

/// The PNG image of an SVG drawing, two pixels to the unit. Fonts are the program's own, so it looks the same everywhere.
pub fn png(svg: &str) -> Result<Vec<u8>, DrawingError> {
    let tree = parse(svg)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or(DrawingError::NoSize)?;
    let mut pixels = tiny_skia::Pixmap::new(size.width(), size.height()).ok_or(DrawingError::TooLarge)?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| DrawingError::Encoding(error.into()))
}

/// The drawing as the rasteriser understands it, set in the bundled font.
pub(crate) fn parse(svg: &str) -> Result<usvg::Tree, DrawingError> {
    static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    let options = usvg::Options { fontdb: FONTS.clone(), ..Default::default() };
    usvg::Tree::from_str(svg, &options).map_err(DrawingError::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_has_two_pixels_to_the_unit() {
        let svg = r##"<svg xmlns="http://www.w3.org/2000/svg" width="30" height="20"><rect width="15" height="20" fill="#0072b2"/></svg>"##;
        let image = tiny_skia::Pixmap::decode_png(&png(svg).unwrap()).unwrap();
        assert_eq!((image.width(), image.height()), (60, 40));
        let colour = image.pixel(29, 20).unwrap();
        assert_eq!((colour.red(), colour.green(), colour.blue(), colour.alpha()), (0, 0x72, 0xb2, 255));
        assert_eq!(image.pixel(31, 20).unwrap().alpha(), 0);
    }

    #[test]
    fn what_is_no_drawing_is_refused_with_a_reason() {
        assert!(png("<svg").unwrap_err().to_string().starts_with("the drawing cannot be read"));
    }
}
