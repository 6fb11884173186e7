//! Published results: what came out of a row when it was last run for everyone, and in which version of the row.
//!
//! The files of `published/` are part of the program, as those of `experiments/` are.

use crate::earlier::EARLIER;
use crate::evidence::{Evidence, Measured};
use crate::experiment::{Experiment, Scale};
use crate::expression::Bindings;
use crate::{judge, papers};
use files::problem::Problem;
use results::verdict::{Holds, Judged, Overall, Verdict, tally};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Where published results are, in the repository.
pub const FOLDER: &str = "published";

/// How a result comes to be of its row's runs again.
const AGAIN: &str = "publish it again: `tailwater reproduce ID --scale paper --publish`";

/// A published result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Published {
    /// The row.
    pub id: String,
    /// The paper it is from.
    pub paper: String,
    /// Where in the paper.
    pub place: String,
    /// What it is about.
    pub title: String,
    /// Whether it holds.
    pub verdict: Overall,
    /// How many expectations hold,
    pub hold: usize,
    /// of how many that claim something.
    pub claims: usize,
    /// How large it was run.
    pub scale: String,
    /// The seeds.
    pub seeds: Vec<u64>,
    /// The runs, how many.
    pub runs: usize,
    /// What runs it again.
    pub command: String,
    /// Version of the program.
    pub version: String,
    /// Digest of the code that decides results.
    pub code: String,
    /// The day.
    pub date: String,
    /// The day on which its values were judged again; none if that was when they were measured.
    #[serde(default)]
    pub judged: Option<String>,
    /// Digest of what decides the row's runs.
    #[serde(default)]
    pub setting: String,
    /// Digest of the row: of everything that decides its runs and how they are judged.
    pub experiment: String,
    /// What it needs that is not there yet.
    pub needs: Vec<String>,
    /// The figures beside it.
    pub figures: Vec<String>,
    /// One by one.
    pub expectations: Vec<Judged>,
}

impl Experiment {
    /// What decides the runs at a scale, and the bins that their flows are counted in, with what it has from the experiments it is like.
    fn decides_runs(&self, scale: Scale) -> Result<String, Problem> {
        let mut text = String::new();
        let mut say = |what: &str, value: &dyn std::fmt::Debug| text += &format!("{what} {value:?}\n");
        if let Some(scenario) = &self.scenario {
            say("scenario", &scenario::document::Document::parse(self.id.as_str(), scenario.as_str())?.canonical());
        }
        for cell in self.cells(scale) {
            say("run", &(cell.variant, cell.values, cell.sets));
        }
        for step in self.scope(Some(scale)).bins {
            say("bin", &step.name);
        }
        Ok(text)
    }

    /// The digest of everything that decides the runs at a scale: while it stays, what was measured stays.
    pub fn setting(&self, scale: Scale) -> Result<String, Problem> {
        Ok(store::Digest::of(&self.decides_runs(scale)?).to_string())
    }

    /// The digest of everything that decides the runs at a scale and how they are judged. Titles, readings and figures have no part in it.
    pub fn digest(&self, scale: Scale) -> Result<String, Problem> {
        let mut text = self.decides_runs(scale)?;
        let mut say = |what: &str, value: &dyn std::fmt::Debug| text += &format!("{what} {value:?}\n");
        let judged = |only: Option<Scale>| only.is_none_or(|only| only == scale);
        for expect in self.expectations.iter().filter(|expect| judged(expect.scale)) {
            let partly = expect.partly.unwrap_or_default();
            let bounds = [expect.range.at_least, expect.range.at_most, partly.at_least, partly.at_most];
            say("expect", &(&expect.paper, words(&expect.text), bounds, &expect.unit));
        }
        Ok(store::Digest::of(&text).to_string())
    }
}

/// An expression as it is compared: however its words are set.
fn words(expression: &str) -> String {
    expression.split_whitespace().collect::<Vec<&str>>().join(" ")
}

impl Published {
    /// What is to be published of an experiment.
    pub fn new(
        experiment: &Experiment,
        scale: Scale,
        evidence: &Evidence<'_>,
        verdict: &Verdict,
        command: &str,
        code: &str,
    ) -> Result<Published, Problem> {
        let (hold, claims) = verdict.tally();
        Ok(Published {
            id: experiment.id.clone(),
            paper: experiment.document.clone(),
            place: experiment.place.clone(),
            title: experiment.title.clone(),
            verdict: verdict.verdict,
            hold,
            claims,
            scale: scale.name().into(),
            seeds: evidence.seeds().collect(),
            runs: verdict.runs,
            command: command.into(),
            version: verdict.tailwater.into(),
            code: code.into(),
            date: today(),
            judged: None,
            setting: experiment.setting(scale)?,
            experiment: experiment.digest(scale)?,
            needs: verdict.needs.clone(),
            figures: Vec::new(),
            expectations: verdict.expectations.clone(),
        })
    }

    /// Reads one that was written.
    pub fn read(file: &str, text: &str) -> Result<Published, Problem> {
        serde_json::from_str(text).map_err(|error| {
            Problem::new(file, format!("is no published result: {error}"))
                .help("publish it again: `tailwater reproduce ID --scale paper --publish`")
        })
    }

    /// As it is written.
    pub fn text(&self) -> Result<String, Problem> {
        let text = serde_json::to_string_pretty(self);
        let problem = |error| Problem::new(format!("{FOLDER}/{}.json", self.id), format!("cannot be written: {error}"));
        Ok(text.map_err(problem)? + "\n")
    }

    /// As it is written in the place of `old`, whose numbers keep their digits: to read and to write one may change its last digit.
    pub fn text_over(&self, old: &str) -> Result<String, Problem> {
        // The last word of a line, and what it is read as.
        fn number(line: &str) -> Option<(&str, &str, u64)> {
            let (head, last) = line.trim_end_matches(',').rsplit_once(' ')?;
            let read = serde_json::from_str::<f64>(last).ok().filter(|_| last.contains('.'))?;
            Some((head, last, read.to_bits()))
        }
        let mut digits: BTreeMap<u64, VecDeque<&str>> = BTreeMap::new();
        old.lines().filter_map(number).for_each(|(_, last, read)| digits.entry(read).or_default().push_back(last));
        let mut known = |last: &str| {
            let all = digits.get_mut(&last.parse::<f64>().ok()?.to_bits())?;
            if all.len() > 1 { all.pop_front() } else { all.front().copied() }
        };
        let line = |line: &str| {
            let end = if line.ends_with(',') { "," } else { "" };
            let kept = number(line).and_then(|(head, last, _)| Some(format!("{head} {}{end}\n", known(last)?)));
            kept.unwrap_or_else(|| format!("{line}\n"))
        };
        Ok(self.text()?.lines().map(line).collect())
    }

    /// Writes it and its figures below `folder`: `ID.json`, `ID-1.svg` and so on. Figures of an earlier one are removed.
    pub fn write(&mut self, folder: &Path, drawings: &[String]) -> Result<PathBuf, Problem> {
        let path = |ending: &str| folder.join(format!("{}{ending}", self.id));
        let file = path(".json");
        files::make_folder(file.parent().unwrap_or(folder))?;
        let mut written: Vec<(PathBuf, String)> = Vec::new();
        let mut figures = Vec::new();
        for (number, svg) in (1..).zip(drawings) {
            let place = path(&format!("-{number}.svg"));
            figures.extend(place.file_name().map(|name| name.to_string_lossy().into_owned()));
            written.push((place, svg.clone()));
        }
        for number in drawings.len() + 1.. {
            if std::fs::remove_file(path(&format!("-{number}.svg"))).is_err() {
                break;
            }
        }
        self.figures = figures;
        written.push((file.clone(), self.text()?));
        let all: Vec<(&Path, &str)> = written.iter().map(|(path, text)| (path.as_path(), text.as_str())).collect();
        files::write_all(&all)?;
        Ok(file)
    }

    fn problem(&self, message: impl Into<String>, help: &str) -> Problem {
        Problem::new(format!("{FOLDER}/{}.json", self.id), message).help(help.replace("ID", &self.id))
    }

    /// The row that it is of, and at which scale.
    fn row<'a>(&self, rows: &'a [Experiment]) -> Result<(&'a Experiment, Scale), Problem> {
        let Some(row) = rows.iter().find(|row| row.id == self.id) else {
            return Err(self.problem("is of no row", "remove it and its figures, or give back the row"));
        };
        match [Scale::Quick, Scale::Paper].into_iter().find(|scale| scale.name() == self.scale) {
            Some(scale) => Ok((row, scale)),
            None => Err(self.problem("has a scale that does not exist", AGAIN)),
        }
    }

    /// What is wrong with it beside the rows that there are; `None` if it is of a row as it is.
    pub fn stale(&self, rows: &[Experiment]) -> Option<Problem> {
        let digests = |(row, scale): (&Experiment, Scale)| Ok((row.setting(scale)?, row.digest(scale)?));
        match self.row(rows).and_then(digests) {
            Ok((_, digest)) if self.setting.is_empty() && digest == self.experiment => Some(self.problem(
                "does not say what decides its runs",
                "it is of its row as it is: `tailwater claims --rejudge` writes it down",
            )),
            Ok((setting, _)) if setting != self.setting => {
                Some(self.problem("was made by another version of its experiment, with other runs", AGAIN))
            }
            Ok((_, digest)) if digest != self.experiment => Some(self.problem(
                "was judged by another version of its experiment",
                "its runs are the same: `tailwater claims --rejudge` judges it again",
            )),
            Ok(_) => None,
            Err(problem) => Some(problem),
        }
    }

    /// The same values, judged by its row as that is now; `None` where nothing changes. It is refused where the row's runs are others now,
    /// or where it asks what was not measured.
    pub fn rejudged(&self, rows: &[Experiment]) -> Result<Option<Published>, Problem> {
        let (row, scale) = self.row(rows)?;
        let mut new = self.clone();
        // What was published before there were two digests: the one has the other in it.
        if new.setting.is_empty() && self.experiment == row.digest(scale)? {
            new.setting = row.setting(scale)?;
        }
        if new.setting != row.setting(scale)? {
            return Err(self.problem("is of other runs than its experiment has now", AGAIN));
        }
        let scope = row.scope(Some(scale));
        let meant = row.expectations.iter().filter(|expect| expect.scale.is_none_or(|only| only == scale));
        let mut expectations = Vec::new();
        for expect in meant {
            let probes = expect.value.probes(&scope, &Bindings::new());
            let there = |variant: Option<&str>| variant.is_none_or(|variant| row.missing(variant).is_empty());
            // A question goes over those variants that there are, and a claim over all.
            let all = probes.iter().all(|probe| there(probe.filter("variant")));
            let asks = |known: &&Judged| all || known.range().is_open() == expect.range.is_open();
            let same = |known: &&Judged| words(&known.expression) == words(&expect.text) && known.unit == expect.unit;
            let Some(known) = self.expectations.iter().filter(asks).find(same) else {
                let message = format!("has no value of \"{}\": {}", expect.paper, words(&expect.text));
                return Err(
                    self.problem(message, "it is new: run it again: `tailwater reproduce ID --scale paper --publish`")
                );
            };
            let mut judged = judge::unjudged(expect, known.needs.clone());
            match known.value {
                Some(value) => {
                    let seeds = if probes.is_empty() { 0 } else { self.seeds.len() };
                    let (interval, samples, few) = (known.interval, known.samples, known.few_samples);
                    judge::tell(&mut judged, &Measured { value, interval, seeds, samples, few });
                }
                None => judged.why = known.why.clone(),
            }
            expectations.push(judged);
        }
        let needs: BTreeSet<String> = expectations.iter().flat_map(|judged| judged.needs.iter().cloned()).collect();
        new.needs = needs.into_iter().collect();
        (new.hold, new.claims) = tally(&expectations);
        (new.verdict, new.experiment) = (judge::overall(&expectations), row.digest(scale)?);
        if new.expectations != expectations {
            (new.expectations, new.judged) = (expectations, Some(today()));
        }
        (new.paper, new.place, new.title) = (row.document.clone(), row.place.clone(), row.title.clone());
        Ok((new != *self).then_some(new))
    }

    /// Verdict, expectations that hold, scale and seeds, in a line.
    pub fn line(&self) -> String {
        let seeds = match self.seeds.len() {
            0 => String::new(),
            1 => ", 1 seed".into(),
            seeds => format!(", {seeds} seeds"),
        };
        let needs = match self.needs.as_slice() {
            [] => self.verdict.name().to_string(),
            needs => format!("needs {}", needs.join(", ")),
        };
        match self.claims {
            0 => format!("{needs} ({}{seeds})", self.scale),
            claims => format!("{needs} ({} of {claims}, {}{seeds})", self.hold, self.scale),
        }
    }
}

/// Today's date in universal time.
fn today() -> String {
    let seconds = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    date(seconds / 86_400)
}

/// The date so many days after 1 January 1970.
pub(crate) fn date(mut days: u64) -> String {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + leap(year) as u64 {
        days -= 365 + leap(year) as u64;
        year += 1;
    }
    let february = 28 + leap(year) as u64;
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02}", days + 1)
}

/// A row of the ledger and what was published of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The row.
    pub experiment: Experiment,
    /// Its published result.
    pub published: Option<Published>,
}

/// Every published result that is part of the program.
pub fn all() -> Result<Vec<Published>, Problem> {
    crate::PUBLISHED.iter().map(|(id, text)| Published::read(&format!("{FOLDER}/{id}.json"), text)).collect()
}

/// All rows with their published results, in order.
pub fn rows() -> Result<Vec<Row>, Problem> {
    let mut published = all()?;
    let row = |experiment: Experiment| {
        let place = published.iter().position(|published| published.id == experiment.id);
        Row { published: place.map(|place| published.swap_remove(place)), experiment }
    };
    Ok(crate::all()?.into_iter().map(row).collect())
}

/// What was published below a folder, of the rows that there are: files, texts and what they say.
pub fn below(folder: &Path) -> Result<Vec<(PathBuf, String, Published)>, Problem> {
    let mut found = Vec::new();
    for id in crate::ids() {
        let path = folder.join(format!("{id}.json"));
        if path.is_file() {
            let text = files::problem::read_text(&path)?;
            let published = Published::read(&path.display().to_string(), &text)?;
            found.push((path, text, published));
        }
    }
    Ok(found)
}

/// Every published result that is not of a row as it is, or not in the place of its id.
pub fn stale() -> Result<Vec<Problem>, Problem> {
    let (rows, mut problems) = (crate::all()?, Vec::new());
    for ((id, _), published) in crate::PUBLISHED.iter().zip(all()?) {
        if *id != published.id {
            let problem = Problem::new(format!("{FOLDER}/{id}.json"), format!("is of {}", published.id));
            problems.push(problem.help("let its path be its id"));
        }
        problems.extend(published.stale(&rows));
    }
    Ok(problems)
}

impl Published {
    /// How many of its expectations hold.
    fn holding(&self) -> String {
        if self.claims > 0 { format!("{} of {}", self.hold, self.claims) } else { String::new() }
    }
}

/// The most expectations that a table names as not holding.
const MOST_NAMED: usize = 3;

/// Text in a cell of a table.
pub(crate) fn cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

impl Row {
    /// The key of its paper.
    pub(crate) fn key(&self) -> &str {
        self.experiment.id.split('/').next().unwrap_or_default()
    }

    /// Where in its paper what it is about is, and in which if its folder is not that of one.
    pub(crate) fn whence(&self) -> String {
        let (document, place) = (&self.experiment.document, cell(&self.experiment.place));
        if papers::shared(self.key(), document) { format!("{}: {place}", cell(document)) } else { place }
    }

    /// How many of its expectations hold, with a link to each of its numbers.
    fn holding(&self) -> String {
        let Some(published) = &self.published else { return String::new() };
        let words = match published.holding() {
            none if none.is_empty() => "numbers".into(),
            words => words,
        };
        // As headings are linked to: signs are left out.
        let anchor: String = self.experiment.id.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
        format!("[{words}](DOCS/numbers/{}.md#{anchor})", self.key())
    }

    /// Its name, with a link to its file.
    fn link(&self) -> String {
        format!("[{0}](EXPERIMENTS/{0}.toml)", self.experiment.id)
    }

    /// The row in the table of all rows, which has to be short.
    fn short(&self) -> String {
        let (name, title) = (self.link(), cell(&self.experiment.title));
        let Some(published) = &self.published else {
            return format!("| {name} | {title} | not published | | |\n");
        };
        let (verdict, seeds) = (published.verdict.name(), published.seeds.len());
        let scale = if published.scale == "paper" { String::new() } else { format!(" ({} scale)", published.scale) };
        format!("| {name} | {title} | {verdict}{scale} | {} | {seeds} |\n", self.holding())
    }

    /// The row in its paper's table.
    fn markdown(&self) -> String {
        let experiment = &self.experiment;
        let name = self.link();
        let Some(published) = &self.published else {
            let cost = experiment.cost.as_ref().map_or(String::new(), |cost| format!(": {}", cell(cost)));
            return format!("| {name} | {} | not published{cost} | | | | |\n", self.whence());
        };
        let failing = || published.expectations.iter().filter(|judged| judged.holds == Holds::No);
        let mut named: Vec<String> = failing()
            .take(MOST_NAMED)
            .map(|judged| format!("{}: {} ({})", judged.paper, judged.measured(), judged.range().show(&judged.unit)))
            .collect();
        if failing().count() > MOST_NAMED {
            named.push(format!("and {} more", failing().count() - MOST_NAMED));
        }
        format!(
            "| {name} | {} | {} | {} | {} | {} | {} |\n",
            self.whence(),
            published.verdict.name(),
            self.holding(),
            published.scale,
            published.seeds.len(),
            cell(&named.join("; ")),
        )
    }

    /// For programs; `here` is what was found on this machine.
    pub fn json(&self, here: Value) -> Value {
        let experiment = &self.experiment;
        let paper = papers::named(&experiment.document);
        json!({
            "id": experiment.id,
            "paper": paper.map_or_else(|| json!({ "name": experiment.document }), |paper| paper.json()),
            "cites": experiment.cites.iter().filter_map(|name| Some(papers::named(name)?.json())).collect::<Vec<Value>>(),
            "place": experiment.place,
            "title": experiment.title,
            "cost": experiment.cost,
            "published": self.published,
            "here": here,
        })
    }
}

/// The rows as a table in Markdown: all, or those of the paper with that key. `folder` is the path to the repository from where the table is;
/// the table is there or in the folder of the documentation.
pub fn markdown(rows: &[Row], paper: Option<&str>, folder: &str) -> String {
    let docs = if folder.is_empty() { "docs/" } else { "" };
    let placed = |table: String| table.replace("EXPERIMENTS/", &format!("{folder}experiments/")).replace("DOCS/", docs);
    let Some(key) = paper else {
        let head = "| row | about | verdict at paper scale | hold | seeds |\n|---|---|---|---|---|\n";
        return head.to_string() + &placed(rows.iter().map(Row::short).collect());
    };
    let own = |row: &&Row| row.key() == key;
    let head = "| row | in the paper | verdict | holds | scale | seeds | does not hold: measured (expected) |\n|---|---|---|---|---|---|---|\n";
    let body: String = rows.iter().filter(own).map(Row::markdown).collect();
    head.to_string() + &placed(body)
}

/// A text with everything between its markers brought up to date; `folder` is the path from the text's folder to the repository. Markers are
/// `<!-- ledger:begin -->` and `<!-- ledger:end -->` for all rows, with `:KEY` after `ledger` for those of a paper, `ledger:changes` for verdicts from
/// what to what, `ledger:counts` for how many rows of each paper have which verdict, and `papers` for the papers.
pub fn refreshed(text: &str, rows: &[Row], folder: &str) -> Result<String, Problem> {
    let mut out = text.to_string();
    let mut keys: Vec<Option<String>> = vec![None];
    keys.extend(papers::all()?.into_iter().map(|paper| Some(paper.folder)));
    keys.dedup();
    for key in keys {
        let name = key.as_ref().map_or("ledger".to_string(), |key| format!("ledger:{key}"));
        out = between(&out, &name, &markdown(rows, key.as_deref(), folder));
    }
    out = between(&out, "ledger:changes", &changes(rows));
    let docs = if folder.is_empty() { "docs/" } else { "" };
    out = between(&out, "ledger:counts", &counts(rows, docs));
    Ok(between(&out, "papers", &papers::markdown()?))
}

/// How many rows there are of each verdict, paper by paper and in all. `docs` is the path to the folder of that name.
fn counts(rows: &[Row], docs: &str) -> String {
    let verdict = |row: &Row| row.published.as_ref().map(|published| published.verdict);
    let named =
        [Overall::Holds, Overall::InPart, Overall::Fails, Overall::CannotTell, Overall::Measured, Overall::Needs];
    let mut known: Vec<Option<Overall>> = named.into_iter().map(Some).collect();
    known.retain(|name| rows.iter().any(|row| verdict(row) == *name));
    known.push(None);
    let line = |title: &str, rows: &[&Row]| {
        let cells = known.iter().map(|name| rows.iter().filter(|row| verdict(row) == *name).count());
        let cells: String = cells.map(|count| if count == 0 { " |".into() } else { format!(" {count} |") }).collect();
        format!("| {title} | {} |{cells}\n", rows.len())
    };
    let mut keys: Vec<&str> = Vec::new();
    for row in rows {
        if !keys.contains(&row.key()) {
            keys.push(row.key());
        }
    }
    let titles: String =
        known.iter().map(|name| format!(" {} |", name.map_or("not published", Overall::name))).collect();
    let mut out = format!("| rows of | all |{titles}\n|---|--:|{}\n", "--:|".repeat(known.len()));
    for key in keys {
        let own: Vec<&Row> = rows.iter().filter(|row| row.key() == key).collect();
        out += &line(&format!("[{key}]({docs}{key}.md)"), &own);
    }
    out + &line("all", &rows.iter().collect::<Vec<_>>())
}

/// The rows that are published and had another verdict before, from what to what, and why.
fn changes(rows: &[Row]) -> String {
    let changed = EARLIER.iter().filter_map(|(id, before, why)| {
        let published = rows.iter().find(|row| row.experiment.id == *id)?.published.as_ref()?;
        let now = published.verdict.name();
        let other = before.split("; ").any(|before| before.split(',').next() != Some(now));
        let holding = published.holding();
        let now = if holding.is_empty() { now.to_string() } else { format!("{now}, {holding}") };
        other.then(|| format!("| {id} | {before} | {now} | {why} |\n"))
    });
    "| row | before | now | why |\n|---|---|---|---|\n".to_string() + &changed.collect::<String>()
}

/// A text with `new` between the markers of that name, if it has them.
fn between(text: &str, name: &str, new: &str) -> String {
    let (begin, end) = (format!("<!-- {name}:begin -->\n"), format!("<!-- {name}:end -->"));
    let Some((before, rest)) = text.split_once(&begin) else { return text.into() };
    let Some((_, after)) = rest.split_once(&end) else { return text.into() };
    format!("{before}{begin}{new}{end}{after}")
}
