//! The language of expectations and figures: arithmetic on measures.
//!
//! ```text
//! p99(slowdown, variant='DCQCN', group='background') / p99(slowdown, variant='BFC', group='background')
//! increasing(p99(buffer) over rate)
//! ```
//!
//! An [`Expression`] is parsed once, checked against the names of its experiment ([`Expression::check`]) and evaluated as often
//! as needed. Its leaves are measures; with everything decided that an `over` or a figure decides, a measure is a
//! [`Probe`]: something that one run answers with a number. What an expression asks never depends on the answers,
//! so that walking it once with any answers at all shows which probes it needs.

mod parser;

use engine::{Bytes, QuantityError, Time};
use scenario::document::{quoted, suggest};
use scenario::watch::like;
use std::fmt;

/// What is wrong with an expression, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The character it is at, counted from 0.
    pub at: usize,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: String,
}

fn fault<T>(at: usize, message: impl Into<String>, help: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { at, message: message.into(), help: help.into() })
}

/// A fault about a word that does not exist.
fn unknown<T>(at: usize, what: &str, word: &str, known: &[&str]) -> Result<T, Fault> {
    let list = known.join(", ");
    let help = match suggest(word, known) {
        Some(meant) => format!("did you mean \"{meant}\"? There are {list}"),
        None if known.is_empty() => "there are none".into(),
        None => format!("there are {list}"),
    };
    fault(at, format!("there is no {what} {}", quoted(word)), help)
}

/// Something that flows, ports or switches have many values of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // The table below says what each is.
pub enum Quantity {
    Slowdown,
    SlowdownAcknowledged,
    Fct,
    Acknowledged,
    Injected,
    Size,
    Throughput,
    Receiver,
    Buffer,
    Watermark,
    Queue,
    FlowRate,
    /// What a flow control saw at the sampling instants.
    Sampled,
    PortRate,
}

const FLOW: &[&str] = &["group", "size", "src", "dst", "during"];

/// The same where flows that have not finished can count, too.
const ALL_FLOWS: &[&str] = &["group", "size", "src", "dst", "during", "until"];

/// Every quantity: its name, what it is, and which filters it takes besides `variant`, `seed` and varied labels.
pub const QUANTITIES: &[(&str, Quantity, &str, &[&str])] = &[
    ("slowdown", Quantity::Slowdown, "completion time to the last byte received, over the ideal, by flow", FLOW),
    (
        "slowdown_acknowledged",
        Quantity::SlowdownAcknowledged,
        "completion time to the last byte acknowledged, over the ideal, by flow",
        FLOW,
    ),
    ("fct_us", Quantity::Fct, "completion time to the last byte received, by flow, in us", ALL_FLOWS),
    ("acknowledged_us", Quantity::Acknowledged, "completion time to the last acknowledgement, by flow, in us", FLOW),
    ("injected_us", Quantity::Injected, "time until the last byte was put on the sender's link, by flow, in us", FLOW),
    ("size", Quantity::Size, "bytes of message, by flow", FLOW),
    ("throughput_gbps", Quantity::Throughput, "size over completion time, by flow, in Gb/s", ALL_FLOWS),
    ("receiver_gbps", Quantity::Receiver, "what each host's incoming links carried over the run, in Gb/s", &["host"]),
    ("buffer", Quantity::Buffer, "bytes in a switch's memory, by switch and sampling instant", &["switch", "during"]),
    (
        "watermark",
        Quantity::Watermark,
        "the most bytes in a switch's memory since the sampling instant before",
        &["switch", "during"],
    ),
    ("queue", Quantity::Queue, "bytes waiting at a watched port, by port and sampling instant", &["port", "during"]),
    (
        "rate_gbps",
        Quantity::FlowRate,
        "receiving rate of a watched flow, by flow and interval, in Gb/s",
        &["group", "during"],
    ),
    ("sampled", Quantity::Sampled, "a histogram of flow control, `name` being its name in summary.json", &["name"]),
    ("sent_gbps", Quantity::PortRate, "what a watched port sent, by port and interval, in Gb/s", &["port", "during"]),
];

/// What is taken of many values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Statistic {
    /// The value below which so many millionths of the values lie.
    Quantile(u32),
    /// Their mean.
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
    /// How many there are.
    Count,
    /// Their sum.
    Total,
    /// Their standard deviation.
    Deviation,
}

const STATISTICS: &[(&str, Statistic)] = &[
    ("mean", Statistic::Mean),
    ("max", Statistic::Max),
    ("min", Statistic::Min),
    ("count", Statistic::Count),
    ("total", Statistic::Total),
    ("deviation", Statistic::Deviation),
];

/// `p99` is the 99th percentile, `p999` the 99.9th: two digits, and the rest after the point; `p100` is the largest.
fn statistic(name: &str) -> Option<Statistic> {
    if name == "p100" {
        return Some(Statistic::Max);
    }
    if let Some(digits) = name.strip_prefix('p')
        && (1..=6).contains(&digits.len())
        && digits.bytes().all(|b| b.is_ascii_digit())
    {
        let places = digits.len().max(2) as u32;
        return digits.parse::<u32>().ok().map(|n| Statistic::Quantile(n * 10u32.pow(6 - places)));
    }
    STATISTICS.iter().find(|(known, _)| *known == name).map(|(_, statistic)| *statistic)
}

/// A number that a run has one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)] // The table below says what each is.
pub enum Scalar {
    PeakBuffer,
    PauseShare,
    Utilisation,
    FinishedShare,
    DeliveredShare,
    Drops,
    Fairness,
    Goodput,
    Settled,
}

/// Every scalar: its name, what it is, and which filters it takes besides `variant`, `seed` and varied labels.
pub const SCALARS: &[(&str, Scalar, &str, &[&str])] = &[
    ("peak_buffer", Scalar::PeakBuffer, "the most bytes that any switch ever held; exact", &["switch"]),
    (
        "pause_share",
        Scalar::PauseShare,
        "share of the run that links were held by pauses, mean over links",
        &["link", "kind"],
    ),
    ("utilisation", Scalar::Utilisation, "share of their capacity that links used, mean over links", &["link", "kind"]),
    ("finished_share", Scalar::FinishedShare, "share of flows that were received to the end", FLOW),
    (
        "delivered_share",
        Scalar::DeliveredShare,
        "share of the bytes of all flows that belong to flows received to the end, by an instant if one is given",
        ALL_FLOWS,
    ),
    ("drops", Scalar::Drops, "packets lost for want of room in a buffer", &[]),
    (
        "fairness",
        Scalar::Fairness,
        "Jain's index over flows: of bytes received where flows are watched, else of throughput",
        FLOW,
    ),
    (
        "goodput_gbps",
        Scalar::Goodput,
        "bytes that a group received per time: where flows are watched of the watched time, else from its first start to \
         its last completion",
        FLOW,
    ),
    (
        "settled_us",
        Scalar::Settled,
        "time from the beginning of `during` until the last interval in which any of the watched ports sent more or less than \
         its equal share of `rate` by over a tenth, in us; all of `during` if that is its last interval",
        &["port", "rate", "during"],
    ),
];

/// What a measure measures.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A statistic of a quantity.
    Statistic(Statistic, Quantity),
    /// A scalar.
    Scalar(Scalar),
    /// What a scheme counted under that name.
    Counter(String),
    /// The number at a dotted path of `summary.json`.
    Summary(String),
    /// 1 if the run had that ending, otherwise 0.
    Ending(String),
}

impl What {
    /// Filters that it takes, besides those on runs.
    fn filters(&self) -> &'static [&'static str] {
        match self {
            What::Statistic(_, quantity) => {
                QUANTITIES.iter().find(|(_, known, ..)| known == quantity).map_or(&[], |(.., filters)| filters)
            }
            What::Scalar(scalar) => {
                SCALARS.iter().find(|(_, known, ..)| known == scalar).map_or(&[], |(.., filters)| filters)
            }
            What::Counter(_) | What::Summary(_) | What::Ending(_) => &[],
        }
    }
}

/// One condition on what is measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Filter {
    key: String,
    value: String,
    at: usize,
}

/// A leaf of an expression.
#[derive(Clone, Debug, PartialEq)]
struct Measure {
    what: What,
    filters: Vec<Filter>,
    at: usize,
}

/// A measure with all of its conditions decided: something that a run can answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probe {
    /// What is measured.
    pub what: What,
    /// Conditions, by key.
    pub filters: Vec<(String, String)>,
}

impl Probe {
    /// The value that a key must have.
    pub fn filter(&self, key: &str) -> Option<&str> {
        self.filters.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

/// What is done with an expression's values over a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fold {
    Smallest,
    Largest,
    Average,
    /// Last over first.
    Growth,
    /// Largest over smallest.
    Spread,
    /// The smallest ratio of a value to the one before it.
    Increasing,
    /// The smallest ratio of a value to the one after it.
    Decreasing,
    /// Of the straight line that fits best.
    Slope,
    /// How well that line fits: the share of the variance that it explains.
    Linearity,
}

const FOLDS: &[(&str, Fold)] = &[
    ("smallest", Fold::Smallest),
    ("largest", Fold::Largest),
    ("average", Fold::Average),
    ("growth", Fold::Growth),
    ("spread", Fold::Spread),
    ("increasing", Fold::Increasing),
    ("decreasing", Fold::Decreasing),
    ("slope", Fold::Slope),
    ("linearity", Fold::Linearity),
];

/// Plain arithmetic by name, with how many arguments it takes.
const FUNCTIONS: &[(&str, std::ops::RangeInclusive<usize>)] =
    &[("min", 1..=16), ("max", 1..=16), ("abs", 1..=1), ("sqrt", 1..=1), ("pow", 2..=2), ("bdp", 2..=2)];

const NAMED: &[&str] = &["counter", "summary", "ending"];
const SHARES: &[&str] = &["bytes_share", "flows_share"];

/// The published tables of flow sizes that `bytes_share` and `flows_share` know.
pub const WORKLOADS: &[&str] = &["google", "fb-hadoop", "hadoop", "rpc", "websearch", "storage", "dvl", "dvl-bytes"];

#[derive(Clone, Debug, PartialEq)]
enum Node {
    Number(f64),
    Negative(Box<Node>),
    Binary(char, Box<Node>, Box<Node>),
    Function(&'static str, Vec<Node>),
    Measure(Measure),
    /// Share of a workload's bytes, or flows, up to a size.
    Share {
        bytes: bool,
        workload: String,
        up_to: u64,
    },
    Over {
        fold: Fold,
        body: Box<Node>,
        key: String,
        /// The values of the key; empty for all.
        among: Vec<(String, usize)>,
        at: usize,
    },
}

/// An expression, ready to be checked and evaluated.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    root: Node,
}

/// A value that a key takes, and its place on an axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// As filters name it.
    pub name: String,
    /// As a number.
    pub x: f64,
    /// Whether that number means anything; otherwise it is the value's place.
    pub is_number: bool,
}

impl Step {
    /// A value whose number is what its name says, with units as in expressions; `place` where it is no number.
    pub fn new(name: impl Into<String>, place: usize) -> Step {
        let name = name.into();
        let number = parser::number(&name);
        Step { name, x: number.unwrap_or(place as f64), is_number: number.is_some() }
    }
}

/// A label that an experiment varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Its values, in order.
    pub values: Vec<Step>,
    /// The variants that it varies; `None` for all.
    pub variants: Option<Vec<String>>,
}

impl Label {
    fn concerns(&self, variant: Option<&str>) -> bool {
        match (&self.variants, variant) {
            (Some(variants), Some(variant)) => variants.iter().any(|known| known == variant),
            _ => true,
        }
    }
}

/// The names that an expression may use, and the values that an `over` goes through.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// The variants of the experiment.
    pub variants: Vec<String>,
    /// What it varies.
    pub labels: Vec<Label>,
    /// Groups of flows.
    pub groups: Vec<String>,
    /// Size bins, as filters have them: `"1KB..10KB"`.
    pub bins: Vec<Step>,
}

impl Scope {
    /// The values that `over key` goes through.
    pub fn steps(&self, key: &str) -> Option<Vec<Step>> {
        match key {
            "variant" => Some(self.variants.iter().enumerate().map(|(i, name)| Step::new(name.as_str(), i)).collect()),
            "size" => Some(self.bins.clone()),
            _ => self.labels.iter().find(|label| label.name == key).map(|label| label.values.clone()),
        }
    }

    fn keys(&self) -> Vec<&str> {
        ["variant", "size"].into_iter().chain(self.labels.iter().map(|label| label.name.as_str())).collect()
    }
}

/// Values decided outside of a measure: by an `over`, or by the place in a figure.
pub type Bindings = Vec<(String, String)>;

/// Published tables of flow sizes, as the ledger asks about them.
pub trait Sizes {
    /// Share of all bytes that are in flows of up to so many bytes.
    fn bytes_share(&self, workload: &str, up_to: u64) -> Option<f64>;
    /// Share of all flows that have up to so many bytes.
    fn flows_share(&self, workload: &str, up_to: u64) -> Option<f64>;
}

/// No tables at all.
pub struct NoSizes;

impl Sizes for NoSizes {
    fn bytes_share(&self, _: &str, _: u64) -> Option<f64> {
        None
    }
    fn flows_share(&self, _: &str, _: u64) -> Option<f64> {
        None
    }
}

/// Why there is no value.
pub type Missing = String;

/// Where the answers come from.
pub struct Answers<'a> {
    /// What labels, variants and bins there are.
    pub scope: &'a Scope,
    /// Tables of flow sizes.
    pub sizes: &'a dyn Sizes,
    /// What a probe found.
    pub probe: &'a mut dyn FnMut(&Probe) -> Result<f64, Missing>,
}

/// Why a text is not a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RangeError {
    /// That text has no `..`.
    NotARange(String),
    /// Nothing lies in that range.
    Empty(String),
    /// One of its ends is not a quantity.
    Quantity(QuantityError),
}

impl fmt::Display for RangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangeError::NotARange(text) => write!(f, "{} is not a range", quoted(text)),
            RangeError::Empty(text) => write!(f, "{} is empty", quoted(text)),
            RangeError::Quantity(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RangeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            RangeError::Quantity(error) => Some(error),
            RangeError::NotARange(_) | RangeError::Empty(_) => None,
        }
    }
}

/// `low..high` with either end left out, as numbers of the smallest unit: above the low end, up to the high one.
pub fn range(text: &str, read: fn(&str) -> Result<u64, QuantityError>) -> Result<(u64, u64), RangeError> {
    let Some((low, high)) = text.split_once("..") else {
        return Err(RangeError::NotARange(text.into()));
    };
    let end = |text: &str, default: u64| match text.trim() {
        "" => Ok(default),
        text => read(text).map_err(RangeError::Quantity),
    };
    let (low, high) = (end(low, 0)?, end(high, u64::MAX)?);
    if low >= high {
        return Err(RangeError::Empty(text.into()));
    }
    Ok((low, high))
}

/// A range of sizes, in bytes.
pub fn size_range(text: &str) -> Result<(u64, u64), RangeError> {
    range(text, |text| text.parse::<Bytes>().map(|size| size.0))
}

/// A range of times, in picoseconds.
pub fn time_range(text: &str) -> Result<(u64, u64), RangeError> {
    range(text, |text| text.parse::<Time>().map(|time| time.0))
}

/// What `kind='…'` of a link may be.
const KINDS: &[&str] = &["up", "core", "down"];

impl Expression {
    /// Reads an expression.
    pub fn parse(text: &str) -> Result<Expression, Fault> {
        parser::expression(text).map(|root| Expression { root })
    }

    /// Reads a quantity with filters in parentheses, such as `buffer(switch='leaf*')`, as the maximum of it.
    pub fn parse_quantity(text: &str) -> Result<(Quantity, Expression), Fault> {
        parser::quantity(text).map(|(quantity, root)| (quantity, Expression { root }))
    }

    /// Its value if it needs no measuring.
    pub fn constant(&self) -> Option<f64> {
        let mut asked = false;
        let mut probe = |_: &Probe| {
            asked = true;
            Ok(1.0)
        };
        let answers = &mut Answers { scope: &Scope::default(), sizes: &NoSizes, probe: &mut probe };
        let value = self.evaluate(&Bindings::new(), answers).ok()?;
        (!asked).then_some(value)
    }

    /// Whether every name in it exists and every measure is of one thing. `bound` are keys that the outside decides.
    pub fn check(&self, scope: &Scope, bound: &[&str]) -> Result<(), Fault> {
        let bound: Vec<String> = bound.iter().map(|key| key.to_string()).collect();
        check(&self.root, scope, &bound)?;
        asked(&self.root, scope).map(drop)
    }

    /// Its value, or why it has none.
    pub fn evaluate(&self, bound: &Bindings, answers: &mut Answers<'_>) -> Result<f64, Missing> {
        evaluate(&self.root, bound, answers)
    }

    /// What its value can be, whatever is measured: a share lies between 0 and 1, and nothing that is measured is negative.
    pub fn bounds(&self) -> (f64, f64) {
        bounds(&self.root)
    }

    /// Every probe that it needs in `scope` with `bound` decided.
    pub fn probes(&self, scope: &Scope, bound: &Bindings) -> Vec<Probe> {
        let mut probes = Vec::new();
        let mut probe = |probe: &Probe| {
            probes.push(probe.clone());
            Ok(1.0)
        };
        let answers = &mut Answers { scope, sizes: &NoSizes, probe: &mut probe };
        walk(&self.root, bound, answers);
        probes
    }
}

const ANYTHING: (f64, f64) = (f64::NEG_INFINITY, f64::INFINITY);
const POSITIVE: (f64, f64) = (0.0, f64::INFINITY);
const SHARE: (f64, f64) = (0.0, 1.0);

fn bounds(node: &Node) -> (f64, f64) {
    let positive = |bounds: (f64, f64)| if bounds.0 >= 0.0 { POSITIVE } else { ANYTHING };
    match node {
        Node::Number(value) => (*value, *value),
        Node::Negative(inner) => {
            let (low, high) = bounds(inner);
            (-high, -low)
        }
        Node::Binary(sign, left, right) => {
            let ((a, b), (c, d)) = (bounds(left), bounds(right));
            let found = match sign {
                '+' => (a + c, b + d),
                '-' => (a - d, b - c),
                // Of two shares, a share.
                '*' if a >= 0.0 && c >= 0.0 && b.is_finite() && d.is_finite() => (a * c, b * d),
                '/' if c > 0.0 && d.is_finite() => {
                    (if a >= 0.0 { a / d } else { a / c }, if b >= 0.0 { b / c } else { b / d })
                }
                _ => positive((a.min(c), 0.0)),
            };
            // What is beyond all numbers may be anything less something else that is.
            if found.0 <= found.1 { found } else { ANYTHING }
        }
        Node::Function(name, values) => {
            let values: Vec<(f64, f64)> = values.iter().map(bounds).collect();
            let over = |fold: fn(f64, f64) -> f64| {
                values.iter().copied().reduce(|a, b| (fold(a.0, b.0), fold(a.1, b.1))).unwrap_or(ANYTHING)
            };
            match *name {
                "min" => over(f64::min),
                "max" => over(f64::max),
                "abs" | "sqrt" => POSITIVE,
                "bdp" => positive(over(f64::min)),
                _ => positive(values.first().copied().unwrap_or(ANYTHING)),
            }
        }
        Node::Measure(measure) => match measure.what {
            What::Scalar(
                Scalar::PauseShare
                | Scalar::Utilisation
                | Scalar::FinishedShare
                | Scalar::DeliveredShare
                | Scalar::Fairness,
            )
            | What::Ending(_) => SHARE,
            What::Summary(_) => ANYTHING,
            _ => POSITIVE,
        },
        Node::Share { .. } => SHARE,
        Node::Over { fold, body, .. } => match fold {
            Fold::Smallest | Fold::Largest | Fold::Average => bounds(body),
            Fold::Growth | Fold::Spread | Fold::Increasing | Fold::Decreasing => positive(bounds(body)),
            Fold::Slope => ANYTHING,
            Fold::Linearity => SHARE,
        },
    }
}

/// Evaluates every operand, also those beside one without a value.
fn walk(node: &Node, bound: &Bindings, answers: &mut Answers<'_>) {
    match node {
        Node::Number(_) | Node::Share { .. } => {}
        Node::Negative(inner) => walk(inner, bound, answers),
        Node::Binary(_, left, right) => {
            walk(left, bound, answers);
            walk(right, bound, answers);
        }
        Node::Function(_, values) => values.iter().for_each(|value| walk(value, bound, answers)),
        Node::Measure(measure) => _ = (answers.probe)(&measure.probe(answers.scope, bound)),
        Node::Over { body, key, among, .. } => {
            for step in steps(answers.scope, key, among) {
                walk(body, &with(bound, key, &step.name), answers);
            }
        }
    }
}

fn check(node: &Node, scope: &Scope, bound: &[String]) -> Result<(), Fault> {
    match node {
        Node::Number(_) | Node::Share { .. } => Ok(()),
        Node::Negative(inner) => check(inner, scope, bound),
        Node::Binary(_, left, right) => check(left, scope, bound).and_then(|()| check(right, scope, bound)),
        Node::Function(_, values) => values.iter().try_for_each(|value| check(value, scope, bound)),
        Node::Measure(measure) => measure.check(scope, bound),
        Node::Over { body, key, among, at, .. } => {
            let Some(steps) = scope.steps(key) else { return unknown(*at, "varied label", key, &scope.keys()) };
            if steps.is_empty() {
                let help = "give the experiment bins = […], variants or varied values";
                return fault(*at, format!("{key} has no values to go over"), help);
            }
            for (value, at) in among {
                if !steps.iter().any(|step| step.name == *value) {
                    let known: Vec<&str> = steps.iter().map(|step| step.name.as_str()).collect();
                    return unknown(*at, key, value, &known);
                }
            }
            let mut bound = bound.to_vec();
            bound.push(key.clone());
            check(body, scope, &bound)
        }
    }
}

/// The most values that are asked for one expression.
const MOST_ASKED: usize = 100_000;

/// How many values are asked for: an `over` within another multiplies them.
fn asked(node: &Node, scope: &Scope) -> Result<usize, Fault> {
    let add = |sum: usize, node: &Node| Ok(sum.saturating_add(asked(node, scope)?));
    match node {
        Node::Number(_) | Node::Share { .. } | Node::Measure(_) => Ok(1),
        Node::Negative(inner) => asked(inner, scope),
        Node::Binary(_, left, right) => add(asked(left, scope)?, right),
        Node::Function(_, values) => values.iter().try_fold(0, add),
        Node::Over { body, key, among, at, .. } => {
            let count = asked(body, scope)?.saturating_mul(steps(scope, key, among).len());
            if count > MOST_ASKED {
                let message = format!("goes over {count} values; {MOST_ASKED} is the most");
                return fault(*at, message, "go over fewer values, or over fewer keys at once");
            }
            Ok(count)
        }
    }
}

impl Measure {
    fn check(&self, scope: &Scope, bound: &[String]) -> Result<(), Fault> {
        let allowed = self.what.filters();
        for Filter { key, value, at } in &self.filters {
            let label = scope.labels.iter().find(|label| label.name == *key);
            let known: Vec<&str> = match (key.as_str(), label) {
                ("variant", _) => scope.variants.iter().map(String::as_str).collect(),
                ("group", _) if allowed.contains(&"group") => scope.groups.iter().map(String::as_str).collect(),
                ("kind", _) if allowed.contains(&"kind") => KINDS.to_vec(),
                (_, Some(label)) => label.values.iter().map(|step| step.name.as_str()).collect(),
                _ => Vec::new(),
            };
            let fits = match key.as_str() {
                "variant" | "kind" => known.contains(&value.as_str()),
                "group" => value.split('|').all(|part| known.iter().any(|group| matches(part, group))),
                _ => label.is_none() || known.contains(&value.as_str()),
            };
            let takes =
                matches!(key.as_str(), "variant" | "seed") || label.is_some() || allowed.contains(&key.as_str());
            if !takes {
                let mut known = vec!["variant", "seed"];
                known.extend(allowed);
                known.extend(scope.labels.iter().map(|label| label.name.as_str()));
                return unknown(*at, "filter here", key, &known);
            }
            if !fits {
                return unknown(*at, key, value, &known);
            }
            let ranged = match key.as_str() {
                "size" if label.is_none() => size_range(value),
                "during" if label.is_none() => time_range(value),
                "until" if label.is_none() => {
                    value.parse::<Time>().map_err(RangeError::Quantity).map(|time| (0, time.0))
                }
                _ => Ok((0, 1)),
            };
            if let Err(error) = ranged {
                let example = match key.as_str() {
                    "size" => "size='1KB..100KB' or size='..1KB'",
                    "until" => "until='10ms'",
                    _ => "during='1ms..2ms'",
                };
                return fault(*at, error.to_string(), format!("write {example}"));
            }
            if key == "seed" && value.parse::<u64>().is_err() {
                return fault(*at, format!("{} is not a seed", quoted(value)), "write a whole number");
            }
        }
        // A measure of nothing in particular would mix runs that differ.
        let said = |key: &str| self.filters.iter().find(|filter| filter.key == key);
        let decided = |key: &str| said(key).is_some() || bound.iter().any(|known| known == key);
        if scope.variants.len() > 1 && !decided("variant") {
            let help = format!("add variant='…' or use \"over variant\"; there are {}", scope.variants.join(", "));
            return fault(self.at, "of which variant?", help);
        }
        let variant = said("variant").map(|filter| filter.value.as_str());
        for label in scope.labels.iter().filter(|label| label.concerns(variant)) {
            if label.values.len() > 1 && !decided(&label.name) {
                let (name, first) = (&label.name, &label.values[0].name);
                let help = format!("add {name}='{first}', or another of its values, or use \"over {name}\"");
                return fault(self.at, format!("at which {name}?"), help);
            }
        }
        Ok(())
    }

    fn probe(&self, scope: &Scope, bound: &Bindings) -> Probe {
        let mut filters: Vec<(String, String)> =
            self.filters.iter().map(|filter| (filter.key.clone(), filter.value.clone())).collect();
        // The innermost decision counts.
        for (key, value) in bound.iter().rev() {
            let fits = key == "variant"
                || scope.labels.iter().any(|label| label.name == *key)
                || self.what.filters().contains(&key.as_str());
            if fits && !filters.iter().any(|(known, _)| known == key) {
                filters.push((key.clone(), value.clone()));
            }
        }
        filters.sort();
        Probe { what: self.what.clone(), filters }
    }
}

/// Whether `text` is what `pattern` describes: `*` stands for anything, `h0..h9` for all that are numbered so, and `|` divides
/// alternatives.
pub fn matches(pattern: &str, text: &str) -> bool {
    let numbered = |name: &str| {
        let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count();
        let (stem, number) = name.split_at(name.len() - digits);
        Some((stem.to_string(), number.parse::<u64>().ok()?))
    };
    pattern.split('|').any(|pattern| {
        if let Some((first, last)) = pattern.split_once("..")
            && let (Some((stem, first)), Some((other, last))) = (numbered(first), numbered(last))
        {
            return stem == other && numbered(text).is_some_and(|(own, n)| own == stem && (first..=last).contains(&n));
        }
        like(text, pattern)
    })
}

fn with(bound: &Bindings, key: &str, value: &str) -> Bindings {
    bound.iter().cloned().chain([(key.to_string(), value.to_string())]).collect()
}

fn steps(scope: &Scope, key: &str, among: &[(String, usize)]) -> Vec<Step> {
    let mut steps = scope.steps(key).unwrap_or_default();
    steps.retain(|step| among.is_empty() || among.iter().any(|(value, _)| *value == step.name));
    steps
}

fn evaluate(node: &Node, bound: &Bindings, answers: &mut Answers<'_>) -> Result<f64, Missing> {
    let value = match node {
        Node::Number(value) => *value,
        Node::Negative(inner) => -evaluate(inner, bound, answers)?,
        Node::Binary(sign, left, right) => {
            let (left, right) = (evaluate(left, bound, answers)?, evaluate(right, bound, answers)?);
            match sign {
                '+' => left + right,
                '-' => left - right,
                '*' => left * right,
                _ => left / right,
            }
        }
        Node::Function(name, values) => {
            let values: Vec<f64> =
                values.iter().map(|value| evaluate(value, bound, answers)).collect::<Result<_, _>>()?;
            match (*name, values.as_slice()) {
                ("min", values) => values.iter().copied().fold(f64::INFINITY, f64::min),
                ("max", values) => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
                ("abs", [value]) => value.abs(),
                ("sqrt", [value]) => value.sqrt(),
                ("pow", [base, exponent]) => base.powf(*exponent),
                // Gb/s times microseconds are kilobits.
                ("bdp", [rate, time]) => rate * time * 1e3 / 8.0,
                _ => f64::NAN,
            }
        }
        Node::Measure(measure) => (answers.probe)(&measure.probe(answers.scope, bound))?,
        Node::Share { bytes, workload, up_to } => {
            let share = match bytes {
                true => answers.sizes.bytes_share(workload, *up_to),
                false => answers.sizes.flows_share(workload, *up_to),
            };
            share.ok_or_else(|| format!("there is no table of flow sizes for {workload}"))?
        }
        Node::Over { fold, body, key, among, .. } => {
            let steps = steps(answers.scope, key, among);
            let points = steps
                .iter()
                .map(|step| Ok((step.x, evaluate(body, &with(bound, key, &step.name), answers)?)))
                .collect::<Result<Vec<_>, Missing>>()?;
            fold.of(&points).ok_or_else(|| format!("there are too few values of {key} at this scale"))?
        }
    };
    if value.is_finite() { Ok(value) } else { Err("the value is not finite: something is divided by zero".into()) }
}

impl Fold {
    /// Of points (x, y); `None` where there are too few.
    fn of(self, points: &[(f64, f64)]) -> Option<f64> {
        let ys = || points.iter().map(|(_, y)| *y);
        let smallest = || ys().reduce(f64::min);
        let largest = || ys().reduce(f64::max);
        let pairs = || points.windows(2).map(|pair| (pair[0].1, pair[1].1));
        match self {
            Fold::Smallest => smallest(),
            Fold::Largest => largest(),
            Fold::Average => (!points.is_empty()).then(|| ys().sum::<f64>() / points.len() as f64),
            Fold::Spread => Some(largest()? / smallest()?),
            Fold::Growth => (points.len() > 1).then(|| points[points.len() - 1].1 / points[0].1),
            Fold::Increasing => pairs().map(|(before, after)| after / before).reduce(f64::min),
            Fold::Decreasing => pairs().map(|(before, after)| before / after).reduce(f64::min),
            Fold::Slope | Fold::Linearity => {
                let n = points.len() as f64;
                let mean = |part: fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>() / n;
                let (mx, my) = (mean(|p| p.0), mean(|p| p.1));
                let sum = |part: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(part).sum::<f64>();
                let xx = sum(&|p| (p.0 - mx).powi(2));
                let xy = sum(&|p| (p.0 - mx) * (p.1 - my));
                let yy = sum(&|p| (p.1 - my).powi(2));
                if points.len() < 2 || xx == 0.0 {
                    return None;
                }
                Some(match self {
                    Fold::Slope => xy / xx,
                    // A level line is fitted perfectly.
                    _ if yy == 0.0 => 1.0,
                    _ => xy * xy / (xx * yy),
                })
            }
        }
    }
}
