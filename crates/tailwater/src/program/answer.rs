//! Who wins where, as comparisons and sweeps ask: which flows count, and in which ranges of sizes.

use clap::Args;
use engine::{Bytes, QuantityError, Time};
use files::problem::Problem;
use results::answer::{Answer, BINS, Question, Run};
use results::comparison::{Table, together};
use results::print::size;
use serde_json::{Map, Value, json};
use std::path::PathBuf;
use store::grid::Cell;

/// The file with every class of flows.
pub const BY_SIZE: &str = "by_size.csv";
/// The most sentences that are printed.
const MOST: usize = 4;
/// Columns of a line of text.
const WIDTH: usize = 110;

/// Which flows count, and how they are told apart.
#[derive(Args, Default)]
pub struct Asked {
    /// Tell flows apart by these sizes, such as `10KB,1MB` [default: 10KB,100KB,1MB].
    #[arg(long, value_name = "SIZE,SIZE", value_delimiter = ',')]
    bins: Vec<String>,
    /// Slowdowns by size only of flows that start from this instant on: leave a warm-up out.
    #[arg(long, value_name = "TIME")]
    from: Option<String>,
    /// Slowdowns by size only of flows that start before this instant.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Print completion times by size, too: the median and the 99th percentile, in microseconds. `by_size.csv` and the report have them in any case.
    #[arg(long)]
    pub times: bool,
}

impl Asked {
    /// What is asked, or all that is wrong with it.
    pub fn question(&self) -> Result<Question, Vec<Problem>> {
        let mut problems = Vec::new();
        let mut wrong = |place: &str, text: String, remedy: &str| problems.push(Problem::new(place, text).help(remedy));
        let bad = |text: &str, error: QuantityError| format!("{text}: {error}");
        let mut bins = Vec::new();
        for text in &self.bins {
            match text.trim().parse::<Bytes>() {
                Ok(Bytes(0)) => wrong(
                    "--bins",
                    "0 bytes is no size".into(),
                    "begin with the largest of the small flows, such as 10KB",
                ),
                Ok(Bytes(end)) => bins.push(end),
                Err(error) => wrong("--bins", bad(text, error), "write sizes as in --bins 10KB,1MB"),
            }
        }
        if !bins.is_sorted_by(|a, b| a < b) {
            wrong("--bins", "sizes must rise".into(), "write them from small to large, each once");
        }
        if bins.is_empty() {
            bins = BINS.to_vec();
        }
        let mut time =
            |place: &str, text: &Option<String>, none: u64| match text.as_ref().map(|text| text.parse::<Time>()) {
                None => none,
                Some(Ok(time)) => time.0,
                Some(Err(error)) => {
                    wrong(place, bad(text.as_deref().unwrap_or_default(), error), "write a time as in 500us");
                    none
                }
            };
        let (from_ps, until_ps) = (time("--from", &self.from, 0), time("--until", &self.until, u64::MAX));
        if problems.is_empty() && from_ps >= until_ps {
            problems.push(
                Problem::new("--until", "no flow starts before it and from --from on")
                    .help("make it later than --from"),
            );
        }
        if problems.is_empty() { Ok(Question { bins, from_ps, until_ps }) } else { Err(problems) }
    }

    /// The options that ask the same.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        let mut options = Vec::new();
        if !self.bins.is_empty() {
            options.push(("bins", self.bins.join(",")));
        }
        options.extend(self.from.clone().map(|time| ("from", time)));
        options.extend(self.until.clone().map(|time| ("until", time)));
        options
    }
}

/// Reads the flows of all runs and answers.
pub fn answer(question: Question, plan: &[Cell], folders: &[PathBuf], summaries: &[Value]) -> Result<Answer, Problem> {
    let runs = plan.iter().zip(folders).zip(summaries).map(|((cell, folder), summary)| {
        let peak_buffer = summary.pointer("/buffer/peak").and_then(Value::as_f64).unwrap_or(0.0);
        let end_ps = summary["end_ps"].as_u64().unwrap_or(u64::MAX);
        let list = |key: &str| summary[key].as_array().cloned().unwrap_or_default();
        let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_string();
        Ok(Run {
            labels: &cell.labels,
            flows: store::open_flows(folder)?,
            groups: list("groups").iter().map(name).collect(),
            end_ps,
            peak_buffer,
            completions: together(std::iter::once(summary))
                .into_iter()
                .map(|(_, name, what, at)| ((name, what), at.of(summary)))
                .collect(),
        })
    });
    Answer::new(question, runs)
}

/// What is printed: what went wrong, who wins where, then the table by size, and that of completion times if it was asked for.
pub fn text(answer: &Answer, table: &Table, times: bool) -> String {
    let contests = answer.clauses();
    let mut text: String = table.troubles().iter().map(|line| format!("{line}\n")).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    if answer.classes.is_empty() {
        let remedy = if answer.window().is_empty() { "" } else { ": `tailwater check` says when flows start" };
        text += &format!("no flow counts{}{remedy}\n", answer.window());
    }
    for clauses in contests.iter().take(MOST) {
        clauses.iter().for_each(|clause| text += &format!("{}\n", wrapped(clause)));
        text.push('\n');
    }
    if contests.len() > MOST {
        text += &format!("… and {} more, in {BY_SIZE}\n\n", contests.len() - MOST);
    }
    text += &answer.text();
    if times {
        text += &format!("\n{}", answer.times());
    }
    text
}

/// What stands above the table of the rest, which knows no window.
pub fn rest(answer: &Answer) -> &'static str {
    if answer.window().is_empty() { "" } else { "of all flows, whenever they start:\n" }
}

fn wrapped(text: &str) -> String {
    let (mut out, mut column) = (String::new(), 0);
    for word in text.split(' ') {
        let width = word.chars().count();
        if column > 0 && column + 1 + width > WIDTH {
            out.push_str("\n  ");
            column = 2;
        } else if column > 0 {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += width;
    }
    out
}

/// What files say of it.
pub fn about(answer: &Answer) -> Map<String, Value> {
    let question = answer.question();
    let until = (question.until_ps < u64::MAX).then_some(question.until_ps);
    let mut about = Map::new();
    about.insert(
        "answer".into(),
        json!({
            "sentences": answer.sentences(),
            "bins": question.bins.iter().map(|&end| size(end)).collect::<Vec<_>>(),
            "from_ps": question.from_ps,
            "until_ps": until,
        }),
    );
    about
}
