//! A page: one HTML file that needs nothing else.
//!
//! Every figure is in it twice: as data, which the script that comes with the page draws for hovering and zooming, and as
//! the drawing of [`Figure::svg`], which is shown on paper and wherever scripts do not run. The page forbids itself, in its
//! first lines, to load anything from anywhere.

use crate::drawing;
use crate::fabric::Picture;
use crate::figure::{Figure, Series, Sheet};
use crate::folder::NAMED;
use crate::heat::Heat;
use crate::interactive;
use crate::palette::{COLOURS, variable};
use crate::spans::Spans;
use crate::svg::{self, letters};
use crate::text::escape;
use std::fmt::Write;

/// A page of headings, text, tables and figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// The page's name.
    pub title: String,
    /// What it shows, in a sentence or two.
    pub lead: String,
    /// Its parts.
    pub sections: Vec<Section>,
    /// The last line: what made it.
    pub footer: String,
}

/// A part of a page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its name.
    pub heading: String,
    /// What is in it, in order.
    pub blocks: Vec<Block>,
}

/// Something in a section.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// A paragraph. What stands between `` ` `` is set as code.
    Text(String),
    /// A table.
    Table(Table),
    /// A figure.
    Figure(Box<Figure>),
    /// Several figures side by side.
    Sheet(Sheet),
    /// A picture of a fabric.
    Picture(Box<Picture>),
    /// A heat map.
    Heat(Box<Heat>),
    /// A chart of spans.
    Spans(Box<Spans>),
    /// Text as it is, such as a scenario or a command. It is folded away if long.
    Code {
        /// What it is.
        title: String,
        /// The text.
        text: String,
    },
    /// Names and values.
    Facts(Vec<(String, Cell)>),
    /// Files that go with the page, and other pages.
    Links(Vec<Link>),
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows, a cell for every column.
    pub rows: Vec<Vec<Cell>>,
}

/// A column of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// Whether it holds numbers, which are set to the right.
    pub number: bool,
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// What it says.
    pub text: String,
    /// Whether it stands out, such as the best of its column.
    pub strong: bool,
    /// Whether it is a verdict, set as a badge.
    pub tone: Option<Tone>,
    /// Where it leads.
    pub link: Option<String>,
}

/// How good a verdict is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// It holds.
    Good,
    /// It holds in part.
    Fair,
    /// It does not hold.
    Bad,
    /// There is none yet.
    Quiet,
}

/// A link to another page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Link {
    /// What is written.
    pub label: String,
    /// A path relative to the page, or a web address.
    pub target: String,
    /// What to find there.
    pub note: String,
}

impl Page {
    /// A page without sections yet.
    pub fn new(title: impl Into<String>, lead: impl Into<String>) -> Page {
        Page { title: title.into(), lead: lead.into(), ..Default::default() }
    }
}

impl Section {
    /// A section without anything in it yet.
    pub fn new(heading: impl Into<String>) -> Section {
        Section { heading: heading.into(), ..Default::default() }
    }

    /// Adds something at its end.
    pub fn push(&mut self, block: impl Into<Block>) {
        self.blocks.push(block.into());
    }
}

impl From<&str> for Block {
    fn from(text: &str) -> Block {
        Block::Text(text.to_string())
    }
}

impl From<String> for Block {
    fn from(text: String) -> Block {
        Block::Text(text)
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Block {
        Block::Table(table)
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Block {
        Block::Figure(Box::new(figure))
    }
}

impl From<Heat> for Block {
    fn from(heat: Heat) -> Block {
        Block::Heat(Box::new(heat))
    }
}

impl From<Spans> for Block {
    fn from(spans: Spans) -> Block {
        Block::Spans(Box::new(spans))
    }
}

impl From<Picture> for Block {
    fn from(picture: Picture) -> Block {
        Block::Picture(Box::new(picture))
    }
}

impl From<Sheet> for Block {
    fn from(sheet: Sheet) -> Block {
        Block::Sheet(sheet)
    }
}

impl Column {
    /// A column of text.
    pub fn text(name: impl Into<String>) -> Column {
        Column { name: name.into(), number: false }
    }

    /// A column of numbers.
    pub fn number(name: impl Into<String>) -> Column {
        Column { name: name.into(), number: true }
    }
}

impl Cell {
    /// A verdict.
    pub fn badge(tone: Tone, text: impl Into<String>) -> Cell {
        Cell { text: text.into(), tone: Some(tone), ..Default::default() }
    }

    /// The same cell, standing out.
    pub fn strong(self) -> Cell {
        Cell { strong: true, ..self }
    }

    /// The same cell, leading somewhere.
    pub fn link(self, target: impl Into<String>) -> Cell {
        Cell { link: Some(target.into()), ..self }
    }

    fn html(&self, number: bool) -> String {
        let mut html = if number { figures(&self.text) } else { prose(&self.text) };
        if let Some(tone) = self.tone {
            let class = match tone {
                Tone::Good => "good",
                Tone::Fair => "fair",
                Tone::Bad => "bad",
                Tone::Quiet => "quiet",
            };
            html = format!("<span class=\"badge {class}\">{html}</span>");
        }
        if let Some(target) = self.link.as_deref().and_then(address) {
            html = format!("<a href=\"{target}\">{html}</a>");
        }
        // The name of a link is not broken at its arrow.
        if self.text.contains("->") && !self.text.contains(' ') {
            html = format!("<span class=\"whole\">{html}</span>");
        }
        if self.strong { format!("<strong>{html}</strong>") } else { html }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Cell {
        Cell { text: text.into(), ..Default::default() }
    }
}

/// A link's target, escaped: paths, fragments and web addresses, and nothing that runs.
fn address(target: &str) -> Option<String> {
    let scheme = target.split(['/', '?', '#']).next().unwrap_or("").split_once(':').map(|(scheme, _)| scheme);
    let known = scheme.is_none_or(|scheme| ["http", "https", "mailto"].contains(&scheme.to_ascii_lowercase().as_str()));
    known.then(|| escape(target))
}

/// Text with what stands between backquotes as code.
fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let set = |(at, part): (usize, &&str)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    parts.iter().enumerate().map(set).collect()
}

/// A number with its unit, which stay together, and its interval, which may stand below.
fn figures(text: &str) -> String {
    let joined = |text: &str| prose(text).replace(' ', "\u{a0}");
    // So does a rank with its value.
    let one = |text: &str| text.matches(' ').count() == 1 || text.contains(" · ");
    let number = |text: &str| if one(text) { joined(text) } else { prose(text) };
    match text.find(" (").or(text.find(" ±")) {
        Some(at) => format!("{} <span class=\"spread\">{}</span>", number(&text[..at]), joined(&text[at + 1..])),
        None => number(text),
    }
}

/// What a heading or a figure is called in addresses: no two the same.
fn anchor(text: &str, taken: &mut Vec<String>) -> String {
    let words = text.to_lowercase();
    let words: Vec<&str> = words.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let base = if words.is_empty() { "part".to_string() } else { words.join("-") };
    let mut name = base.clone();
    let mut copy = 2;
    while taken.contains(&name) {
        name = format!("{base}-{copy}");
        copy += 1;
    }
    taken.push(name.clone());
    name
}

/// A figure or a sheet, as the page sees them.
struct Drawing<'a> {
    id: &'a str,
    title: &'a str,
    subtitle: &'a str,
    caption: &'a str,
    panels: Vec<&'a Figure>,
    lettered: bool,
    svg: String,
}

impl<'a> Drawing<'a> {
    fn of(block: &'a Block) -> Option<Drawing<'a>> {
        match block {
            Block::Figure(figure) => Some(Drawing {
                id: &figure.id,
                title: &figure.title,
                subtitle: &figure.subtitle,
                caption: &figure.caption,
                panels: vec![figure],
                lettered: false,
                svg: figure.svg(),
            }),
            Block::Sheet(sheet) => Some(Drawing {
                id: &sheet.id,
                title: &sheet.title,
                subtitle: &sheet.subtitle,
                caption: &sheet.caption,
                panels: sheet.figures.iter().collect(),
                lettered: true,
                svg: sheet.svg(),
            }),
            _ => None,
        }
    }

    /// One series of every name.
    fn entries(&self) -> Vec<&'a Series> {
        let mut entries: Vec<&Series> = Vec::new();
        for series in self.panels.iter().filter(|figure| !figure.is_its_own_legend()).flat_map(|figure| &figure.series)
        {
            if entries.iter().all(|known| known.name != series.name) {
                entries.push(series);
            }
        }
        entries
    }

    fn html(&self, out: &mut String, taken: &mut Vec<String>) {
        let wide = if self.panels.len() > 1 { " wide" } else { "" };
        let _ = writeln!(out, "<figure class=\"drawing{wide}\" id=\"{}\">", anchor(self.id, taken));
        let _ = writeln!(out, "<h3>{}</h3>", escape(self.title));
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"setting\">{}</p>", escape(self.subtitle));
        }
        out.push_str("<div class=\"panels\">\n");
        for (figure, letter) in self.panels.iter().zip(letters()) {
            let _ = write!(out, "<div class=\"panel\" {NAMED}{}\">", escape(&figure.id));
            if self.lettered {
                let _ = write!(out, "<h4>({letter}) {}</h4>", escape(&figure.title));
                if !figure.subtitle.is_empty() {
                    let _ = write!(out, "<p class=\"setting\">{}</p>", escape(&figure.subtitle));
                }
            }
            let data = script_safe(&interactive::plot(figure).to_string());
            let _ = writeln!(out, "<div class=\"plot\"></div><script type=\"application/json\">{data}</script></div>");
        }
        out.push_str("</div>\n");
        let entries = self.entries();
        if !entries.is_empty() {
            let _ = writeln!(out, "<div class=\"legend\">{}</div>", entries.into_iter().map(chip).collect::<String>());
        }
        let _ = writeln!(out, "<div class=\"paper\">{}</div>", self.svg);
        out.push_str("<figcaption>");
        if !self.caption.is_empty() {
            let _ = write!(out, "<p>{}</p>", prose(self.caption));
        }
        let mut notes: Vec<String> = self.panels.iter().flat_map(|figure| figure.drawable().notes).collect();
        notes.dedup();
        for note in notes {
            let _ = write!(out, "<p class=\"note\">{}</p>", escape(&note));
        }
        let buttons =
            ["SVG", "PNG", "CSV"].map(|kind| format!("<button type=\"button\" data-save=\"{kind}\">{kind}</button>"));
        let _ = writeln!(out, "<p class=\"save\">Save as {}</p></figcaption>\n</figure>", buttons.join(" "));
    }
}

/// A switch for everything of a name.
fn chip(series: &Series) -> String {
    let (colour, name) = (variable(series.slot), escape(&series.name));
    let mut sample = String::new();
    drawing::svg(&svg::sample(series, "currentColor"), &mut sample);
    format!(
        "<button type=\"button\" class=\"chip\" aria-pressed=\"true\" data-name=\"{name}\">\
         <svg width=\"30\" height=\"14\" viewBox=\"0 -7 30 14\" fill=\"none\" style=\"color:var({colour})\" aria-hidden=\"true\">{}</svg>\
         {name}</button>",
        sample.replace('\n', "")
    )
}

/// JSON that cannot end the script element it stands in.
fn script_safe(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// Colours of the slots as CSS variables.
fn slots(of: fn(&(&'static str, &'static str)) -> &'static str) -> String {
    COLOURS.iter().enumerate().map(|(slot, pair)| format!("--s{slot}:{};", of(pair))).collect()
}

impl Page {
    /// The page as HTML: one file, readable offline.
    pub fn html(&self) -> String {
        let drawings: Vec<Drawing> =
            self.sections.iter().flat_map(|section| &section.blocks).filter_map(Drawing::of).collect();
        let mut taken = vec!["top".to_string()];
        let names: Vec<String> = self.sections.iter().map(|section| anchor(&section.heading, &mut taken)).collect();
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'unsafe-inline'; \
             style-src 'unsafe-inline'; img-src data: blob:\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n\
             :root{{{}}}\n@media screen and (prefers-color-scheme:dark){{:root{{{}}}}}\n{}</style>\n</head>\n<body id=\"top\">\n<main>\n",
            escape(&self.title),
            slots(|pair| pair.0),
            slots(|pair| pair.1),
            include_str!("page/page.css"),
        );
        let _ = writeln!(out, "<header>\n<h1>{}</h1>", escape(&self.title));
        if !self.lead.is_empty() {
            let _ = writeln!(out, "<p class=\"lead\">{}</p>", prose(&self.lead));
        }
        if self.sections.len() > 2 {
            let link =
                |(section, name): (&Section, &String)| format!("<a href=\"#{name}\">{}</a>", escape(&section.heading));
            let links: Vec<String> = self.sections.iter().zip(&names).map(link).collect();
            let _ = writeln!(out, "<nav>{}</nav>", links.join(" "));
        }
        out.push_str("</header>\n");
        out.push_str(&switches(&drawings));
        let mut drawings = drawings.into_iter();
        let some = drawings.len() > 0;
        for (section, name) in self.sections.iter().zip(&names) {
            let _ = writeln!(out, "<section id=\"{name}\">\n<h2>{}</h2>", escape(&section.heading));
            for block in &section.blocks {
                match block {
                    Block::Figure(_) | Block::Sheet(_) => {
                        if let Some(drawing) = drawings.next() {
                            drawing.html(&mut out, &mut taken);
                        }
                    }
                    Block::Text(text) => {
                        let _ = writeln!(out, "<p>{}</p>", prose(text));
                    }
                    Block::Table(table) => table.html(&mut out),
                    Block::Picture(picture) => {
                        let (id, caption) = (anchor(&picture.id, &mut taken), prose(&picture.caption));
                        let _ = writeln!(
                            out,
                            "<figure class=\"picture\" id=\"{id}\" {NAMED}{}\">{}<figcaption><p>{caption}</p></figcaption></figure>",
                            escape(&picture.id),
                            picture.svg()
                        );
                    }
                    Block::Heat(heat) => {
                        let (id, caption) = (anchor(&heat.id, &mut taken), prose(&heat.caption));
                        let _ = writeln!(
                            out,
                            "<figure class=\"picture\" id=\"{id}\" {NAMED}{}\">{}<figcaption><p>{caption}</p></figcaption></figure>",
                            escape(&heat.id),
                            heat.svg()
                        );
                    }
                    Block::Spans(spans) => {
                        let (id, caption) = (anchor(&spans.id, &mut taken), prose(&spans.caption));
                        let _ = writeln!(
                            out,
                            "<figure class=\"picture\" id=\"{id}\" {NAMED}{}\"><div class=\"roomy\">{}</div><div class=\"narrow\">{}</div><figcaption><p>{caption}</p></figcaption></figure>",
                            escape(&spans.id),
                            spans.svg(),
                            spans.narrow_svg()
                        );
                    }
                    Block::Code { title, text } => code(&mut out, title, text),
                    Block::Facts(facts) => {
                        let fact = |(name, value): &(String, Cell)| {
                            format!("<div><dt>{}</dt><dd>{}</dd></div>", prose(name), value.html(false))
                        };
                        let _ = writeln!(out, "<dl>{}</dl>", facts.iter().map(fact).collect::<String>());
                    }
                    Block::Links(links) => {
                        let _ = writeln!(
                            out,
                            "<ul class=\"links\">{}</ul>",
                            links.iter().map(Link::html).collect::<String>()
                        );
                    }
                }
            }
            out.push_str("</section>\n");
        }
        if !self.footer.is_empty() {
            let _ = writeln!(out, "<footer>{}</footer>", prose(&self.footer));
        }
        out.push_str("</main>\n");
        if some {
            let (plot, page) = (include_str!("page/plot.js"), include_str!("page/page.js"));
            let _ = writeln!(out, "<script>\n{plot}{page}</script>");
        }
        out.push_str("</body>\n</html>\n");
        out
    }
}

/// Switches at the head of the page for names that several figures share.
fn switches(drawings: &[Drawing]) -> String {
    let mut shared: Vec<(&Series, usize)> = Vec::new();
    for series in drawings.iter().flat_map(Drawing::entries) {
        match shared.iter_mut().find(|(known, _)| known.name == series.name) {
            Some((_, count)) => *count += 1,
            None => shared.push((series, 1)),
        }
    }
    let chips: Vec<String> =
        shared.into_iter().filter(|(_, count)| *count > 1).map(|(series, _)| chip(series)).collect();
    if chips.len() < 2 {
        return String::new();
    }
    let hint = "Click to switch off and on in every figure, double-click to see one alone";
    format!("<div class=\"switches\" title=\"{hint}\"><span>Show</span>{}</div>\n", chips.concat())
}

/// A table of more columns than this may be wider than the text.
const BROAD: usize = 6;

/// Text of more letters than that is read, not looked at.
const LONG: usize = 30;

impl Table {
    fn html(&self, out: &mut String) {
        let broad = if self.columns.len() > BROAD { " broad" } else { "" };
        let _ = write!(out, "<div class=\"table{broad}\"><table>");
        if !self.caption.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", prose(&self.caption));
        }
        let number = |at: usize| self.columns.get(at).is_some_and(|column| column.number);
        let long = |cell: &Cell| cell.text.chars().count() > LONG;
        let words: Vec<bool> =
            (0..self.columns.len()).map(|at| self.rows.iter().filter_map(|row| row.get(at)).any(long)).collect();
        let side = |at: usize| match (number(at), words.get(at)) {
            (true, _) => " class=\"number\"",
            (false, Some(true)) => " class=\"words\"",
            _ => "",
        };
        let heads = self
            .columns
            .iter()
            .enumerate()
            .map(|(at, column)| format!("<th scope=\"col\"{}>{}</th>", side(at), prose(&column.name)));
        let _ = write!(out, "<thead><tr>{}</tr></thead><tbody>", heads.collect::<String>());
        for row in &self.rows {
            let cells = row.iter().enumerate().map(|(at, cell)| {
                let side = side(at);
                format!("<td{side}>{}</td>", cell.html(number(at)))
            });
            let _ = writeln!(out, "<tr>{}</tr>", cells.collect::<String>());
        }
        out.push_str("</tbody></table></div>\n");
    }
}

impl Link {
    fn html(&self) -> String {
        let label = prose(&self.label);
        let label = address(&self.target).map_or(label.clone(), |target| format!("<a href=\"{target}\">{label}</a>"));
        let note = if self.note.is_empty() { String::new() } else { format!(" <span>{}</span>", prose(&self.note)) };
        format!("<li>{label}{note}</li>")
    }
}

/// Code, folded away if it is long.
fn code(out: &mut String, title: &str, text: &str) {
    let (title, long) = (prose(title), text.lines().count() > 14);
    let text = format!("<pre><code>{}</code></pre>", escape(text.trim_end()));
    let _ = match (title.is_empty(), long) {
        (true, _) => writeln!(out, "{text}"),
        (_, false) => writeln!(out, "<p class=\"name\">{title}</p>{text}"),
        (_, true) => writeln!(out, "<details><summary>{title}</summary>{text}</details>"),
    };
}
