//! Keys of configurations, and how their values are read.

use super::{CcMode, Config, LinkDown};
use crate::ns3::balancing::LbMode;
use crate::ns3::forks::Fork;
use crate::ns3::tokens::{MAX_SECONDS, Token, Tokens, Want};
use engine::units::{Rate, Time};
use files::problem::Problem;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// What giving a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// It does what it does in the reference.
    Honoured,
    /// It is accepted and changes nothing, for this reason.
    NoEffect(&'static str),
    /// It names a file of a monitor, which is not written here.
    Unwritten,
    /// It is accepted where it is off; this is what is missing for more.
    Off(&'static str),
    /// It is refused whatever its value, for this reason.
    Refused(&'static str),
}

/// One key of the configuration.
#[derive(Clone, Copy)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub form: &'static str,
    /// A value, as in a file.
    pub example: &'static str,
    /// Its value where it is not given.
    pub default: Option<&'static str>,
    /// What it means, in one line.
    pub meaning: &'static str,
    /// What giving it does.
    pub effect: Effect,
    /// Reads its value.
    pub read: fn(&mut Config, &mut Value<'_, '_>) -> Result<(), Problem>,
}

/// The value of a key that is being read.
pub struct Value<'t, 'a> {
    /// The words of the file.
    pub tokens: &'t mut Tokens<'a>,
    /// The key's own.
    pub at: Token<'a>,
    /// The key.
    pub key: &'static Key,
    /// Whose configuration it is.
    pub fork: &'static Fork,
}

impl Key {
    /// A key that is accepted and changes nothing.
    pub const fn without_effect(
        name: &'static str,
        example: &'static str,
        meaning: &'static str,
        why: &'static str,
    ) -> Key {
        let effect = Effect::NoEffect(why);
        Key { name, form: "a value", example, default: None, meaning, effect, read: |_, value| value.token().map(drop) }
    }

    /// A key that names the file of a monitor.
    pub const fn monitor(name: &'static str, example: &'static str, meaning: &'static str) -> Key {
        let (effect, default) = (Effect::Unwritten, None);
        Key { name, form: PATH, example, default, meaning, effect, read: |_, value| value.token().map(drop) }
    }

    /// A key that is accepted where it says `off`, and otherwise asks for something that is missing here.
    pub const fn off(name: &'static str, off: &'static str, meaning: &'static str, lacking: &'static str) -> Key {
        let effect = Effect::Off(lacking);
        Key { name, form: "a number", example: off, default: Some(off), meaning, effect, read: |_, value| value.off() }
    }
}

/// Any number of 32 bits.
pub const ANY_32_BITS: RangeInclusive<u64> = 0..=u32::MAX as u64;
/// Any number of 64 bits.
pub const ANY_64_BITS: RangeInclusive<u64> = 0..=u64::MAX;

impl<'a> Value<'_, 'a> {
    /// The next word, if it belongs to this key.
    pub fn word(&mut self) -> Option<Token<'a>> {
        match self.tokens.peek() {
            Some(token) if self.fork.key(token.text).is_none() && !token.text.starts_with('{') => self.tokens.next(),
            _ => None,
        }
    }

    /// A number that must be the example, which means off.
    pub fn off(&mut self) -> Result<(), Problem> {
        let token = self.token()?;
        let number = |text: &str| text.parse::<f64>().ok();
        if number(token.text).is_some_and(|value| Some(value) == number(self.key.example)) {
            return Ok(());
        }
        let Key { name, example, effect, .. } = *self.key;
        let (Effect::Off(lacking) | Effect::NoEffect(lacking) | Effect::Refused(lacking)) = effect else {
            return Ok(());
        };
        let message = format!("{name} {} cannot be run: {lacking}", token.quoted());
        Err(token
            .problem(self.tokens.file(), message)
            .help(format!("only {name} {example} can be, which is without it")))
    }

    /// The next word, which must be there.
    pub fn token(&mut self) -> Result<Token<'a>, Problem> {
        self.word().ok_or_else(|| {
            let Key { name, form, .. } = self.key;
            self.at
                .problem(self.tokens.file(), format!("{name} has no value"))
                .help(format!("it takes {form}; {}", self.example("")))
        })
    }

    /// An example of the key, for help.
    pub fn example(&self, why: &str) -> String {
        let separator = if why.is_empty() { "" } else { "; " };
        format!("write for example {} {}{separator}{why}", self.key.name, self.key.example)
    }

    /// Reads with the key's own words for problems.
    pub fn parse<T>(
        &self,
        form: &str,
        why: &str,
        read: impl FnOnce(&Tokens<'a>, Want<'_>) -> Result<T, Problem>,
    ) -> Result<T, Problem> {
        let help = self.example(why);
        read(self.tokens, Want { what: self.key.name, is: form, help: &help })
    }

    /// Reads a whole number; `why` says why others are refused.
    pub fn whole<T: TryFrom<u64>>(
        &mut self,
        slot: &mut T,
        range: RangeInclusive<u64>,
        why: &str,
    ) -> Result<(), Problem> {
        let token = self.token()?;
        let value = self.parse(self.key.form, why, |tokens, want| tokens.whole(token, want, range))?;
        // The ranges in the table fit the fields they are for.
        if let Ok(value) = T::try_from(value) {
            *slot = value;
        }
        Ok(())
    }

    /// Reads a number; `why` says why others are refused.
    pub fn number(&mut self, slot: &mut f64, allowed: impl Fn(f64) -> bool, why: &str) -> Result<(), Problem> {
        let token = self.token()?;
        *slot = self.parse(self.key.form, why, |tokens, want| tokens.number(token, want, allowed))?;
        Ok(())
    }

    /// Reads a yes or no as the reference does: any integer, and all but 0 mean yes.
    pub fn flag(&mut self, slot: &mut bool) -> Result<(), Problem> {
        *slot = self.integer()? != 0;
        Ok(())
    }

    /// Reads any integer of 32 bits.
    pub fn integer(&mut self) -> Result<i64, Problem> {
        let token = self.token()?;
        let value = token.text.parse().ok();
        let value = value.filter(|value| (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(value));
        value.ok_or_else(|| {
            let Key { name, form, .. } = self.key;
            let message = format!("{name} {} is not {form}", token.quoted());
            token.problem(self.tokens.file(), message).help(self.example(""))
        })
    }

    /// Reads a rate of at least `least` bits per second.
    pub fn rate(&mut self, slot: &mut Rate, least: u64) -> Result<(), Problem> {
        let token = self.token()?;
        *slot = self.tokens.rate(token, self.key.name)?;
        if slot.bps() >= least {
            return Ok(());
        }
        let message = format!("{} {} is zero", self.key.name, token.quoted());
        Err(token.problem(self.tokens.file(), message).help(self.example("a flow at rate 0 never ends")))
    }

    /// Reads any word.
    pub fn text(&mut self, slot: &mut Option<String>) -> Result<(), Problem> {
        *slot = Some(self.token()?.text.to_owned());
        Ok(())
    }

    /// Reads a path.
    pub fn path(&mut self, slot: &mut PathBuf) -> Result<(), Problem> {
        *slot = self.token()?.text.into();
        Ok(())
    }

    /// Reads a path that need not be given.
    pub fn optional_path(&mut self, slot: &mut Option<PathBuf>) -> Result<(), Problem> {
        self.path(slot.insert(PathBuf::new()))
    }

    /// Reads a congestion control.
    pub fn cc_mode(&mut self, slot: &mut CcMode) -> Result<(), Problem> {
        let token = self.token()?;
        let mode = token.text.parse().ok().and_then(CcMode::from_number);
        *slot = mode.ok_or_else(|| {
            let message = format!("CC_MODE {} is not {}", token.quoted(), self.key.form);
            token.problem(self.tokens.file(), message).help("use one of these")
        })?;
        Ok(())
    }

    /// Reads a whole number of microseconds.
    pub fn microseconds(&mut self, slot: &mut Time) -> Result<(), Problem> {
        let mut us: u64 = 0;
        self.whole(&mut us, 0..=1_000_000_000, "")?;
        *slot = Time::from_us(us);
        Ok(())
    }

    /// Reads a load balancing.
    pub fn lb_mode(&mut self, slot: &mut LbMode) -> Result<(), Problem> {
        let token = self.token()?;
        let number: Option<u64> = token.text.parse().ok();
        let mode = LbMode::ALL.iter().find(|(known, _)| Some(*known) == number);
        let (_, mode) = mode.ok_or_else(|| {
            let message = format!("LB_MODE {} is not {}", token.quoted(), self.key.form);
            let help = "use one of these; a scenario has more, by its key scheme.load_balancing";
            token.problem(self.tokens.file(), message).help(help)
        })?;
        *slot = *mode;
        Ok(())
    }

    /// Reads the link that fails.
    pub fn link_down(&mut self, slot: &mut Option<LinkDown>) -> Result<(), Problem> {
        let [time, a, b] = [self.token()?, self.token()?, self.token()?];
        let latest = (MAX_SECONDS * 1e6) as u64;
        let is = format!("a whole number of microseconds up to {latest}");
        let time_us = self.parse(&is, "", |tokens, want| tokens.whole(time, want, 0..=latest))?;
        let node = |token| {
            self.parse("a node", "", |tokens, want| tokens.whole(token, want, ANY_32_BITS)).map(|node| node as u32)
        };
        let link = LinkDown { time_us, a: node(a)?, b: node(b)? };
        if time_us > 0 && link.a == link.b {
            let message = format!("LINK_DOWN names node {} twice", link.a);
            return Err(b.problem(self.tokens.file(), message).help("name the two nodes that the link joins"));
        }
        *slot = (time_us > 0).then_some(link);
        Ok(())
    }

    /// Reads a count, then that many pairs of a rate and a value.
    pub fn map<T>(
        &mut self,
        map: &mut BTreeMap<u64, T>,
        value: impl Fn(&Self, Token<'a>) -> Result<T, Problem>,
    ) -> Result<(), Problem> {
        let name = self.key.name;
        let at = self.token()?;
        let is = "the number of pairs that follow, a whole number";
        let count = self.parse(is, "", |tokens, want| tokens.whole(at, want, ANY_32_BITS))?;
        // The count is not trusted with memory: the map grows with what is there.
        while (map.len() as u64) < count {
            let (Some(rate_at), Some(value_at)) = (self.word(), self.word()) else {
                let done = map.len();
                let message = format!("{name} ends after {done} of the {count} pairs that it announces");
                let help = format!("announce {done}, or add the missing pairs; it takes {}", self.key.form);
                return Err(at.problem(self.tokens.file(), message).help(help));
            };
            let is = "a rate in whole bits per second";
            let rate = self.parse(is, "", |tokens, want| tokens.whole(rate_at, want, 1..=u64::MAX))?;
            if map.insert(rate, value(self, value_at)?).is_some() {
                let message = format!("{name} has rate {rate} twice");
                return Err(rate_at.problem(self.tokens.file(), message).help("keep one of the two"));
            }
        }
        Ok(())
    }

    /// Reads a map from rates to KB.
    pub fn kilobytes(&mut self, map: &mut BTreeMap<u64, u32>) -> Result<(), Problem> {
        self.map(map, |value, token| {
            let is = "a whole number of KB up to 4294967";
            let why = "the reference counts its bytes in 32 bits";
            value.parse(is, why, |tokens, want| tokens.whole(token, want, 0..=4_294_967)).map(|kb| kb as u32)
        })
    }

    /// Reads a map from rates to probabilities.
    pub fn probabilities(&mut self, map: &mut BTreeMap<u64, f64>) -> Result<(), Problem> {
        self.map(map, |value, token| {
            let is = "a probability from 0 to 1";
            value.parse(is, "", |tokens, want| tokens.number(token, want, |p| (0.0..=1.0).contains(&p)))
        })
    }
}

/// What such a key takes.
pub const FLAG: &str = "0 or 1, or another whole number for 1";
/// What such a key takes.
pub const COUNT: &str = "a whole number of at most 32 bits";
/// What such a key takes.
pub const PATH: &str = "a path";
/// What such a key takes.
pub const RATE: &str = "a rate such as 40Mb/s";
/// What such a key takes.
pub const TIMER: &str = "a number of microseconds from 0 to 1000000000";
/// What such a key takes.
pub const PROBABILITY: &str = "a probability of at least 0 and below 1";
/// What such a key takes.
pub const NANOSECONDS: &str = "a whole number of nanoseconds";
/// What such a key takes.
pub const KB_MAP: &str = "a count, then as many pairs of a rate in bits per second and KB";

/// Whether a timer of DCQCN can be so long.
pub fn timer(us: f64) -> bool {
    (0.0..=1e9).contains(&us)
}
