//! The keys of a table, declared beside their readers.
//!
//! What is declared is what the reader keeps to ([`crate::document::Table::takes`]), and what the manual, the studio's form
//! and the JSON Schema ([`crate::schema`]) show.

use engine::{Kind, Limits, Only, Ordered, Parameter, Parameters, Raw, Value};

/// What holds where a key is not written.
#[derive(Clone, Debug, PartialEq)]
pub enum Absent {
    /// Nothing: it must be written.
    Needed,
    /// That value.
    Value(Raw),
    /// What these words say, for people.
    Derived(&'static str),
}

/// A key of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds where it is not written.
    pub absent: Absent,
    /// What it does, in a sentence.
    pub about: String,
    /// When it has an effect: all of these must hold. Empty for always.
    pub only: Vec<Only>,
}

impl Key {
    /// A key that may be left out, with no effect.
    pub fn new(name: &'static str, kind: Kind, about: impl Into<String>) -> Key {
        Key { name, kind, absent: Absent::Derived("none"), about: about.into(), only: Vec::new() }
    }

    /// The same, of a type.
    pub fn of<T: Value>(name: &'static str, about: impl Into<String>) -> Key {
        Key::new(name, T::kind(), about)
    }

    /// The same with limits, which readers keep.
    pub fn within<T: Ordered>(name: &'static str, limits: impl Into<Limits<T::Bound>>, about: &str) -> Key {
        Key::new(name, T::limited(limits.into()), about)
    }

    /// It must be written.
    pub fn needed(mut self) -> Key {
        self.absent = Absent::Needed;
        self
    }

    /// Its value where it is not written.
    pub fn or<T: Value>(mut self, default: T) -> Key {
        self.absent = Absent::Value(default.raw());
        self
    }

    /// It has an effect only where the scenario is like that.
    pub fn under(mut self, words: &'static str) -> Key {
        self.only.push(Only::Under(words));
        self
    }

    /// What holds where it is not written, in words.
    pub fn otherwise(mut self, words: &'static str) -> Key {
        self.absent = Absent::Derived(words);
        self
    }
}

impl From<Parameter> for Key {
    fn from(parameter: Parameter) -> Key {
        let Parameter { name, kind, raw, about, only, .. } = parameter;
        Key { name, kind, absent: Absent::Value(raw), about, only }
    }
}

/// A table, or one of an array of tables.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Its keys from the root, joined by dots; empty for the root.
    pub path: String,
    /// Whether there may be several: `[[path]]`.
    pub many: bool,
    /// What it is for, in a sentence.
    pub about: String,
    /// Its keys.
    pub keys: Vec<Key>,
    /// The names of tables in it.
    pub tables: Vec<&'static str>,
    /// What keys of any other name take.
    pub others: Option<Kind>,
    /// The key, by its path, and the word that it must have for this table to be read.
    pub with: Option<(&'static str, &'static str)>,
}

impl Section {
    /// A table.
    pub fn new(path: impl Into<String>, about: impl Into<String>, keys: Vec<Key>) -> Section {
        Section { path: path.into(), about: about.into(), keys, ..Section::default() }
    }

    /// Tables of an array.
    pub fn many(path: impl Into<String>, about: impl Into<String>, keys: Vec<Key>) -> Section {
        Section { many: true, ..Section::new(path, about, keys) }
    }

    /// A table of parameters.
    pub fn of(path: impl Into<String>, about: impl Into<String>, parameters: &dyn Parameters) -> Section {
        Section::new(path, about, parameters.list().into_iter().map(Key::from).collect())
    }

    /// The same with tables in it.
    pub fn with_tables(mut self, tables: Vec<&'static str>) -> Section {
        self.tables = tables;
        self
    }

    /// The key of that name.
    pub fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }

    /// Compares the declaration with the keys that a reader has asked for.
    ///
    /// # Panics
    ///
    /// Where the reader asked for a key that is not declared, or not for one that is.
    #[cfg(debug_assertions)]
    pub(crate) fn compare(&self, asked: &[String]) {
        for name in asked {
            let declared = self.key(name).is_some() || self.tables.iter().any(|table| table == name);
            assert!(declared || self.others.is_some(), "[{}] reads {name}, which is not declared", self.path);
        }
        for key in &self.keys {
            let read = asked.iter().any(|name| name == key.name);
            assert!(read, "[{}] declares {}, which is not read", self.path, key.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Document;
    use std::sync::LazyLock;

    static SAMPLE: LazyLock<Section> = LazyLock::new(|| {
        let keys =
            vec![Key::within::<u32>("count", 1..=8, "How many.").needed(), Key::of::<bool>("fast", "How.").or(true)];
        Section::new("", "A sample.", keys)
    });

    #[test]
    fn a_declared_value_is_kept_within_its_limits_by_its_reader() {
        let document = Document::parse("a.toml", "count = 9\nfast = 1").unwrap();
        let mut table = document.root();
        table.takes(&SAMPLE);
        let problem = table.required::<u32>("count").unwrap_err();
        assert_eq!(
            (problem.message.as_str(), problem.help.as_deref()),
            ("count is 9", Some("write 1 to 8. How many."))
        );
        assert_eq!(problem.key.as_deref(), Some("count"));
        assert!(table.optional::<bool>("fast").unwrap_err().message.contains("expected true or false"));
    }

    #[test]
    #[cfg(debug_assertions)]
    fn a_reader_that_does_not_do_what_is_declared_is_found_out() {
        let read = |keys: &'static [&'static str]| {
            std::panic::catch_unwind(|| {
                let document = Document::parse("a.toml", "count = 3").unwrap();
                let mut table = document.root();
                table.takes(&SAMPLE);
                keys.iter().for_each(|key| _ = table.item(key));
                table.finish()
            })
        };
        assert!(read(&["count", "fast"]).is_ok());
        assert!(read(&["count"]).is_err());
        assert!(read(&["count", "fast", "color"]).is_err());
    }
}
