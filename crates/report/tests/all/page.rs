//! What a page promises: it is whole, it loads nothing, and what it is given to say it only says.

use report::{
    Axis, Block, Cell, Column, Figure, Format, Link, Mark, Page, Palette, Section, Sheet, Style, Table, Tone,
};

const EVIL: &str = "</script><img src=x onerror=alert(1)>&\"'";

fn figure(title: &str) -> Figure {
    let mut palette = Palette::new(["BFC", "DCQCN"]);
    let mut figure = Figure::new(
        "queue",
        title,
        Axis::linear("Time").format(Format::Time),
        Axis::log("Queue").format(Format::Bytes),
    );
    figure.series.push(palette.series(
        "BFC",
        Style::Line,
        [(0.0, 1e3, (9e2, 2e3)), (1e-3, 2e4, (1e4, 3e4)), (2e-3, 0.0, (0.0, 1.0))],
    ));
    figure.series.push(palette.series("DCQCN", Style::Step, [(0.0, 5e3), (1e-3, f64::NAN), (2e-3, 5e5)]));
    figure.marks.push(Mark::y(1e5, "limit"));
    figure
}

fn page() -> Page {
    let mut page = Page::new("Results", "What happened with `incast.toml`.");
    let mut section = Section::new("Numbers");
    section.push("A paragraph.");
    section.push(Table {
        caption: "Verdicts".into(),
        columns: vec![Column::text("Claim"), Column::number("Measured"), Column::text("Verdict")],
        rows: vec![vec![
            Cell::from("a").link("other.html"),
            Cell::from("2.5").strong(),
            Cell::badge(Tone::Good, "holds"),
        ]],
    });
    section.push(Block::Facts(vec![("Seeds".into(), "5".into())]));
    page.sections.push(section);
    let mut section = Section::new("Figures");
    section.push(figure("First"));
    section.push(Sheet {
        id: "both".into(),
        title: "Both".into(),
        figures: vec![figure("Left"), figure("Right")],
        ..Default::default()
    });
    page.sections.push(section);
    let mut section = Section::new("Figures");
    section.push(figure("Again"));
    section.push(Block::Code { title: "Command".into(), text: "tailwater run incast.toml".into() });
    section.push(Block::Links(vec![Link {
        label: "data".into(),
        target: "flows.parquet".into(),
        note: "all flows".into(),
    }]));
    page.sections.push(section);
    page
}

/// What stands between the tags of every element of a kind.
fn between<'a>(html: &'a str, open: &str, close: &str) -> Vec<&'a str> {
    html.split(open).skip(1).map(|rest| rest.split(close).next().unwrap()).collect()
}

#[test]
fn a_page_has_everything_it_was_given() {
    let html = page().html();
    for part in [
        "<title>Results</title>",
        "<h1>Results</h1>",
        "What happened with <code>incast.toml</code>.",
        "<p>A paragraph.</p>",
        "<caption>Verdicts</caption>",
        "<th scope=\"col\" class=\"number\">Measured</th>",
        "<td><a href=\"other.html\">a</a></td>",
        "<td class=\"number\"><strong>2.5</strong></td>",
        "<span class=\"badge good\">holds</span>",
        "<dt>Seeds</dt><dd>5</dd>",
        "<h4>(b) Right</h4>",
        "<pre><code>tailwater run incast.toml</code></pre>",
        "<a href=\"flows.parquet\">data</a> <span>all flows</span>",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_eq!(between(&html, "<div class=\"plot\">", "</div>").len(), 4);
    assert_eq!(between(&html, "<div class=\"paper\"><svg", "</svg>").len(), 3, "a drawing for paper of each");
}

#[test]
fn a_number_stays_with_its_unit_and_its_interval_may_stand_below() {
    let mut section = Section::new("Numbers");
    let cells = ["209 KB (98.3 KB–444 KB)", "12.8 ±0.471", "5 of 8", "–"];
    section.push(Table {
        columns: cells.map(Column::number).into(),
        rows: vec![cells.map(Cell::from).into()],
        ..Default::default()
    });
    let html = Page { sections: vec![section], ..Page::new("A table", "") }.html();
    for part in [
        "209\u{a0}KB <span class=\"spread\">(98.3\u{a0}KB–444\u{a0}KB)</span>",
        "12.8 <span class=\"spread\">±0.471</span>",
        ">5 of 8<",
        ">–<",
    ] {
        assert!(html.contains(part), "{part}");
    }
}

#[test]
fn a_page_loads_nothing_and_forbids_itself_to() {
    let html = page().html();
    assert!(html.contains("default-src 'none'"));
    for word in ["src=", "@import", "url(", "<link", "<iframe", "fetch(", "XMLHttpRequest"] {
        assert!(!html.contains(word), "{word}");
    }
    for place in html.match_indices("http").map(|(at, _)| &html[at..]) {
        assert!(place.starts_with("http://www.w3.org/2000/svg") || place.starts_with("http-equiv"), "{}", &place[..60]);
    }
    assert_eq!(html.matches("class Plot").count(), 1, "one copy of the script");
    assert!(html.len() < 100_000, "{} bytes", html.len());
}

#[test]
fn a_page_without_figures_has_no_script() {
    let mut page = Page::new("Words", "");
    let mut section = Section::new("One");
    section.push("Nothing to see.");
    page.sections.push(section);
    let html = page.html();
    assert!(!html.contains("<script"));
    assert!(html.len() < 20_000);
}

#[test]
fn what_a_page_is_given_to_say_it_only_says() {
    let mut evil = figure(EVIL);
    evil.id = EVIL.into();
    evil.subtitle = EVIL.into();
    evil.caption = EVIL.into();
    evil.x.label = EVIL.into();
    evil.series[0].name = EVIL.into();
    evil.marks[0].label = EVIL.into();
    evil.notes.push(EVIL.into());
    let mut page = Page::new(EVIL, EVIL);
    page.footer = EVIL.into();
    let mut section = Section::new(EVIL);
    section.push(EVIL);
    section.push(Table {
        caption: EVIL.into(),
        columns: vec![Column::text(EVIL)],
        rows: vec![vec![Cell::from(EVIL).link(EVIL)]],
    });
    section.push(Block::Facts(vec![(EVIL.into(), EVIL.into())]));
    section.push(Block::Code { title: EVIL.into(), text: EVIL.into() });
    section.push(Block::Links(vec![Link { label: EVIL.into(), target: EVIL.into(), note: EVIL.into() }]));
    section.push(evil);
    page.sections.push(section);
    let html = page.html();
    assert!(!html.contains("<img"));
    assert_eq!(html.matches("<script").count(), html.matches("</script>").count());
    assert!(!html.contains("=x onerror=alert(1)>&\"'"), "never as it is");
}

#[test]
fn a_link_that_would_run_something_is_only_text() {
    let mut page = Page::new("Links", "");
    let mut section = Section::new("One");
    for target in ["javascript:alert(1)", "JavaScript:alert(1)", "data:text/html,x", "vbscript:x"] {
        section.push(Block::Links(vec![Link { label: "bad".into(), target: target.into(), ..Default::default() }]));
    }
    for target in ["https://example.org/a:b", "figures/a.svg", "#top", "a.html?b=c:d"] {
        section.push(Block::Links(vec![Link { label: "good".into(), target: target.into(), ..Default::default() }]));
    }
    page.sections.push(section);
    let html = page.html();
    assert_eq!(between(&html, "<li>bad", "</li>").len(), 4);
    assert_eq!(html.matches(">good</a>").count(), 4);
}

#[test]
fn figures_and_headings_of_the_same_name_have_places_of_their_own() {
    let html = page().html();
    let mut ids = between(&html, " id=\"", "\"");
    assert!(ids.contains(&"figures") && ids.contains(&"figures-2") && ids.contains(&"queue-2"));
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn the_data_of_a_figure_is_whole_and_in_the_units_of_its_axes() {
    let html = page().html();
    let json = between(&html, "<script type=\"application/json\">", "</script>")[0];
    let plot: serde_json::Value = serde_json::from_str(json).unwrap();
    let [band, step] = plot["series"].as_array().unwrap().as_slice() else { panic!("{plot}") };
    assert_eq!(band["x"], serde_json::json!([0.0, 1.0]), "milliseconds, without the 0 that has no place");
    assert_eq!(band["y"], serde_json::json!([1000.0, 20000.0]), "bytes");
    assert_eq!(band["low"], serde_json::json!([900.0, 10000.0]));
    assert_eq!(band["high"], serde_json::json!([2000.0, 30000.0]));
    assert_eq!((&band["kind"], &band["band"]), (&"line".into(), &true.into()));
    assert_eq!(step["y"], serde_json::json!([5000.0, null, 500000.0]), "a gap");
    assert_eq!(step["kind"], "step");
    assert_eq!((&plot["x"]["label"], &plot["x"]["log"]), (&"Time (ms)".into(), &false.into()));
    assert_eq!(plot["y"]["log"], true);
    assert_eq!(plot["marks"][0], serde_json::json!({"upright": false, "at": 100000.0, "label": "limit"}));
}

#[test]
fn switches_are_offered_for_names_that_figures_share() {
    let html = page().html();
    let bar = between(&html, "<div class=\"switches\"", "</div>")[0];
    assert!(bar.contains("data-name=\"BFC\"") && bar.contains("data-name=\"DCQCN\""));
    let mut page = page();
    page.sections.truncate(1);
    let mut section = Section::new("One");
    section.push(figure("Alone"));
    page.sections.push(section);
    assert!(!page.html().contains("<div class=\"switches\""));
}

#[test]
fn the_same_page_is_the_same_bytes() {
    assert_eq!(page().html(), page().html());
}
