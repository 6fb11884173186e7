//! Runs for tests of schemes, with everything but the scheme as usual.
//!
//! A congestion control needs no network: it is fed [`plain_start`] and [`plain_ack`] with what matters changed. A flow control is run on a
//! small fabric, such as [`incast`], and the [`Outcome`] is looked at.

use crate::{congestion_control, edge_control, load_balancing, marking, queueing, transport};
use engine::{Parameter, Parameters, Rate, Raw, Time, ValueError};
use fabric::axes::congestion_control::{Ack, FlowStart};
use fabric::axes::{Chosen, CongestionControl, CongestionControlDef, Definition, FlowControl, TransportDef};
use fabric::id::NodeId;
use fabric::setup::FlowSpec;
use fabric::topology::{Graph, Kind};
use fabric::{Network, Outcome, Setup};

/// Calls `act` with the usual choice on every axis but the given: no flow control, ECMP, round robin.
pub fn chosen<R>(
    congestion_control: &dyn CongestionControlDef,
    transport: &dyn TransportDef,
    act: impl FnOnce(&Chosen<'_>) -> R,
) -> R {
    act(&Chosen {
        flow_control: &crate::flow_control::None::default(),
        congestion_control,
        edge_control: &edge_control::None::default(),
        transport,
        load_balancing: &load_balancing::ecmp::Params::default(),
        queueing: &queueing::round_robin::Params::default(),
        marking: &marking::red::Params::default(),
        window: false,
    })
}

/// A congestion control that is whatever the function makes, such as one that logs what it is asked.
pub struct Made<F>(pub F);

impl<F> Parameters for Made<F> {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl<F: Send + Sync> Definition for Made<F> {
    fn name(&self) -> &'static str {
        "made"
    }
    fn about(&self) -> &'static str {
        "Made for a test."
    }
}

impl<F: Fn() -> Box<dyn CongestionControl> + Send + Sync> CongestionControlDef for Made<F> {
    fn build(&self) -> Box<dyn CongestionControl> {
        (self.0)()
    }
}

/// Builds a network under a flow control, with senders at line rate and go-back-N.
pub fn network<F: FlowControl>(setup: Setup, scheme: F) -> Network<F> {
    let transport = transport::go_back_n::GoBackN::default();
    chosen(&congestion_control::None::default(), &transport, |chosen| Network::new(setup, scheme, chosen))
}

/// Runs a setup under a flow control, with senders at line rate and go-back-N.
pub fn run<F: FlowControl>(setup: Setup, scheme: F) -> Outcome {
    network(setup, scheme).run(|_, _| true)
}

/// Runs a setup under a flow control and a congestion control, with go-back-N.
pub fn run_with<F: FlowControl>(setup: Setup, scheme: F, control: &dyn CongestionControlDef) -> Outcome {
    let transport = transport::go_back_n::GoBackN::default();
    chosen(control, &transport, |chosen| Network::new(setup, scheme, chosen)).run(|_, _| true)
}

/// `senders` hosts that send `bytes` each to one more host over a switch, all at once: links of 100 Gb/s and 1 us, 12 MB of memory. Hosts come
/// first in its graph, the receiver last among them.
pub fn incast(senders: u16, bytes: u64) -> Setup {
    let mut graph = Graph::default();
    let receiver = senders as u32;
    (0..=receiver).for_each(|host| _ = graph.add(Kind::Host, 0, format!("h{host}")));
    let switch = graph.add(Kind::Switch, 1, "s");
    (0..=receiver).for_each(|host| graph.connect(NodeId(host), switch, Rate::from_gbps(100), Time::from_us(1)));
    let flow = |index: u16| FlowSpec {
        base_rtt: Time::from_us(5),
        ..FlowSpec::plain(index, index as u32, receiver, bytes, Time::ZERO)
    };
    let mut setup = Setup::plain(graph, (0..senders).map(flow).collect());
    setup.nic.timeout = Some(Time::from_ms(1));
    setup
}

/// An ACK at an instant that says nothing special.
pub fn plain_ack(now: Time) -> Ack<'static> {
    Ack {
        now,
        cause: now,
        seq: 1000,
        next: 2000,
        received: 1000,
        flight: 1000,
        marked: false,
        own: 0,
        tag: 0,
        stamp: Time::ZERO,
        delay: Time::ZERO,
        telemetry: &[],
        share: Rate(0),
    }
}

/// The start of a flow at 100 Gb/s with a round trip of 10 us.
pub fn plain_start() -> FlowStart {
    FlowStart {
        now: Time::ZERO,
        line: Rate::from_gbps(100),
        base_rtt: Time::from_us(10),
        window: 0,
        size: 1_000_000,
        hops: 1,
        payload: 1000,
        header: 62,
        longest_rtt: Time::from_us(10),
        trims: false,
    }
}
