//! Whole pages: of one run, and of several side by side.

use crate::collectives::Step;
use crate::curves::{self, Curve};
use crate::fabric::Picture;
use crate::heat::Heat;
use crate::spans::Spans;
use crate::{Axis, Cell, Column, Drawing, Figure, Format, Mark, Page, Palette, Point, Section, Style, Table, Tone};
use results::answer::{self, Answer, FEW, P50, P99, certainly_least};
use results::comparison::{At, COMPLETION, Labels, groups_with_slowdowns, together};
use results::measure::{Estimate, VAGUE, is_vague, percentile};
use results::parts::PartRow;
use results::records::{FlowRow, Records};
use serde_json::Value;
use std::sync::OnceLock;

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
    /// Charts of spans.
    pub spans: Vec<Spans>,
}

impl Report {
    /// Figures, pictures, heat maps and charts of spans by their ids.
    pub fn drawings(&self) -> impl Iterator<Item = (&str, Drawing)> {
        let figures = self.figures.iter().map(|figure| (figure.id.as_str(), figure.drawing()));
        let pictures = self.pictures.iter().map(|picture| (picture.id.as_str(), picture.drawing()));
        let heats = self.heats.iter().map(|heat| (heat.id.as_str(), heat.drawing()));
        let spans = self.spans.iter().map(|spans| (spans.id.as_str(), spans.drawing()));
        figures.chain(pictures).chain(heats).chain(spans)
    }
}

fn number(value: &Value) -> Option<f64> {
    value.as_f64()
}

/// A number for a table, to three digits or so.
fn short(value: Option<f64>) -> String {
    value.map_or("–".into(), |value| Format::Plain.in_table(value, value))
}

/// A count, exact.
fn count(value: &Value) -> String {
    value.as_u64().map_or("–".into(), |count| count.to_string())
}

fn interval(value: &Value) -> String {
    match (value[0].as_f64(), value[1].as_f64()) {
        (Some(low), Some(high)) => format!("{} to {}", short(Some(low)), short(Some(high))),
        _ => "–".into(),
    }
}

/// A spread of slowdowns as a row of a table.
fn spread_row(name: String, spread: &Value) -> Vec<Cell> {
    let mut row: Vec<Cell> = vec![name.into(), count(&spread["count"]).into()];
    let flows = spread["count"].as_u64().unwrap_or(0);
    // As `tailwater run` prints it.
    let least = |key: &str| match key {
        "p95" => 20,
        "p99" => 100,
        "p999" => 1000,
        _ => 0,
    };
    row.extend(["mean", "p50", "p95", "p99", "p999", "max"].map(|key| {
        let value = short(number(&spread[key]));
        if flows < least(key) && flows > 0 { format!("{value}?") } else { value }.into()
    }));
    row.push(interval(&spread["interval"]["p99"]).into());
    row
}

/// The median, the 99th percentile and the longest of the completion times of these flows, those that were received.
fn times<'a>(flows: impl Iterator<Item = &'a FlowRow>) -> [Cell; 3] {
    let slowed = flows.filter(|flow| flow.slowdown.is_some());
    let mut all: Vec<f64> = slowed.filter_map(|flow| Some(flow.received_ps? as f64 / 1e12)).collect();
    all.sort_by(f64::total_cmp);
    let Some(longest) = all.last() else { return ["–"; 3].map(Cell::from) };
    let few = if all.len() < 100 { "?" } else { "" };
    let show = |time: f64| Format::Time.exact(time);
    [show(percentile(&all, 0.5)), show(percentile(&all, 0.99)) + few, show(*longest)].map(Cell::from)
}

fn slowdown_table(run: &Records) -> Table {
    let columns = [
        "flows",
        "mean",
        "p50",
        "p95",
        "p99",
        "p99.9",
        "max",
        "95 % interval of p99",
        "p50 time",
        "p99 time",
        "longest",
    ];
    let what = "Slowdown: completion time over that of the same message alone in the network. A question mark stands behind a percentile of so few flows that none lies beyond it. The last columns are the completion times themselves.";
    let caption = match run.summary["slowdown"]["unfinished"].as_u64() {
        None => what.into(),
        Some(1) => format!("{what} Of finished flows: 1 flow did not finish."),
        Some(open) => format!("{what} Of finished flows: {open} flows did not finish."),
    };
    let mut table = Table {
        caption,
        columns: [Column::text("slowdown")].into_iter().chain(columns.map(Column::number)).collect(),
        rows: Vec::new(),
    };
    let empty = Vec::new();
    let groups = run.summary["groups"].as_array().unwrap_or(&empty);
    for group in groups.iter().filter(|group| group["slowdown"]["count"].as_u64() != Some(0)) {
        let name = group["name"].as_str().unwrap_or_default();
        let own = || run.flows.iter().filter(|flow| groups.len() == 1 || flow.group == name);
        for bin in group["slowdown_by_size"].as_array().unwrap_or(&empty) {
            if bin["slowdown"]["count"].as_u64() == Some(0) {
                continue;
            }
            let size = |key: &str| bin[key].as_f64().map(|bytes| Format::Bytes.show(bytes));
            let sizes = match size("up_to") {
                Some(end) => format!("up to {end}"),
                None => format!("over {}", size("above").unwrap_or_default()),
            };
            let (above, up_to) = (bin["above"].as_u64().unwrap_or(0), bin["up_to"].as_u64().unwrap_or(u64::MAX));
            let inside = own().filter(|flow| flow.size > above && flow.size <= up_to);
            let row = spread_row(format!("{name}, {sizes}"), &bin["slowdown"]);
            table.rows.push(row.into_iter().chain(times(inside)).collect());
        }
        let row = spread_row(format!("{name}, all"), &group["slowdown"]);
        table.rows.push(row.into_iter().chain(times(own())).collect());
    }
    if groups.len() != 1 {
        let finished = run.summary["slowdown"].get("unfinished").is_some();
        let name = if finished { "all finished flows" } else { "all flows" };
        let row = spread_row(name.into(), &run.summary["slowdown"]);
        table.rows.push(row.into_iter().chain(times(run.flows.iter())).collect());
    }
    table
}

/// What arrived at a host that somebody sends to, on average; none where nobody sends.
fn mean_rate(run: &Records) -> Option<f64> {
    let rates = curves::received(run);
    (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
}

fn facts(run: &Records) -> Vec<(String, Cell)> {
    let s = &run.summary;
    let text = |key: &str| s[key].as_str().unwrap_or("–").to_string();
    let ending = match s["ending"].as_str() {
        Some("complete") => Cell::badge(Tone::Good, "complete"),
        other => Cell::badge(Tone::Bad, other.unwrap_or("unknown")),
    };
    let fact = |name: &str, cell: Cell| (name.to_string(), cell);
    let shown = |format: Format, value: &Value| value.as_f64().map_or("–".into(), |value| format.exact(value));
    let mut facts = vec![
        fact("Flow control", text("flow_control").into()),
        fact("Congestion control", text("congestion_control").into()),
        fact("Seed", count(&s["seed"]).into()),
        fact("Flows finished", format!("{} of {}", count(&s["finished"]), count(&s["flows"])).into()),
        fact("Ending", ending),
        fact("Simulated", Format::Time.exact(s["end_ps"].as_f64().unwrap_or(0.0) / 1e12).into()),
        fact("Packets dropped", count(&s["dropped"]["packets"]).into()),
        fact("Packets marked", count(&s["marked"]).into()),
        fact("Time paused, mean of all links", shown(Format::Percent, &s["pause"]["share"]).into()),
        fact("Peak buffer of a switch", shown(Format::Bytes, &s["buffer"]["peak"]).into()),
        fact("Mean rate of the receivers", mean_rate(run).map_or("–".into(), |rate| Format::Rate.exact(rate)).into()),
        fact("Packet-hops", count(&s["packet_hops"]).into()),
    ];
    // What was not simulated says so before anything else.
    if let Some(method) = s["estimate"]["method"].as_str() {
        let off = |value: &Value| value.as_f64().map_or("not known".into(), |off| Format::Percent.show(off.abs()));
        let error = &s["estimate"]["error"];
        facts.insert(0, fact("Not simulated", Cell::badge(Tone::Bad, format!("estimated by {method}"))));
        facts.insert(1, fact("Half of the completion times are within", off(&error["fct"]["p50"]).into()));
        facts.insert(2, fact("p99 slowdown is off by", off(&error["p99"]["off"]).into()));
    }
    let forward = &s["fast_forward"];
    if forward["jumps"].as_u64().unwrap_or(0) > 0 && forward["fell_back"] != true {
        let share = |value: &Value| value.as_f64().map_or("not known".into(), |off| format!("{:.2} %", 100.0 * off));
        let badge = format!("fast-forward: {} of the time was skipped", share(&forward["skipped"]));
        facts.insert(0, fact("Not all simulated", Cell::badge(Tone::Bad, badge)));
        facts.insert(
            1,
            fact("Half of the completion times are off by up to", share(&forward["error"]["fct"]["p50"]).into()),
        );
        facts.insert(2, fact("99 % of them by up to", share(&forward["error"]["fct"]["p99"]).into()));
    }
    facts
}

fn counters(run: &Records) -> Option<Table> {
    let all = run.summary["counters"].as_object().filter(|all| !all.is_empty())?;
    Some(Table {
        caption: "What the schemes counted.".into(),
        columns: vec![Column::text("counter"), Column::number("count")],
        rows: all.iter().map(|(name, count)| vec![name.replace('_', " ").into(), count.to_string().into()]).collect(),
    })
}

/// What flows waited for, worst first, in runs that are asked why; and what else is `said` of them.
fn roots(run: &Records, said: &[String]) -> Option<Section> {
    let all = run.summary.pointer("/why/roots")?.as_array()?;
    let mut section = Section::new("Why flows waited");
    said.iter().for_each(|sentence| section.push(sentence.as_str()));
    if all.is_empty() {
        return (!said.is_empty()).then_some(section);
    }
    let time = |value: &Value| Format::Time.exact(value.as_f64().unwrap_or(0.0) / 1e12);
    let name = |flow: &Value| {
        let number = flow["flow"].as_u64()?;
        let row = run.flows.get(number as usize)?;
        let end = if flow["for_ever"] == true { ", did not end" } else { "" };
        Some(format!("{number} ({} to {}), {}{end}", row.src, row.dst, time(&flow["waited_ps"])))
    };
    let row = |root: &Value| -> Vec<Cell> {
        let kind = match root["kind"].as_str() {
            Some("deadlock") => Cell::badge(Tone::Bad, "deadlock"),
            Some("slow-receiver") => "slow receiver".into(),
            Some("link-down") => "link down".into(),
            Some("no-path") => "no path behind it".into(),
            Some("lossy-link") => "lossy link".into(),
            Some("link-retry") => "link that repeats".into(),
            Some("cycle") => "cycle at the end".into(),
            Some("scheme") => root["rule"].as_str().unwrap_or("scheme").into(),
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
            count(&root["lost"]).into(),
            time(&root["waited_ps"]).into(),
            count(&root["victims"]).into(),
            time(&root["victim_ps"]).into(),
            worst.join("; ").into(),
        ]
    };
    let numbers =
        ["flows that fill it", "stops", "ports stopped", "packets lost", "flows waited", "victims", "victims waited"];
    let columns = [Column::text("root"), Column::text("what it is")].into_iter();
    section.push(Table {
        caption: "Every stop and every packet that was lost, followed to its root; the roots that cost most. Victims are flows that waited, or lost packets for want \
                  of room, and do not pass through the root. \
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

/// What the program calls its version, if it has said so.
static VERSION: OnceLock<&'static str> = OnceLock::new();

/// Says which version of the program draws: it stands at the foot of every page.
pub fn drawn_by(version: &'static str) {
    _ = VERSION.set(version);
}

pub(crate) fn footer() -> String {
    format!("Tailwater {}", VERSION.get().unwrap_or(&env!("CARGO_PKG_VERSION")))
}

/// What a run was of: its flow control, and its congestion control if it has one.
pub fn scheme_name(summary: &Value) -> String {
    let scheme = |key: &str| summary[key].as_str().unwrap_or_default();
    match (scheme("flow_control"), scheme("congestion_control")) {
        ("none", "none") => "no flow control and no congestion control".into(),
        (flow, "none") => format!("{flow} without congestion control"),
        ("none", congestion) => format!("{congestion} without flow control"),
        (flow, congestion) => format!("{flow} with {congestion}"),
    }
}

/// The page of one run. `parts` say where its flows' time went, if that was asked, and `said` what is to be
/// said of that. `steps` are those of its collectives. `scenario` is its text, `command` runs it again.
pub fn run(
    records: &Records,
    parts: &[PartRow<'_>],
    said: &[String],
    steps: &[Step],
    scenario: &str,
    command: &str,
) -> Report {
    let name = records.summary["scenario"].as_str().unwrap_or("A run");
    let label = scheme_name(&records.summary);
    let curves = [Curve { name: label.clone(), labels: Vec::new(), runs: vec![records] }];
    let mut figures = curves::all(&curves, &mut Palette::default());
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
    let spans = crate::parts::charts(records, parts);
    let mut time = Section::new("Where the time went");
    if !spans.is_empty() {
        time.push(crate::parts::sentence(&records.summary));
    }
    spans.iter().for_each(|chart| time.push(chart.clone()));
    page.sections =
        roots(records, said).into_iter().chain(crate::training::section(records)).chain([summary]).collect();
    if let Some((section, steps)) = crate::collectives::section(&records.summary, steps) {
        page.sections.push(section);
        figures.extend(steps);
    }
    if !time.blocks.is_empty() {
        page.sections.push(time);
    }
    page.sections.push(drawn);
    if !fabric.blocks.is_empty() {
        page.sections.push(fabric);
    }
    if !counted.blocks.is_empty() {
        page.sections.push(counted);
    }
    page.sections.push(provenance(scenario, command));
    Report { page, figures, pictures, heats: Vec::new(), spans }
}

/// Where a number of a run is.
enum Source {
    Summary(At),
    /// The same, times so much.
    Scaled(At, f64),
    /// The mean rate of those that receive.
    Receivers,
}

/// How a number of a run is shown in a comparison.
struct Compared {
    name: String,
    at: Source,
    format: Format,
    /// Whether less is better; otherwise nothing is.
    less: bool,
}

/// What is compared: the slowdowns of every group of flows, and what the network did. The p99 is left to the `answer` where there is
/// one: there it is of the flows of all seeds together, and a mean over seeds beside it would be a second number of the same name.
fn compared(curves: &[Curve<'_>], answer: Option<&Answer>) -> Vec<Compared> {
    let one = |name: &str, at: At, format, less| Compared { name: name.into(), at: Source::Summary(at), format, less };
    let pointer = |at: &str| At::Pointer(at.into());
    let mut all = vec![one("flows finished", pointer("/finished"), Format::Count, false)];
    let runs = curves.iter().flat_map(|curve| &curve.runs);
    for (_, name, what, at) in together(runs.clone().map(|run| &run.summary)) {
        let at = Source::Scaled(at, 1e-12);
        all.push(Compared { name: format!("{name}, {what}"), at, format: Format::Time, less: true });
    }
    let groups = groups_with_slowdowns(runs.map(|run| &run.summary));
    let slowdown = |group: Option<&String>, percentile| At::Slowdown { group: group.cloned(), bin: None, percentile };
    let shown = |q: &&str| answer.is_none() || *q != "p99";
    if groups.len() > 1 {
        for name in &groups {
            for q in ["p50", "p99"].into_iter().filter(shown) {
                all.push(one(&format!("{name} {q}"), slowdown(Some(name), q), Format::Plain, true));
            }
        }
    } else {
        for (name, q) in [("slowdown p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("p99.9", "p999")] {
            if shown(&q) {
                all.push(one(name, slowdown(None, q), Format::Plain, true));
            }
        }
    }
    all.extend([
        one("peak buffer", pointer("/buffer/peak"), Format::Bytes, true),
        one("time paused", pointer("/pause/share"), Format::Percent, true),
        one("dropped", pointer("/dropped/packets"), Format::Count, true),
        Compared { name: "receivers' mean rate".into(), at: Source::Receivers, format: Format::Rate, less: false },
    ]);
    all
}

fn comparison_table(curves: &[Curve<'_>], answer: Option<&Answer>) -> Table {
    let all = compared(curves, answer);
    let value = |run: &Records, compared: &Compared| match &compared.at {
        Source::Summary(at) => at.of(&run.summary),
        Source::Scaled(at, scale) => at.of(&run.summary).map(|value| value * scale),
        Source::Receivers => mean_rate(run),
    };
    let estimate = |curve: &Curve<'_>, compared: &Compared| {
        // A mean of some of the seeds would be of those where all went well.
        let values: Option<Vec<f64>> = curve.runs.iter().map(|run| value(run, compared)).collect();
        Estimate::of(&values.unwrap_or_default())
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
            let spread = estimate.spread(|end| compared.format.in_table(end, mean));
            let cell = Cell::from(format!("{}{}{spread}", estimate.mark(), compared.format.in_table(mean, mean)));
            if best(compared) == Some(place) { cell.strong() } else { cell }
        };
        [curve.name.as_str().into()].into_iter().chain(all.iter().map(cell)).collect()
    };
    Table {
        caption: "Slowdowns by group of flows, if there are several; flows that did not finish are taken to be the slowest, and a dash stands where a percentile falls on them. Means over seeds, with the half of their 95 % intervals if there are several, or after ~ where that interval is wider than the mean. Bold is certainly the least."
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
    let number = |value: f64| short(Some(value));
    if let Some((table, _)) = completed(answer, &name) {
        section.push(table);
    }
    let row = |(line, labels): (usize, &Labels)| {
        let cell = |class: usize| {
            let tail = answer.tail(line, class);
            let Some(value) = tail.percentiles[P99] else {
                return Cell::from(if tail.flows > 0 { "not finished" } else { "–" });
            };
            let few = if tail.flows < FEW { "?" } else { "" };
            let cell = Cell::from(with_interval(&value, &number) + few);
            if winners[class].contains(&line) { cell.strong() } else { cell }
        };
        [name(labels).into()].into_iter().chain((0..answer.classes.len()).map(cell)).collect()
    };
    let basis = answer.basis();
    section.push(Table {
        caption: format!("p99 slowdown by flow size{}; {basis}. Bold is certainly the lowest; a question mark stands behind what has fewer than {FEW} flows. {}.", answer.window(), roughly()),
        columns: [Column::text("")].into_iter().chain(answer.classes.iter().map(|class| Column::number(class.head()))).collect(),
        rows: answer.labels().enumerate().map(row).collect(),
    });
    let times = |(line, labels): (usize, &Labels)| {
        let cell = |class: usize| {
            let tail = answer.tail(line, class);
            let time = |place: usize| match tail.times[place] {
                // A line may end between the two alone.
                Some(answer::Value { value, .. }) => {
                    Format::Time.in_table(value / 1e12, value / 1e12).replace(' ', "\u{a0}")
                }
                None => "not finished".into(),
            };
            match tail.flows {
                0 => Cell::from("–"),
                flows => {
                    let few = if flows < FEW { "?" } else { "" };
                    Cell::from(format!("{}\u{a0}/\u{a0}{}{few}", time(P50), time(P99)))
                }
            }
        };
        [name(labels).into()].into_iter().chain((0..answer.classes.len()).map(cell)).collect()
    };
    if !answer.classes.is_empty() {
        section.push(Table {
            caption: format!("Completion times by flow size{}, median / p99, of the flows of all seeds. Intervals are in `by_size.csv`.", answer.window()),
            columns: [Column::text("")].into_iter().chain(answer.classes.iter().map(|class| Column::number(class.head()))).collect(),
            rows: answer.labels().enumerate().map(times).collect(),
        });
    }
    // What hosts did together is what was asked.
    if let Some((_, mut figure)) = completed(answer, &name) {
        for (line, labels) in answer.labels().enumerate().filter(|_| lines <= MOST_LEADING) {
            figure.series.push(palette.series(&name(labels), figure_style(answer), completion_points(answer, line)));
        }
        if !figure.series.is_empty() {
            section.blocks.insert(0, figure.clone().into());
            return (section, Some(figure));
        }
    }
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

/// A value with its interval as tables show it: `~` alone where that is wider than the value.
fn with_interval(value: &answer::Value, show: &dyn Fn(f64) -> String) -> String {
    match value.interval {
        interval if is_vague(value.value, interval) => format!("~{}", show(value.value)),
        Some((low, high)) if show(low) != show(high) => format!("{} ({}–{})", show(value.value), show(low), show(high)),
        _ => show(value.value),
    }
}

/// What `~` says, as a sentence.
fn roughly() -> String {
    VAGUE.replacen("~ roughly", "After ~ a value is rough", 1)
}

/// When collectives were completed and how long iterations of jobs took: a table, and the figure that leads, without its series. None where there are
/// neither.
fn completed(answer: &Answer, name: &dyn Fn(&Labels) -> String) -> Option<(Table, Figure)> {
    let all = answer.together();
    let only_jobs = all.first()?.1 != COMPLETION;
    let title = if only_jobs { "Iteration time" } else { "Completion time" };
    let first: Vec<Vec<usize>> = (0..all.len()).map(|at| answer.first(at)).collect();
    let row = |(line, labels): (usize, &Labels)| {
        let cell = |at: usize| {
            let Some(value) = answer.completion(line, at) else { return Cell::from("not finished") };
            let cell = Cell::from(with_interval(&value, &|ps| Format::Time.in_table(ps / 1e12, value.value / 1e12)));
            if first[at].contains(&line) { cell.strong() } else { cell }
        };
        [name(labels).into()].into_iter().chain((0..all.len()).map(cell)).collect()
    };
    let head = |(name, what): &(String, &str)| Column::number(format!("{name}, {what}"));
    let table = Table {
        caption: format!(
            "Rounds of collectives, from the start of the first message to the receipt of the last, and iterations of jobs: means over rounds and seeds; {}. Bold is certainly the \
             first. {}.",
            answer.basis(),
            roughly()
        ),
        columns: [Column::text("")].into_iter().chain(all.iter().map(head)).collect(),
        rows: answer.labels().enumerate().map(row).collect(),
    };
    let y = Axis { format: Format::Time, ..if all.len() > 1 { Axis::log(title) } else { Axis::linear(title) } };
    let x = match all {
        [_] => Axis::categories("", answer.labels().map(name)),
        several => Axis::categories("", several.iter().map(|(name, _)| name.clone())),
    };
    let of = if let [(one, _)] = all { format!("{title} of {one}") } else { title.into() };
    Some((table, Figure::new("completed", of, x, y)))
}

/// Bars of schemes where there is one collective, else markers.
fn figure_style(answer: &Answer) -> Style {
    if answer.together().len() > 1 { Style::Markers } else { Style::Bars }
}

/// The points of a line in the figure of [`completed`].
fn completion_points(answer: &Answer, line: usize) -> Vec<Point> {
    let several = answer.together().len() > 1;
    let point = |at: usize| {
        let value = answer.completion(line, at)?;
        let interval = value.interval.map(|(low, high)| (low / 1e12, high / 1e12));
        Some(Point { x: if several { at } else { line } as f64, y: value.value / 1e12, interval })
    };
    (0..answer.together().len()).filter_map(point).collect()
}

/// What went wrong in any run.
fn troubles(curves: &[Curve<'_>]) -> Vec<String> {
    let runs = || curves.iter().flat_map(|curve| curve.runs.iter().map(move |run| (&curve.labels, run)));
    let labels: Vec<&Labels> = runs().map(|(labels, _)| labels).collect();
    let summaries: Vec<Value> = runs().map(|(_, run)| run.summary.clone()).collect();
    results::comparison::Table::new(Vec::new(), &labels, &summaries).troubles()
}

/// The most lines that the leading figure has.
const MOST_SERIES: usize = 8;
/// The same where each has a row.
const MOST_LEADING: usize = 40;

/// The page of a comparison.
pub fn comparison(title: &str, curves: &[Curve<'_>], answer: Option<&Answer>, scenario: &str, command: &str) -> Report {
    let mut palette = Palette::default();
    let mut figures = curves::all(curves, &mut palette);
    let mut wins = answer.map(|answer| wins(answer, &mut palette));
    let troubles = troubles(curves);
    let seeds = curves.iter().map(|curve| curve.runs.len()).max().unwrap_or(0);
    let lead = format!(
        "{} with {} on the same traffic.",
        curves.iter().map(|curve| curve.name.as_str()).collect::<Vec<_>>().join(", "),
        if seeds == 1 { "one seed".into() } else { format!("{seeds} seeds each") },
    );
    let mut page = Page::new(title, lead);
    page.footer = footer();
    let mut summary = Section::new("Comparison");
    summary.push(comparison_table(curves, answer));
    let mut drawn = Section::new("Figures");
    figures.iter().for_each(|figure| drawn.push(figure.clone()));
    // Before every number.
    let first = wins.as_mut().map_or(&mut summary, |(section, _)| section);
    troubles.into_iter().rev().for_each(|line| first.blocks.insert(0, crate::Block::from(line + ".")));
    if let Some((section, figure)) = wins {
        page.sections.push(section);
        figure.into_iter().for_each(|figure| figures.insert(0, figure));
    }
    page.sections.extend([summary, drawn, provenance(scenario, command)]);
    Report { page, figures, pictures: Vec::new(), heats: Vec::new(), spans: Vec::new() }
}
