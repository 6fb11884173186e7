//! Experiments: what a paper says, the runs that show it, and what is expected of them, in one TOML file.

use super::expression::{Expression, Fault, Label, Quantity, Scope, Step, WORKLOADS};
use engine::{Bytes, QuantityError};
use files::problem::Problem;
use results::exhibit::{Axis, Better, Mark, Unit};
use results::verdict::Range;
use scenario::document::{Document, Item, Table, quoted, suggest};
use scenario::kind::FileKind;
use scenario::presets;
use std::collections::BTreeSet;
use std::path::PathBuf;
use toml_edit as toml;

/// How many experiments may stand behind one another by `like`.
const LONGEST_LIKENESS: usize = 8;
/// The most seeds of an experiment.
const MOST_SEEDS: u64 = 1000;
/// The most runs of an experiment with one seed.
const MOST_CELLS: usize = 100_000;

/// Things that experiments may need besides presets, and that are there.
pub const FEATURES: &[&str] = &["buffers-by-switch", "collectives", "bcube-forwarding"];

engine::choice! {
    /// How large an experiment is run.
    pub enum Scale {
        /// Under a minute on two cores: smaller or shorter, of the same shape.
        Quick = "quick",
        /// As published.
        Paper = "paper",
    }
}

impl Scale {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Scale::Quick => "quick",
            Scale::Paper => "paper",
        }
    }
}

/// What a scale changes.
#[derive(Clone, Debug, Default, PartialEq)]
struct Size {
    sets: Vec<String>,
    seeds: u64,
}

/// A curve of the experiment: a scheme, mostly.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// As figures and expressions call it.
    pub name: String,
    /// `scheme.preset`, if it takes one.
    pub preset: Option<String>,
    /// Changes to the scenario.
    pub sets: Vec<String>,
    /// What it needs besides its preset.
    pub needs: Vec<String>,
}

/// A value of something varied.
#[derive(Clone, Debug, PartialEq)]
struct Value {
    step: Step,
    sets: Vec<String>,
}

/// Something that is varied.
#[derive(Clone, Debug, PartialEq)]
pub struct Vary {
    /// As expressions call it.
    pub label: String,
    /// As an axis calls it.
    pub title: String,
    /// What an axis counts it in.
    pub unit: Option<Unit>,
    values: Vec<Value>,
    /// Names of the values at quick scale; `None` for all.
    quick: Option<Vec<String>>,
    variants: Option<Vec<String>>,
}

/// What a figure shows.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// `y` by the values of a key: `size` or a varied label; a line each for the rest.
    Lines {
        /// The key.
        x: String,
        /// What is shown.
        y: Expression,
    },
    /// The same as bars; the key may be `variant` too.
    Bars {
        /// The key.
        x: String,
        /// What is shown.
        y: Expression,
    },
    /// Cumulative distribution of a quantity.
    Cdf {
        /// The quantity.
        of: Quantity,
        /// Its maximum, with the figure's filters.
        probe: Expression,
    },
    /// A quantity over time: of watched ports, watched flows or switches.
    Series {
        /// The quantity.
        of: Quantity,
        /// Its maximum, with the figure's filters.
        probe: Expression,
    },
    /// Share of bytes by flow size, of published tables.
    Sizes {
        /// The tables.
        workloads: Vec<String>,
    },
}

/// A figure of the experiment, as the paper has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Its caption.
    pub title: String,
    /// What it shows.
    pub kind: Kind,
    /// Horizontal.
    pub x: Axis,
    /// Vertical.
    pub y: Axis,
    /// Lines to compare with.
    pub marks: Vec<Mark>,
    /// Points that the paper states.
    pub stated: Vec<Stated>,
    /// The variants that it shows; empty for all.
    pub variants: Vec<String>,
    /// A label with one panel for each of its values.
    pub panel: Option<String>,
}

/// A point that a paper states.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    /// What it is about; none for all.
    pub variant: Option<String>,
    /// The panel that it is in, where there are several.
    pub panel: Option<String>,
    /// Where on the horizontal axis.
    pub x: Place,
    /// How high.
    pub y: f64,
}

/// A place on the horizontal axis of a figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// At a number.
    At(f64),
    /// At a name, where the axis has names.
    Named(String),
}

/// What a paper leads us to expect of a value. Without any range it is a question: the value is reported, nothing is claimed.
#[derive(Clone, Debug, PartialEq)]
pub struct Expectation {
    /// What the paper says.
    pub paper: String,
    /// What is measured, as written.
    pub text: String,
    /// What is measured.
    pub value: Expression,
    /// Where it holds.
    pub range: Range,
    /// Where it holds in part.
    pub partly: Option<Range>,
    /// Why this range.
    pub band: Option<String>,
    /// How the value is shown: `B`, `us`, `Gbps`, `%`, `x` (a ratio) or nothing.
    pub unit: String,
    /// The only scale at which it can be judged.
    pub scale: Option<Scale>,
}

/// A measure by which variants are ranked.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// What is measured, in a few words.
    pub title: String,
    /// The measure, asked of every variant.
    pub value: Expression,
    /// Which values are better; none where that is a matter of taste.
    pub better: Option<Better>,
    /// Its unit.
    pub unit: String,
}

/// One run of an experiment, but for its seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The variant.
    pub variant: String,
    /// Varied labels and their values.
    pub values: Vec<(String, String)>,
    /// Changes to the scenario, as after `--set`.
    pub sets: Vec<String>,
}

impl Cell {
    /// A name for people: the variant and the values.
    pub fn name(&self) -> String {
        let values: Vec<String> = self.values.iter().map(|(label, value)| format!("{label}={value}")).collect();
        if values.is_empty() { self.variant.clone() } else { format!("{} ({})", self.variant, values.join(", ")) }
    }
}

/// An experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// Its name, and its path below `experiments/`.
    pub id: String,
    /// The file, if it is the user's own.
    pub file: Option<PathBuf>,
    /// The paper it is from.
    pub document: String,
    /// Other papers that it is about.
    pub cites: Vec<String>,
    /// Where in the paper.
    pub place: String,
    /// What it is about.
    pub title: String,
    /// What the paper says, in our words.
    pub says: String,
    /// Our reading where the paper is silent, and what differs at quick scale.
    pub reading: Option<String>,
    /// What running it as published would take, where that is too much.
    pub cost: Option<String>,
    /// The scenario, before anything is changed in it; none if nothing is run.
    pub scenario: Option<String>,
    /// What it needs besides presets.
    pub needs: Vec<String>,
    /// The curves.
    pub variants: Vec<Variant>,
    /// What is varied.
    pub vary: Vec<Vary>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// What is expected.
    pub expectations: Vec<Expectation>,
    /// Measures by which the variants are ranked.
    pub columns: Vec<Column>,
    sets: Vec<String>,
    quick: Size,
    paper: Size,
    bins: Vec<Step>,
    groups: Vec<String>,
}

/// The title of an axis of flow sizes.
const FLOW_SIZE: &str = "flow size";

/// The title of an axis under `key`, if there is one: text that may end with a unit in parentheses.
fn axis_title(table: &mut Table<'_>, key: &str) -> Result<Option<(String, Option<Unit>)>, Problem> {
    let Some(text) = table.optional::<String>(key)? else { return Ok(None) };
    let Some((title, symbol)) = text.strip_suffix(')').and_then(|text| text.rsplit_once(" (")) else {
        return Ok(Some((text, None)));
    };
    match Unit::ALL.into_iter().find(|unit| unit.symbol() == symbol) {
        Some(unit) => Ok(Some((title.into(), Some(unit)))),
        None => {
            let known = Unit::ALL.map(Unit::symbol);
            let problem = table.problem_at(key, format!("there is no unit {}", quoted(symbol)));
            Err(problem.help(format!("write one of {}, or do not end the title with parentheses", known.join(", "))))
        }
    }
}

/// Whatever may be given as a value of a scenario, as `--set` has it.
fn word(item: &Item<'_>) -> Result<String, Problem> {
    if let Ok(text) = item.read::<String>() {
        return Ok(text);
    }
    if let Ok(flag) = item.read::<bool>() {
        return Ok(flag.to_string());
    }
    item.read::<f64>().map(|number| number.to_string()).map_err(|p| p.help("write text, a number, true or false"))
}

fn words(table: &mut Table<'_>, key: &str) -> Result<Option<Vec<String>>, Problem> {
    table.item(key).map(|item| item.items()?.iter().map(word).collect()).transpose()
}

fn texts(table: &mut Table<'_>, key: &str) -> Result<Vec<String>, Problem> {
    let Some(item) = table.item(key) else { return Ok(Vec::new()) };
    item.items()?.iter().map(|item| item.read()).collect()
}

/// `set = ["key=value", "-key", …]`: only that each has a key; the scenario's reader judges the rest.
fn sets(table: &mut Table<'_>) -> Result<Vec<String>, Problem> {
    let sets = texts(table, "set")?;
    let changes = |set: &str| match set.split_once('=') {
        Some((key, value)) => !key.is_empty() && !value.is_empty(),
        None => set.len() > 1 && set.starts_with('-'),
    };
    match sets.iter().find(|set| !changes(set)) {
        Some(bad) => Err(table
            .problem_at("set", format!("{} changes nothing", quoted(bad)))
            .help("write \"key.path=value\", such as \"switch.buffer=4MB\", or \"-key.path\" to remove it")),
        None => Ok(sets),
    }
}

/// The `[scenario]` of an experiment file as a file of its own, named `id` unless it has a name.
fn scenario_text(text: &str, id: &str) -> Option<String> {
    let mut parsed: toml::DocumentMut = text.parse().ok()?;
    let toml::Item::Table(mut scenario) = parsed.remove("scenario")? else { return None };
    if !scenario.contains_key("name") {
        scenario.insert("name", toml::value(id));
    }
    scenario.decor_mut().clear();
    let mut document = toml::DocumentMut::new();
    *document.as_table_mut() = scenario;
    Some(document.to_string().trim_start().to_string())
}

/// Reads one file.
struct Reader<'a> {
    file: &'a str,
    text: &'a str,
    document: &'a Document,
    find: &'a dyn Fn(&str) -> Option<&'static str>,
    depth: usize,
}

impl Experiment {
    /// Reads an experiment from `text`, which problems call `file`. `find` gives the text of an experiment that it is like.
    pub fn read(file: &str, text: &str, find: &dyn Fn(&str) -> Option<&'static str>) -> Result<Experiment, Problem> {
        read(file, text, find, 0)
    }

    /// The names that expressions may use; at a scale, or at any.
    pub fn scope(&self, scale: Option<Scale>) -> Scope {
        let label = |vary: &Vary| {
            let used = |value: &&Value| match (&vary.quick, scale) {
                (Some(quick), Some(Scale::Quick)) => quick.contains(&value.step.name),
                _ => true,
            };
            Label {
                name: vary.label.clone(),
                values: vary.values.iter().filter(used).map(|value| value.step.clone()).collect(),
                variants: vary.variants.clone(),
            }
        };
        Scope {
            variants: self.variants.iter().map(|variant| variant.name.clone()).collect(),
            labels: self.vary.iter().map(label).collect(),
            groups: self.groups.clone(),
            bins: self.bins.clone(),
        }
    }

    fn size(&self, scale: Scale) -> &Size {
        match scale {
            Scale::Quick => &self.quick,
            Scale::Paper => &self.paper,
        }
    }

    /// How many seeds it is run with by default.
    pub fn seeds(&self, scale: Scale) -> u64 {
        self.size(scale).seeds
    }

    /// How many runs it has with all values, but for their seeds.
    fn count(&self) -> usize {
        let concerns =
            |vary: &&Vary, variant: &Variant| vary.variants.as_ref().is_none_or(|only| only.contains(&variant.name));
        let of = |variant: &Variant| {
            let own = self.vary.iter().filter(|vary| concerns(vary, variant));
            own.fold(1_usize, |all, vary| all.saturating_mul(vary.values.len()))
        };
        self.variants.iter().map(of).fold(0, usize::saturating_add)
    }

    /// Every run at a scale, also those that cannot be run yet.
    pub fn cells(&self, scale: Scale) -> Vec<Cell> {
        if self.scenario.is_none() {
            return Vec::new();
        }
        let scope = self.scope(Some(scale));
        let mut cells = Vec::new();
        for variant in &self.variants {
            let preset = variant.preset.iter().map(|preset| format!("scheme.preset={preset}"));
            let base = self.sets.iter().cloned().chain(self.size(scale).sets.iter().cloned()).chain(preset);
            let sets: Vec<String> = base.chain(variant.sets.iter().cloned()).collect();
            let mut own = vec![Cell { variant: variant.name.clone(), values: Vec::new(), sets }];
            for (vary, label) in self.vary.iter().zip(&scope.labels) {
                if vary.variants.as_ref().is_some_and(|only| !only.contains(&variant.name)) {
                    continue;
                }
                let used = |value: &&Value| label.values.contains(&value.step);
                own = own
                    .iter()
                    .flat_map(|cell| {
                        vary.values.iter().filter(used).map(|value| {
                            let mut cell = cell.clone();
                            cell.values.push((vary.label.clone(), value.step.name.clone()));
                            cell.sets.extend(value.sets.iter().cloned());
                            cell
                        })
                    })
                    .collect();
            }
            cells.extend(own);
        }
        cells
    }

    /// What is not there yet that a variant needs; nothing if it can be run.
    pub fn missing(&self, variant: &str) -> Vec<String> {
        let Some(variant) = self.variants.iter().find(|known| known.name == variant) else { return Vec::new() };
        let mut missing = BTreeSet::new();
        if let Some(preset) = variant.preset.as_deref().filter(|preset| presets::named(preset).is_none()) {
            // Of "hpcc+irn+sfc", only what no preset has: HPCC is there.
            let there = |part: &&str| presets::all().iter().any(|preset| preset.name.split('+').any(|p| p == *part));
            let parts: Vec<&str> = preset.split('+').filter(|part| !there(part)).collect();
            match parts.as_slice() {
                [] => _ = missing.insert(preset.to_string()),
                parts => missing.extend(parts.iter().map(|part| part.to_string())),
            }
        }
        let features = self.needs.iter().chain(&variant.needs);
        missing.extend(features.filter(|need| !FEATURES.contains(&need.as_str())).cloned());
        missing.into_iter().collect()
    }

    /// Everything that is not there yet of what it needs.
    pub fn needs(&self) -> Vec<String> {
        let all: BTreeSet<String> = self.variants.iter().flat_map(|variant| self.missing(&variant.name)).collect();
        all.into_iter().collect()
    }

    /// The title and the unit of the axis of a key.
    pub fn axis(&self, key: &str) -> (String, Option<Unit>) {
        match self.vary.iter().find(|vary| vary.label == key) {
            Some(vary) => (vary.title.clone(), vary.unit),
            None if key == "size" => (FLOW_SIZE.into(), Some(Unit::Bytes)),
            None => (key.into(), None),
        }
    }
}

fn read(
    file: &str,
    text: &str,
    find: &dyn Fn(&str) -> Option<&'static str>,
    depth: usize,
) -> Result<Experiment, Problem> {
    let document = Document::parse(file, text)?;
    document.expect_kind(FileKind::Experiment)?;
    Reader { file, text, document: &document, find, depth }.read()
}

impl Reader<'_> {
    fn read(&self) -> Result<Experiment, Problem> {
        let mut root = self.document.root();
        let id: String = root.required("id")?;
        // It becomes the path of a folder.
        let part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_alphanumeric())
                && part.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        if !id.split('/').all(part) {
            let problem = root.problem_at("id", format!("{} cannot be an id", quoted(&id)));
            return Err(problem.help("write words of letters, digits, - and _ with / between them, such as mine/first"));
        }
        let like = self.like(&mut root)?;
        let mut experiment = Experiment {
            document: root.required("document")?,
            cites: texts(&mut root, "cites")?,
            place: root.required("place")?,
            title: root.required("title")?,
            says: root.required("says")?,
            reading: root.optional("reading")?,
            cost: root.optional("cost")?,
            file: None,
            scenario: None,
            needs: texts(&mut root, "needs")?,
            variants: self.variants(&mut root)?,
            vary: Vec::new(),
            figures: Vec::new(),
            expectations: Vec::new(),
            columns: Vec::new(),
            sets: Vec::new(),
            quick: Size { sets: Vec::new(), seeds: 1 },
            paper: Size { sets: Vec::new(), seeds: 1 },
            bins: bins(&mut root)?,
            groups: Vec::new(),
            id,
        };
        experiment.scenario = match (root.table("scenario")?, &like) {
            (Some(table), Some(_)) => {
                return Err(table
                    .problem("has a scenario, and is like another experiment")
                    .help("remove one of the two"));
            }
            (Some(_), None) => scenario_text(self.text, &experiment.id),
            (None, _) => None,
        };
        experiment.sets = sets(&mut root)?;
        self.scales(&mut root, &mut experiment)?;
        if let Some(like) = like {
            experiment.scenario = like.scenario;
            experiment.sets.splice(0..0, like.sets);
            if !root.has("scale") {
                (experiment.quick, experiment.paper) = (like.quick, like.paper);
            }
            if !root.has("variant") {
                experiment.variants = like.variants;
            }
            if !root.has("bins") {
                experiment.bins = like.bins;
            }
            experiment.needs.extend(like.needs);
        }
        if let Some(scenario) = &experiment.scenario {
            experiment.groups = groups(&Document::parse(self.file, scenario.as_str())?)?;
            if experiment.variants.is_empty() {
                let help = "add [[variant]] with a name and a preset";
                return Err(root.problem("there is a scenario and no variant to run").help(help));
            }
        }
        experiment.vary = self.vary(&mut root, &experiment)?;
        let count = experiment.count();
        if count > MOST_CELLS {
            let message = format!("its variants and values make {count} runs; {MOST_CELLS} is the most");
            return Err(root.problem_at("vary", message).help("vary less at once"));
        }
        let scope = experiment.scope(None);
        experiment.figures = root
            .tables("figure")?
            .into_iter()
            .map(|table| self.figure(table, &experiment))
            .collect::<Result<_, _>>()?;
        experiment.expectations = root
            .tables("expect")?
            .into_iter()
            .map(|table| self.expectation(table, &scope))
            .collect::<Result<_, _>>()?;
        experiment.columns =
            root.tables("column")?.into_iter().map(|table| self.column(table, &scope)).collect::<Result<_, _>>()?;
        root.finish()?;
        Ok(experiment)
    }

    fn like(&self, root: &mut Table<'_>) -> Result<Option<Experiment>, Problem> {
        let Some(like) = root.optional::<String>("like")? else { return Ok(None) };
        let Some(text) = (self.find)(&like) else {
            let problem = root.problem_at("like", format!("there is no experiment {}", quoted(&like)));
            return Err(problem.help("`tailwater claims` lists them"));
        };
        if self.depth >= LONGEST_LIKENESS {
            let problem = root.problem_at("like", "experiments that are like one another form a cycle");
            return Err(problem.help("let one of them have a scenario of its own"));
        }
        read(&format!("{like} (which {} is like)", self.file), text, self.find, self.depth + 1).map(Some)
    }

    fn scales(&self, root: &mut Table<'_>, experiment: &mut Experiment) -> Result<(), Problem> {
        let Some(mut scales) = root.table("scale")? else { return Ok(()) };
        for (name, size) in [("quick", &mut experiment.quick), ("paper", &mut experiment.paper)] {
            let Some(mut table) = scales.table(name)? else { continue };
            size.sets = sets(&mut table)?;
            size.seeds = table.optional("seeds")?.unwrap_or(1);
            if !(1..=MOST_SEEDS).contains(&size.seeds) {
                return Err(table
                    .problem_at("seeds", "seeds is out of range")
                    .help(format!("write 1 to {MOST_SEEDS}")));
            }
            table.finish()?;
        }
        scales.finish()
    }

    fn variants(&self, root: &mut Table<'_>) -> Result<Vec<Variant>, Problem> {
        let mut variants: Vec<Variant> = Vec::new();
        for mut table in root.tables("variant")? {
            let variant = Variant {
                name: table.required("name")?,
                preset: table.optional("preset")?,
                sets: sets(&mut table)?,
                needs: texts(&mut table, "needs")?,
            };
            if variants.iter().any(|other| other.name == variant.name) {
                let problem = table.problem_at("name", format!("there are two variants {}", quoted(&variant.name)));
                return Err(problem.help("give each a name of its own"));
            }
            table.finish()?;
            variants.push(variant);
        }
        Ok(variants)
    }

    fn vary(&self, root: &mut Table<'_>, experiment: &Experiment) -> Result<Vec<Vary>, Problem> {
        let mut all: Vec<Vary> = Vec::new();
        for mut table in root.tables("vary")? {
            let label: String = table.required("label")?;
            let plain = label.starts_with(|c: char| c.is_ascii_lowercase())
                && label.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            let taken = ["variant", "seed", "size", "group", "during", "until", "over", "in"].contains(&label.as_str());
            if !plain || taken || all.iter().any(|other| other.label == label) {
                let problem = table.problem_at("label", format!("{} cannot be a label", quoted(&label)));
                return Err(problem.help("write a word of small letters that stands for nothing else, such as rate"));
            }
            let (title, unit) = axis_title(&mut table, "title")?.unwrap_or_else(|| (label.clone(), None));
            let values = self.values(&mut table)?;
            let names: Vec<&str> = values.iter().map(|value| value.step.name.as_str()).collect();
            let quick = words(&mut table, "quick")?;
            if let Some(bad) = quick.iter().flatten().find(|name| !names.contains(&name.as_str())) {
                let problem = table.problem_at("quick", format!("{} is not among the values", quoted(bad)));
                return Err(problem.help(format!("choose from {}", names.join(", "))));
            }
            let variants = if table.has("variants") { Some(texts(&mut table, "variants")?) } else { None };
            for variant in variants.iter().flatten() {
                known_variant(&table, variant, experiment)?;
            }
            table.finish()?;
            all.push(Vary { label, title, unit, values, quick, variants });
        }
        Ok(all)
    }

    fn values(&self, table: &mut Table<'_>) -> Result<Vec<Value>, Problem> {
        let mut keys = texts(table, "keys")?;
        keys.extend(table.optional::<String>("key")?);
        let mut values: Vec<Value> = Vec::new();
        for name in words(table, "values")?.unwrap_or_default() {
            let sets = keys.iter().map(|key| format!("{key}={name}")).collect();
            values.push(Value { step: Step::new(name, values.len()), sets });
        }
        if !values.is_empty() && keys.is_empty() {
            let problem = table.problem_at("values", "these are the values of nothing");
            return Err(problem.help("add key = a key of the scenario, or keys = several"));
        }
        for mut one in table.tables("value")? {
            let name = match one.item("name") {
                Some(item) => word(&item)?,
                None => return Err(one.missing("name", "text or a number")),
            };
            let mut step = Step::new(name, values.len());
            if let Some(x) = one.optional("x")? {
                (step.x, step.is_number) = (x, true);
            }
            values.push(Value { step, sets: sets(&mut one)? });
            one.finish()?;
        }
        let names: BTreeSet<&str> = values.iter().map(|value| value.step.name.as_str()).collect();
        if values.is_empty() || names.len() < values.len() {
            let problem = table.problem("has no values, or one of them twice");
            return Err(problem.help("add values = [\"a\", \"b\"], or [[vary.value]] with name and set"));
        }
        Ok(values)
    }

    fn figure(&self, mut table: Table<'_>, experiment: &Experiment) -> Result<Figure, Problem> {
        let scope = experiment.scope(None);
        let title: String = table.required("title")?;
        let kind: String = table.required("kind")?;
        let panel: Option<String> = table.optional("panel")?;
        let x: Option<String> = table.optional("x")?;
        for key in panel.iter().chain(x.iter().filter(|_| kind == "lines" || kind == "bars")) {
            let fits = scope.steps(key).is_some_and(|steps| !steps.is_empty());
            if !fits || (key == "variant" && kind != "bars") {
                let place = if panel.as_ref() == Some(key) { "panel" } else { "x" };
                let problem = table.problem_at(place, format!("{} has no values to show", quoted(key)));
                return Err(problem.help("write \"size\" (with bins), a varied label or, for bars, \"variant\""));
            }
        }
        // A curve is of one variant and one value of every label.
        let mut bound: Vec<&str> = vec!["variant"];
        bound.extend(scope.labels.iter().map(|label| label.name.as_str()));
        let parsed = match kind.as_str() {
            "lines" | "bars" => {
                let Some(x) = x.clone() else { return Err(table.missing("x", "\"size\" or a varied label")) };
                bound.push(&x);
                let y = self.expression(&mut table, "y", &scope, &bound)?.1;
                if kind == "lines" { Kind::Lines { x, y } } else { Kind::Bars { x, y } }
            }
            "cdf" | "series" => {
                let (of, probe) = self.quantity(&mut table, &scope, &bound)?;
                let timed = matches!(
                    of,
                    Quantity::Buffer | Quantity::Watermark | Quantity::Queue | Quantity::FlowRate | Quantity::PortRate
                );
                match kind.as_str() {
                    "cdf" => Kind::Cdf { of, probe },
                    _ if timed => Kind::Series { of, probe },
                    _ => {
                        let problem = table.problem_at("of", "has no values over time");
                        return Err(
                            problem.help("write buffer, queue, rate_gbps or sent_gbps, with filters in parentheses")
                        );
                    }
                }
            }
            "sizes" => {
                let workloads = texts(&mut table, "workloads")?;
                if let Some(bad) = workloads.iter().find(|name| !WORKLOADS.contains(&name.as_str())) {
                    let problem = table.problem_at("workloads", format!("there is no workload {}", quoted(bad)));
                    return Err(problem.help(format!("there are {}", WORKLOADS.join(", "))));
                }
                Kind::Sizes { workloads }
            }
            other => {
                let known = ["lines", "bars", "cdf", "series", "sizes"];
                let meant = suggest(other, &known).map_or(String::new(), |meant| format!("did you mean \"{meant}\"? "));
                let problem = table.problem_at("kind", format!("there is no kind of figure {}", quoted(other)));
                return Err(problem.help(format!("{meant}There are {}", known.join(", "))));
            }
        };
        let axis = |table: &mut Table<'_>, name: &str, otherwise: (String, Option<Unit>)| -> Result<Axis, Problem> {
            let (title, unit) = axis_title(table, &format!("{name}_title"))?.unwrap_or(otherwise);
            let scale: Option<String> = table.optional(&format!("{name}_scale"))?;
            match scale.as_deref() {
                None | Some("linear") => Ok(Axis { title, unit, log: false }),
                Some("log") => Ok(Axis { title, unit, log: true }),
                Some(_) => {
                    let problem = table.problem_at(&format!("{name}_scale"), "is neither \"linear\" nor \"log\"");
                    Err(problem.help("write one of the two"))
                }
            }
        };
        let variants = texts(&mut table, "variants")?;
        let (across, up) = match &parsed {
            Kind::Lines { x, .. } | Kind::Bars { x, .. } => (experiment.axis(x), (title.clone(), None)),
            Kind::Cdf { .. } => ((title.clone(), None), ("share of samples".into(), None)),
            Kind::Series { .. } => (("time".into(), Some(Unit::Microseconds)), (title.clone(), None)),
            Kind::Sizes { .. } => {
                ((FLOW_SIZE.into(), Some(Unit::Bytes)), ("share of bytes in flows up to that size".into(), None))
            }
        };
        let names = match &parsed {
            Kind::Bars { x, .. } => figure_steps(&scope, x, &variants),
            Kind::Lines { x, .. } if x != "size" => {
                let steps = figure_steps(&scope, x, &variants);
                if steps.iter().all(|step| step.is_number) { Vec::new() } else { steps }
            }
            _ => Vec::new(),
        };
        let names: Vec<String> = names.into_iter().map(|step| step.name).collect();
        let stated = self.stated(&mut table, &names, &scope, panel.as_deref())?;
        let figure = Figure {
            x: axis(&mut table, "x", across)?,
            y: axis(&mut table, "y", up)?,
            marks: self.marks(&mut table)?,
            stated,
            variants,
            panel,
            kind: parsed,
            title,
        };
        for variant in &figure.variants {
            known_variant(&table, variant, experiment)?;
        }
        table.finish()?;
        Ok(figure)
    }

    fn marks(&self, table: &mut Table<'_>) -> Result<Vec<Mark>, Problem> {
        let mut marks = Vec::new();
        for mut one in table.tables("mark")? {
            let at = self.bound(&mut one, "at")?.ok_or_else(|| one.missing("at", "a number with or without a unit"))?;
            let axis: Option<String> = one.optional("axis")?;
            let level = match axis.as_deref() {
                None | Some("x") => false,
                Some("y") => true,
                Some(_) => {
                    return Err(one.problem_at("axis", "is neither \"x\" nor \"y\"").help("write one of the two"));
                }
            };
            marks.push(Mark { level, at, title: one.required("title")? });
            one.finish()?;
        }
        Ok(marks)
    }

    /// `[[figure.paper]]`: points that the paper states. `names` are those along the horizontal axis, where it has no numbers.
    fn stated(
        &self,
        table: &mut Table<'_>,
        names: &[String],
        scope: &Scope,
        panel: Option<&str>,
    ) -> Result<Vec<Stated>, Problem> {
        let panels: Vec<String> =
            panel.and_then(|key| scope.steps(key)).unwrap_or_default().into_iter().map(|step| step.name).collect();
        let mut stated = Vec::new();
        for mut one in table.tables("paper")? {
            let among = |one: &mut Table<'_>, key: &str, known: &[String]| -> Result<Option<String>, Problem> {
                let Some(item) = one.item(key) else { return Ok(None) };
                let name = word(&item)?;
                if known.contains(&name) {
                    return Ok(Some(name));
                }
                let there = if known.is_empty() {
                    "there are none: leave it out".into()
                } else {
                    format!("there are {}", known.join(", "))
                };
                Err(item.problem(format!("the figure has no {key} {}", quoted(&name))).help(there))
            };
            let variant = among(&mut one, "variant", &scope.variants)?;
            let panel = among(&mut one, "panel", &panels)?;
            let x = match names {
                [] => self.bound(&mut one, "x")?.map(Place::At),
                _ => among(&mut one, "x", names)?.map(Place::Named),
            };
            let x = x.ok_or_else(|| one.missing("x", "a place on the horizontal axis"))?;
            let y = self.bound(&mut one, "y")?.ok_or_else(|| one.missing("y", "a number with or without a unit"))?;
            stated.push(Stated { variant, panel, x, y });
            one.finish()?;
        }
        Ok(stated)
    }

    fn expectation(&self, mut table: Table<'_>, scope: &Scope) -> Result<Expectation, Problem> {
        let paper = table.required("paper")?;
        let (text, value) = self.expression(&mut table, "value", scope, &[])?;
        let range =
            Range { at_least: self.bound(&mut table, "at_least")?, at_most: self.bound(&mut table, "at_most")? };
        let partly = match table.table("partly")? {
            Some(mut partly) => {
                let range = Range {
                    at_least: self.bound(&mut partly, "at_least")?,
                    at_most: self.bound(&mut partly, "at_most")?,
                };
                partly.finish()?;
                Some(range)
            }
            None => None,
        };
        let empty = |range: Range| range.at_least.zip(range.at_most).is_some_and(|(low, high)| low > high);
        if empty(range) || partly.is_some_and(empty) {
            let problem = table.problem_at("value", "no value can lie in this range");
            return Err(problem.help("let at_least be no more than at_most"));
        }
        let wider = |partly: Range| {
            !partly.is_open()
                && partly.at_least.is_none_or(|low| range.at_least.is_some_and(|own| low <= own))
                && partly.at_most.is_none_or(|high| range.at_most.is_some_and(|own| high >= own))
        };
        if partly.is_some_and(|partly| !wider(partly)) {
            let problem = table.problem_at("partly", "is not wider than the range itself");
            return Err(problem.help("give it only bounds that the range has, further out"));
        }
        let expectation = Expectation {
            paper,
            text,
            value,
            range,
            partly,
            band: table.optional("band")?,
            unit: table.optional("unit")?.unwrap_or_default(),
            scale: table.optional("scale")?,
        };
        check_unit(&table, &expectation.unit)?;
        table.finish()?;
        Ok(expectation)
    }

    fn column(&self, mut table: Table<'_>, scope: &Scope) -> Result<Column, Problem> {
        let column = Column {
            title: table.required("title")?,
            value: self.expression(&mut table, "value", scope, &["variant"])?.1,
            better: table.optional("better")?,
            unit: table.optional("unit")?.unwrap_or_default(),
        };
        check_unit(&table, &column.unit)?;
        table.finish()?;
        Ok(column)
    }

    /// A bound: a number, or text that stands for one.
    fn bound(&self, table: &mut Table<'_>, key: &str) -> Result<Option<f64>, Problem> {
        let Some(item) = table.item(key) else { return Ok(None) };
        if let Ok(number) = item.read::<f64>() {
            return Ok(Some(number));
        }
        let Ok(text) = item.read::<String>() else {
            return Err(item.problem("expected a number").help("write a number, or text such as \"16MB\""));
        };
        let parsed = Expression::parse(&text).map_err(|fault| self.place(&item, &text, fault))?;
        match parsed.constant() {
            Some(value) => Ok(Some(value)),
            None => Err(item.problem("is not a number").help("write a number, or text such as \"16MB\"")),
        }
    }

    fn expression(
        &self,
        table: &mut Table<'_>,
        key: &str,
        scope: &Scope,
        bound: &[&str],
    ) -> Result<(String, Expression), Problem> {
        let Some(item) = table.item(key) else { return Err(table.missing(key, "an expression in quotes")) };
        let text: String = item.read()?;
        let parsed = Expression::parse(&text).and_then(|parsed| parsed.check(scope, bound).map(|()| parsed));
        parsed.map(|parsed| (text.clone(), parsed)).map_err(|fault| self.place(&item, &text, fault))
    }

    fn quantity(
        &self,
        table: &mut Table<'_>,
        scope: &Scope,
        bound: &[&str],
    ) -> Result<(Quantity, Expression), Problem> {
        let Some(item) = table.item("of") else { return Err(table.missing("of", "a quantity in quotes")) };
        let text: String = item.read()?;
        let parsed = Expression::parse_quantity(&text).and_then(|parsed| parsed.1.check(scope, bound).map(|()| parsed));
        parsed.map_err(|fault| self.place(&item, &text, fault))
    }

    /// A fault of an expression as a problem at the very character, where the file shows the expression as it is.
    fn place(&self, item: &Item<'_>, expression: &str, fault: Fault) -> Problem {
        let problem = item.problem(fault.message.as_str());
        let exact = || {
            let (line, column) = (problem.line?, problem.column?);
            let start: usize = self.text.split_inclusive('\n').take(line - 1).map(str::len).sum();
            let before: usize = self.text.get(start..)?.chars().take(column - 1).map(char::len_utf8).sum();
            let value = self.text.get(start + before..)?;
            // Up to three quotation marks and a line break stand before it.
            let place = value.find(expression).filter(|place| *place <= 5)?;
            let within: usize = expression.chars().take(fault.at).map(char::len_utf8).sum();
            let offset = start + before + place + within;
            let up_to = self.text.get(..offset)?;
            let line_start = up_to.rfind('\n').map_or(0, |newline| newline + 1);
            let source = self.text.get(line_start..)?.lines().next().unwrap_or_default();
            let lines = up_to.matches('\n').count() + 1;
            Some(Problem::new(self.file, fault.message.as_str()).at(
                lines,
                up_to[line_start..].chars().count() + 1,
                source,
            ))
        };
        let exact = exact();
        exact
            .unwrap_or_else(|| item.problem(format!("{}, at character {}", fault.message, fault.at + 1)))
            .help(fault.help)
    }
}

fn check_unit(table: &Table<'_>, unit: &str) -> Result<(), Problem> {
    if ["", "B", "us", "Gbps", "%", "x"].contains(&unit) {
        return Ok(());
    }
    let problem = table.problem_at("unit", format!("there is no unit {}", quoted(unit)));
    Err(problem.help("write B, us, Gbps, % or x, or leave it out"))
}

/// What a figure goes through along its horizontal axis; of variants, those that it shows.
fn figure_steps(scope: &Scope, x: &str, variants: &[String]) -> Vec<Step> {
    let mut steps = scope.steps(x).unwrap_or_default();
    steps.retain(|step| x != "variant" || variants.is_empty() || variants.contains(&step.name));
    steps
}

fn known_variant(table: &Table<'_>, name: &str, experiment: &Experiment) -> Result<(), Problem> {
    let known: Vec<&str> = experiment.variants.iter().map(|variant| variant.name.as_str()).collect();
    if known.contains(&name) {
        return Ok(());
    }
    let problem = table.problem_at("variants", format!("there is no variant {}", quoted(name)));
    Err(problem.help(format!("there are {}", known.join(", "))))
}

/// `bins = ["1KB", "10KB"]`: up to 1 KB, and from there up to 10 KB. What is larger than the last is in none.
fn bins(root: &mut Table<'_>) -> Result<Vec<Step>, Problem> {
    let ends = texts(root, "bins")?;
    let mut bins = Vec::new();
    let (mut low, mut below) = (String::new(), 0);
    for end in &ends {
        let size: Bytes = end
            .parse()
            .map_err(|error: QuantityError| root.problem_at("bins", error.to_string()).help("write sizes"))?;
        if size.0 <= below {
            return Err(root.problem_at("bins", "the sizes do not increase").help("write them from small to large"));
        }
        bins.push(Step { name: format!("{low}..{end}"), x: size.0 as f64, is_number: true });
        (low, below) = (end.clone(), size.0);
    }
    Ok(bins)
}

/// Names of the groups of flows in a scenario.
fn groups(scenario: &Document) -> Result<Vec<String>, Problem> {
    let mut groups = Vec::new();
    let mut root = scenario.root();
    for key in ["load", "incast", "long", "collective", "job", "flow"] {
        for (place, mut table) in (1..).zip(root.tables(key)?) {
            // The names that a scenario's reader gives to those without one.
            let default = || match (key, place) {
                ("flow", _) => "flows".into(),
                (key, 1) => key.into(),
                (key, place) => format!("{key}{place}"),
            };
            groups.push(table.optional::<String>("name")?.unwrap_or_else(default));
        }
    }
    Ok(groups)
}
