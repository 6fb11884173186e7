//! How numbers are written.

use crate::text::superscript;

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
    /// Things that are counted: every digit of `8064`. A mean of counts may have a part of one.
    Count,
}

impl Format {
    /// The unit without prefix, and the smallest and largest power of 1000 that has a name.
    pub(crate) fn base(self) -> Option<(&'static str, i32, i32)> {
        match self {
            Format::Bytes => Some(("B", 0, 5)),
            Format::Time => Some(("s", -4, 0)),
            Format::Rate => Some(("bps", 0, 5)),
            Format::Plain | Format::Percent | Format::Count => None,
        }
    }

    /// A value in words, to three significant digits (`12.3 KB`); a count in full.
    pub fn show(self, value: f64) -> String {
        if self == Format::Count && (value.abs() >= 100.0 || value.fract() == 0.0) && value.abs() < 1e15 {
            return trim(value.round());
        }
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

    /// The same in a table, where plain numbers keep their last digits though they be 0: `7.70` stands below `13.8`. `like` is the number
    /// that it goes with, such as the mean of an interval, whose digits it has.
    pub(crate) fn in_table(self, value: f64, like: f64) -> String {
        let size = if like.is_finite() { like.abs() } else { value.abs() };
        if let Some((_, low, high)) = self.base() {
            return self.with_unit(value, thousands(significant(value, 3), low, high));
        }
        if self != Format::Plain || !value.is_finite() || !(0.01..1e4).contains(&size) || value.abs() >= 1e6 {
            return self.show(value);
        }
        let digits = if size < 9.995 { 2 } else { usize::from(size < 99.95) };
        format!("{value:.digits$}").replace('-', "−")
    }

    /// A value with all of its three digits: `13.0 µs` stands below `45.7 µs`.
    pub(crate) fn exact(self, value: f64) -> String {
        self.in_table(value, value)
    }

    /// Three digits of a value in a unit of that power of 1000. Nothing is smaller than a byte, and 0 has no digits.
    fn with_unit(self, value: f64, power: i32) -> String {
        let scaled = significant(value, 3) / ten(3 * power);
        let whole = self == Format::Bytes && power == 0 && value.fract() == 0.0;
        if scaled == 0.0 || whole || !(0.01..1e4).contains(&scaled.abs()) {
            return self.show(value);
        }
        let digits = if scaled.abs() < 9.995 { 2 } else { usize::from(scaled.abs() < 99.95) };
        format!("{scaled:.digits$} {}", self.prefixed(power)).replace('-', "−")
    }

    /// The unit with the prefix of a power of 1000.
    pub(crate) fn prefixed(self, power: i32) -> String {
        const PREFIXES: [&str; 10] = ["p", "n", "µ", "m", "", "K", "M", "G", "T", "P"];
        let base = self.base().map_or("", |(base, ..)| base);
        format!("{}{base}", PREFIXES.get((power + 4) as usize).unwrap_or(&""))
    }
}

/// A plain number, short: powers of ten where the digits would run on.
pub(crate) fn plain(value: f64) -> String {
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
pub(crate) fn trim(value: f64) -> String {
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
pub(crate) fn exponent(value: f64) -> i32 {
    let text = format!("{value:e}");
    text.split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

/// The power of 1000 under a value, between two.
pub(crate) fn thousands(value: f64, low: i32, high: i32) -> i32 {
    if value == 0.0 { 0 } else { exponent(value.abs()).div_euclid(3) }.clamp(low, high)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_of_a_table_keep_their_zeros_and_intervals_the_digits_of_their_mean() {
        let own = |value: f64| Format::Plain.in_table(value, value);
        assert_eq!([7.7, 16.0, 1.284, 120.4, 9.999].map(own), ["7.70", "16.0", "1.28", "120", "10.0"]);
        assert_eq!(Format::Plain.in_table(0.00461, 1.04), "0.00");
        assert_eq!(Format::Plain.in_table(0.004, 0.004), "0.004");
        assert_eq!(Format::Bytes.in_table(7700.0, 1.0), "7.70 KB");
        assert_eq!(
            [13e-6, 45.7e-6, 2e-3, 0.0].map(|time| Format::Time.exact(time)),
            ["13.0 µs", "45.7 µs", "2.00 ms", "0 s"]
        );
        assert_eq!([64.0, 999_960.0].map(|size| Format::Bytes.exact(size)), ["64 B", "1.00 MB"]);
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
            (Format::Count, 8064.0, "8064"),
            (Format::Count, 12_345_678.0, "12345678"),
            (Format::Count, 743.33, "743"),
            (Format::Count, 33.333, "33.3"),
            (Format::Count, f64::NAN, "–"),
        ] {
            assert_eq!(format.show(value), text);
        }
    }
}
