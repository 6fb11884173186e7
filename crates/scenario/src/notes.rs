//! What is odd about a run, and allowed.

use crate::declared::Absent;
use crate::settings::under;
use crate::{Scenario, WindowSize, schema};
use engine::Only;
use fabric::axes::flow_control::Layout;
use fabric::id::NodeId;
use fabric::topology::Link;
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
        let short = |link: &&Link| {
            let Some(retry) = link.retry else { return false };
            let payload = scenario.nic.payload.0 + scenario.nic.header.0;
            let [forth, back] = link.rates;
            [(forth, back), (back, forth)].into_iter().any(|rates| {
                let limits = retry.limits(rates, link.delay, link.delay, payload);
                let frames = limits.frames.saturating_mul(payload).min(limits.bytes);
                frames < rates.0.bytes_over(limits.round)
            })
        };
        if let Some(link) = scenario.graph.links.iter().find(short) {
            let name = |node: NodeId| scenario.graph[node].name.as_str();
            notes.push(format!(
                "links.retry: the link {} to {} carries more until a frame is acknowledged than its ends keep, and stands still without any error",
                name(link.a),
                name(link.b)
            ));
        }
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
