//! The family: simulators that descend from the HPCC authors', told apart by the keys of a configuration and the form of a topology.
//!
//! A fork is a file here and a line in [`FORKS`].

pub mod conweave;
pub mod floodgate;
pub mod hpcc;
pub mod powertcp;
pub mod simai;

use super::config::Config;
use super::config::key::Key;
use files::problem::Problem;
use std::fmt;

/// The simulators that are known, the one from which all others descend first.
pub static FORKS: &[&Fork] = &[&hpcc::FORK, &conweave::FORK, &floodgate::FORK, &powertcp::FORK, &simai::FORK];

/// One of the family.
pub struct Fork {
    /// What it is called.
    pub name: &'static str,
    /// Its repository.
    pub home: &'static str,
    /// Keys that it has beside those of the HPCC authors' simulator, or that mean something else there.
    pub keys: &'static [Key],
    /// Its values of keys that are not given, where they are others.
    pub defaults: fn(&mut Config),
    /// What it asks for and cannot be run.
    pub check: fn(&Config) -> Vec<Problem>,
    /// What a topology file counts before it lists the switches.
    pub counts: &'static [&'static str],
    /// How many values a link has: all, or those before the error rate.
    pub link_fields: usize,
    /// How rates and delays of links are written.
    pub rates: Rates,
    /// The columns of a flow file.
    pub flow: &'static [Column],
    /// What to do where there is no flow file, if that is usual.
    pub without_flows: Option<&'static str>,
    /// Bits of a flow's size.
    pub size_bits: u32,
    /// How it numbers ports.
    pub ports: Ports,
    /// Whether flows may stand in any order: all are planned before the first starts.
    pub any_order: bool,
    /// Bytes of its link header.
    pub link_header: u16,
    /// What an acknowledgement is padded to.
    pub ack_size: u16,
    /// What switches set aside for each link, in products of its rate and its delay.
    pub headroom: u64,
    /// The power of two by which the free memory is divided for the threshold of a port as fast as the hosts'.
    pub shift: u32,
    /// The form of its completion times.
    pub results: Results,
    /// Why a run here is not the same to the byte; `None` if it is.
    pub differs: Option<&'static str>,
}

/// How rates and delays are written in a topology file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rates {
    /// With a unit each, as in 100Gbps and 1us; a rate without one is in bits per second.
    WithUnit,
    /// As in 100 and 600: Gbit/s and nanoseconds.
    Plain,
}

/// A column of a flow file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The sending host.
    Source,
    /// The receiving host.
    Destination,
    /// The priority; 3 where there is no such column.
    Priority,
    /// The destination port; numbered or 100 where there is no such column.
    Port,
    /// Bytes.
    Size,
    /// Seconds.
    Start,
}

impl Column {
    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Column::Source => "source",
            Column::Destination => "destination",
            Column::Priority => "priority",
            Column::Port => "destination port",
            Column::Size => "size",
            Column::Start => "start",
        }
    }
}

/// How flows get their ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ports {
    /// Source ports from 10000 on for each pair of hosts; destination ports from the file.
    PerPair,
    /// Source ports from 10000 on for each source; the destination port is 100.
    PerSource,
    /// Source ports from 10000 on for each source, destination ports from 100 on for each destination.
    PerHost,
}

/// How completion times are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Results {
    /// Hosts by their addresses in hexadecimal, then ports, size, start, FCT and ideal in nanoseconds.
    Addresses,
    /// The same with hosts by their numbers.
    Numbers,
    /// Hosts by their numbers, size, start, queue pair, message, then FCT and ideal in microseconds and the slowdown, between tabs.
    Tabs,
}

impl fmt::Debug for Fork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Fork {
    fn eq(&self, other: &Fork) -> bool {
        self.name == other.name
    }
}

impl Fork {
    /// A key by its name.
    pub fn key(&self, name: &str) -> Option<&'static Key> {
        let own = self.keys.iter().find(|key| key.name == name);
        own.or_else(|| hpcc::FORK.keys.iter().find(|key| key.name == name))
    }

    /// All of its keys.
    pub fn all_keys(&self) -> impl Iterator<Item = &'static Key> {
        let inherited =
            hpcc::FORK.keys.iter().filter(|key| self.key(key.name).is_some_and(|own| std::ptr::eq(own, *key)));
        let own: &'static [Key] = if *self == hpcc::FORK { &[] } else { self.keys };
        inherited.chain(own)
    }

    /// Whether a key of that name is this simulator's alone.
    fn owns(&self, name: &str) -> bool {
        *self != hpcc::FORK && self.keys.iter().any(|key| key.name == name) && hpcc::FORK.key(name).is_none()
    }
}

/// The fork that a configuration is of: the one most of whose own keys are among these words.
pub fn told_by<'a>(words: impl Iterator<Item = &'a str>) -> &'static Fork {
    let mut own = vec![0; FORKS.len()];
    for word in words {
        for (count, fork) in own.iter_mut().zip(FORKS) {
            *count += fork.owns(word) as usize;
        }
    }
    let most = own.iter().max().copied().unwrap_or(0);
    own.iter().position(|&count| count == most).and_then(|at| FORKS.get(at)).copied().unwrap_or(&hpcc::FORK)
}

/// A fork other than `this` that has a key of that name.
pub fn other_with(this: &Fork, name: &str) -> Option<&'static Fork> {
    FORKS.iter().copied().find(|fork| *fork != this && fork.key(name).is_some())
}
