//! Which kind of file a document is: one that was given to the wrong command is told so in one sentence, not key by key.

use crate::document::Document;
use files::problem::Problem;

/// A kind of file that people write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A run.
    Scenario,
    /// Many runs of one scenario.
    Sweep,
    /// A claim, with the runs that show whether it holds.
    Experiment,
    /// The nodes and links that a scenario names.
    Graph,
}

impl FileKind {
    /// What a document looks like by its uppermost keys, where there is no doubt.
    fn of(document: &Document) -> Option<FileKind> {
        let root = document.root();
        let any = |keys: &[&str]| keys.iter().any(|key| root.has(key));
        let (runs, some) = (any(&["scenario", "grid", "list"]), any(&["schemes", "seeds"]));
        match any(&["topology"]) {
            _ if any(&["id"]) && any(&["document", "says", "like", "variant", "expect"]) => Some(FileKind::Experiment),
            true if !runs && !some => Some(FileKind::Scenario),
            false if runs => Some(FileKind::Sweep),
            false if any(&["node"]) => Some(FileKind::Graph),
            _ => None,
        }
    }

    /// Its name, with an article.
    fn name(self) -> &'static str {
        match self {
            FileKind::Scenario => "a scenario",
            FileKind::Sweep => "a sweep",
            FileKind::Experiment => "an experiment",
            FileKind::Graph => "a graph file",
        }
    }

    /// What takes it.
    fn remedy(self) -> &'static str {
        match self {
            FileKind::Scenario => "run it with `tailwater run FILE`",
            FileKind::Sweep => "run it with `tailwater sweep FILE`",
            FileKind::Experiment => "run it with `tailwater reproduce FILE`",
            FileKind::Graph => "name it in a scenario: [topology] with kind = \"file\" and path = \"FILE\"",
        }
    }
}

impl Document {
    /// Refuses a document that is clearly of another kind.
    pub fn expect_kind(&self, kind: FileKind) -> Result<(), Problem> {
        match FileKind::of(self).filter(|found| *found != kind) {
            Some(found) => {
                let message = format!("the file is {}, not {}", found.name(), kind.name());
                Err(self.root().problem(message).help(found.remedy()))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_kind_is_refused_and_one_in_doubt_is_not() {
        let kinds = [FileKind::Scenario, FileKind::Sweep, FileKind::Experiment, FileKind::Graph];
        for (text, found) in [
            ("seed = 2\n[topology]\nkind = \"star\"", Some(FileKind::Scenario)),
            ("[topology]\nkind = \"star\"\n[[node]]", Some(FileKind::Scenario)),
            ("scenario = \"a.toml\"", Some(FileKind::Sweep)),
            ("seeds = 3\n[grid]\n\"switch.buffer\" = [1]", Some(FileKind::Sweep)),
            ("id = \"a\"\nlike = \"b\"", Some(FileKind::Experiment)),
            ("id = \"a\"\nsays = \"b\"\n[scenario.topology]", Some(FileKind::Experiment)),
            ("[[node]]\n[[link]]", Some(FileKind::Graph)),
            // A key too many, or a table too few.
            ("id = \"a\"\n[topology]", Some(FileKind::Scenario)),
            ("seeds = 3\n[topology]", None),
            ("[topology]\n[grid]", None),
            ("[[link]]", None),
            ("", None),
        ] {
            let document = Document::parse("a.toml", text).unwrap();
            for kind in kinds {
                let refused = document.expect_kind(kind).err().map(|problem| problem.to_string());
                assert_eq!(refused.is_some(), found.is_some_and(|found| found != kind), "{text}: {refused:?}");
            }
        }
    }

    #[test]
    fn the_refusal_says_what_the_file_is_and_what_takes_it() {
        let document = Document::parse("a.toml", "id = \"a\"\nsays = \"b\"").unwrap();
        let problem = document.expect_kind(FileKind::Scenario).unwrap_err().to_string();
        let said = "a.toml: the file is an experiment, not a scenario\n  help: run it with `tailwater reproduce FILE`";
        assert!(problem.contains(said), "{problem}");
    }
}
