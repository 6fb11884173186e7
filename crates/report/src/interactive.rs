//! Figures for a browser: the same data and the same axes, as Plotly wants them.
//!
//! Colours are left to the page, which knows whether it is light or dark; a trace carries its slot instead.

use crate::figure::{Axis, CLOUD, Figure, Mark, Point, Scale, Series, Style, corners, thin, thin_markers};
use crate::format::{Format, significant};
use crate::palette::{dash, symbol};
use crate::scale::{Room, Ruler};
use crate::text::{shorten, wrap};
use serde_json::{Value, json};

/// Stripes that a long series is thinned to: more than a screen has, so that zooming in shows something.
const COLUMNS: f64 = 1_500.0;

/// Traces, layout, and the units of the axes. The page adds what depends on the reader: colours, and ticks that follow a zoom.
pub(crate) fn plot(figure: &Figure) -> Value {
    let data = figure.drawable();
    let has = |style| figure.series.iter().any(|series| series.style == style);
    let (bars, markers) = (has(Style::Bars), has(Style::Markers) || has(Style::Stated) || has(Style::LineMarkers));
    let x = Ruler::new(&data.x, data.x_bounds, &Room { length: 600.0, level: true, zero: false, air: markers });
    let y = Ruler::new(&data.y, data.y_bounds, &Room { length: 300.0, level: false, zero: bars, air: false });
    let named = matches!(data.x.scale, Scale::Categories(_));
    let plot = Plot { x, y, named, empty: data.x_bounds.is_none() };
    let series = figure.series.iter().zip(&data.runs);
    let marks = figure.marks.iter().filter(|mark| mark.at.is_finite() && !plot.empty);
    let note = json!({"text": "no data", "showarrow": false, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5});
    json!({
        "data": series.flat_map(|(series, runs)| plot.traces(series, runs)).collect::<Vec<_>>(),
        "layout": {
            "xaxis": plot.axis(&plot.x, named),
            "yaxis": plot.axis(&plot.y, false),
            "barmode": if figure.bars_stand_alone() { "overlay" } else { "group" },
            "bargap": if figure.bars_stand_alone() { 0.3 } else { 0.18 },
            "scattermode": if figure.dodges(&data.x) { "group" } else { "overlay" },
            "scattergap": 0.55,
            "hovermode": if named { "x unified" } else { "closest" },
            "showlegend": false,
            "uirevision": true,
            "margin": {"l": 10, "r": 14, "t": 10, "b": 10},
            "shapes": marks.map(|mark| plot.mark(mark, &data.runs)).collect::<Vec<_>>(),
            "annotations": if plot.empty { vec![note] } else { vec![] },
        },
        "units": {"xaxis": unit(&data.x, &plot.x), "yaxis": unit(&data.y, &plot.y)},
    })
}

/// What the page needs to put values of an axis into words.
fn unit(axis: &Axis, ruler: &Ruler) -> Value {
    let mut unit = json!({"label": ruler.label, "divisor": ruler.divisor});
    match axis.format.base() {
        Some((base, low, high)) => {
            unit["base"] = json!(base);
            unit["powers"] = json!([low, high]);
        }
        None if axis.format == Format::Percent => unit["percent"] = json!(true),
        None => unit["plain"] = json!(axis.unit),
    }
    if let Scale::Categories(names) = &axis.scale {
        unit["names"] = json!(names);
    }
    unit
}

/// Text for Plotly, which reads some of HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Text in lines that fit beside a plot of modest size.
fn lines(text: &str) -> String {
    wrap(text, 14.0, false, 280.0).iter().map(|line| escape(line)).collect::<Vec<_>>().join("<br>")
}

/// The axes of a figure.
struct Plot {
    x: Ruler,
    y: Ruler,
    /// Whether the horizontal axis has names.
    named: bool,
    /// Whether there is nothing to show.
    empty: bool,
}

impl Plot {
    fn axis(&self, ruler: &Ruler, named: bool) -> Value {
        let end = |value: f64| if ruler.log { libm::log10(value) } else { value / ruler.divisor };
        let mut axis = json!({
            "title": {"text": lines(&ruler.label), "standoff": 8},
            "type": if ruler.log { "log" } else { "linear" },
            "range": [end(ruler.low), end(ruler.high)],
            "automargin": true,
            "zeroline": false,
            "showline": true,
            "showgrid": !self.empty && !named,
            "showticklabels": !self.empty,
            "ticks": if self.empty { "" } else { "outside" },
            "exponentformat": "none",
        });
        if named {
            axis["tickvals"] = ruler.ticks.iter().map(|tick| tick.at).collect();
            axis["ticktext"] = ruler.ticks.iter().map(|tick| escape(&shorten(&tick.label, 13.0, 120.0))).collect();
        } else if ruler.divisor == 0.01 {
            axis["ticksuffix"] = json!("%");
        }
        axis
    }

    /// A place as the horizontal axis has it: finely enough to zoom.
    fn across(&self, x: f64) -> f64 {
        significant(if self.x.log { x } else { x / self.x.divisor }, 9)
    }

    /// A value as the vertical axis has it. What has no place on a logarithmic one is far below.
    fn up(&self, y: f64) -> f64 {
        significant(if self.y.log { y.max(self.y.low / 1e3) } else { y / self.y.divisor }, 6)
    }

    /// A reference line; its label is at the emptier end.
    fn mark(&self, mark: &Mark, runs: &[Vec<Vec<Point>>]) -> Value {
        let at = if mark.upright { self.x.place(mark.at) } else { self.y.place(mark.at) };
        let near = |point: &Point| {
            let (x, y) = (self.x.place(point.x), self.y.place(point.y));
            let (along, away) = if mark.upright { (y, x - at) } else { (x, y - at) };
            (away.abs() < 0.15 && (along - 0.5).abs() > 0.15).then_some(if along > 0.5 { 1 } else { -1 })
        };
        let crowd: i64 = runs.iter().flatten().flatten().filter_map(near).sum();
        let (end, rise) = if crowd > 0 { ("start", "bottom") } else { ("end", "top") };
        let mut label = json!({"text": lines(&mark.label), "textposition": end, "yanchor": "bottom"});
        let mut shape = json!({"type": "line", "line": {"width": 1.3, "dash": "dot"}});
        let (along, across, value) =
            if mark.upright { ("y", "x", self.across(mark.at)) } else { ("x", "y", self.up(mark.at)) };
        if mark.upright {
            label["textangle"] = json!(0);
            label["xanchor"] = json!(if at > 0.5 { "right" } else { "left" });
            label["yanchor"] = json!(rise);
        }
        shape["label"] = label;
        shape[format!("{along}ref")] = json!("paper");
        for (end, part) in [("0", 0), ("1", 1)] {
            shape[format!("{along}{end}")] = json!(part);
            shape[format!("{across}{end}")] = json!(value);
        }
        shape
    }

    /// The traces of a series: itself, and the band around it.
    fn traces(&self, series: &Series, runs: &[Vec<Point>]) -> Vec<Value> {
        let (bars, step) = (series.style == Style::Bars, series.style == Style::Step);
        let scatter = matches!(series.style, Style::Markers | Style::Stated);
        let place = |point: &Point| (self.x.place(point.x), self.y.place(point.y));
        let thinned = |run: &Vec<Point>| match series.style {
            Style::Bars => run.clone(),
            Style::Markers | Style::Stated => thin_markers(run, COLUMNS, place),
            _ => thin(run, COLUMNS, place),
        };
        let runs: Vec<Vec<Point>> = runs.iter().map(thinned).collect();
        // A gap is a null between the runs.
        let over = |value: &dyn Fn(&Point) -> Value| -> Vec<Value> {
            let runs: Vec<Vec<Value>> = runs.iter().map(|run| run.iter().map(value).collect()).collect();
            runs.join(&Value::Null)
        };
        let mut trace = json!({
            "type": if bars { "bar" } else { "scatter" },
            "name": escape(&series.name),
            "meta": {"name": series.name, "slot": series.slot},
            "x": over(&|point| json!(self.across(point.x))),
            "y": over(&|point| json!(self.up(point.y))),
        });
        if !bars {
            let dense = series.is_dense();
            let dashes: Vec<String> = dash(series.slot).split_whitespace().map(|part| format!("{part}px")).collect();
            let dashes = if dense || dashes.is_empty() { "solid".to_string() } else { dashes.join(",") };
            let shape = if step { "hv" } else { "linear" };
            trace["line"] = json!({"width": if dense { 1.3 } else { 2.0 }, "dash": dashes, "shape": shape});
            let (size, opacity) = if scatter && series.points.len() > CLOUD { (4, 0.6) } else { (8, 1.0) };
            let outline = match series.style {
                Style::Stated => format!("{}-open", symbol(series.slot)),
                _ => symbol(series.slot).into(),
            };
            trace["marker"] = json!({"symbol": outline, "size": size, "opacity": opacity});
            trace["mode"] = json!(match series.style {
                Style::LineMarkers => "lines+markers",
                Style::Markers | Style::Stated => "markers",
                _ => "lines",
            });
        }
        if runs.iter().flatten().all(|point| point.interval.is_none()) {
            return vec![trace];
        }
        let banded = !bars && !scatter && !self.named;
        let spread = |of: fn(f64, (f64, f64)) -> f64| {
            let part = |y, interval| json!(significant(of(y, interval) / self.y.divisor, 6));
            over(&|point| point.interval.map_or(Value::Null, |interval| part(point.y, interval)))
        };
        trace["error_y"] = json!({
            "visible": !banded, "type": "data", "symmetric": false, "thickness": 1.3, "width": 3,
            "array": spread(|y, (_, high)| high - y),
            "arrayminus": spread(|y, (low, _)| y - low),
        });
        if !banded {
            return vec![trace];
        }
        let edge = |run: &[Point], of: fn(&Point) -> f64| {
            corners(&run.iter().map(|point| (self.across(point.x), self.up(of(point)))).collect::<Vec<_>>(), step)
        };
        let outline = |run: &Vec<Point>| {
            let mut outline = edge(run, |point| point.interval.map_or(point.y, |(_, high)| high));
            outline.extend(edge(run, |point| point.interval.map_or(point.y, |(low, _)| low)).iter().rev());
            outline.into_iter().map(Some).chain([None])
        };
        let outline: Vec<Option<(f64, f64)>> = runs.iter().flat_map(outline).collect();
        let band = json!({
            "type": "scatter", "mode": "lines", "fill": "toself", "line": {"width": 0}, "hoverinfo": "skip",
            "name": trace["name"], "meta": trace["meta"],
            "x": outline.iter().map(|place| place.map(|place| place.0)).collect::<Vec<_>>(),
            "y": outline.iter().map(|place| place.map(|place| place.1)).collect::<Vec<_>>(),
        });
        vec![band, trace]
    }
}
