//! The claims ledger: every checkable statement of the papers as an experiment that anyone can run by name.
//!
//! The data's path: an [`experiment`] file says what a paper says, gives the runs, and what is expected of them in the
//! language of [`expression`]; the runs become [`evidence`]; from it come a verdict ([`judge()`]) and what there is to show
//! ([`exhibit()`]). The files of `experiments/` are part of the program, so that adding one needs no code, and so are the results that are
//! [`published`]. The [`papers`] themselves are cited from one list. What papers compute is [`theory`].

mod answer;
mod earlier;
pub mod evidence;
mod exhibit;
pub mod experiment;
pub mod expression;
mod judge;
pub mod numbers;
pub mod papers;
pub mod published;
pub mod theory;

#[cfg(test)]
mod tests;

pub use exhibit::exhibit;
pub use judge::judge;

use experiment::Experiment;
use expression::Sizes;
use files::problem::{Problem, read_text};
use scenario::document::{quoted, suggest};
use std::path::Path;

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The published tables of flow sizes.
struct PublishedSizes;

impl Sizes for PublishedSizes {
    fn bytes_share(&self, workload: &str, up_to: u64) -> Option<f64> {
        traffic::Sizes::published(workload).map(|sizes| sizes.bytes_share(up_to))
    }
    fn flows_share(&self, workload: &str, up_to: u64) -> Option<f64> {
        traffic::Sizes::published(workload).map(|sizes| sizes.cdf(up_to))
    }
}

/// The tables of flow sizes that experiments ask about.
pub fn sizes() -> &'static dyn Sizes {
    &PublishedSizes
}

/// The ids of all experiments, in order.
pub fn ids() -> impl Iterator<Item = &'static str> {
    EXPERIMENTS.iter().map(|(id, _)| *id)
}

/// The text of an experiment's file.
pub fn text(id: &str) -> Option<&'static str> {
    EXPERIMENTS.iter().find(|(known, _)| *known == id).map(|(_, text)| *text)
}

fn built_in(id: &str, text: &str) -> Result<Experiment, Problem> {
    Experiment::read(&format!("experiments/{id}.toml"), text, &self::text)
}

/// All experiments, in order.
pub fn all() -> Result<Vec<Experiment>, Problem> {
    EXPERIMENTS.iter().map(|(id, text)| built_in(id, text)).collect()
}

/// The experiments that a word names: an id, a paper's prefix of the ids (`bfc`), or the path of a file of one's own.
pub fn named(word: &str) -> Result<Vec<Experiment>, Problem> {
    if let Some(text) = text(word) {
        return Ok(vec![built_in(word, text)?]);
    }
    let path = Path::new(word);
    if word.ends_with(".toml") || path.is_file() {
        let mut experiment = Experiment::read(word, &read_text(path)?, &text)?;
        experiment.file = Some(path.to_owned());
        return Ok(vec![experiment]);
    }
    let folder = format!("{}/", word.trim_end_matches('/'));
    let inside: Vec<&(&str, &str)> = EXPERIMENTS.iter().filter(|(id, _)| id.starts_with(&folder)).collect();
    if !inside.is_empty() {
        return inside.into_iter().map(|(id, text)| built_in(id, text)).collect();
    }
    let problem = Problem::new(word, format!("there is no experiment {}", quoted(word)));
    Err(problem.help(match near(word).as_slice() {
        [] => "`tailwater claims` lists them; a file of your own ends with .toml".into(),
        [several @ .., last] if !several.is_empty() => {
            format!("did you mean {} or {last}? `tailwater claims` lists all", several.join(", "))
        }
        near => format!("did you mean {}? `tailwater claims` lists all", near.join("")),
    }))
}

/// The most experiments that are suggested.
const MOST_NEAR: usize = 8;

/// The ids that `word` may have meant.
fn near(word: &str) -> Vec<&'static str> {
    let ids: Vec<&'static str> = ids().collect();
    let last = |id: &'static str| id.split_once('/').map_or(id, |(_, last)| last);
    // "fig5a" without its paper, "bfc/fig5" of which there are several, or some letters off.
    let mut near: Vec<&'static str> = ids.iter().copied().filter(|id| last(id) == word).collect();
    if near.is_empty() && !word.is_empty() {
        let part = |id: &&'static str| id.starts_with(word) || last(id).starts_with(word);
        near.extend(ids.iter().copied().filter(part).take(MOST_NEAR));
    }
    if !near.is_empty() {
        return near;
    }
    near.extend(suggest(word, &ids).filter(|id| !near.contains(id)));
    if near.is_empty() {
        let lasts: Vec<&'static str> = ids.iter().copied().map(last).collect();
        let meant = suggest(word.split_once('/').map_or(word, |(_, last)| last), &lasts);
        near.extend(ids.iter().copied().filter(|id| Some(last(id)) == meant).take(3));
    }
    near
}

/// Tests find the schemes that come with the program.
#[cfg(test)]
#[ctor::ctor]
#[allow(unsafe_code)]
fn install() {
    schemes::install();
}
