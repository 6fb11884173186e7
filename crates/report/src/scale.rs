//! From values to places: how numbers are written, where an axis ends, which ticks it has.

use crate::figure::{Axis, Scale};
use crate::text::{superscript, width};

/// Font size of tick labels.
pub(crate) const TICK: f64 = 13.0;

/// How the numbers of an axis are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// As they are.
    #[default]
    Plain,
    /// Bytes: `100 KB`, powers of 1000.
    Bytes,
    /// Seconds: `20 µs`.
    Time,
    /// Bits per second: `100 Gbps`.
    Rate,
    /// Shares of 1: `0.25` is `25%`.
    Percent,
}

impl Format {
    /// The unit without prefix, and the smallest and largest power of 1000 that has a name.
    pub(crate) fn base(self) -> Option<(&'static str, i32, i32)> {
        match self {
            Format::Bytes => Some(("B", 0, 5)),
            Format::Time => Some(("s", -4, 0)),
            Format::Rate => Some(("bps", 0, 5)),
            Format::Plain | Format::Percent => None,
        }
    }

    /// A value in words, to three significant digits: `12.3 KB`.
    pub fn show(self, value: f64) -> String {
        let value = significant(value, 3);
        if !value.is_finite() {
            return "–".to_string();
        }
        match self.base() {
            Some((_, low, high)) => {
                let power = thousands(value, low, high);
                format!("{} {}", plain(significant(value / ten(3 * power), 3)), self.prefixed(power))
            }
            None if self == Format::Percent => format!("{}%", plain(significant(value * 100.0, 3))),
            None => plain(value),
        }
    }

    /// The unit with the prefix of a power of 1000.
    fn prefixed(self, power: i32) -> String {
        const PREFIXES: [&str; 10] = ["p", "n", "µ", "m", "", "K", "M", "G", "T", "P"];
        let base = self.base().map_or("", |(base, ..)| base);
        format!("{}{base}", PREFIXES.get((power + 4) as usize).unwrap_or(&""))
    }
}

/// A plain number, short: powers of ten where the digits would run on.
fn plain(value: f64) -> String {
    let size = value.abs();
    if size == 0.0 || (1e-3..1e6).contains(&size) {
        return trim(value);
    }
    let power = exponent(size);
    let factor = significant(value / ten(power), 4);
    if factor == 1.0 {
        format!("10{}", superscript(power))
    } else {
        format!("{}·10{}", trim(factor), superscript(power))
    }
}

/// The shortest decimal number, with a real minus sign.
fn trim(value: f64) -> String {
    if value == 0.0 { "0".to_string() } else { value.to_string().replace('-', "−") }
}

/// A value rounded to so many significant digits.
pub(crate) fn significant(value: f64, digits: usize) -> f64 {
    format!("{:.*e}", digits.saturating_sub(1), value).parse().unwrap_or(value)
}

/// The power of ten, exactly the number one would write. (`powi` may round differently from machine to machine.)
pub(crate) fn ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::NAN)
}

/// The largest whole power of ten not above a positive value.
fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

/// The power of 1000 under a value, between two.
fn thousands(value: f64, low: i32, high: i32) -> i32 {
    if value == 0.0 { 0 } else { exponent(value.abs()).div_euclid(3) }.clamp(low, high)
}

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

    fn of_names(names: &[String]) -> Ruler {
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
                (low, high) = (low - 0.03 * span, high + 0.03 * span);
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
            let (step, digits) = nice((high - low) / intervals as f64);
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
                let (step, _) = nice((high - low) / f64::from(intervals));
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

/// The ends of a logarithmic axis for data between these: the next 1, 2 or 5 of a decade.
pub(crate) fn log_span((low, high): (f64, f64)) -> (f64, f64) {
    let (low, high) = (low.clamp(1e-300, 1e300), high.clamp(1e-300, 1e300));
    let (low, high) = if high <= low * (1.0 + 1e-9) { (low / 2.0, high * 2.0) } else { (low, high) };
    let steps = |value: f64| [1.0, 2.0, 5.0, 10.0].map(|digit| digit * ten(exponent(value)));
    let below = steps(low).into_iter().rfind(|&step| step <= low * (1.0 + 1e-9)).unwrap_or(low);
    let above = steps(high).into_iter().find(|&step| step >= high * (1.0 - 1e-9)).unwrap_or(high);
    (below, above)
}

/// A round step at least as large, and the decimals its multiples need.
fn nice(step: f64) -> (f64, usize) {
    let power = exponent(step);
    let factor = [1.0, 2.0, 2.5, 5.0, 10.0].into_iter().find(|&factor| factor * ten(power) >= step * (1.0 - 1e-9));
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
    fn numbers_are_written_as_people_write_them() {
        for (format, value, text) in [
            (Format::Bytes, 0.0, "0 B"),
            (Format::Bytes, 999.96, "1 KB"),
            (Format::Bytes, 123_456.0, "123 KB"),
            (Format::Bytes, 1.5e15, "1.5 PB"),
            (Format::Bytes, 0.25, "0.25 B"),
            (Format::Time, 0.00002, "20 µs"),
            (Format::Time, 1e-13, "0.1 ps"),
            (Format::Time, 90.0, "90 s"),
            (Format::Rate, 1e11, "100 Gbps"),
            (Format::Percent, 0.1234, "12.3%"),
            (Format::Percent, 0.00001, "0.001%"),
            (Format::Plain, 1234.5, "1230"),
            (Format::Plain, -0.5, "−0.5"),
            (Format::Plain, 2e7, "2·10⁷"),
            (Format::Plain, 1e-6, "10⁻⁶"),
            (Format::Plain, f64::NAN, "–"),
        ] {
            assert_eq!(format.show(value), text);
        }
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
