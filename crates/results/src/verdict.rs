//! Verdicts: what a paper says beside what was measured, and whether it holds.

use files::problem::Problem;
use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file that a verdict is written to.
pub const VERDICT: &str = "verdict.json";

/// A range that a value may lie in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
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
}

/// Whether one expectation holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Holds {
    /// It does.
    #[serde(rename = "holds")]
    Yes,
    /// Not in the range that the paper leads to expect, but near it.
    #[serde(rename = "partly")]
    Partly,
    /// It does not.
    #[serde(rename = "does not hold")]
    No,
    /// There are no data for it.
    #[serde(rename = "cannot be told")]
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
            Holds::Untold => "cannot be told",
            Holds::Asked => "asked",
        }
    }
}

/// Whether an experiment shows what its paper says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Overall {
    /// Every expectation holds.
    #[serde(rename = "holds")]
    Holds,
    /// Some do, or some do partly, or some cannot be judged.
    #[serde(rename = "holds in part")]
    InPart,
    /// None does.
    #[serde(rename = "does not hold")]
    Fails,
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
            Overall::Needs => "needs a scheme",
            Overall::NotRun => "not run",
            Overall::Measured => "measured",
        }
    }
}

/// An expectation beside what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Judged {
    /// What the paper says.
    pub paper: String,
    /// What was measured, as an expression.
    pub expression: String,
    /// What came out.
    pub value: Option<f64>,
    /// Where the true value lies with 95 % confidence.
    pub interval: Option<(f64, f64)>,
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
    /// Whether it would be the same anywhere in the interval.
    pub certain: Option<bool>,
    /// Why it cannot be judged.
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

    /// The range that was expected, for people.
    pub fn expected(&self) -> String {
        let show = |bound| show(bound, &self.unit);
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
