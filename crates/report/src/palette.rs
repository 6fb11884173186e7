//! Who looks how: colours, dashes and markers by slot.

use crate::drawing::Path;
use crate::figure::{Point, Series, Style};

/// Hands every name a slot, in order of first mention. One palette per report keeps a scheme's looks the same
/// in all its figures.
#[derive(Clone, Debug, Default)]
pub struct Palette {
    names: Vec<(String, usize)>,
    /// The next free slot.
    next: usize,
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
        let known = self.names.iter().find(|(known, _)| known == name).map(|(_, slot)| *slot);
        known.unwrap_or_else(|| {
            self.next += 1;
            self.names.push((name.to_string(), self.next - 1));
            self.next - 1
        })
    }

    /// Gives a name the colour of another, such as a scheme's, with dashes of its own: those of its `nth` kin.
    pub fn kin(&mut self, name: &str, of: &str, nth: usize) {
        let slot = self.slot(of) + nth * COLOURS.len();
        if self.names.iter().all(|(known, _)| known != name) {
            self.names.push((name.to_string(), slot));
        }
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
const DASHES: [&[f64]; 7] =
    [&[], &[7.0, 3.0], &[2.0, 2.5], &[9.0, 3.0, 2.0, 3.0], &[12.0, 4.0], &[4.5, 2.5], &[9.0, 2.5, 2.0, 2.5, 2.0, 2.5]];

/// The slot of what a paper states of nobody in particular: grey, on any page.
pub(crate) const STATED: usize = usize::MAX;

pub(crate) fn colour(slot: usize) -> &'static str {
    if slot == STATED { "#6b6b6b" } else { COLOURS[slot % COLOURS.len()].0 }
}

/// What a page calls the colour of a slot.
pub(crate) fn variable(slot: usize) -> String {
    if slot == STATED { "--soft".into() } else { format!("--s{}", slot % COLOURS.len()) }
}

pub(crate) fn dash(slot: usize) -> &'static [f64] {
    DASHES[slot % DASHES.len()]
}

/// The outline of a slot's marker around the origin.
pub(crate) fn marker(slot: usize) -> Path {
    const CORNERS: [&[(f64, f64)]; 8] = [
        &[],
        &[(-3.4, -3.4), (3.4, -3.4), (3.4, 3.4), (-3.4, 3.4)],
        &[(0.0, -4.6), (4.3, 3.2), (-4.3, 3.2)],
        &[(0.0, -4.9), (4.4, 0.0), (0.0, 4.9), (-4.4, 0.0)],
        &[(0.0, 4.6), (4.3, -3.2), (-4.3, -3.2)],
        &[
            (-1.5, -4.4),
            (1.5, -4.4),
            (1.5, -1.5),
            (4.4, -1.5),
            (4.4, 1.5),
            (1.5, 1.5),
            (1.5, 4.4),
            (-1.5, 4.4),
            (-1.5, 1.5),
            (-4.4, 1.5),
            (-4.4, -1.5),
            (-1.5, -1.5),
        ],
        &[(0.0, -4.6), (4.4, -1.4), (2.7, 3.7), (-2.7, 3.7), (-4.4, -1.4)],
        &[
            (0.0, -2.1),
            (2.3, -4.4),
            (4.4, -2.3),
            (2.1, 0.0),
            (4.4, 2.3),
            (2.3, 4.4),
            (0.0, 2.1),
            (-2.3, 4.4),
            (-4.4, 2.3),
            (-2.1, 0.0),
            (-4.4, -2.3),
            (-2.3, -4.4),
        ],
    ];
    match CORNERS[slot % CORNERS.len()] {
        [] => Path::circle((0.0, 0.0), 3.8),
        corners => Path::around(corners),
    }
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
    fn kin_has_the_colour_and_dashes_of_its_own() {
        let mut palette = Palette::new(["pfc", "hpcc"]);
        for (nth, buffer) in ["1MB", "2MB", "4MB"].into_iter().enumerate() {
            palette.kin(&format!("hpcc, {buffer}"), "hpcc", nth);
        }
        let slots = ["hpcc", "hpcc, 1MB", "hpcc, 2MB", "hpcc, 4MB"].map(|name| palette.slot(name));
        assert_eq!(slots[0], slots[1]);
        assert!(slots.iter().all(|&slot| colour(slot) == colour(slots[0])));
        assert!(dash(slots[1]) != dash(slots[2]) && dash(slots[2]) != dash(slots[3]));
        assert_eq!(palette.slot("bfc"), 2);
    }

    #[test]
    fn fifty_six_slots_look_different() {
        let looks: std::collections::BTreeSet<_> =
            (0..56).map(|slot| (colour(slot), format!("{:?}", dash(slot)))).collect();
        assert_eq!(looks.len(), 56);
    }
}
