//! From text to the tree of an expression.

use super::{
    FOLDS, FUNCTIONS, Fault, Filter, Fold, Measure, NAMED, Node, QUANTITIES, Quantity, SCALARS, SHARES, STATISTICS,
    Statistic, WORKLOADS, What, fault, statistic, unknown,
};
use engine::Bytes;
use scenario::document::quoted;

/// How deep parentheses may nest.
const DEEPEST: usize = 64;

/// Reads a whole expression.
pub(super) fn expression(text: &str) -> Result<Node, Fault> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let root = parser.sum()?;
    parser.end().map(|()| root)
}

/// Reads a quantity with or without filters, as the maximum of it.
pub(super) fn quantity(text: &str) -> Result<(Quantity, Node), Fault> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0 };
    let (at, quantity) = parser.quantity("buffer(switch='leaf*')")?;
    let filters = if parser.takes('(') { parser.filters()? } else { Vec::new() };
    parser.end()?;
    Ok((quantity, Node::Measure(Measure { what: What::Statistic(Statistic::Max, quantity), filters, at })))
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(f64),
    Text(String),
    Word(String),
    Sign(char),
    End,
}

impl Token {
    fn describe(&self) -> String {
        match self {
            Token::Number(n) => n.to_string(),
            Token::Text(text) => format!("'{text}'"),
            Token::Word(word) => format!("\"{word}\""),
            Token::Sign(sign) => format!("\"{sign}\""),
            Token::End => "the end".into(),
        }
    }
}

/// Units of numbers. Sizes are in bytes, times in microseconds, rates in Gb/s, shares of one.
const UNITS: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1e3),
    ("kB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("ps", 1e-6),
    ("ns", 1e-3),
    ("us", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("bps", 1e-9),
    ("kbps", 1e-6),
    ("Mbps", 1e-3),
    ("Gbps", 1.0),
    ("Tbps", 1e3),
    ("%", 0.01),
];

/// How many characters of `text` are a number, without its unit.
fn digits(text: &[char]) -> usize {
    let run = |from: usize| text[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut end = run(0);
    if text.get(end) == Some(&'.') {
        end += 1 + run(end + 1);
    }
    if end > 0 && matches!(text.get(end), Some('e' | 'E')) {
        let sign = matches!(text.get(end + 1), Some('+' | '-')) as usize;
        let exponent = if text.len() > end + 1 + sign { run(end + 1 + sign) } else { 0 };
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    end
}

/// A number with or without a unit, as an expression reads it; `None` for anything else, and for what is too large.
pub(super) fn number(text: &str) -> Option<f64> {
    written(text).filter(|value| value.is_finite())
}

/// The same, infinite where it is too large.
fn written(text: &str) -> Option<f64> {
    let text: Vec<char> = text.trim().chars().collect();
    let end = digits(&text);
    let value: f64 = text[..end].iter().collect::<String>().parse().ok()?;
    let unit: String = text[end..].iter().collect();
    match unit.as_str() {
        "" => Some(value),
        unit => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, scale)| value * scale),
    }
}

/// A token, where it begins, and how it is written.
type Placed = (usize, Token, String);

fn tokens(text: &str) -> Result<Vec<Placed>, Fault> {
    let text: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(&c) = text.get(at) {
        let rest = &text[at..];
        let (length, token) = match c {
            c if c.is_whitespace() => {
                at += 1;
                continue;
            }
            '0'..='9' | '.' => {
                let end = digits(rest);
                let unit = rest[end..].iter().take_while(|c| c.is_alphabetic() || **c == '%').count();
                let whole: String = rest[..end + unit].iter().collect();
                match written(&whole) {
                    Some(value) if value.is_infinite() => {
                        return fault(at, "the number is too large", "write a smaller one");
                    }
                    Some(value) => (end + unit, Token::Number(value)),
                    None if !rest[..end].iter().any(char::is_ascii_digit) => {
                        return fault(at, "a point alone is no number", "write 0.5");
                    }
                    None => {
                        let units: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
                        let unit: String = rest[end..end + unit].iter().collect();
                        return unknown(at + end, "unit", &unit, &units);
                    }
                }
            }
            '\'' | '"' => match rest[1..].iter().position(|end| *end == c) {
                Some(length) => (length + 2, Token::Text(rest[1..=length].iter().collect())),
                None => return fault(at, "this quotation mark is never closed", "close it with another"),
            },
            c if c.is_alphabetic() || c == '_' => {
                let length = rest.iter().take_while(|c| c.is_alphanumeric() || **c == '_').count();
                (length, Token::Word(rest[..length].iter().collect()))
            }
            '+' | '-' | '*' | '/' | '(' | ')' | ',' | '=' => (1, Token::Sign(c)),
            c => {
                let help = "an expression has numbers, names, quoted text and + - * / ( ) , =";
                return fault(at, format!("{} does not belong here", quoted(&c.to_string())), help);
            }
        };
        tokens.push((at, token, rest[..length].iter().collect()));
        at += length;
    }
    tokens.push((at, Token::End, String::new()));
    Ok(tokens)
}

struct Parser {
    tokens: Vec<Placed>,
    next: usize,
    depth: usize,
}

impl Parser {
    fn peek(&self) -> (usize, &Token) {
        self.ahead(0)
    }

    /// The token so many places ahead; the end stays the end.
    fn ahead(&self, places: usize) -> (usize, &Token) {
        let place = (self.next + places).min(self.tokens.len() - 1);
        let (at, token, _) = &self.tokens[place];
        (*at, token)
    }

    fn take(&mut self) -> Placed {
        let placed = self.tokens[self.next.min(self.tokens.len() - 1)].clone();
        self.next += 1;
        placed
    }

    fn takes(&mut self, sign: char) -> bool {
        let yes = *self.peek().1 == Token::Sign(sign);
        self.next += yes as usize;
        yes
    }

    fn expect(&mut self, sign: char) -> Result<(), Fault> {
        let (at, token) = self.peek();
        if *token == Token::Sign(sign) {
            self.next += 1;
            return Ok(());
        }
        fault(at, format!("expected \"{sign}\", found {}", token.describe()), "check the parentheses and commas")
    }

    fn end(&mut self) -> Result<(), Fault> {
        match self.peek() {
            (_, Token::End) => Ok(()),
            (at, other) => fault(at, format!("expected the end, found {}", other.describe()), "check the parentheses"),
        }
    }

    fn quantity(&mut self, example: &str) -> Result<(usize, Quantity), Fault> {
        let (at, token, _) = self.take();
        let Token::Word(word) = token else {
            let help = format!("write {example}, or another quantity");
            return fault(at, format!("expected a quantity, found {}", token.describe()), help);
        };
        match QUANTITIES.iter().find(|(known, ..)| *known == word) {
            Some((_, quantity, ..)) => Ok((at, *quantity)),
            None => {
                let known: Vec<&str> = QUANTITIES.iter().map(|(known, ..)| *known).collect();
                unknown(at, "quantity", &word, &known)
            }
        }
    }

    fn sum(&mut self) -> Result<Node, Fault> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return fault(self.peek().0, "parentheses nest too deep", "simplify the expression");
        }
        let mut left = self.product()?;
        while let Token::Sign(sign @ ('+' | '-')) = *self.peek().1 {
            self.next += 1;
            left = Node::Binary(sign, Box::new(left), Box::new(self.product()?));
        }
        self.depth -= 1;
        Ok(left)
    }

    fn product(&mut self) -> Result<Node, Fault> {
        let mut left = self.factor()?;
        while let Token::Sign(sign @ ('*' | '/')) = *self.peek().1 {
            self.next += 1;
            left = Node::Binary(sign, Box::new(left), Box::new(self.factor()?));
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Node, Fault> {
        let mut negative = false;
        while self.takes('-') {
            negative = !negative;
        }
        let (at, token, _) = self.take();
        let node = match token {
            Token::Number(value) => Node::Number(value),
            Token::Sign('(') => {
                let inner = self.sum()?;
                self.expect(')')?;
                inner
            }
            Token::Word(name) => self.call(at, &name)?,
            other => {
                let help = "write a number, a measure such as p99(slowdown), or an expression in parentheses";
                return fault(at, format!("expected a value, found {}", other.describe()), help);
            }
        };
        Ok(if negative { Node::Negative(Box::new(node)) } else { node })
    }

    fn call(&mut self, at: usize, name: &str) -> Result<Node, Fault> {
        if *self.peek().1 != Token::Sign('(') {
            if let Some((name, _, about, _)) = QUANTITIES.iter().find(|(known, ..)| *known == name) {
                let help = format!("{name} is {about}: write p99({name}), mean({name}) or max({name})");
                return fault(at, format!("{} has many values", quoted(name)), help);
            }
            return match known_functions().contains(&name) || statistic(name).is_some() {
                true => fault(at, format!("{name} needs parentheses"), format!("write {name}(…)")),
                false => unknown(at, "measure or function", name, &known_functions()),
            };
        }
        self.next += 1;
        // "max(slowdown, …)" is a statistic and "max(a, b)" is arithmetic: a lone word in front distinguishes them.
        let lone = matches!(self.ahead(0).1, Token::Word(_)) && matches!(self.ahead(1).1, Token::Sign(',' | ')'));
        let function = FUNCTIONS.iter().find(|(known, _)| *known == name);
        if let Some(statistic) = statistic(name).filter(|_| lone || function.is_none()) {
            return self.statistic(at, name, statistic);
        }
        if let Some((name, arguments)) = function {
            return self.function(at, name, arguments);
        }
        if let Some((_, fold)) = FOLDS.iter().find(|(known, _)| *known == name) {
            return self.over(at, name, *fold);
        }
        if let Some((_, scalar, ..)) = SCALARS.iter().find(|(known, ..)| *known == name) {
            let filters = self.filters()?;
            return Ok(Node::Measure(Measure { what: What::Scalar(*scalar), filters, at }));
        }
        if NAMED.contains(&name) {
            let (_, text) = self.text(&format!("{name}('…')"))?;
            let what = match name {
                "counter" => What::Counter(text),
                "summary" => What::Summary(text),
                _ => What::Ending(text),
            };
            if !self.takes(',') {
                self.expect(')')?;
                return Ok(Node::Measure(Measure { what, filters: Vec::new(), at }));
            }
            let filters = self.filters()?;
            return Ok(Node::Measure(Measure { what, filters, at }));
        }
        if SHARES.contains(&name) {
            return self.share(name);
        }
        unknown(at, "measure or function", name, &known_functions())
    }

    fn text(&mut self, example: &str) -> Result<(usize, String), Fault> {
        match self.take() {
            (at, Token::Text(text), _) => Ok((at, text)),
            (at, other, _) => fault(
                at,
                format!("expected text in quotation marks, found {}", other.describe()),
                format!("write {example}"),
            ),
        }
    }

    fn statistic(&mut self, at: usize, name: &str, statistic: Statistic) -> Result<Node, Fault> {
        let (_, quantity) = self.quantity(&format!("{name}(slowdown)"))?;
        let what = What::Statistic(statistic, quantity);
        if !self.takes(',') {
            self.expect(')')?;
            return Ok(Node::Measure(Measure { what, filters: Vec::new(), at }));
        }
        let filters = self.filters()?;
        Ok(Node::Measure(Measure { what, filters, at }))
    }

    /// `key=value, …` up to the closing parenthesis.
    fn filters(&mut self) -> Result<Vec<Filter>, Fault> {
        let mut filters: Vec<Filter> = Vec::new();
        if self.takes(')') {
            return Ok(filters);
        }
        loop {
            let (at, token, _) = self.take();
            let Token::Word(key) = token else {
                let help = "write filters as name='value', such as group='background'";
                return fault(at, format!("expected a filter, found {}", token.describe()), help);
            };
            self.expect('=')?;
            let value = match self.take() {
                (_, Token::Text(text), _) => text,
                (_, Token::Number(_), written) => written,
                (at, other, _) => {
                    let help = format!("write {key}='value'");
                    return fault(at, format!("expected the value of {key}, found {}", other.describe()), help);
                }
            };
            if filters.iter().any(|filter| filter.key == key) {
                return fault(at, format!("{key} is given twice"), "give it once");
            }
            filters.push(Filter { key, value, at });
            if !self.takes(',') {
                self.expect(')')?;
                return Ok(filters);
            }
        }
    }

    fn function(
        &mut self,
        at: usize,
        name: &'static str,
        arguments: &std::ops::RangeInclusive<usize>,
    ) -> Result<Node, Fault> {
        let mut values = vec![self.sum()?];
        while self.takes(',') {
            values.push(self.sum()?);
        }
        self.expect(')')?;
        if !arguments.contains(&values.len()) {
            let help = match name {
                "bdp" => "write bdp(rate, time), such as bdp(100Gbps, 8us)",
                "pow" => "write pow(base, exponent)",
                "abs" | "sqrt" => "give it one value",
                _ => "give it 1 to 16 values",
            };
            return fault(at, format!("{name} does not take {} values", values.len()), help);
        }
        Ok(Node::Function(name, values))
    }

    fn over(&mut self, at: usize, name: &str, fold: Fold) -> Result<Node, Fault> {
        let body = Box::new(self.sum()?);
        let help = format!("write {name}(expression over key), where key is variant, size or a varied label");
        let (place, token, _) = self.take();
        if token != Token::Word("over".into()) {
            return fault(place, format!("expected \"over\", found {}", token.describe()), help);
        }
        let (place, token, _) = self.take();
        let Token::Word(key) = token else {
            return fault(place, format!("expected a key, found {}", token.describe()), help);
        };
        let mut among = Vec::new();
        if *self.peek().1 == Token::Word("in".into()) {
            self.next += 1;
            loop {
                match self.take() {
                    (at, Token::Text(text), _) => among.push((text, at)),
                    (at, Token::Number(_), written) => among.push((written, at)),
                    (at, other, _) => {
                        let help = "write the values after \"in\" in quotation marks, with commas between them";
                        return fault(at, format!("expected a value of {key}, found {}", other.describe()), help);
                    }
                }
                if !self.takes(',') {
                    break;
                }
            }
        }
        self.expect(')')?;
        Ok(Node::Over { fold, body, key, among, at })
    }

    fn share(&mut self, name: &str) -> Result<Node, Fault> {
        let example = format!("{name}('google', '100KB')");
        let (at, workload) = self.text(&example)?;
        if !WORKLOADS.contains(&workload.as_str()) {
            return unknown(at, "workload", &workload, WORKLOADS);
        }
        self.expect(',')?;
        let (at, size) = self.text(&example)?;
        let up_to: Bytes = match size.parse() {
            Ok(size) => size,
            Err(error) => return fault(at, error.to_string(), format!("write {example}")),
        };
        self.expect(')')?;
        Ok(Node::Share { bytes: name == "bytes_share", workload, up_to: up_to.0 })
    }
}

/// Every name that may stand before a parenthesis.
fn known_functions() -> Vec<&'static str> {
    let mut all = vec!["p50", "p95", "p99", "p999"];
    all.extend(STATISTICS.iter().map(|(name, _)| *name));
    all.extend(SCALARS.iter().map(|(name, ..)| *name));
    all.extend(NAMED);
    all.extend(SHARES);
    all.extend(FOLDS.iter().map(|(name, _)| *name));
    all.extend(FUNCTIONS.iter().map(|(name, _)| *name).filter(|name| !matches!(*name, "min" | "max")));
    all
}
