//! What drawings promise: everything that should be read is there, inside, apart, and the same every time.

use proptest::prelude::*;
use report::fabric::{Load, MAX_HOSTS, Node, Picture, Wait};
use report::{Axis, Figure, Format, Mark, Palette, Point, Sheet, Style};
use roxmltree::{Document, Node as Element};
use ttf_parser::Face;

/// The smallest figure that has a bit of everything.
fn small() -> Figure {
    let mut palette = Palette::new(["BFC", "DCQCN"]);
    let x = Axis::categories("Flow size", ["≤1 KB", "≤10 KB", "≤100 KB"]);
    let mut figure = Figure::new("small", "Tail slowdown", x, Axis::log("p99 slowdown"));
    figure.subtitle = "Google RPC, 60% load".into();
    figure.caption = "Lower is better.".into();
    let points = [(0.0, 1.9, (1.8, 2.1)), (1.0, 2.2, (2.0, 2.4)), (2.0, 4.1, (3.7, 4.6))];
    figure.series.push(palette.series("BFC", Style::LineMarkers, points));
    figure.series.push(palette.series("DCQCN", Style::LineMarkers, [(0.0, 22.0), (1.0, f64::NAN), (2.0, 9.7)]));
    figure.marks.push(Mark::y(3.0, "paper"));
    figure
}

fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name("text"));
    texts.map(|node| node.text().unwrap_or("").to_string()).collect()
}

/// A box around something.
#[derive(Clone, Copy, Debug)]
struct Area {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

fn number(node: &Element, name: &str) -> f64 {
    node.attribute(name).unwrap_or("0").parse().unwrap()
}

/// The numbers in the brackets of a transform of this kind.
fn transform(node: &Element, kind: &str) -> Option<Vec<f64>> {
    let inside = node.attribute("transform")?.strip_prefix(kind)?.strip_prefix('(')?.strip_suffix(')')?;
    Some(inside.split(' ').map(|number| number.parse().unwrap()).collect())
}

/// The box around a text: from the font's ascent to its descent, as wide as its letters, held and turned as it says.
fn area(node: &Element, faces: &[Face; 2]) -> (Area, bool) {
    let bold = node.attribute("font-weight") == Some("bold");
    let face = &faces[usize::from(bold)];
    let em = number(node, "font-size") / f64::from(face.units_per_em());
    let advance = |c| f64::from(face.glyph_hor_advance(face.glyph_index(c).unwrap_or_default()).unwrap());
    let wide = node.text().unwrap_or("").chars().map(advance).sum::<f64>() * em;
    let from = match node.attribute("text-anchor") {
        Some("middle") => -wide / 2.0,
        Some("end") => -wide,
        _ => 0.0,
    };
    let (x, y) = (number(node, "x"), number(node, "y"));
    let turn = transform(node, "rotate").map_or(0.0, |turn| {
        assert_eq!(turn[1..], [x, y], "around the place where it is held");
        turn[0]
    });
    let (sin, cos) = turn.to_radians().sin_cos();
    let (up, down) = (f64::from(face.ascender()) * em, f64::from(-face.descender()) * em);
    let corners = [(from, -up), (from + wide, -up), (from, down), (from + wide, down)]
        .map(|(dx, dy)| (x + dx * cos - dy * sin, y + dx * sin + dy * cos));
    let ends = |of: fn(&(f64, f64)) -> f64| {
        let values = corners.iter().map(of);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let ((left, right), (top, bottom)) = (ends(|corner| corner.0), ends(|corner| corner.1));
    (Area { left, top, right, bottom }, turn % 90.0 == 0.0)
}

/// The size of a drawing, the boxes around all its texts, and whether each is upright or level (rather than slanted).
fn boxes(svg: &str) -> (Area, Vec<(String, Area, bool)>) {
    fn walk(node: Element, (x, y): (f64, f64), faces: &[Face; 2], found: &mut Vec<(String, Area, bool)>) {
        for child in node.children().filter(Element::is_element) {
            match child.tag_name().name() {
                "g" => {
                    let shift = transform(&child, "translate").unwrap();
                    walk(child, (x + shift[0], y + shift[1]), faces, found);
                }
                "svg" => walk(child, (x, y), faces, found),
                "text" => {
                    let (area, square) = area(&child, faces);
                    let Area { left, top, right, bottom } = area;
                    let moved = Area { left: left + x, top: top + y, right: right + x, bottom: bottom + y };
                    found.push((child.text().unwrap_or("").to_string(), moved, square));
                }
                _ => {}
            }
        }
    }
    let document = Document::parse(svg).unwrap();
    let faces = [dejavu::sans::regular(), dejavu::sans::bold()].map(|data| Face::parse(data, 0).unwrap());
    let mut found = Vec::new();
    let root = document.root_element();
    walk(root, (0.0, 0.0), &faces, &mut found);
    (Area { left: 0.0, top: 0.0, right: number(&root, "width"), bottom: number(&root, "height") }, found)
}

/// Every text lies in the drawing and on no other.
fn assert_legible(svg: &str) {
    let (drawing, boxes) = boxes(svg);
    for (at, (text, inner, square)) in boxes.iter().enumerate() {
        assert!(
            inner.left > -0.5
                && inner.top > -0.5
                && inner.right < drawing.right + 0.5
                && inner.bottom < drawing.bottom + 0.5,
            "“{text}” at {inner:?} leaves the drawing {drawing:?}"
        );
        for (other_text, other, other_square) in &boxes[..at] {
            let apart = inner.left > other.right - 0.5
                || other.left > inner.right - 0.5
                || inner.top > other.bottom - 0.5
                || other.top > inner.bottom - 0.5;
            assert!(apart || !square || !other_square, "“{text}” at {inner:?} lies on “{other_text}” at {other:?}");
        }
    }
}

#[test]
fn a_drawing_shows_title_labels_units_ticks_legend_and_marks() {
    let mut figure = small();
    figure.y = Axis::linear("Queue").format(Format::Bytes);
    for series in &mut figure.series {
        series.points.iter_mut().for_each(|point| {
            point.y *= 1000.0;
            point.interval = None;
        });
    }
    figure.marks[0].at = 12_000.0;
    let texts = texts(&figure.svg());
    for text in
        ["Tail slowdown", "Google RPC, 60% load", "Flow size", "Queue (KB)", "≤10 KB", "10", "BFC", "DCQCN", "paper"]
    {
        assert!(texts.iter().any(|known| known == text), "{text} in {texts:?}");
    }
}

#[test]
fn a_drawing_has_a_marker_for_every_point_and_a_whisker_for_every_interval() {
    let svg = small().svg();
    let document = Document::parse(&svg).unwrap();
    let paths: Vec<_> = document.descendants().filter(|node| node.has_tag_name("path")).collect();
    let markers = paths.iter().filter(|path| path.attribute("stroke") == Some("#ffffff")).count();
    assert_eq!(markers, 3 + 2 + 2, "five points and two legend samples");
    let whiskers = paths.iter().filter(|path| path.attribute("stroke-width") == Some("1.3"));
    assert_eq!(whiskers.map(|path| path.attribute("d").unwrap().matches('V').count()).sum::<usize>(), 3);
}

#[test]
fn a_gap_breaks_the_line() {
    let svg = small().svg();
    let document = Document::parse(&svg).unwrap();
    let dashed = document.descendants().find(|node| node.attribute("stroke-dasharray") == Some("7 3")).unwrap();
    assert_eq!(dashed.attribute("d").unwrap().matches('M').count(), 2);
}

#[test]
fn the_same_figure_is_the_same_bytes() {
    // To renew after a change of looks: write `small().svg()` to the file, and look at it.
    assert_eq!(small().svg(), include_str!("small.svg"));
}

#[test]
fn a_name_looks_the_same_in_every_figure_of_a_palette() {
    let mut palette = Palette::new(["BFC", "DCQCN", "HPCC"]);
    let mut figure = Figure::new("f", "F", Axis::linear("x"), Axis::linear("y"));
    figure.series.push(palette.series("HPCC", Style::Line, [(0.0, 1.0), (1.0, 2.0)]));
    let svg = figure.svg();
    assert!(svg.contains("#009e73") && svg.contains("2 2.5"), "the third colour and dash");
    assert!(!svg.contains("#0072b2"));
}

#[test]
fn markup_in_names_is_only_text() {
    let mut figure = small();
    figure.title = "a<script>alert(1)</script> & \"b\" \u{0}\u{1b}[31m".into();
    figure.series[0].name = "</text><!-- ]]>".into();
    let svg = figure.svg();
    let texts = texts(&svg);
    assert!(texts.iter().any(|text| text == "</text><!-- ]]>"), "{texts:?}");
    assert!(texts[0].starts_with("a<script>"));
    assert!(!svg.contains("<script"));
}

#[test]
fn a_figure_without_data_says_so() {
    let mut palette = Palette::default();
    let mut figure = Figure::new("f", "F", Axis::linear("x"), Axis::log("y"));
    assert!(texts(&figure.svg()).contains(&"no data".to_string()));
    figure.series.push(palette.series("BFC", Style::Line, [(0.0, 0.0)]));
    figure.marks.push(Mark::y(1.0, "paper"));
    let texts = texts(&figure.svg());
    assert!(texts.contains(&"BFC (no data)".to_string()));
    assert!(texts.iter().any(|text| text.starts_with("1 point is not drawn")));
    assert_legible(&figure.svg());
}

#[test]
fn bars_stand_beside_each_other_and_on_zero() {
    let mut palette = Palette::default();
    let mut figure = Figure::new("f", "F", Axis::categories("", ["a", "b"]), Axis::linear("y"));
    figure.series.push(palette.series("one", Style::Bars, [(0.0, 10.0), (1.0, 9.0)]));
    figure.series.push(palette.series("two", Style::Bars, [(0.0, 9.5), (1.0, 0.0)]));
    let svg = figure.svg();
    let document = Document::parse(&svg).unwrap();
    let mut bars: Vec<[f64; 4]> = document
        .descendants()
        .filter(|node| node.has_tag_name("rect") && node.parent().is_some_and(|parent| parent.has_tag_name("svg")))
        .skip(1) // the background
        .map(|node| ["x", "y", "width", "height"].map(|name| number(&node, name)))
        .collect();
    assert_eq!(bars.len(), 4);
    bars.sort_by(|a, b| a[0].total_cmp(&b[0]));
    for pair in bars.windows(2) {
        assert!(pair[0][0] + pair[0][2] <= pair[1][0], "{pair:?}");
        assert!((pair[0][1] + pair[0][3] - pair[1][1] - pair[1][3]).abs() < 0.05, "{pair:?}");
    }
    assert!((bars[0][3] / bars[1][3] - 10.0 / 9.5).abs() < 0.01);
    assert_eq!(bars[3][3], 1.0, "nothing is a hairline");
}

#[test]
fn a_long_series_keeps_its_shape_in_few_points() {
    let mut palette = Palette::default();
    let mut figure = Figure::new("f", "F", Axis::linear("x"), Axis::linear("y"));
    let spike = |i: i32| if i == 61_803 { 1000.0 } else { f64::from(i % 10) };
    figure.series.push(palette.series("one", Style::Line, (0..100_000).map(|i| (f64::from(i), spike(i)))));
    let svg = figure.svg();
    assert!(svg.len() < 60_000, "{}", svg.len());
    let document = Document::parse(&svg).unwrap();
    let line = document.descendants().find(|node| node.attribute("stroke-width") == Some("1.2")).unwrap();
    let heights =
        line.attribute("d").unwrap().split(['M', 'L']).filter_map(|place| place.split(' ').nth(1)?.parse::<f64>().ok());
    assert_eq!(heights.fold(f64::INFINITY, f64::min), 0.0, "the spike reaches the top");
}

#[test]
fn panels_line_up_and_share_a_legend() {
    let mut second = small();
    second.title = "Another".into();
    second.y = Axis::linear("A label that has more than one line because it is long").unit("things");
    let sheet = Sheet { title: "Both".into(), figures: vec![small(), second], ..Default::default() };
    let svg = sheet.svg();
    let texts = texts(&svg);
    assert!(texts.contains(&"(a) Tail slowdown".to_string()) && texts.contains(&"(b) Another".to_string()));
    assert_eq!(texts.iter().filter(|text| *text == "BFC").count(), 1);
    let document = Document::parse(&svg).unwrap();
    let plots = document.descendants().filter(|node| node.has_tag_name("svg") && node.has_attribute("x"));
    let tops: Vec<&str> = plots.filter_map(|plot| plot.parent()?.attribute("transform")?.split(' ').nth(1)).collect();
    assert_eq!(tops.len(), 2);
    assert_eq!(tops[0], tops[1]);
    assert_legible(&svg);
}

#[test]
fn an_image_of_a_figure_has_twice_its_size_and_its_colours() {
    let drawing = small().drawing();
    let (size, texts) = boxes(&drawing.svg());
    let image = tiny_skia::Pixmap::decode_png(&drawing.png().unwrap()).unwrap();
    assert_eq!((f64::from(image.width()), f64::from(image.height())), (2.0 * size.right, 2.0 * size.bottom));
    let has = |rgb: (u8, u8, u8)| image.pixels().iter().any(|p| (p.red(), p.green(), p.blue()) == rgb);
    assert!(has((0x00, 0x72, 0xb2)) && has((0xd5, 0x5e, 0x00)), "both lines");
    for (text, area, _) in texts {
        let (columns, rows) = ((area.left * 2.0) as u32..(area.right * 2.0) as u32, (area.top * 2.0) as u32..);
        let rows = rows.take(((area.bottom - area.top) * 2.0) as usize);
        let dark = |(x, y): (u32, u32)| image.pixel(x, y).is_some_and(|p| p.red() < 120 && p.blue() < 120);
        let inked = rows.flat_map(|y| columns.clone().map(move |x| (x, y))).filter(|&at| dark(at)).count();
        assert!(
            inked > 10 * text.chars().filter(|c| c.is_alphanumeric()).count(),
            "“{text}” is painted where it is said"
        );
    }
}

/// Figures of every style with awkward texts and numbers.
fn any_figure() -> impl Strategy<Value = Figure> {
    let text = "[ -~µ→≤]{0,60}";
    let number = prop_oneof![
        8 => (-1.0..1.0f64, -9..9i32).prop_map(|(m, e)| m * format!("1e{e}").parse::<f64>().unwrap()),
        1 => Just(0.0),
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
    ];
    let style = prop_oneof![
        Just(Style::Line),
        Just(Style::LineMarkers),
        Just(Style::Step),
        Just(Style::Bars),
        Just(Style::Markers)
    ];
    let point = (number.clone(), number.clone(), proptest::option::of(number));
    let series = ("[ -~µ→≤]{1,40}", style, proptest::collection::vec(point, 0..12));
    let axis = (text, 0..3usize, 0..5usize, proptest::collection::vec("[ -~µ→≤]{1,30}", 1..12)).prop_map(
        |(label, scale, format, names)| {
            let axis = match scale {
                0 => Axis::linear(label),
                1 => Axis::log(label),
                _ => Axis::categories(label, names),
            };
            axis.format([Format::Plain, Format::Bytes, Format::Time, Format::Rate, Format::Percent][format])
        },
    );
    (text, text, axis.clone(), axis, proptest::collection::vec(series, 0..7)).prop_map(
        |(title, subtitle, x, y, list)| {
            let mut palette = Palette::default();
            let mut figure = Figure::new("any", title, x, y);
            figure.subtitle = subtitle;
            let named = matches!(figure.x.scale, report::Scale::Categories(_));
            for (name, style, points) in list {
                let points = points.into_iter().enumerate().map(|(at, (x, y, high))| report::Point {
                    x: if named { at as f64 } else { x },
                    y,
                    interval: high.map(|high| (y, high)),
                });
                figure.series.push(palette.series(&name, style, points));
            }
            figure
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn nothing_that_is_written_is_cut_off_or_covered(figure in any_figure()) {
        assert_legible(&figure.svg());
    }

    #[test]
    fn coordinates_are_finite_whatever_the_data(mut figure in any_figure(), at in any::<f64>()) {
        figure.marks = vec![Mark::x(at, "across"), Mark::y(at, "along"), Mark::y(0.0, "a very long label ".repeat(9))];
        let svg = figure.svg();
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{svg}");
    }
}

/// Hosts on leaves, leaves on spines.
fn clos(leaves: u32, hosts: u32, spines: u32) -> Picture {
    let mut picture = Picture::new("clos", "A Clos");
    let mut add = |prefix: &str, count: u32, host: bool| {
        (0..count).for_each(|i| picture.nodes.push(Node { name: format!("{prefix}{i}"), host, peak: None }));
    };
    add("h", leaves * hosts, true);
    add("leaf", leaves, false);
    add("spine", spines, false);
    let first = leaves * hosts;
    (0..first).for_each(|h| picture.links.push((h, first + h / hosts)));
    for leaf in 0..leaves {
        (0..spines).for_each(|spine| picture.links.push((first + leaf, first + leaves + spine)));
    }
    picture
}

/// Switches in a ring, with hosts on each.
fn ring(switches: u32, hosts: u32) -> Picture {
    let mut picture = Picture::new("ring", "A ring");
    let first = switches * hosts;
    (0..first).for_each(|i| picture.nodes.push(Node { name: format!("h{i}"), host: true, peak: None }));
    (0..switches).for_each(|i| picture.nodes.push(Node { name: format!("s{i}"), host: false, peak: None }));
    (0..first).for_each(|h| picture.links.push((h, first + h / hosts)));
    (0..switches).for_each(|i| picture.links.push((first + i, first + (i + 1) % switches)));
    let wait = |i: u32| Wait { from: first + i, to: first + (i + 1) % switches, label: format!("h{i} to h0") };
    picture.cycle = (0..switches).map(wait).collect();
    picture
}

/// Where a name stands.
fn spot(svg: &str, name: &str) -> (f64, f64) {
    let (_, boxes) = boxes(svg);
    let (_, at, _) = boxes.iter().find(|(text, ..)| text == name).unwrap_or_else(|| panic!("no {name}"));
    ((at.left + at.right) / 2.0, (at.top + at.bottom) / 2.0)
}

#[test]
fn tiers_are_rows_with_the_hosts_below() {
    let drawing = clos(4, 4, 2).drawing();
    let svg = drawing.svg();
    assert_legible(&svg);
    for pair in [("h0", "leaf0"), ("h15", "leaf3"), ("leaf0", "spine0"), ("leaf3", "spine1")] {
        assert!(spot(&svg, pair.0).1 > spot(&svg, pair.1).1 + 50.0, "{pair:?}");
    }
    assert!(spot(&svg, "h0").0 < spot(&svg, "h1").0 && (spot(&svg, "h0").1 - spot(&svg, "h15").1).abs() < 1.0);
    assert!(drawing.png().unwrap().starts_with(b"\x89PNG"));
    assert_eq!(svg, clos(4, 4, 2).svg());
}

#[test]
fn the_levels_of_a_bcube_are_rows() {
    // BCube(3, 1): every host on a switch of each level, no switch on another.
    let mut picture = Picture::new("bcube", "BCube(3, 1)");
    (0..9).for_each(|i| picture.nodes.push(Node { name: format!("h{i}"), host: true, peak: None }));
    for level in 0..2 {
        (0..3).for_each(|i| picture.nodes.push(Node { name: format!("l{level}s{i}"), host: false, peak: None }));
    }
    (0..9).for_each(|h| picture.links.extend([(h, 9 + h / 3), (h, 12 + h % 3)]));
    let svg = picture.svg();
    assert_legible(&svg);
    let heights: Vec<f64> = ["h4", "l0s0", "l0s2", "l1s1", "l1s2"].map(|name| spot(&svg, name).1).into();
    assert!(heights[0] > heights[1] && heights[1] > heights[3], "{heights:?}");
    assert!((heights[1] - heights[2]).abs() < 1.0 && (heights[3] - heights[4]).abs() < 1.0, "{heights:?}");
}

#[test]
fn a_cycle_of_waits_is_numbered_on_the_picture_and_listed_below_it() {
    for switches in [3, 5, 12, 24] {
        let picture = ring(switches, 2);
        let svg = picture.svg();
        assert_legible(&svg);
        let texts = texts(&svg);
        for place in 1..=switches {
            assert!(texts.contains(&place.to_string()), "{switches}: no {place}");
        }
        assert!(texts.iter().any(|text| text == "1. s0 → s1 (h0 to h0) waits for 2"), "{texts:?}");
        let last = switches - 1;
        assert!(texts.iter().any(|text| *text == format!("{switches}. s{last} → s0 (h{last} to h0) waits for 1")));
    }
}

#[test]
fn a_congestion_tree_has_a_legend_for_what_is_on_it() {
    let mut picture = clos(2, 3, 2);
    assert!(!texts(&picture.svg()).iter().any(|text| text.contains("paused") || text.contains("carried")));
    picture.loads.push(Load { from: 0, to: 6, paused: 0.4, used: 0.2 });
    picture.loads.push(Load { from: 6, to: 8, paused: 0.0, used: 0.9 });
    picture.nodes[6].peak = Some(1_500_000.0);
    let svg = picture.svg();
    assert_legible(&svg);
    let all = texts(&svg);
    for part in ["paused up to 1 % of the time", "more", "carried little", "all it can", "at most 1.5 MB"] {
        assert!(all.iter().any(|text| text == part), "no {part}: {all:?}");
    }
    assert!(svg.contains("#7d2604"), "the darkest, for what was paused most");
    assert!(!svg.contains("NaN"));
}

#[test]
fn a_hundred_and_twenty_eight_hosts_are_drawn_one_by_one_and_more_by_their_switch() {
    let svg = clos(8, 16, 4).svg();
    assert_legible(&svg);
    assert!(texts(&svg).contains(&"h127".to_string()));
    assert_eq!(MAX_HOSTS, 128);
    let svg = clos(16, 16, 4).svg();
    assert_legible(&svg);
    let all = texts(&svg);
    assert!(!all.contains(&"h255".to_string()));
    assert_eq!(all.iter().filter(|text| *text == "16 hosts").count(), 16);
    let drawing = clos(200, 40, 100).drawing();
    let svg = drawing.svg();
    assert_legible(&svg);
    assert!(texts(&svg).iter().any(|text| text == "leaf0–3"), "{:?}", texts(&svg));
    assert!(drawing.png().is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_graph_can_be_drawn(
        count in 1u32..40,
        hosts in 0u32..40,
        links in prop::collection::vec((0u32..40, 0u32..40), 0..120),
        shares in prop::collection::vec(0.0f64..=1.0, 120),
    ) {
        let mut picture = Picture::new("any", "Any <graph> & more");
        (0..count).for_each(|i| picture.nodes.push(Node { name: format!("n{i}"), host: i < hosts, peak: Some(f64::from(i)) }));
        picture.links = links.into_iter().filter(|(a, b)| a != b && *a < count && *b < count).collect();
        let load = |((a, b), share): (&(u32, u32), &f64)| Load { from: *a, to: *b, paused: *share, used: 1.0 - share };
        picture.loads = picture.links.iter().zip(&shares).map(load).collect();
        picture.cycle = picture.links.iter().take(5).map(|&(from, to)| Wait { from, to, label: String::new() }).collect();
        let svg = picture.svg();
        prop_assert!(Document::parse(&svg).is_ok());
        prop_assert!(!svg.contains("NaN") && !svg.contains("inf"));
        prop_assert_eq!(svg, picture.svg());
    }
}

#[test]
fn names_without_room_have_rows_and_a_bar_beyond_all_others_does_not_flatten_them() {
    let names: Vec<String> = (0..30).map(|at| format!("scheme-{at}+win")).collect();
    let mut figure = Figure::new("many", "Many", Axis::categories("scheme", names.clone()), Axis::linear("time"));
    let value = |at: usize| if at == 7 { 1234.0 } else { 10.0 + at as f64 };
    let mut palette = Palette::default();
    figure.series.push(palette.series("time", Style::Bars, (0..30).map(|at| (at as f64, value(at)))));
    let svg = figure.svg();
    assert_legible(&svg);
    for name in &names {
        assert!(svg.contains(&format!(">{name}</text>")), "{name}");
    }
    assert!(!svg.contains("rotate(-35") && svg.contains(">1234</text>") && svg.contains("A bar with a gap goes on"));
    // The others are longer than half of the plot.
    assert!(svg.contains(">40</text>") && !svg.contains(">1000</text>"), "the axis ends after the others");
    // Few names stay below bars, and bars of one size have no gap.
    figure.x = Axis::categories("scheme", ["a", "b", "c", "d", "e"]);
    figure.series[0].points = (0..5).map(|at| Point::from((at as f64, if at == 2 { 900.0 } else { 9.0 }))).collect();
    assert!(figure.svg().contains(">900</text>"));
    figure.series[0].points.iter_mut().for_each(|point| point.y = 9.0);
    assert!(!figure.svg().contains("goes on"));
}
