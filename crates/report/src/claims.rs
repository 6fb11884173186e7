//! Pages of the ledger: an experiment with its figures and its verdict, and all verdicts on one page.

use crate::curves::word;
use crate::pages::{Report, footer, provenance};
use crate::palette::STATED;
use crate::{
    Axis, Block, Cell, Column, Figure, Format, Link, Mark, Page, Palette, Point, Section, Series, Sheet, Style, Table,
    Tone,
};
use results::exhibit::{self, Better, Curve, Exhibit, Plot, Unit};
use results::verdict::{Holds, Judged, Overall, Verdict, digits, show};

fn tone(holds: Holds) -> Tone {
    match holds {
        Holds::Yes => Tone::Good,
        Holds::Partly => Tone::Fair,
        Holds::No => Tone::Bad,
        Holds::CannotTell | Holds::Untold | Holds::Asked => Tone::Quiet,
    }
}

fn badge(verdict: &Verdict) -> Cell {
    let tone = match verdict.verdict {
        Overall::Holds => Tone::Good,
        Overall::InPart => Tone::Fair,
        Overall::Fails => Tone::Bad,
        Overall::CannotTell | Overall::Needs | Overall::NotRun | Overall::Measured => Tone::Quiet,
    };
    Cell::badge(tone, verdict.verdict.name())
}

/// An axis as it is drawn, and what its values are multiplied with to suit it.
fn axis(axis: &exhibit::Axis) -> (Axis, f64) {
    let label = axis.title.as_str();
    let plain = if axis.log { Axis::log(label) } else { Axis::linear(label) };
    match axis.unit {
        None => (plain, 1.0),
        Some(Unit::Bytes) => (plain.format(Format::Bytes), 1.0),
        Some(Unit::Microseconds) => (plain.format(Format::Time), 1e-6),
        Some(Unit::Milliseconds) => (plain.format(Format::Time), 1e-3),
        Some(Unit::GigabitsPerSecond) => (plain.format(Format::Rate), 1e9),
        Some(unit @ (Unit::Percent | Unit::Bdp)) => (plain.unit(unit.symbol()), 1.0),
    }
}

/// A size bin as people write it.
fn category(name: &str) -> String {
    match name.split_once("..") {
        Some(("", high)) => format!("≤{high}"),
        Some((low, high)) => format!("{low}–{high}"),
        None => name.into(),
    }
}

/// The title of a panel without a unit that its value has again: `arrivals last (ms) 3ms` is `arrivals last 3ms`.
fn heading(title: &str) -> String {
    let parts = title.rsplit_once(' ').and_then(|(name, value)| {
        let (name, unit) = name.strip_suffix(')')?.rsplit_once(" (")?;
        value.strip_suffix(unit)?.parse::<f64>().ok()?;
        Some(format!("{name} {value}"))
    });
    parts.unwrap_or_else(|| title.into())
}

/// The fewest seeds whose interval is drawn: Student's t makes that of two far wider than any figure.
const FEWEST_SEEDS: usize = 3;

/// A title as the name of a file.
fn slug(title: &str) -> String {
    word(title).split('-').filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// Whether what an experiment compares are schemes: all of the league's, and a paper's where each has a name and is not told by how it differs from
/// the others, as `no spraying` is.
fn are_schemes(exhibit: &Exhibit) -> bool {
    let named = |name: &String| !name.starts_with(|first: char| first.is_lowercase());
    exhibit.citation.is_none() || exhibit.variants.iter().all(named)
}

fn draw(
    spec: &exhibit::Figure,
    plot: &Plot,
    id: String,
    (intervals, are_schemes): (bool, bool),
    palette: &mut Palette,
) -> Figure {
    let ((mut x, across), (mut y, up)) = (axis(&spec.x), axis(&spec.y));
    let across = match &plot.categories {
        Some(names) => {
            let label = if x.label == "variant" && are_schemes { "scheme".into() } else { x.label };
            x = Axis::categories(label, names.iter().map(|name| category(name)));
            1.0
        }
        None => across,
    };
    let style = match spec.style {
        exhibit::Style::Lines => Style::LineMarkers,
        // A bar says how far it is from 0, which a logarithmic axis does not have.
        exhibit::Style::Bars if spec.y.log => Style::Markers,
        exhibit::Style::Bars => Style::Bars,
        exhibit::Style::Distribution | exhibit::Style::Series => Style::Line,
    };
    if spec.style == exhibit::Style::Distribution {
        y = y.format(Format::Percent).range(0.0, 1.0);
    }
    let mut figure = Figure::new(id, heading(&plot.title), x, y);
    for Curve { name, points, .. } in &plot.curves {
        let name = if name.is_empty() { figure.y.label.clone() } else { name.clone() };
        // A distribution begins with nothing at its smallest value.
        let first = points.first().filter(|first| spec.style == exhibit::Style::Distribution && first.y > 0.0);
        let begin = first.map(|first| exhibit::Point { y: 0.0, interval: None, ..*first });
        let points = begin.iter().chain(points).map(|point| Point {
            x: point.x * across,
            y: point.y * up,
            interval: point.interval.filter(|_| intervals).map(|(low, high)| (low * up, high * up)),
        });
        figure.series.push(palette.series(&name, style, points));
    }
    for Curve { name, variant, points } in &plot.stated {
        // In the colour of what it is about.
        let slot = variant.as_ref().map_or(STATED, |variant| palette.slot(variant));
        let points =
            points.iter().map(|point| Point { x: point.x * across, y: point.y * up, interval: None }).collect();
        figure.series.push(Series { name: name.clone(), slot, style: Style::Stated, points });
    }
    figure.marks = (spec.marks.iter())
        .map(|mark| match mark.level {
            true => Mark::y(mark.at * up, mark.title.as_str()),
            false => Mark::x(mark.at * across, mark.title.as_str()),
        })
        .collect();
    figure
}

fn judgements(verdict: &Verdict, paper: bool) -> Table {
    let row = |judged: &Judged| -> Vec<Cell> {
        let why: Vec<String> = judged.why.clone().into_iter().chain(judged.few()).chain(judged.band.clone()).collect();
        vec![
            judged.paper.as_str().into(),
            Cell::badge(tone(judged.holds), judged.holds.name()),
            judged.measured().into(),
            judged.expected().into(),
            why.join("; ").into(),
        ]
    };
    let number = Column::number;
    let what = if paper { "What the paper says" } else { "What was asked" };
    Table {
        caption: match (verdict.has_intervals(), verdict.seeds) {
            (true, seeds) => {
                format!("{what} beside what was measured, with 95 % confidence intervals over {seeds} seeds.")
            }
            (false, 1) => format!("{what} beside what was measured, with one seed: there are no intervals."),
            (false, _) => format!("{what} beside what was measured."),
        },
        columns: vec![
            Column::text(said(paper)),
            Column::text("verdict"),
            number("measured"),
            number("expected"),
            Column::text("remark"),
        ],
        rows: verdict.expectations.iter().map(row).collect(),
    }
}

/// The column of what is judged.
fn said(paper: bool) -> &'static str {
    if paper { "the paper says" } else { "question" }
}

/// The variants ranked by every column: the best stands out, and each column ends with who won and by how much.
fn ranking(exhibit: &Exhibit) -> Table {
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    let mut last: Vec<Cell> = vec![Cell::from("best").strong()];
    for (place, column) in exhibit.columns.iter().enumerate() {
        let entries = &column.entries;
        let known = || entries.iter().filter_map(|entry| Some((entry.name.as_str(), entry.value?)));
        let ranks = column.ranks();
        let by_value = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
        let (least, most) = (known().min_by(by_value), known().max_by(by_value));
        let best = match column.better {
            Some(Better::Low) => least,
            Some(Better::High) => most,
            None => None,
        };
        for (row, (entry, rank)) in entries.iter().zip(&ranks).enumerate() {
            if place == 0 {
                rows.push(vec![entry.name.as_str().into()]);
            }
            let value = |value: f64| show(value, &column.unit);
            let shown = match (entry.value, entry.interval) {
                (Some(mean), Some((low, high))) if high > low => {
                    format!("{} ({}–{})", value(mean), value(low), value(high))
                }
                (Some(mean), _) => value(mean),
                _ => "-".into(),
            };
            let shared = ranks.iter().filter(|other| *other == rank).count() > 1;
            let shown = match rank {
                Some(rank) => format!("{rank}{} · {shown}", if shared { "=" } else { "." }),
                None => shown,
            };
            // With one seed nothing is certain, so that nothing stands out.
            let stands_out = *rank == Some(1) && exhibit.seeds > 1;
            rows[row].push(if stands_out { Cell::badge(Tone::Good, shown) } else { shown.into() });
        }
        let first = ranks.iter().filter(|rank| **rank == Some(1)).count();
        let worst = if best == least { most } else { least };
        last.push(match (best, worst) {
            (Some(_), _) if first > 1 => format!("{first} cannot be told apart").into(),
            (Some((name, best)), Some((_, worst))) if best > 0.0 && worst > 0.0 => {
                format!("{name} ({}×)", digits(best.max(worst) / best.min(worst))).into()
            }
            (Some((name, _)), _) => name.into(),
            _ => "".into(),
        });
    }
    rows.push(last);
    let columns = exhibit.columns.iter().map(|column| Column::number(column.title.as_str()));
    Table {
        caption: format!(
            "{} Below, who is first, and how many times better than the worst.",
            match exhibit.seeds {
                1 => "One seed: there are no intervals, and nothing is certain. A rank is by the values as they are; small differences mean nothing.".into(),
                seeds => format!(
                    "A rank says how many are better for certain, and one: values whose intervals overlap cannot be told apart. 95 % intervals over {seeds} seeds. Those that none is better than stand out."
                ),
            }
        ),
        columns: std::iter::once(Column::text("scheme")).chain(columns).collect(),
        rows,
    }
}

/// How each value is measured.
fn measures(verdict: &Verdict, paper: bool) -> Section {
    let row = |judged: &Judged| -> Vec<Cell> {
        let expression = judged.expression.split_whitespace().collect::<Vec<_>>().join(" ");
        vec![judged.paper.as_str().into(), format!("`{expression}`").into()]
    };
    let mut section = Section::new("Measures");
    section.push(Table {
        caption: "The expressions whose values are judged; `docs/ledger.md` explains the language.".into(),
        columns: vec![Column::text(said(paper)), Column::text("measured as")],
        rows: verdict.expectations.iter().map(row).collect(),
    });
    section
}

/// The page of an experiment. `command` runs it again.
pub fn experiment(exhibit: &Exhibit, verdict: &Verdict, command: &str) -> Report {
    let mut palette = Palette::new(exhibit.variants.iter().map(String::as_str));
    let mut page = Page::new(format!("{}: {}", exhibit.id, exhibit.title), exhibit.says.as_str());
    page.footer = footer();
    let mut summary = Section::new("Verdict");
    let fact = |name: &str, cell: Cell| (name.to_string(), cell);
    let mut facts = vec![
        fact("Verdict", badge(verdict)),
        fact("Document", verdict.source().into()),
        fact("Scale", verdict.scale.into()),
        fact("Seeds", verdict.seeds.to_string().into()),
        fact("Runs", verdict.runs.to_string().into()),
    ];
    if !verdict.needs.is_empty() {
        facts.push(fact("Not there yet", verdict.needs.join(", ").into()));
    }
    summary.push(Block::Facts(facts));
    // Authors and all: too long for a fact.
    exhibit.citation.iter().for_each(|citation| summary.push(format!("Paper: {citation}.")));
    let mut judged = Section::new(match exhibit.citation {
        Some(_) => "What the paper says, and what was measured",
        None => "What was asked, and what was measured",
    });
    judged.push(judgements(verdict, exhibit.citation.is_some()));
    if let Some(reading) = &exhibit.reading {
        judged.push(format!("Our reading: {reading}"));
    }
    let (mut drawn, mut figures) = (Section::new(FIGURES), Vec::new());
    for (number, spec) in (1..).zip(&exhibit.figures) {
        let plots = &spec.plots;
        let mut panels: Vec<Figure> = Vec::new();
        for (place, plot) in plots.iter().enumerate().filter(|(_, plot)| !plot.curves.is_empty()) {
            let panel = if plots.len() > 1 { format!("-{}", place + 1) } else { String::new() };
            let id = format!("{number}{panel}-{}", slug(&spec.title));
            panels.push(draw(spec, plot, id, (exhibit.seeds >= FEWEST_SEEDS, are_schemes(exhibit)), &mut palette));
        }
        figures.extend(panels.iter().cloned());
        match panels.len() {
            0 => {}
            1 => panels.into_iter().for_each(|panel| drawn.push(panel)),
            _ => {
                let id = format!("{number}-{}", slug(&spec.title));
                // What all panels show stands above them.
                let common = format!("{}, ", spec.title);
                for panel in &mut panels {
                    panel.title = panel.title.strip_prefix(&common).unwrap_or(&panel.title).to_string();
                }
                drawn.push(Sheet { id, title: spec.title.clone(), figures: panels, ..Sheet::default() });
            }
        }
    }
    page.sections = vec![summary];
    if !exhibit.columns.is_empty() {
        let mut ranked = Section::new(WINS);
        ranked.push(ranking(exhibit));
        page.sections.push(ranked);
    }
    if !drawn.blocks.is_empty() {
        page.sections.push(drawn);
    }
    page.sections.extend([judged, measures(verdict, exhibit.citation.is_some())]);
    page.sections.push(provenance(exhibit.scenario.as_deref().unwrap_or("# Nothing is run.\n"), command));
    Report { page, figures, pictures: Vec::new(), heats: Vec::new(), spans: Vec::new() }
}

const WINS: &str = "Who wins where";
const FIGURES: &str = "Figures";

/// Several experiments that rank schemes, on one page: of each, who wins where, and its figures. Its own page, in the folder
/// `FOLDER/report.html` that goes with it here, has the rest.
pub fn league(experiments: &[(&Exhibit, &str, &Page)]) -> Page {
    let schemes = experiments.iter().map(|(experiment, ..)| experiment.variants.len()).sum::<usize>();
    let lead = format!(
        "{} fabrics, {schemes} entries: every scheme that can run on each, on the same traffic. Scale: {}.",
        experiments.len(),
        experiments.first().map_or("none", |(experiment, ..)| experiment.scale)
    );
    let mut page = Page::new("The league: who wins where", lead);
    page.footer = footer();
    for (experiment, folder, own) in experiments {
        let mut section = Section::new(experiment.title.as_str());
        section.push(experiment.says.as_str());
        if let Some(reading) = &experiment.reading {
            section.push(reading.as_str());
        }
        for block in own
            .sections
            .iter()
            .filter(|part| part.heading == WINS || part.heading == FIGURES)
            .flat_map(|part| &part.blocks)
        {
            let mut block = block.clone();
            // Figures of different experiments may have the same name.
            let rename = |id: &mut String| *id = format!("{}-{id}", slug(&experiment.id));
            match &mut block {
                Block::Figure(figure) => rename(&mut figure.id),
                Block::Sheet(sheet) => {
                    rename(&mut sheet.id);
                    sheet.figures.iter_mut().for_each(|figure| rename(&mut figure.id));
                }
                _ => {}
            }
            section.push(block);
        }
        let link = Link {
            label: experiment.id.clone(),
            target: format!("{folder}/report.html"),
            note: "its scenario and its measures".into(),
        };
        section.push(Block::Links(vec![link]));
        page.sections.push(section);
    }
    page
}

/// All verdicts on one page; each leads to its own, in the folder of its id.
pub fn ledger(verdicts: &[Verdict]) -> Page {
    let count = |overall: Overall| verdicts.iter().filter(|verdict| verdict.verdict == overall).count();
    let all = [
        Overall::Holds,
        Overall::InPart,
        Overall::Fails,
        Overall::CannotTell,
        Overall::Needs,
        Overall::NotRun,
        Overall::Measured,
    ];
    let counts = all.iter().filter(|overall| count(**overall) > 0);
    let lead = counts.map(|overall| format!("{} {}", count(*overall), overall.name())).collect::<Vec<_>>().join(", ");
    let mut page = Page::new("What the papers claim, and what holds", lead + ".");
    page.footer = footer();
    let row = |verdict: &Verdict| -> Vec<Cell> {
        let (held, all) = verdict.tally();
        vec![
            Cell::from(verdict.id.as_str()).link(format!("{}/report.html", verdict.id)),
            verdict.title.as_str().into(),
            verdict.source().into(),
            badge(verdict),
            format!("{held} of {all}").into(),
            verdict.scale.into(),
            verdict.seeds.to_string().into(),
            verdict.needs.join(", ").into(),
        ]
    };
    let texts = ["experiment", "about", "document", "verdict"].map(Column::text);
    let mut section = Section::new("Verdicts");
    section.push(Table {
        caption: "Every experiment with its verdict and how many of its expectations hold.".into(),
        columns: texts
            .into_iter()
            .chain([Column::number("hold"), Column::text("scale"), Column::number("seeds")])
            .chain([Column::text("not there yet")])
            .collect(),
        rows: verdicts.iter().map(row).collect(),
    });
    page.sections.push(section);
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_of_an_axis_decides_how_numbers_are_written() {
        let of = |unit| axis(&exhibit::Axis { title: "depth".into(), unit, log: false });
        let (bytes, scale) = of(Some(Unit::Bytes));
        assert_eq!((bytes.format, bytes.label, scale), (Format::Bytes, "depth".into(), 1.0));
        assert_eq!((of(Some(Unit::Microseconds)).0.format, of(Some(Unit::Microseconds)).1), (Format::Time, 1e-6));
        assert_eq!((of(Some(Unit::Milliseconds)).0.format, of(Some(Unit::Milliseconds)).1), (Format::Time, 1e-3));
        let (rate, scale) = of(Some(Unit::GigabitsPerSecond));
        assert_eq!((rate.format, scale), (Format::Rate, 1e9));
        assert_eq!((of(Some(Unit::Percent)).0.unit, of(Some(Unit::Percent)).1), (Some("%".into()), 1.0));
        assert_eq!((of(None).0.format, of(None).0.unit), (Format::Plain, None));
    }

    #[test]
    fn a_panels_title_has_its_unit_once() {
        assert_eq!(heading("arrivals last (ms) 3ms"), "arrivals last 3ms");
        assert_eq!(heading("load (%) 60%"), "load 60%");
        for title in ["BFC", "buffer 3MB", "senders (at once) 32", "(ms) of 3us"] {
            assert_eq!(heading(title), title);
        }
    }

    #[test]
    fn a_size_bin_is_written_as_people_write_it() {
        assert_eq!(
            (category("..1KB"), category("1KB..2KB"), category("HPCC")),
            ("≤1KB".into(), "1KB–2KB".into(), "HPCC".into())
        );
    }
}
