//! What a figure says, apart from how it is drawn.

use crate::format::{Format, log_span};
use std::collections::BTreeSet;

/// One plot: axes, series and reference marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figure {
    /// Names the figure's files and its place on a page; letters, digits and dashes.
    pub id: String,
    /// What is seen, in a few words.
    pub title: String,
    /// The setting, in a line: `Google RPC, 60% load, 5% incast`.
    pub subtitle: String,
    /// What to notice; written below the figure on a page.
    pub caption: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis; never categories, which are read as linear.
    pub y: Axis,
    /// The data, drawn and listed in this order.
    pub series: Vec<Series>,
    /// Reference lines.
    pub marks: Vec<Mark>,
    /// Small print below the figure. What could not be drawn is added by itself.
    pub notes: Vec<String>,
}

impl Figure {
    /// A figure without data yet.
    pub fn new(id: impl Into<String>, title: impl Into<String>, x: Axis, y: Axis) -> Figure {
        Figure { id: id.into(), title: title.into(), x, y, ..Default::default() }
    }
}

/// Several figures side by side, (a), (b), (c), with one legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sheet {
    /// Names the sheet's files and its place on a page.
    pub id: String,
    /// What the figures have in common.
    pub title: String,
    /// The setting, in a line.
    pub subtitle: String,
    /// What to notice.
    pub caption: String,
    /// The panels, in reading order; their titles follow (a), (b), (c).
    pub figures: Vec<Figure>,
    /// Panels to a row; 0 for as many as three.
    pub columns: usize,
}

/// An axis: its name, its scale and how its numbers are written.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What is measured, without the unit.
    pub label: String,
    /// The unit of [`Format::Plain`] numbers; the other formats bring their own.
    pub unit: Option<String>,
    /// How values become places.
    pub scale: Scale,
    /// The ends of the axis; chosen from the data if absent.
    pub range: Option<(f64, f64)>,
    /// How numbers are written.
    pub format: Format,
}

/// How values become places along an axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Scale {
    /// In proportion.
    #[default]
    Linear,
    /// In proportion to the logarithm; values of 0 or less have no place.
    Log,
    /// Names in a row: the value 0 is the first.
    Categories(Vec<String>),
}

impl Axis {
    /// A linear axis of plain numbers.
    pub fn linear(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), ..Default::default() }
    }

    /// A logarithmic axis of plain numbers.
    pub fn log(label: impl Into<String>) -> Axis {
        Axis { label: label.into(), scale: Scale::Log, ..Default::default() }
    }

    /// An axis of names.
    pub fn categories<S: Into<String>>(label: impl Into<String>, names: impl IntoIterator<Item = S>) -> Axis {
        let scale = Scale::Categories(names.into_iter().map(Into::into).collect());
        Axis { label: label.into(), scale, ..Default::default() }
    }

    /// The same axis with numbers of this kind.
    pub fn format(self, format: Format) -> Axis {
        Axis { format, ..self }
    }

    /// The same axis with plain numbers in this unit.
    pub fn unit(self, unit: impl Into<String>) -> Axis {
        Axis { unit: Some(unit.into()), ..self }
    }

    /// The same axis with fixed ends.
    pub fn range(self, low: f64, high: f64) -> Axis {
        Axis { range: Some((low, high)), ..self }
    }

    /// A value in words, with its unit; a category by its name.
    pub fn show(&self, value: f64) -> String {
        match (&self.scale, &self.unit) {
            (Scale::Categories(names), _) => names.get(value as usize).cloned().unwrap_or_default(),
            (_, Some(unit)) if self.format == Format::Plain => format!("{} {unit}", self.format.show(value)),
            _ => self.format.show(value),
        }
    }

    /// Whether a value has a place on the axis.
    fn takes(&self, value: f64) -> bool {
        value.is_finite()
            && match &self.scale {
                Scale::Linear => true,
                Scale::Log => value > 0.0,
                Scale::Categories(names) => value.fract() == 0.0 && value >= 0.0 && value < names.len() as f64,
            }
    }

    /// The given range, if it makes sense on this scale.
    pub(crate) fn valid_range(&self) -> Option<(f64, f64)> {
        self.range.filter(|&(low, high)| {
            low.is_finite() && high.is_finite() && low < high && (self.scale != Scale::Log || low > 0.0)
        })
    }
}

/// More markers than this in a series are drawn as dots.
pub(crate) const CLOUD: usize = 400;

/// One line, one set of bars or one cloud of markers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// The name in the legend. Series of the same name are switched on and off together.
    pub name: String,
    /// Which colour, dash and marker, see [`Palette`](crate::Palette).
    pub slot: usize,
    /// How it is drawn.
    pub style: Style,
    /// The data. A value that is not a number is a gap.
    pub points: Vec<Point>,
}

/// How a series is drawn. Confidence intervals are bands around lines, whiskers elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A line.
    #[default]
    Line,
    /// A line with a marker at every point.
    LineMarkers,
    /// A value holds until the next point, as in a distribution function.
    Step,
    /// Bars, side by side within a category. Of an axis without categories every x is one.
    Bars,
    /// Markers alone.
    Markers,
    /// Hollow markers: what somebody else has stated.
    Stated,
}

impl Series {
    /// Whether it is a line with so many points that dashes would be lost in it.
    pub(crate) fn is_dense(&self) -> bool {
        self.style == Style::Line && self.points.len() > 1_000
    }
}

/// A value, and how sure it is.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Place along the horizontal axis; the number of the category from 0.
    pub x: f64,
    /// The value.
    pub y: f64,
    /// Confidence interval of the value, low and high.
    pub interval: Option<(f64, f64)>,
}

impl From<(f64, f64)> for Point {
    fn from((x, y): (f64, f64)) -> Point {
        Point { x, y, interval: None }
    }
}

impl From<(f64, f64, (f64, f64))> for Point {
    fn from((x, y, interval): (f64, f64, (f64, f64))) -> Point {
        Point { x, y, interval: Some(interval) }
    }
}

/// A reference line across the plot, such as the paper's value or a buffer's limit.
#[derive(Clone, Debug, PartialEq)]
pub struct Mark {
    /// Whether it stands at an x (upright) rather than at a y (level).
    pub upright: bool,
    /// Where.
    pub at: f64,
    /// What it is.
    pub label: String,
}

impl Mark {
    /// An upright line at an x.
    pub fn x(at: f64, label: impl Into<String>) -> Mark {
        Mark { upright: true, at, label: label.into() }
    }

    /// A level line at a y.
    pub fn y(at: f64, label: impl Into<String>) -> Mark {
        Mark { upright: false, at, label: label.into() }
    }
}

/// A figure's data made fit to draw: every value has a place, gaps are gone.
pub(crate) struct Drawable {
    /// The horizontal axis; with categories if there are bars.
    pub x: Axis,
    /// The vertical axis; never categories.
    pub y: Axis,
    /// Of every series, the stretches without gaps.
    pub runs: Vec<Vec<Vec<Point>>>,
    /// Smallest and largest x of data and marks.
    pub x_bounds: Option<(f64, f64)>,
    /// Smallest and largest y of data, intervals and marks.
    pub y_bounds: Option<(f64, f64)>,
    /// Whether some bars go on beyond the vertical axis.
    pub cut: bool,
    /// The figure's notes and what had to be left out.
    pub notes: Vec<String>,
}

/// A bar so many times as long as the next one flattens all others.
const FAR: f64 = 10.0;

impl Figure {
    /// The data made fit to draw.
    pub(crate) fn drawable(&self) -> Drawable {
        let mut notes = self.notes.clone();
        let bars = self.series.iter().any(|series| series.style == Style::Bars);
        let (x, places) = match &self.x.scale {
            Scale::Linear | Scale::Log if bars => self.named_places(),
            _ => (self.x.clone(), None),
        };
        let mut y = self.y.clone();
        if matches!(y.scale, Scale::Categories(_)) {
            y.scale = Scale::Linear;
        }
        for axis in [&x, &y] {
            if let (Some((low, high)), None) = (axis.range, axis.valid_range()) {
                notes
                    .push(format!("The range {low} to {high} does not suit the axis “{}” and is ignored.", axis.label));
            }
        }

        let (mut nameless, mut unplaced, mut infinite) = (0, 0, 0);
        let mut runs: Vec<Vec<Vec<Point>>> = Vec::new();
        for series in &self.series {
            let mut run = Vec::new();
            let mut stretches = Vec::new();
            for point in &series.points {
                let mut point = *point;
                if let Some(places) = &places {
                    point.x = places.iter().position(|&place| place == point.x).map_or(f64::NAN, |at| at as f64);
                }
                // A distribution's share at 0 is where it stands at the left end of a logarithmic axis.
                let left = series.style == Style::Step && x.scale == Scale::Log && point.x <= 0.0;
                if (left || x.takes(point.x)) && y.takes(point.y) {
                    point.x = if left { f64::NEG_INFINITY } else { point.x };
                    run.pop_if(|last: &mut Point| left && last.x == f64::NEG_INFINITY);
                    point.interval = point.interval.filter(|(low, high)| low.is_finite() && high.is_finite());
                    run.push(point);
                    continue;
                }
                let finite = point.x.is_finite() && point.y.is_finite();
                let named = matches!(x.scale, Scale::Categories(_)) && !x.takes(point.x);
                nameless += usize::from(finite && named);
                unplaced += usize::from(finite && !named);
                infinite += usize::from(point.x.is_infinite() || point.y.is_infinite());
                stretches.push(std::mem::take(&mut run));
            }
            stretches.push(run);
            stretches.retain(|run| !run.is_empty());
            runs.push(stretches);
        }
        let points = |n| if n == 1 { "1 point is".to_string() } else { format!("{n} points are") };
        for (count, why) in [
            (unplaced, "a logarithmic axis has no place for 0 or less"),
            (nameless, "the axis has no such category"),
            (infinite, "infinite"),
        ] {
            if count > 0 {
                notes.push(format!("{} not drawn: {why}.", points(count)));
            }
        }

        let all = || runs.iter().flatten().flatten();
        let marks = |upright: bool| self.marks.iter().filter(move |mark| mark.upright == upright).map(|mark| mark.at);
        let mut x_bounds = bounds(all().map(|point| point.x).chain(marks(true)).filter(|&v| x.takes(v)));
        let ends = |point: &Point| point.interval.map_or([point.y; 2], |(low, high)| [low, high]);
        let y_values = all().flat_map(|point| [point.y].into_iter().chain(ends(point)));
        let y_bounds = bounds(y_values.chain(marks(false)).filter(|&v| y.takes(v)));
        if all().next().is_none() {
            x_bounds = None;
        }
        let (left, _) = log_span(x.valid_range().or(x_bounds).unwrap_or((1.0, 10.0)));
        for point in runs.iter_mut().flatten().flatten() {
            point.x = if point.x == f64::NEG_INFINITY { left } else { point.x };
        }
        let y_bounds = y_bounds.filter(|_| x_bounds.is_some());
        let end = if y.scale == Scale::Linear && y.range.is_none() { self.end_of_bars(&runs) } else { None };
        if let Some(end) = end {
            y.range = Some((0.0, end));
            notes.push("A bar with a gap goes on: its number says how far.".into());
        }
        Drawable { x, y, runs, x_bounds, y_bounds, cut: end.is_some(), notes }
    }

    /// Where the axis of bars ends if few of them are so long that the others could not be told apart.
    fn end_of_bars(&self, runs: &[Vec<Vec<Point>>]) -> Option<f64> {
        if self.series.iter().any(|series| !matches!(series.style, Style::Bars | Style::Stated)) {
            return None;
        }
        let of = |style: Style| {
            let own = self.series.iter().zip(runs).filter(move |(series, _)| series.style == style);
            own.flat_map(|(_, runs)| runs.iter().flatten())
        };
        let mut bars: Vec<&Point> = of(Style::Bars).collect();
        bars.sort_by(|a, b| b.y.total_cmp(&a.y));
        let most = bars.len() / 4;
        let far = (1..=most).rev().find(|&at| bars[at].y > 0.0 && bars[at - 1].y > FAR * bars[at].y)?;
        let (cut, rest) = bars.split_at(far);
        let high = |point: &Point| point.interval.map_or(point.y, |(_, high)| high.max(point.y));
        let stated = of(Style::Stated).filter(|point| point.y < cut[far - 1].y / 2.0).map(|point| point.y);
        let marks = self.marks.iter().filter(|mark| !mark.upright).map(|mark| mark.at);
        let end = rest.iter().map(|point| high(point)).chain(stated).chain(marks).fold(0.0, f64::max);
        let positive = rest.iter().all(|point| point.y >= 0.0);
        (positive && 2.0 * end < cut[far - 1].y).then_some(1.25 * end)
    }

    /// Whether it can be drawn on its side: names, and a bar or a marker for each.
    pub(crate) fn can_turn(&self) -> bool {
        self.series.iter().all(|series| matches!(series.style, Style::Bars | Style::Markers | Style::Stated))
    }

    /// Whether no name has more than one point.
    pub(crate) fn stands_alone(&self) -> bool {
        let mut places: Vec<f64> = self.series.iter().flat_map(|series| &series.points).map(|point| point.x).collect();
        let all = places.len();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places.len() == all
    }

    /// How many series are drawn apart from each other.
    pub(crate) fn apart(&self) -> u32 {
        if self.stands_alone() {
            1
        } else {
            self.series.iter().filter(|series| series.style != Style::Stated).count() as u32
        }
    }

    /// The horizontal axis with a category for every x there is, and those x in order.
    fn named_places(&self) -> (Axis, Option<Vec<f64>>) {
        let all = self.series.iter().flat_map(|series| &series.points);
        let mut places: Vec<f64> = all.map(|point| point.x).filter(|x| x.is_finite()).collect();
        places.sort_by(f64::total_cmp);
        places.dedup();
        let names = places.iter().map(|&x| self.x.show(x)).collect();
        (Axis { scale: Scale::Categories(names), range: None, ..self.x.clone() }, Some(places))
    }

    /// Whether no category has more than one bar, so that bars need no room beside each other.
    pub(crate) fn bars_stand_alone(&self) -> bool {
        let bars = self.series.iter().filter(|series| series.style == Style::Bars);
        let mut places: Vec<f64> = bars.flat_map(|series| &series.points).map(|point| point.x).collect();
        let all = places.len();
        places.sort_by(f64::total_cmp);
        places.dedup();
        places.len() == all
    }

    /// Whether every bar stands over its series' name, or there is but one series and the axis has its name, so that no legend is needed.
    pub(crate) fn is_its_own_legend(&self) -> bool {
        let named = |series: &Series| {
            series.style == Style::Bars && series.points.iter().all(|point| self.x.show(point.x) == series.name)
        };
        // The only series of a figure is what its axis says.
        let only = self.series.len() == 1 && self.series[0].name == self.y.label;
        only || self.bars_stand_alone() && self.series.iter().all(named)
    }

    /// Whether whiskers of different series would stand on each other, so that series are drawn a little apart.
    pub(crate) fn dodges(&self, x: &Axis) -> bool {
        let crowd = |series: &Series| match series.style {
            Style::Bars | Style::Stated => false,
            Style::Markers => true,
            _ => series.points.iter().any(|point| point.interval.is_some()),
        };
        matches!(x.scale, Scale::Categories(_)) && self.series.iter().filter(|series| crowd(series)).count() > 1
    }

    /// Whether dots stand for bars, and beside each other as bars would.
    pub(crate) fn has_dots(&self) -> bool {
        self.series.iter().any(|series| series.style == Style::Markers)
    }

    /// The place of a series among those that are drawn apart, and how many these are: what is stated of a series stands where that
    /// does, and of none in the middle.
    pub(crate) fn among(&self, series: &Series) -> (f64, f64) {
        let apart: Vec<usize> =
            (self.series.iter()).filter(|other| other.style != Style::Stated).map(|other| other.slot).collect();
        let all = apart.len().max(1) as f64;
        let nth = apart.iter().position(|slot| *slot == series.slot).map(|nth| nth as f64);
        (nth.unwrap_or((all - 1.0) / 2.0), all)
    }
}

fn bounds(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |found, value| match found {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// The corners of a line through these places; a step holds its height until the next.
pub(crate) fn corners(places: &[(f64, f64)], step: bool) -> Vec<(f64, f64)> {
    if !step {
        return places.to_vec();
    }
    let turns = places.windows(2).flat_map(|pair| [(pair[1].0, pair[0].1), pair[1]]);
    places.first().copied().into_iter().chain(turns).collect()
}

/// Points that look the same as all of them: of each stretch of neighbours in one of `columns` upright stripes the first, the
/// lowest, the highest and the last. `place` gives a point's place from 0 to 1.
pub(crate) fn thin(points: &[Point], columns: f64, place: impl Fn(&Point) -> (f64, f64)) -> Vec<Point> {
    if points.len() as f64 <= columns {
        return points.to_vec();
    }
    let stripe = |point: &Point| (place(point).0 * columns).floor();
    let mut kept = Vec::new();
    for stretch in points.chunk_by(|a, b| stripe(a) == stripe(b)) {
        let height = |&at: &usize| place(&stretch[at]).1;
        let order = |a: &usize, b: &usize| height(a).total_cmp(&height(b));
        let chosen =
            [Some(0), (0..stretch.len()).min_by(order), (0..stretch.len()).max_by(order), Some(stretch.len() - 1)];
        kept.extend(chosen.into_iter().flatten().collect::<BTreeSet<_>>().into_iter().map(|at| stretch[at]));
    }
    kept
}

/// Markers that look the same as all of them: one for each cell of a grid.
pub(crate) fn thin_markers(points: &[Point], columns: f64, place: impl Fn(&Point) -> (f64, f64)) -> Vec<Point> {
    let mut taken = BTreeSet::new();
    let cell = |point: &Point| {
        let (x, y) = place(point);
        ((x * columns) as i64, (y * columns) as i64)
    };
    points.iter().filter(|point| taken.insert(cell(point))).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(x: Axis, y: Axis, style: Style, points: &[(f64, f64)]) -> Figure {
        let points = points.iter().map(|&point| point.into()).collect();
        let series = vec![Series { name: "one".into(), slot: 0, style, points }];
        Figure { series, ..Figure::new("f", "F", x, y) }
    }

    #[test]
    fn a_value_that_is_no_number_is_a_gap() {
        let points = [(0.0, 1.0), (1.0, 2.0), (2.0, f64::NAN), (3.0, 4.0)];
        let drawable = figure(Axis::linear("x"), Axis::linear("y"), Style::Line, &points).drawable();
        assert_eq!(drawable.runs[0].iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
        assert!(drawable.notes.is_empty());
    }

    #[test]
    fn zero_on_a_log_axis_and_infinity_are_left_out_and_said() {
        let points = [(0.0, 0.0), (1.0, 2.0), (2.0, f64::INFINITY)];
        let drawable = figure(Axis::linear("x"), Axis::log("y"), Style::Line, &points).drawable();
        assert_eq!(drawable.runs[0], [[Point::from((1.0, 2.0))]]);
        assert!(drawable.notes[0].starts_with("1 point is not drawn: a logarithmic axis"));
        assert_eq!(drawable.notes[1], "1 point is not drawn: infinite.");
    }

    #[test]
    fn a_distribution_keeps_its_share_at_zero_on_a_log_axis() {
        let points = [(0.0, 0.4), (100.0, 0.7), (5000.0, 1.0)];
        let drawable = figure(Axis::log("x"), Axis::linear("y"), Style::Step, &points).drawable();
        assert_eq!(drawable.runs[0][0][0], Point::from((100.0, 0.4)));
        assert_eq!(drawable.runs[0][0].len(), 3);
    }

    #[test]
    fn bars_over_numbers_stand_on_names() {
        let points = [(40.0, 1.0), (10.0, 2.0)];
        let x = Axis::linear("Link speed").unit("Gbps");
        let drawable = figure(x, Axis::linear("y"), Style::Bars, &points).drawable();
        assert_eq!(drawable.x.scale, Scale::Categories(vec!["10 Gbps".into(), "40 Gbps".into()]));
        assert_eq!(drawable.runs[0][0], [Point::from((1.0, 1.0)), Point::from((0.0, 2.0))]);
    }

    #[test]
    fn a_range_that_makes_no_sense_is_ignored_and_said() {
        let x = Axis::log("x").range(0.0, 10.0);
        let drawable = figure(x, Axis::linear("y"), Style::Line, &[(1.0, 1.0)]).drawable();
        assert!(drawable.notes[0].contains("“x”"));
    }

    #[test]
    fn thinning_keeps_every_extreme() {
        let mut points: Vec<Point> = (0..10_000).map(|i| (f64::from(i), f64::from(i % 7)).into()).collect();
        points[4321].y = 99.0;
        points[8765].y = -99.0;
        let thinned = thin(&points, 100.0, |point| (point.x / 10_000.0, point.y));
        assert!(thinned.len() <= 400);
        for at in [0, 4321, 8765, 9999] {
            assert!(thinned.contains(&points[at]), "{at}");
        }
        assert!(thinned.is_sorted_by(|a, b| a.x < b.x));
    }
}
