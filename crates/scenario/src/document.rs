//! A TOML text that knows where everything in it stands, and a reader that leaves no key unread.
//!
//! [`Document::parse`] keeps the line and column of every key and value, [`Document::set`] changes one as `--set` on the
//! command line does. A [`Table`] hands out typed values and remembers which keys it was asked for;
//! [`Table::finish`] refuses the others.

use crate::declared::{Absent, Key, Section};
use engine::{Kind, OutOfRange, Parameters, Raw, Value, ValueError};
use files::problem::{Cause, Given, Problem};
use toml_edit as toml;

/// The longest key path that [`Document::set`] takes.
const DEEPEST: usize = 16;

/// A file's TOML with the place of every part.
#[derive(Clone, Debug)]
pub struct Document {
    file: String,
    text: String,
    root: Node,
    /// Where values come from that are not in the text, as a [`Problem`] names it.
    labels: Vec<Label>,
}

/// Where a value comes from that is not in the text.
#[derive(Clone, Debug)]
struct Label {
    /// As a [`Problem`] names it.
    text: String,
    /// The option, if it was one.
    given: Option<Given>,
}

/// Where something stands.
#[derive(Clone, Copy, Debug)]
enum At {
    /// At that byte of the text.
    Text(usize),
    /// Not in the text: given under that label.
    Label(usize),
    /// Nowhere in particular.
    File,
}

#[derive(Clone, Debug)]
struct Node {
    at: At,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Value(Raw),
    /// A date or a time of day, which no parameter takes.
    Date,
    Array(Vec<Node>),
    Table(Vec<Member>),
}

#[derive(Clone, Debug)]
struct Member {
    key: String,
    at: At,
    node: Node,
}

impl Content {
    fn describe(&self) -> &'static str {
        match self {
            Content::Value(_) => "a value",
            Content::Date => "a date",
            Content::Array(_) => "an array",
            Content::Table(_) => "a table",
        }
    }

    /// Reads a plain value.
    fn read<T: Value>(&self) -> Result<T, ValueError> {
        match self {
            Content::Value(raw) => T::read(raw),
            other => {
                Err(ValueError::Expected { expected: T::kind().to_string(), found: Some(other.describe().into()) })
            }
        }
    }
}

fn span_start(span: Option<std::ops::Range<usize>>) -> At {
    span.map_or(At::File, |span| At::Text(span.start))
}

impl At {
    fn or(self, other: At) -> At {
        if let At::File = self { other } else { self }
    }
}

/// `at` is where a value stands that has no place of its own.
fn from_value(value: &toml::Value, at: impl Fn(At) -> At + Copy) -> Node {
    let content = match value {
        toml::Value::String(text) => Content::Value(Raw::Text(text.value().clone())),
        toml::Value::Integer(number) => Content::Value(Raw::Integer(*number.value())),
        toml::Value::Float(number) => Content::Value(Raw::Float(*number.value())),
        toml::Value::Boolean(flag) => Content::Value(Raw::Bool(*flag.value())),
        toml::Value::Datetime(_) => Content::Date,
        toml::Value::Array(array) => Content::Array(array.iter().map(|value| from_value(value, at)).collect()),
        toml::Value::InlineTable(table) => {
            let member = |(key, value): (&str, &toml::Value)| Member {
                key: key.into(),
                at: at(span_start(table.key(key).and_then(toml::Key::span))),
                node: from_value(value, at),
            };
            Content::Table(table.iter().map(member).collect())
        }
    };
    Node { at: at(span_start(value.span())), content }
}

fn from_table(table: &toml::Table, at: At) -> Node {
    let member = |(key, item): (&str, &toml::Item)| {
        let key_at = span_start(table.key(key).and_then(toml::Key::span));
        let node = match item {
            toml::Item::None => return None,
            toml::Item::Value(value) => from_value(value, |at| at.or(key_at)),
            toml::Item::Table(table) => from_table(table, key_at),
            toml::Item::ArrayOfTables(tables) => Node {
                at: key_at,
                content: Content::Array(tables.iter().map(|table| from_table(table, key_at)).collect()),
            },
        };
        Some(Member { key: key.into(), at: key_at, node })
    };
    // A table that only exists through longer keys has no header of its own.
    Node { at: span_start(table.span()).or(at), content: Content::Table(table.iter().filter_map(member).collect()) }
}

impl Document {
    /// Reads `text`, which is what `file` holds.
    pub fn parse(file: impl Into<String>, text: impl Into<String>) -> Result<Document, Problem> {
        let (file, text) = (file.into(), text.into());
        let root = Node { at: At::File, content: Content::Table(Vec::new()) };
        let mut document = Document { file, text, root, labels: Vec::new() };
        match toml::Document::parse(document.text.as_str()) {
            Ok(parsed) => {
                let root = from_table(parsed.as_table(), At::File);
                document.root = Node { at: At::File, ..root };
                Ok(document)
            }
            Err(error) => {
                let at = span_start(error.span());
                if let Some(problem) = document.twice(&error) {
                    return Err(problem);
                }
                let problem = document.locate(at, format!("is not TOML: {}", error.message()));
                let help = match problem.source.as_deref().and_then(unquoted) {
                    Some(Unquoted::Quantity(word)) => format!("put quantities in quotes: \"{word}\""),
                    Some(Unquoted::Word(word)) => format!("put text in quotes: \"{word}\""),
                    None => "write key = value, with text and quantities in quotes; [name] begins a table".into(),
                };
                Err(problem.help(help).cause(Cause::Syntax))
            }
        }
    }

    /// The same of a text in which values lack their quotes, or keys are there twice: with what was meant, so that the rest can be looked
    /// at, and with what is wrong.
    pub fn parse_on(file: &str, text: &str) -> Result<(Document, Vec<Problem>), Problem> {
        let (mut mended, mut slips): (String, Vec<Problem>) = (text.into(), Vec::new());
        loop {
            let problem = match Document::parse(file, mended.as_str()) {
                Ok(document) => return Ok((document, slips)),
                Err(problem) => problem,
            };
            let better = mend(&mended, &problem).filter(|_| slips.len() < MOST_SLIPS);
            slips.push(problem);
            match better {
                Some(better) => mended = better,
                None => return Err(Problem::all(slips).unwrap_or_else(|| Problem::new(file, "cannot be read"))),
            }
        }
    }

    /// The problem that a key, or a table, is there twice, if that is what the parser found.
    fn twice(&self, error: &toml::TomlError) -> Option<Problem> {
        let span = error.span().filter(|_| error.message() == "duplicate key")?;
        let name = self.text.get(span.clone())?;
        let at = self.locate(At::Text(span.start), "");
        let line = at.line?;
        let header = |line: &str| line.trim_start().starts_with('[');
        let key = |line: &str| line.split_once('=').map_or("", |(key, _)| key).trim() == name;
        let before: Vec<&str> = self.text.lines().take(line - 1).collect();
        let whole = self.text.lines().nth(line - 1).filter(|line| header(line));
        let first = match whole {
            Some(whole) => before.iter().position(|line| line.split('#').next() == whole.split('#').next()),
            // Since the table began.
            None => before.iter().rposition(|line| header(line) || key(line)).filter(|&place| key(before[place])),
        };
        let (what, help) = match whole {
            Some(_) => (format!("the table [{name}]"), "put the keys of both under one of them, and remove the other"),
            None => (name.to_string(), "remove one of the two"),
        };
        let earlier = first.map_or(String::new(), |place| format!(": first in line {}", place + 1));
        Some(at.saying(format!("{what} is there twice{earlier}")).help(help).cause(Cause::Syntax))
    }

    /// Its name, as problems show it.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The whole of it.
    pub fn root(&self) -> Table<'_> {
        let members = match &self.root.content {
            Content::Table(members) => members.as_slice(),
            _ => &[],
        };
        Table::new(self, String::new(), At::File, members)
    }

    /// Changes one value: `assignment` is `key.path=value` as after `--set`.
    ///
    /// The value is TOML where it reads as such, and otherwise text that needs no quotes. A whole number in the path
    /// is a place in an array, counted from 0; the first free place adds an element. Missing tables are made.
    /// `-key.path` takes away what is there.
    pub fn set(&mut self, assignment: &str) -> Result<(), Problem> {
        let label = format!("--set {}", clean(assignment));
        let given = Given::Set(assignment.into());
        let problem = |message: String| Problem::new(label.as_str(), message).given(given.clone());
        let fail = |message: String, help: &str| Err(problem(message).help(help));
        if let Some(path) = assignment.strip_prefix('-') {
            let (above, key) = path.rsplit_once('.').unwrap_or(("", path));
            let Some(Content::Table(members)) = self.find_mut(above).map(|node| &mut node.content) else {
                return fail("is not in a table".into(), "name a key of a table");
            };
            let before = members.len();
            members.retain(|member| member.key != key);
            return match members.len() == before {
                true => fail("is not there".into(), "name a key that has a value"),
                false => Ok(()),
            };
        }
        let Some((path, value)) = assignment.split_once('=') else {
            return fail("has no \"=\"".into(), "write --set key=value, such as --set switch.buffer=4MB");
        };
        let (path, value) = (path.trim(), value.trim());
        if value.is_empty() {
            return fail("has no value".into(), "write one after the \"=\"; write \"\" for empty text");
        }
        if path.split('.').any(|key| key.trim().is_empty()) {
            return fail("has an empty key".into(), "write keys with one dot between them, such as switch.buffer");
        }
        let content = match parse_value(value) {
            Ok(content) => content,
            Err((message, help)) => return fail(message, help),
        };
        if let (Some((table, key)), Content::Value(Raw::Text(_))) = (choice_of(path), &content) {
            return fail(format!("{table} is a table"), &format!("write --set {table}.{key}={}", clean(value)));
        }
        self.labels.push(Label { text: label.clone(), given: Some(given.clone()) });
        let at = At::Label(self.labels.len() - 1);
        let path: Vec<&str> = path.split('.').map(str::trim).collect();
        if path.len() > DEEPEST {
            return fail("has a path of too many keys".into(), "nothing lies that deep; check the dots");
        }
        put(&mut self.root, &path, "", Node { at, content }).map_err(|(message, help)| problem(message).help(help))
    }

    /// Gives a value to a key that has none. `label` says where the value comes from, in case it is wrong.
    ///
    /// The value is written as for [`Document::set`]. Where the path leads through something that is not a table nothing
    /// happens: the reader of that key reports it.
    pub fn set_default(&mut self, label: impl Into<String>, path: &str, value: &str) {
        self.fill_in(Label { text: label.into(), given: None }, path, value);
    }

    /// The same with a value of a preset.
    pub fn set_by_preset(&mut self, preset: &str, path: &str, value: &str) {
        let text = format!("preset \"{preset}\", {path} = {value}");
        self.fill_in(Label { text, given: Some(Given::Preset(preset.into())) }, path, value);
    }

    fn fill_in(&mut self, label: Label, path: &str, value: &str) {
        if self.find(path).1 {
            return;
        }
        let Ok(content) = parse_value(value) else { return };
        self.labels.push(label);
        let at = At::Label(self.labels.len() - 1);
        let path: Vec<&str> = path.split('.').collect();
        _ = put(&mut self.root, &path, "", Node { at, content });
    }

    /// A problem at the value of a dotted path, or at what is nearest to it: the table that lacks it, or the file.
    pub fn problem(&self, path: &str, message: impl Into<String>) -> Problem {
        self.locate(self.find(path).0.at, message).key(path)
    }

    /// The last part of the path that is there, and whether that is all of it.
    fn find(&self, path: &str) -> (&Node, bool) {
        let mut node = &self.root;
        for key in path.split('.').filter(|key| !key.is_empty()) {
            let next = match &node.content {
                Content::Table(members) => members.iter().find(|member| member.key == key).map(|member| &member.node),
                Content::Array(nodes) => place_of(key).and_then(|place| nodes.get(place)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return (node, false),
            }
        }
        (node, true)
    }

    fn find_mut(&mut self, path: &str) -> Option<&mut Node> {
        path.split('.').filter(|key| !key.is_empty()).try_fold(&mut self.root, |node, key| match &mut node.content {
            Content::Table(members) => {
                members.iter_mut().find(|member| member.key == key).map(|member| &mut member.node)
            }
            Content::Array(nodes) => nodes.get_mut(place_of(key)?),
            _ => None,
        })
    }

    /// The document as a TOML text that depends only on what it means: no comments, keys in order, each value in
    /// one form. Documents with the same keys and values have the same canonical text, wherever the values come from.
    pub fn canonical(&self) -> String {
        let mut out = String::new();
        write_table(&self.root.content, "", &mut out);
        out
    }

    /// Whether a user has written the value at a dotted path, in the text or as an option; what a preset fills in does not count.
    pub fn written(&self, path: &str) -> bool {
        let (node, whole) = self.find(path);
        whole
            && match node.at {
                At::Label(label) => matches!(self.labels[label].given, Some(Given::Set(_))),
                At::Text(_) | At::File => true,
            }
    }

    /// Every value that is not what its declaration says, and every key that is not declared, in the tables of `sections`.
    ///
    /// Readers say more, and stop at the first problem of a table; this looks at what they have not come to.
    pub fn check(&self, sections: &[&'static Section]) -> Vec<Problem> {
        let mut problems = Vec::new();
        for section in sections {
            if let Some((key, word)) = section.with {
                let chosen = self.texts(key).first().map(|(_, text)| *text == word);
                // A table of parameters is read also where its mechanism is the usual one.
                let shared = key.starts_with(&format!("{}.", section.path));
                if !chosen.unwrap_or(!shared) {
                    continue;
                }
            }
            let (node, whole) = self.find(&section.path);
            let tables: Vec<(String, &Node)> = match &node.content {
                _ if !whole => continue,
                Content::Array(nodes) if section.many => {
                    nodes.iter().enumerate().map(|(place, node)| (format!("{}.{place}", section.path), node)).collect()
                }
                _ if section.many => continue,
                _ => vec![(section.path.clone(), node)],
            };
            for (path, node) in tables {
                let Content::Table(members) = &node.content else { continue };
                let mut table = Table::new(self, path, node.at, members);
                table.takes(section);
                table.known.extend(section.keys.iter().map(|key| key.name.to_string()));
                table.known.extend(section.tables.iter().map(|table| table.to_string()));
                let needed = section.keys.iter().filter(|key| key.absent == Absent::Needed && !table.has(key.name));
                problems.extend(needed.map(|key| table.missing(key.name, &key.kind.to_string())));
                for member in members {
                    let kind = section.key(&member.key).map(|key| &key.kind).or(section.others.as_ref());
                    let is_table = section.tables.iter().any(|table| *table == member.key);
                    match kind {
                        Some(kind) => problems.extend(table.item(&member.key).and_then(|item| item.misfit(kind))),
                        None if !is_table => problems.push(table.unknown(member)),
                        None => {}
                    }
                }
            }
        }
        problems
    }

    /// What a dotted path holds, in the words of [`Document::canonical`].
    pub fn value(&self, path: &str) -> Option<String> {
        let (node, whole) = self.find(path);
        whole.then(|| inline(&node.content))
    }

    /// The table at a dotted path as a document's text of its own, in the words of [`Document::canonical`].
    pub fn part(&self, path: &str) -> Option<String> {
        let (node, whole) = self.find(path);
        let mut out = String::new();
        write_table(&node.content, "", &mut out);
        (whole && matches!(node.content, Content::Table(_))).then_some(out)
    }

    /// The names of the tables in the table at a dotted path.
    pub fn tables_in(&self, path: &str) -> Vec<&str> {
        let (node, whole) = self.find(path);
        match &node.content {
            Content::Table(members) if whole => {
                let tables = members.iter().filter(|member| matches!(member.node.content, Content::Table(_)));
                tables.map(|member| member.key.as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Every text at a dotted path, in which `*` stands for each place of an array, with its own path.
    pub fn texts(&self, path: &str) -> Vec<(String, &str)> {
        if let Some((above, below)) = path.split_once(".*.") {
            let (node, whole) = self.find(above);
            let count = if let Content::Array(nodes) = &node.content { nodes.len() } else { 0 };
            let places = 0..if whole { count } else { 0 };
            return places.flat_map(|place| self.texts(&format!("{above}.{place}.{below}"))).collect();
        }
        match self.find(path) {
            (Node { content: Content::Value(Raw::Text(text)), .. }, true) => vec![(path.into(), text)],
            _ => Vec::new(),
        }
    }

    fn locate(&self, at: At, message: impl Into<String>) -> Problem {
        match at {
            At::File => Problem::new(self.file.as_str(), message),
            At::Label(label) => {
                let Label { text, given } = &self.labels[label];
                let problem = Problem::new(text.as_str(), message);
                given.iter().cloned().fold(problem, Problem::given)
            }
            At::Text(offset) => {
                let before = self.text.get(..offset).unwrap_or(&self.text);
                let start = before.rfind('\n').map_or(0, |newline| newline + 1);
                let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
                let column = before[start..].chars().count() + 1;
                let source = self.text[start..].lines().next().unwrap_or_default();
                Problem::new(self.file.as_str(), message).at(line, column, source)
            }
        }
    }

    /// A problem with a value. The key is said where the place shows only a value.
    fn value_problem(&self, at: At, key: &str, message: String) -> Problem {
        match at {
            At::Label(_) => self.locate(at, message),
            _ => self.locate(at, format!("{key}: {message}")),
        }
    }
}

/// A value given as after `--set`, in the words of [`Document::canonical`].
pub fn canonical_value(text: &str) -> String {
    parse_value(text).map_or_else(|_| text.into(), |content| inline(&content))
}

/// Writes the members of a table: plain values, then the tables in it, each under a line with its name.
fn write_table(content: &Content, path: &str, out: &mut String) {
    let Content::Table(members) = content else { return };
    let mut members: Vec<&Member> = members.iter().collect();
    members.sort_by(|a, b| a.key.cmp(&b.key));
    let (tables, values): (Vec<&Member>, Vec<&Member>) =
        members.into_iter().partition(|member| matches!(member.node.content, Content::Table(_)));
    for Member { key, node, .. } in values {
        match &node.content {
            Content::Array(nodes) if nodes.iter().any(|node| matches!(node.content, Content::Table(_))) => {
                let rows: String = nodes.iter().map(|node| format!("    {},\n", inline(&node.content))).collect();
                *out += &format!("{} = [\n{rows}]\n", key_text(key));
            }
            content => *out += &format!("{} = {}\n", key_text(key), inline(content)),
        }
    }
    for Member { key, node, .. } in tables {
        let path = if path.is_empty() { key_text(key) } else { format!("{path}.{}", key_text(key)) };
        *out += &format!("\n[{path}]\n");
        write_table(&node.content, &path, out);
    }
}

/// A value in one line.
fn inline(content: &Content) -> String {
    match content {
        Content::Value(Raw::Text(text)) => quote(text),
        Content::Value(Raw::Integer(number)) => number.to_string(),
        Content::Value(Raw::Float(number)) if number.is_nan() => "nan".into(),
        Content::Value(Raw::Float(number)) => format!("{number:?}"),
        Content::Value(Raw::Bool(flag)) => flag.to_string(),
        // Nothing takes a date, so which one it is makes no difference.
        Content::Date => "1970-01-01".into(),
        Content::Array(nodes) => {
            let nodes: Vec<String> = nodes.iter().map(|node| inline(&node.content)).collect();
            format!("[{}]", nodes.join(", "))
        }
        Content::Table(members) => {
            let mut members: Vec<&Member> = members.iter().collect();
            members.sort_by(|a, b| a.key.cmp(&b.key));
            let members: Vec<String> = members
                .iter()
                .map(|member| format!("{} = {}", key_text(&member.key), inline(&member.node.content)))
                .collect();
            if members.is_empty() { "{}".into() } else { format!("{{ {} }}", members.join(", ")) }
        }
    }
}

/// A key, in quotes where TOML wants them.
fn key_text(key: &str) -> String {
    let bare = !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if bare { key.into() } else { quote(key) }
}

/// A basic string of TOML, in one line.
pub fn quote(text: &str) -> String {
    let escaped = text.chars().map(|c| match c {
        '"' | '\\' => format!("\\{c}"),
        c if c.is_control() => format!("\\u{:04X}", c as u32),
        c => c.into(),
    });
    format!("\"{}\"", escaped.collect::<String>())
}

/// A value without the quotes that it needs.
enum Unquoted<'a> {
    Quantity(&'a str),
    Word(&'a str),
}

/// What stands after an equals sign without its quotes, which is what people forget most.
fn unquoted(line: &str) -> Option<Unquoted<'_>> {
    let value = line.split_once('=')?.1.split('#').next()?.trim();
    let quantity =
        value.starts_with(|c: char| c.is_ascii_digit()) && value.ends_with(|c: char| c.is_ascii_alphabetic());
    let plain = |others: &str| value.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c));
    // The words of TOML are good as they are.
    let toml = ["true", "false", "inf", "nan"].contains(&value);
    match value.starts_with(|c: char| c.is_ascii_alphabetic()) {
        _ if quantity && plain(". _") => Some(Unquoted::Quantity(value)),
        true if !toml && plain(".-+_/") => Some(Unquoted::Word(value)),
        _ => None,
    }
}

/// The most slips of a text that are told.
const MOST_SLIPS: usize = 50;

/// The text with one slip set right, in the same lines: what lacks its quotes has them, and a key that is there already is left out.
fn mend(text: &str, problem: &Problem) -> Option<String> {
    let place = problem.line?.checked_sub(1)?;
    let mut lines: Vec<&str> = text.split('\n').collect();
    let line = *lines.get(place)?;
    let better = match unquoted(line) {
        Some(Unquoted::Quantity(value) | Unquoted::Word(value)) => {
            let (key, rest) = line.split_once('=')?;
            format!("{key}={}", rest.replacen(value, &format!("\"{value}\""), 1))
        }
        // The keys of a table that is there twice would belong to another one.
        None if problem.message.contains("is there twice") && !line.trim_start().starts_with('[') => String::new(),
        None => return None,
    };
    lines[place] = &better;
    Some(lines.join("\n"))
}

/// A value as `--set` has it.
fn parse_value(text: &str) -> Result<Content, (String, &'static str)> {
    match text.parse::<toml::Value>() {
        Ok(value) => Ok(from_value(&value, |_| At::File).content),
        // What opens a quote or a bracket was meant to be TOML.
        Err(error) if text.starts_with(['"', '\'', '[', '{']) => {
            Err((format!("is not TOML: {}", error.message()), "check the quotes and brackets of the value"))
        }
        // TOML has no larger ones.
        Err(_) if text.bytes().all(|byte| byte.is_ascii_digit()) && text.parse::<i64>().is_err() => {
            Err((format!("is above {}, the largest whole number", i64::MAX), "write a smaller one, or text in quotes"))
        }
        Err(_) => Ok(Content::Value(Raw::Text(text.into()))),
    }
}

/// A table that people take for a value, with the key that they mean.
fn choice_of(path: &str) -> Option<(&'static str, &'static str)> {
    [("scheme", "preset"), ("topology", "kind")].into_iter().find(|(table, _)| *table == path)
}

/// Gives every part of a value the same place.
fn place(node: &mut Node, at: At) {
    node.at = at;
    match &mut node.content {
        Content::Array(nodes) => nodes.iter_mut().for_each(|node| place(node, at)),
        Content::Table(members) => members.iter_mut().for_each(|member| {
            member.at = at;
            place(&mut member.node, at);
        }),
        Content::Value(_) | Content::Date => {}
    }
}

/// The place in an array that a part of a path stands for. It has one spelling, so that each path has.
fn place_of(key: &str) -> Option<usize> {
    key.parse::<usize>().ok().filter(|place| place.to_string() == key)
}

/// Puts `value` where `path` leads from `node`; `seen` is the path so far. The error is a message and a remedy.
fn put(node: &mut Node, path: &[&str], seen: &str, mut value: Node) -> Result<(), (String, String)> {
    let at = value.at;
    let Some((&key, rest)) = path.split_first() else {
        let has_tables = match &node.content {
            Content::Table(members) => !members.is_empty(),
            Content::Array(nodes) => nodes.iter().any(|node| matches!(node.content, Content::Table(_))),
            _ => false,
        };
        if has_tables && matches!(value.content, Content::Value(_) | Content::Date) {
            let example = match &node.content {
                Content::Table(members) => members.first().map_or("key", |member| member.key.as_str()),
                _ => "0.key",
            };
            return Err((
                format!("{seen} is {}", node.content.describe()),
                format!("name a key in it, such as {seen}.{example}"),
            ));
        }
        place(&mut value, at);
        *node = value;
        return Ok(());
    };
    let seen = if seen.is_empty() { key.to_string() } else { format!("{seen}.{key}") };
    // The rest of the path decides whether a new element is a table or an array.
    let blank = || {
        let array = rest.first().is_some_and(|key| place_of(key).is_some());
        Node { at, content: if array { Content::Array(Vec::new()) } else { Content::Table(Vec::new()) } }
    };
    match &mut node.content {
        Content::Table(members) => match members.iter_mut().find(|member| member.key == key) {
            Some(member) => put(&mut member.node, rest, &seen, value),
            None => {
                // It joins the table when the whole path is found good: what is refused leaves no trace.
                let mut node = blank();
                put(&mut node, rest, &seen, value)?;
                members.push(Member { key: key.into(), at, node });
                Ok(())
            }
        },
        Content::Array(nodes) => {
            let count = nodes.len();
            match place_of(key) {
                Some(place) if place < count => put(&mut nodes[place], rest, &seen, value),
                Some(place) if place == count => {
                    let mut node = blank();
                    put(&mut node, rest, &seen, value)?;
                    nodes.push(node);
                    Ok(())
                }
                Some(_) => Err((
                    format!("{seen} is not there: the array has {count}"),
                    format!("count from 0, up to {count} to add one"),
                )),
                None => {
                    let above = seen.rsplit_once('.').map_or("", |(above, _)| above);
                    let of_tables = nodes.iter().any(|node| matches!(node.content, Content::Table(_)));
                    let path = [&[key], rest].concat().join(".");
                    let help = match count {
                        1 if of_tables => {
                            format!("write {above}.0.{path}: there is one [[{above}]], with the number 0")
                        }
                        _ if of_tables => format!(
                            "write {above}.0.{path} for the first [[{above}]], up to {above}.{}.{path} for the last",
                            count - 1
                        ),
                        _ => "write a whole number, counted from 0, without sign and leading zeros".into(),
                    };
                    Err((format!("{} is not a place in an array", quoted(key)), help))
                }
            }
        }
        other => {
            let above = seen.rsplit_once('.').map_or("", |(above, _)| above);
            Err((format!("{above} is {}, not a table", other.describe()), format!("write --set {above}=value")))
        }
    }
}

/// A table of a [`Document`], being read.
#[derive(Debug)]
pub struct Table<'a> {
    document: &'a Document,
    path: String,
    at: At,
    members: &'a [Member],
    /// By member: whether it was asked for.
    used: Vec<bool>,
    /// Every key that was asked for, whether it is there or not.
    known: Vec<String>,
    /// What it may hold, where that is declared.
    declared: Option<&'static Section>,
}

impl<'a> Table<'a> {
    fn new(document: &'a Document, path: String, at: At, members: &'a [Member]) -> Table<'a> {
        Table { document, path, at, members, used: vec![false; members.len()], known: Vec::new(), declared: None }
    }

    /// Says what it may hold: values are then kept within their limits, and [`Table::finish`] sees to it, in builds with
    /// debug assertions, that its reader asks for all that is declared and for nothing else.
    pub fn takes(&mut self, section: &'static Section) {
        self.declared = Some(section);
    }

    /// Its keys from the root, joined by dots; empty for the root.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Whether the key is there.
    pub fn has(&self, key: &str) -> bool {
        self.members.iter().any(|member| member.key == key)
    }

    /// A problem with the table as a whole.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        self.document.locate(self.at, message).key(self.path.as_str())
    }

    /// A problem with the value of a key, or with the table where the key is missing.
    pub fn problem_at(&self, key: &str, message: impl Into<String>) -> Problem {
        let member = self.members.iter().find(|member| member.key == key);
        self.document.locate(member.map_or(self.at, |member| member.node.at), message).key(self.join(key))
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.into() } else { format!("{}.{key}", self.path) }
    }

    fn take(&mut self, key: &str) -> Option<&'a Member> {
        if !self.known.iter().any(|known| known == key) {
            self.known.push(key.into());
        }
        let place = self.members.iter().position(|member| member.key == key)?;
        self.used[place] = true;
        Some(&self.members[place])
    }

    /// The value of a key that may be missing.
    pub fn optional<T: Value>(&mut self, key: &str) -> Result<Option<T>, Problem> {
        self.item(key).map(|item| item.read()).transpose()
    }

    /// The value of a key that must be there.
    pub fn required<T: Value>(&mut self, key: &str) -> Result<T, Problem> {
        match self.optional(key)? {
            Some(value) => Ok(value),
            None => Err(self.missing(key, &T::kind().to_string())),
        }
    }

    /// The problem that a key is missing, which would hold `kind`.
    pub fn missing(&self, key: &str, kind: &str) -> Problem {
        // An unknown key that resembles it is probably what was meant.
        let unused: Vec<String> = self.rest();
        let unused: Vec<&str> = unused.iter().map(String::as_str).collect();
        let help = match suggest(key, &unused) {
            Some(written) => format!("write {key} instead of {}: {key} = {kind}", quoted(written)),
            None => format!("add {key} = {kind}"),
        };
        self.problem(format!("{} has no {key}", self.title())).help(help).key(self.join(key)).cause(Cause::MissingKey)
    }

    /// How people call it.
    fn title(&self) -> String {
        if self.path.is_empty() { "the file".into() } else { format!("[{}]", self.path) }
    }

    /// Whatever a key holds.
    pub fn item(&mut self, key: &str) -> Option<Item<'a>> {
        let member = self.take(key)?;
        let declared = self.declared.and_then(|section| section.key(key));
        Some(Item { document: self.document, name: key.into(), path: self.join(key), node: &member.node, declared })
    }

    /// The table under a key.
    pub fn table(&mut self, key: &str) -> Result<Option<Table<'a>>, Problem> {
        let Some(item) = self.item(key) else { return Ok(None) };
        match &item.node.content {
            Content::Table(_) => item.table().map(Some),
            other => {
                let help = match (choice_of(&item.path), other) {
                    (Some((table, key)), Content::Value(Raw::Text(text))) => {
                        format!("write {table}.{key} = {}", quoted(text))
                    }
                    _ => format!("begin it with a line [{}]", item.path),
                };
                Err(item.problem(format!("expected a table, found {}", other.describe())).help(help))
            }
        }
    }

    /// The tables of an array under a key, in order; none where the key is missing.
    pub fn tables(&mut self, key: &str) -> Result<Vec<Table<'a>>, Problem> {
        let Some(item) = self.item(key) else { return Ok(Vec::new()) };
        let help = format!("begin each with a line [[{}]]", item.path);
        match &item.node.content {
            Content::Array(_) => {
                item.items()?.iter().map(|item| item.table().map_err(|p| p.help(help.as_str()))).collect()
            }
            other => Err(item.problem(format!("expected tables, found {}", other.describe())).help(help)),
        }
    }

    /// Every value in it and in the tables in it that is no table itself, with its path from here, as for `--set`.
    pub fn leaves(&mut self) -> Vec<(String, Item<'a>)> {
        fn walk<'a>(item: Item<'a>, path: String, leaves: &mut Vec<(String, Item<'a>)>) {
            let Content::Table(members) = &item.node.content else { return leaves.push((path, item)) };
            for member in members {
                let (name, path) = (member.key.clone(), format!("{path}.{}", member.key));
                let document = item.document;
                walk(Item { document, name, path: path.clone(), node: &member.node, declared: None }, path, leaves);
            }
        }
        let mut leaves = Vec::new();
        for key in self.rest() {
            self.item(&key).into_iter().for_each(|item| walk(item, key.clone(), &mut leaves));
        }
        leaves
    }

    /// The keys that were not asked for yet.
    pub fn rest(&self) -> Vec<String> {
        let unused = self.members.iter().zip(&self.used).filter(|(_, used)| !**used);
        unused.map(|(member, _)| member.key.clone()).collect()
    }

    /// Sets every remaining key that `parameters` has, and says which those were.
    pub fn fill(&mut self, parameters: &mut dyn Parameters) -> Result<Vec<&'static str>, Problem> {
        let (mut set, mut problems) = (Vec::new(), Vec::new());
        for parameter in parameters.list() {
            let asked = self.known.iter().any(|known| known == parameter.name);
            let Some(item) = (if asked { None } else { self.item(parameter.name) }) else { continue };
            let wrong =
                |message: String, help: String| item.problem(message).help(item.worded(help)).cause(Cause::Value);
            match &item.node.content {
                Content::Value(raw) => {
                    if let Err(range) = parameter.kind.check(raw) {
                        problems.push(item.out_of_range(&range, &parameter.about));
                        continue;
                    }
                    match parameters.set(parameter.name, raw) {
                        Some(Ok(())) => set.push(parameter.name),
                        Some(Err(error)) => {
                            let instead = parameter.kind.instead(raw).unwrap_or_else(|| parameter.kind.to_string());
                            let help = format!("write {instead}. {}", parameter.about);
                            problems.push(wrong(error.to_string(), help));
                        }
                        None => {}
                    }
                }
                other => {
                    let message = format!("expected {}, found {}", parameter.kind, other.describe());
                    problems.push(wrong(message, parameter.about));
                }
            }
        }
        Problem::all(problems).map_or(Ok(set), Err)
    }

    /// Refuses keys that were not asked for.
    pub fn finish(self) -> Result<(), Problem> {
        #[cfg(debug_assertions)]
        self.declared.iter().for_each(|section| section.compare(&self.known));
        let unused = self.members.iter().zip(&self.used).filter(|(_, used)| !**used);
        Problem::all(unused.map(|(member, _)| self.unknown(member))).map_or(Ok(()), Err)
    }

    /// The problem that a key is not one of those known.
    fn unknown(&self, member: &Member) -> Problem {
        let message = format!("unknown key {} in {}", quoted(&member.key), self.title());
        let known: Vec<&str> = self.known.iter().map(String::as_str).collect();
        let meant = suggest(&member.key, &known);
        let help = match (known.as_slice(), meant) {
            ([], _) => "remove it; the table takes no keys".into(),
            (_, Some(meant)) => format!("did you mean \"{meant}\"? The keys are {}", known.join(", ")),
            _ => format!("the keys are {}", known.join(", ")),
        };
        let at = if let At::Label(_) = member.node.at { member.node.at } else { member.at };
        let problem = self.document.locate(at, message).help(help).meant(meant);
        problem.key(self.join(&member.key)).cause(Cause::UnknownKey)
    }
}

/// Any value of a [`Document`], being read.
#[derive(Clone, Debug)]
pub struct Item<'a> {
    document: &'a Document,
    name: String,
    path: String,
    node: &'a Node,
    /// Its key, where that is declared.
    declared: Option<&'static Key>,
}

impl<'a> Item<'a> {
    /// The value.
    pub fn read<T: Value>(&self) -> Result<T, Problem> {
        let kind = || self.declared.map_or_else(T::kind, |key| key.kind.clone());
        let value = self.node.content.read().map_err(|error: ValueError| self.not_of(&kind(), &error))?;
        match (self.declared, &self.node.content) {
            (Some(key), Content::Value(raw)) => {
                key.kind.check(raw).map_err(|range| self.out_of_range(&range, &key.about))?;
                Ok(value)
            }
            _ => Ok(value),
        }
    }

    /// The problem that its value is beyond the limits of its key, whose sentence is `about`.
    fn out_of_range(&self, range: &OutOfRange, about: &str) -> Problem {
        let message = format!("{} is {}", self.name, range.value);
        let help = self.worded(format!("write {}. {about}", range.limits));
        self.document.locate(self.node.at, message).key(self.path.as_str()).help(help).cause(Cause::Value)
    }

    /// The problem that its value is not of a kind.
    fn not_of(&self, kind: &Kind, error: &ValueError) -> Problem {
        let instead = match &self.node.content {
            Content::Value(raw) => kind.instead(raw),
            _ => None,
        };
        let help = format!("write {}", instead.unwrap_or_else(|| kind.to_string()));
        self.problem(error.to_string()).help(self.worded(help)).cause(Cause::Value)
    }

    /// What is wrong with its value, as far as a kind tells.
    fn misfit(&self, kind: &Kind) -> Option<Problem> {
        fn takes_arrays(kind: &Kind) -> bool {
            match kind {
                Kind::Array { .. } => true,
                Kind::Auto(kind) => takes_arrays(kind),
                Kind::Either { of, .. } => of.iter().any(takes_arrays),
                _ => false,
            }
        }
        let error = match &self.node.content {
            Content::Value(raw) => kind.admit(raw).err()?,
            Content::Array(_) if takes_arrays(kind) => return None,
            other => ValueError::Expected { expected: kind.to_string(), found: Some(other.describe().into()) },
        };
        let about = self.declared.map_or("", |key| key.about.as_str());
        Some(match &error {
            ValueError::OutOfRange(range) => self.out_of_range(range, about),
            error => self.not_of(kind, error),
        })
    }

    /// A remedy as its reader would write it: a value after `--set` needs no quotes.
    fn worded(&self, help: String) -> String {
        match self.node.at {
            At::Label(label) if matches!(self.document.labels[label].given, Some(Given::Set(_))) => {
                help.replace(" in quotes", "").replace('"', "")
            }
            _ => help,
        }
    }

    /// The value as it would be written after `--set key=`: text without quotes where it can do without.
    pub fn as_set(&self) -> String {
        let whole = inline(&self.node.content);
        match &self.node.content {
            Content::Value(Raw::Text(text)) if canonical_value(text.trim()) == whole => text.clone(),
            _ => whole,
        }
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        matches!(self.node.content, Content::Array(_))
    }

    /// The elements of an array.
    pub fn items(&self) -> Result<Vec<Item<'a>>, Problem> {
        let Content::Array(nodes) = &self.node.content else {
            let found = self.node.content.describe();
            return Err(self.problem(format!("expected an array, found {found}")).help("write it in square brackets"));
        };
        let item = |(place, node)| Item {
            document: self.document,
            name: self.name.clone(),
            path: format!("{}.{place}", self.path),
            node,
            declared: None,
        };
        Ok(nodes.iter().enumerate().map(item).collect())
    }

    /// The table it is.
    fn table(&self) -> Result<Table<'a>, Problem> {
        match &self.node.content {
            Content::Table(members) => Ok(Table::new(self.document, self.path.clone(), self.node.at, members)),
            other => Err(self.problem(format!("expected a table, found {}", other.describe()))),
        }
    }

    /// A problem with it. The message is put after the name of its key.
    pub fn problem(&self, message: impl Into<String>) -> Problem {
        self.document.value_problem(self.node.at, &self.name, message.into()).key(self.path.as_str())
    }
}

/// `text` in quotation marks, cut where it is long and with nothing in it that a terminal obeys.
pub fn quoted(text: &str) -> String {
    format!("{:?}", clip(text))
}

fn clean(text: &str) -> String {
    clip(text).chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn clip(text: &str) -> String {
    const LONGEST: usize = 80;
    let mut characters = text.chars();
    let shown: String = characters.by_ref().take(LONGEST).collect();
    if characters.next().is_some() { format!("{shown}…") } else { shown }
}

/// The candidate that `word` probably meant.
pub fn suggest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let word: String = word.to_lowercase().chars().take(64).collect();
    let near = (word.chars().count() / 3).max(1);
    // Two letters that have changed places are one slip.
    let distances = candidates.iter().map(|&candidate| (strsim::osa_distance(&word, candidate), candidate));
    let nearest = distances.filter(|(distance, _)| *distance <= near).min_by_key(|(distance, _)| *distance);
    // A word that is cut short is the one that begins like it, if there is only one.
    let mut longer =
        candidates.iter().copied().filter(|candidate| word.chars().count() >= 3 && candidate.starts_with(&word));
    let longer = longer.next().filter(|_| longer.next().is_none());
    nearest.map(|(_, candidate)| candidate).or(longer)
}

/// A remedy for a word that is none of those known.
pub(crate) fn one_of(word: &str, known: &[&str]) -> String {
    let list = known.join(", ");
    match suggest(word, known) {
        Some(meant) => format!("did you mean \"{meant}\"? It is one of {list}"),
        None => format!("write one of {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::{Bytes, Time};
    use proptest::prelude::*;

    const TEXT: &str = "\
title = \"x\"
wait = \"5us\"

[switch]
buffer = \"4MB\"   # of each
depth.one = 1

[[flow]]
size = \"1KB\"
between = [\"a\", 3]
[[flow]]
size = \"2KB\"
";

    fn document() -> Document {
        Document::parse("a.toml", TEXT).unwrap()
    }

    engine::parameters! {
        /// Settings of a switch.
        pub struct Switch {
            /// Memory.
            buffer: Bytes = Bytes(1),
            /// Share.
            alpha: f64 = 0.5,
        }
    }

    #[test]
    fn values_are_read_by_type() {
        let document = document();
        let mut root = document.root();
        assert_eq!(root.required::<String>("title").unwrap(), "x");
        assert_eq!(root.optional::<Time>("wait").unwrap(), Some(Time::from_us(5)));
        assert_eq!(root.optional::<u64>("seed").unwrap(), None);
        let sizes: Vec<u64> =
            root.tables("flow").unwrap().iter_mut().map(|flow| flow.required::<Bytes>("size").unwrap().0).collect();
        assert_eq!(sizes, [1000, 2000]);
        assert!(root.tables("nothing").unwrap().is_empty());
        assert!(root.table("nothing").unwrap().is_none());
        let between = root.tables("flow").unwrap()[0].item("between").unwrap().items().unwrap();
        assert_eq!((between[0].read::<String>().unwrap(), between[1].read::<u64>().unwrap()), ("a".into(), 3));
    }

    #[test]
    fn a_wrong_value_is_shown_where_it_stands() {
        let document = document();
        let problem = document.root().required::<u64>("wait").unwrap_err();
        let expected = "\
a.toml:2:8: wait: expected a whole number, found \"5us\"
    2 | wait = \"5us\"
      |        ^
  help: write a whole number";
        assert_eq!(problem.to_string(), expected);
        let problem = document.root().tables("flow").unwrap()[1].required::<Time>("size").unwrap_err();
        assert_eq!((problem.line, problem.column), (Some(12), Some(8)));
        assert!(problem.message.contains("unknown unit \"KB\""), "{problem}");
        assert!(problem.help.as_deref().unwrap().contains("a time in quotes"), "{problem}");
        let problem = document.root().tables("flow").unwrap()[0].required::<Time>("between").unwrap_err();
        assert!(problem.message.contains("found an array"), "{problem}");
    }

    #[test]
    fn a_missing_value_is_asked_for_at_its_table() {
        let document = document();
        let problem = document.root().tables("flow").unwrap()[1].required::<Time>("start").unwrap_err();
        assert_eq!((problem.line, problem.message.as_str()), (Some(11), "[flow.1] has no start"));
        assert!(problem.help.as_deref().unwrap().starts_with("add start = a time"));
        let problem = document.root().required::<u64>("seed").unwrap_err();
        assert_eq!((problem.line, problem.message.as_str()), (None, "the file has no seed"));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_one_that_was_meant() {
        let document = Document::parse("a.toml", "[switch]\nbufer = \"4MB\"").unwrap();
        let mut table = document.root().table("switch").unwrap().unwrap();
        assert_eq!(table.fill(&mut Switch::default()).unwrap(), Vec::<&str>::new());
        let problem = table.finish().unwrap_err();
        let expected = "\
a.toml:2:1: unknown key \"bufer\" in [switch]
    2 | bufer = \"4MB\"
      | ^
  help: did you mean \"buffer\"? The keys are buffer, alpha";
        assert_eq!(problem.to_string(), expected);
    }

    #[test]
    fn a_set_of_parameters_takes_its_keys_and_leaves_the_rest() {
        let document = document();
        let mut table = document.root().table("switch").unwrap().unwrap();
        let mut switch = Switch::default();
        assert_eq!(table.fill(&mut switch).unwrap(), ["buffer"]);
        assert_eq!(switch, Switch { buffer: Bytes(4_000_000), alpha: 0.5 });
        assert!(table.table("depth").unwrap().is_some());
        table.finish().unwrap();
        let document = Document::parse("a.toml", "buffer = 4").unwrap();
        let problem = document.root().fill(&mut switch).unwrap_err();
        assert_eq!(problem.message, "buffer: expected a size in quotes, such as \"12MB\", found 4");
        let help = "write the number with its unit: a size in quotes, such as \"12MB\". Memory.";
        assert_eq!(problem.help.as_deref(), Some(help));
    }

    #[test]
    fn a_table_is_distinguished_from_an_array_of_tables() {
        let document = Document::parse("a.toml", "[flow]\nx = 1\n[[switch]]\n[n]\na = 1979-05-27\n").unwrap();
        let problem = document.root().tables("flow").unwrap_err();
        assert!(problem.help.as_deref().unwrap().contains("[[flow]]"), "{problem}");
        let problem = document.root().table("switch").unwrap_err();
        assert!(problem.help.as_deref().unwrap().contains("[switch]"), "{problem}");
        let problem = document.root().table("n").unwrap().unwrap().required::<Time>("a").unwrap_err();
        assert!(problem.message.contains("found a date"), "{problem}");
    }

    #[test]
    fn text_that_is_not_toml_is_refused_at_its_line() {
        let problem = Document::parse("a.toml", "a = 1\nbuffer = 4MB # memory\n").unwrap_err();
        assert_eq!(problem.line, Some(2));
        assert_eq!(problem.help.as_deref(), Some("put quantities in quotes: \"4MB\""));
        let problem = Document::parse("a.toml", "a = 1\na = 2\n").unwrap_err();
        assert_eq!(problem.message, "a is there twice: first in line 1");
        assert_eq!(problem.line, Some(2));
    }

    #[track_caller]
    fn set(assignments: &[&str]) -> Document {
        let mut document = document();
        assignments.iter().for_each(|assignment| document.set(assignment).unwrap());
        document
    }

    #[test]
    fn set_changes_adds_and_appends() {
        let document = set(&[
            "switch.buffer=8MB",
            "switch.alpha = 0.25",
            "nic.deep.payload=\"1KB\"",
            "flow.1.size=3KB",
            "flow.2.size=4KB",
            "link.0.between=[\"a\", \"b\"]",
            "on=true",
        ]);
        let mut root = document.root();
        let mut switch = Switch::default();
        root.table("switch").unwrap().unwrap().fill(&mut switch).unwrap();
        assert_eq!(switch, Switch { buffer: Bytes(8_000_000), alpha: 0.25 });
        let mut deep = root.table("nic").unwrap().unwrap().table("deep").unwrap().unwrap();
        assert_eq!(deep.required::<Bytes>("payload").unwrap(), Bytes(1000));
        let sizes: Vec<u64> =
            root.tables("flow").unwrap().iter_mut().map(|flow| flow.required::<Bytes>("size").unwrap().0).collect();
        assert_eq!(sizes, [1000, 3000, 4000]);
        assert_eq!(root.tables("link").unwrap()[0].item("between").unwrap().items().unwrap().len(), 2);
        assert!(root.required::<bool>("on").unwrap());
    }

    #[test]
    fn a_wrong_set_names_the_flag() {
        let document = set(&["switch.buffer=4XB", "switch.color=red"]);
        let problem = document.root().table("switch").unwrap().unwrap().fill(&mut Switch::default()).unwrap_err();
        assert!(problem.to_string().starts_with("--set switch.buffer=4XB: unknown unit \"XB\""), "{problem}");
        assert_eq!(problem.line, None);
        let document = set(&["switch.buffer=4MB", "switch.color=red"]);
        let mut table = document.root().table("switch").unwrap().unwrap();
        table.fill(&mut Switch::default()).unwrap();
        table.table("depth").unwrap();
        let problem = table.finish().unwrap_err();
        assert!(problem.to_string().starts_with("--set switch.color=red: unknown key \"color\""), "{problem}");
    }

    #[test]
    fn a_set_that_cannot_be_is_refused_at_once() {
        let refused = |assignment: &str, message: &str| {
            let mut changed = document();
            let problem = changed.set(assignment).unwrap_err();
            assert_eq!(changed.canonical(), document().canonical(), "{assignment} leaves a trace");
            assert!(problem.message.contains(message), "{problem}");
            assert!(problem.file.starts_with("--set ") && problem.given.is_some(), "{problem}");
            assert!(problem.help.is_some(), "{problem}");
        };
        refused("switch.buffer", "has no \"=\"");
        refused("switch.buffer=", "has no value");
        refused("switch..buffer=1", "empty key");
        refused("=1", "empty key");
        refused("switch=4MB", "switch is a table");
        refused("flow=1", "flow is an array");
        refused("switch.buffer.size=1", "switch.buffer is a value");
        refused("flow.7.size=1KB", "flow.7 is not there: the array has 2");
        refused("flow.x.size=1KB", "\"x\" is not a place");
        refused("load.1.size=1KB", "load.1 is not there: the array has 0");
        refused("flow.2.down.1=1KB", "flow.2.down.1 is not there: the array has 0");
        refused("switch.buffer=\"4MB", "is not TOML");
        refused("a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q=1", "too many keys");
    }

    #[test]
    fn a_key_of_an_array_of_tables_and_a_name_for_a_table_are_answered_with_the_key() {
        let help = |assignment: &str| document().set(assignment).unwrap_err().help.clone().unwrap();
        let all = "write flow.0.size for the first [[flow]], up to flow.1.size for the last";
        assert_eq!(help("flow.size=1KB"), all);
        assert_eq!(help("scheme=hpcc"), "write --set scheme.preset=hpcc");
        assert_eq!(help("topology=star"), "write --set topology.kind=star");
        let mut one = Document::parse("a.toml", "[[load]]\nload = 0.1").unwrap();
        let problem = one.set("load.load=0.3").unwrap_err();
        assert_eq!(problem.help.as_deref(), Some("write load.0.load: there is one [[load]], with the number 0"));
        let document = Document::parse("a.toml", "scheme = \"hpcc\"").unwrap();
        let problem = document.root().table("scheme").unwrap_err();
        assert_eq!(problem.help.as_deref(), Some("write scheme.preset = \"hpcc\""));
    }

    #[test]
    fn a_share_in_percent_is_answered_with_the_number() {
        let document = Document::parse("a.toml", "load = \"60%\"\nodd = \"2.5 %\"\nbad = \"x%\"").unwrap();
        let help = |key: &str| document.root().required::<f64>(key).unwrap_err().help.clone().unwrap();
        assert_eq!(help("load"), "write 0.6: a share is a number, 1 for all");
        assert_eq!(help("odd"), "write 0.025: a share is a number, 1 for all");
        assert_eq!(help("bad"), "write a number");
    }

    #[test]
    fn a_default_gives_way_to_what_is_written() {
        let mut document = document();
        document.set_default("preset \"p\"", "switch.buffer", "9MB");
        document.set_default("preset \"p\"", "switch.alpha", "nothing");
        document.set_default("preset \"p\"", "title.deep", "lost");
        let mut switch = Switch::default();
        let problem = document.root().table("switch").unwrap().unwrap().fill(&mut switch).unwrap_err();
        assert_eq!(switch.buffer, Bytes(4_000_000));
        assert!(problem.to_string().starts_with("preset \"p\": expected a number"), "{problem}");
        assert_eq!(document.root().required::<String>("title").unwrap(), "x");
    }

    #[test]
    fn a_problem_stands_at_what_is_nearest() {
        let document = set(&["switch.alpha=2"]);
        let place = |path: &str| {
            let problem = document.problem(path, "m");
            (problem.line, problem.column)
        };
        assert_eq!(place("switch.buffer"), (Some(5), Some(10)));
        assert_eq!(place("switch.nothing"), (Some(4), Some(1)));
        assert_eq!(place("flow.1.start"), (Some(11), Some(1)));
        assert_eq!(place("flow.9"), (Some(8), Some(3)));
        assert_eq!(place("nothing"), (None, None));
        assert_eq!(document.problem("switch.alpha", "m").to_string(), "--set switch.alpha=2: m");
    }

    #[test]
    fn the_canonical_text_has_one_form_for_one_meaning() {
        let text = "\
z = 0x10 # sixteen
a.'odd key' = 'C:\\dir'
flow = [{ size = '1KB', src = \"h\\u0031\" }]
[switch]
share = 5e-1
[switch.deep]
[measure]
ports = [ 'a', \"b\\n\", ]
";
        let expected = "\
flow = [
    { size = \"1KB\", src = \"h1\" },
]
z = 16

[a]
\"odd key\" = \"C:\\\\dir\"

[measure]
ports = [\"a\", \"b\\u000A\"]

[switch]
share = 0.5

[switch.deep]
";
        let document = Document::parse("a", text).unwrap();
        assert_eq!(document.canonical(), expected);
        assert_eq!(Document::parse("b", expected).unwrap().canonical(), expected);
        assert_eq!(document.value("measure.ports").as_deref(), Some("[\"a\", \"b\\u000A\"]"));
        assert_eq!(document.value("measure.port"), None);
        assert_eq!((canonical_value("0x10"), canonical_value("4MB")), ("16".into(), "\"4MB\"".into()));
        assert_eq!(document.texts("flow.*.size"), [("flow.0.size".to_string(), "1KB")]);
        assert_eq!((document.texts("flow.*.none").len(), document.texts("z.*.size").len()), (0, 0));
        assert_eq!(document.tables_in("switch"), ["deep"]);
    }

    #[test]
    fn a_key_can_be_taken_away() {
        let document = set(&["-switch.depth", "-flow.1.size", "-title"]);
        let expected = "\
flow = [
    { between = [\"a\", 3], size = \"1KB\" },
    {},
]
wait = \"5us\"

[switch]
buffer = \"4MB\"
";
        assert_eq!(document.canonical(), expected);
        for path in ["-switch.none", "-wait.x", "-", "-flow.9.size"] {
            let problem = self::document().set(path).unwrap_err();
            assert!(problem.help.is_some(), "{problem}");
        }
    }

    #[test]
    fn the_nearest_word_is_suggested_and_a_far_one_is_not() {
        let words = ["buffer", "alpha", "ecn_min", "ecn_max", "flow_control"];
        assert_eq!(suggest("bufer", &words), Some("buffer"));
        assert_eq!(suggest("Alhpa", &words), Some("alpha"));
        assert_eq!(suggest("ecnmax", &words), Some("ecn_max"));
        assert_eq!(suggest("flow-control", &words), Some("flow_control"));
        assert_eq!(suggest("colour", &words), None);
        assert_eq!(suggest("flow", &words), Some("flow_control"));
        assert_eq!(suggest("ecn_", &["ecn_min_", "ecn_max_"]), None, "it may be either");
        assert_eq!(suggest("al", &["alphabet"]), None, "too short");
        assert_eq!(suggest("", &words), None);
    }

    fn read_all(document: &Document) {
        let mut root = document.root();
        _ = root.optional::<Time>("wait");
        _ = root.table("switch").map(|table| table.map(|mut table| table.fill(&mut Switch::default())));
        _ = root.tables("flow").map(|tables| tables.into_iter().map(Table::finish).collect::<Vec<_>>());
        _ = document.problem("flow.0.size", "m").to_string();
        _ = root.finish();
    }

    proptest! {
        #[test]
        fn no_text_and_no_set_makes_it_panic(text in "\\PC*", from in 0usize..200, cut in 0usize..9, assignment in "[a-z0-9=.\"\\[{ä]{0,20}") {
            if let Ok(document) = Document::parse("a", text.as_str()) {
                read_all(&document);
            }
            let mut changed: Vec<char> = TEXT.chars().collect();
            let from = from.min(changed.len());
            let to = (from + cut).min(changed.len());
            changed.splice(from..to, text.chars().take(5));
            if let Ok(mut document) = Document::parse("a", changed.into_iter().collect::<String>()) {
                _ = document.set(&assignment);
                _ = document.set(&format!("switch.{assignment}"));
                _ = document.set(&format!("flow.0.{assignment}"));
                read_all(&document);
            }
        }
    }

    #[test]
    fn deep_nesting_is_refused_and_not_followed() {
        for text in ["[".repeat(100_000), format!("a = {}", "[".repeat(100_000)), vec!["a"; 100_000].join(".") + " = 1"]
        {
            assert!(Document::parse("a", text).is_err());
        }
    }
}
