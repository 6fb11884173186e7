//! What is odd about a run, and allowed.

use crate::declared::Absent;
use crate::settings::under;
use crate::{Scenario, WindowSize, schema};
use engine::Only;
use fabric::axes::flow_control::Layout;
use fabric::id::NodeId;
use fabric::retry::{Limits, Unprotected};
use fabric::topology::{Kind, Link};
use std::fmt;
use std::ops::Deref;

/// Something that the user should know of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    text: String,
    /// The key that has no effect, where that is what it says.
    pub idle: Option<String>,
}

impl Note {
    /// That a key has no effect, and why.
    fn idle(key: &str, why: &str) -> Note {
        Note { text: format!("{key} has no effect: {why}"), idle: Some(key.into()) }
    }
}

impl From<String> for Note {
    fn from(text: String) -> Note {
        Note { text, idle: None }
    }
}

impl Deref for Note {
    type Target = str;
    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Note {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The ends of links that repeat: from where to where, and what limits them.
fn retry_ends(scenario: &Scenario) -> Vec<(&Link, NodeId, NodeId, Limits)> {
    let graph = &scenario.graph;
    let largest = (scenario.nic.payload.0 + scenario.nic.header.0).max(scenario.nic.ack_size.0);
    let to = |link: &Link, node: NodeId| match graph[node].kind {
        Kind::Switch => link.delay + scenario.switch.pipeline,
        Kind::Host => link.delay,
    };
    let ends = graph.links.iter().filter_map(|link| Some((link, link.retry?))).flat_map(|(link, retry)| {
        let limits = |from: NodeId, at: NodeId| {
            let rates = (link.rate_to(at), link.rate_to(from));
            retry.limits(rates, to(link, at), to(link, from), largest)
        };
        [(link, link.a, link.b, limits(link.a, link.b)), (link, link.b, link.a, limits(link.b, link.a))]
    });
    ends.collect()
}

/// Whether links that repeat may give up though nothing is damaged, for every link.
pub(crate) fn hasty(scenario: &Scenario) -> Vec<bool> {
    let ends = retry_ends(scenario);
    let mut hasty = ends.chunks(2).map(|both| both.iter().any(|(.., limits)| limits.gives_up() && limits.hasty()));
    let links = scenario.graph.links.iter();
    links.map(|link| link.retry.is_some() && hasty.next().unwrap_or_default()).collect()
}

/// What is known of a run when it is looked over.
pub(crate) struct Known<'a> {
    pub scenario: &'a Scenario,
    pub layout: &'a Layout,
    /// Whether flow control keeps within memory by its own means.
    pub own_room: bool,
    /// The smallest window of a flow, in bytes; zero for none.
    pub window: u64,
}

impl Known<'_> {
    /// Why the scenario is not like `words`; nothing where it is, or where the words are not known here.
    fn unlike(&self, words: &str) -> Option<String> {
        let Known { scenario, layout, .. } = self;
        let (fc, cc) = (scenario.choices.flow_control.name(), scenario.choices.congestion_control.name());
        let marks = scenario.switch.ecn.unwrap_or(scenario.choices.congestion_control.uses_marks());
        let watch = &scenario.watch;
        let why = |met: bool, why: String| (!met).then_some(why);
        match words {
            under::MEMORY => why(!scenario.switch.unlimited, "memory is unlimited".into()),
            under::THRESHOLDS => why(!self.own_room, format!("{fc} keeps within memory by its own means")),
            under::FOLLOWING => why(scenario.switch.threshold.is_none(), "switch.threshold is absolute".into()),
            under::PAUSES => why(layout.headroom.is_some(), format!("flow control {fc} pauses no neighbour")),
            under::QUEUES => why(layout.queues.is_none(), format!("{fc} lays out its own")),
            under::MARKS => why(
                marks,
                match scenario.switch.ecn {
                    Some(_) => "switch.ecn is false".into(),
                    None => format!("nobody marks for congestion control {cc}; switch.ecn = true would"),
                },
            ),
            under::NOTIFIED => why(
                scenario.choices.congestion_control.notified(),
                format!("congestion control {cc} has no notifications"),
            ),
            under::FORWARDING => why(scenario.graph.forwarding, "no host of this fabric forwards".into()),
            under::WINDOW => why(scenario.window != WindowSize::None, "flows have no window".into()),
            under::SERIES => {
                let followed = !watch.ports.is_empty() || !watch.groups.is_empty();
                why(followed, "measure.ports and measure.flows name nothing".into())
            }
            under::CAPTURE => why(!watch.capture.is_empty(), "measure.capture names no port".into()),
            _ => None,
        }
    }

    /// The keys that were written and have no effect, as their declarations tell.
    pub(crate) fn idle_keys(&self) -> Vec<Note> {
        let mut notes = Vec::new();
        for section in schema::sections().into_iter().filter(|section| !section.many) {
            for key in section.keys.iter().filter(|key| !key.only.is_empty()) {
                let path = |name: &str| format!("{}.{name}", section.path);
                if !self.scenario.written(&path(key.name)) {
                    continue;
                }
                let why = key.only.iter().find_map(|only| match only {
                    Only::Under(words) => self.unlike(words),
                    Only::Beside { key, value } => {
                        let usual = || match &section.key(key)?.absent {
                            Absent::Value(raw) => Some(raw.describe()),
                            _ => None,
                        };
                        let other = self.scenario.document.value(&path(key)).or_else(usual)?;
                        (other != *value).then(|| format!("{} is {other}", path(key)))
                    }
                });
                notes.extend(why.map(|why| Note::idle(&path(key.name), &why)));
            }
        }
        let transport = &self.scenario.choices.transport;
        let ignored = transport.ignores().iter().filter(|key| self.scenario.written(key));
        let ignored = ignored.map(|key| Note::idle(key, &format!("{} has its own rule", transport.name())));
        notes.extend(
            ignored.filter(|note| notes.iter().all(|known: &Note| known.idle != note.idle)).collect::<Vec<_>>(),
        );
        notes
    }

    /// How links repeat frames, where it was surely not meant so: each oddity once, with the first link that has it.
    fn odd_retries(&self) -> Vec<String> {
        let Known { scenario, layout, .. } = self;
        let graph = &scenario.graph;
        let ends = retry_ends(scenario);
        let first = |odd: &dyn Fn(&Link, NodeId, &Limits) -> bool| {
            let (_, from, at, limits) = ends.iter().find(|(link, _, at, limits)| odd(link, *at, limits))?;
            Some((format!("{} to {}", graph[*from].name, graph[*at].name), *limits))
        };
        let mut notes = Vec::new();
        let kept = |limits: &Limits| limits.frames.saturating_mul(limits.largest).min(limits.bytes);
        if let Some((name, _)) = first(&|link, at, limits| kept(limits) < link.rate_to(at).bytes_over(limits.round)) {
            notes.push(format!(
                "links.retry: the link {name} carries more until a frame is acknowledged than its ends keep, and stands still without any error"
            ));
        }
        if let Some((name, limits)) = first(&|_, _, limits| limits.timer < limits.round) {
            let then = if limits.gives_up() { ", and gives up without any error" } else { "" };
            notes.push(format!(
                "links.retry.timer is {}, and a frame may be acknowledged after {} on the link {name}: it repeats frames that have come{then}",
                limits.timer, limits.round
            ));
        }
        if let Some((name, limits)) = first(&|_, _, limits| limits.age.is_some_and(|age| age < limits.round)) {
            notes.push(format!(
                "links.retry.data_age is {}, and a frame may be acknowledged after {} on the link {name}: it gives up without any error",
                limits.age.unwrap_or_default(),
                limits.round
            ));
        } else if let Some((_, limits)) = first(&|_, _, limits| limits.age.is_some_and(|age| age <= limits.timer)) {
            notes.push(format!(
                "links.retry.data_age is {}: links give up before links.retry.timer repeats anything, after {}",
                limits.age.unwrap_or_default(),
                limits.timer
            ));
        }
        let fails = |link: &Link, _: NodeId, limits: &Limits| {
            limits.gives_up() && !limits.restart && limits.then != Unprotected::BestEffort && link.errs()
        };
        if let Some((name, limits)) = first(&fails) {
            let what = if limits.then == Unprotected::Block { "waits for ever" } else { "is dropped" };
            notes.push(format!(
                "links.retry.after: a link that gives up is a failed one, as links.retry.restart is false: what is to go from {name} then {what}, and no route avoids it"
            ));
        }
        let down = |link: &Link| link.retry.is_some() && !link.outages.is_empty();
        if scenario.written("links.retry.link_lost") && !ends.is_empty() && !graph.links.iter().any(down) {
            notes.push("links.retry.link_lost has no effect: no link that repeats ever goes down".into());
        }
        if scenario.written("links.retry.pause_replays") && layout.headroom.is_none() && !ends.is_empty() {
            let fc = scenario.choices.flow_control.name();
            notes.push(format!("links.retry.pause_replays has no effect: flow control {fc} pauses no neighbour"));
        }
        notes
    }

    /// Values that were surely not meant to be what they are.
    pub(crate) fn odd_values(&self) -> Vec<String> {
        let Known { scenario, layout, .. } = self;
        let mut notes = scenario.notes.clone();
        let (switch, choices) = (&scenario.switch, &scenario.choices);
        if switch.alpha == 0.0 && scenario.written("switch.alpha") && layout.headroom.is_some() && !switch.unlimited {
            notes.push(
                "switch.alpha is 0: no ingress gets any of the shared memory, and pauses its neighbour when its reserve is full"
                    .into(),
            );
        }
        notes.extend(choices.chosen(self.window > 0).remarks(&scenario.graph));
        let cc = &choices.congestion_control;
        if switch.ecn == Some(false) && cc.uses_marks() {
            notes.push(format!("switch.ecn is false: {} gets no marks, and nothing else slows it down", cc.name()));
        }
        let payload = scenario.nic.payload.0;
        if (1..payload).contains(&self.window) {
            let window = self.window;
            notes.push(format!(
                "a window of {window} B is less than a packet of {payload} B: one packet at a time is on its way"
            ));
        }
        notes.extend(self.odd_retries());
        for (place, slow) in scenario.slow.iter().enumerate() {
            let links = scenario.graph.links.iter().filter(|link| link.a == slow.host || link.b == slow.host);
            if let Some(fastest) = links.map(|link| link.rate_to(slow.host)).max().filter(|rate| slow.rate >= *rate) {
                let name = &scenario.graph[slow.host].name;
                notes.push(format!(
                    "slow.{place}.rate is {}: the link of {name} brings {fastest}, so that it is not slow",
                    slow.rate
                ));
            }
        }
        notes
    }
}
