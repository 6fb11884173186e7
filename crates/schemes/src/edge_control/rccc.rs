//! RCCC, receiver-credit congestion control: receivers of Ultra Ethernet hand out what their link can take (UE Specification 1.0, 2025).
//!
//! A sender may send 1.5 bandwidth-delay products at first, and from the first answer on only what its receiver has given it credit for. So an incast lasts
//! one window of each sender, and then fills its receiver's link and no more. Who sends to several receivers is given more than it can send, and what is
//! congested elsewhere its receiver does not see: there a congestion control in the network, NSCC, helps, around which RCCC goes. What is trimmed at
//! the last switch before a receiver is then no reason for NSCC to make the window smaller.
//!
//! Credits themselves are the transport's work ([`crate::transport::uet`]): this says that there are any, and how they are handed out.

use engine::{Misfit, Time};
use fabric::axes::congestion_control::{Ack, Credits, FlowStart, Incident, Needs, Notice, Permit, Recall, Throttle};
use fabric::axes::edge_control::{Around, over};
use fabric::axes::{Chosen, CongestionControl, CongestionControlDef, Counter, Definition, EdgeControlDef};
use fabric::topology::Graph;

engine::parameters! {
    /// Parameters of RCCC.
    pub struct Params {
        /// Full packets for which one control packet gives credit.
        packets: u32 = 4, in 1..=1024,
        /// The part of its link's rate that a receiver hands out.
        pace: f64 = 0.99, in 0.01..=1.0,
        /// Whether ports to hosts mark packets. It is receivers that see to it that queues there are short.
        mark_last_hop: bool = false,
        /// Whether receivers hand out less while packets are marked, or trimmed before their own switch: for fabrics that are oversubscribed, where no
        /// congestion control at senders does it.
        oversubscribed: bool = false,
        /// The least part of its pace that a receiver hands out then. Nine tenths of what an oversubscribed fabric always has is a good choice.
        least: f64 = 0.01, in 0.001..=1.0, if oversubscribed == true,
        /// How often it looks at what has come, on average. Auto: every 1.5 times the longest base round trip.
        every: Option<Time> = None, in Time::from_us(1)..=Time::from_ms(1000), if oversubscribed == true,
        /// What it adds to its part when nothing is wrong; twice as much each time that nothing was marked either.
        increase: f64 = 0.01, in 0.0001..=1.0, if oversubscribed == true,
        /// How much of it it takes off: this times the part of marks above the target.
        decrease: f64 = 0.5, in 0.0..=1.0, if oversubscribed == true,
        /// Weight of what came last in the mean of marks.
        weight: f64 = 0.5, in 0.001..=1.0, if oversubscribed == true,
        /// The part of packets that may be marked.
        target: f64 = 0.3, in 0.0..=1.0, if oversubscribed == true,
    }
}

impl Definition for Params {
    fn name(&self) -> &'static str {
        "rccc"
    }
    fn about(&self) -> &'static str {
        "RCCC of Ultra Ethernet: receivers hand out credits at the pace of their link, and senders send no more."
    }
    fn source(&self) -> &'static str {
        "Ultra Ethernet Consortium, Ultra Ethernet Specification 1.0, 2025; details as in its simulator, uet-htsim"
    }
    fn control_packet(&self) -> u64 {
        PULL as u64
    }
    fn conflict(&self, with: &Chosen<'_>) -> Option<Misfit> {
        (with.transport.name() != "uet").then(|| Misfit {
            parameter: "scheme.transport",
            message: format!("rccc needs a transport that hands out credits, which {} does not", with.transport.name()),
            help: "write transport = \"uet\" in [scheme]".to_string(),
        })
    }
    fn remark(&self, with: &Chosen<'_>, graph: &Graph) -> Option<String> {
        let alone = !self.oversubscribed && !with.congestion_control.hears_of_trims();
        let narrow = graph.narrow().filter(|_| alone)?;
        Some(format!(
            "receivers hand out what their own links take, and {} has less towards other switches than towards its hosts: trimmed packets can fill that \
             with their headers, as scheme.rccc.oversubscribed = true would not let them",
            graph[narrow].name
        ))
    }
}

/// Bytes of a control packet that gives credit.
const PULL: u16 = 64;

impl EdgeControlDef for Params {
    fn over(&self, inner: Box<dyn CongestionControlDef>) -> Box<dyn CongestionControlDef> {
        over(self.clone(), inner)
    }
}

impl Around for Params {
    fn build(&self, inner: Box<dyn CongestionControl>) -> Box<dyn CongestionControl> {
        let Params { packets, pace, oversubscribed, least, every, increase, decrease, weight, target, .. } = *self;
        let part = |part: f64| (part * 1e6).round() as u32;
        let throttle = oversubscribed.then(|| Throttle {
            every: every.unwrap_or_default(),
            least: part(least),
            increase: part(increase),
            decrease: part(decrease),
            weight: part(weight),
            target: part(target),
        });
        let credits = Credits { packets, pace: (pace * 1000.0).round() as u32, size: PULL, throttle };
        Box::new(Rccc { credits, inner })
    }
    fn uses_marks(&self, _inner: &dyn CongestionControlDef) -> bool {
        // If not the congestion control, then the choice of paths goes by them.
        true
    }
    fn marks_before_hosts(&self, _inner: &dyn CongestionControlDef) -> bool {
        self.mark_last_hop
    }
}

/// The mechanism: it says that there are credits.
struct Rccc {
    credits: Credits,
    inner: Box<dyn CongestionControl>,
}

impl CongestionControl for Rccc {
    fn needs(&self) -> Needs {
        Needs { credits: Some(self.credits), ..self.inner.needs() }
    }
    fn start(&mut self, slot: u32, flow: FlowStart) -> Permit {
        self.inner.start(slot, flow)
    }
    fn ack(&mut self, slot: u32, ack: &Ack<'_>, permit: &mut Permit) {
        self.inner.ack(slot, ack, permit);
    }
    fn timer(&mut self, slot: u32, now: engine::Time, permit: &mut Permit) {
        self.inner.timer(slot, now, permit);
    }
    fn timer_set(&self, slot: u32, now: engine::Time) -> engine::Time {
        self.inner.timer_set(slot, now)
    }
    fn notice(&mut self, slot: u32, notice: &Notice, permit: &mut Permit) {
        self.inner.notice(slot, notice, permit);
    }
    fn incident(&mut self, slot: u32, now: engine::Time, incident: Incident, permit: &mut Permit) {
        self.inner.incident(slot, now, incident, permit);
    }
    fn counters(&self) -> Vec<Counter> {
        self.inner.counters()
    }
    fn known(&self) -> Option<&dyn Recall> {
        self.inner.known()
    }
}
