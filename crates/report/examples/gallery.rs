//! Draws one figure of every kind into a folder: `cargo run -p tailwater-report --example gallery -- DIR`,
//! by default `results/gallery`. `gallery.html` there holds them all.
//!
//! The data is made up. It has the shape of real results so that the drawings can be judged, and says nothing
//! about any scheme.

use report::{
    Axis, Block, Cell, Column, Drawing, Figure, Format, Link, Mark, Page, Palette, Point, Section, Sheet, Style, Table,
    Tone,
};
use std::path::Path;

const SCHEMES: [&str; 6] = ["BFC", "Ideal FQ", "DCQCN", "DCQCN+Win", "DCQCN+Win+SFQ", "HPCC"];
const SIZES: [&str; 8] = ["≤1 KB", "≤3 KB", "≤10 KB", "≤30 KB", "≤100 KB", "≤300 KB", "≤1 MB", ">1 MB"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).unwrap_or_else(|| "results/gallery".to_string());
    let folder = Path::new(&folder);
    std::fs::create_dir_all(folder)?;
    let mut palette = Palette::new(SCHEMES);
    let figures = [
        slowdown(&mut palette, 1.0),
        occupancy(&mut palette),
        pauses(&mut palette),
        queue(&mut palette),
        sweep(&mut palette),
        ranking(&mut palette),
        scatter(&mut palette),
        nothing(&mut palette),
        awkward(&mut palette),
    ];
    for figure in &figures {
        save(folder, &figure.id, &figure.drawing())?;
    }
    let sheet = panels(&mut palette);
    save(folder, &sheet.id, &sheet.drawing())?;
    std::fs::write(folder.join("gallery.html"), page(figures, sheet).html())?;
    Ok(())
}

fn page(figures: [Figure; 9], sheet: Sheet) -> Page {
    let mut page = Page::new(
        "A gallery of figures",
        "One figure of every kind. The data is made up: it has the shape of results and says nothing about any scheme.",
    );
    page.footer = "Made by `cargo run -p tailwater-report --example gallery`".into();
    let mut first = Section::new("At a glance");
    let facts = [
        ("Scenario", "leaf_spine.toml"),
        ("Schemes", "6"),
        ("Seeds", "5"),
        ("Flows", "312 480"),
        ("Simulated", "50 ms"),
    ];
    first.push(Block::Facts(facts.map(|(name, value)| (name.to_string(), value.into())).into()));
    let table = Table {
        caption: "What the paper says, and what was measured.".into(),
        columns: vec![
            Column::text("Claim"),
            Column::text("What the paper says"),
            Column::number("Paper"),
            Column::number("Measured"),
            Column::text("Verdict"),
        ],
        rows: vec![
            vec![
                Cell::from("bfc/fig5a").link("#tail-slowdown"),
                "p99 slowdown of short flows, HPCC over BFC".into(),
                "8–10×".into(),
                Cell::from("7.7×").strong(),
                Cell::badge(Tone::Fair, "holds in part"),
            ],
            vec![
                "bfc/fig6".into(),
                "BFC never pauses a link by PFC".into(),
                "0%".into(),
                "0%".into(),
                Cell::badge(Tone::Good, "holds"),
            ],
            vec![
                "bfc/fig8".into(),
                "Utilisation of DCQCN+Win at a fan-in of 200".into(),
                "70%".into(),
                "91%".into(),
                Cell::badge(Tone::Bad, "does not hold"),
            ],
            vec![
                "sfc/fig1".into(),
                "Ingress BTS settles within 1 ms".into(),
                "1 ms".into(),
                "".into(),
                Cell::badge(Tone::Quiet, "no scheme yet"),
            ],
        ],
    };
    first.push(table);
    let mut second = Section::new("Tail slowdown");
    second.push("Slowdown is the time a flow takes over the time it would take alone. Load is a share of the core, `traffic.load = 0.6`.");
    let mut third = Section::new("Buffers and pauses");
    let mut fourth = Section::new("Odd ones");
    let mut figures = figures.into_iter();
    second.blocks.extend(figures.next().map(Block::from));
    second.push(sheet);
    third.blocks.extend(figures.by_ref().take(4).map(Block::from));
    fourth.blocks.extend(figures.map(Block::from));
    let mut last = Section::new("Reproduce");
    last.push(Block::Code {
        title: "The command".into(),
        text: "tailwater compare leaf_spine.toml --schemes bfc,dcqcn,hpcc --seeds 5".into(),
    });
    let lines: String = (0..30).map(|line| format!("key_{line} = \"<value> & more\"\n")).collect();
    last.push(Block::Code { title: "The scenario, `leaf_spine.toml`".into(), text: lines });
    last.push(Block::Links(vec![
        Link { label: "slowdown.svg".into(), target: "slowdown.svg".into(), note: "the first figure".into() },
        Link { label: "flows.parquet".into(), target: "flows.parquet".into(), note: "a row for every flow".into() },
    ]));
    page.sections = vec![first, second, third, fourth, last];
    page
}

fn save(folder: &Path, id: &str, drawing: &Drawing) -> Result<(), Box<dyn std::error::Error>> {
    std::fs::write(folder.join(id).with_extension("svg"), drawing.svg())?;
    std::fs::write(folder.join(id).with_extension("png"), drawing.png()?)?;
    Ok(())
}

/// Numbers from 0 to 1 that look random.
fn noise(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn slowdown(palette: &mut Palette, load: f64) -> Figure {
    let x = Axis::categories("Flow size", SIZES);
    let mut figure = Figure::new("slowdown", "99th percentile slowdown by flow size", x, Axis::log("p99 slowdown"));
    figure.subtitle = "Google RPC, 60% load + 5% incast, 128 hosts at 100 Gbps; 5 seeds; made-up data".into();
    figure.caption =
        "Whiskers are 95% confidence intervals over seeds. Lower is better; 1 is a network of one's own.".into();
    let shapes: [(f64, f64); 6] = [(1.9, 1.25), (1.5, 1.28), (42.0, 0.78), (24.0, 0.86), (9.0, 1.02), (14.0, 0.97)];
    for (name, (start, growth)) in SCHEMES.iter().zip(shapes) {
        let mut random = noise(start.to_bits());
        let points = (0..SIZES.len()).map(|bin| {
            let y = start * load * growth.powi(bin as i32) * (0.9 + 0.2 * random());
            let spread = 0.05 + 0.1 * random();
            (bin as f64, y, (y * (1.0 - spread), y * (1.0 + spread)))
        });
        figure.series.push(palette.series(name, Style::LineMarkers, points));
    }
    figure.marks.push(Mark::y(1.0, "alone in the network"));
    figure
}

fn occupancy(palette: &mut Palette) -> Figure {
    let x = Axis::log("Buffer occupancy of a switch").format(Format::Bytes);
    let y = Axis::linear("Share of samples").format(Format::Percent).range(0.0, 1.0);
    let mut figure = Figure::new("occupancy", "Buffer occupancy", x, y);
    figure.subtitle = "All switches, sampled every 10 µs; made-up data".into();
    figure.caption = "How often a switch holds at most so much. The dotted line is the size of its buffer.".into();
    for (name, middle) in SCHEMES.iter().zip([1.1e5, 0.9e5, 4.2e6, 1.6e6, 9.0e5, 2.6e5]) {
        let mut random = noise(f64::to_bits(middle));
        let mut values: Vec<f64> = (0..3000)
            .map(|_| {
                let sum: f64 = (0..6).map(|_| random()).sum();
                if random() < 0.04 { 0.0 } else { (middle * 10f64.powf((sum - 3.0) * 0.9)).min(1.2e7) }
            })
            .collect();
        values.sort_by(f64::total_cmp);
        let count = values.len() as f64;
        let points = values.iter().enumerate().map(|(rank, &value)| (value, (rank + 1) as f64 / count));
        figure.series.push(palette.series(name, Style::Step, points));
    }
    figure.marks.push(Mark::x(1.2e7, "buffer, 12 MB"));
    figure
}

fn pauses(palette: &mut Palette) -> Figure {
    let x = Axis::categories("Links", ["host → ToR", "ToR → spine", "spine → ToR", "ToR → host"]);
    let y = Axis::linear("Time paused").format(Format::Percent);
    let mut figure = Figure::new("pauses", "Share of time that links are paused", x, y);
    figure.subtitle = "PFC pauses of any class; made-up data".into();
    for (rank, name) in SCHEMES.iter().enumerate() {
        let mut random = noise(rank as u64 + 40);
        let points = (0..4).map(|link| {
            let y = [0.0, 0.0, 0.062, 0.021, 0.004, 0.0][rank] * [1.0, 0.7, 1.6, 0.1][link] * (0.8 + 0.4 * random());
            let spread = 0.2 * random();
            (link as f64, y, (y * (1.0 - spread), y * (1.0 + spread)))
        });
        figure.series.push(palette.series(name, Style::Bars, points));
    }
    figure
}

fn queue(palette: &mut Palette) -> Figure {
    let x = Axis::linear("Time").format(Format::Time);
    let y = Axis::linear("Queue length").format(Format::Bytes);
    let mut figure = Figure::new("queue", "Queue of the last hop during an incast", x, y);
    figure.subtitle = "63 senders to one; a sample every 200 ns; made-up data".into();
    for (rank, name) in ["BFC", "DCQCN", "HPCC"].iter().enumerate() {
        let mut random = noise(rank as u64 + 7);
        let mut depth: f64 = 0.0;
        let points = (0..20_000).map(|sample| {
            let time = f64::from(sample) * 2e-7;
            let push = [4e4, 9e5, 2.2e5][rank] * if (5e-4..1.6e-3).contains(&time) { 1.0 } else { 0.12 };
            depth += (push * (0.6 + 0.8 * random()) - depth) * 0.02;
            (time, (depth * (0.7 + 0.6 * random())).max(0.0))
        });
        figure.series.push(palette.series(name, Style::Line, points));
    }
    figure.marks.push(Mark::y(5e5, "PFC threshold"));
    figure.marks.push(Mark::x(5e-4, "incast begins"));
    figure
}

fn sweep(palette: &mut Palette) -> Figure {
    let x = Axis::linear("Incast degree").unit("senders");
    let y = Axis::linear("Utilisation of the bottleneck").format(Format::Percent).range(0.0, 1.05);
    let mut figure = Figure::new("sweep", "Utilisation against the size of the incast", x, y);
    figure.subtitle = "4 long flows per receiver, 20 MB every 500 µs; bands are 95% intervals; made-up data".into();
    for (rank, name) in ["BFC", "DCQCN+Win", "HPCC"].iter().enumerate() {
        let points = [10.0, 50.0, 100.0, 200.0, 400.0, 600.0, 800.0].map(|degree: f64| {
            let y = [0.985, 0.97 - 0.27 * (degree / 200.0).min(1.4), 0.95 - degree * 2.2e-4][rank];
            let spread = 0.01 + 0.04 * degree / 800.0;
            Point { x: degree, y, interval: Some((y - spread, (y + spread).min(1.0))) }
        });
        figure.series.push(palette.series(name, Style::LineMarkers, points));
    }
    figure.marks.push(Mark::y(0.7, "paper: 70% at 200 senders"));
    figure
}

fn ranking(palette: &mut Palette) -> Figure {
    let x = Axis::categories("", SCHEMES);
    let mut figure = Figure::new("ranking", "Mean slowdown", x, Axis::linear("Mean slowdown"));
    figure.subtitle = "A bar for each scheme; made-up data".into();
    for (at, y) in [1.42, 1.33, 8.9, 5.2, 2.4, 2.75].into_iter().enumerate() {
        figure.series.push(palette.series(SCHEMES[at], Style::Bars, [(at as f64, y, (y * 0.93, y * 1.08))]));
    }
    figure
}

fn scatter(palette: &mut Palette) -> Figure {
    let x = Axis::log("Flow size").format(Format::Bytes);
    let y = Axis::log("Completion time").format(Format::Time);
    let mut figure = Figure::new("scatter", "Every flow", x, y);
    figure.subtitle = "6000 flows of each scheme; made-up data".into();
    for (rank, name) in ["BFC", "DCQCN"].iter().enumerate() {
        let mut random = noise(rank as u64 + 77);
        let points: Vec<(f64, f64)> = (0..6000)
            .map(|_| {
                let size = 10f64.powf(2.0 + 5.0 * random() * random());
                (size, (4e-6 + size * 8e-11) * (1.0 + [1.0, 30.0][rank] * random().powi(4)))
            })
            .collect();
        figure.series.push(palette.series(name, Style::Markers, points));
    }
    figure
}

fn nothing(palette: &mut Palette) -> Figure {
    let mut figure = Figure::new(
        "nothing",
        "A run in which no flow finished",
        Axis::linear("Time").format(Format::Time),
        Axis::log("Slowdown"),
    );
    figure.series.push(palette.series("BFC", Style::Line, [(0.0, f64::NAN)]));
    figure.series.push(palette.series("HPCC", Style::Line, [(0.0, 0.0), (1.0, 0.0)]));
    figure
}

fn awkward(palette: &mut Palette) -> Figure {
    let names = (0..14).map(|at| format!("a rather long category, number {at}"));
    let x = Axis::categories(
        "Names <that> do not & cannot fit beside each other, and a label that is itself too long for one line",
        names,
    );
    let y = Axis::log("Something measured over a very long time with a very long name").unit("packets per second");
    let title = "A title that goes on and on, past the end of the line, because it has the whole setting of the experiment in it";
    let mut figure = Figure::new("awkward", title, x, y);
    for slot in 0..11 {
        let name = format!("scheme number {slot} with options <{}>", "x".repeat(slot));
        let points = (0..14).map(|at| (f64::from(at), 10f64.powf(f64::from(at) / 2.0 + slot as f64 / 3.0 - 2.0)));
        figure.series.push(palette.series(&name, Style::LineMarkers, points));
    }
    figure.marks.push(Mark::y(
        1e4,
        "the value in the paper, which they say is a conservative estimate of what the hardware would do",
    ));
    figure
}

fn panels(palette: &mut Palette) -> Sheet {
    let mut figures = vec![slowdown(palette, 1.0), slowdown(palette, 1.6), occupancy(palette)];
    for (figure, title) in figures.iter_mut().zip(["Google RPC", "FB Hadoop", "Buffers with Google RPC"]) {
        figure.title = title.into();
        figure.subtitle = String::new();
    }
    Sheet {
        id: "panels".into(),
        title: "Tail slowdown and buffers".into(),
        subtitle: "60% load + 5% incast; made-up data".into(),
        caption: "The shape of a paper's figure.".into(),
        figures,
        columns: 0,
    }
}
