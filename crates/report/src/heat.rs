//! A heat map: one number for every pair of two things, written in its cell and seen as a colour.

use crate::Format;

/// A heat map.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Heat {
    /// Names its files and its place on a page; letters, digits and dashes.
    pub id: String,
    /// What is seen, in a few words.
    pub title: String,
    /// The setting, in a line.
    pub subtitle: String,
    /// What to notice.
    pub caption: String,
    /// What differs from column to column, and each column's value.
    pub x: (String, Vec<String>),
    /// What differs from row to row, and each row's value, from the bottom up.
    pub y: (String, Vec<String>),
    /// Row by row from the bottom up, the numbers; those that are missing are left blank.
    pub values: Vec<Vec<Option<f64>>>,
    /// How the numbers are written.
    pub format: Format,
    /// Whether colours follow the logarithm, which suits numbers above 0 that differ by factors.
    pub log: bool,
    /// The numbers of the ends of the colours, for maps that are to be compared; those of the map if absent.
    pub range: Option<(f64, f64)>,
}

/// The ends and the middle of the colours: from light to dark in brightness, so that it can be printed without colour, in hues that
/// readers with any colour vision can tell apart (points of the map "cividis").
const COLOURS: [[f64; 3]; 5] =
    [[253.0, 231.0, 140.0], [196.0, 182.0, 106.0], [138.0, 134.0, 120.0], [78.0, 90.0, 112.0], [0.0, 40.0, 84.0]];

impl Heat {
    /// The place of a number among the colours, from 0 to 1.
    fn place(&self, value: f64, (low, high): (f64, f64)) -> f64 {
        let at = |value: f64| if self.log { libm::log(value.max(f64::MIN_POSITIVE)) } else { value };
        let (low, high) = (at(low), at(high));
        if high > low { ((at(value) - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// The ends of the colours.
    fn ends(&self) -> (f64, f64) {
        let all = || self.values.iter().flatten().flatten().copied().filter(|value| value.is_finite());
        let own = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
        self.range.unwrap_or(own)
    }

    /// The colour of a number's cell, and that of what is written in it.
    pub(crate) fn look(&self, value: f64) -> (String, &'static str) {
        let place = self.place(value, self.ends());
        let along = place * (COLOURS.len() - 1) as f64;
        let from = (along as usize).min(COLOURS.len() - 2);
        let part = along - from as f64;
        let mix = |channel: usize| {
            (COLOURS[from][channel] + (COLOURS[from + 1][channel] - COLOURS[from][channel]) * part) as u8
        };
        (format!("#{:02x}{:02x}{:02x}", mix(0), mix(1), mix(2)), if place > 0.45 { "#ffffff" } else { "#1f1f1f" })
    }
}
