//! Who looks how: colours, dashes and markers by slot.

use crate::figure::{Point, Series, Style};

/// Hands every name a slot, in order of first mention. One palette per report keeps a scheme's looks the same
/// in all its figures.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    names: Vec<String>,
}

impl Palette {
    /// A palette that knows these names already, in this order.
    pub fn new<S: Into<String>>(names: impl IntoIterator<Item = S>) -> Palette {
        let mut palette = Palette::default();
        for name in names {
            palette.slot(&name.into());
        }
        palette
    }

    /// The slot of a name, the next free one if it is new.
    pub fn slot(&mut self, name: &str) -> usize {
        self.names.iter().position(|known| known == name).unwrap_or_else(|| {
            self.names.push(name.to_string());
            self.names.len() - 1
        })
    }

    /// A series of this name with the name's slot.
    pub fn series<P: Into<Point>>(&mut self, name: &str, style: Style, points: impl IntoIterator<Item = P>) -> Series {
        let slot = self.slot(name);
        Series { name: name.to_string(), slot, style, points: points.into_iter().map(Into::into).collect() }
    }
}

/// Colours on white and on a dark page. Okabe and Ito's set, which readers with any colour vision can tell apart, in an order
/// that puts the most distant first; yellow, which vanishes on white, is a grey instead, and black comes last.
pub(crate) const COLOURS: [(&str, &str); 8] = [
    ("#0072b2", "#4aa8e0"),
    ("#d55e00", "#f0803c"),
    ("#009e73", "#2fc79a"),
    ("#cc79a7", "#e39ac3"),
    ("#e69f00", "#f2b632"),
    ("#56b4e9", "#8fd0f5"),
    ("#7f7f7f", "#a8a8a8"),
    ("#222222", "#ececec"),
];

/// Dashes by slot: seven of them against eight colours, so that the pair first repeats after 56 slots.
const DASHES: [&str; 7] = ["", "7 3", "2 2.5", "9 3 2 3", "12 4", "4.5 2.5", "9 2.5 2 2.5 2 2.5"];

pub(crate) fn colour(slot: usize) -> &'static str {
    COLOURS[slot % COLOURS.len()].0
}

pub(crate) fn dash(slot: usize) -> &'static str {
    DASHES[slot % DASHES.len()]
}

/// The outline of a slot's marker around the origin, for SVG.
pub(crate) fn marker(slot: usize) -> &'static str {
    const SHAPES: [&str; 8] = [
        "M-3.8 0A3.8 3.8 0 1 1 3.8 0A3.8 3.8 0 1 1-3.8 0Z",
        "M-3.4-3.4H3.4V3.4H-3.4Z",
        "M0-4.6L4.3 3.2H-4.3Z",
        "M0-4.9L4.4 0L0 4.9L-4.4 0Z",
        "M0 4.6L4.3-3.2H-4.3Z",
        "M-1.5-4.4H1.5V-1.5H4.4V1.5H1.5V4.4H-1.5V1.5H-4.4V-1.5H-1.5Z",
        "M0-4.6L4.4-1.4L2.7 3.7H-2.7L-4.4-1.4Z",
        "M0-2.1L2.3-4.4L4.4-2.3L2.1 0L4.4 2.3L2.3 4.4L0 2.1L-2.3 4.4L-4.4 2.3L-2.1 0L-4.4-2.3L-2.3-4.4Z",
    ];
    SHAPES[slot % SHAPES.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_slot_whatever_is_asked_in_between() {
        let mut palette = Palette::new(["BFC", "DCQCN"]);
        assert_eq!(palette.slot("HPCC"), 2);
        assert_eq!(palette.slot("DCQCN"), 1);
        assert_eq!(palette.series("BFC", Style::Line, [(0.0, 0.0)]).slot, 0);
        assert_eq!(palette.slot("HPCC"), 2);
    }

    #[test]
    fn fifty_six_slots_look_different() {
        let looks: std::collections::BTreeSet<_> = (0..56).map(|slot| (colour(slot), dash(slot))).collect();
        assert_eq!(looks.len(), 56);
    }
}
