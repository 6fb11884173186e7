//! Whole pages: of one run, and of several side by side.

use crate::curves::{self, Curve};
use crate::fabric::Picture;
use crate::heat::Heat;
use crate::{Axis, Cell, Column, Drawing, Figure, Format, Mark, Page, Palette, Point, Section, Style, Table, Tone};
use results::answer::{Answer, FEW, P99, certainly_least};
use results::comparison::Labels;
use results::measure::Estimate;
use results::records::Records;
use serde_json::Value;

/// A page and the figures on it, to be written as images beside it.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page.
    pub page: Page,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Pictures of the fabric.
    pub pictures: Vec<Picture>,
    /// Heat maps.
    pub heats: Vec<Heat>,
}

impl Report {
    /// Figures, pictures and heat maps by their ids.
    pub fn drawings(&self) -> impl Iterator<Item = (&str, Drawing)> {
        let figures = self.figures.iter().map(|figure| (figure.id.as_str(), figure.drawing()));
        let pictures = self.pictures.iter().map(|picture| (picture.id.as_str(), picture.drawing()));
        figures.chain(pictures).chain(self.heats.iter().map(|heat| (heat.id.as_str(), heat.drawing())))
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

/// A number for a table, to three digits or so.
fn short(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| Format::Plain.show(value))
}

/// A count, exact.
fn count(value: &Value) -> String {
    value.as_u64().map_or("–".into(), |count| count.to_string())
}

fn interval(value: &Value) -> String {
    match (value[0].as_f64(), value[1].as_f64()) {
        (Some(low), Some(high)) => format!("{} to {}", Format::Plain.show(low), Format::Plain.show(high)),
        _ => "–".into(),
    }
}

/// A spread of slowdowns as a row of a table.
fn spread_row(name: String, spread: &Value) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![name.into(), count(&spread["count"]).into()];
    row.extend(["mean", "p50", "p95", "p99", "p999", "max"].map(|key| short(number(&spread[key])).into()));
    row.push(interval(&spread["interval"]["p99"]).into());
    row
}

fn slowdown_table(run: &Records) -> Table {
    let columns = ["flows", "mean", "p50", "p95", "p99", "p99.9", "max", "95 % interval of p99"];
    let mut table = Table {
        caption: "Slowdown: completion time over that of the same message alone in the network.".into(),
        columns: [Column::text("size")].into_iter().chain(columns.map(Column::number)).collect(),
        rows: Vec::new(),
    };
    let empty = Vec::new();
    let groups = run.summary["groups"].as_array().unwrap_or(&empty);
    for group in groups.iter().filter(|group| group["slowdown"]["count"].as_u64() != Some(0)) {
        let name = group["name"].as_str().unwrap_or_default();
        for bin in group["slowdown_by_size"].as_array().unwrap_or(&empty) {
            if bin["slowdown"]["count"].as_u64() == Some(0) {
                continue;
            }
            let size = |key: &str| bin[key].as_f64().map(|bytes| Format::Bytes.show(bytes));
            let sizes = match size("up_to") {
                Some(end) => format!("up to {end}"),
                None => format!("over {}", size("above").unwrap_or_default()),
            };
            table.rows.push(spread_row(format!("{name}, {sizes}"), &bin["slowdown"]));
        }
        table.rows.push(spread_row(format!("{name}, all"), &group["slowdown"]));
    }
    if groups.len() != 1 {
        table.rows.push(spread_row("all flows".into(), &run.summary["slowdown"]));
    }
    table
}

fn facts(run: &Records) -> Vec<(String, Cell)> {
    let s = &run.summary;
    let text = |key: &str| s[key].as_str().unwrap_or("–").to_string();
    let ending = match s["ending"].as_str() {
        Some("complete") => Cell::badge(Tone::Good, "complete"),
        other => Cell::badge(Tone::Bad, other.unwrap_or("unknown")),
    };
    let fact = |name: &str, cell: Cell| (name.to_string(), cell);
    let bytes = |value: &Value| Format::Bytes.show(value.as_f64().unwrap_or(0.0)).into();
    vec![
        fact("Flow control", text("flow_control").into()),
        fact("Congestion control", text("congestion_control").into()),
        fact("Seed", count(&s["seed"]).into()),
        fact("Flows finished", format!("{} of {}", count(&s["finished"]), count(&s["flows"])).into()),
        fact("Ending", ending),
        fact("Simulated", Format::Time.show(s["end_ps"].as_f64().unwrap_or(0.0) / 1e12).into()),
        fact("Packets dropped", count(&s["dropped"]["packets"]).into()),
        fact("Packets marked", count(&s["marked"]).into()),
        fact(
            "Time paused, mean of all links",
            Format::Percent.show(s["pause"]["share"].as_f64().unwrap_or(0.0)).into(),
        ),
        fact("Peak buffer of a switch", bytes(&s["buffer"]["peak"])),
        fact("Packet-hops", count(&s["packet_hops"]).into()),
    ]
}

fn counters(run: &Records) -> Option<Table> {
    let all = run.summary["counters"].as_object().filter(|all| !all.is_empty())?;
    Some(Table {
        caption: "What the schemes counted.".into(),
        columns: vec![Column::text("counter"), Column::number("count")],
        rows: all.iter().map(|(name, count)| vec![name.as_str().into(), count.to_string().into()]).collect(),
    })
}

/// What flows waited for, worst first, in runs that are asked why.
fn roots(run: &Records) -> Option<Section> {
    let all = run.summary.pointer("/why/roots")?.as_array().filter(|all| !all.is_empty())?;
    let time = |value: &Value| Format::Time.show(value.as_f64().unwrap_or(0.0) / 1e12);
    let name = |flow: &Value| {
        let number = flow["flow"].as_u64()?;
        let row = run.flows.get(number as usize)?;
        Some(format!("{number} ({} to {}), {}", row.src, row.dst, time(&flow["waited_ps"])))
    };
    let row = |root: &Value| -> Vec<Cell> {
        let kind = match root["kind"].as_str() {
            Some("deadlock") => Cell::badge(Tone::Bad, "deadlock"),
            Some("slow-receiver") => "slow receiver".into(),
            Some("link-down") => "link down".into(),
            other => other.unwrap_or("–").into(),
        };
        let victims = root["worst_victims"].as_array().into_iter().flatten().filter_map(name);
        let worst: Vec<String> = victims.take(3).collect();
        vec![
            root["place"].as_str().unwrap_or_default().into(),
            kind,
            count(&root["flows"]).into(),
            count(&root["stops"]).into(),
            count(&root["stopped_ports"]).into(),
            time(&root["waited_ps"]).into(),
            count(&root["victims"]).into(),
            time(&root["victim_ps"]).into(),
            worst.join("; ").into(),
        ]
    };
    let numbers = ["flows that fill it", "stops", "ports stopped", "flows waited", "victims", "victims waited"];
    let columns = [Column::text("root"), Column::text("what it is")].into_iter();
    let mut section = Section::new("Why flows waited");
    section.push(Table {
        caption: "Every stop, followed to its root; the roots that cost most. Victims are flows that waited and do not pass through the root. \
                  `tailwater explain` tells of each stop, flow and link."
            .into(),
        columns: columns.chain(numbers.map(Column::number)).chain([Column::text("worst victims")]).collect(),
        rows: all.iter().take(10).map(row).collect(),
    });
    Some(section)
}

/// What ran and how to run it again.
pub(crate) fn provenance(scenario: &str, command: &str) -> Section {
    let mut section = Section::new("How to reproduce");
    section.push(crate::Block::Code { title: "Command".into(), text: command.into() });
    section.push(crate::Block::Code { title: "Scenario".into(), text: scenario.into() });
    section
}

pub(crate) fn footer() -> String {
    format!("Tailwater {}", env!("CARGO_PKG_VERSION"))
}

/// The page of one run. `scenario` is its text, `command` runs it again.
pub fn run(records: &Records, scenario: &str, command: &str) -> Report {
    let name = records.summary["scenario"].as_str().unwrap_or("A run");
    let scheme = |key: &str| records.summary[key].as_str().unwrap_or_default();
    let label = format!("{} with {}", scheme("flow_control"), scheme("congestion_control"));
    let curves = [Curve { name: label.clone(), labels: Vec::new(), runs: vec![records] }];
    let figures = curves::all(&curves, &mut Palette::default());
    let mut page = Page::new(name, label);
    page.footer = footer();
    let mut summary = Section::new("Summary");
    summary.push(crate::Block::Facts(facts(records)));
    summary.push(slowdown_table(records));
    let mut drawn = Section::new("Figures");
    figures.iter().for_each(|figure| drawn.push(figure.clone()));
    let pictures: Vec<Picture> = Picture::of_run(records).into_iter().collect();
    let mut fabric = Section::new("Fabric");
    pictures.iter().for_each(|picture| fabric.push(picture.clone()));
    let mut counted = Section::new("Counters");
    counters(records).into_iter().for_each(|table| counted.push(table));
    page.sections = vec![summary, drawn];
    if let Some(roots) = roots(records) {
        page.sections.insert(0, roots);
    }
    if !fabric.blocks.is_empty() {
        page.sections.push(fabric);
    }
    if !counted.blocks.is_empty() {
        page.sections.push(counted);
    }
    page.sections.push(provenance(scenario, command));
    Report { page, figures, pictures, heats: Vec::new() }
}

/// Where a number of a run is.
enum At {
    Summary(String),
    /// The mean rate of those that receive.
    Receivers,
}

/// How a number of a run is shown in a comparison.
struct Compared {
    name: String,
    at: At,
    format: Format,
    /// Whether less is better; otherwise nothing is.
    less: bool,
}

/// What is compared: the slowdowns of every group of flows, and what the network did.
fn compared(curves: &[Curve<'_>]) -> Vec<Compared> {
    let one =
        |name: &str, at: &str, format, less| Compared { name: name.into(), at: At::Summary(at.into()), format, less };
    let mut all = vec![one("flows finished", "/finished", Format::Count, false)];
    let first = curves.first().and_then(|curve| curve.runs.first());
    let groups = first.and_then(|run| run.summary["groups"].as_array()).cloned().unwrap_or_default();
    let has_flows = |group: &Value| group["slowdown"]["count"].as_u64().is_some_and(|count| count > 0);
    let several = groups.iter().filter(|group| has_flows(group)).count() > 1;
    for (place, group) in groups.iter().enumerate().filter(|(_, group)| several && has_flows(group)) {
        let name = group["name"].as_str().unwrap_or_default();
        for q in ["p50", "p99"] {
            all.push(one(&format!("{name} {q}"), &format!("/groups/{place}/slowdown/{q}"), Format::Plain, true));
        }
    }
    if !several {
        for (name, q) in [("slowdown p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("p99.9", "p999")] {
            all.push(one(name, &format!("/slowdown/{q}"), Format::Plain, true));
        }
    }
    all.extend([
        one("peak buffer", "/buffer/peak", Format::Bytes, true),
        one("time paused", "/pause/share", Format::Percent, true),
        one("dropped", "/dropped/packets", Format::Count, true),
        Compared { name: "receivers' mean rate".into(), at: At::Receivers, format: Format::Rate, less: false },
    ]);
    all
}

fn comparison_table(curves: &[Curve<'_>]) -> Table {
    let all = compared(curves);
    let value = |run: &Records, compared: &Compared| match &compared.at {
        At::Summary(at) => run.summary.pointer(at).and_then(Value::as_f64),
        At::Receivers => {
            let rates = curves::received(run);
            (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
        }
    };
    let estimate = |curve: &Curve<'_>, compared: &Compared| {
        Estimate::of(&curve.runs.iter().filter_map(|run| value(run, compared)).collect::<Vec<_>>())
    };
    // Bold is what is certain.
    let best = |compared: &Compared| -> Option<usize> {
        let values = |curve: &Curve<'_>| curve.runs.iter().filter_map(|run| value(run, compared)).collect();
        compared.less.then(|| certainly_least(&curves.iter().map(values).collect::<Vec<Vec<f64>>>())).flatten()
    };
    let columns = all.iter().map(|compared| Column::number(compared.name.as_str()));
    let row = |(place, curve): (usize, &Curve<'_>)| {
        let cell = |compared: &Compared| {
            let estimate = estimate(curve, compared);
            let Some(mean) = estimate.mean else { return Cell::from("–") };
            let spread = estimate.spread(|end| compared.format.show(end));
            let cell = Cell::from(compared.format.show(mean) + &spread);
            if best(compared) == Some(place) { cell.strong() } else { cell }
        };
        [curve.name.as_str().into()].into_iter().chain(all.iter().map(cell)).collect()
    };
    Table {
        caption: "Slowdowns by group of flows, if there are several. Means over seeds, with the half of their 95 % intervals if there are several. Bold is certainly the least."
            .into(),
        columns: [Column::text("")].into_iter().chain(columns).collect(),
        rows: curves.iter().enumerate().map(row).collect(),
    }
}

/// Who wins where: in words, in a table by size, and in a figure.
pub(crate) fn wins(answer: &Answer, palette: &mut Palette) -> (Section, Option<Figure>) {
    let mut section = Section::new("Who wins where");
    for clause in answer.clauses().into_iter().flatten() {
        section.push(clause + ".");
    }
    let lines = answer.labels().count();
    let winners: Vec<Vec<usize>> = (0..answer.classes.len()).map(|class| answer.winners(class)).collect();
    let name = |labels: &Labels| match labels.is_empty() {
        true => "all runs".to_string(),
        false => labels.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(", "),
    };
    let number = |value: f64| Format::Plain.show(value);
    let row = |(line, labels): (usize, &Labels)| {
        let cell = |class: usize| {
            let tail = answer.tail(line, class);
            let Some(value) = tail.percentiles[P99] else {
                return Cell::from(if tail.flows > 0 { "not finished" } else { "–" });
            };
            let interval =
                value.interval.map_or(String::new(), |(low, high)| format!(" ({}–{})", number(low), number(high)));
            let few = if tail.flows < FEW { "?" } else { "" };
            let cell = Cell::from(format!("{}{interval}{few}", number(value.value)));
            if winners[class].contains(&line) { cell.strong() } else { cell }
        };
        [name(labels).into()].into_iter().chain((0..answer.classes.len()).map(cell)).collect()
    };
    let seeds = match answer.seeds() {
        1 => "One seed: nothing is certain.".to_string(),
        seeds => format!("Flows of {seeds} seeds together, with 95 % intervals."),
    };
    section.push(Table {
        caption: format!("p99 slowdown by flow size{}. {seeds} Bold is certainly the lowest; a question mark stands behind what has fewer than {FEW} flows.", answer.window()),
        columns: [Column::text("")].into_iter().chain(answer.classes.iter().map(|class| Column::number(class.head()))).collect(),
        rows: answer.labels().enumerate().map(row).collect(),
    });
    if lines > MOST_SERIES || answer.classes.is_empty() {
        return (section, None);
    }
    let x = Axis::categories("Flows", answer.classes.iter().map(|class| class.head()));
    let mut figure = Figure::new("wins", "p99 slowdown by flow size", x, Axis::log("p99 slowdown"));
    for (line, labels) in answer.labels().enumerate() {
        let point = |class: usize| {
            let tail = answer.tail(line, class).percentiles[P99]?;
            Some(Point { x: class as f64, y: tail.value, interval: tail.interval.filter(|_| answer.seeds() > 2) })
        };
        let points: Vec<Point> = (0..answer.classes.len()).filter_map(point).collect();
        figure.series.push(palette.series(&name(labels), Style::Markers, points));
    }
    figure.marks.push(Mark::y(1.0, "alone in the network"));
    section.blocks.insert(0, figure.clone().into());
    (section, Some(figure))
}

/// The most lines that the leading figure has.
const MOST_SERIES: usize = 8;

/// The page of a comparison.
pub fn comparison(title: &str, curves: &[Curve<'_>], answer: Option<&Answer>, scenario: &str, command: &str) -> Report {
    let mut palette = Palette::default();
    let mut figures = curves::all(curves, &mut palette);
    let wins = answer.map(|answer| wins(answer, &mut palette));
    let seeds = curves.iter().map(|curve| curve.runs.len()).max().unwrap_or(0);
    let lead = format!(
        "{} with {} on the same traffic.",
        curves.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>().join(", "),
        if seeds == 1 { "one seed".into() } else { format!("{seeds} seeds each") },
    );
    let mut page = Page::new(title, lead);
    page.footer = footer();
    let mut summary = Section::new("Comparison");
    summary.push(comparison_table(curves));
    let mut drawn = Section::new("Figures");
    figures.iter().for_each(|figure| drawn.push(figure.clone()));
    if let Some((section, figure)) = wins {
        page.sections.push(section);
        figure.into_iter().for_each(|figure| figures.insert(0, figure));
    }
    page.sections.extend([summary, drawn, provenance(scenario, command)]);
    Report { page, figures, pictures: Vec::new(), heats: Vec::new() }
}
