//! Named parameters with types, limits, defaults and a sentence each, declared once.
//!
//! A mechanism declares its settings with [`parameters!`](crate::parameters!); from that single place come the struct that the code uses,
//! the reader of scenario files and `--set`, and everything that lists settings: `tailwater schemes`, the manual, the
//! studio's form and the JSON Schema.

use crate::{Bytes, QuantityError, Rate, Time};
use std::fmt;
use std::ops::{RangeFrom, RangeInclusive};

/// A value as a scenario file or the command line has it, before its meaning is known.
#[derive(Clone, Debug, PartialEq)]
pub enum Raw {
    /// Quoted text, such as a quantity with a unit.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Bool(bool),
}

impl Raw {
    /// The value as its writer would recognise it.
    pub fn describe(&self) -> String {
        match self {
            Raw::Text(text) => format!("\"{text}\""),
            other => other.plain(),
        }
    }

    /// The value without quotes.
    pub fn plain(&self) -> String {
        match self {
            Raw::Text(text) => text.clone(),
            Raw::Integer(n) => n.to_string(),
            Raw::Float(x) => x.to_string(),
            Raw::Bool(b) => b.to_string(),
        }
    }
}

/// The smallest and the largest value that a parameter may have, both included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits<T> {
    /// The smallest.
    pub least: T,
    /// The largest; `None` for as large as the type goes.
    pub most: Option<T>,
}

impl<T> From<RangeInclusive<T>> for Limits<T> {
    fn from(range: RangeInclusive<T>) -> Limits<T> {
        let (least, most) = range.into_inner();
        Limits { least, most: Some(most) }
    }
}

impl<T> From<RangeFrom<T>> for Limits<T> {
    fn from(range: RangeFrom<T>) -> Limits<T> {
        Limits { least: range.start, most: None }
    }
}

impl<T: PartialOrd> Limits<T> {
    /// Whether a value is within them.
    pub fn admit(&self, value: &T) -> bool {
        *value >= self.least && self.most.as_ref().is_none_or(|most| value <= most)
    }

    fn map<U>(self, change: impl Fn(T) -> U) -> Limits<U> {
        Limits { least: change(self.least), most: self.most.map(change) }
    }
}

impl<T: Value> fmt::Display for Limits<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.most {
            Some(most) => write!(f, "{} to {}", self.least.show(), most.show()),
            None => write!(f, "{} or more", self.least.show()),
        }
    }
}

/// One of the words that a parameter can be.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// As it is written, without quotes.
    pub word: &'static str,
    /// What it means, in a sentence.
    pub about: String,
}

/// What kind of value a parameter takes.
///
/// It prints as messages call it: `a time in quotes, such as "1.5us"`.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A time with its unit.
    Time(Option<Limits<Time>>),
    /// A rate with its unit.
    Rate(Option<Limits<Rate>>),
    /// A size with its unit.
    Bytes(Option<Limits<Bytes>>),
    /// A whole number, zero or more.
    Integer(Option<Limits<u64>>),
    /// A number.
    Number(Option<Limits<f64>>),
    /// `true` or `false`.
    Bool,
    /// Any text.
    Text,
    /// One of these words.
    Choice(Vec<Word>),
    /// The word `auto`, or that.
    Auto(Box<Kind>),
    /// Any of several kinds.
    Either {
        /// What tables call them together.
        name: &'static str,
        /// What messages call them together.
        said: &'static str,
        /// Each of them.
        of: Vec<Kind>,
    },
    /// An array.
    Array {
        /// What tables call it.
        name: &'static str,
        /// What messages call it.
        said: &'static str,
        /// The kind of its elements.
        of: Box<Kind>,
        /// How many it has.
        length: Limits<u64>,
    },
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, limits) = match self {
            Kind::Time(_) => ("a time in quotes, such as \"1.5us\"", self.limits()),
            Kind::Rate(_) => ("a rate in quotes, such as \"100Gbps\"", self.limits()),
            Kind::Bytes(_) => ("a size in quotes, such as \"12MB\"", self.limits()),
            Kind::Integer(_) => ("a whole number", self.limits()),
            Kind::Number(_) => ("a number", self.limits()),
            Kind::Bool => ("true or false", None),
            Kind::Text => ("text in quotes", None),
            Kind::Choice(words) => {
                f.write_str("one of")?;
                return words.iter().try_for_each(|word| write!(f, " \"{}\"", word.word));
            }
            Kind::Auto(kind) => return write!(f, "{kind} or \"auto\""),
            Kind::Either { said, .. } | Kind::Array { said, .. } => (*said, None),
        };
        f.write_str(name)?;
        limits.map_or(Ok(()), |limits| write!(f, " ({limits})"))
    }
}

/// By what messages call it.
impl PartialEq<&str> for Kind {
    fn eq(&self, other: &&str) -> bool {
        let said = self.to_string();
        said == *other
    }
}

/// A value that is of its kind and beyond its limits.
#[derive(Clone, Debug, PartialEq)]
pub struct OutOfRange {
    /// The value, without quotes.
    pub value: String,
    /// The limits, as in `1 to 8`.
    pub limits: String,
}

impl fmt::Display for OutOfRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is out of range: write {}", self.value, self.limits)
    }
}

impl std::error::Error for OutOfRange {}

/// Why a value cannot be read.
#[derive(Clone, Debug, PartialEq)]
pub enum ValueError {
    /// It is of another kind.
    Expected {
        /// The kind that was expected, as messages call it.
        expected: String,
        /// What was found instead, where that says more than the place.
        found: Option<String>,
    },
    /// It is text that is not a quantity.
    Quantity(QuantityError),
    /// It is a whole number that the type cannot hold.
    Integer {
        /// The number.
        value: i64,
        /// The largest that the type holds.
        most: u64,
    },
    /// It is beyond the limits of its parameter.
    OutOfRange(OutOfRange),
}

impl ValueError {
    /// The error that `raw` is no value of the type `T`.
    pub fn expected<T: Value>(raw: &Raw) -> ValueError {
        ValueError::Expected { expected: T::kind().to_string(), found: Some(raw.describe()) }
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueError::Expected { expected, found: Some(found) } => write!(f, "expected {expected}, found {found}"),
            ValueError::Expected { expected, found: None } => write!(f, "expected {expected}"),
            ValueError::Quantity(error) => error.fmt(f),
            ValueError::Integer { value, most } => write!(f, "{value} is out of range (0 to {most})"),
            ValueError::OutOfRange(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ValueError {}

impl From<QuantityError> for ValueError {
    fn from(error: QuantityError) -> ValueError {
        ValueError::Quantity(error)
    }
}

impl From<OutOfRange> for ValueError {
    fn from(error: OutOfRange) -> ValueError {
        ValueError::OutOfRange(error)
    }
}

impl Kind {
    /// The limits, as in `1 to 8`.
    pub fn limits(&self) -> Option<String> {
        match self {
            Kind::Time(limits) => limits.map(|limits| limits.to_string()),
            Kind::Rate(limits) => limits.map(|limits| limits.to_string()),
            Kind::Bytes(limits) => limits.map(|limits| limits.to_string()),
            Kind::Integer(limits) => limits.map(|limits| limits.to_string()),
            Kind::Number(limits) => limits.map(|limits| limits.to_string()),
            Kind::Auto(kind) => kind.limits().map(|limits| format!("{limits}, or \"auto\"")),
            _ => None,
        }
    }

    /// Whether a value has the form of this kind: text, a number, one of the words. What reads the others says what it expected.
    pub fn has_form(&self, raw: &Raw) -> bool {
        match self {
            Kind::Time(_) | Kind::Rate(_) | Kind::Bytes(_) | Kind::Text => matches!(raw, Raw::Text(_)),
            Kind::Integer(_) => matches!(raw, Raw::Integer(_)),
            Kind::Number(_) => matches!(raw, Raw::Integer(_) | Raw::Float(_)),
            Kind::Bool => matches!(raw, Raw::Bool(_)),
            Kind::Choice(words) => matches!(raw, Raw::Text(text) if words.iter().any(|word| word.word == text)),
            Kind::Auto(kind) => kind.has_form(raw) || *raw == Raw::Text("auto".into()),
            Kind::Either { of, .. } => of.iter().any(|kind| kind.has_form(raw)),
            Kind::Array { .. } => false,
        }
    }

    /// Reads a value and forgets it: the error that a reader of this kind would have. What reads an array looks at its elements itself.
    pub fn admit(&self, raw: &Raw) -> Result<(), ValueError> {
        match self {
            Kind::Time(_) => Time::read(raw).map(drop)?,
            Kind::Rate(_) => Rate::read(raw).map(drop)?,
            Kind::Bytes(_) => Bytes::read(raw).map(drop)?,
            Kind::Integer(_) => u64::read(raw).map(drop)?,
            Kind::Number(_) => f64::read(raw).map(drop)?,
            Kind::Auto(kind) if *raw != Raw::Text("auto".into()) => kind.admit(raw)?,
            Kind::Auto(_) => {}
            Kind::Either { of, .. } if of.iter().any(|kind| kind.admit(raw).is_ok()) => {}
            Kind::Bool | Kind::Text | Kind::Choice(_) if self.has_form(raw) => {}
            _ => {
                return Err(ValueError::Expected { expected: self.to_string(), found: Some(raw.describe()) });
            }
        }
        self.check(raw).map_err(ValueError::from)
    }

    /// What to write instead of a value that is not of this kind, where that can be told from the value: `2 or 3` for `2.5`.
    pub fn instead(&self, raw: &Raw) -> Option<String> {
        match (self, raw) {
            (Kind::Auto(kind), raw) => kind.instead(raw),
            (Kind::Integer(_), Raw::Float(number)) if number.is_finite() && (0.0..1e15).contains(number) => {
                let whole = number.floor() as u64;
                Some(if number.fract() == 0.0 { whole.to_string() } else { format!("{whole} or {}", whole + 1) })
            }
            (Kind::Integer(_) | Kind::Number(_) | Kind::Bool, Raw::Text(text)) => {
                let bare = [
                    text.parse().map(Raw::Integer).ok(),
                    text.parse().map(Raw::Float).ok(),
                    text.parse().map(Raw::Bool).ok(),
                ];
                let fits = bare.into_iter().flatten().any(|raw| self.admit(&raw).is_ok());
                if fits {
                    return Some(format!("{text}, without quotes"));
                }
                // A share as people say it. The point moves, so that no digit comes up that was not written.
                let share: f64 = format!("{}e-2", text.strip_suffix('%')?.trim()).parse().ok()?;
                self.admit(&Raw::Float(share)).is_ok().then(|| format!("{share}: a share is a number, 1 for all"))
            }
            (Kind::Time(_) | Kind::Rate(_) | Kind::Bytes(_), Raw::Integer(_) | Raw::Float(_)) => {
                Some(format!("the number with its unit: {self}"))
            }
            _ => None,
        }
    }

    /// Whether a value is within the limits. What is not of this kind has none to break.
    pub fn check(&self, raw: &Raw) -> Result<(), OutOfRange> {
        fn beyond<T: Value + PartialOrd>(limits: &Option<Limits<T>>, raw: &Raw) -> bool {
            limits.as_ref().zip(T::read(raw).ok()).is_some_and(|(limits, value)| !limits.admit(&value))
        }
        let beyond = match self {
            Kind::Time(limits) => beyond(limits, raw),
            Kind::Rate(limits) => beyond(limits, raw),
            Kind::Bytes(limits) => beyond(limits, raw),
            Kind::Integer(limits) => beyond(limits, raw),
            Kind::Number(limits) => beyond(limits, raw),
            Kind::Auto(kind) => kind.check(raw).is_err(),
            _ => false,
        };
        match self.limits() {
            Some(limits) if beyond => Err(OutOfRange { value: raw.plain(), limits }),
            _ => Ok(()),
        }
    }
}

/// A type that a parameter can have.
pub trait Value: Sized {
    /// What kind of value it is.
    fn kind() -> Kind;
    /// Reads a value; the error says what was expected.
    fn read(raw: &Raw) -> Result<Self, ValueError>;
    /// The value as a scenario file has it.
    fn raw(&self) -> Raw;
    /// Writes it as a scenario file would.
    fn show(&self) -> String {
        self.raw().describe()
    }
}

/// A type whose values a declaration can limit.
pub trait Ordered: Value {
    /// What the limits are given in.
    type Bound;
    /// The kind with these limits.
    fn limited(limits: Limits<Self::Bound>) -> Kind;
}

macro_rules! quantity_value {
    ($type:ident) => {
        impl Value for $type {
            fn kind() -> Kind {
                Kind::$type(None)
            }
            fn read(raw: &Raw) -> Result<Self, ValueError> {
                match raw {
                    Raw::Text(text) => Ok(text.parse()?),
                    _ => Err(ValueError::expected::<Self>(raw)),
                }
            }
            fn raw(&self) -> Raw {
                Raw::Text(self.to_string())
            }
        }
        impl Ordered for $type {
            type Bound = $type;
            fn limited(limits: Limits<$type>) -> Kind {
                Kind::$type(Some(limits))
            }
        }
    };
}
quantity_value!(Time);
quantity_value!(Rate);
quantity_value!(Bytes);

macro_rules! integer_value {
    ($type:ty) => {
        impl Value for $type {
            fn kind() -> Kind {
                Kind::Integer(None)
            }
            fn read(raw: &Raw) -> Result<Self, ValueError> {
                match raw {
                    &Raw::Integer(value) => {
                        // TOML has no larger ones.
                        let most = u64::from(<$type>::MAX).min(i64::MAX as u64);
                        value.try_into().map_err(|_| ValueError::Integer { value, most })
                    }
                    _ => Err(ValueError::expected::<Self>(raw)),
                }
            }
            fn raw(&self) -> Raw {
                // TOML has no larger ones.
                Raw::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
        impl Ordered for $type {
            type Bound = $type;
            fn limited(limits: Limits<$type>) -> Kind {
                Kind::Integer(Some(limits.map(u64::from)))
            }
        }
    };
}
integer_value!(u64);
integer_value!(u32);
integer_value!(u8);

impl Value for f64 {
    fn kind() -> Kind {
        Kind::Number(None)
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Integer(n) => Ok(*n as f64),
            Raw::Float(x) if x.is_finite() => Ok(*x),
            _ => Err(ValueError::expected::<Self>(raw)),
        }
    }
    fn raw(&self) -> Raw {
        Raw::Float(*self)
    }
}
impl Ordered for f64 {
    type Bound = f64;
    fn limited(limits: Limits<f64>) -> Kind {
        Kind::Number(Some(limits))
    }
}

impl Value for bool {
    fn kind() -> Kind {
        Kind::Bool
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Bool(b) => Ok(*b),
            _ => Err(ValueError::expected::<Self>(raw)),
        }
    }
    fn raw(&self) -> Raw {
        Raw::Bool(*self)
    }
}

impl Value for String {
    fn kind() -> Kind {
        Kind::Text
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Text(text) => Ok(text.clone()),
            _ => Err(ValueError::expected::<Self>(raw)),
        }
    }
    fn raw(&self) -> Raw {
        Raw::Text(self.clone())
    }
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

/// `"auto"` stands for "derived from the rest of the scenario".
impl<T: Value> Value for Option<T> {
    fn kind() -> Kind {
        Kind::Auto(Box::new(T::kind()))
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Text(text) if text == "auto" => Ok(None),
            _ => T::read(raw).map(Some),
        }
    }
    fn raw(&self) -> Raw {
        self.as_ref().map_or(Raw::Text("auto".into()), T::raw)
    }
    fn show(&self) -> String {
        self.as_ref().map_or("\"auto\"".into(), T::show)
    }
}
impl<T: Ordered> Ordered for Option<T> {
    type Bound = T::Bound;
    fn limited(limits: Limits<T::Bound>) -> Kind {
        Kind::Auto(Box::new(T::limited(limits)))
    }
}

/// Reads a value of a kind, within its limits.
pub fn read<T: Value>(kind: &Kind, raw: &Raw) -> Result<T, ValueError> {
    let value = T::read(raw)?;
    kind.check(raw)?;
    Ok(value)
}

/// One parameter as a listing shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its key in a scenario file.
    pub name: &'static str,
    /// What kind of value it takes.
    pub kind: Kind,
    /// The value it has now, as a scenario file would write it; on a fresh set, the default.
    pub value: String,
    /// The same before it is written.
    pub raw: Raw,
    /// What it does, in a sentence.
    pub about: String,
    /// When it has an effect: all of these must hold. Empty for always.
    pub only: Vec<Only>,
}

/// A condition under which a parameter has an effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Only {
    /// Another parameter of the same set has this value.
    Beside {
        /// The other parameter.
        key: &'static str,
        /// The value, as a scenario file would write it.
        value: String,
    },
    /// The whole scenario is like this, in words that whoever knows the scenario recognises.
    Under(&'static str),
}

/// It prints as in `only with watchdog = true`.
impl fmt::Display for Only {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Only::Beside { key, value } => write!(f, "only with {key} = {value}"),
            Only::Under(words) => write!(f, "only with {words}"),
        }
    }
}

/// A value that can be read and yet cannot be: what is wrong, and what to write instead.
#[derive(Clone, Debug, PartialEq)]
pub struct Misfit {
    /// The parameter.
    pub parameter: &'static str,
    /// What is wrong with its value.
    pub message: String,
    /// What to write.
    pub help: String,
}

impl Misfit {
    /// Says that `parameter` cannot be `value`.
    pub fn new(parameter: &'static str, value: impl std::fmt::Display, help: impl Into<String>) -> Misfit {
        Misfit { parameter, message: format!("{parameter} cannot be {value}"), help: help.into() }
    }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.message, self.help)
    }
}

impl std::error::Error for Misfit {}

/// A set of named parameters; implemented by [`parameters!`](crate::parameters!).
pub trait Parameters {
    /// All of them, in order of declaration.
    fn list(&self) -> Vec<Parameter>;
    /// Sets one by name. `None` means that there is no such parameter.
    fn set(&mut self, name: &str, raw: &Raw) -> Option<Result<(), ValueError>>;
}

impl<T: Parameters + ?Sized> Parameters for Box<T> {
    fn list(&self) -> Vec<Parameter> {
        (**self).list()
    }
    fn set(&mut self, name: &str, raw: &Raw) -> Option<Result<(), ValueError>> {
        (**self).set(name, raw)
    }
}

/// No parameters at all.
impl Parameters for () {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

/// Declares a struct of parameters: `/// sentence`, `name: Type = default,` per line.
///
/// Limits follow the default: `name: Type = default, in least..=most,`. An `Option` is limited like what it holds.
///
/// A parameter that has an effect only in some cases says in which, so that whoever sets it in vain is notified:
/// `name: Type = default, if other == value,` where another parameter of the set must have that value,
/// `name: Type = default, under "flow control that pauses",` where the whole scenario must be like that. Limits come first.
#[macro_export]
macro_rules! parameters {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr $(, in $limits:expr)?
            $(, if $other:ident == $value:expr)* $(, under $words:expr)*,)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $($(#[doc = $doc])+ pub $field: $type,)* }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        impl $crate::Parameters for $name {
            fn list(&self) -> Vec<$crate::Parameter> {
                vec![$($crate::Parameter {
                    name: stringify!($field),
                    kind: $crate::kind_of!($type $(, $limits)?),
                    value: $crate::Value::show(&self.$field),
                    raw: $crate::Value::raw(&self.$field),
                    about: [$($doc),+].map(str::trim).join(" "),
                    only: vec![
                        $($crate::Only::Beside {
                            key: stringify!($other),
                            value: $crate::parameters::written_like(&self.$other, &$value),
                        },)*
                        $($crate::Only::Under($words),)*
                    ],
                },)*]
            }
            fn set(&mut self, name: &str, raw: &$crate::Raw) -> Option<Result<(), $crate::ValueError>> {
                match name {
                    $(stringify!($field) => {
                        let value = $crate::parameters::read(&$crate::kind_of!($type $(, $limits)?), raw);
                        Some(value.map(|value| self.$field = value))
                    })*
                    _ => None,
                }
            }
        }
    };
}

/// A value as a scenario file would write it; the first argument only says of which type it is.
#[doc(hidden)]
pub fn written_like<T: Value>(_: &T, value: &T) -> String {
    value.show()
}

/// The kind of a type, with limits if there are any.
#[doc(hidden)]
#[macro_export]
macro_rules! kind_of {
    ($type:ty) => {
        <$type as $crate::Value>::kind()
    };
    ($type:ty, $limits:expr) => {
        <$type as $crate::Ordered>::limited(($limits).into())
    };
}

/// Declares a choice among words, usable as a parameter.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[doc = $doc:literal])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[doc = $doc])+ $variant,)+ }

        impl $name {
            /// As it is written.
            #[allow(dead_code)]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }

        impl $crate::Value for $name {
            fn kind() -> $crate::Kind {
                $crate::Kind::Choice(vec![$($crate::Word {
                    word: $word,
                    about: [$($doc),+].map(str::trim).join(" "),
                },)+])
            }
            fn read(raw: &$crate::Raw) -> Result<Self, $crate::ValueError> {
                match raw {
                    $($crate::Raw::Text(text) if text == $word => Ok(Self::$variant),)+
                    other => Err($crate::ValueError::expected::<Self>(other)),
                }
            }
            fn raw(&self) -> $crate::Raw {
                $crate::Raw::Text(self.word().into())
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    choice! {
        /// A direction.
        pub enum Direction {
            /// Up.
            Up = "up",
            /// Down.
            Down = "down",
        }
    }
    parameters! {
        /// Settings of nothing in particular.
        pub struct Sample {
            /// How long
            /// it takes.
            wait: Time = Time::from_us(1),
            /// The direction.
            direction: Direction = Direction::Up,
            /// A limit.
            limit: Option<Bytes> = None, in Bytes(10)..=Bytes(2000),
            /// How often.
            times: u32 = 1, in 1.., if direction == Direction::Down, under "gravity",
        }
    }

    #[test]
    fn a_parameter_says_when_it_has_an_effect() {
        let listed = Sample::default().list();
        assert_eq!(listed[2].only, []);
        let said: Vec<String> = listed[3].only.iter().map(Only::to_string).collect();
        assert_eq!(said, ["only with direction = \"down\"", "only with gravity"]);
    }

    #[test]
    fn one_declaration_gives_struct_reader_and_listing() {
        let mut sample = Sample::default();
        assert_eq!(sample.set("wait", &Raw::Text("2ns".into())), Some(Ok(())));
        assert_eq!(sample.set("direction", &Raw::Text("down".into())), Some(Ok(())));
        assert_eq!(sample.set("limit", &Raw::Text("1KB".into())), Some(Ok(())));
        assert_eq!(
            sample,
            Sample { wait: Time::from_ns(2), direction: Direction::Down, limit: Some(Bytes(1000)), times: 1 }
        );
        assert_eq!(sample.set("color", &Raw::Bool(true)), None);
        let listed = &Sample::default().list()[0];
        assert_eq!(
            (listed.name, listed.value.as_str(), listed.about.as_str()),
            ("wait", "\"1us\"", "How long it takes.")
        );
    }

    #[test]
    fn a_wrong_value_is_refused_with_what_was_expected() {
        let mut sample = Sample::default();
        let error = sample.set("direction", &Raw::Text("left".into())).unwrap().unwrap_err().to_string();
        assert!(error.contains("one of \"up\" \"down\""), "{error}");
        let error = sample.set("wait", &Raw::Integer(5)).unwrap().unwrap_err().to_string();
        assert!(error.contains("a time in quotes") && error.contains("found 5"), "{error}");
    }

    #[test]
    fn limits_are_declared_with_the_parameter_and_kept_by_its_reader() {
        let mut sample = Sample::default();
        let error = sample.set("limit", &Raw::Text("9B".into())).unwrap().unwrap_err().to_string();
        assert_eq!(error, "9B is out of range: write \"10B\" to \"2KB\", or \"auto\"");
        assert_eq!(
            sample.set("times", &Raw::Integer(0)).unwrap().unwrap_err().to_string(),
            "0 is out of range: write 1 or more"
        );
        assert_eq!(sample, Sample::default());
        for good in ["10B", "2KB", "auto"] {
            assert_eq!(sample.set("limit", &Raw::Text(good.into())), Some(Ok(())), "{good}");
        }
        let kind = &sample.list()[2].kind;
        assert_eq!(kind.to_string(), "a size in quotes, such as \"12MB\" (\"10B\" to \"2KB\") or \"auto\"");
        assert_eq!(kind.check(&Raw::Bool(true)), Ok(()));
    }

    #[test]
    fn a_kind_finds_the_same_faults_as_its_reader() {
        let text = |text: &str| Raw::Text(text.into());
        let bad = [
            (Time::kind(), text("5")),
            (u32::kind(), Raw::Float(2.5)),
            (Direction::kind(), text("left")),
            (bool::kind(), Raw::Integer(1)),
            (Bytes::limited((Bytes(1)..=Bytes(9)).into()), text("10B")),
            (Option::<Time>::kind(), text("soon")),
        ];
        for (kind, raw) in bad {
            assert!(kind.admit(&raw).is_err(), "{kind} {raw:?}");
        }
        for (kind, raw) in
            [(Option::<Time>::kind(), text("auto")), (f64::kind(), Raw::Integer(1)), (u8::kind(), Raw::Integer(1))]
        {
            assert_eq!(kind.admit(&raw), Ok(()), "{kind} {raw:?}");
        }
    }

    #[test]
    fn a_value_of_another_kind_has_a_remedy_of_its_own() {
        let text = |text: &str| Raw::Text(text.into());
        assert_eq!(u32::kind().instead(&Raw::Float(2.5)).as_deref(), Some("2 or 3"));
        assert_eq!(u32::kind().instead(&Raw::Float(2.0)).as_deref(), Some("2"));
        assert_eq!(u32::kind().instead(&text("4")).as_deref(), Some("4, without quotes"));
        assert_eq!(bool::kind().instead(&text("true")).as_deref(), Some("true, without quotes"));
        assert!(Bytes::kind().instead(&Raw::Integer(5)).unwrap().starts_with("the number with its unit"));
        assert_eq!(u32::kind().instead(&text("many")), None);
    }

    #[test]
    fn a_choice_lists_its_words_with_their_meanings() {
        let Kind::Choice(words) = Direction::kind() else { panic!() };
        let words: Vec<_> = words.iter().map(|word| (word.word, word.about.as_str())).collect();
        assert_eq!(words, [("up", "Up."), ("down", "Down.")]);
    }
}
