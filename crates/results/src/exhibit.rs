//! What an experiment has to show: its figures with their data, and the ranking of its schemes.

/// An experiment and what came out of it, ready to be drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Exhibit {
    /// The experiment.
    pub id: String,
    /// What it is about.
    pub title: String,
    /// The paper that it is from.
    pub citation: Option<String>,
    /// What the paper says, in our words.
    pub says: String,
    /// Our reading where it is silent.
    pub reading: Option<String>,
    /// The scenario as TOML; none where nothing is run.
    pub scenario: Option<String>,
    /// The names of its variants.
    pub variants: Vec<String>,
    /// How many seeds its data are from.
    pub seeds: usize,
    /// The scale at which it was run.
    pub scale: &'static str,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// The measures by which its variants are ranked.
    pub columns: Vec<Column>,
}

/// A figure as the paper has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its caption.
    pub title: String,
    /// How its points are drawn.
    pub style: Style,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// Lines to compare with.
    pub marks: Vec<Mark>,
    /// Its data: one, or a panel each.
    pub plots: Vec<Plot>,
}

/// How the points of a figure are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Lines through measured points.
    Lines,
    /// Bars.
    Bars,
    /// A cumulative distribution: shares of a whole.
    Distribution,
    /// A series over time.
    Series,
}

/// What every variant has of a measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What is measured, in a few words.
    pub title: String,
    /// Its unit.
    pub unit: String,
    /// Which values are better; none where that is a matter of taste.
    pub better: Option<Better>,
    /// The variants that can be run.
    pub entries: Vec<Entry>,
}

/// What a variant has of a measure.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// The variant.
    pub name: String,
    /// Its value; none where it cannot be determined.
    pub value: Option<f64>,
    /// The value's 95 % interval, where there are seeds enough for one.
    pub interval: Option<(f64, f64)>,
}

impl Column {
    /// By entry, its rank, counted from 1: how many are better for certain, and one. Values whose intervals overlap cannot be told apart; without
    /// intervals the values themselves are compared. None without a value, or where neither side is better.
    pub fn ranks(&self) -> Vec<Option<usize>> {
        let range = |entry: &Entry| Some(entry.interval.unwrap_or((entry.value?, entry.value?)));
        let better = |a: (f64, f64), b: (f64, f64)| match self.better {
            Some(Better::Low) => a.1 < b.0,
            Some(Better::High) => a.0 > b.1,
            None => false,
        };
        let rank = |entry: &Entry| {
            let own = range(entry).filter(|_| self.better.is_some() && entry.value.is_some())?;
            let others = self.entries.iter().filter(|other| other.value.is_some()).filter_map(range);
            Some(1 + others.filter(|&other| better(other, own)).count())
        };
        self.entries.iter().map(rank).collect()
    }
}

engine::choice! {
    /// Which values of a column are better.
    pub enum Better {
        /// Small ones.
        Low = "low",
        /// Large ones.
        High = "high",
    }
}

/// What the values of an axis are counted in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Microseconds.
    Microseconds,
    /// Milliseconds.
    Milliseconds,
    /// 10⁹ bits per second.
    GigabitsPerSecond,
    /// Hundredths.
    Percent,
    /// Bandwidth-delay products.
    Bdp,
}

impl Unit {
    /// Every unit.
    pub const ALL: [Unit; 6] =
        [Unit::Bytes, Unit::Microseconds, Unit::Milliseconds, Unit::GigabitsPerSecond, Unit::Percent, Unit::Bdp];

    /// As it is written.
    pub fn symbol(self) -> &'static str {
        match self {
            Unit::Bytes => "B",
            Unit::Microseconds => "us",
            Unit::Milliseconds => "ms",
            Unit::GigabitsPerSecond => "Gb/s",
            Unit::Percent => "%",
            Unit::Bdp => "BDP",
        }
    }
}

/// Where the values of an axis lie.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// What it shows.
    pub title: String,
    /// What its values are counted in; none for plain numbers.
    pub unit: Option<Unit>,
    /// Logarithmic.
    pub log: bool,
}

/// A line across a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Whether it lies at a height rather than stands at a place of the horizontal axis.
    pub level: bool,
    /// Where, in the axis' unit.
    pub at: f64,
    /// What it says.
    pub title: String,
}

/// A point of a curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Where on the horizontal axis; the number of the category from 0 where there are categories.
    pub x: f64,
    /// How high.
    pub y: f64,
    /// Confidence interval of the height.
    pub interval: Option<(f64, f64)>,
}

/// A curve of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// As the legend has it.
    pub name: String,
    /// The variant it belongs to, if to one.
    pub variant: Option<String>,
    /// Its points from left to right.
    pub points: Vec<Point>,
}

/// A figure, or a panel of one, ready to be drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plot {
    /// Its caption.
    pub title: String,
    /// Names along the horizontal axis, where it has no numbers.
    pub categories: Option<Vec<String>>,
    /// The curves that there is data for.
    pub curves: Vec<Curve>,
    /// The points that the paper states, by variant.
    pub stated: Vec<Curve>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_share_a_rank() {
        let entry = |value| Entry { name: String::new(), value, interval: None };
        let column = |better| Column {
            title: String::new(),
            unit: String::new(),
            better,
            entries: [Some(0.0), Some(3.0), None, Some(0.0), Some(1.0)].map(entry).to_vec(),
        };
        assert_eq!(column(Some(Better::Low)).ranks(), [Some(1), Some(4), None, Some(1), Some(3)]);
        assert_eq!(column(Some(Better::High)).ranks(), [Some(3), Some(1), None, Some(3), Some(2)]);
        assert_eq!(column(None).ranks(), [None; 5]);
    }

    #[test]
    fn overlapping_intervals_share_a_rank() {
        let entry = |(value, interval)| Entry { name: String::new(), value: Some(value), interval };
        let entries = [(2.0, Some((1.5, 2.5))), (2.2, Some((2.1, 2.3))), (2.4, Some((2.35, 2.6))), (9.0, None)];
        let column = Column {
            title: String::new(),
            unit: String::new(),
            better: Some(Better::Low),
            entries: entries.map(entry).to_vec(),
        };
        assert_eq!(
            column.ranks(),
            [Some(1), Some(1), Some(2), Some(4)],
            "only the second is better than the third for certain"
        );
    }
}
