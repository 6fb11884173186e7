//! Verdicts: what a paper says beside what was measured, and whether it holds.

use files::problem::Problem;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file that a verdict is written to.
pub const VERDICT: &str = "verdict.json";

/// A range that a value may lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// No less than this.
    pub at_least: Option<f64>,
    /// No more than this.
    pub at_most: Option<f64>,
}

impl Range {
    /// Whether the value lies in it.
    pub fn holds(self, value: f64) -> bool {
        self.at_least.is_none_or(|low| value >= low) && self.at_most.is_none_or(|high| value <= high)
    }

    /// Whether it leaves anything out.
    pub fn is_open(self) -> bool {
        self == Range::default()
    }

    /// Whether all values from `low` to `high` lie in it.
    pub fn holds_all(self, (low, high): (f64, f64)) -> bool {
        self.holds(low) && self.holds(high)
    }

    /// Whether any value from `low` to `high` lies in it.
    pub fn holds_any(self, (low, high): (f64, f64)) -> bool {
        self.at_least.is_none_or(|bound| high >= bound) && self.at_most.is_none_or(|bound| low <= bound)
    }

    /// This range further out, where `wider` has a bound.
    pub fn widened(self, wider: Option<Range>) -> Range {
        let wider = wider.unwrap_or_default();
        Range { at_least: wider.at_least.or(self.at_least), at_most: wider.at_most.or(self.at_most) }
    }
}

/// Whether one expectation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Holds {
    /// It does.
    #[serde(rename = "holds")]
    Yes,
    /// Not in the range that the paper leads to expect, or not surely, but near it.
    #[serde(rename = "partly")]
    Partly,
    /// It does not.
    #[serde(rename = "does not hold")]
    No,
    /// The interval has both values for which it does and for which it does not.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// There are no data for it.
    #[serde(rename = "no data")]
    Untold,
    /// Nothing is claimed: the value answers a question.
    #[serde(rename = "asked")]
    Asked,
}

impl Holds {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Holds::Yes => "holds",
            Holds::Partly => "partly",
            Holds::No => "does not hold",
            Holds::CannotTell => "cannot tell",
            Holds::Untold => "no data",
            Holds::Asked => "asked",
        }
    }
}

/// Whether an experiment shows what its paper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Overall {
    /// Every expectation holds.
    #[serde(rename = "holds")]
    Holds,
    /// At least one does, and at least half do or do partly.
    #[serde(rename = "holds in part")]
    InPart,
    /// Fewer do.
    #[serde(rename = "does not hold")]
    Fails,
    /// More seeds could make it hold in part.
    #[serde(rename = "cannot tell")]
    CannotTell,
    /// Some need a scheme that is not there yet.
    #[serde(rename = "needs a scheme")]
    Needs,
    /// There is nothing to judge by.
    #[serde(rename = "not run")]
    NotRun,
    /// Only questions were asked, and they are answered.
    #[serde(rename = "measured")]
    Measured,
}

impl Overall {
    /// As people read it.
    pub fn name(self) -> &'static str {
        match self {
            Overall::Holds => "holds",
            Overall::InPart => "holds in part",
            Overall::Fails => "does not hold",
            Overall::CannotTell => "cannot tell",
            Overall::Needs => "needs a scheme",
            Overall::NotRun => "not run",
            Overall::Measured => "measured",
        }
    }
}

/// An expectation beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// What the paper says.
    pub paper: String,
    /// What was measured, as an expression.
    pub expression: String,
    /// What came out.
    pub value: Option<f64>,
    /// Where the true value lies with 95 % confidence; none with fewer than two seeds.
    pub interval: Option<(f64, f64)>,
    /// The samples of its percentiles over all seeds, of the one that has the fewest; none without a percentile.
    pub samples: Option<usize>,
    /// Whether a percentile has too few samples to be trusted.
    pub few_samples: bool,
    /// `B`, `us`, `Gbps`, `%`, `x` or nothing.
    pub unit: String,
    /// It holds from here,
    pub at_least: Option<f64>,
    /// to here.
    pub at_most: Option<f64>,
    /// It holds in part in this range.
    pub partly: Option<Range>,
    /// Why this range.
    pub band: Option<String>,
    /// Whether it holds.
    pub holds: Holds,
    /// Why it cannot be judged, or not better.
    pub why: Option<String>,
    /// What it needs that is not there yet.
    pub needs: Vec<String>,
}

/// An experiment's verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// Version of the program.
    pub tailwater: &'static str,
    /// The experiment.
    pub id: String,
    /// The paper it is from, and where in it.
    pub document: String,
    /// What it is about.
    pub title: String,
    /// What the paper says, in our words.
    pub says: String,
    /// Our reading where it is silent.
    pub reading: Option<String>,
    /// How large it was run.
    pub scale: &'static str,
    /// The seeds, how many.
    pub seeds: usize,
    /// The runs, how many.
    pub runs: usize,
    /// Whether it holds.
    pub verdict: Overall,
    /// What it needs that is not there yet.
    pub needs: Vec<String>,
    /// One by one.
    pub expectations: Vec<Judged>,
}

impl Verdict {
    /// Where what is judged comes from: the paper and where in it, or nobody but us.
    pub fn source(&self) -> &str {
        match self.document.strip_prefix("no document") {
            Some(place) => {
                Some(place.trim_start_matches([',', ' '])).filter(|place| !place.is_empty()).unwrap_or("our question")
            }
            None => &self.document,
        }
    }

    /// How many expectations hold, and how many there are that claim something.
    pub fn tally(&self) -> (usize, usize) {
        let claims = self.expectations.iter().filter(|judged| judged.holds != Holds::Asked);
        (self.expectations.iter().filter(|judged| judged.holds == Holds::Yes).count(), claims.count())
    }

    /// The verdict in a line.
    pub fn line(&self) -> String {
        let (held, all) = self.tally();
        let tally = if all > 0 { format!(" ({held} of {all} expectations hold)") } else { String::new() };
        match self.verdict {
            Overall::Needs => format!("needs {}{tally}", self.needs.join(", ")),
            Overall::NotRun | Overall::Measured => self.verdict.name().into(),
            other => format!("{}{tally}", other.name()),
        }
    }

    /// Its size in words: scale, seeds and runs.
    pub fn size(&self) -> String {
        let plural = |n: usize, word: &str| if n == 1 { format!("1 {word}") } else { format!("{n} {word}s") };
        match self.runs {
            0 => format!("{} scale, nothing is run", self.scale),
            runs => format!("{} scale, {}, {}", self.scale, plural(self.seeds, "seed"), plural(runs, "run")),
        }
    }

    /// Whether any value has an interval.
    pub fn has_intervals(&self) -> bool {
        self.expectations.iter().any(|judged| judged.interval.is_some())
    }

    /// Writes `verdict.json` in `folder`, which is made if it is not there.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, Problem> {
        let path = folder.join(VERDICT);
        files::make_folder(folder)?;
        let text = serde_json::to_string_pretty(self)
            .map_err(|error| Problem::new(path.display().to_string(), format!("cannot be written: {error}")))?;
        files::write_all(&[(&path, text + "\n")])?;
        Ok(path)
    }
}

/// A value with its unit, for people.
pub fn show(value: f64, unit: &str) -> String {
    let scaled = |steps: &[(f64, &str)]| {
        let (scale, name) = steps.iter().find(|(scale, _)| value.abs() >= *scale).copied().unwrap_or((1.0, unit));
        format!("{} {name}", digits(value / scale))
    };
    match unit {
        "B" => scaled(&[(1e9, "GB"), (1e6, "MB"), (1e3, "KB")]),
        "us" => scaled(&[(1e6, "s"), (1e3, "ms")]),
        "Gbps" => scaled(&[(1e3, "Tbps")]),
        "%" => format!("{} %", digits(value * 100.0)),
        "x" => format!("{}×", digits(value)),
        _ => digits(value),
    }
}

/// Four significant digits.
pub fn digits(value: f64) -> String {
    match value.abs() {
        0.0 => "0".into(),
        x if !(1e-3..1e6).contains(&x) => format!("{value:.3e}"),
        x => {
            let places = (3 - x.log10().floor() as i32).max(0) as usize;
            let text = format!("{value:.places$}");
            if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
        }
    }
}

impl Judged {
    /// The measured value with its interval, for people.
    pub fn measured(&self) -> String {
        let Some(value) = self.value else { return "-".into() };
        let text = show(value, &self.unit);
        match self.interval {
            Some((low, high)) => format!("{text} ({} to {})", show(low, &self.unit), show(high, &self.unit)),
            None => text,
        }
    }

    /// The range that was expected.
    pub fn range(&self) -> Range {
        Range { at_least: self.at_least, at_most: self.at_most }
    }

    /// The range that was expected, and the one in which it holds partly, for people.
    pub fn expected(&self) -> String {
        let range = self.range();
        match self.partly {
            Some(_) => format!("{} (partly {})", range.show(&self.unit), range.widened(self.partly).show(&self.unit)),
            None => range.show(&self.unit),
        }
    }

    /// What is to be known of the samples, for people.
    pub fn few(&self) -> Option<String> {
        let samples = self.samples.filter(|_| self.few_samples)?;
        Some(format!("few samples: {samples}"))
    }
}

impl Range {
    /// For people.
    pub fn show(self, unit: &str) -> String {
        let show = |bound| show(bound, unit);
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) => format!("{} to {}", show(low), show(high)),
            (Some(low), None) => format!("≥ {}", show(low)),
            (None, Some(high)) => format!("≤ {}", show(high)),
            (None, None) => "-".into(),
        }
    }
}

/// The state of an experiment as its folder of results has it: scale and verdict in a line. `None` without one.
pub fn state(folder: &Path) -> Option<String> {
    let text = std::fs::read_to_string(folder.join(VERDICT)).ok()?;
    let value: Value = serde_json::from_str(&text).ok()?;
    let verdict = value.get("verdict")?.as_str()?;
    let scale = value.get("scale")?.as_str()?;
    let expectations = value.get("expectations")?.as_array()?;
    let holds = |judged: &Value| judged.get("holds").and_then(Value::as_str).map(String::from);
    let all = expectations.iter().filter_map(holds).filter(|holds| holds != Holds::Asked.name());
    let (held, all) = all.fold((0, 0), |(held, all), holds| (held + (holds == Holds::Yes.name()) as usize, all + 1));
    let needs = value.get("needs").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let needs: Vec<&str> = needs.collect();
    let verdict = if needs.is_empty() { verdict.into() } else { format!("needs {}", needs.join(", ")) };
    Some(if all > 0 { format!("{verdict} ({held} of {all}, {scale})") } else { format!("{verdict} ({scale})") })
}
