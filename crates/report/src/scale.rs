//! From values to places: where an axis ends, which ticks it has.

use crate::figure::{Axis, Scale};
use crate::format::{Format, exponent, log_span, plain, significant, ten, thousands, trim};
use crate::text::{superscript, width};

/// Font size of tick labels.
pub(crate) const TICK: f64 = 13.0;

/// A labelled place on an axis.
pub(crate) struct Tick {
    pub at: f64,
    pub label: String,
}

/// An axis made ready: its ends, its ticks and its full label.
pub(crate) struct Ruler {
    pub low: f64,
    pub high: f64,
    pub log: bool,
    pub ticks: Vec<Tick>,
    pub minor: Vec<f64>,
    /// With the unit.
    pub label: String,
    /// What values are divided by to give the numbers at the ticks of a linear axis.
    pub divisor: f64,
}

/// Where a ruler lies and how it may stretch its ends.
pub(crate) struct Room {
    /// Length in units of the drawing.
    pub length: f64,
    /// Whether labels stand beside each other rather than on top.
    pub level: bool,
    /// Whether it has to begin at 0 (bars do).
    pub zero: bool,
    /// Whether something stands on or over the last value and wants some air.
    pub air: bool,
}

impl Ruler {
    /// The ruler of an axis for data between these bounds.
    pub fn new(axis: &Axis, bounds: Option<(f64, f64)>, room: &Room) -> Ruler {
        let fixed = axis.valid_range();
        let mut ruler = match (&axis.scale, fixed.or(bounds)) {
            (Scale::Categories(names), _) => Ruler::of_names(names),
            (_, None) => Ruler::bare(0.0, 1.0, false),
            (Scale::Log, Some(ends)) => Ruler::log(axis, if fixed.is_some() { ends } else { log_span(ends) }, room),
            (Scale::Linear, Some(ends)) => Ruler::linear(axis, ends, fixed.is_some(), room),
        };
        let unit = std::mem::take(&mut ruler.label);
        ruler.label = match (axis.label.is_empty(), unit.is_empty()) {
            (_, true) => axis.label.clone(),
            (true, false) => unit,
            (false, false) => format!("{} ({unit})", axis.label),
        };
        ruler
    }

    fn bare(low: f64, high: f64, log: bool) -> Ruler {
        Ruler { low, high, log, ticks: vec![], minor: vec![], label: String::new(), divisor: 1.0 }
    }

    pub fn of_names(names: &[String]) -> Ruler {
        let ticks = names.iter().enumerate().map(|(at, name)| Tick { at: at as f64, label: name.clone() });
        Ruler { ticks: ticks.collect(), ..Ruler::bare(-0.5, (names.len().max(1) as f64) - 0.5, false) }
    }

    /// The place of a value, 0 at the low end and 1 at the high one. Far outside it stops, to keep drawings finite.
    pub fn place(&self, value: f64) -> f64 {
        let at = if self.log {
            let from = libm::log10(self.low);
            (libm::log10(value.max(f64::MIN_POSITIVE)) - from) / (libm::log10(self.high) - from)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        at.clamp(-50.0, 51.0)
    }

    /// Whether a value lies on the ruler, give or take rounding.
    pub fn holds(&self, value: f64) -> bool {
        (-1e-6..=1.0 + 1e-6).contains(&self.place(value))
    }

    /// Whether no two labels come too close.
    fn fits(&self, room: &Room) -> bool {
        self.ticks.windows(2).all(|pair| {
            let apart = (self.place(pair[1].at) - self.place(pair[0].at)) * room.length;
            let need = if room.level {
                (width(&pair[0].label, TICK, false) + width(&pair[1].label, TICK, false)) / 2.0 + 1.1 * TICK
            } else {
                1.7 * TICK
            };
            apart >= need
        })
    }

    fn linear(axis: &Axis, (mut low, mut high): (f64, f64), fixed: bool, room: &Room) -> Ruler {
        if !fixed {
            if low >= 0.0 && (room.zero || (!room.level && low <= 0.6 * high)) {
                low = 0.0;
            } else if high <= 0.0 && room.zero {
                high = 0.0;
            }
            let span = high - low;
            if span <= 1e-9 * high.abs().max(low.abs()) {
                let some = if high == 0.0 { 1.0 } else { high.abs() / 2.0 };
                (low, high) = if low == 0.0 { (0.0, some) } else { (low - some, high + some) };
            } else if room.air && room.level {
                // What cannot be below 0 has no place there.
                let least = if low >= 0.0 { 0.0 } else { f64::NEG_INFINITY };
                (low, high) = ((low - 0.03 * span).max(least), high + 0.03 * span);
            } else if room.air {
                high += 0.08 * span;
            }
        }
        // One prefix for the whole axis, written once beside the label.
        let top = high.abs().max(low.abs());
        let (divisor, unit) = match axis.format.base() {
            Some((_, least, most)) => {
                let power = thousands(significant(top, 3), least, most);
                (ten(3 * power), axis.format.prefixed(power))
            }
            None if axis.format == Format::Percent => (0.01, String::new()),
            None => {
                let unit = axis.unit.clone().unwrap_or_default();
                let power = if (1e-2..1e5).contains(&top) { 0 } else { 3 * thousands(top, -100, 100) };
                match power {
                    0 => (1.0, unit),
                    _ if unit.is_empty() => (ten(power), format!("×10{}", superscript(power))),
                    _ => (ten(power), format!("10{} {unit}", superscript(power))),
                }
            }
        };
        let (low, high) = (low / divisor, high / divisor);
        let most = (room.length / if room.level { 48.0 } else { 36.0 }).clamp(1.0, 12.0) as usize;
        let mut ruler = Ruler::bare(low, high, false);
        for intervals in (1..=most).rev() {
            let (step, digits) = nice((high - low) / intervals as f64, axis.format == Format::Count);
            let (first, last) = ((low / step).floor(), (high / step).ceil());
            // An upright axis ends at ticks, a level one only if it very nearly does.
            let near = match (fixed, room.level) {
                (true, _) => 0.0,
                (_, true) => 0.02 * (high - low),
                (_, false) => f64::INFINITY,
            };
            let end = |end: f64, tick: f64| if (end - tick).abs() < near { tick } else { end };
            ruler = Ruler::bare(end(low, first * step), end(high, last * step), false);
            let marks = (0..=(last - first) as usize).map(|i| (first + i as f64) * step).filter(|&at| ruler.holds(at));
            let suffix = if axis.format == Format::Percent { "%" } else { "" };
            let label = |at: f64| match digits {
                0..7 if at.abs() < 1e7 => format!("{}{suffix}", trim(format!("{at:.digits$}").parse().unwrap_or(at))),
                _ => format!("{}{suffix}", plain(at)),
            };
            ruler.ticks = marks.map(|at| Tick { at, label: label(at) }).collect();
            if ruler.fits(room) {
                break;
            }
        }
        ruler.ticks.iter_mut().for_each(|tick| tick.at *= divisor);
        Ruler { low: ruler.low * divisor, high: ruler.high * divisor, label: unit, divisor, ..ruler }
    }

    fn log(axis: &Axis, (low, high): (f64, f64), room: &Room) -> Ruler {
        let mut ruler = Ruler::bare(low, high, true);
        if axis.format == Format::Plain {
            ruler.label = axis.unit.clone().unwrap_or_default();
        }
        let decades = libm::log10(high) - libm::log10(low);
        let (first, last) = (exponent(low), exponent(high));
        let powers = || (first..=last).map(ten);
        if decades <= 9.0 {
            let all = powers().flat_map(|power| (1..10).map(move |digit| f64::from(digit) * power));
            ruler.minor = all.filter(|&at| ruler.holds(at)).collect();
        }
        // Digits that plain powers of ten would run on with are written as powers, all of them.
        let raised = axis.format == Format::Plain && (high >= 9e4 || low <= 2e-4);
        let label = |at: f64| match exponent(significant(at, 3)) {
            _ if !raised => axis.format.show(at),
            power => match significant(at / ten(power), 3) {
                1.0 => format!("10{}", superscript(power)),
                factor => format!("{}·10{}", trim(factor), superscript(power)),
            },
        };
        let ticks = |places: Vec<f64>| places.into_iter().map(|at| Tick { at, label: label(at) }).collect::<Vec<_>>();
        let of = |digits: &[f64]| powers().flat_map(|power| digits.iter().map(move |digit| digit * power)).collect();
        let mut choices: Vec<Vec<f64>> = Vec::new();
        if decades < 0.7 {
            for intervals in (2..6).rev() {
                let (step, _) = nice((high - low) / f64::from(intervals), false);
                let first = (low / step).ceil();
                choices.push((0..=intervals).map(|i| significant((first + f64::from(i)) * step, 6)).collect());
            }
        }
        if decades < 2.7 {
            choices.push(of(&[1.0, 2.0, 5.0]));
            choices.push(of(&[1.0, 3.0]));
        }
        for every in 1..=(last - first).max(1) {
            choices.push((first..=last).filter(|power| power.rem_euclid(every) == 0).map(ten).collect());
        }
        for choice in choices {
            let places: Vec<f64> = choice.into_iter().filter(|&at| ruler.holds(at)).collect();
            let enough = places.len() > 1;
            ruler.ticks = ticks(places);
            if enough && ruler.fits(room) {
                break;
            }
        }
        ruler
    }
}

/// A round step at least as large, and the decimals its multiples need; a `whole` one for things that are counted.
fn nice(step: f64, whole: bool) -> (f64, usize) {
    let step = if whole { step.max(1.0) } else { step };
    let power = exponent(step);
    let fits = |factor: f64| factor * ten(power) >= step * (1.0 - 1e-9) && !(whole && power == 0 && factor == 2.5);
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|&factor| fits(factor));
    let factor = factor.unwrap_or(10.0);
    let digits = -(power + i32::from(factor == 10.0)) + i32::from(factor == 2.5);
    (factor * ten(power), digits.max(0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LEVEL: Room = Room { length: 400.0, level: true, zero: false, air: false };
    const UPRIGHT: Room = Room { length: 220.0, level: false, zero: false, air: false };

    fn labels(ruler: &Ruler) -> Vec<&str> {
        ruler.ticks.iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn a_linear_axis_has_one_prefix_and_round_ticks() {
        let ruler = Ruler::new(&Axis::linear("Queue").format(Format::Bytes), Some((0.0, 873_000.0)), &UPRIGHT);
        assert_eq!(ruler.label, "Queue (KB)");
        assert_eq!(labels(&ruler), ["0", "200", "400", "600", "800", "1000"]);
        assert_eq!((ruler.low, ruler.high), (0.0, 1e6));
        let ruler = Ruler::new(&Axis::linear("Time").format(Format::Time), Some((0.0, 0.0031)), &LEVEL);
        assert_eq!(ruler.label, "Time (ms)");
        assert_eq!(labels(&ruler), ["0", "0.5", "1", "1.5", "2", "2.5", "3"]);
        let ruler = Ruler::new(&Axis::linear("Share").format(Format::Percent), Some((0.0, 0.034)), &UPRIGHT);
        assert_eq!(labels(&ruler), ["0%", "1%", "2%", "3%", "4%"]);
        let ruler =
            Ruler::new(&Axis::linear("Step").format(Format::Count), Some((0.0, 8.0)), &Room { length: 200.0, ..LEVEL });
        assert!(ruler.ticks.iter().all(|tick| tick.at.fract() == 0.0), "{:?}", labels(&ruler));
        let ruler = Ruler::new(&Axis::linear("Flows"), Some((0.0, 2e6)), &UPRIGHT);
        assert_eq!(ruler.label, "Flows (×10⁶)");
        let ruler = Ruler::new(&Axis::linear("Depth").unit("packets"), Some((3.0, 3.0)), &UPRIGHT);
        assert_eq!(ruler.label, "Depth (packets)");
        assert!(ruler.low < 3.0 && ruler.high > 3.0);
    }

    #[test]
    fn a_log_axis_has_its_decades_labelled_and_the_rest_marked() {
        let ruler = Ruler::new(&Axis::log("Buffer").format(Format::Bytes), Some((1200.0, 9e6)), &LEVEL);
        assert_eq!((ruler.low, ruler.high), (1e3, 1e7));
        assert_eq!(labels(&ruler), ["1 KB", "10 KB", "100 KB", "1 MB", "10 MB"]);
        assert_eq!(ruler.minor.len(), 4 * 9 + 1);
        let places: Vec<f64> = ruler.ticks.iter().map(|tick| ruler.place(tick.at)).collect();
        for (place, want) in places.iter().zip([0.0, 0.25, 0.5, 0.75, 1.0]) {
            assert!((place - want).abs() < 1e-12);
        }
    }

    #[test]
    fn a_short_log_axis_has_ticks_within_the_decade_and_a_long_one_skips_some() {
        let ruler = Ruler::new(&Axis::log("Slowdown"), Some((1.1, 38.0)), &UPRIGHT);
        assert_eq!(labels(&ruler), ["1", "2", "5", "10", "20", "50"]);
        let ruler = Ruler::new(&Axis::log("Slowdown"), Some((3.1, 4.4)), &UPRIGHT);
        assert!(ruler.ticks.len() > 1);
        let ruler = Ruler::new(&Axis::log("Rate"), Some((1e-15, 1e15)), &UPRIGHT);
        assert!(labels(&ruler).contains(&"10⁰"), "{:?}", labels(&ruler));
        assert!(ruler.ticks.len() <= 11);
    }

    proptest! {
        #[test]
        fn any_data_gives_ticks_on_the_axis_that_do_not_collide(
            a in (-1.0..1.0f64, -90..90i32), b in (-1.0..1.0f64, -90..90i32), near in any::<bool>(),
            log in any::<bool>(), level in any::<bool>(), format in 0..5usize
        ) {
            let a = a.0 * ten(a.1);
            let b = if near { a * (1.0 + b.0) } else { b.0 * ten(b.1) };
            let (a, b) = if log { (a.abs().max(1e-100), b.abs().max(1e-100)) } else { (a, b) };
            let format = [Format::Plain, Format::Bytes, Format::Time, Format::Rate, Format::Percent][format];
            let axis = if log { Axis::log("x") } else { Axis::linear("x") }.format(format);
            let room = if level { LEVEL } else { UPRIGHT };
            let bounds = (a.min(b), a.max(b));
            let ruler = Ruler::new(&axis, Some(bounds), &room);
            prop_assert!(ruler.holds(bounds.0) && ruler.holds(bounds.1));
            prop_assert!(ruler.ticks.len() < 20);
            prop_assert!(ruler.ticks.iter().all(|tick| ruler.holds(tick.at)));
            prop_assert!(ruler.ticks.len() < 2 || ruler.fits(&room));
        }
    }
}
