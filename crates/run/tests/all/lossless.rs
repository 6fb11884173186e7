//! Promises that hold on every fabric: random small ones, run from scenario text as a user would write it.
//!
//! Headroom, windows and ideal times are those that the product derives. A failing case prints its whole scenario.

use crate::same::assert_same;
use fabric::Outcome;
use fabric::Registry;
use fabric::run::Stall;
use fabric::topology::Graph;
use fabric::topology::Kind;
use files::problem::Problem;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use run::recording::record;
use scenario::Scenario;
use scenario::presets::{self, Preset, named};
use scenario::resolve::{Resolved, resolve};
use std::cell::Cell;
use std::fmt;
use std::path::Path;

mod balancers;
mod retries;

const CASES: u32 = 64;

/// A fabric, and how many hosts it has.
#[derive(Clone, Debug)]
struct Fabric {
    text: String,
    hosts: u32,
    /// Of a BCube, the base of its hosts' addresses: only hosts that differ in one digit talk, so that none forwards.
    base: Option<u32>,
    /// Links that can fail while every pair of hosts keeps a path.
    spare: Vec<(String, String)>,
    /// Any other links.
    links: Vec<(String, String)>,
}

/// A message, with hosts and class still to be fitted to the fabric.
#[derive(Clone, Debug)]
struct Message {
    src: u32,
    dst: u32,
    size: u64,
    start_ns: u64,
    class: u32,
}

/// A scenario but for its buffer.
#[derive(Clone)]
struct Case {
    fabric: Fabric,
    preset: &'static str,
    /// `[scheme]` and its tables, if not the preset alone.
    scheme: Option<String>,
    /// Further lines of `[scheme]`.
    more: &'static str,
    switch: String,
    nic: String,
    classes: u32,
    /// All messages go to one host.
    incast: bool,
    messages: Vec<Message>,
    /// What the switches have beyond the least that is accepted.
    extra: u64,
    /// `[[link]]` tables.
    faults: String,
}

impl Fabric {
    /// A host that can send to `host`.
    fn partner(&self, host: u32, pick: u32) -> u32 {
        let Some(base) = self.base else { return (host + 1 + pick % (self.hosts - 1)) % self.hosts };
        let (high, low, step) = (host / base, host % base, 1 + (pick / 2) % (base - 1));
        if pick.is_multiple_of(2) { high * base + (low + step) % base } else { (high + step) % base * base + low }
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a buffer {} B above the least, and\n{}", self.extra, self.text())
    }
}

impl Case {
    fn text(&self) -> String {
        let Case { fabric, preset, more, switch, nic, classes, faults, .. } = self;
        let scheme = self.scheme.clone().unwrap_or_else(|| format!("[scheme]\npreset = \"{preset}\"\n{more}"));
        let mut text =
            format!("{scheme}[traffic]\nclasses = {classes}\n[switch]\n{switch}[nic]\n{nic}{}{faults}", fabric.text);
        for (number, message) in self.messages.iter().enumerate() {
            let Message { size, start_ns, .. } = message;
            let dst = if self.incast { self.messages[0].dst } else { message.dst } % fabric.hosts;
            let src = fabric.partner(dst, message.src);
            let class = message.class % classes;
            text += &format!(
                "[[flow]]\nsrc = {src}\ndst = {dst}\nsize = \"{size}B\"\nstart = \"{start_ns}ns\"\nclass = {class}\n"
            );
            // Some are answered: a flow that waits for another, for longer than most take.
            if message.src % 4 == 3 {
                let gap = message.src % 7 * 10_000;
                text += &format!(
                    "id = \"m{number}\"\n[[flow]]\nsrc = {dst}\ndst = {src}\nsize = \"{size}B\"\n\
                     after = \"m{number}\"\ngap = \"{gap}ns\"\nclass = {class}\n"
                );
            }
        }
        text
    }

    fn read(&self, buffer: u64) -> Result<Resolved, Problem> {
        let set = format!("switch.buffer={buffer}B");
        resolve(Scenario::parse("random.toml", &self.text(), Path::new("/nowhere"), &[set])?)
    }

    /// The run with its buffer, or nothing where the scenario is refused for another reason than its buffer.
    fn resolve(&self) -> Option<(Resolved, u64)> {
        // The refusal of a buffer that is too small names one that is not.
        let problem = self.read(1).err()?;
        if !problem.message.contains("cannot hold") {
            return None;
        }
        let least: engine::Bytes = problem.help.as_deref()?.split('"').nth(1)?.parse().ok()?;
        let buffer = least.0 + self.extra;
        // What is recorded does not depend on the number of threads either.
        let mut resolved = record(self.read(buffer).ok()?, Some(engine::Time::from_ns(300)));
        // The audit of every run adds up the parts of its flows.
        resolved.setup.measure.why = true;
        Some((resolved, buffer))
    }
}

/// Reports, each after a quarter of a million events, after which a run is taken for one that never ends.
const TOO_MANY: u32 = 200;

fn run(resolved: &Resolved) -> Outcome {
    let mut reports = 0;
    let mut report = |_, _| {
        reports += 1;
        reports < TOO_MANY
    };
    let outcome = resolved.simulate(&mut report);
    if outcome.stops.is_some() {
        crate::causes::check(&resolved.setup.graph, &outcome);
    }
    if !outcome.interrupted {
        // Any number of threads and blocks gives the same.
        let hops = outcome.counts.hops as usize;
        for (threads, blocks) in [(2 + hops % 7, 1), (1 + hops % 2, 2 + hops % 5)] {
            let other = resolved.simulate_in(threads, Some(blocks), &mut |_, _| true);
            assert_same(&outcome, &other, &format!("{threads} threads, {blocks} blocks"));
        }
    }
    outcome
}

fn pair(a: impl Into<String>, b: impl Into<String>) -> (String, String) {
    (a.into(), b.into())
}

/// One of seven shapes, its size from three small numbers, its tiers from the rates (Gb/s) and delays (ns).
fn build(kind: usize, (a, b, c): (u32, u32, u32), rates: [u64; 4], delays: [u64; 4]) -> Fabric {
    let wire = |tier: usize, prefix: &str| {
        format!("{prefix}rate = \"{}Gbps\"\n{prefix}delay = \"{}ns\"\n", rates[tier], delays[tier])
    };
    let host_links = |hosts: u32, per: u32, name: &str| -> Vec<(String, String)> {
        (0..hosts).map(|h| pair(format!("h{h}"), format!("{name}{}", h / per))).collect()
    };
    let mut spare = Vec::new();
    let (text, hosts, mut links) = match kind {
        0 => {
            let hosts = a + b + 1;
            (format!("kind = \"star\"\nhosts = {hosts}\n{}", wire(0, "")), hosts, host_links(hosts, hosts, "sw"))
        }
        1 => {
            let size = format!("kind = \"dumbbell\"\nleft = {a}\nright = {b}\nbottlenecks = {c}\n");
            let mut links = host_links(a, a, "sw");
            links.extend((a..a + b).map(|h| pair(format!("h{h}"), "sw1")));
            links.push(pair("sw0", "sw1"));
            (size + &wire(0, "host_") + &wire(1, "bottleneck_"), a + b, links)
        }
        2 => {
            let size = format!("kind = \"leaf-spine\"\nleaves = {a}\nhosts_per_leaf = {b}\nspines = {c}\n");
            let up: Vec<_> =
                (0..a).flat_map(|l| (0..c).map(move |s| pair(format!("leaf{l}"), format!("spine{s}")))).collect();
            if c > 1 {
                spare = up.clone();
            }
            let links = [host_links(a * b, b, "leaf"), up].concat();
            (size + &wire(0, "host_") + &wire(1, "uplink_"), a * b, links)
        }
        3 => {
            let size = format!("kind = \"chain\"\nswitches = {a}\nhosts_per_switch = {b}\n");
            let mut links = host_links(a * b, b, "sw");
            links.extend((1..a).map(|s| pair(format!("sw{}", s - 1), format!("sw{s}"))));
            (size + &wire(0, "host_") + &wire(1, "trunk_"), a * b, links)
        }
        4 => {
            let k = if a > 2 { 4 } else { 2 };
            let size = format!("kind = \"fat-tree\"\nk = {k}\noversubscription = {c}\n");
            let hosts = k * k * k / 4 * c;
            let links = host_links(hosts, k / 2 * c, "edge");
            (size + &wire(0, "host_") + &wire(1, "edge_") + &wire(2, "core_"), hosts, links)
        }
        5 => {
            let size = format!("kind = \"bcube\"\nn = {a}\nk = 1\n");
            let host = |h: u32| {
                [pair(format!("h{h}"), format!("l0s{}", h / a)), pair(format!("h{h}"), format!("l1s{}", h % a))]
            };
            // Hosts forward, so that there is a path around any link.
            spare = (0..a * a).flat_map(host).collect();
            (size + &wire(0, ""), a * a, Vec::new())
        }
        _ => {
            let size = format!("kind = \"two-sites\"\nleaves = {c}\nhosts_per_leaf = {b}\nspines = {}\n", a - 1);
            let wires = wire(0, "host_") + &wire(1, "uplink_") + &wire(2, "gateway_") + &wire(3, "long_");
            (size + &wires, 2 * b * c, vec![pair("gw0", "gw1")])
        }
    };
    links.extend(spare.iter().cloned());
    let base = (kind == 5).then_some(a);
    Fabric { text: format!("[topology]\n{text}"), hosts, base, spare, links }
}

const RATES: [u64; 7] = [10, 25, 40, 56, 100, 200, 400];

fn rate() -> impl Strategy<Value = u64> {
    prop::sample::select(RATES.to_vec())
}

/// Gives some links of a fourth of all fabrics another rate in one direction, and other queues.
fn lopsided(mut fabric: Fabric, delays: [u64; 4]) -> Fabric {
    let [first, second, third, fourth] = delays;
    if (first + second) % 4 != 0 {
        return fabric;
    }
    let some = fabric.links.iter().skip(third as usize % 3).step_by(1 + fourth as usize % 4);
    let mut text = String::new();
    for (number, (a, b)) in some.enumerate() {
        let rate = RATES[(third as usize / 3 + number) % RATES.len()];
        let ends = if (fourth / 4 + number as u64).is_multiple_of(2) { [a, b] } else { [b, a] };
        text += &format!("[[link]]\nbetween = [\"{}\", \"{}\"]\nrate_back = \"{rate}Gbps\"\n", ends[0], ends[1]);
        if second % 3 == 0 {
            text += &format!("queues_back = {}.{}\n", first % 2, 1 + number % 9);
        }
    }
    fabric.text += &text;
    fabric
}

fn fabric(kinds: std::ops::Range<usize>) -> impl Strategy<Value = Fabric> {
    let rates = prop::array::uniform4(rate());
    let delays = prop::array::uniform4(prop_oneof![100u64..2_000, 100u64..20_000]);
    (kinds, (2u32..=4, 1u32..=4, 1u32..=3), rates, delays)
        .prop_map(|(kind, size, rates, delays)| lopsided(build(kind, size, rates, delays), delays))
}

/// Most messages are small, most bytes are in large ones.
fn message() -> impl Strategy<Value = Message> {
    let size = prop_oneof![1u64..300, 1u64..10_000, 1u64..300_000];
    let start = prop_oneof![Just(0u64), 0u64..30_000];
    (any::<u16>(), any::<u16>(), size, start, 0u32..3).prop_map(|(src, dst, size, start_ns, class)| Message {
        src: src.into(),
        dst: dst.into(),
        size,
        start_ns,
        class,
    })
}

fn messages() -> impl Strategy<Value = Vec<Message>> {
    prop::collection::vec(message(), 1..=40)
}

fn switch() -> impl Strategy<Value = String> {
    let follows = (1u32..=200).prop_map(|alpha| format!("alpha = {}", alpha as f64 / 100.0));
    let absolute = (0u64..400_000).prop_map(|bytes| format!("threshold = \"{bytes}B\""));
    let threshold = prop_oneof![3 => follows, 1 => absolute];
    let scheduler = prop::sample::select(vec!["drr", "round-robin"]);
    let pipeline = prop_oneof![3 => Just(0u64), 1 => 0u64..600];
    let reaction = prop_oneof![3 => Just(0u64), 1 => 0u64..2_000];
    (threshold, 0u64..8_000, 1u32..=8, scheduler, pipeline, reaction, 0u64..6_000).prop_map(
        |(threshold, reserve, queues, scheduler, pipeline, reaction, gap)| {
            // Half of all switches have cells: those of switches that are sold, or any.
            let cell = match reserve % 8 {
                0 => 80,
                1 => 208,
                2 => 254,
                3 => 1 + gap % 1_500,
                _ => 1,
            };
            format!(
                "cell = \"{cell}B\"\n{threshold}\nreserve = \"{reserve}B\"\nqueues = {queues}\nscheduler = \"{scheduler}\"\n\
                 pipeline = \"{pipeline}ns\"\nreaction = \"{reaction}ns\"\nresume_gap = \"{gap}B\"\n"
            )
        },
    )
}

fn nic() -> impl Strategy<Value = (u64, &'static str, u32, bool)> {
    (256u64..=4096, prop::sample::select(vec!["control", "data"]), 1u32..=8, prop::bool::weighted(0.9))
}

/// What some hosts and NICs take besides: for a fourth of all payloads their way to the host, for another what notifications take.
fn hardware(payload: u64) -> String {
    let (send, receive) = (payload % 1_900, payload % 2_300);
    match payload % 8 {
        0 | 1 => format!("send_latency = \"{send}ns\"\nreceive_latency = \"{receive}ns\"\n"),
        2 => format!("cnp_interval = \"{}us\"\ncnp_delay = \"{}ns\"\n", payload % 60, payload % 5_000),
        3 => format!("send_latency = \"{send}ns\"\ncnp_delay = \"{}us\"\n", payload % 30),
        _ => String::new(),
    }
}

/// From just enough to plenty.
fn extra() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0u64), 0u64..20_000, 0u64..300_000, 0u64..20_000_000]
}

/// What a preset sets a key to.
fn setting(preset: &Preset, key: &str) -> Option<&'static str> {
    preset.settings.iter().find(|(own, _)| *own == key).map(|(_, value)| *value)
}

/// Presets that run on any fabric with the memory that a case gives them.
fn every() -> Vec<&'static str> {
    let anywhere =
        |p: &&Preset| setting(p, "scheme.flow_control") != Some("portfc") && setting(p, "switch.unlimited").is_none();
    presets::all().iter().filter(anywhere).map(|preset| preset.name).collect()
}

/// Those among them that lose nothing where they have their headroom.
fn lossless() -> Vec<&'static str> {
    let keeps = |name: &&str| {
        let Some(preset) = named(name) else { return false };
        let flow_control =
            setting(preset, "scheme.flow_control").and_then(|name| Registry::get().flow_control.named(name));
        let given_up = setting(preset, "scheme.sfc.pfc").or(setting(preset, "scheme.pfc.watchdog"));
        flow_control.is_some_and(|choice| {
            choice.layout(&Graph::default()).is_ok_and(|layout| layout.headroom.is_some() || layout.grants)
        }) && given_up.is_none()
    };
    every().into_iter().filter(keeps).collect()
}

fn case(kinds: std::ops::Range<usize>, presets: Vec<&'static str>) -> impl Strategy<Value = Case> {
    let scheme = (prop::sample::select(presets), 1u32..=3);
    (fabric(kinds), scheme, switch(), nic(), any::<bool>(), messages(), extra()).prop_map(
        |(fabric, (preset, classes), switch, (payload, lane, ack_every, pacing), incast, messages, extra)| {
            // A window that shrinks is refused with fewer ACKs: see `check_acks`.
            let ack_every = if shrinks(preset) { 1 } else { ack_every };
            let nic = format!(
                "payload = \"{payload}B\"\nack_lane = \"{lane}\"\nack_every = {ack_every}\npacing = {pacing}\n{}",
                hardware(payload)
            );
            let faults = String::new();
            Case { fabric, preset, scheme: None, more: "", switch, nic, classes, incast, messages, extra, faults }
        },
    )
}

/// Whether a preset's windows shrink: with the rate, or as its congestion control has it.
fn shrinks(name: &str) -> bool {
    let Some(preset) = named(name) else { return false };
    let controls = &fabric::axes::Registry::get().congestion_control;
    let control = setting(preset, "scheme.congestion_control").and_then(|name| controls.named(name));
    setting(preset, "scheme.window_rule") == Some("scaled")
        || control.is_some_and(|choice| choice.build().needs().window)
}

/// What holds of any run that ended by itself.
fn ended(outcome: &Outcome) -> Result<(), TestCaseError> {
    prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
    prop_assert!(!outcome.interrupted, "the run does not end: {:?}", outcome.counts);
    prop_assert!(
        outcome.complete(),
        "{} of {} flows, {:?}",
        outcome.finished.len(),
        outcome.flows.len(),
        outcome.stall
    );
    prop_assert_eq!(&outcome.stall, &None);
    prop_assert_eq!(outcome.left, 0, "packets left behind");
    Ok(())
}

/// What holds besides where a flow has one path at a time.
fn sound(resolved: &Resolved, outcome: &Outcome, buffer: u64) -> Result<(), TestCaseError> {
    ended(outcome)?;
    // A flow that changes paths may have packets on two at once, and be faster than alone on one.
    // So may one whose packets each take their own path, or which is given another than routing's rule gives it.
    let sprayed = !resolved.choices.load_balancing.by_rule();
    let steady = !sprayed && resolved.setup.graph.links.iter().all(|link| link.outages.is_empty());
    for (number, flow) in outcome.flows.iter().enumerate() {
        let spec = &flow.spec;
        let took = flow.received - flow.start;
        prop_assert!(!steady || took >= spec.ideal, "flow {} took {} ps, ideal {} ps", number, took.0, spec.ideal.0);
        prop_assert!(flow.start <= flow.injected && flow.injected < flow.received);
        prop_assert!(flow.received < flow.acknowledged);
    }
    for (node, &peak) in outcome.peak.iter().enumerate() {
        let graph = &resolved.setup.graph;
        let forwards = graph.nodes[node].kind == Kind::Switch || graph.forwarding;
        prop_assert!(peak <= if forwards { buffer } else { 0 }, "node {} held {} B of {}", node, peak, buffer);
    }
    let c = &outcome.counts;
    let bytes: u64 = outcome.flows.iter().map(|flow| flow.spec.size).sum();
    prop_assert_eq!(c.injected.1, bytes + c.retransmitted.1);
    let slowdowns = run::slowdown::slowdowns(outcome.flows.iter(), outcome.end);
    prop_assert!(!steady || slowdowns.iter().all(|(_, slowdown)| *slowdown >= 1.0), "{:?}", slowdowns);
    Ok(())
}

/// What holds of a run in which nothing is lost.
fn undisturbed(resolved: &Resolved, outcome: &Outcome) -> Result<(), TestCaseError> {
    let c = &outcome.counts;
    prop_assert_eq!((c.dropped_full, c.dropped_fault, c.dropped_down, c.dropped_bytes), (0, 0, 0, 0));
    // Empty buffers hold nobody back; credits that nobody needs any more may still be under way.
    prop_assert!(c.pauses == c.resumes || resolved.layout.grants && c.pauses > c.resumes);
    // Where paths may reorder packets, go-back-N discards what arrives early, and it is sent again.
    if resolved.choices.load_balancing.may_reorder() {
        return Ok(());
    }
    prop_assert_eq!(c.out_of_order, 0);
    let payload = resolved.setup.nic.payload as u64;
    let packets: u64 = outcome.flows.iter().map(|flow| flow.spec.size.div_ceil(payload)).sum();
    prop_assert_eq!((c.injected.0, c.retransmitted, c.timeouts), (packets, (0, 0), 0));
    prop_assert_eq!(c.delivered, c.injected);
    Ok(())
}

/// Runs a property; more than half of the cases must be ones that the product accepts, and `wanted` of them in the long run such
/// that something worth testing happened.
fn holds<S: Strategy>(strategy: S, wanted: f64, property: impl Fn(&S::Value) -> Result<Option<bool>, TestCaseError>) {
    let (tried, accepted, worthwhile) = (Cell::new(0), Cell::new(0), Cell::new(0));
    let mut config = Config { max_shrink_time: 20_000, ..Config::with_source_file(file!()) };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = CASES;
    }
    let result = TestRunner::new(config).run(&strategy, |case| {
        tried.set(tried.get() + 1);
        let Some(worth) = property(&case)? else { return Ok(()) };
        accepted.set(accepted.get() + 1);
        worthwhile.set(worthwhile.get() + worth as u32);
        Ok(())
    });
    if let Err(failure) = result {
        panic!("{failure}");
    }
    let (tried, accepted, worthwhile) = (tried.get(), accepted.get(), worthwhile.get());
    println!("{tried} cases, {accepted} accepted, {worthwhile} worthwhile");
    assert!(accepted * 2 > tried, "only {accepted} of {tried} cases are accepted");
    // Few cases may be five standard deviations off.
    let (expected, chance) = (wanted * accepted as f64, (wanted * (1.0 - wanted) * accepted as f64).sqrt());
    let enough = worthwhile as f64 + 5.0 * chance >= expected && (worthwhile > 0 || wanted == 0.0);
    assert!(enough, "only {worthwhile} of {accepted} cases show anything, where {wanted} of them should");
}

#[test]
fn under_pfc_nothing_is_lost_and_everything_arrives_in_order() {
    holds(case(0..7, lossless()), 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        // Among several classes, ACKs in the data lane can overflow headroom: the product says so and promises nothing.
        let exempt = case.classes > 1 && case.nic.contains("data");
        prop_assert_eq!(resolved.promised, !exempt, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        Ok(Some(outcome.counts.pauses > 0))
    });
}

#[test]
fn senders_notified_to_wait_again_and_again_still_deliver_everything() {
    let sfc = |name: &&str| named(name).and_then(|preset| setting(preset, "scheme.flow_control")) == Some("sfc");
    let presets: Vec<_> = lossless().into_iter().filter(sfc).collect();
    // Triggers so low that the least congestion is felt, everywhere and with every mechanism. Notifications are no longer than the shortest data:
    // longer ones, a flood of them for each packet that is dropped, can take a sender's link from ACKs for ever.
    let settings = (any::<[bool; 4]>(), 0u64..20_000, 0u64..20_000, 64u64..256, any::<prop::sample::Index>());
    let strategy = (case(0..7, presets), settings).prop_map(|(case, ([pfc, all, estimator, loss], a, b, packet, link))| {
        let (trigger, target, at) = (a.max(b), a.min(b), if all { "all" } else { "tor" });
        let own = faults(&case.fabric, &[(link, 0.02, 0.0)]);
        let own = if loss { own } else { String::new() };
        let faults = format!(
            "[scheme.sfc]\ntrigger = \"{trigger}B\"\ntarget = \"{target}B\"\nat = \"{at}\"\nestimator = {estimator}\n\
             packet = \"{packet}B\"\npfc = {pfc}\n{own}"
        );
        (pfc && !loss, Case { faults, ..case })
    });
    holds(strategy, 0.3, |(lossless, case)| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let exempt = case.classes > 1 && case.nic.contains("data");
        prop_assert_eq!(resolved.promised, *lossless && !exempt, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        Ok(Some(outcome.flow_control.iter().any(|counter| counter.name == "sender_pauses" && counter.value > 0)))
    });
}

/// Selective repeat over every kind of flow control and congestion control.
#[test]
fn selective_repeat_delivers_everything_whatever_is_lost_fails_or_overtakes() {
    let own = prop::collection::vec((any::<prop::sample::Index>(), 0.0f64..0.1, 0.0f64..0.02), 0..3);
    let outage = prop::option::of((any::<prop::sample::Index>(), 0u64..60_000, 1u64..300_000));
    let presets = every().into_iter().filter(|name| *name != "ndp" && !name.starts_with("uec")).collect();
    let strategy = (case(0..7, presets), own, outage, any::<bool>(), any::<bool>()).prop_map(
        |(case, own, outage, spray, short)| {
            let Fabric { spare, links, .. } = &case.fabric;
            let fragile: Vec<_> = links.iter().filter(|link| !spare.contains(link)).collect();
            let down = outage.filter(|_| !fragile.is_empty()).map(|(at, from, length)| {
                let (a, b) = fragile[at.index(fragile.len())];
                format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\ndown = [[\"{from}ns\", \"{}ns\"]]\n", from + length)
            });
            let faults = faults(&case.fabric, &own) + &down.unwrap_or_default();
            let more = if spray { "transport = \"irn\"\nrouting = \"spray\"\n" } else { "transport = \"irn\"\n" };
            // Timeouts that are much too short, too.
            let nic = if short { format!("{}timeout = \"30us\"\n", case.nic) } else { case.nic.clone() };
            (spray, Case { more, faults, nic, ..case })
        },
    );
    holds(strategy, 0.3, |(spray, case)| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        // Over several paths at once a message may be faster than over one.
        if *spray {
            ended(&outcome)?;
        } else {
            sound(&resolved, &outcome, buffer)?;
        }
        prop_assert!(outcome.flows.iter().all(|flow| flow.delivered == flow.spec.size));
        let (c, transport) = (&outcome.counts, &outcome.transport);
        let twice =
            transport.iter().find(|counter| counter.name == "irn_duplicates").map_or(0, |counter| counter.value);
        let payload = resolved.setup.nic.payload as u64;
        let packets: u64 = outcome.flows.iter().map(|flow| flow.spec.size.div_ceil(payload)).sum();
        prop_assert_eq!((c.injected.0, c.delivered.0), (packets + c.retransmitted.0, packets + twice));
        Ok(Some(c.retransmitted.0 > 0 || c.out_of_order > 0))
    });
}

#[test]
fn receivers_that_are_slow_lose_nothing_where_nothing_may_be_lost() {
    let slow = (1u64..200, 0u64..50_000, prop::option::of(1u64..200_000), 1_000u64..40_000_000);
    let strategy = (case(0..7, lossless()), slow).prop_map(|(case, (rate, from, length, buffer))| {
        let until = length.map_or(String::new(), |length| format!("until = \"{}ns\"\n", from + length));
        let host = case.messages[0].dst % case.fabric.hosts;
        let slow = format!("[[slow]]\nhost = {host}\nrate = \"{rate}Gbps\"\nfrom = \"{from}ns\"\n{until}");
        Case { incast: true, faults: format!("{slow}buffer = \"{buffer}B\"\n"), ..case }
    });
    holds(strategy, 0.2, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        Ok(Some(
            outcome.transport.iter().any(|counter| counter.name == "receiver_buffer_peak" && counter.value > 10_000),
        ))
    });
}

#[test]
fn flows_kept_apart_and_let_go_again_lose_neither_packet_nor_order() {
    // Thresholds so low that queues are allocated and deallocated all the time, tables that are full, frames as long as
    // packets; and in the end a message so much later that everything is free again.
    let sizes = (1u64..20_000, 0u64..10_000, 0u64..10_000, 1u32..40, 10u64..20_000);
    let strategy = (case(0..7, vec!["dvl", "edvl"]), sizes, any::<bool>(), 64u64..=256).prop_map(
        |(case, (threshold, ingress, tell, cft, hold), lines, frame)| {
            let faults = format!(
                "[scheme.dvl]\nthreshold = \"{threshold}B\"\ningress = \"{ingress}B\"\ntell = \"{tell}B\"\n\
                 cft = {cft}\nhold = \"{hold}ns\"\nframe = \"{frame}B\"\n"
            );
            let mut messages = case.messages.clone();
            messages.push(Message { start_ns: 50_000_000, size: 1, ..messages[0].clone() });
            let queues = if lines { "destination" } else { "flow" };
            Case { faults, messages, nic: format!("{}queues = \"{queues}\"\n", case.nic), ..case }
        },
    );
    holds(strategy, 0.3, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let exempt = case.classes > 1 && case.nic.contains("data");
        prop_assert_eq!(resolved.promised, !exempt, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        let count = |name: &str| outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value;
        prop_assert_eq!((count("cfq_left"), count("markings_left")), (0, 0));
        prop_assert_eq!(count("cfq_allocations"), count("cfq_deallocations"));
        // A frame that has not left may change what it says, so that the two kinds need not be as many.
        prop_assert!(count("pause_frames") == 0 || count("resume_frames") > 0);
        prop_assert!(count("cft_peak") <= resolved_cft(case));
        Ok(Some(count("notifications") > 0))
    });
}

#[test]
fn entries_that_live_as_in_the_standard_lose_neither_packet_nor_order() {
    // Lives from less than a packet takes to longer than the run.
    let sizes = (1u64..20_000, 0u64..10_000, 0u64..10_000, 1u32..40, 10u64..200_000);
    let strategy = (case(0..7, vec!["802.1qcz"]), sizes, 1u32..5).prop_map(
        |(case, (threshold, ingress, tell, cft, life), most)| {
            let faults = format!(
                "[scheme.dvl]\nthreshold = \"{threshold}B\"\ningress = \"{ingress}B\"\ntell = \"{tell}B\"\n\
                 cft = {cft}\nlife = \"{life}ns\"\nmessages = {most}\n"
            );
            Case { faults, ..case }
        },
    );
    holds(strategy, 0.3, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        let count = |name: &str| outcome.flow_control.iter().find(|counter| counter.name == name).unwrap().value;
        // A frame that has not left may change what it says, so that the two kinds need not be as many.
        prop_assert!(count("pause_frames") == 0 || count("resume_frames") > 0);
        prop_assert!(count("cft_peak") <= resolved_cft(case));
        Ok(Some(count("notifications") > 0))
    });
}

/// Entries of the table of congested flows in a scenario's text.
fn resolved_cft(case: &Case) -> u64 {
    let line = case.faults.lines().find_map(|line| line.strip_prefix("cft = "));
    line.unwrap().parse().unwrap()
}

#[test]
fn every_port_paused_again_and_again_still_delivers_everything() {
    // Incasts through the least buffer that is accepted, and nothing at the ends that holds back.
    let strategy = case(0..7, vec!["pfc", "window"]).prop_map(|case| {
        let messages = case.messages.iter().map(|m| Message { size: m.size.max(20_000), start_ns: 0, ..*m }).collect();
        Case { extra: 0, incast: true, nic: case.nic.replace("data", "control"), messages, ..case }
    });
    holds(strategy, 0.5, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        prop_assert!(resolved.promised);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        undisturbed(&resolved, &outcome)?;
        Ok(Some(outcome.counts.pauses > 10))
    });
}

#[test]
fn links_unlike_all_others_keep_ideal_times_a_lower_bound() {
    // Single links with their own rate and delay: equal paths differ in time, and a flow's own path counts.
    // What is deflected takes another path, which may be the faster one.
    let keeps_its_path =
        |name: &&str| named(name).and_then(|preset| setting(preset, "scheme.flow_control")) != Some("iofd");
    let presets = lossless().into_iter().filter(keeps_its_path).collect();
    let own = prop::collection::vec((any::<prop::sample::Index>(), rate(), 100u64..20_000), 1..5);
    let strategy = (case(0..7, presets), own).prop_map(|(case, own)| {
        let links = &case.fabric.links;
        let faults = own.iter().map(|(at, rate, delay)| {
            let (a, b) = &links[at.index(links.len())];
            format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = \"{rate}Gbps\"\ndelay = \"{delay}ns\"\n")
        });
        Case { faults: faults.collect(), ..case }
    });
    holds(strategy, 0.0, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            undisturbed(&resolved, &outcome)?;
        }
        Ok(Some(true))
    });
}

#[test]
fn hosts_that_forward_lose_nothing_and_what_stops_for_good_is_a_cycle() {
    // Any two hosts of a BCube may talk, up to six links apart. PFC's pauses may close a cycle there; nothing else may stop.
    let strategy = (case(5..6, vec!["pfc", "window", "dcqcn", "hpcc"]), 0u64..2_000, 20u64..200, any::<bool>());
    let strategy = strategy.prop_map(|(case, delay, share, deep)| {
        let (mut fabric, mut nic) = (case.fabric.clone(), case.nic.replace("data", "control"));
        fabric.base = None;
        if deep && fabric.hosts == 4 {
            (fabric.text, fabric.hosts) = (fabric.text.replace("k = 1", "k = 2"), 8);
        }
        nic += &format!("forward_delay = \"{delay}ns\"\n");
        if share < 100 {
            nic += &format!("forward_rate = \"{share}Gbps\"\n");
        }
        Case { fabric, nic, ..case }
    });
    holds(strategy, 0.3, |case| {
        let Some((resolved, _)) = case.resolve() else { return Ok(None) };
        prop_assert!(resolved.promised, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        prop_assert_eq!(&outcome.violations, &Vec::<String>::new());
        prop_assert_eq!(outcome.counts.dropped() + outcome.counts.out_of_order, 0);
        prop_assert!(!outcome.interrupted);
        if !outcome.complete() {
            prop_assert!(matches!(outcome.stall, Some(Stall::Deadlock(_))), "{:?}", outcome.stall);
        } else {
            prop_assert_eq!(&outcome.stall, &None);
        }
        for flow in outcome.flows.iter().filter(|flow| flow.received != engine::Time::MAX) {
            let took = flow.received - flow.start;
            prop_assert!(took >= flow.spec.ideal, "{} ps, ideal {} ps", took.0, flow.spec.ideal.0);
        }
        Ok(Some(outcome.counts.pauses > 0))
    });
}

/// `[[link]]` tables with loss and corruption on some links.
fn faults(fabric: &Fabric, faults: &[(prop::sample::Index, f64, f64)]) -> String {
    let fault = |(at, loss, corruption): &(prop::sample::Index, f64, f64)| {
        let (a, b) = &fabric.links[at.index(fabric.links.len())];
        format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nloss = {loss:.4}\ncorruption = {corruption:.4}\n")
    };
    faults.iter().map(fault).collect()
}

/// Links that lose packets.
fn faulty(presets: Vec<&'static str>) -> impl Strategy<Value = Case> {
    // As it is written, with four digits, it is above zero.
    let own = prop::collection::vec((any::<prop::sample::Index>(), 0.0001f64..0.03, 0.0f64..0.01), 1..4);
    (case(0..7, presets), own, 100u64..2_000).prop_map(|(case, own, timeout)| {
        let nic = format!("{}timeout = \"{timeout}us\"\n", case.nic);
        Case { faults: faults(&case.fabric, &own), nic, ..case }
    })
}

#[test]
fn what_faulty_links_lose_is_sent_again_until_all_has_arrived() {
    holds(faulty(vec!["lossy"]), 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        let c = &outcome.counts;
        // Bytes of message are lost in flight or delivered; ACKs are among the packets that are lost.
        prop_assert!(c.delivered.1 <= c.injected.1);
        prop_assert!(c.injected.0 - c.delivered.0 <= c.dropped_full + c.dropped_fault);
        Ok(Some(c.dropped_fault > 0))
    });
}

#[test]
fn faulty_links_under_pfc_hold_no_flow_back_for_ever() {
    // Pause and resume frames are lost like anything else.
    holds(faulty(lossless()), 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        // But what was granted fits, whatever gets lost.
        let exempt = case.classes > 1 && case.nic.contains("data");
        prop_assert_eq!(resolved.promised, resolved.layout.grants && !exempt);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        prop_assert!(!resolved.promised || outcome.counts.dropped_full == 0);
        Ok(Some(outcome.counts.dropped_fault > 0))
    });
}

/// Credits of any size and number, shared in any way, over links that work or lose what they like.
#[test]
fn credits_keep_what_they_promise_however_few_there_are_and_whatever_is_lost() {
    let sizes = (1u32..2000, 16u64..=512, -16i32..=127, 800u64..20_000, 5u64..300);
    let shared =
        (prop::sample::select(vec!["reserved", "static", "dynamic"]), 1u32..100, 0u32..300, -7i32..=7, any::<bool>());
    let own = prop::collection::vec((any::<prop::sample::Index>(), 0.0001f64..0.05, 0.0f64..0.01), 0..3);
    let presets = vec!["cbfc", "dcqcn+win+cbfc"];
    let strategy = (case(0..7, presets), sizes, shared, own, 100u64..2_000).prop_map(
        |(case, (credits, credit, overhead, spacing, interval), (sharing, reserve, most, shift, auto), own, timeout)| {
            let alpha = 2f64.powi(shift);
            let more = match sharing {
                "static" => format!("most = {most}\n"),
                "dynamic" => format!("alpha = {alpha:?}\n"),
                _ => String::new(),
            };
            let number = if auto { String::new() } else { format!("credits = {credits}\n") };
            let scheme = format!(
                "[scheme]\npreset = \"{}\"\n[scheme.cbfc]\ncredit = \"{credit}B\"\noverhead = {overhead}\nsharing = \"{sharing}\"\n\
                 reserve = {reserve}\ncf_spacing = \"{spacing}B\"\ncc_interval = \"{interval}us\"\n{number}{more}",
                case.preset
            );
            let nic = match own.is_empty() {
                true => case.nic.clone(),
                false => format!("{}timeout = \"{timeout}us\"\n", case.nic),
            };
            (auto, Case { scheme: Some(scheme), faults: faults(&case.fabric, &own), nic, ..case })
        },
    );
    holds(strategy, 0.3, |(auto, case)| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let exempt = case.classes > 1 && case.nic.contains("data");
        prop_assert!(resolved.promised || !auto || exempt, "{:?}", resolved.notes);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        if resolved.promised {
            prop_assert_eq!(outcome.counts.dropped_full, 0);
        }
        if resolved.promised && case.faults.is_empty() {
            undisturbed(&resolved, &outcome)?;
        }
        Ok(Some(outcome.counts.pauses > 0))
    });
}

/// NDP with random parameters.
fn pulled(case: impl Strategy<Value = Case>) -> impl Strategy<Value = Case> {
    let settings =
        (1u32..100, 1u32..12, 2048u64..20_000, 1u32..20, prop::sample::select(vec!["spray", "ecmp", "d-mod-k"]));
    (case, settings).prop_map(|(case, (window, queue, headers, ratio, routing))| {
        let own = format!(
            "[scheme]\nrouting = \"{routing}\"\npreset = \"ndp\"\n[scheme.ndp]\nwindow = {window}\nqueue = {queue}\n\
             headers = \"{headers}B\"\nratio = {ratio}\n"
        );
        Case { scheme: Some(own), ..case }
    })
}

#[test]
fn what_is_trimmed_is_pulled_again_and_nothing_else_is_sent_twice() {
    let strategy = pulled(case(0..7, vec!["ndp"]));
    holds(strategy, 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        let c = &outcome.counts;
        let payload = resolved.setup.nic.payload as u64;
        let packets: u64 = outcome.flows.iter().map(|flow| flow.spec.size.div_ceil(payload)).sum();
        prop_assert_eq!(c.injected.0, packets + c.retransmitted.0);
        // Without control packets lost, each trimmed packet is sent once more and every packet arrives once.
        if c.dropped_full == 0 {
            prop_assert_eq!(c.retransmitted, c.trimmed);
            prop_assert_eq!((c.delivered.0, c.timeouts), (packets, 0));
        }
        Ok(Some(c.trimmed.0 > 0))
    });
}

#[test]
fn what_faulty_links_lose_of_pulled_flows_is_sent_again_until_all_has_arrived() {
    holds(pulled(faulty(vec!["ndp"])), 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        Ok(Some(outcome.counts.dropped_fault > 0))
    });
}

/// Ultra Ethernet's transport with random parameters: over switches that trim, and over PFC.
fn unordered(case: impl Strategy<Value = Case>) -> impl Strategy<Value = Case> {
    let control = prop::sample::select(vec!["uec", "uec-nscc", "uec-rccc"]);
    let balancing = prop::sample::select(vec!["mixed", "bitmap", "oblivious", "reps", "ecmp", "spray"]);
    let settings = (control, balancing, prop::bool::weighted(0.7), 3_000u64..40_000, 0u64..40_000, 5u64..200);
    (case, settings).prop_map(|(case, (control, balancing, trim, queue, ack_after, rto))| {
        let beneath = if trim { "none" } else { "pfc" };
        let queue = if trim { format!("queue = \"{queue}B\"\nheaders = \"{}B\"\n", queue.max(2048)) } else { String::new() };
        // Receivers that look at their own links only can fill another one with headers for ever.
        let looks = if control == "uec-rccc" { "[scheme.rccc]\noversubscribed = true\n" } else { "" };
        let own = format!(
            "[scheme]\npreset = \"{control}\"\nload_balancing = \"{balancing}\"\nflow_control = \"{beneath}\"\n[scheme.uet]\n\
             trim = {trim}\n{queue}ack_after = \"{ack_after}B\"\nrto = \"{rto}us\"\n{looks}"
        );
        Case { scheme: Some(own), ..case }
    })
}

#[test]
fn what_is_trimmed_or_lost_is_sent_again_until_all_has_arrived_in_any_order() {
    let strategy = prop_oneof![unordered(case(0..7, vec!["uec"])), unordered(faulty(vec!["uec"]))];
    holds(strategy, 0.1, |case| {
        let Some((resolved, _)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        ended(&outcome)?;
        let c = &outcome.counts;
        let payload = resolved.setup.nic.payload as u64;
        let packets: u64 = outcome.flows.iter().map(|flow| flow.spec.size.div_ceil(payload)).sum();
        // A header that asks for credit may go before its packet ever did.
        let asked = outcome.transport.iter().find(|counter| counter.name == "pulls_asked_for").map_or(0, |it| it.value);
        let sent = packets + c.retransmitted.0;
        prop_assert!(c.injected.0 <= sent && c.injected.0 + asked >= sent, "{:?} {packets} {asked}", c);
        prop_assert!(outcome.flows.iter().all(|flow| flow.delivered == flow.spec.size));
        Ok(Some(c.trimmed.0 > 0 || c.dropped_fault > 0))
    });
}

#[test]
fn a_link_that_fails_and_comes_back_loses_nothing_for_good() {
    let outage = (any::<prop::sample::Index>(), 0u64..60_000, 1u64..300_000);
    // Every second time a link with an alternative, where there is one.
    let strategy = (case(0..7, lossless()), outage, any::<bool>()).prop_map(|(case, (at, from, length), spare)| {
        let Fabric { spare: spares, links, .. } = &case.fabric;
        let choice = if spare && !spares.is_empty() { spares } else { links };
        let (a, b) = &choice[at.index(choice.len())];
        let down = format!("down = [[\"{from}ns\", \"{}ns\"]]", from + length);
        Case { faults: format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\n{down}\n"), ..case }
    });
    holds(strategy, 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        // A detour by hosts that forward can close a cycle.
        if case.fabric.base.is_some() && matches!(outcome.stall, Some(Stall::Deadlock(_))) {
            return Ok(Some(true));
        }
        sound(&resolved, &outcome, buffer)?;
        Ok(Some(outcome.counts.dropped_down > 0))
    });
}

#[test]
fn links_that_fail_again_and_again_lose_nothing_for_good() {
    // Up to three links, each up to three times. Where detours exist, only links without one fail: a detour that
    // goes down and up again can close a cycle, and that is no fault of the simulator.
    let times = prop::collection::vec((1u64..60_000, 1u64..200_000), 1..4);
    let outages = prop::collection::vec((any::<prop::sample::Index>(), times), 1..4);
    let strategy = (case(0..7, every()), outages).prop_map(|(case, outages)| {
        let Fabric { spare, links, .. } = &case.fabric;
        let fragile: Vec<_> = links.iter().filter(|link| !spare.contains(link)).collect();
        let outages = if fragile.is_empty() { Vec::new() } else { outages };
        let fail = |(at, times): &(prop::sample::Index, Vec<(u64, u64)>)| {
            let (a, b) = fragile[at.index(fragile.len())];
            let mut now = 0;
            let outage = |(up, down): &(u64, u64)| {
                let from = now + up;
                now = from + down;
                format!("[\"{from}ns\", \"{now}ns\"]")
            };
            let down: Vec<String> = times.iter().map(outage).collect();
            format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\ndown = [{}]\n", down.join(", "))
        };
        Case { faults: outages.iter().map(fail).collect(), ..case }
    });
    holds(strategy, 0.1, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        Ok(Some(outcome.counts.dropped_down > 0))
    });
}

#[test]
fn the_same_scenario_gives_the_same_outcome() {
    let own = prop::collection::vec((any::<prop::sample::Index>(), 0.0f64..0.02, 0.0f64..0.01), 0..2);
    let strategy = (case(0..7, every()), own).prop_map(|(case, own)| {
        // Faults draw random numbers, and so do marks.
        Case { faults: faults(&case.fabric, &own), ..case }
    });
    holds(strategy, 0.1, |case| {
        let Some((first, _)) = case.resolve() else { return Ok(None) };
        let Some((second, _)) = case.resolve() else { return Err(TestCaseError::fail("refused the second time")) };
        let (one, two) = (run(&first), run(&second));
        prop_assert_eq!(&one.flows, &two.flows);
        prop_assert_eq!(&one.counts, &two.counts);
        prop_assert_eq!(&one.finished, &two.finished);
        prop_assert_eq!(&one.paused, &two.paused);
        prop_assert_eq!(&one.peak, &two.peak);
        prop_assert_eq!(&one.samples, &two.samples);
        prop_assert_eq!((one.end, one.left, one.stall), (two.end, two.left, two.stall));
        Ok(Some(one.counts.marked + one.counts.dropped_fault > 0))
    });
}

#[test]
fn flows_spread_over_many_queues_stay_in_order() {
    // Several queues, several paths, and turns shorter and longer than a packet.
    let strategy = (case(2..7, lossless()), 2u32..=64, 64u32..10_000).prop_map(|(case, queues, quantum)| {
        let mut switch: String =
            case.switch.lines().filter(|l| !l.starts_with("queues")).map(|l| format!("{l}\n")).collect();
        switch += &format!("queues = {queues}\nquantum = \"{quantum}B\"\n");
        Case { switch, nic: case.nic.replace("data", "control"), ..case }
    });
    holds(strategy, 0.0, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        prop_assert!(resolved.promised && resolved.setup.switch.queues > 1);
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        undisturbed(&resolved, &outcome)?;
        Ok(Some(true))
    });
}

#[test]
fn without_flow_control_a_tiny_buffer_drops_and_timeouts_repair() {
    let strategy =
        (case(0..7, vec!["lossy"]), prop::collection::vec(50_000u64..200_000, 6..16)).prop_map(|(case, sizes)| {
            let message = |(number, size): (usize, &u64)| Message {
                src: number as u32,
                dst: 0,
                size: *size,
                start_ns: 0,
                class: number as u32,
            };
            let messages = sizes.iter().enumerate().map(message).collect();
            Case { extra: 0, incast: true, messages, ..case }
        });
    holds(strategy, 0.5, |case| {
        let Some((resolved, buffer)) = case.resolve() else { return Ok(None) };
        prop_assert!(!resolved.promised && resolved.setup.nic.timeout.is_some());
        let outcome = run(&resolved);
        sound(&resolved, &outcome, buffer)?;
        let c = &outcome.counts;
        prop_assert_eq!((c.dropped_fault, c.dropped_down), (0, 0));
        prop_assert!(c.dropped_full == 0 || c.retransmitted.0 > 0 || c.timeouts > 0);
        Ok(Some(c.dropped_full > 0))
    });
}

#[test]
fn a_message_into_a_slower_link_is_not_crowded_out_by_its_own_repeats() {
    // Nothing is set but a small buffer. Gaps are reported again and again while the repeat is under way, and a sender
    // that started over each time would fill the buffer with what is not wanted yet, for ever.
    let text = "[topology]\nkind = \"dumbbell\"\nleft = 1\nright = 1\nhost_rate = \"40Gbps\"\n\
                bottleneck_rate = \"10Gbps\"\nbottleneck_delay = \"15us\"\n\
                [switch]\nbuffer = \"50KB\"\n[scheme]\npreset = \"lossy\"\n\
                [[flow]]\nsrc = 0\ndst = 1\nsize = \"300KB\"\n";
    let outcome = run(&read(text).unwrap());
    assert!(outcome.complete());
    let (sent, ideal) = (outcome.counts.injected.0, outcome.flows[0].spec.ideal);
    let took = outcome.flows[0].received;
    assert!(took.0 < 50 * ideal.0, "{} us against {} us, and {sent} packets for 300", took.us_f64(), ideal.us_f64());
}

fn read(text: &str) -> Result<Resolved, Problem> {
    Scenario::parse("a.toml", text, Path::new("/nowhere"), &[]).and_then(resolve)
}

/// Two hosts send one packet's worth and more to a third, without flow control.
fn unprotected(switch: &str) -> String {
    format!(
        "[topology]\nkind = \"star\"\nhosts = 3\n[scheme]\npreset = \"lossy\"\n[switch]\n{switch}\
         [[flow]]\nsrc = 1\ndst = 0\nsize = \"5KB\"\n[[flow]]\nsrc = 2\ndst = 0\nsize = \"5KB\"\n"
    )
}

#[test]
fn a_packet_that_no_port_could_ever_take_in_does_not_run_for_ever() {
    // A hundredth of ten packets' memory is less than a packet, and there is neither reserve nor headroom.
    let text = unprotected("buffer = \"10620B\"\nalpha = 0.01\nreserve = \"0B\"\n");
    if let Ok(resolved) = read(&text) {
        let outcome = run(&resolved);
        assert!(outcome.complete(), "accepted, and then {:?}", outcome.counts);
    }
}

#[test]
fn a_port_has_its_reserve_to_itself() {
    // Two packets fit in each port's own memory, whatever the share of the pool.
    let text = unprotected("buffer = \"20KB\"\nalpha = 0.01\nreserve = \"4096B\"\n");
    let outcome = run(&read(&text).unwrap());
    assert!(outcome.complete(), "{:?}", outcome.counts);
}

#[test]
fn what_a_dead_link_took_with_it_no_longer_holds_the_neighbours_back() {
    // The receiver's link fails while both senders are paused. What waited for it is dropped and its memory free again,
    // so that the senders may go on.
    let text = "[topology]\nkind = \"star\"\nhosts = 3\n[scheme]\npreset = \"pfc\"\n\
                [switch]\nbuffer = \"120KB\"\nalpha = 0.01\n\
                [[link]]\nbetween = [\"h0\", \"sw0\"]\ndown = [[\"20us\", \"100us\"]]\n\
                [[flow]]\nsrc = 1\ndst = 0\nsize = \"1MB\"\n[[flow]]\nsrc = 2\ndst = 0\nsize = \"1MB\"\n";
    let outcome = run(&read(text).unwrap_or_else(|problem| panic!("{problem}")));
    assert!(outcome.counts.pauses > 0 && outcome.counts.dropped_down > 0);
    assert!(outcome.complete(), "{:?}", outcome.stall);
}

#[test]
fn a_network_that_waits_is_not_taken_for_one_that_is_stuck() {
    // A message across a star, and reasons why for a while no packet arrives anywhere.
    let finishes = |rest: &str| {
        let text =
            format!("[topology]\nkind = \"star\"\nhosts = 3\n{rest}[[flow]]\nsrc = 1\ndst = 0\nsize = \"20KB\"\n");
        let outcome = run(&read(&text).unwrap_or_else(|problem| panic!("{problem}")));
        assert!(outcome.complete(), "{rest}: {:?} at {}", outcome.stall, outcome.end);
    };
    let far = |ms: u32| format!("rate = \"1Gbps\"\ndelay = \"{ms}ms\"\n[switch]\nbuffer = \"2GB\"\n");
    finishes(&far(150));
    finishes(&format!("{}[scheme]\npreset = \"hpcc\"\n", far(1000)));
    let link = "[[link]]\nbetween = [\"h1\", \"sw0\"]\n";
    finishes(&format!("{link}down = [[\"0us\", \"300ms\"]]\n"));
    finishes(&format!("{link}down = [[\"1us\", \"5s\"]]\n"));
    finishes(&format!("{link}loss = 0.5\n[nic]\ntimeout = \"400ms\"\nnack_interval = \"1s\"\n"));
    finishes(&format!("{link}rate = \"1Mbps\"\n[nic]\npayload = \"9000B\"\n[scheme]\npreset = \"window\"\n"));
}

#[test]
fn what_is_promised_has_its_headroom_however_long_the_links() {
    for (rate, delay_ms) in [(100u64, 1u64), (100, 160), (100, 200), (400, 100), (400, 1000)] {
        let text = format!(
            "[topology]\nkind = \"star\"\nhosts = 3\nrate = \"{rate}Gbps\"\ndelay = \"{delay_ms}ms\"\n\
             [switch]\nbuffer = \"1000GB\"\n[[flow]]\nsrc = 1\ndst = 0\nsize = \"1KB\"\n"
        );
        let Ok(resolved) = read(&text) else { continue };
        let there_and_back = rate * 2 * delay_ms * 1_000_000 / 8;
        let headroom = resolved.setup.ports[3].share.headroom as u64;
        assert!(!resolved.promised || headroom >= there_and_back, "{headroom} B for {there_and_back} B in flight");
    }
}

#[test]
fn telemetry_of_a_new_path_is_not_compared_with_that_of_the_old_one() {
    // The path of both flows changes for a moment: a hop's counters are suddenly those of another switch.
    let text = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nhosts_per_leaf = 3\nspines = 2\n\
                host_rate = \"10Gbps\"\nhost_delay = \"100ns\"\nuplink_rate = \"10Gbps\"\nuplink_delay = \"100ns\"\n\
                [scheme]\npreset = \"hpcc\"\n[nic]\npayload = \"256B\"\n\
                [[link]]\nbetween = [\"leaf0\", \"spine0\"]\ndown = [[\"8768ns\", \"8956ns\"]]\n\
                [[flow]]\nsrc = 1\ndst = 3\nsize = \"17665B\"\nstart = \"7703ns\"\n\
                [[flow]]\nsrc = 10\ndst = 3\nsize = \"8943B\"\nstart = \"12659ns\"\n";
    let outcome = run(&read(text).unwrap());
    assert!(outcome.complete(), "{:?}", outcome.stall);
}

#[test]
fn many_flows_into_one_host_keep_its_link_busy_and_no_busier() {
    let strategy = (rate(), 100u64..20_000, 256u64..=4096, prop::collection::vec(1u64..300_000, 1..30));
    holds(strategy, 1.0, |(rate, delay, payload, sizes)| {
        let hosts = sizes.len() + 1;
        let mut text = format!(
            "[topology]\nkind = \"star\"\nhosts = {hosts}\nrate = \"{rate}Gbps\"\ndelay = \"{delay}ns\"\n\
             [scheme]\npreset = \"window\"\n[nic]\npayload = \"{payload}B\"\n[switch]\nbuffer = \"100MB\"\n"
        );
        for (number, size) in sizes.iter().enumerate() {
            text += &format!("[[flow]]\nsrc = {}\ndst = 0\nsize = \"{size}B\"\n", number + 1);
        }
        let resolved = Scenario::parse("incast.toml", &text, Path::new("/nowhere"), &[]).and_then(resolve).unwrap();
        let outcome = run(&resolved);
        sound(&resolved, &outcome, 100_000_000)?;
        undisturbed(&resolved, &outcome)?;
        let header = resolved.setup.nic.header as u64;
        let on_wire: u64 = sizes.iter().map(|size| size + size.div_ceil(*payload) * header).sum();
        let end = outcome.flows.iter().map(|flow| flow.received.0).max().unwrap();
        let busy = on_wire * 8_000 / rate;
        // The last bytes have to come in by the first link and cross both.
        let slack = outcome.flows.iter().map(|flow| flow.spec.base_rtt.0).max().unwrap();
        prop_assert!(end >= busy + 2 * delay * 1000, "{} ps for {} ps of packets", end, busy);
        prop_assert!(end <= busy * 13 / 10 + slack, "{} ps for {} ps of packets", end, busy);
        Ok(Some(true))
    });
}
