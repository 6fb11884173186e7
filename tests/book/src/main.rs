//! Builds the book from `docs/` into `target/book`, and fails on every link that leads nowhere.
//!
//! mdBook knows the pages of `docs/` alone. Pages also link to files beside that folder, such as experiments and published figures. Such files
//! are copied into the book, so that it can be read without the repository; links in the sources stay what they are, so that these can be
//! read without the book.

mod links;

use mdbook_driver::MDBook;
use mdbook_driver::book::Book;
use mdbook_driver::errors::Result;
use mdbook_preprocessor::{Preprocessor, PreprocessorContext};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::rc::Rc;

/// The folder of the pages.
const DOCS: &str = "docs";
/// The folder of the book that has files from outside of [`DOCS`].
const FILES: &str = "files";
/// Texts with links that are not in the book.
const BESIDE: [&str; 4] =
    ["README.md", "crates/python/README.md", "examples/own-scheme/README.md", "tests/studio/README.md"];

fn main() -> ExitCode {
    let open = match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => false,
        [word] if word == "--open" => true,
        _ => {
            eprintln!("error: this takes --open, which shows the book in a browser, or nothing");
            return ExitCode::from(2);
        }
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap_or_default();
    match build(&root) {
        Ok((page, problems)) => {
            for problem in &problems {
                eprintln!("error: {problem}");
            }
            println!("{}", page.display());
            if open {
                show(&page);
            }
            if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("error: the book cannot be built: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Builds the book; its first page, and what is wrong with links.
fn build(root: &Path) -> Result<(PathBuf, Vec<String>)> {
    let mut book = MDBook::load(root)?;
    let pages: BTreeSet<PathBuf> = book.book.chapters().filter_map(|chapter| chapter.path.clone()).collect();
    let found = Rc::new(RefCell::new(links::Found::default()));
    book.with_preprocessor(Outside { root: root.into(), pages: pages.clone(), found: found.clone() });
    book.build()?;
    let folder = book.build_dir_for("html");
    let mut found = found.take();
    for file in &found.files {
        let copy = folder.join(FILES).join(file);
        std::fs::create_dir_all(copy.parent().unwrap_or(&folder))?;
        std::fs::copy(root.join(file), copy)?;
    }
    for page in links::below(&root.join(DOCS), "md")? {
        let path = page.strip_prefix(root.join(DOCS)).unwrap_or(&page);
        if !pages.contains(path) && path != Path::new("SUMMARY.md") {
            found.problems.push(format!("{DOCS}/{}: is not in {DOCS}/SUMMARY.md", path.display()));
        }
    }
    let mut problems = found.problems;
    // What is wrong in a source shows in its page, too.
    if problems.is_empty() {
        problems.extend(links::of_book(&folder)?);
    }
    for text in BESIDE {
        problems.extend(links::of_text(root, Path::new(text), &folder)?);
    }
    Ok((folder.join("index.html"), problems))
}

/// Makes links that leave the pages lead to copies in the book.
struct Outside {
    root: PathBuf,
    pages: BTreeSet<PathBuf>,
    found: Rc<RefCell<links::Found>>,
}

impl Preprocessor for Outside {
    fn name(&self) -> &str {
        "outside"
    }
    fn run(&self, _: &PreprocessorContext, mut book: Book) -> Result<Book> {
        book.for_each_chapter_mut(|chapter| {
            let Some(path) = chapter.path.clone() else { return };
            let source = std::fs::read_to_string(self.root.join(DOCS).join(&path)).unwrap_or_default();
            // A page that is a file of the repository's root as a whole has links from there.
            let included = source.trim().strip_prefix("{{#include ../").and_then(|rest| rest.strip_suffix("}}"));
            let (name, folder) = match included {
                Some(file) => (PathBuf::from(file), PathBuf::new()),
                None => {
                    let name = Path::new(DOCS).join(&path);
                    (name.clone(), name.parent().unwrap_or(Path::new("")).to_path_buf())
                }
            };
            let page = links::Page { root: &self.root, pages: &self.pages, name: &name, folder: &folder, path: &path };
            chapter.content = page.rewritten(&chapter.content, &mut self.found.borrow_mut());
        });
        Ok(book)
    }
}

/// Opens a page in the browser, if there is one.
fn show(page: &Path) {
    let opener = if cfg!(target_os = "macos") {
        "open"
    } else if cfg!(windows) {
        "explorer"
    } else {
        "xdg-open"
    };
    if let Err(error) = Command::new(opener).arg(page).status() {
        eprintln!("note: {opener} cannot be started ({error}); open the page yourself");
    }
}
