//! Named parameters with units, defaults and a sentence each, declared once.
//!
//! A mechanism declares its settings with [`parameters!`](crate::parameters!); from that single place come the struct that the code uses,
//! the reader of scenario files and `--set`, and the list that `tailwater schemes` prints.

use crate::{Bytes, Rate, Time};

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
            Raw::Integer(n) => n.to_string(),
            Raw::Float(x) => x.to_string(),
            Raw::Bool(b) => b.to_string(),
        }
    }
}

/// A type that a parameter can have.
pub trait Value: Sized {
    /// How the type is called in messages and listings.
    fn kind() -> String;
    /// Reads a value; the error says what was expected.
    fn read(raw: &Raw) -> Result<Self, String>;
    /// Writes it as a scenario file would.
    fn show(&self) -> String;
}

fn expected<T: Value>(raw: &Raw) -> String {
    format!("expected {}, found {}", T::kind(), raw.describe())
}

macro_rules! quantity_value {
    ($type:ty, $kind:literal) => {
        impl Value for $type {
            fn kind() -> String {
                $kind.into()
            }
            fn read(raw: &Raw) -> Result<Self, String> {
                match raw {
                    Raw::Text(text) => text.parse(),
                    _ => Err(expected::<Self>(raw)),
                }
            }
            fn show(&self) -> String {
                format!("\"{self}\"")
            }
        }
    };
}
quantity_value!(Time, "a time in quotes, such as \"1.5us\"");
quantity_value!(Rate, "a rate in quotes, such as \"100Gbps\"");
quantity_value!(Bytes, "a size in quotes, such as \"12MB\"");

macro_rules! integer_value {
    ($type:ty) => {
        impl Value for $type {
            fn kind() -> String {
                "a whole number".into()
            }
            fn read(raw: &Raw) -> Result<Self, String> {
                match raw {
                    Raw::Integer(n) => {
                        (*n).try_into().map_err(|_| format!("{n} is out of range (0 to {})", <$type>::MAX))
                    }
                    _ => Err(expected::<Self>(raw)),
                }
            }
            fn show(&self) -> String {
                self.to_string()
            }
        }
    };
}
integer_value!(u64);
integer_value!(u32);
integer_value!(u8);

impl Value for f64 {
    fn kind() -> String {
        "a number".into()
    }
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Integer(n) => Ok(*n as f64),
            Raw::Float(x) if x.is_finite() => Ok(*x),
            _ => Err(expected::<Self>(raw)),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for bool {
    fn kind() -> String {
        "true or false".into()
    }
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Bool(b) => Ok(*b),
            _ => Err(expected::<Self>(raw)),
        }
    }
    fn show(&self) -> String {
        self.to_string()
    }
}

impl Value for String {
    fn kind() -> String {
        "text in quotes".into()
    }
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) => Ok(text.clone()),
            _ => Err(expected::<Self>(raw)),
        }
    }
    fn show(&self) -> String {
        format!("{self:?}")
    }
}

/// `"auto"` stands for "derived from the rest of the scenario".
impl<T: Value> Value for Option<T> {
    fn kind() -> String {
        format!("{} or \"auto\"", T::kind())
    }
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) if text == "auto" => Ok(None),
            _ => T::read(raw).map(Some),
        }
    }
    fn show(&self) -> String {
        self.as_ref().map_or("\"auto\"".into(), T::show)
    }
}

/// One parameter as a listing shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Its key in a scenario file.
    pub name: &'static str,
    /// What kind of value it takes.
    pub kind: String,
    /// The value it has now; on a fresh set, the default.
    pub value: String,
    /// What it does, in a sentence.
    pub about: String,
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

/// A set of named parameters; implemented by [`parameters!`](crate::parameters!).
pub trait Parameters {
    /// All of them, in order of declaration.
    fn list(&self) -> Vec<Parameter>;
    /// Sets one by name. `None` means that there is no such parameter.
    fn set(&mut self, name: &str, raw: &Raw) -> Option<Result<(), String>>;
}

/// No parameters at all.
impl Parameters for () {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), String>> {
        None
    }
}

/// Declares a struct of parameters: `/// sentence`, `name: Type = default,` per line.
#[macro_export]
macro_rules! parameters {
    ($(#[$meta:meta])* pub struct $name:ident { $($(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr,)* }) => {
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
                    kind: <$type as $crate::Value>::kind(),
                    value: $crate::Value::show(&self.$field),
                    about: [$($doc),+].map(str::trim).join(" "),
                },)*]
            }
            fn set(&mut self, name: &str, raw: &$crate::Raw) -> Option<Result<(), String>> {
                match name {
                    $(stringify!($field) => Some($crate::Value::read(raw).map(|value| self.$field = value)),)*
                    _ => None,
                }
            }
        }
    };
}

/// Declares a choice among words, usable as a parameter.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* pub enum $name:ident { $($(#[$doc:meta])+ $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $($(#[$doc])+ $variant,)+ }

        impl $crate::Value for $name {
            fn kind() -> String {
                concat!("one of", $(" \"", $word, "\"",)+).into()
            }
            fn read(raw: &$crate::Raw) -> Result<Self, String> {
                match raw {
                    $($crate::Raw::Text(text) if text == $word => Ok(Self::$variant),)+
                    other => Err(format!("expected {}, found {}", Self::kind(), other.describe())),
                }
            }
            fn show(&self) -> String {
                match self { $(Self::$variant => concat!("\"", $word, "\"").into(),)+ }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    choice! {
        /// A way.
        pub enum Way {
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
            /// The way.
            way: Way = Way::Up,
            /// A limit.
            limit: Option<Bytes> = None,
        }
    }

    #[test]
    fn one_declaration_gives_struct_reader_and_listing() {
        let mut sample = Sample::default();
        assert_eq!(sample.set("wait", &Raw::Text("2ns".into())), Some(Ok(())));
        assert_eq!(sample.set("way", &Raw::Text("down".into())), Some(Ok(())));
        assert_eq!(sample.set("limit", &Raw::Text("1KB".into())), Some(Ok(())));
        assert_eq!(sample, Sample { wait: Time::from_ns(2), way: Way::Down, limit: Some(Bytes(1000)) });
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
        let error = sample.set("way", &Raw::Text("left".into())).unwrap().unwrap_err();
        assert!(error.contains("one of \"up\" \"down\""), "{error}");
        let error = sample.set("wait", &Raw::Integer(5)).unwrap().unwrap_err();
        assert!(error.contains("a time in quotes") && error.contains("found 5"), "{error}");
    }
}
