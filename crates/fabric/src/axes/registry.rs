//! The variants that exist on every axis, and the presets that combine them.
//!
//! The program has one registry, which it is given when it starts. A crate from outside adds its variants to the list and gets
//! the whole program with them: command line, sweeps, ledger, studio.

use super::{
    CongestionControlDef, EdgeControlDef, FlowControlDef, LoadBalancingDef, MarkingDef, QueueingDef, TransportDef,
};
use std::sync::OnceLock;

/// Makes a variant with its default parameters.
type Make<T> = fn() -> Box<T>;

/// The variants of one axis, the default first.
pub struct Axis<T: ?Sized + 'static>(Vec<Make<T>>);

impl<T: ?Sized> Default for Axis<T> {
    fn default() -> Self {
        Axis(Vec::new())
    }
}

impl<T: ?Sized + super::Definition> Axis<T> {
    /// Adds a variant.
    pub fn add(&mut self, make: Make<T>) -> &mut Self {
        self.0.push(make);
        self
    }
    /// Every variant with its default parameters.
    pub fn all(&self) -> Vec<Box<T>> {
        self.0.iter().map(|make| make()).collect()
    }
    /// The variant of that name.
    pub fn named(&self, name: &str) -> Option<Box<T>> {
        self.all().into_iter().find(|variant| variant.name() == name)
    }
    /// All names.
    pub fn names(&self) -> Vec<&'static str> {
        self.all().iter().map(|variant| variant.name()).collect()
    }
}

/// A named set of defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// Its name, the value of `scheme.preset`.
    pub name: &'static str,
    /// What it is, in a sentence.
    pub about: &'static str,
    /// Keys from the root of a scenario and their values, written as for `--set`. The choice of mechanisms
    /// comes first; a key of a mechanism's own table counts only while that mechanism is chosen.
    pub settings: &'static [(&'static str, &'static str)],
}

/// All variants and presets.
#[derive(Default)]
pub struct Registry {
    /// Flow control.
    pub flow_control: Axis<dyn FlowControlDef>,
    /// Congestion control.
    pub congestion_control: Axis<dyn CongestionControlDef>,
    /// On top of congestion control.
    pub edge_control: Axis<dyn EdgeControlDef>,
    /// Transports.
    pub transport: Axis<dyn TransportDef>,
    /// Load balancing.
    pub load_balancing: Axis<dyn LoadBalancingDef>,
    /// Queueing.
    pub queueing: Axis<dyn QueueingDef>,
    /// Marking.
    pub marking: Axis<dyn MarkingDef>,
    /// Combinations with a name.
    pub presets: Vec<Preset>,
    /// Digests of the code that simulates, by crate. They are part of a run's identity: after an edit, stored results are not used.
    pub identities: Vec<(&'static str, String)>,
}

static REGISTRY: OnceLock<Registry> = OnceLock::new();

impl Registry {
    /// Makes this the registry of the program. The first call counts; false says that there was one before.
    pub fn install(self) -> bool {
        REGISTRY.set(self).is_ok()
    }

    /// The registry of the program.
    ///
    /// # Panics
    /// If none was installed.
    pub fn get() -> &'static Registry {
        REGISTRY.get().expect("a registry is installed before anything is looked up in it")
    }

    /// The preset of that name.
    pub fn preset(&self, name: &str) -> Option<&Preset> {
        self.presets.iter().find(|preset| preset.name == name)
    }

    /// By axis, every variant as something that can be listed.
    pub fn definitions(&self) -> Vec<(&'static str, Vec<Box<dyn super::Definition>>)> {
        fn plain<T: ?Sized>(
            all: Vec<Box<T>>,
            up: fn(Box<T>) -> Box<dyn super::Definition>,
        ) -> Vec<Box<dyn super::Definition>> {
            all.into_iter().map(up).collect()
        }
        vec![
            ("flow_control", plain(self.flow_control.all(), |v| v)),
            ("congestion_control", plain(self.congestion_control.all(), |v| v)),
            ("edge_control", plain(self.edge_control.all(), |v| v)),
            ("transport", plain(self.transport.all(), |v| v)),
            ("load_balancing", plain(self.load_balancing.all(), |v| v)),
            ("queueing", plain(self.queueing.all(), |v| v)),
            ("marking", plain(self.marking.all(), |v| v)),
        ]
    }
}
