//! A drawing as an image.

use resvg::{tiny_skia, usvg};
use std::sync::{Arc, LazyLock};

/// Pixels per unit of the drawing.
const SCALE: f32 = 2.0;

/// The PNG image of an SVG drawing, two pixels to the unit. Fonts are the program's own, so it looks the same everywhere.
pub fn png(svg: &str) -> Result<Vec<u8>, String> {
    let tree = parse(svg)?;
    let size = tree.size().to_int_size().scale_by(SCALE).ok_or("the drawing has no size")?;
    let mut pixels =
        tiny_skia::Pixmap::new(size.width(), size.height()).ok_or("the drawing is too large for an image")?;
    resvg::render(&tree, tiny_skia::Transform::from_scale(SCALE, SCALE), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| format!("the image cannot be encoded: {error}"))
}

/// The drawing as the rasteriser understands it, set in the bundled font.
pub(crate) fn parse(svg: &str) -> Result<usvg::Tree, String> {
    static FONTS: LazyLock<Arc<usvg::fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = usvg::fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        fonts.set_sans_serif_family("DejaVu Sans");
        Arc::new(fonts)
    });
    let options = usvg::Options { fontdb: FONTS.clone(), ..Default::default() };
    usvg::Tree::from_str(svg, &options).map_err(|error| format!("the drawing cannot be read: {error}"))
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
        assert!(png("<svg").unwrap_err().starts_with("the drawing cannot be read"));
    }
}
