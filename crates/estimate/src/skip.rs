//! Skipping whole stretches: flows as streams, and beside them windows that are simulated packet by packet.
//!
//! Where flows are alone on their links, or wait their turn at their own NIC, nothing that a scheme does changes who gets how much: a stream says when a message ends, in a
//! few steps instead of thousands of packets ([`crate::streams`]). That is never taken for granted. A few windows of the run are simulated with all of their
//! flows, as streams have them at that instant: half of them teach how much of its links the scheme lets a flow have, and by what the streams are off in the other half is the
//! *residual*. What becomes of residuals where flows wait for others is found out by letting streams flow again with a residual that is drawn for every flow: by what completion times
//! move is the error.

use crate::streams::{CROWDS, Fabric, Flowed, How, Seen};
use engine::{Stream, Time};
use fabric::axes::flow_control::Report;
use fabric::id::FlowId;
use fabric::routing::Rule;
use fabric::setup::{FlowSpec, MeasureSetup, SeriesSetup, Setup};
use fabric::{Outcome, run::FlowRecord};
use results::measure::percentile;
use scenario::resolve::Resolved;

/// What was skipped, and how far off it is.
pub struct Skipped {
    /// The flows, and when the last is done.
    pub outcome: Outcome,
    /// Windows that were simulated beside.
    pub windows: usize,
    /// The share of the time that these are.
    pub simulated: f64,
    /// Flows in them by which the streams were checked.
    pub checked: usize,
    /// The share of all bytes whose flows met others under a congestion control that is not at rest: what it makes of that in the long run no window shows.
    pub unknown: f64,
    /// By flow, the error of its completion time, as a share of it.
    pub fct: Vec<f64>,
    /// That of the throughput of all flows.
    pub throughput: f64,
    /// That of the instant at which the last flow ends.
    pub end: f64,
}

/// Why streams say nothing of a run; none where they may.
fn unfit(resolved: &Resolved) -> bool {
    let (setup, choices) = (&resolved.setup, &resolved.choices);
    let balancing = &choices.load_balancing;
    let Some(first) = setup.flows.first() else { return true };
    setup.stop != Time::MAX
        || !balancing.by_rule()
        || balancing.rule() == Rule::ByPacket
        || choices.transport.needs_size()
        || choices.congestion_control.needs_size()
        || choices.queueing.needs_size()
        || !setup.slow.is_empty()
        || setup.graph.fallible()
        || setup.graph.repeats()
        || setup.graph.forwarding
        || setup.flows.iter().any(|flow| flow.until != Time::MAX || flow.class != first.class)
}

/// How many packet-hops it takes to simulate a run: data, and as many ACKs.
pub fn hops(setup: &Setup) -> f64 {
    let payload = f64::from(setup.nic.payload);
    let each = |flow: &FlowSpec| (flow.size as f64 / payload).ceil() * 2.0 * (f64::from(flow.hops) + 1.0);
    setup.flows.iter().map(each).sum()
}

/// Lets a run's flows flow as streams. None where that is not worth it, or streams say nothing of it, or the report ended it.
pub fn skip(resolved: &Resolved, report: &mut Report<'_>) -> Option<Skipped> {
    let setup = &resolved.setup;
    if unfit(resolved) {
        return None;
    }
    let hops = hops(setup);
    let most = (hops / STEP) as u64;
    if hops < LEAST_HOPS || most < 2 * setup.flows.len() as u64 {
        return None;
    }
    let fabric = Fabric::new(setup);
    let plain = How { usable: [1.0; CROWDS], faster: &[], looks: &[], most };
    let rough = fabric.flow(&plain)?;
    let bytes = |flow: usize| setup.flows[flow].size as f64;
    let all: f64 = (0..setup.flows.len()).map(bytes).sum();
    let shared =
        |flowed: &Flowed| (0..setup.flows.len()).filter(|flow| flowed.shared[*flow]).map(bytes).sum::<f64>() / all;
    let control = &resolved.choices.congestion_control;
    let adapts = control.name() != "none" && !control.uses_marks();
    let windows = Windows::plan(setup, &rough, adapts, shared(&rough) > MIXED)?;
    let looks: Vec<Time> = windows.at.clone();
    let rough = fabric.flow(&How { looks: &looks, ..plain })?;
    let mut seen = Vec::new();
    for (number, at) in windows.at.iter().enumerate() {
        seen.push(Window::simulate(resolved, &fabric, &windows, *at, &rough, &rough.looks[number], report)?);
    }
    let (teach, test): (Vec<_>, Vec<_>) = seen.iter().enumerate().partition(|(number, _)| number % 2 == 0);
    let kinds = |residuals: &[Residual], least: usize| -> Option<[(f64, f64); CROWDS]> {
        let mut kinds = [together(residuals.iter())?; CROWDS];
        for (kind, off) in kinds.iter_mut().enumerate() {
            let own = residuals.iter().filter(|residual| usize::from(residual.crowd) == kind);
            if own.clone().count() >= least {
                *off = together(own)?;
            }
        }
        Some(kinds)
    };
    let mut usable = [1.0; CROWDS];
    for _ in 0..2 {
        let residuals: Vec<Residual> = teach.iter().flat_map(|(_, window)| window.residuals(usable)).collect();
        let learnt = kinds(&residuals, FEW)?;
        usable.iter_mut().zip(learnt).for_each(|(usable, (off, _))| *usable = (*usable * (1.0 + off)).clamp(0.2, 1.2));
    }
    let residuals: Vec<Residual> = test.iter().flat_map(|(_, window)| window.residuals(usable)).collect();
    let left = kinds(&residuals, FEW)?;
    let offs: Vec<f64> = residuals
        .iter()
        .map(|residual| {
            let (all, grain) = left[usize::from(residual.crowd)];
            all + all.signum() * grain + residual.own(all)
        })
        .collect();
    let how = How { usable, ..plain };
    let flowed = fabric.flow(&how)?;
    let mut dice = Stream::new(setup.seed, u64::from(u32::MAX));
    let mut fct = vec![0.0f64; setup.flows.len()];
    let (mut throughput, mut end) = (0.0f64, 0.0f64);
    let last = |flowed: &Flowed| flowed.spans.iter().map(|span| span.end).max().unwrap_or_default().0 as f64;
    let mut each = offs.clone();
    each.sort_by(f64::total_cmp);
    let middle = percentile(&each, 0.5);
    for _ in 0..REPLICAS {
        let draw = |_| offs[dice.below(offs.len() as u64) as usize] as f32;
        let faster: Vec<f32> = (0..setup.flows.len()).map(draw).collect();
        let other = fabric.flow(&How { faster: &faster, ..how })?;
        for ((worst, a), b) in fct.iter_mut().zip(&flowed.spans).zip(&other.spans) {
            let took = |span: &crate::Span| (span.end - span.start).0 as f64;
            *worst = worst.max((took(b) / took(a).max(1.0) - 1.0).abs());
        }
        end = end.max((last(&other) / last(&flowed).max(1.0) - 1.0).abs());
        throughput = throughput.max(middle.abs()).max(end);
    }
    // Marks are all that moves such a controller: without any it is at rest.
    let at_rest = control.name() == "none" || control.uses_marks() && seen.iter().all(|window| window.marked == 0);
    let unknown = if at_rest { 0.0 } else { shared(&flowed) };
    let lost = seen.iter().any(|window| window.lost);
    Some(Skipped {
        outcome: crate::outcome(resolved, &flowed.spans, false),
        windows: windows.at.len(),
        simulated: windows.at.len() as f64 * (windows.warm + windows.length).0 as f64 / last(&flowed).max(1.0),
        checked: residuals.len(),
        unknown: if lost { 1.0 } else { unknown },
        fct,
        throughput,
        end,
    })
}

/// Where windows lie, and how long they are.
struct Windows {
    at: Vec<Time>,
    /// So long flows are under way before they are looked at.
    warm: Time,
    length: Time,
}

impl Windows {
    /// Instants in the lives of flows that are drawn. None if windows would be a large part of the run. Where congestion control adapts to all that it hears, and where flows
    /// of several hosts meet, it takes longer until they are as they will be.
    fn plan(setup: &Setup, rough: &Flowed, adapts: bool, mixed: bool) -> Option<Windows> {
        let first = setup.flows.first()?.start;
        let all = rough.spans.iter().map(|span| span.end).max()?.saturating_sub(first);
        let packet = setup.clock.duration(setup.max_packet(), setup.top_rate()).0.max(1);
        let rtt = setup.longest_rtt().0.max(8 * packet);
        let least = (if adapts { ADAPTING } else { SETTLING } * rtt).max(240 * packet);
        let budget = all.0 / if mixed { SHARE / 4 } else { SHARE };
        let count = (budget / (4 * least)).clamp(2, 8);
        let each = (budget / count).max(least);
        if count * each > all.0 / 16 {
            return None;
        }
        let warm = each / 2;
        // An instant in the life of a flow that is drawn by its bytes: what many flows do is looked at more often.
        let mut dice = Stream::new(setup.seed, u64::from(u32::MAX) - 1);
        let mut sum = 0u64;
        let sums = setup.flows.iter().map(|flow| {
            sum += flow.size;
            sum
        });
        let sums: Vec<u64> = sums.collect();
        let mut drawn: Vec<Time> = (0..DRAWN * count)
            .map(|_| {
                let span = &rough.spans[sums.partition_point(|sum| *sum <= dice.below(sums[sums.len() - 1]))];
                span.start + Time(dice.below((span.end - span.start).0.max(1)))
            })
            .collect();
        drawn.sort_unstable();
        let latest = (first + all).saturating_sub(Time(each));
        let at = (0..count).map(|number| drawn[(number * DRAWN + DRAWN / 2) as usize].min(latest));
        Some(Windows { at: at.collect(), warm: Time(warm), length: Time(each - warm) })
    }
}

/// A part of a run that was simulated.
struct Window {
    setup: Setup,
    warm: Time,
    end: Time,
    /// What had come of the flows by then.
    before: Vec<u64>,
    after: Vec<FlowRecord>,
    marked: u64,
    /// Something was lost, or sent again.
    lost: bool,
}

/// By how much more than a stream a flow got, as a share.
#[derive(Clone, Copy)]
struct Residual {
    /// Bytes that came of the flow, and that did of the stream; of a whole flow, its bytes, and what the flow would have had in the time that the stream took.
    came: f64,
    stream: f64,
    /// What that may be off by because packets count as a whole.
    grain: f64,
    crowd: u8,
}

impl Window {
    fn simulate(
        resolved: &Resolved,
        fabric: &Fabric<'_>,
        windows: &Windows,
        at: Time,
        rough: &Flowed,
        seen: &[Seen],
        report: &mut Report<'_>,
    ) -> Option<Window> {
        let whole = &resolved.setup;
        let (payload, header) = (f64::from(whole.nic.payload), f64::from(whole.nic.header));
        let end = windows.warm + windows.length;
        let mut flows: Vec<FlowSpec> = Vec::new();
        for seen in seen {
            let spec = whole.flows[seen.flow as usize];
            let size = ((seen.left * payload / (payload + header)).ceil() as u64).clamp(1, spec.size);
            // It takes as much less alone as what is gone of it takes on the slowest of its links.
            let gone = Time(fabric.alone(&spec, spec.size).saturating_sub(fabric.alone(&spec, size)));
            let ideal = spec.ideal.saturating_sub(gone);
            let ideal_acknowledged = spec.ideal_acknowledged.saturating_sub(gone);
            flows.push(FlowSpec { size, start: Time::ZERO, ideal, ideal_acknowledged, ..spec });
        }
        for (spec, span) in whole.flows.iter().zip(&rough.spans) {
            if span.start > at && span.start < at + end {
                flows.push(FlowSpec { start: span.start - at, ..*spec });
            }
        }
        flows.sort_by_key(|flow| flow.start);
        let (all, every) = ((0..flows.len() as u32).map(FlowId).collect(), windows.warm);
        let series = Some(SeriesSetup { every, ports: Vec::new(), flows: all });
        let measure = MeasureSetup { series, ..MeasureSetup::default() };
        let after = resolved.simulate_part(Setup { measure, ..resolved.part(&flows, end) }, report);
        if after.interrupted {
            return None;
        }
        let row = after.series.times.iter().position(|time| *time == windows.warm)? * flows.len();
        let before = after.series.flows.get(row..row + flows.len())?.to_vec();
        let lost = after.counts.dropped() + after.counts.retransmitted.0 + after.counts.trimmed.0 > 0;
        Some(Window {
            setup: resolved.part(&flows, Time::MAX),
            warm: windows.warm,
            end,
            before,
            marked: after.counts.marked,
            after: after.flows,
            lost: lost || !after.violations.is_empty(),
        })
    }

    /// How the flows differ from streams.
    fn residuals(&self, usable: [f64; CROWDS]) -> Vec<Residual> {
        let looks = [self.warm, self.end];
        let fabric = Fabric::new(&self.setup);
        let Some(flowed) = fabric.flow(&How { usable, faster: &[], looks: &looks, most: u64::MAX }) else {
            return Vec::new();
        };
        let (payload, header) = (f64::from(self.setup.nic.payload), f64::from(self.setup.nic.header));
        let place = |looks: &[Seen], flow: u32| looks.binary_search_by_key(&flow, |seen| seen.flow).ok();
        let mut all = Vec::new();
        for flow in 0..self.setup.flows.len() {
            let (after, span, spec) = (&self.after[flow], &flowed.spans[flow], &self.setup.flows[flow]);
            let a = place(&flowed.looks[0], flow as u32).map(|at| flowed.looks[0][at]);
            let b = place(&flowed.looks[1], flow as u32).map(|at| flowed.looks[1][at]);
            let crowd = b.or(a).map_or(0, |seen| seen.crowd);
            if after.received <= self.end {
                // The whole of it.
                let (took, said) = ((after.received - spec.start).0 as f64, (span.end - span.start).0 as f64);
                if took >= self.warm.0 as f64 / 2.0 || spec.start > Time::ZERO {
                    let stream = spec.size as f64;
                    all.push(Residual { came: stream * said / took.max(1.0), stream, grain: payload, crowd });
                }
            } else if let (Some(a), Some(b), Time::ZERO) = (a, b, spec.start) {
                let came = (after.delivered - self.before[flow]) as f64;
                let stream = (a.left - b.left) * payload / (payload + header);
                if stream > 0.0 {
                    all.push(Residual { came, stream, grain: payload, crowd });
                }
            } else if let Some(b) = b.filter(|_| spec.start + self.warm + self.warm <= self.end) {
                // What has been sent by now, but for what is still on its way.
                let sent = fabric.wire(spec.size) - b.left;
                let late = spec.ideal.0.saturating_sub(fabric.alone(spec, spec.size)) as f64;
                let stream = sent * (1.0 - late / (self.end - spec.start).0 as f64) * payload / (payload + header);
                all.push(Residual { came: after.delivered as f64, stream, grain: payload, crowd });
            }
        }
        all
    }
}

impl Residual {
    /// Beyond what a packet more or less makes of it, and relative to what flows of its kind have on average.
    fn own(&self, kind: f64) -> f64 {
        let differ = self.came - self.stream * (1.0 + kind);
        differ.signum() * (differ.abs() - self.grain).max(0.0) / self.stream.max(1.0)
    }
}

/// By how much more flows of a kind got than streams, all together, and the packet that this may be off by.
fn together<'a>(residuals: impl Iterator<Item = &'a Residual>) -> Option<(f64, f64)> {
    let (mut sum, mut streams, mut count, mut grain) = (0.0, 0.0, 0.0, 0.0f64);
    for residual in residuals {
        sum += residual.came;
        streams += residual.stream;
        grain += residual.grain / residual.stream.max(1.0);
        count += 1.0;
    }
    // A packet more or less of each, as chance has it.
    (count > 0.0).then(|| (sum / streams - 1.0, grain / count / f64::sqrt(count)))
}

/// So many packet-hops cost as much as a step of the streams: what streams may take is a small part of what simulating would.
const STEP: f64 = 40.0;
/// What is over in a moment needs no skipping.
const LEAST_HOPS: f64 = 1e6;
/// Windows are this part of a run, if they are long enough then.
const SHARE: u64 = 128;
/// The fewest round trips of a window: of flows at rates of their own, and of those that congestion control moves all the time.
const SETTLING: u64 = 9;
const ADAPTING: u64 = 36;
/// From this share of bytes on, it counts that flows of several hosts meet.
const MIXED: f64 = 0.05;
/// Instants of which one is chosen.
const DRAWN: u64 = 15;
/// The fewest flows that say something of their kind.
const FEW: usize = 8;
/// How often flows flow with residuals.
const REPLICAS: usize = 2;
