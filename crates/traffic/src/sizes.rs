//! How large messages are: distributions of sizes, published ones and a user's own.
//!
//! A distribution is a table of sizes and of the share of messages up to each. Between two rows all whole sizes are equally
//! likely, so the share of messages up to a size grows linearly: it is what the table says at every row, exactly, and
//! linear between. A size that comes twice is a step: that many messages have just this size.

use crate::text::{FileFault, Line, quoted};
use crate::{Fault, MAX_SIZE};
use engine::{Bytes, Stream};

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Row {
    /// Bytes.
    size: u64,
    /// Share of messages of that size or smaller.
    share: f64,
}

/// A distribution of message sizes, in whole bytes from 1 on.
#[derive(Clone, Debug, PartialEq)]
pub struct Sizes {
    /// In order. The first share is 0 and the last is 1.
    rows: Vec<Row>,
    mean: f64,
}

/// A published distribution.
#[derive(Clone, Copy, Debug)]
pub struct Published {
    /// What scenario files call it.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    table: Table,
}

#[derive(Clone, Copy, Debug)]
enum Table {
    File(&'static str),
    /// Bounds of classes and the share of each: of messages, or of bytes.
    Classes(&'static [(u64, u64, f64)], Of),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Of {
    Messages,
    Bytes,
}

/// The four traffic classes of the DVL paper (Gonzalez-Naharro et al.): sizes from and to, percent.
const DVL: &[(u64, u64, f64)] = &[
    (1_000, 100_000, 69.52),
    (100_001, 1_000_000, 25.3),
    (1_000_001, 10_000_000, 3.0),
    (10_000_001, 30_000_000, 2.18),
];

/// Every published distribution.
pub const PUBLISHED: [Published; 8] = [
    Published {
        name: "google",
        about: "All applications of a Google data centre, as BFC uses it.",
        table: Table::File(include_str!("../data/google.csv")),
    },
    Published {
        name: "fb-hadoop",
        about: "A Hadoop cluster at Facebook, as BFC uses it.",
        table: Table::File(include_str!("../data/fb-hadoop.csv")),
    },
    Published {
        name: "hadoop",
        about: "A Hadoop cluster at Facebook, as HPCC and SFC use it.",
        table: Table::File(include_str!("../data/hadoop.csv")),
    },
    Published {
        name: "rpc",
        about: "Remote procedure calls at Google, 2008, as SFC uses it.",
        table: Table::File(include_str!("../data/rpc.csv")),
    },
    Published {
        name: "websearch",
        about: "The web search cluster of the DCTCP paper.",
        table: Table::File(include_str!("../data/websearch.csv")),
    },
    Published {
        name: "storage",
        about: "Distributed storage at Alibaba, 2019, as HPCC uses it.",
        table: Table::File(include_str!("../data/storage.csv")),
    },
    Published {
        name: "dvl",
        about: "The four classes of the DVL paper, read as shares of messages.",
        table: Table::Classes(DVL, Of::Messages),
    },
    Published {
        name: "dvl-bytes",
        about: "The four classes of the DVL paper, read as shares of bytes.",
        table: Table::Classes(DVL, Of::Bytes),
    },
];

impl Published {
    /// The distribution.
    pub fn sizes(&self) -> Result<Sizes, FileFault> {
        match self.table {
            Table::File(text) => Sizes::read(text),
            Table::Classes(classes, of) => Ok(Sizes::classes(classes, of)),
        }
    }
}

impl Sizes {
    /// The published distribution of that name.
    pub fn published(name: &str) -> Option<Sizes> {
        PUBLISHED.iter().find(|published| published.name == name).and_then(|published| published.sizes().ok())
    }

    /// One size for all.
    pub fn fixed(size: u64) -> Result<Sizes, Fault> {
        Sizes::check(size, size)?;
        Ok(Sizes::new(vec![Row { size, share: 0.0 }, Row { size, share: 1.0 }]))
    }

    /// Every size from `least` to `most`, both included, alike.
    pub fn uniform(least: u64, most: u64) -> Result<Sizes, Fault> {
        Sizes::check(least, most)?;
        Ok(Sizes::new(vec![Row { size: least - 1, share: 0.0 }, Row { size: most, share: 1.0 }]))
    }

    fn check(least: u64, most: u64) -> Result<(), Fault> {
        let fault = |message: String, help: String| Err(Fault { field: "sizes", message, help });
        if least == 0 {
            return fault("a message has no bytes".into(), "write sizes above zero, such as \"64KB\"".into());
        }
        if most > MAX_SIZE.0 {
            return fault(format!("a message of {} is too large", Bytes(most)), format!("write up to {MAX_SIZE}"));
        }
        if least > most {
            let message = format!("{} is more than {}", Bytes(least), Bytes(most));
            return fault(message, "write the smaller size first".into());
        }
        Ok(())
    }

    /// Classes of sizes alike within each: the least and the most of each, and its weight.
    fn classes(classes: &[(u64, u64, f64)], of: Of) -> Sizes {
        let weight = |&(least, most, share): &(u64, u64, f64)| match of {
            Of::Messages => share,
            // A class with large messages has fewer of them for the same bytes.
            Of::Bytes => share / ((least + most) as f64 / 2.0),
        };
        let total: f64 = classes.iter().map(weight).sum();
        let mut share = 0.0;
        let mut rows = Vec::with_capacity(2 * classes.len());
        for class in classes {
            rows.push(Row { size: class.0 - 1, share });
            share += weight(class) / total;
            rows.push(Row { size: class.1, share });
        }
        rows.dedup_by(|a, b| a.size == b.size && a.share == b.share);
        if let Some(last) = rows.last_mut() {
            // Sums of shares end within a rounding of 1.
            last.share = 1.0;
        }
        Sizes::new(rows)
    }

    /// Reads a table: a size in bytes and a cumulative share per line, separated by blanks or a comma. What follows a `#` is a
    /// comment. The shares end with 1, or with 100 if they are percentages.
    pub fn read(text: &str) -> Result<Sizes, FileFault> {
        let mut rows: Vec<Row> = Vec::new();
        let mut last = None;
        for line in Line::all(text) {
            let row = read_row(line)?;
            let (size, share) = row.0;
            if size == 0 && share > 0.0 {
                let message = format!("a share of {share} has messages of no bytes");
                return Err(line.fault(row.1[0], message, "begin with 0 0, or with a size above zero"));
            }
            if let Some(before) = rows.last() {
                if size < before.size {
                    let message = format!("size {size} comes after {}", before.size);
                    return Err(line.fault(row.1[0], message, "put the rows in order of size"));
                }
                if share < before.share {
                    let message = format!("share {share} comes after {}", before.share);
                    let help = "write cumulative shares: of messages of that size or smaller";
                    return Err(line.fault(row.1[1], message, help));
                }
            } else if share > 0.0 {
                rows.push(Row { size, share: 0.0 });
            }
            rows.push(Row { size, share });
            last = Some((line, row.1[1]));
        }
        let Some((line, word)) = last else {
            let help = "write a size in bytes and a cumulative share per line, such as 1000 0.5";
            return Err(Line { number: 1, text: "" }.fault("", "the file has no rows", help));
        };
        let whole = rows.last().map_or(0.0, |row| row.share);
        if whole != 1.0 && whole != 100.0 {
            let message = format!("the last share is {whole}");
            return Err(line.fault(word, message, "end with 1, or with 100 if the shares are percentages"));
        }
        rows.iter_mut().for_each(|row| row.share /= whole);
        Ok(Sizes::new(rows))
    }

    fn new(rows: Vec<Row>) -> Sizes {
        let mean = rows.windows(2).map(|pair| bytes(pair[0], pair[1], pair[1].size)).sum();
        Sizes { rows, mean }
    }

    /// The mean size in bytes.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The smallest size.
    pub fn min(&self) -> u64 {
        self.at(0.0)
    }

    /// The largest size.
    pub fn max(&self) -> u64 {
        let last = self.rows.windows(2).rev().find(|pair| pair[1].share > pair[0].share);
        last.map_or(0, |pair| pair[1].size)
    }

    /// The size that the share `quantile` of messages, from 0 to below 1, is smaller than.
    #[inline]
    pub fn at(&self, quantile: f64) -> u64 {
        let place = self.rows.partition_point(|row| row.share <= quantile).clamp(1, self.rows.len() - 1);
        let (low, high) = (self.rows[place - 1], self.rows[place]);
        let steps = high.size - low.size;
        if steps == 0 {
            return high.size;
        }
        let step = (steps as f64 * ((quantile - low.share) / (high.share - low.share))) as u64;
        low.size + 1 + step.min(steps - 1)
    }

    /// A size at random.
    #[inline]
    pub fn draw(&self, random: &mut Stream) -> u64 {
        self.at(random.uniform())
    }

    /// The share of messages of that size or smaller.
    pub fn cdf(&self, size: u64) -> f64 {
        let place = self.rows.partition_point(|row| row.size <= size);
        let Some(low) = place.checked_sub(1).map(|place| self.rows[place]) else { return 0.0 };
        let Some(high) = self.rows.get(place) else { return 1.0 };
        low.share + (high.share - low.share) * ((size - low.size) as f64 / (high.size - low.size) as f64)
    }

    /// The share of all bytes that are in messages of that size or smaller.
    pub fn bytes_share(&self, size: u64) -> f64 {
        let below = |pair: &[Row]| if pair[0].size <= size { bytes(pair[0], pair[1], size) } else { 0.0 };
        self.rows.windows(2).map(below).sum::<f64>() / self.mean
    }
}

/// What the messages between two rows that are no larger than `size` add to the mean.
fn bytes(low: Row, high: Row, size: u64) -> f64 {
    let weight = high.share - low.share;
    if low.size == high.size {
        return weight * high.size as f64;
    }
    // All of low.size + 1 ..= high.size are alike.
    let top = size.min(high.size);
    let (count, middle) = ((top - low.size) as f64, (low.size + 1 + top) as f64 / 2.0);
    weight * (count / (high.size - low.size) as f64) * middle
}

/// A size and a share, and the words they are.
fn read_row<'a>(line: Line<'a>) -> Result<((u64, f64), [&'a str; 2]), FileFault> {
    const HELP: &str = "write a size in bytes and a cumulative share, such as 1000 0.5; begin other lines with #";
    let content = line.text.split('#').next().unwrap_or_default();
    let mut words = content.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    let (Some(size), Some(share)) = (words.next(), words.next()) else {
        return Err(line.fault(line.end(), "a row has two numbers", HELP));
    };
    if let Some(word) = words.next() {
        return Err(line.fault(word, format!("{} is one number too many", quoted(word)), HELP));
    }
    // Scripts print whole numbers as 1000.0 and 1e6, too.
    let number = |word: &str| word.parse::<f64>().ok().filter(|number| *number >= 0.0 && number.is_finite());
    let bytes = number(size).filter(|bytes| bytes.fract() == 0.0);
    let Some(bytes) = bytes else {
        return Err(line.fault(size, format!("{} is not a whole number of bytes", quoted(size)), HELP));
    };
    if bytes > MAX_SIZE.0 as f64 {
        return Err(line.fault(size, format!("size {bytes} is too large"), format!("write up to {}", MAX_SIZE.0)));
    }
    let Some(share_value) = number(share).filter(|share| *share <= 100.0) else {
        return Err(line.fault(share, format!("{} is not a share from 0 to 1 or to 100", quoted(share)), HELP));
    };
    Ok(((bytes as u64, share_value), [size, share]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs().max(1.0)
    }

    #[test]
    fn the_table_holds_exactly_at_its_rows_and_is_linear_between() {
        let sizes = Sizes::read("0 0\n100 0.5  # half\n\n300,1\n").unwrap();
        assert_eq!(
            (sizes.cdf(0), sizes.cdf(50), sizes.cdf(100), sizes.cdf(200), sizes.cdf(300)),
            (0.0, 0.25, 0.5, 0.75, 1.0)
        );
        assert_eq!((sizes.min(), sizes.max(), sizes.cdf(u64::MAX)), (1, 300, 1.0));
        assert_eq!((sizes.at(0.0), sizes.at(0.5), sizes.at(0.499_999), sizes.at(0.999_999)), (1, 101, 100, 300));
        // Half of the messages are 1 to 100 bytes, half 101 to 300.
        assert!(close(sizes.mean(), 0.5 * 50.5 + 0.5 * 200.5));
        assert!(close(sizes.bytes_share(100), 0.5 * 50.5 / sizes.mean()));
        assert!(close(sizes.bytes_share(300), 1.0) && sizes.bytes_share(0) == 0.0);
    }

    #[test]
    fn the_mean_and_the_shares_are_those_of_every_single_size() {
        for text in ["0 0\n7 10\n7 30\n20 100", "5 0.25\n9 1", "3 1", "0 0\n2 0\n4 1\n6 1"] {
            let sizes = Sizes::read(text).unwrap();
            let chance = |size: u64| sizes.cdf(size) - if size == 0 { 0.0 } else { sizes.cdf(size - 1) };
            let mean: f64 = (0..=25).map(|size| size as f64 * chance(size)).sum();
            assert!(close(sizes.mean(), mean), "{text}: {} is not {mean}", sizes.mean());
            for size in 0..=25 {
                let up_to: f64 = (0..=size).map(|size| size as f64 * chance(size)).sum();
                assert!(close(sizes.bytes_share(size), up_to / mean), "{text} at {size}");
            }
            let drawn: Vec<u64> = (0..10_000).map(|i| sizes.at(i as f64 / 10_000.0)).collect();
            for size in 0..=25 {
                let share = drawn.iter().filter(|drawn| **drawn <= size).count() as f64 / 10_000.0;
                assert!((share - sizes.cdf(size)).abs() < 2e-4, "{text} at {size}");
            }
            assert_eq!((drawn[0], drawn[9_999]), (sizes.min(), sizes.max()), "{text}");
        }
    }

    #[test]
    fn a_step_is_a_size_that_many_messages_have() {
        let sizes = Sizes::fixed(64_000).unwrap();
        assert_eq!((sizes.min(), sizes.max(), sizes.mean(), sizes.at(0.7)), (64_000, 64_000, 64_000.0, 64_000));
        assert_eq!((sizes.cdf(63_999), sizes.cdf(64_000), sizes.bytes_share(64_000)), (0.0, 1.0, 1.0));
        let sizes = Sizes::uniform(10, 12).unwrap();
        assert_eq!((sizes.min(), sizes.max(), sizes.mean()), (10, 12, 11.0));
        assert!(Sizes::fixed(0).is_err() && Sizes::uniform(5, 4).is_err() && Sizes::fixed(u64::MAX).is_err());
    }

    #[test]
    fn the_published_tables_are_whole() {
        // The means as the tables' own authors compute them: the middle of each row, without the half byte that
        // whole sizes add.
        let expected = [
            ("google", 2906.9865, 102, 15_158_197),
            ("fb-hadoop", 121_849.2, 101, 10_000_000),
            ("hadoop", 120_420.75, 1, 10_000_000),
            ("rpc", 2891.6212, 1, 15_158_197),
            ("websearch", 1_711_250.0, 1, 30_000_000),
            ("storage", 40_869.8, 1, 2_000_000),
            ("dvl", 775_257.6, 1_000, 30_000_000),
        ];
        for (name, mean, min, max) in expected {
            let sizes = Sizes::published(name).unwrap();
            assert!((sizes.mean() - 0.5 - mean).abs() / mean < 1e-6, "{name}: {}", sizes.mean());
            assert_eq!((sizes.min(), sizes.max()), (min, max), "{name}");
        }
        PUBLISHED.iter().for_each(|published| assert!(published.sizes().is_ok(), "{}", published.name));
        assert_eq!(Sizes::published("yahoo"), None);
    }

    #[test]
    fn the_classes_of_dvl_have_their_shares() {
        let bounds = [(999, 0.0), (100_000, 0.6952), (1_000_000, 0.9482), (10_000_000, 0.9782), (30_000_000, 1.0)];
        let (messages, bytes) = (Sizes::published("dvl").unwrap(), Sizes::published("dvl-bytes").unwrap());
        for (size, share) in bounds {
            assert!(close(messages.cdf(size), share), "{size}: {}", messages.cdf(size));
            assert!(close(bytes.bytes_share(size), share), "{size}: {}", bytes.bytes_share(size));
        }
    }

    #[test]
    fn a_bad_table_is_refused_at_its_line_and_column() {
        let cases = [
            ("", 1, 1, "no rows"),
            ("# only this", 1, 1, "no rows"),
            ("0 0\n10 0.5\n5 1", 3, 1, "size 5 comes after 10"),
            ("0 0\n10 0.5\n20 0.4\n30 1", 3, 4, "share 0.4 comes after 0.5"),
            ("0 0\n10 0.5\n20 0.9", 3, 4, "the last share is 0.9"),
            ("0 0\n10 50", 2, 4, "the last share is 50"),
            ("0 0.1\n10 1", 1, 1, "no bytes"),
            ("0 0\n0 1", 2, 1, "no bytes"),
            ("0 0\n0 0.5\n10 1", 2, 1, "no bytes"),
            ("0 0\n1.5 1", 2, 1, "whole number of bytes"),
            ("0 0\nten 1", 2, 1, "\"ten\" is not"),
            ("0 0\n-5 1", 2, 1, "\"-5\" is not"),
            ("0 0\n  5   x", 2, 7, "\"x\" is not a share"),
            ("0 0\n5 101", 2, 3, "is not a share"),
            ("0 0\n5 nan", 2, 3, "is not a share"),
            ("0 0\n5", 2, 2, "two numbers"),
            ("0 0\n5 1 1", 2, 5, "one number too many"),
            ("0 0\n1e13 1", 2, 1, "too large"),
        ];
        for (text, line, column, message) in cases {
            let fault = Sizes::read(text).expect_err(text);
            assert_eq!((fault.line, fault.column), (line, column), "{fault}");
            assert!(fault.message.contains(message), "{fault}");
            assert!(!fault.help.is_empty());
        }
        assert_eq!(Sizes::read("0 0\n1e3 100.0").unwrap(), Sizes::read("0,0\n1000,1").unwrap());
    }
}
