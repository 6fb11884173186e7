//! Quantities with their units in the type: [`Time`], [`Rate`] and [`Bytes`].
//!
//! People write them with a unit (`"1.5us"`, `"100Gbps"`, `"12MB"`); each type parses that and prints it back.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};
use std::str::FromStr;

/// An instant or a duration in integer picoseconds. The range is about 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

impl Time {
    /// The beginning of every simulation.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const MAX: Time = Time(u64::MAX);

    /// Whole nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// Whole microseconds.
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    /// Whole milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    /// Picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// Nanoseconds, rounded down.
    pub const fn ns(self) -> u64 {
        self.0 / 1_000
    }
    /// Seconds, for display and rates only.
    pub fn secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }
    /// Microseconds, for display only.
    pub fn us_f64(self) -> f64 {
        self.0 as f64 * 1e-6
    }
    /// `self - other`, or zero where `other` is later.
    pub const fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    /// `self + other`, or the latest time where that would overflow.
    pub const fn saturating_add(self, other: Time) -> Time {
        Time(self.0.saturating_add(other.0))
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        Time(self.0 + other.0)
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        self.0 += other.0;
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0 - other.0)
    }
}

/// A bit rate in integer bits per second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rate(pub u64);

impl Rate {
    /// Whole gigabits per second.
    pub const fn from_gbps(gbps: u64) -> Rate {
        Rate(gbps * 1_000_000_000)
    }
    /// Whole megabits per second.
    pub const fn from_mbps(mbps: u64) -> Rate {
        Rate(mbps * 1_000_000)
    }
    /// Bits per second.
    pub const fn bps(self) -> u64 {
        self.0
    }
    /// The time `bytes` take at this rate, rounded up to a picosecond so that a link is never faster than
    /// its rate.
    pub fn time_for(self, bytes: u64) -> Time {
        let bits_ps = bytes as u128 * 8 * 1_000_000_000_000;
        Time(bits_ps.div_ceil(self.0 as u128) as u64)
    }
    /// How many whole bytes this rate carries in `time`.
    pub fn bytes_in(self, time: Time) -> u64 {
        match self.0.checked_mul(time.0) {
            Some(product) => product / 8_000_000_000_000,
            None => (self.0 as u128 * time.0 as u128 / 8_000_000_000_000) as u64,
        }
    }
    /// How many bytes hold all that this rate carries in `time`; [`u64::MAX`] if that is more.
    pub fn bytes_over(self, time: Time) -> u64 {
        let bytes = (self.0 as u128 * time.0 as u128).div_ceil(8_000_000_000_000);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// A number of bytes; only a parser and a printer around a `u64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Text that is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityError {
    /// The text, without space around it.
    pub text: String,
    /// What is wrong with it.
    pub fault: QuantityFault,
    /// What was to be read.
    pub expected: Quantity,
}

/// What is wrong with a text that is to be a quantity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuantityFault {
    /// It has no number.
    NoNumber,
    /// The number is below zero.
    Negative,
    /// It has no unit.
    NoUnit,
    /// There is no such unit.
    UnknownUnit(String),
    /// What stands before the unit is not a decimal number.
    NotDecimal(String),
    /// It is larger than the type goes.
    TooLarge,
    /// It is no whole number of the smallest unit.
    TooFine,
}

/// A kind of quantity, as messages speak of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quantity {
    /// Its name with an article.
    pub name: &'static str,
    /// An example.
    pub example: &'static str,
    /// The units in which it can be written, each with how many of the smallest it is.
    units: &'static [(&'static str, u64)],
}

impl fmt::Display for QuantityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QuantityError { text, fault, expected: Quantity { name, example, units } } = self;
        let known = || units.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        match fault {
            QuantityFault::NoNumber => write!(f, "expected {name} such as \"{example}\", found \"{text}\""),
            QuantityFault::Negative => write!(f, "{name} cannot be negative: \"{text}\""),
            QuantityFault::NoUnit => {
                write!(f, "\"{text}\" has no unit; write {name} such as \"{example}\" (units: {})", known())
            }
            QuantityFault::UnknownUnit(unit) => {
                write!(f, "unknown unit \"{unit}\" in \"{text}\"")?;
                match self.meant() {
                    Some(meant) => write!(f, "; did you mean \"{meant}\"? The units are {}", known()),
                    None => write!(f, "; {name} takes one of {}", known()),
                }
            }
            QuantityFault::NotDecimal(number) => {
                write!(f, "\"{number}\" is not a decimal number; expected {name} such as \"{example}\"")
            }
            QuantityFault::TooLarge => write!(f, "\"{text}\" is too large for {name}"),
            QuantityFault::TooFine => write!(f, "\"{text}\" is finer than the smallest step of {name}"),
        }
    }
}

impl std::error::Error for QuantityError {}

impl QuantityError {
    /// The text with the unit that was probably meant: `400Gbps` for `400G`.
    pub fn meant(&self) -> Option<String> {
        let QuantityFault::UnknownUnit(unit) = &self.fault else { return None };
        let number = self.text.strip_suffix(unit.as_str())?;
        let lower = unit.to_lowercase();
        let known = || self.expected.units.iter().map(|(name, _)| *name);
        // Rates have many spellings, such as Gbit/s; their first letter tells them apart.
        let of_rate = |name: &&str| self.expected == RATE && name.len() > 3 && unit.starts_with(&name[..1]);
        let found = known()
            .find(|name| name.to_lowercase() == lower)
            .or_else(|| known().find(|name| name.starts_with(unit.as_str())))
            .or_else(|| known().find(|name| name.to_lowercase().starts_with(&lower)))
            .or_else(|| known().find(of_rate));
        found.map(|unit| format!("{number}{unit}"))
    }
}

impl Quantity {
    /// Splits `"1.5us"` into a decimal number and its unit, scaled exactly to an integer of the smallest unit.
    fn parse(self, text: &str) -> Result<u64, QuantityError> {
        let text = text.trim();
        self.scaled(text).map_err(|fault| QuantityError { text: text.into(), fault, expected: self })
    }

    fn scaled(self, text: &str) -> Result<u64, QuantityFault> {
        let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = (text[..split].trim(), text[split..].trim());
        if number.is_empty() {
            return Err(QuantityFault::NoNumber);
        }
        if number.starts_with('-') {
            return Err(QuantityFault::Negative);
        }
        if unit.is_empty() {
            return Err(QuantityFault::NoUnit);
        }
        let Some(&(_, scale)) = self.units.iter().find(|(name, _)| *name == unit) else {
            return Err(QuantityFault::UnknownUnit(unit.into()));
        };
        let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
        let digits = |s: &str| s.chars().all(|c| c.is_ascii_digit() || c == '_');
        if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
            return Err(QuantityFault::NotDecimal(number.into()));
        }
        let clean = |s: &str| s.replace('_', "");
        let whole: u128 = match clean(whole).as_str() {
            "" => 0,
            s => s.parse().map_err(|_| QuantityFault::TooLarge)?,
        };
        let fraction = clean(fraction);
        let fraction = fraction.trim_end_matches('0');
        let mut value = whole.checked_mul(scale as u128).ok_or(QuantityFault::TooLarge)?;
        if !fraction.is_empty() {
            let too_fine = QuantityFault::TooFine;
            let Some(denominator) = 10u128.checked_pow(fraction.len() as u32) else { return Err(too_fine) };
            let numerator = fraction.parse::<u128>().ok().and_then(|digits| digits.checked_mul(scale as u128));
            match numerator {
                Some(numerator) if numerator.is_multiple_of(denominator) => value += numerator / denominator,
                _ => return Err(too_fine),
            }
        }
        u64::try_from(value).map_err(|_| QuantityFault::TooLarge)
    }
}

/// Prints a value in the largest unit that divides it.
fn print_scaled(f: &mut fmt::Formatter<'_>, value: u64, units: &[(&str, u64)]) -> fmt::Result {
    let unit = units.iter().rev().find(|(_, scale)| value != 0 && value.is_multiple_of(*scale));
    let (name, scale) = unit.copied().unwrap_or(units[0]);
    write!(f, "{}{}", value / scale, name)
}

const TIME_UNITS: &[(&str, u64)] =
    &[("ps", 1), ("ns", 1_000), ("us", 1_000_000), ("ms", 1_000_000_000), ("s", 1_000_000_000_000)];
const RATE_UNITS: &[(&str, u64)] =
    &[("bps", 1), ("kbps", 1_000), ("Mbps", 1_000_000), ("Gbps", 1_000_000_000), ("Tbps", 1_000_000_000_000)];
const BYTE_UNITS: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];
const BYTE_PRINT: &[(&str, u64)] = &[("B", 1), ("KB", 1_000), ("MB", 1_000_000), ("GB", 1_000_000_000)];

const TIME: Quantity = Quantity { name: "a time", example: "1.5us", units: TIME_UNITS };
const RATE: Quantity = Quantity { name: "a rate", example: "100Gbps", units: RATE_UNITS };
const BYTES: Quantity = Quantity { name: "a size", example: "12MB", units: BYTE_UNITS };

macro_rules! units {
    ($($type:ident $quantity:ident),*) => {$(
        impl $type {
            /// The units in which it can be written.
            pub fn units() -> impl Iterator<Item = &'static str> {
                $quantity.units.iter().map(|(name, _)| *name)
            }
        }

        impl FromStr for $type {
            type Err = QuantityError;
            fn from_str(text: &str) -> Result<$type, QuantityError> {
                $quantity.parse(text).map($type)
            }
        }
    )*};
}
units!(Time TIME, Rate RATE, Bytes BYTES);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, TIME_UNITS)
    }
}
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, RATE_UNITS)
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        print_scaled(f, self.0, BYTE_PRINT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_read_exactly_and_printed_back() {
        assert_eq!("1.5us".parse(), Ok(Time(1_500_000)));
        assert_eq!("100Gbps".parse(), Ok(Rate::from_gbps(100)));
        assert_eq!("12MB".parse(), Ok(Bytes(12_000_000)));
        assert_eq!("12MiB".parse(), Ok(Bytes(12 << 20)));
        assert_eq!("0.000001s".parse(), Ok(Time::from_us(1)));
        assert_eq!(Time::from_us(3).to_string(), "3us");
        assert_eq!(Rate(25_500_000_000).to_string(), "25500Mbps");
        assert_eq!(Time::ZERO.to_string(), "0ps");
    }

    #[test]
    fn a_bad_quantity_says_what_is_wrong_and_what_to_write() {
        let error = |s: &str| s.parse::<Time>().unwrap_err().to_string();
        assert!(error("5").contains("no unit"));
        assert!(error("5 parsecs").contains("unknown unit \"parsecs\""));
        assert!(error("-1us").contains("negative"));
        assert!(error("0.1ps").contains("finer"));
        assert!(error("99999999999999s").contains("too large"));
        assert!(error("1e3us").contains("unknown unit"));
        assert!(error("us").contains("expected a time"));
    }

    #[test]
    fn a_unit_that_is_nearly_right_is_suggested() {
        let rate = |text: &str| text.parse::<Rate>().unwrap_err().meant();
        assert_eq!(rate("400G").as_deref(), Some("400Gbps"));
        assert_eq!(rate("400 gbps").as_deref(), Some("400 Gbps"));
        assert_eq!(rate("40Gbit/s").as_deref(), Some("40Gbps"));
        assert_eq!(rate("40XB"), None);
        let size = |text: &str| text.parse::<Bytes>().unwrap_err().meant();
        assert_eq!((size("4M").as_deref(), size("4mb").as_deref(), size("4XB")), (Some("4MB"), Some("4MB"), None));
        let time = |text: &str| text.parse::<Time>().unwrap_err().meant();
        assert_eq!((time("5u").as_deref(), time("5 parsecs")), (Some("5us"), None));
        assert!("400G".parse::<Rate>().unwrap_err().to_string().contains("did you mean \"400Gbps\"?"));
    }

    #[test]
    fn a_packet_takes_the_time_its_bits_take() {
        assert_eq!(Rate::from_gbps(100).time_for(1048), Time(83_840));
        assert_eq!(Rate::from_gbps(56).time_for(7), Time(1_000));
        assert_eq!(Rate::from_gbps(100).bytes_in(Time::from_us(8)), 100_000);
        assert_eq!(Rate::from_gbps(100).bytes_over(Time::from_us(8)), 100_000);
        assert_eq!((Rate(8).bytes_in(Time(1)), Rate(8).bytes_over(Time(1))), (0, 1));
        assert_eq!(Rate(u64::MAX).bytes_over(Time::MAX), u64::MAX);
    }
}
