//! Links: where they lead, and which lead nowhere.

use pulldown_cmark::{Event, Options, Parser, Tag};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

/// What the links of all pages come to.
#[derive(Default)]
pub struct Found {
    /// Files outside of the pages' folder that are linked to.
    pub files: BTreeSet<PathBuf>,
    /// Links that lead nowhere.
    pub problems: Vec<String>,
}

/// A page whose links are to be made ready for the book.
pub struct Page<'a> {
    /// The repository.
    pub root: &'a Path,
    /// All pages, from the pages' folder.
    pub pages: &'a BTreeSet<PathBuf>,
    /// The file that its text is from, from the repository.
    pub name: &'a Path,
    /// The folder from which its links are meant.
    pub folder: &'a Path,
    /// The page, from the pages' folder.
    pub path: &'a Path,
}

impl Page<'_> {
    /// Its text with links that lead to the same from its place in the book.
    pub fn rewritten(&self, text: &str, found: &mut Found) -> String {
        let mut out = text.to_string();
        // From the end, so that places before stay what they are.
        for (place, link) in of_markdown(text).into_iter().rev() {
            match self.target(&link, found) {
                Ok(Some(new)) => out.replace_range(place, &new),
                Ok(None) => {}
                Err(why) => {
                    let line = text[..place.start].lines().count().max(1);
                    found.problems.push(format!("{}:{line}: {link} {why}", self.name.display()));
                }
            }
        }
        out
    }

    /// The link to be written in place of one; none where that may stay.
    fn target(&self, link: &str, found: &mut Found) -> Result<Option<String>, &'static str> {
        let (file, anchor) = split(link);
        if is_elsewhere(link) || file.is_empty() {
            return Ok(None);
        }
        let target = within(&self.folder.join(file)).ok_or("leads out of the repository")?;
        let full = self.root.join(&target);
        if full.is_dir() {
            return Err("is a folder, which a book does not show: link to a file, or write the name as code");
        }
        if !full.exists() {
            return Err("does not exist");
        }
        // A text of the root that is a page, too.
        let twin =
            target.file_stem().map(|stem| PathBuf::from(format!("{}.md", stem.to_string_lossy().to_lowercase())));
        let place = match target.strip_prefix(super::DOCS) {
            Ok(page) if page.extension().is_none_or(|ending| ending != "md") || self.pages.contains(page) => {
                page.into()
            }
            Ok(_) => return Err("is no page: docs/SUMMARY.md does not name it"),
            Err(_) => match twin.filter(|twin| target.components().count() == 1 && self.pages.contains(twin)) {
                Some(twin) => twin,
                None => {
                    found.files.insert(target.clone());
                    Path::new(super::FILES).join(&target)
                }
            },
        };
        let up = "../".repeat(self.path.components().count() - 1);
        Ok(Some(format!("{up}{}{anchor}", slashes(&place))))
    }
}

/// A path with `/` between its parts on every system.
fn slashes(path: &Path) -> String {
    path.iter().map(|part| part.to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// A link's file, and its anchor with `#`.
fn split(link: &str) -> (&str, &str) {
    link.find('#').map_or((link, ""), |place| link.split_at(place))
}

/// Whether a link leads to another site.
fn is_elsewhere(link: &str) -> bool {
    link.starts_with("//") || link.split_once(':').is_some_and(|(scheme, _)| !scheme.contains(['/', '#', '?', '.']))
}

/// A path without `.` and `..`; none if it leads out.
fn within(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            part => out.push(part),
        }
    }
    Some(out)
}

/// The links and images of a text in Markdown, with the places of their targets.
fn of_markdown(text: &str) -> Vec<(Range<usize>, String)> {
    let mut out = Vec::new();
    for (event, range) in Parser::new_ext(text, Options::ENABLE_TABLES).into_offset_iter() {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                // The target is the last thing of its link; that of an image within comes before.
                if let Some(place) = text[range.clone()].rfind(&format!("]({dest_url}")) {
                    let start = range.start + place + 2;
                    out.push((start..start + dest_url.len(), dest_url.to_string()));
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for (place, link) in of_html(&html) {
                    out.push((range.start + place..range.start + place + link.len(), link));
                }
            }
            _ => {}
        }
    }
    out.sort_by_key(|(place, _)| place.start);
    out
}

/// The values of `href` and `src` in HTML, with their places.
fn of_html(html: &str) -> Vec<(usize, String)> {
    let mut out: Vec<(usize, String)> =
        [" href=\"", " src=\""].iter().flat_map(|name| attributes(html, name)).collect();
    out.sort();
    out
}

fn attributes(html: &str, name: &str) -> Vec<(usize, String)> {
    let value = |(place, _): (usize, &str)| {
        let start = place + name.len();
        let length = html[start..].find('"')?;
        Some((start, html[start..start + length].to_string()))
    };
    html.match_indices(name).filter_map(value).collect()
}

/// All files below a folder that end so, in order.
pub fn below(folder: &Path, ending: &str) -> io::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            out.extend(below(&path, ending)?);
        } else if path.extension().is_some_and(|it| it == ending) {
            out.push(path);
        }
    }
    out.sort();
    Ok(out)
}

/// The anchors of a page.
fn anchors(html: &str) -> BTreeSet<String> {
    attributes(html, " id=\"").into_iter().map(|(_, id)| id).collect()
}

/// What is wrong with the links of a built book.
pub fn of_book(folder: &Path) -> io::Result<Vec<String>> {
    let mut pages = BTreeMap::new();
    for path in below(folder, "html")? {
        let html = std::fs::read_to_string(&path)?;
        pages.insert(path, html);
    }
    let known: BTreeMap<&PathBuf, BTreeSet<String>> = pages.iter().map(|(path, html)| (path, anchors(html))).collect();
    let mut problems = Vec::new();
    for (path, html) in &pages {
        // Copies of files are not pages of ours.
        if path.starts_with(folder.join(super::FILES)) {
            continue;
        }
        let name = path.strip_prefix(folder).unwrap_or(path).display();
        for (_, link) in of_html(html) {
            let link = link.replace("&amp;", "&");
            if is_elsewhere(&link) {
                continue;
            }
            let (file, anchor) = split(&link);
            let target = if file.is_empty() { Some(path.clone()) } else { within(&path.with_file_name(file)) };
            let Some(target) = target.filter(|target| target.exists()) else {
                problems.push(format!("book, {name}: {link} does not exist"));
                continue;
            };
            let anchor = anchor.trim_start_matches('#');
            if !anchor.is_empty() && known.get(&target).is_some_and(|known| !known.contains(&decoded(anchor))) {
                problems.push(format!("book, {name}: {link}: no such heading"));
            }
        }
    }
    Ok(problems)
}

/// An anchor with its escapes resolved.
fn decoded(anchor: &str) -> String {
    let mut pieces = anchor.split('%');
    let mut out = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        match piece.get(..2).and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(code) => {
                out.push(code);
                out.extend(&piece.as_bytes()[2..]);
            }
            None => out.extend(format!("%{piece}").bytes()),
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// What is wrong with the links of a text that is no page of the book. Anchors on pages are looked for in the book.
pub fn of_text(root: &Path, name: &Path, book: &Path) -> io::Result<Vec<String>> {
    let text = std::fs::read_to_string(root.join(name))?;
    let mut problems = Vec::new();
    for (place, link) in of_markdown(&text) {
        let (file, anchor) = split(&link);
        if is_elsewhere(&link) || file.is_empty() {
            continue;
        }
        let target = within(&name.with_file_name(file));
        let line = text[..place.start].lines().count().max(1);
        match target.filter(|target| root.join(target).exists()) {
            None => problems.push(format!("{}:{line}: {link} does not exist", name.display())),
            Some(target) => {
                let page = target.strip_prefix(super::DOCS).ok().map(|page| book.join(page).with_extension("html"));
                let html = page.and_then(|page| std::fs::read_to_string(page).ok()).unwrap_or_default();
                if !anchor.is_empty() && !anchors(&html).contains(&decoded(&anchor[1..])) {
                    problems.push(format!("{}:{line}: {link}: no such heading", name.display()));
                }
            }
        }
    }
    Ok(problems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_markdown_and_html_are_found_with_their_places() {
        let text = "[a](b.md#c) ![d](e.svg), `[no](link)`\n\n[![f](g.png)](h.md)\n\n<img src=\"i.svg\">\n\n| [j](k.toml) |\n|---|\n";
        let found = of_markdown(text);
        let links: Vec<&str> = found.iter().map(|(_, link)| link.as_str()).collect();
        assert_eq!(links, ["b.md#c", "e.svg", "g.png", "h.md", "i.svg", "k.toml"]);
        assert!(found.iter().all(|(place, link)| &text[place.clone()] == link));
    }

    #[test]
    fn links_of_a_page_lead_to_pages_and_to_copies_of_files_and_nowhere_else() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let pages: BTreeSet<PathBuf> = ["start.md", "guides/buffer.md", "architecture.md"].map(PathBuf::from).into();
        let (name, path) = (Path::new("docs/guides/buffer.md"), Path::new("guides/buffer.md"));
        let page = Page { root: &root, pages: &pages, name, folder: Path::new("docs/guides"), path };
        let mut found = Found::default();
        let text =
            "[a](../start.md#x) [b](../../examples/incast.toml) [c](../../ARCHITECTURE.md) [d](#e) [f](https://g.h)";
        let expected =
            "[a](../start.md#x) [b](../files/examples/incast.toml) [c](../architecture.md) [d](#e) [f](https://g.h)";
        assert_eq!(page.rewritten(text, &mut found), expected);
        assert_eq!((found.files.len(), found.problems.len()), (1, 0));
        let bad = "[a](../none.md)\n[b](../schemes.md)\n[c](../../examples)\n[d](../../../out)\n";
        assert_eq!(page.rewritten(bad, &mut found), bad);
        let problems = found.problems.iter().rev();
        for (line, (problem, why)) in problems.zip(["not exist", "is no page", "a folder", "leads out"]).enumerate() {
            assert!(problem.starts_with(&format!("docs/guides/buffer.md:{}: ", line + 1)), "{problem}");
            assert!(problem.contains(why), "{problem}");
        }
    }

    #[test]
    fn escapes_in_anchors_are_resolved() {
        assert_eq!(decoded("a%20b%"), "a b%");
        assert_eq!(decoded("%CE%B8-powertcp"), "θ-powertcp");
    }
}
