//! Text: how wide it is in the font it is drawn in, where it breaks, and how it is written into a document.

use std::sync::LazyLock;
use ttf_parser::{Face, GlyphId};

/// The font's name, with the closest relatives first for browsers that lack it.
pub(crate) const FAMILY: &str = "DejaVu Sans, Verdana, Geneva, sans-serif";

/// The font.
pub(crate) fn face(bold: bool) -> Option<&'static Face<'static>> {
    static FACES: LazyLock<[Option<Face<'static>>; 2]> =
        LazyLock::new(|| [dejavu::sans::regular(), dejavu::sans::bold()].map(|data| Face::parse(data, 0).ok()));
    FACES[usize::from(bold)].as_ref()
}

/// Width of one line of text at a font size.
pub(crate) fn width(text: &str, size: f64, bold: bool) -> f64 {
    let em = |face: &Face| {
        let units = face.units_per_em();
        let advance = |c| face.glyph_index(c).and_then(|glyph| face.glyph_hor_advance(glyph));
        // A character the font lacks is drawn by another one: a full square is a safe guess.
        text.chars().map(|c| f64::from(advance(c).unwrap_or(units))).sum::<f64>() / f64::from(units)
    };
    size * face(bold).map_or(text.chars().count() as f64, em)
}

/// The glyphs of a line of text with their places on the baseline, and its width, in units of the font. Pairs such as `To`
/// stand closer, as they do in a browser.
pub(crate) fn set(face: &Face, text: &str) -> (Vec<(GlyphId, f32)>, f32) {
    let tables = face.tables().kern.into_iter().flat_map(|kern| kern.subtables);
    let tables: Vec<_> = tables.filter(|table| table.horizontal && !table.has_state_machine).collect();
    let mut set: Vec<(GlyphId, f32)> = Vec::new();
    let mut x = 0.0;
    for c in text.chars() {
        let glyph = face.glyph_index(c).unwrap_or_default();
        if let Some((last, _)) = set.last() {
            let closer = tables.iter().find_map(|table| table.glyphs_kerning(*last, glyph));
            x += f32::from(closer.unwrap_or(0));
        }
        set.push((glyph, x));
        x += f32::from(face.glyph_hor_advance(glyph).unwrap_or(face.units_per_em()));
    }
    (set, x)
}

/// Text broken into lines no wider than `room`: at spaces, after a joint such as `+` in a word that is wider by itself,
/// and in the end anywhere.
pub(crate) fn wrap(text: &str, size: f64, bold: bool, room: f64) -> Vec<String> {
    let fits = |line: &str, more: &str| width(line, size, bold) + width(more, size, bold) <= room;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if fits(line, &format!(" {word}")) => *line = format!("{line} {word}"),
            _ if fits("", word) => lines.push(word.to_string()),
            _ => {
                let mut line = String::new();
                for part in word.split_inclusive(JOINTS) {
                    if !line.is_empty() && !fits(&line, part) {
                        lines.push(std::mem::take(&mut line));
                    }
                    for c in part.chars() {
                        if !line.is_empty() && !fits(&line, c.encode_utf8(&mut [0; 4])) {
                            lines.push(std::mem::take(&mut line));
                        }
                        line.push(c);
                    }
                }
                lines.push(line);
            }
        }
    }
    lines
}

/// Where a word may be broken.
const JOINTS: [char; 4] = ['+', '/', '-', '_'];

/// Whether lines of a text break it only where a reader would.
pub(crate) fn well_broken(lines: &[String], text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let text = words.join(" ");
    let mut rest = text.as_str();
    lines.iter().all(|line| {
        let Some(after) = rest.strip_prefix(line.as_str()) else { return false };
        rest = after.trim_start();
        rest.is_empty() || after.len() > rest.len() || line.ends_with(JOINTS)
    })
}

/// Text cut to a width, with an ellipsis if it had to be.
pub(crate) fn shorten(text: &str, size: f64, room: f64) -> String {
    if width(text, size, false) <= room {
        return text.to_string();
    }
    let mut short = text.to_string();
    while short.pop().is_some() && width(&format!("{short}…"), size, false) > room {}
    format!("{}…", short.trim_end())
}

/// Texts cut to a width. Those that would be the same then are cut in their middle, since names often differ at their ends.
pub(crate) fn shorten_apart<'a>(texts: impl Iterator<Item = &'a String> + Clone, size: f64, room: f64) -> Vec<String> {
    let cut: Vec<String> = texts.clone().map(|text| shorten(text, size, room)).collect();
    let ambiguous =
        |at: usize, text: &String| texts.clone().zip(&cut).any(|(other, shown)| shown == &cut[at] && other != text);
    let shown = |(at, text): (usize, &String)| match ambiguous(at, text) {
        true => shorten_middle(text, size, room),
        false => cut[at].clone(),
    };
    texts.clone().enumerate().map(shown).collect()
}

fn shorten_middle(text: &str, size: f64, room: f64) -> String {
    if width(text, size, false) <= room {
        return text.to_string();
    }
    let letters: Vec<char> = text.chars().collect();
    let left = |keep: usize| {
        let head: String = letters[..keep / 2].iter().collect();
        let tail: String = letters[letters.len() - keep.div_ceil(2)..].iter().collect();
        format!("{}…{}", head.trim_end(), tail.trim_start())
    };
    (0..letters.len()).rev().map(left).find(|text| width(text, size, false) <= room).unwrap_or_default()
}

/// Text as the content or an attribute of an XML or HTML element. Characters no document may contain are replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(c),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            _ => out.push(c),
        }
    }
    out
}

/// A whole number as superscript digits.
pub(crate) fn superscript(value: i32) -> String {
    let raise = |c| match c {
        '-' => '⁻',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        '9' => '⁹',
        _ => '⁰',
    };
    value.to_string().chars().map(raise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_that_differ_at_their_ends_are_told_apart() {
        let names =
            ["DCQCN", "Blitz, deflection from 50 KB", "Blitz, deflection from 200 KB", "HPCC with a long remark"];
        let names = names.map(String::from);
        let room = width("Blitz, deflection from…", 13.0, false);
        let cut = shorten_apart(names.iter(), 13.0, room);
        assert_eq!(cut[0], "DCQCN");
        assert!(cut[1].starts_with("Blitz, def") && cut[1].ends_with(" 50 KB"), "{}", cut[1]);
        assert!(cut[2].starts_with("Blitz, def") && cut[2].ends_with(" 200 KB"), "{}", cut[2]);
        assert_eq!(cut[3], shorten(&names[3], 13.0, room));
        assert!(cut.iter().all(|text| width(text, 13.0, false) <= room));
    }

    #[test]
    fn widths_are_those_of_the_font() {
        // DejaVu Sans: 2048 units per em; 'i' is 569 wide, 'M' 1767.
        assert!((width("iM", 2048.0, false) - (569.0 + 1767.0)).abs() < 1.0);
        assert!(width("legend", 12.0, true) > width("legend", 12.0, false));
    }

    #[test]
    fn pairs_that_leave_a_hole_stand_closer() {
        let face = face(false).unwrap();
        let wide = |text| set(face, text).1;
        assert_eq!(wide("HH"), 2.0 * wide("H"));
        assert!(wide("To") < wide("T") + wide("o") - 100.0);
    }

    #[test]
    fn a_long_word_breaks_at_its_joints() {
        let lines = wrap("DCQCN+Win+SFQ", 13.0, false, 80.0);
        assert_eq!(lines, ["DCQCN+", "Win+SFQ"]);
        assert!(well_broken(&lines, "DCQCN+Win+SFQ"));
        let lines = wrap("host → ToR", 13.0, false, 60.0);
        assert_eq!(lines, ["host →", "ToR"]);
        assert!(well_broken(&lines, " host → ToR"));
        let lines = wrap("incontestable", 13.0, false, 60.0);
        assert!(lines.len() > 1 && !well_broken(&lines, "incontestable"));
    }

    proptest! {
        #[test]
        fn wrapped_text_keeps_every_letter_and_fits(text in "[a-zA-Z0-9 ]{0,80}", room in 20.0..300.0f64) {
            let lines = wrap(&text, 12.0, false, room);
            let letters = |s: &str| s.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
            for line in lines {
                prop_assert!(width(&line, 12.0, false) <= room, "{}", line);
            }
        }

        #[test]
        fn escaped_text_is_well_formed_whatever_it_says(text in any::<String>()) {
            let document = format!("<a b=\"{0}\">{0}</a>", escape(&text));
            prop_assert!(roxmltree::Document::parse(&document).is_ok());
        }
    }
}
