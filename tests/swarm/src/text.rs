//! A scenario as lines that can be added and taken away one by one.

use std::fmt;

/// A table with its keys, each with its value as TOML has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// Its keys from the root, joined by dots; empty for the root.
    pub path: String,
    /// Whether it is one of several: `[[path]]`.
    pub many: bool,
    /// Keys and values.
    pub keys: Vec<(String, String)>,
}

impl Table {
    /// A table without keys.
    pub fn new(path: &str) -> Table {
        Table { path: path.into(), ..Table::default() }
    }

    /// One of several, without keys.
    pub fn one_of(path: &str) -> Table {
        Table { many: true, ..Table::new(path) }
    }

    /// The same with a key more, or with another value for it.
    pub fn with(mut self, key: &str, value: impl fmt::Display) -> Table {
        self.set(key, value);
        self
    }

    /// Writes a key.
    pub fn set(&mut self, key: &str, value: impl fmt::Display) {
        let value = value.to_string();
        match self.keys.iter_mut().find(|(own, _)| own == key) {
            Some(place) => place.1 = value,
            None => self.keys.push((key.into(), value)),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.keys.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
    }
}

/// A whole scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Text(pub Vec<Table>);

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for table in &self.0 {
            match (table.path.as_str(), table.many) {
                ("", _) => {}
                (path, true) => writeln!(f, "[[{path}]]")?,
                (path, false) => writeln!(f, "[{path}]")?,
            }
            table.keys.iter().try_for_each(|(key, value)| writeln!(f, "{key} = {value}"))?;
        }
        Ok(())
    }
}

impl Text {
    /// Reads a text with every value on the line of its key. Comments and blank lines are left out.
    pub fn parse(text: &str) -> Text {
        let mut tables = vec![Table::default()];
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let one_of = line.strip_prefix("[[").and_then(|rest| rest.split("]]").next()).map(Table::one_of);
            let table = || line.strip_prefix('[').and_then(|rest| rest.split(']').next()).map(Table::new);
            match (one_of.or_else(table), line.split_once('='), tables.last_mut()) {
                (Some(table), ..) => tables.push(table),
                (None, Some((key, value)), Some(last)) => last.set(key.trim(), value.trim()),
                _ => {}
            }
        }
        Text(tables)
    }

    /// How many lines it has.
    pub fn lines(&self) -> usize {
        self.0.iter().map(|table| table.keys.len() + 1).sum()
    }

    /// The table of that path, made if it is not there.
    pub fn table(&mut self, path: &str) -> &mut Table {
        let place = self.0.iter().position(|table| table.path == path && !table.many);
        let place = place.unwrap_or_else(|| {
            self.0.push(Table::new(path));
            self.0.len() - 1
        });
        &mut self.0[place]
    }

    /// Takes away what a problem names by its path: a key, a table, or one of several tables. False if there is no such thing.
    pub fn remove(&mut self, path: &str) -> bool {
        let number = |path: &str| {
            let (table, number) = path.rsplit_once('.')?;
            let number: usize = number.parse().ok()?;
            self.0.iter().enumerate().filter(|(_, own)| own.many && own.path == table).nth(number).map(|(at, _)| at)
        };
        let (parent, key) = path.rsplit_once('.').unwrap_or(("", path));
        let single = |path: &str| self.0.iter().position(|own| !own.many && own.path == path);
        // What must be there goes with its table.
        let needed = ["src", "dst", "size", "between", "host", "degree", "to", "kind", "sizes", "hosts"];
        if let Some(at) = number(path) {
            self.0.remove(at);
        } else if let Some(at) = number(parent) {
            let table = &mut self.0[at];
            let before = table.keys.len();
            table.keys.retain(|(own, _)| own != key);
            if before == table.keys.len() || needed.contains(&key) {
                self.0.remove(at);
            }
        } else if let Some(at) = single(parent).filter(|&at| self.0[at].get(key).is_some()) {
            self.0[at].keys.retain(|(own, _)| own != key);
        } else if let Some(at) = single(path).filter(|_| !path.is_empty() && path != "topology") {
            self.0.remove(at);
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "seed = 3\n[topology]\nkind = \"star\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"1B\"\nclass = 9\n";

    #[test]
    fn what_is_read_is_what_was_written() {
        assert_eq!(Text::parse(TEXT).to_string(), TEXT);
    }

    #[test]
    fn keys_go_alone_and_those_that_are_needed_with_their_table() {
        let mut text = Text::parse(TEXT);
        assert!(text.remove("flow.0.class") && text.remove("seed"));
        assert_eq!(text.to_string(), TEXT.replace("class = 9\n", "").replace("seed = 3\n", ""));
        assert!(text.remove("flow.0.src") && !text.remove("switch.alpha") && !text.remove("topology"));
        assert_eq!(text.to_string(), "[topology]\nkind = \"star\"\n");
    }
}
