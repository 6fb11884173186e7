//! The values of an axis as numbers.

use engine::{Bytes, Rate, Time};

/// What the values of an axis measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Plain numbers.
    Number,
    /// Bytes.
    Bytes,
    /// Seconds.
    Time,
    /// Bits per second.
    Rate,
}

/// The values of an axis as numbers of one kind, where they all are: bytes, seconds, bits per second, or as they are.
pub fn numbers(values: &[&str]) -> Option<(Kind, Vec<f64>)> {
    type Reader = fn(&str) -> Option<f64>;
    let bare = |value: &str| value.trim().trim_matches('"').to_string();
    let all = |read: Reader| values.iter().map(|value| read(&bare(value))).collect::<Option<Vec<f64>>>();
    let readers: [(Kind, Reader); 4] = [
        (Kind::Number, |text| text.parse().ok().filter(|number: &f64| number.is_finite())),
        (Kind::Bytes, |text| text.parse::<Bytes>().ok().map(|bytes| bytes.0 as f64)),
        (Kind::Time, |text| text.parse::<Time>().ok().map(Time::secs_f64)),
        (Kind::Rate, |text| text.parse::<Rate>().ok().map(|rate| rate.0 as f64)),
    ];
    readers.into_iter().find_map(|(kind, read)| Some((kind, all(read)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_of_one_kind_or_names() {
        assert_eq!(numbers(&["0.5", "1"]), Some((Kind::Number, vec![0.5, 1.0])));
        assert_eq!(numbers(&["\"4MB\"", "500KB"]), Some((Kind::Bytes, vec![4e6, 5e5])));
        assert_eq!(numbers(&["1us", "2ms"]), Some((Kind::Time, vec![1e-6, 2e-3])));
        assert_eq!(numbers(&["100Gbps"]), Some((Kind::Rate, vec![1e11])));
        assert_eq!(numbers(&["1us", "4MB"]), None);
        assert_eq!(numbers(&["ecmp", "1"]), None);
    }
}
