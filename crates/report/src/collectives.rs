//! When collectives were done, as the page of a run tells it.

use crate::curves::word;
use crate::{Axis, Cell, Column, Figure, Format, Palette, Section, Style, Table};
use files::problem::Problem;
use results::records::COLLECTIVES;
use results::tables;
use serde_json::Value;
use std::path::Path;

/// A round of a collective, or one of its steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// The collective.
    pub name: String,
    /// The round, from 0.
    pub round: u64,
    /// The step, from 0; none for the whole round.
    pub step: Option<u64>,
    /// From the start of its first message to the receipt of its last; none if it was not done.
    pub completion_ps: Option<u64>,
}

/// The rounds and steps of a folder of results; none where nothing was done together.
pub fn open(folder: &Path) -> Result<Vec<Step>, Problem> {
    let path = folder.join(COLLECTIVES);
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let table = tables::read(&path)?;
    let (names, rounds, steps) = (table.texts("collective")?, table.counts("round")?, table.maybe_counts("step")?);
    let times = table.maybe_counts("completion_ps")?;
    let row =
        |row: usize| Step { name: names[row].into(), round: rounds[row], step: steps[row], completion_ps: times[row] };
    Ok((0..table.rows()).map(row).collect())
}

/// A step with how long it took.
pub type Done<'a> = (&'a Step, u64);

/// How long the steps of a collective took that were done.
fn took<'a>(steps: &'a [Step], name: &'a str) -> impl Iterator<Item = Done<'a>> {
    let of = steps.iter().filter(move |step| step.name == name && step.step.is_some());
    of.filter_map(|step| Some((step, step.completion_ps?)))
}

/// The quickest and the slowest step of a collective, the first of several; none where a round has but one.
pub fn ends<'a>(steps: &'a [Step], name: &'a str) -> Option<(Done<'a>, Done<'a>)> {
    steps.iter().find(|step| step.name == name && step.step.is_some_and(|step| step > 0))?;
    let quickest = took(steps, name).min_by_key(|(_, time)| *time)?;
    let slowest = took(steps, name).reduce(|most, next| if next.1 > most.1 { next } else { most })?;
    Some((quickest, slowest))
}

/// The most rounds that a figure has lines for.
const MOST_ROUNDS: usize = 6;

/// How long every step took: a line for each round.
fn by_step(steps: &[Step], name: &str, alone: bool) -> Option<Figure> {
    ends(steps, name)?;
    let mut rounds: Vec<u64> = took(steps, name).map(|(step, _)| step.round).collect();
    rounds.dedup();
    let id = if alone { "steps".into() } else { format!("steps-{}", word(name)) };
    let y = Axis::linear("Completion time").format(Format::Time);
    let mut figure = Figure::new(id, "Completion time by step", Axis::linear("Step").format(Format::Count), y);
    figure.subtitle = if alone { String::new() } else { name.into() };
    let mut palette = Palette::default();
    for round in rounds.iter().take(MOST_ROUNDS) {
        let of = took(steps, name).filter(|(step, _)| step.round == *round);
        let points: Vec<(f64, f64)> =
            of.map(|(step, time)| (step.step.unwrap_or(0) as f64, time as f64 / 1e12)).collect();
        let style = if points.len() > 50 { Style::Line } else { Style::LineMarkers };
        figure.series.push(palette.series(&format!("round {round}"), style, points));
    }
    if rounds.len() > MOST_ROUNDS {
        figure.notes.push(format!("the first {MOST_ROUNDS} of {} rounds", rounds.len()));
    }
    // From nothing: what differs little is to look so.
    let most = took(steps, name).map(|(_, time)| time).max()? as f64 / 1e12;
    figure.y.range = (most > 0.0).then_some((0.0, 1.04 * most));
    Some(figure)
}

/// What a page says of collectives, and its figures; nothing where there are none.
pub(crate) fn section(summary: &Value, steps: &[Step]) -> Option<(Section, Vec<Figure>)> {
    let all = summary["collectives"].as_array().filter(|all| !all.is_empty())?;
    let time = |value: &Value| value.as_f64().map_or("–".into(), |ps| Format::Time.exact(ps / 1e12));
    let row = |one: &Value| -> Vec<Cell> {
        let text = |key: &str| one[key].as_str().unwrap_or_default();
        let step = |(step, time): (&Step, u64)| {
            let (round, step) = (step.round, step.step.unwrap_or(0));
            format!("{} (step {step} of round {round})", Format::Time.exact(time as f64 / 1e12))
        };
        let ends = ends(steps, text("name"));
        vec![
            text("name").into(),
            text("kind").into(),
            one["hosts"].to_string().into(),
            format!("{} of {}", one["finished"], one["rounds"]).into(),
            time(&one["completion_ps"]["mean"]).into(),
            time(&one["completion_ps"]["max"]).into(),
            ends.map_or("–".into(), |ends| step(ends.0)).into(),
            ends.map_or("–".into(), |ends| step(ends.1)).into(),
        ]
    };
    let numbers = ["hosts", "rounds done", "completion, mean", "longest", "quickest step", "slowest step"];
    let mut section = Section::new("Collectives");
    section.push(Table {
        caption: "From the start of a round's first message to the receipt of its last, over the rounds that were done. Rounds and steps \
                  count from 0, as in `collectives.parquet`."
            .into(),
        columns: ["collective", "kind"].map(Column::text).into_iter().chain(numbers.map(Column::number)).collect(),
        rows: all.iter().map(row).collect(),
    });
    let figures: Vec<Figure> =
        all.iter().filter_map(|one| by_step(steps, one["name"].as_str()?, all.len() == 1)).collect();
    figures.iter().for_each(|figure| section.push(figure.clone()));
    Some((section, figures))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn steps(times: &[&[u64]]) -> Vec<Step> {
        let step = |round: usize, step: Option<usize>, time: u64| Step {
            name: "ring".into(),
            round: round as u64,
            step: step.map(|step| step as u64),
            completion_ps: (time > 0).then_some(time * 1_000_000),
        };
        let round = |(at, times): (usize, &&[u64])| {
            let own = times.iter().enumerate().map(|(place, time)| step(at, Some(place), *time)).collect::<Vec<_>>();
            [vec![step(at, None, times.iter().sum())], own].concat()
        };
        times.iter().enumerate().flat_map(round).collect()
    }

    #[test]
    fn the_first_of_the_slowest_steps_is_named_and_a_step_that_was_not_done_is_not() {
        let steps = steps(&[&[3, 9, 2], &[9, 2, 0]]);
        let ((quickest, least), (slowest, most)) = ends(&steps, "ring").unwrap();
        assert_eq!((quickest.round, quickest.step, least), (0, Some(2), 2_000_000));
        assert_eq!((slowest.round, slowest.step, most), (0, Some(1), 9_000_000));
        assert_eq!(ends(&steps, "other"), None);
    }

    #[test]
    fn a_collective_has_its_time_in_the_table_and_a_line_for_each_round() {
        let summary = json!({ "collectives": [{
            "name": "ring", "kind": "ring-all-reduce", "hosts": 4, "rounds": 2, "finished": 2,
            "completion_ps": { "mean": 12.5e6, "max": 14e6 },
        }]});
        let (section, figures) = super::section(&summary, &steps(&[&[3, 9, 2], &[9, 1, 1]])).unwrap();
        let crate::Block::Table(table) = &section.blocks[0] else { panic!("{:?}", section.blocks) };
        let cells: Vec<&str> = table.rows[0].iter().map(|cell| cell.text.as_str()).collect();
        assert_eq!(cells[3..6], ["2 of 2", "12.5 µs", "14.0 µs"]);
        assert_eq!(cells[7], "9.00 µs (step 1 of round 0)");
        assert_eq!((figures.len(), figures[0].series.len(), figures[0].series[1].points.len()), (1, 2, 3));
    }

    #[test]
    fn one_step_is_no_line_and_a_run_without_collectives_has_no_section() {
        let summary = json!({ "collectives": [{ "name": "ring", "completion_ps": { "mean": null } }] });
        assert!(super::section(&summary, &steps(&[&[3]])).unwrap().1.is_empty());
        assert!(super::section(&json!({}), &[]).is_none());
    }
}
