//! Figures for a browser: the same data and the same axes, for the script that comes with the page.
//!
//! Colours are left to the page, which knows whether it is light or dark; a series carries its slot instead. So are ticks, which
//! follow a zoom.

use crate::drawing::dashes;
use crate::figure::{Axis, CLOUD, Figure, Mark, Point, Scale, Series, Style, thin, thin_markers};
use crate::format::{Format, significant};
use crate::palette::{dash, marker, variable};
use crate::scale::{Room, Ruler};
use serde_json::{Value, json};

/// Stripes that a long series is thinned to: more than a screen has, so that zooming in shows something.
const COLUMNS: f64 = 1_500.0;

/// Axes, series and marks. Values are in the units of their axes.
pub(crate) fn plot(figure: &Figure) -> Value {
    let data = figure.drawable();
    let has = |style| figure.series.iter().any(|series| series.style == style);
    let (bars, markers) = (has(Style::Bars), has(Style::Markers) || has(Style::Stated) || has(Style::LineMarkers));
    let x = Ruler::new(&data.x, data.x_bounds, &Room { length: 600.0, level: true, zero: false, air: markers });
    let y = Ruler::new(&data.y, data.y_bounds, &Room { length: 300.0, level: false, zero: bars, air: false });
    let named = matches!(data.x.scale, Scale::Categories(_));
    let empty = data.x_bounds.is_none();
    let plot = Plot { x, y, named };
    let series = figure.series.iter().zip(&data.runs).map(|(series, runs)| plot.series(series, runs));
    let marks = figure.marks.iter().filter(|mark| mark.at.is_finite() && !empty);
    json!({
        "x": axis(&data.x, &plot.x),
        "y": axis(&data.y, &plot.y),
        "empty": empty,
        "alone": figure.bars_stand_alone(),
        "apart": figure.dodges(&data.x),
        "dots": figure.has_dots(),
        "turns": named && figure.can_turn(),
        "single": figure.stands_alone(),
        "cut": data.cut,
        "series": series.collect::<Vec<_>>(),
        "marks": marks.map(|mark| plot.mark(mark)).collect::<Vec<_>>(),
    })
}

/// An axis: its ends, and what the page needs to put its values into words.
fn axis(axis: &Axis, ruler: &Ruler) -> Value {
    let ends = [ruler.low, ruler.high].map(|end| if ruler.log { end } else { end / ruler.divisor });
    let mut out = json!({"label": ruler.label, "log": ruler.log, "range": ends, "divisor": ruler.divisor});
    match axis.format.base() {
        Some((base, low, high)) => {
            out["base"] = json!(base);
            out["powers"] = json!([low, high]);
        }
        None if axis.format == Format::Percent => out["percent"] = json!(true),
        None if axis.format == Format::Count => out["count"] = json!(true),
        None => out["unit"] = json!(axis.unit),
    }
    if let Scale::Categories(names) = &axis.scale {
        out["names"] = json!(names);
    }
    out
}

/// The axes of a figure.
struct Plot {
    x: Ruler,
    y: Ruler,
    /// Whether the horizontal axis has names.
    named: bool,
}

impl Plot {
    /// A place as the horizontal axis has it: finely enough to zoom.
    fn across(&self, x: f64) -> f64 {
        significant(if self.x.log { x } else { x / self.x.divisor }, 9)
    }

    /// A value as the vertical axis has it. What has no place on a logarithmic one is far below.
    fn up(&self, y: f64) -> f64 {
        significant(if self.y.log { y.max(self.y.low / 1e3) } else { y / self.y.divisor }, 6)
    }

    fn mark(&self, mark: &Mark) -> Value {
        let at = if mark.upright { self.across(mark.at) } else { self.up(mark.at) };
        json!({"upright": mark.upright, "at": at, "label": mark.label})
    }

    fn series(&self, series: &Series, runs: &[Vec<Point>]) -> Value {
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
        let kind = match series.style {
            Style::Bars => "bars",
            Style::Step => "step",
            Style::Markers | Style::Stated if series.points.len() > CLOUD => "cloud",
            Style::Markers | Style::Stated => "markers",
            Style::Line | Style::LineMarkers => "line",
        };
        let mut out = json!({
            "name": series.name,
            "slot": series.slot,
            "colour": format!("var({})", variable(series.slot)),
            "kind": kind,
            "x": over(&|point| json!(self.across(point.x))),
            "y": over(&|point| json!(self.up(point.y))),
        });
        if matches!(kind, "line" | "step") {
            out["thin"] = json!(series.is_dense());
            out["dash"] = json!(dashes(if series.is_dense() { &[] } else { dash(series.slot) }));
        }
        if kind == "markers" || series.style == Style::LineMarkers {
            out["marker"] = json!(marker(series.slot).to_string());
            out["hollow"] = json!(series.style == Style::Stated);
        }
        if runs.iter().flatten().any(|point| point.interval.is_some()) {
            let end = |of: fn((f64, f64)) -> f64| {
                over(&|point| point.interval.map_or(Value::Null, |interval| json!(self.up(of(interval)))))
            };
            out["low"] = json!(end(|(low, _)| low));
            out["high"] = json!(end(|(_, high)| high));
            out["band"] = json!(kind != "bars" && !scatter && !self.named);
        }
        out
    }
}
