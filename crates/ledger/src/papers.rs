//! The papers that rows and schemes come from.

use files::problem::Problem;
use scenario::document::{Document, Table};
use serde_json::{Value, json};

const FILE: &str = "papers.toml";

/// A paper, or a standard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paper {
    /// Its key.
    pub key: String,
    /// The folder of its rows.
    pub folder: String,
    /// What rows call it.
    pub name: String,
    /// Who wrote it; none where the source does not say.
    pub authors: Vec<String>,
    /// Its title.
    pub title: String,
    /// Where it was published.
    pub venue: String,
    /// When.
    pub year: Option<u64>,
    /// Its digital object identifier.
    pub doi: Option<String>,
    /// Where it can be read.
    pub url: Option<String>,
    /// What else is to be known.
    pub note: Option<String>,
    /// The names of the schemes that come from it.
    pub schemes: Vec<String>,
    /// Presets that come from it and not from a scheme of theirs alone, or a word between the plus signs of their names.
    pub presets: Vec<String>,
}

impl Paper {
    fn read(mut table: Table<'_>) -> Result<Paper, Problem> {
        let mut texts = |key: &str| match table.item(key) {
            Some(item) => item.items()?.iter().map(|item| item.read()).collect::<Result<Vec<String>, Problem>>(),
            None => Ok(Vec::new()),
        };
        let (authors, schemes, presets) = (texts("authors")?, texts("schemes")?, texts("presets")?);
        let key: String = table.required("key")?;
        let paper = Paper {
            folder: table.optional("folder")?.unwrap_or_else(|| key.clone()),
            key,
            name: table.required("name")?,
            authors,
            title: table.required("title")?,
            venue: table.required("venue")?,
            year: table.optional("year")?,
            doi: table.optional("doi")?,
            url: table.optional("url")?,
            note: table.optional("note")?,
            schemes,
            presets,
        };
        table.finish()?;
        Ok(paper)
    }

    /// Where it can be found on the web.
    pub fn link(&self) -> Option<String> {
        self.doi.as_ref().map(|doi| format!("https://doi.org/{doi}")).or_else(|| self.url.clone())
    }

    /// For people, in a line.
    pub fn cite(&self) -> String {
        let authors = match self.authors.split_last() {
            None => String::new(),
            Some((last, [])) => format!("{last}, "),
            Some((last, others)) => format!("{} and {last}, ", others.join(", ")),
        };
        let year = self.year.map_or(String::new(), |year| format!(", {year}"));
        let link = self.link().map_or(String::new(), |link| format!(", {link}"));
        format!("{authors}{}, {}{year}{link}", self.title, self.venue)
    }

    /// For programs.
    pub fn json(&self) -> Value {
        json!({
            "key": self.key,
            "name": self.name,
            "authors": self.authors,
            "title": self.title,
            "venue": self.venue,
            "year": self.year,
            "doi": self.doi,
            "url": self.url,
            "note": self.note,
        })
    }
}

/// All papers, in order.
pub fn all() -> Result<Vec<Paper>, Problem> {
    let document = Document::parse(FILE, include_str!("../papers.toml"))?;
    let mut root = document.root();
    let papers = root.tables("paper")?.into_iter().map(Paper::read).collect::<Result<_, _>>()?;
    root.finish()?;
    Ok(papers)
}

/// The paper that rows call `name`.
pub fn named(name: &str) -> Option<Paper> {
    all().ok()?.into_iter().find(|paper| paper.name == name)
}

/// Whether the rows of a folder are of several papers, of which none gives it its name, and the one that rows call `name` is among them.
pub fn shared(folder: &str, name: &str) -> bool {
    let papers = all().unwrap_or_default();
    papers.iter().any(|paper| paper.name == name) && papers.iter().all(|paper| paper.key != folder)
}

/// The paper that a scheme comes from.
pub fn of_scheme(name: &str) -> Option<Paper> {
    all().ok()?.into_iter().find(|paper| paper.schemes.iter().any(|scheme| scheme == name))
}

/// The papers that a preset comes from: of the mechanisms that it chooses, and its own.
pub fn of_preset(name: &str, settings: &[(&str, &str)]) -> Vec<Paper> {
    let chosen = |paper: &Paper| settings.iter().any(|(_, value)| paper.schemes.iter().any(|scheme| scheme == value));
    let own = |paper: &Paper| paper.presets.iter().any(|own| own == name || name.split('+').any(|part| part == own));
    let (mut papers, others): (Vec<Paper>, Vec<Paper>) = all().unwrap_or_default().into_iter().partition(own);
    papers.extend(others.into_iter().filter(chosen));
    papers
}

/// The papers as a table in Markdown.
pub fn markdown() -> Result<String, Problem> {
    let mut out = String::from("| key | paper |\n|---|---|\n");
    for paper in all()? {
        let note = paper.note.as_ref().map_or(String::new(), |note| format!(". {note}"));
        out += &format!("| {} | {}{note} |\n", paper.key, paper.cite());
    }
    Ok(out)
}
