//! The hosts: NICs whose flows take turns, the two halves of every flow, and what some hosts do besides.

mod asking;
mod census;
mod flow;
mod nic;
mod notifications;
mod relay;
mod slow;
mod waiting;

pub use crate::run::shard::PerFlow;
pub use flow::{Receiver, Sender};
pub use nic::NIC_SEED;

pub(crate) use flow::{BY_SCHEME, BY_TRANSPORT, Hold, IN_LINE};

use crate::axes::congestion_control::Needs;
use crate::axes::{Chosen, CongestionControl, Counter, PathSelector};
use crate::id::{FlowId, NodeId};
use crate::probe::Standstill;
use crate::routing::PortMap;
use crate::run::shard::Shard;
use crate::setup::{NicWake, Presence, Setup};
use crate::topology::Kind;
use crate::view::Site;
use census::Census;
use engine::Time;
use nic::Nic;
use relay::Relay;
use std::collections::{HashMap, VecDeque};
use waiting::Waiting;

/// The state of all hosts.
pub(crate) struct Hosts {
    pub(crate) nics: Vec<Nic>,
    pub(crate) senders: PerFlow<Sender>,
    pub(crate) receivers: PerFlow<Receiver>,
    /// When the last byte of each flow was first put on its sender's link.
    pub(crate) injected: PerFlow<Time>,
    /// How long flow control has kept each flow from sending.
    pub(crate) holds: PerFlow<Hold>,
    /// How long pauses of its class have kept each flow from sending.
    pub(crate) standstills: PerFlow<Standstill>,
    pub(crate) control: Box<dyn CongestionControl>,
    /// Those of the shards that were absorbed at the end.
    pub(crate) controls: Vec<Box<dyn CongestionControl>>,
    pub(crate) needs: Needs,
    /// The most that the transport lets a window be.
    pub(crate) cap: u64,
    /// Whether a NIC whose flows all wait for their windows still looks for one to send when a transmission ends: it may plan its next look then.
    pub(crate) looks_for_all: bool,
    /// Whether the transport wants to know of every packet that is sent.
    pub(crate) tells_sent: bool,
    /// Whether NICs ask the transport at every flow that they come past.
    pub(crate) asks: bool,
    /// What flows may have in flight, where the transport counts that itself; [`Sender::window`] is no limit then.
    pub(crate) windows: Option<PerFlow<u64>>,
    /// Whether a NACK says that its packet was trimmed.
    pub(crate) nacks_trimmed: bool,
    /// The longest base round trip.
    pub(crate) longest_rtt: Time,
    /// By node, what chooses paths there. Empty where flows keep their entropy.
    pub(crate) selectors: Vec<Option<Box<dyn PathSelector>>>,
    /// Receivers' counts of the flows that send to them, if a controller needs them.
    pub(crate) census: Option<Box<Census>>,
    pub(crate) slots: nic::Slots,
    /// Messages that wait for another of their host to be sent, which is the first of their line; by where from, where to
    /// and class. Empty unless NICs have lines.
    pub(crate) lines: HashMap<(u32, u32, u8), VecDeque<u32>>,
    /// What began and ended, in order; kept only where hosts list their flows anew.
    pub(crate) journal: Vec<(FlowId, Presence)>,
    /// Flows that wait for others.
    pub(crate) waiting: Waiting,
    /// Hosts that take packets slowly.
    pub(crate) slow: slow::State,
    /// What hosts that forward are about to queue or to send.
    pub(crate) relay: Relay,
}

impl Hosts {
    pub(crate) fn new(setup: &Setup, map: &PortMap, chosen: &Chosen<'_>, shard: &Option<Shard>) -> Hosts {
        let graph = &setup.graph;
        let control = notifications::paced(chosen.congestion_control.build(), setup.nic.notifications);
        let needs = control.needs();
        let is_host = |node: u32| graph.nodes[node as usize].kind == Kind::Host;
        let rate = |port: u32| map.rate(graph, port);
        let ports = (0..map.count() as u32).filter(|&port| is_host(map.node[port as usize]));
        let nics: Vec<Nic> = ports.map(|port| Nic::new(port, rate(port))).collect();
        let longest_rtt = setup.longest_rtt();
        let site = |node: u32| Site { setup, map, node: NodeId(node), longest_rtt };
        let nodes = 0..graph.nodes.len() as u32;
        let selector = |node: u32| is_host(node).then(|| chosen.load_balancing.host(&site(node))).flatten();
        let selectors: Vec<_> = nodes.map(selector).collect();
        Hosts {
            census: needs.census.map(|rule| Box::new(Census::new(rule, nics.len(), setup, shard))),
            nics,
            senders: PerFlow::new(setup, shard, |flow| flow.src.0, |_| Sender::default()),
            receivers: PerFlow::new(setup, shard, |flow| flow.dst.0, Receiver::new),
            injected: PerFlow::new(setup, shard, |flow| flow.src.0, |_| Time::MAX),
            holds: PerFlow::new(setup, shard, |flow| flow.src.0, |_| Hold::NEVER),
            standstills: PerFlow::new(setup, shard, |flow| flow.src.0, |_| Standstill::NONE),
            control,
            controls: Vec::new(),
            needs,
            cap: u64::MAX,
            looks_for_all: setup.nic.wake != NicWake::Due,
            tells_sent: true,
            asks: false,
            windows: None,
            nacks_trimmed: false,
            longest_rtt,
            selectors: if selectors.iter().any(Option::is_some) { selectors } else { Vec::new() },
            slots: nic::Slots::default(),
            lines: HashMap::new(),
            journal: Vec::new(),
            waiting: Waiting::new(setup),
            slow: slow::State::new(&setup.slow, |port| rate(map.peer[port as usize])),
            relay: Relay::new(setup, map.count()),
        }
    }

    /// What congestion control counted.
    pub(crate) fn control_counters(&self) -> Vec<Counter> {
        let all = std::iter::once(&self.control).chain(&self.controls);
        Counter::merged(all.map(|control| control.counters()))
    }

    /// What slow receivers and path selectors counted.
    pub(crate) fn counters(&self) -> Vec<Counter> {
        let mut all = self.slow.counters();
        all.extend(Counter::merged(self.selectors.iter().flatten().map(|selector| selector.counters())));
        all
    }

    /// Takes over the flows and what else is not packets of another shard, which runs the nodes that `mine` picks.
    pub(crate) fn absorb_flows(&mut self, other: &mut Hosts, setup: &Setup, mine: impl Fn(u32) -> bool) {
        self.senders.absorb(&other.senders);
        self.receivers.absorb(&other.receivers);
        self.injected.absorb(&other.injected);
        self.holds.absorb(&other.holds);
        self.standstills.absorb(&other.standstills);
        for (node, (a, b)) in (0..).zip(self.selectors.iter_mut().zip(&mut other.selectors)) {
            if mine(node) {
                std::mem::swap(a, b);
            }
        }
        self.waiting.absorb(&other.waiting, setup, mine);
    }

    /// What is wrong with the books of flows.
    pub(crate) fn audit(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        for (flow, (s, r)) in self.senders.iter().zip(self.receivers.iter()).enumerate() {
            if s.finished != Time::MAX && r.finished > s.finished {
                wrong.push(format!("flow {flow} ended at its sender before its {} B were received", s.size));
            }
        }
        wrong
    }
}
