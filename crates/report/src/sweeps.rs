//! Figures over sweeps: lines with confidence bands along one key, heat maps over two.

use crate::curves::word;
use crate::format::log_span;
use crate::heat::Heat;
use crate::pages::{Report, footer, provenance};
use crate::{Axis, Block, Cell, Column, Figure, Format, Page, Palette, Point, Section, Sheet, Style, Table};
use results::answer::Answer;
use results::comparison::{self, Measure, Row, SCHEME, Unit};
use results::measure::Estimate;
use results::numbers::{Kind, numbers};
use std::collections::BTreeMap;

/// The most lines of a figure.
const MOST_LINES: usize = 16;
/// The most bands of a figure that can be told apart.
const MOST_BANDS: usize = 4;
/// The most panels of a figure.
const MOST_PANELS: usize = 6;
/// The most combinations of values of which the page says who wins.
const MOST_CONTESTS: usize = 4;
/// The most rows of the page's table.
const MOST_ROWS: usize = 500;
/// The most heat maps of a page.
const MOST_MAPS: usize = 24;

fn format(unit: Unit) -> Format {
    match unit {
        Unit::Kilobytes => Format::Bytes,
        Unit::Microseconds => Format::Time,
        Unit::Count => Format::Count,
        Unit::Ratio => Format::Plain,
    }
}

/// A measure's values in what its format is in.
fn scale(unit: Unit) -> f64 {
    if unit == Unit::Microseconds { 1e-12 } else { 1.0 }
}

/// What a row has of an axis.
fn label<'a>(row: &'a Row, axis: &str) -> &'a str {
    row.labels.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str())
}

/// The values of an axis, in order of number or of appearance, with their numbers.
struct Values {
    axis: String,
    names: Vec<String>,
    numbers: Option<(Kind, Vec<f64>)>,
}

impl Values {
    fn new(table: &comparison::Table, axis: &str) -> Values {
        let mut names: Vec<String> = Vec::new();
        for row in &table.rows {
            if !names.iter().any(|name| name == label(row, axis)) {
                names.push(label(row, axis).to_string());
            }
        }
        let mut found = numbers(&names.iter().map(String::as_str).collect::<Vec<_>>());
        if let Some((_, numbers)) = &mut found {
            let mut pairs: Vec<(f64, String)> = numbers.drain(..).zip(names).collect();
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            (*numbers, names) = pairs.into_iter().unzip();
        }
        Values { axis: axis.into(), names, numbers: found }
    }

    /// As the horizontal axis of a figure.
    fn axis(&self) -> Axis {
        match &self.numbers {
            None => Axis::categories(self.axis.clone(), self.names.clone()),
            Some((kind, numbers)) => {
                let spread = numbers.first().zip(numbers.last()).is_some_and(|(a, b)| *a > 0.0 && b / a > 30.0);
                let axis = if spread { Axis::log(self.axis.clone()) } else { Axis::linear(self.axis.clone()) };
                axis.format(match kind {
                    Kind::Number => Format::Plain,
                    Kind::Bytes => Format::Bytes,
                    Kind::Time => Format::Time,
                    Kind::Rate => Format::Rate,
                })
            }
        }
    }

    fn place(&self, name: &str) -> f64 {
        let at = self.names.iter().position(|known| known == name).unwrap_or(0);
        self.numbers.as_ref().map_or(at as f64, |(_, numbers)| numbers[at])
    }
}

/// Whether an axis follows from others, as the keys of a list do from each other: these values there, that value here.
fn follows(table: &comparison::Table, axis: &str, from: &[&str]) -> bool {
    let mut known: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
    table.rows.iter().all(|row| {
        let there = from.iter().map(|axis| label(row, axis)).collect();
        *known.entry(there).or_insert_with(|| label(row, axis)) == label(row, axis)
    })
}

/// Where a row is, but for these axes and what follows from them.
fn others(table: &comparison::Table, row: &Row, but: &[&str]) -> String {
    let rest = row.labels.iter().filter(|(axis, _)| !follows(table, axis, but));
    let word = |(axis, value): &(String, String)| match axis == SCHEME {
        true => value.clone(),
        false => format!("{} {value}", called(table, axis)),
    };
    rest.map(word).collect::<Vec<_>>().join(", ")
}

/// Whether a measure is worth a figure: it is not the same everywhere.
fn differs(table: &comparison::Table, place: usize) -> bool {
    let mut means = table.rows.iter().filter_map(|row| row.values[place].mean);
    let first = means.next();
    means.any(|mean| Some(mean) != first)
}

/// The interval of a mean as it is drawn: not of two runs, whose interval says nothing.
fn interval(estimate: &Estimate, unit: Unit) -> Option<(f64, f64)> {
    let interval = estimate.interval().filter(|_| estimate.count > 2);
    interval.map(|(low, high)| (low.max(least(unit)) * scale(unit), high * scale(unit)))
}

/// No slowdown is below 1, and nothing that is counted below 0, whatever Student's t says.
fn least(unit: Unit) -> f64 {
    if unit == Unit::Ratio { 1.0 } else { 0.0 }
}

/// What people call a key: `load.0.load` is the load, `switch.buffer` the switch buffer. Keys that would have the same name keep
/// theirs.
fn called(table: &comparison::Table, axis: &str) -> String {
    let name = |key: &str| {
        let mut words: Vec<&str> = key.split('.').filter(|word| word.parse::<usize>().is_err()).collect();
        words.dedup();
        if words.len() > 1 && words[0] == SCHEME {
            words.remove(0);
        }
        words.join(" ").replace('_', " ")
    };
    let own = name(axis);
    let alone = table.axes.iter().filter(|other| name(other) == own).count() < 2;
    if alone { own } else { axis.into() }
}

/// The first letter as a capital, as titles and axes have it; `p99` is written as it is everywhere.
fn capital(text: &str) -> String {
    if text.chars().nth(1).is_some_and(|second| second.is_ascii_digit()) {
        return text.into();
    }
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// The lines of a measure: along the axis with most values, the first of several, a line for each combination of the others. More
/// bands than can be told apart are panels side by side.
fn lines(table: &comparison::Table, axes: &[Values], place: usize, measure: &Measure) -> Option<Sheet> {
    let main = axes.iter().rev().max_by_key(|axis| (axis.numbers.is_some(), axis.names.len()))?;
    let several = |axis: &&str| Values::new(table, axis).names.len() > 1 && !follows(table, axis, &[&main.axis]);
    // Panels are of the first other key, so that schemes meet in each; of schemes where that would be too many.
    let small = |axis: &&str| Values::new(table, axis).names.len() <= MOST_PANELS;
    let keys = || axes.iter().map(|axis| axis.axis.as_str()).filter(several);
    let split = keys().find(small).or([SCHEME].into_iter().find(several)).or(keys().next());
    let line = |row: &Row, but: &[&str]| match others(table, row, but) {
        none if none.is_empty() => "all".to_string(),
        some => some,
    };
    let in_order = |of: &dyn Fn(&Row) -> String| {
        let mut all: Vec<String> = Vec::new();
        for name in table.rows.iter().map(of) {
            if !all.contains(&name) {
                all.push(name);
            }
        }
        all
    };
    let bands = in_order(&|row| line(row, &[&main.axis])).len();
    // All measures alike, so that a colour means the same in each.
    let banded = table.rows.iter().flat_map(|row| &row.values).any(|value| interval(value, measure.unit).is_some());
    let split = split.filter(|axis| {
        banded && bands > MOST_BANDS && bands > Values::new(table, axis).names.len() && main.numbers.is_some()
    });
    let panels = split.map_or(vec![String::new()], |axis| in_order(&|row| label(row, axis).into()));
    let but: Vec<&str> = [main.axis.as_str()].into_iter().chain(split).collect();
    let names = in_order(&|row| line(row, &but));
    let title = format!("{} by {}", capital(&measure.label), called(table, &main.axis));
    let id = format!("lines-{}", word(&measure.key));
    let mut y = Axis { label: capital(&measure.label), format: format(measure.unit), ..Axis::default() };
    if measure.unit == Unit::Ratio {
        y.scale = crate::Scale::Log;
    }
    let x = Axis { label: capital(&called(table, &main.axis)), ..main.axis() };
    let factor = scale(measure.unit);
    let mut palette = Palette::default();
    if split != Some(SCHEME) {
        let schemes = in_order(&|row| label(row, SCHEME).into());
        for scheme in schemes.iter().filter(|scheme| !scheme.is_empty()) {
            let of = names.iter().filter(|name| *name == scheme || name.starts_with(&format!("{scheme}, ")));
            of.enumerate().for_each(|(nth, name)| palette.kin(name, scheme, nth));
        }
    }
    let figure = |(number, panel): (usize, &String)| {
        let (id, title) = match split {
            Some(SCHEME) => (format!("{id}-{number}"), panel.clone()),
            Some(axis) => (format!("{id}-{number}"), format!("{} {panel}", called(table, axis))),
            None => (id.clone(), title.clone()),
        };
        let mut figure = Figure::new(id, title, x.clone(), y.clone());
        for name in names.iter().take(MOST_LINES) {
            let mut points: Vec<Point> = (table.rows.iter())
                .filter(|row| split.is_none_or(|axis| label(row, axis) == panel) && line(row, &but) == *name)
                .filter_map(|row| {
                    let estimate = &row.values[place];
                    let (x, y) = (main.place(label(row, &main.axis)), estimate.mean? * factor);
                    Some(Point { x, y, interval: interval(estimate, measure.unit) })
                })
                .collect();
            points.sort_by(|a, b| a.x.total_cmp(&b.x));
            figure.series.push(palette.series(name, Style::LineMarkers, points));
        }
        if names.len() > MOST_LINES {
            figure.notes.push(format!("the first {MOST_LINES} of {} lines", names.len()));
        }
        let what = if measure.label.starts_with("p99 slowdown") {
            "Of the flows of all seeds together"
        } else {
            "Means over seeds"
        };
        figure.caption = format!("{what}, with 95 % intervals from three seeds on.");
        figure
    };
    let mut figures: Vec<Figure> = (1..).zip(&panels).map(figure).collect();
    // One point is no line.
    let long = |figure: &Figure| figure.series.iter().any(|series| series.points.len() > 1);
    if !figures.iter().any(long) {
        return None;
    }
    same_height(&mut figures);
    let caption = figures[0].caption.clone();
    Some(Sheet { id, title, caption, figures, columns: 2, ..Sheet::default() })
}

/// Gives panels the same upright axis, so that they can be compared.
fn same_height(figures: &mut [Figure]) {
    let points = || figures.iter().flat_map(|figure| &figure.series).flat_map(|series| &series.points);
    let ends = || points().flat_map(|point| point.interval.map_or([point.y; 2], |(low, high)| [low, high]));
    let (low, high) = (ends().fold(f64::INFINITY, f64::min), ends().fold(f64::NEG_INFINITY, f64::max));
    if figures.len() < 2 || low >= high {
        return;
    }
    for figure in figures.iter_mut() {
        figure.y.range = match figure.y.scale {
            crate::Scale::Log => Some(log_span((low, high))),
            _ => Some((low.min(0.0), 1.04 * high)),
        };
    }
}

/// A map for each combination of the other axes, over the two with most values.
fn maps(table: &comparison::Table, axes: &[Values], place: usize, measure: &Measure) -> Vec<Heat> {
    let mut several: Vec<&Values> = axes.iter().filter(|axis| axis.names.len() > 1).collect();
    several.sort_by_key(|axis| std::cmp::Reverse(axis.names.len()));
    let Some((x, rest)) = several.split_first() else { return Vec::new() };
    let Some(y) = rest.iter().find(|axis| !follows(table, &axis.axis, &[&x.axis])) else { return Vec::new() };
    let mut maps: Vec<Heat> = Vec::new();
    let factor = scale(measure.unit);
    for row in &table.rows {
        let subtitle = others(table, row, &[&x.axis, &y.axis]);
        let at = maps.iter().position(|map| map.subtitle == subtitle).unwrap_or_else(|| {
            maps.push(Heat {
                id: format!("map-{}-{}", word(&measure.key), maps.len() + 1),
                title: capital(&measure.label),
                subtitle,
                caption: String::new(),
                x: (capital(&called(table, &x.axis)), x.names.clone()),
                y: (capital(&called(table, &y.axis)), y.names.clone()),
                values: vec![vec![None; x.names.len()]; y.names.len()],
                format: format(measure.unit),
                log: measure.unit == Unit::Ratio,
                range: None,
            });
            maps.len() - 1
        });
        let find = |values: &Values| values.names.iter().position(|name| name == label(row, &values.axis));
        if let (Some(column), Some(line)) = (find(x), find(y)) {
            maps[at].values[line][column] = row.values[place].mean.map(|mean| mean * factor);
        }
    }
    // Colours mean the same in all of them.
    let all = || maps.iter().flat_map(|map| map.values.iter().flatten().flatten()).copied();
    let range = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    maps.iter_mut().for_each(|map| map.range = Some(range));
    maps
}

/// The page of a sweep. `spec` is its file, `command` does it again.
pub fn page(title: &str, table: &comparison::Table, answer: Option<&Answer>, spec: &str, command: &str) -> Report {
    let by_size = answer.map(|answer| table.by_size(answer));
    let table = by_size.as_ref().unwrap_or(table);
    let axes: Vec<Values> =
        table.axes.iter().filter(|axis| *axis != SCHEME).map(|axis| Values::new(table, axis)).collect();
    let worth_drawing = |measure: &Measure| !["flows", "finished"].contains(&measure.key.as_str());
    let all = table.measures.iter().enumerate();
    let drawn: Vec<(usize, &Measure)> =
        all.filter(|(place, one)| worth_drawing(one) && differs(table, *place)).collect();
    let mut sheets: Vec<Sheet> = drawn.iter().filter_map(|(place, one)| lines(table, &axes, *place, one)).collect();
    let figures: Vec<Figure> = sheets.iter().flat_map(|sheet| sheet.figures.clone()).collect();
    let block = |mut sheet: Sheet| match sheet.figures.len() {
        1 => sheet.figures.remove(0).into(),
        _ => sheet.into(),
    };
    let worth_mapping = |measure: &Measure| ["p99", "peak"].iter().any(|word| measure.key.contains(word));
    let mapped = drawn.iter().filter(|(_, measure)| worth_mapping(measure));
    let mut heats: Vec<Heat> = mapped.flat_map(|(place, measure)| maps(table, &axes, *place, measure)).collect();
    heats.truncate(MOST_MAPS);
    let runs: usize = table.rows.iter().flat_map(|row| row.endings.values()).sum();
    let mut page = Page::new(
        title,
        format!("{runs} runs over {}.", and(table.axes.iter().map(|axis| called(table, axis)).collect())),
    );
    page.footer = footer();
    let mut first = Section::new(if answer.is_some() { "Who wins where" } else { "What went wrong" });
    table.troubles().into_iter().for_each(|line| first.push(line + "."));
    let troubles = first.blocks.len();
    let contests = answer.map_or(Vec::new(), Answer::clauses);
    contests.iter().take(MOST_CONTESTS).for_each(|clauses| first.push(sentence(clauses)));
    if contests.len() > MOST_CONTESTS {
        let more = contests.len() - MOST_CONTESTS;
        first.push(format!("The other {more} combinations are in `by_size.csv`."));
    }
    // The one figure that shows it: how long what hosts do together takes, or the tail of the smallest flows, or of all.
    let completion =
        |sheet: &Sheet| sheet.id.starts_with("lines-completion") || sheet.id.starts_with("lines-iteration");
    let tail = |sheet: &Sheet| sheet.id.starts_with("lines-slowdown-p99");
    let small = |sheet: &Sheet| tail(sheet) && sheet.id.contains("-0-");
    if let Some(at) = sheets
        .iter()
        .position(completion)
        .or(sheets.iter().position(small))
        .or(sheets.iter().position(tail))
        .filter(|_| answer.is_some())
    {
        first.blocks.insert(troubles, block(sheets.remove(at)));
    }
    if !first.blocks.is_empty() {
        page.sections.push(first);
    }
    for (heading, blocks) in [
        ("Lines", sheets.into_iter().map(block).collect::<Vec<Block>>()),
        ("Heat maps", heats.iter().map(|heat| heat.clone().into()).collect()),
    ] {
        if !blocks.is_empty() {
            page.sections.push(Section { heading: heading.into(), blocks });
        }
    }
    let mut summary = Section::new("Means");
    summary.push(rows(table));
    page.sections.push(summary);
    page.sections.push(provenance(spec, command));
    Report { page, figures, pictures: Vec::new(), heats, spans: Vec::new() }
}

/// The clauses of a contest as one sentence: where they all are is said once.
fn sentence(clauses: &[String]) -> String {
    let Some(one) = clauses.first() else { return String::new() };
    let alike = |clause: &String| one.bytes().zip(clause.bytes()).take_while(|(a, b)| a == b).count();
    let common = clauses.iter().map(alike).min().unwrap_or(0);
    // Whole words up to a comma, if there are several to save.
    let end = one.get(..common).and_then(|common| common.rfind(", ")).filter(|_| clauses.len() > 1);
    let (place, from) = end.map_or((String::new(), 0), |end| (format!("{}: ", capital(&one[..end])), end + 2));
    let rest: Vec<&str> = clauses.iter().map(|clause| &clause[from..]).collect();
    format!("{place}{}.", rest.join("; "))
}

/// Words as a sentence lists them.
fn and(mut words: Vec<String>) -> String {
    match (words.pop(), words.join(", ")) {
        (last, first) if first.is_empty() => last.unwrap_or_default(),
        (last, first) => format!("{first} and {}", last.unwrap_or_default()),
    }
}

fn rows(table: &comparison::Table) -> Table {
    let cell = |(measure, value): (&Measure, &Estimate)| {
        let (format, scale) = (format(measure.unit), scale(measure.unit));
        let Some(mean) = value.mean else { return Cell::from("–") };
        let symmetric = value.spread(|_| String::new()).starts_with(" ±");
        let end = |end: f64| if symmetric { end } else { end.max(least(measure.unit)) };
        let show = |value: f64| format.in_table(value * scale, mean * scale);
        Cell::from(format!("{}{}{}", value.mark(), show(mean), value.spread(|value| show(end(value)))))
    };
    // Where all flows finished, that they did is no column.
    let place = |key: &str| table.measures.iter().position(|measure| measure.key == key);
    let all = |(flows, finished): (usize, usize)| {
        table.rows.iter().all(|row| row.values[flows].mean == row.values[finished].mean)
    };
    let said = place("flows").zip(place("finished")).filter(|&places| all(places)).map(|(_, finished)| finished);
    let kept: Vec<usize> = (0..table.measures.len()).filter(|place| Some(*place) != said).collect();
    let row = |row: &Row| {
        let labels = table.axes.iter().map(|axis| Cell::from(label(row, axis)));
        labels.chain(kept.iter().map(|&place| cell((&table.measures[place], &row.values[place])))).collect()
    };
    let more = if table.rows.len() > MOST_ROWS {
        format!(" The first {MOST_ROWS} rows; all are in table.csv.")
    } else {
        String::new()
    };
    let heads = kept.iter().map(|&place| Column::number(table.measures[place].label.as_str()));
    Table {
        caption: format!(
            "Means over seeds, with the half of their 95 % intervals, or after ~ where that interval is wider than the value: take more seeds. Tails by flow size are of the flows of all seeds together.{more}"
        ),
        columns: table.axes.iter().map(|axis| Column::text(called(table, axis))).chain(heads).collect(),
        rows: table.rows.iter().take(MOST_ROWS).map(row).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use results::comparison::Labels;
    use serde_json::json;

    const SCHEMES: (&str, &[&str]) = (SCHEME, &["pfc", "hpcc"]);

    /// Every combination of the values of these axes, the last turning fastest.
    fn grid(axes: &[(&str, &[&str])]) -> Vec<Labels> {
        axes.iter().fold(vec![Labels::new()], |points, (axis, values)| {
            let with = |point: &Labels, value: &str| [point.clone(), vec![(axis.to_string(), value.into())]].concat();
            points.iter().flat_map(|point| values.iter().map(move |value| with(point, value))).collect()
        })
    }

    /// A table over these points, with so many seeds of each, whose p99 of slowdown is what `value` makes of a run.
    fn table(points: &[Labels], seeds: u64, value: fn(&[(String, String)], u64) -> f64) -> comparison::Table {
        let runs: Vec<(&Labels, u64)> =
            points.iter().flat_map(|point| (1..=seeds).map(move |seed| (point, seed))).collect();
        let summary = |(labels, seed): &(&Labels, u64)| json!({ "slowdown": { "p99": value(labels, *seed) }, "ending": "complete" });
        let summaries: Vec<_> = runs.iter().map(summary).collect();
        let axes = points[0].iter().map(|(axis, _)| axis.clone()).collect();
        comparison::Table::new(axes, &runs.iter().map(|(labels, _)| *labels).collect::<Vec<_>>(), &summaries)
    }

    fn number(labels: &[(String, String)], axis: &str) -> f64 {
        let value = labels.iter().find(|(name, _)| name == axis).map_or("", |(_, value)| value.as_str());
        numbers(&[value]).unwrap().1[0]
    }

    #[test]
    fn lines_follow_a_key_in_order_of_its_numbers_with_bands_from_three_seeds_on() {
        let points = grid(&[SCHEMES, ("switch.buffer", &["10MB", "900KB", "4MB"])]);
        let table = table(&points, 3, |labels, seed| number(labels, "switch.buffer") / 1e6 + seed as f64);
        let report = page("a sweep", &table, None, "", "tailwater sweep a.toml");
        let figure = report.figures.iter().find(|figure| figure.id == "lines-slowdown-p99").unwrap();
        assert_eq!(figure.x.format, Format::Bytes);
        let names: Vec<&str> = figure.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["pfc", "hpcc"]);
        let points: Vec<(f64, f64)> = figure.series[0].points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(9e5, 2.9), (4e6, 6.0), (1e7, 12.0)]);
        let (low, high) = figure.series[0].points[1].interval.unwrap();
        let half: f64 = 4.303 / 3f64.sqrt() / 6.0;
        assert!((low - 6.0 / half.exp()).abs() < 1e-2 && (high - 6.0 * half.exp()).abs() < 1e-2, "{low} to {high}");
        assert!(report.heats.is_empty(), "one key is no map");
        assert!(report.page.html().contains("a sweep"));
    }

    #[test]
    fn two_keys_are_a_map_for_each_scheme_in_the_same_colours() {
        let points = grid(&[SCHEMES, ("switch.buffer", &["1MB", "2MB", "4MB"]), ("nic.payload", &["4KB", "1KB"])]);
        let table = table(&points, 1, |labels, _| {
            let twice = if labels[0].1 == "hpcc" { 2.0 } else { 1.0 };
            twice * number(labels, "switch.buffer") * number(labels, "nic.payload")
        });
        let report = page("a sweep", &table, None, "", "");
        let [pfc, hpcc] = report.heats.as_slice() else { panic!("{:?}", report.heats) };
        assert_eq!((pfc.subtitle.as_str(), hpcc.subtitle.as_str()), ("pfc", "hpcc"));
        assert_eq!(pfc.x, ("Switch buffer".into(), ["1MB", "2MB", "4MB"].map(String::from).into()));
        assert_eq!(pfc.y.1, ["1KB", "4KB"], "from the bottom up");
        assert_eq!(pfc.values[1], [Some(4e9), Some(8e9), Some(16e9)]);
        assert_eq!((pfc.range, hpcc.range), (Some((1e9, 32e9)), Some((1e9, 32e9))));
        assert_eq!(pfc.look(2e9), hpcc.look(2e9));
        assert_ne!(pfc.look(1e9).0, pfc.look(32e9).0);
        assert!(pfc.drawing().png().unwrap().starts_with(b"\x89PNG"));
        let html = report.page.html();
        assert!(html.contains("Heat maps") && html.contains("id=\"map-slowdown-p99-2\""));
    }

    #[test]
    fn keys_of_a_list_that_change_together_are_one_axis() {
        let row = |buffer: &str, payload: &str| -> Labels {
            [("switch.buffer", buffer), ("nic.payload", payload)]
                .map(|(axis, value)| (axis.into(), value.into()))
                .into()
        };
        let table = table(&[row("1MB", "1KB"), row("2MB", "2KB"), row("4MB", "4KB")], 1, |labels, _| {
            number(labels, "switch.buffer")
        });
        let report = page("a sweep", &table, None, "", "");
        assert!(report.heats.is_empty(), "there is but a diagonal");
        assert_eq!(report.figures[0].series.len(), 1);
        assert_eq!(report.figures[0].series[0].points.len(), 3);
    }

    #[test]
    fn the_first_of_two_keys_is_the_axis_and_more_bands_than_can_be_told_apart_are_panels() {
        let points =
            grid(&[SCHEMES, ("switch.buffer", &["1MB", "2MB", "4MB"]), ("load.0.load", &["0.3", "0.5", "0.7"])]);
        let table = table(&points, 3, |labels, seed| number(labels, "switch.buffer") / 1e6 + seed as f64);
        let report = page("a sweep", &table, None, "", "");
        let ids: Vec<&str> = report.figures.iter().map(|figure| figure.id.as_str()).collect();
        assert_eq!(ids, ["lines-slowdown-p99-1", "lines-slowdown-p99-2", "lines-slowdown-p99-3"]);
        for (figure, load) in report.figures.iter().zip(["load 0.3", "load 0.5", "load 0.7"]) {
            assert_eq!((figure.title.as_str(), figure.x.label.as_str()), (load, "Switch buffer"));
            let lines: Vec<(&str, usize)> =
                figure.series.iter().map(|series| (series.name.as_str(), series.slot)).collect();
            assert_eq!(lines, [("pfc", 0), ("hpcc", 1)], "schemes meet in a panel, each in its colour");
        }
        assert_eq!(report.figures[0].y.range, report.figures[1].y.range);
        assert!(report.page.html().contains("Slowdown p99 by switch buffer"));
        assert_eq!(report.page.lead, "54 runs over scheme, switch buffer and load.");
    }

    #[test]
    fn what_all_clauses_of_a_contest_begin_with_is_said_once() {
        let clauses = ["with load = 0.3, x = 1, 9 flows: a wins", "with load = 0.3, x = 1, memory: b wins"];
        let clauses = clauses.map(String::from);
        assert_eq!(sentence(&clauses), "With load = 0.3, x = 1: 9 flows: a wins; memory: b wins.");
        assert_eq!(sentence(&clauses[..1]), "with load = 0.3, x = 1, 9 flows: a wins.");
        assert_eq!(sentence(&["a wins, b loses".into(), "memory: b wins".into()]), "a wins, b loses; memory: b wins.");
        assert_eq!(sentence(&["µ, a".into(), "µ, b".into()]), "Μ: a; b.", "cut between letters");
    }

    #[test]
    fn a_map_with_gaps_and_long_names_is_drawn_whole() {
        let heat = Heat {
            id: "a".into(),
            title: "A title with <angles> & more".into(),
            x: ("x".into(), vec!["a very long name of a column that cannot fit".into(), "b".into()]),
            y: ("y".into(), vec!["1".into()]),
            values: vec![vec![None, Some(f64::NAN)]],
            ..Heat::default()
        };
        let svg = heat.svg();
        assert!(svg.contains("&lt;angles&gt;") && svg.matches("–").count() == 2, "{svg}");
        assert!(heat.drawing().png().is_ok());
    }
}
