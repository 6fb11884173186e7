//! Drawing a scenario.
//!
//! What has parameters is drawn from their declaration ([`schema::sections`]), so that a new key, mechanism or preset is drawn
//! as soon as it exists. What the reader refuses is mended as its answer says.

use crate::text::{Table, Text};
use engine::{Bytes, Kind, Limits, Rate, Raw, Stream, Time, Value};
use fabric::topology::Graph;
use scenario::declared::{Absent, Key, Section};
use scenario::resolve::{Resolved, resolve};
use scenario::{Scenario, presets, schema};
use std::panic::catch_unwind;
use std::path::Path;

/// The most data packets of a scenario.
const PACKETS: u64 = 8_000;
/// The most hosts.
const HOSTS: usize = 64;
/// How often what is refused is mended before it is given up.
const MENDS: usize = 24;

/// Choices that may not go with others.
const RIVALS: [&str; 4] = ["scheme.transport", "scheme.flow_control", "scheme.edge_control", "scheme.preset"];

/// Draws one thing after the other.
struct Draw<'a> {
    stream: Stream,
    /// How often a value is anything within its limits, and not close to its default.
    wild: f64,
    /// How often a key is written.
    often: f64,
    /// Where files that a scenario names go.
    folder: &'a Path,
    /// The number of the case, for their names.
    number: u64,
}

/// A fabric that was drawn.
struct Place {
    hosts: u64,
    graph: Graph,
    forwarding: bool,
}

/// Reads a scenario.
pub fn read(text: &str, folder: &Path) -> Result<Resolved, files::problem::Problem> {
    resolve(Scenario::parse("case.toml", text, folder, &[])?)
}

/// The scenario with that number of a seed, or why there is none: it could not be made valid, or is too large.
pub fn draw(seed: u64, number: u64, folder: &Path) -> Result<Text, &'static str> {
    let mut stream = Stream::new(seed, number);
    let wild = [0.0, 0.0, 0.05, 0.3][stream.below(4) as usize];
    let often = [0.05, 0.15, 0.4][stream.below(3) as usize];
    let mut text = Draw { stream, wild, often, folder, number }.scenario().ok_or("no fabric")?;
    let mut stream = Stream::new(seed ^ 0x5eed, number);
    for _ in 0..MENDS {
        let problem = match catch_unwind(|| read(&text.to_string(), folder)) {
            Ok(Ok(resolved)) => return if fits(&resolved) { Ok(text) } else { Err("too large") },
            Ok(Err(problem)) => problem,
            // Whoever judges it sees it again.
            Err(_) => return Ok(text),
        };
        // A buffer that is too small: its refusal names one that is not.
        let key = problem.key.clone().unwrap_or_default();
        let help = problem.help.clone().unwrap_or_default();
        let least = help.split('"').nth(1).and_then(|size| size.parse::<Bytes>().ok());
        let extra =
            [0, 1, stream.below(20_000), stream.below(20_000), stream.below(5_000_000)][stream.below(5) as usize];
        match (key.as_str(), least) {
            ("switch.buffer", Some(least)) => text.table("switch").set("buffer", Bytes(least.0 + extra).show()),
            ("nic.forward_buffer", Some(least)) => {
                text.table("nic").set("forward_buffer", Bytes(least.0 + extra).show())
            }
            ("stop" | "", _) if help.contains("stop") => text.table("").set("stop", "\"1ms\""),
            _ if text.remove(&key) => {}
            // What is wrong is a default or the preset's: the choice that does not go with it is taken away.
            ("switch.ecn_max", _) if text.remove("switch.ecn_min") => {}
            _ if RIVALS.iter().any(|rival| text.remove(rival)) => {}
            ("", _) if problem.message.contains("no flows") => {
                text.0.push(Table::one_of("flow").with("src", 0).with("dst", 1).with("size", "\"1KB\""));
            }
            _ => return Err("refused"),
        }
    }
    Err("refused again and again")
}

/// Whether a scenario is small enough.
fn fits(resolved: &Resolved) -> bool {
    let setup = &resolved.setup;
    let payload = setup.nic.payload.max(1) as u64;
    let packets: u64 = setup.flows.iter().map(|flow| flow.size.div_ceil(payload)).fold(0, u64::saturating_add);
    let carried: u64 = if setup.stop == Time::MAX {
        u64::MAX
    } else {
        let nics =
            setup.graph.links.iter().filter(|link| {
                [link.a, link.b].iter().any(|&end| setup.graph[end].kind == fabric::topology::Kind::Host)
            });
        nics.map(|link| link.fastest().bytes_over(setup.stop) / payload + 1).fold(0, u64::saturating_add)
    };
    packets.min(carried) <= PACKETS
}

fn text(value: &str) -> String {
    format!("\"{value}\"")
}

impl Draw<'_> {
    fn below(&mut self, n: u64) -> u64 {
        self.stream.below(n.max(1))
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.below(most - least + 1)
    }

    fn chance(&mut self, p: f64) -> bool {
        self.stream.chance(p)
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    /// Of all sizes alike.
    fn spread(&mut self, least: u64, most: u64) -> u64 {
        let (low, high) = ((least.max(1) as f64).ln(), (most.max(1) as f64 + 1.0).ln());
        ((low + (high - low) * self.stream.uniform()).exp() as u64).clamp(least, most)
    }

    /// A whole number within limits: close to what it usually is, or anything.
    fn number(&mut self, least: u64, most: u64, usual: Option<u64>) -> u64 {
        match usual {
            Some(usual) if !self.chance(self.wild) => {
                let factor = (self.stream.uniform() * 6.0 - 3.0).exp2();
                ((usual as f64 * factor) as u64).clamp(least, most)
            }
            _ => match self.below(5) {
                0 => least,
                1 => most,
                2 => least.saturating_add(1).min(most),
                _ => self.spread(least, most),
            },
        }
    }

    /// A value of a kind, or nothing for a kind whose values only their table knows.
    fn value(&mut self, kind: &Kind, usual: Option<&Raw>) -> Option<String> {
        fn bounds<T: Copy, const N: usize>(
            limits: &Option<Limits<T>>,
            of: impl Fn(T) -> u64,
            most: [T; N],
        ) -> (u64, u64) {
            let all = limits.map(|limits| (of(limits.least), limits.most.map(&of)));
            let cap = most.map(of)[0];
            let (least, most) = all.unwrap_or((0, None));
            (least, most.unwrap_or(cap).min(cap).max(least))
        }
        let quantity = |raw: &Raw| match raw {
            Raw::Text(text) => Some(text.clone()),
            _ => None,
        };
        Some(match kind {
            Kind::Time(limits) => {
                let (least, most) = bounds(limits, |time| time.0, [Time::from_ms(1000)]);
                let usual = usual.and_then(quantity).and_then(|text| text.parse::<Time>().ok());
                Time(self.number(least, most, usual.map(|time| time.0))).show()
            }
            Kind::Rate(limits) => {
                let (least, most) = bounds(limits, |rate| rate.0, [Rate::from_gbps(100_000)]);
                let usual = usual.and_then(quantity).and_then(|text| text.parse::<Rate>().ok());
                Rate(self.number(least, most, usual.map(|rate| rate.0))).show()
            }
            Kind::Bytes(limits) => {
                let (least, most) = bounds(limits, |bytes| bytes.0, [Bytes(1_000_000_000)]);
                let usual = usual.and_then(quantity).and_then(|text| text.parse::<Bytes>().ok());
                Bytes(self.number(least, most, usual.map(|bytes| bytes.0))).show()
            }
            Kind::Integer(limits) => {
                let (least, most) = bounds(limits, |number| number, [4096]);
                let usual = usual.and_then(|raw| raw.plain().parse().ok());
                self.number(least, most, usual).to_string()
            }
            Kind::Number(limits) => {
                let Limits { least, most } = limits.unwrap_or(Limits { least: 0.0, most: None });
                let most = most.unwrap_or(1e6);
                let usual = usual.and_then(|raw| raw.plain().parse::<f64>().ok());
                let number = match usual {
                    Some(usual) if !self.chance(self.wild) => usual * (self.stream.uniform() * 4.0 - 2.0).exp2(),
                    _ => match self.below(5) {
                        0 => least,
                        1 => most,
                        2 => least + 1e-6,
                        _ => least + (most - least) * self.stream.uniform(),
                    },
                };
                format!("{:?}", (number.clamp(least, most) * 1e6).round() / 1e6)
            }
            Kind::Bool => self.chance(0.5).to_string(),
            Kind::Choice(words) if !words.is_empty() => {
                let words: Vec<&str> = words.iter().map(|word| word.word).collect();
                text(self.pick(&words))
            }
            Kind::Auto(kind) => match self.chance(0.2) {
                true => text("auto"),
                false => return self.value(kind, usual.filter(|raw| raw.plain() != "auto")),
            },
            Kind::Either { of, .. } => {
                let kind = self.pick(of);
                return self.value(&kind, None);
            }
            Kind::Choice(_) | Kind::Text | Kind::Array { .. } => return None,
        })
    }

    /// Some keys of a section, with values.
    fn keys(&mut self, section: &Section, table: &mut Table, without: &[&str]) {
        for Key { name, kind, absent, .. } in section.keys.iter().filter(|key| !without.contains(&key.name)) {
            if !self.chance(self.often) {
                continue;
            }
            let usual = match absent {
                Absent::Value(raw) => Some(raw),
                _ => None,
            };
            let Some(value) = self.value(kind, usual) else { continue };
            // Longer passages make runs of many seconds, of which samples are all that happens.
            let passage = ["pipeline", "forward_delay"].contains(name);
            let long = |value: &str| value.trim_matches('"').parse::<Time>().is_ok_and(|time| time > Time::from_ms(1));
            // A host that forwards this slowly gets copies of packets faster than it sends them on, and its memory may be large.
            let crawls = |value: &str| value.trim_matches('"').parse::<Rate>().is_ok_and(|rate| rate.0 < 1_000_000_000);
            let value = match *name {
                _ if passage && long(&value) => text("1ms"),
                "forward_rate" if crawls(&value) => text("1Gbps"),
                _ => value,
            };
            table.set(name, value);
        }
    }

    fn rate(&mut self) -> String {
        match self.chance(self.wild * 0.5) {
            true => Rate(self.spread(1_000_000, 100_000_000_000_000)).show(),
            false => Rate::from_gbps(self.pick(&[10, 25, 40, 56, 100, 100, 100, 200, 400])).show(),
        }
    }

    fn delay(&mut self) -> String {
        let most = if self.chance(self.wild) { 1_000_000_000 } else { 5_000_000 };
        let least = if most > 5_000_000 { 1 } else { 100_000 };
        Time(self.spread(least, most)).show()
    }

    /// A time within a run.
    fn time(&mut self) -> Time {
        match self.below(4) {
            0 | 1 => Time::ZERO,
            2 => Time::from_ns(self.below(5_000)),
            _ => Time(self.below(100_000_000)),
        }
    }

    fn topology(&mut self) -> Option<(Table, Place)> {
        let kinds = schema::sections();
        let kinds: Vec<_> = kinds.iter().filter(|section| section.path == "topology").collect();
        let section = self.pick(&kinds);
        let kind = section.with?.1;
        let mut table = Table::new("topology").with("kind", text(kind));
        // Sizes are drawn by name, so that the fabric stays small.
        let most = |name: &str| match (kind, name) {
            ("star", "hosts") => 24,
            (_, "left" | "right") => 8,
            (_, "leaves" | "hosts_per_leaf" | "switches" | "hosts_per_switch" | "spines") => 5,
            ("fat-tree", "k" | "pods") => 4,
            ("k-ary-n-tree", "k") | ("bcube", "n") => 4,
            ("k-ary-n-tree", "n") => 3,
            ("bcube", "k") => 2,
            (_, "bottlenecks") => 3,
            _ => 2,
        };
        for key in section.keys.iter().filter(|key| key.name != "kind") {
            match &key.kind {
                Kind::Integer(_) => table.set(key.name, self.between(1, most(key.name))),
                Kind::Auto(_) if self.chance(0.3) => table.set(key.name, self.between(1, most(key.name))),
                Kind::Rate(_) => table.set(key.name, self.rate()),
                Kind::Time(_) => table.set(key.name, self.delay()),
                Kind::Text => table.set(key.name, text(&self.graph_file()?)),
                _ => {}
            }
        }
        let alone = format!("{}[[flow]]\nsrc = 0\ndst = 1\nsize = \"1B\"\n", Text(vec![table.clone()]));
        let graph = Scenario::parse("case.toml", &alone, self.folder, &[]).ok()?.graph;
        let hosts = graph.hosts().count();
        let place = Place { hosts: hosts as u64, forwarding: graph.forwarding, graph };
        (2..=HOSTS).contains(&hosts).then_some((table, place))
    }

    /// Switches with a host or more on each, joined at random: rings and whatever else no shape has.
    fn graph_file(&mut self) -> Option<String> {
        let (switches, hosts) = (self.between(2, 7), self.between(2, 14));
        let mut text = String::new();
        if self.chance(0.15) {
            text += "hosts_forward = true\n";
        }
        for (letter, kind, count) in [('h', "host", hosts), ('s', "switch", switches)] {
            for number in 0..count {
                text += &format!("[[node]]\nname = \"{letter}{number}\"\nkind = \"{kind}\"\n");
            }
        }
        let ring = self.chance(0.5);
        let mut links: Vec<(String, String)> =
            (0..hosts).map(|h| (format!("h{h}"), format!("s{}", h % switches))).collect();
        links
            .extend((1..switches).map(|s| (format!("s{}", if ring { s - 1 } else { self.below(s) }), format!("s{s}"))));
        if ring && switches > 2 {
            links.push(("s0".into(), format!("s{}", switches - 1)));
        }
        for _ in 0..self.below(4) {
            let (a, b) = (self.below(switches), self.below(switches));
            if a != b {
                links.push((format!("s{a}"), format!("s{b}")));
            }
        }
        let same = self.chance(0.5).then(|| (self.rate(), self.delay()));
        for (a, b) in links {
            let (rate, delay) = same.clone().unwrap_or_else(|| (self.rate(), self.delay()));
            text += &format!("[[link]]\nbetween = [\"{a}\", \"{b}\"]\nrate = {rate}\ndelay = {delay}\n");
            if self.chance(0.1) {
                text += &format!("rate_back = {}\n", self.rate());
            }
        }
        let name = format!("graph-{}.toml", self.number);
        std::fs::write(self.folder.join(&name), text).ok()?;
        Some(name)
    }

    fn scheme(&mut self, place: &Place) -> Vec<Table> {
        let mut table = Table::new("scheme");
        let presets: Vec<&str> = presets::all().iter().map(|preset| preset.name).collect();
        let mixed = self.below(3);
        if mixed < 2 {
            let portfc = place.forwarding && self.chance(0.3);
            table.set("preset", text(if portfc { "portfc" } else { self.pick(&presets) }));
        }
        let sections = schema::sections();
        if mixed > 0 {
            // An axis or two beside a preset, most of them without one.
            let often = std::mem::replace(&mut self.often, if mixed == 1 { 0.2 } else { 0.7 });
            if let Some(section) = sections.iter().find(|section| section.path == "scheme") {
                self.keys(section, &mut table, &["preset", "routing", "window"]);
            }
            self.often = often;
            if self.chance(0.3) {
                let size = Bytes(self.spread(1, 1_000_000)).show();
                table.set("window", self.pick(&[text("none"), text("bdp"), size]));
            }
        }
        let preset = table.get("preset").and_then(|name| presets::named(name.trim_matches('"')));
        let mut all = vec![table];
        for section in sections {
            let Some((path, name)) = section.with.filter(|_| section.path.starts_with("scheme.")) else { continue };
            let key = path.strip_prefix("scheme.").unwrap_or_default();
            let own = all[0].get(key).map(|value| value.trim_matches('"'));
            let of_preset = preset.and_then(|preset| preset.settings.iter().find(|(own, _)| *own == path));
            let chosen = own.or(of_preset.map(|(_, value)| *value));
            if chosen == Some(name) || chosen.is_none() && path == "scheme.flow_control" && name == "pfc" {
                let mut table = Table::new(&section.path);
                self.keys(section, &mut table, &[]);
                if !table.keys.is_empty() {
                    all.push(table);
                }
            }
        }
        all
    }

    fn host(&mut self, place: &Place) -> String {
        text(&format!("h{}", self.below(place.hosts)))
    }

    /// Some hosts: one, a range, or a list.
    fn hosts(&mut self, place: &Place) -> String {
        let (a, b) = (self.below(place.hosts), self.below(place.hosts));
        match self.below(4) {
            0 => text("all"),
            1 => text(&format!("h{a}")),
            2 => text(&format!("h{}..h{}", a.min(b), a.max(b))),
            _ => format!("[\"h{a}\", \"h{b}\"]"),
        }
    }

    /// Written flows, of which some wait for others.
    fn flows(&mut self, place: &Place, bytes: u64, classes: u64, into: &mut Vec<Table>) {
        let count = self.between(1, 24);
        let one = self.chance(0.4).then(|| self.below(place.hosts));
        let waiting = if self.chance(0.5) { 0.0 } else { 0.6 };
        // Those that others can wait for: id, and its two ends.
        let mut ended: Vec<(String, [u64; 2])> = Vec::new();
        for number in 0..count {
            let before = if self.chance(waiting) && !ended.is_empty() { Some(self.pick(&ended)) } else { None };
            let src = match &before {
                Some((_, ends)) => ends[self.below(2) as usize],
                None => self.below(place.hosts),
            };
            let dst = one.unwrap_or_else(|| self.below(place.hosts));
            let dst = if dst == src { (src + 1 + self.below(place.hosts - 1)) % place.hosts } else { dst };
            let most = (bytes / count).max(1);
            let size = if self.chance(0.3) { most } else { self.spread(1, most) };
            let mut flow = Table::one_of("flow")
                .with("src", text(&format!("h{src}")))
                .with("dst", text(&format!("h{dst}")))
                .with("size", Bytes(size).show());
            if self.chance(0.6) {
                flow.set("start", self.time().show());
            }
            if classes > 1 {
                flow.set("class", self.below(classes));
            }
            if self.chance(0.1) {
                flow.set("count", self.between(1, 4));
            }
            if self.chance(0.2) {
                flow.set("name", text("others"));
            }
            match before {
                Some((id, _)) => {
                    let more = ended.iter().find(|(other, ends)| *other != id && ends.contains(&src));
                    match more.filter(|_| number % 2 == 0) {
                        Some((other, _)) => flow.set("after", format!("[\"{id}\", \"{other}\"]")),
                        None => flow.set("after", text(&id)),
                    }
                    if self.chance(0.5) {
                        flow.set("gap", self.time().show());
                    }
                }
                None if self.chance(0.1) => {
                    let until = self.time().0 + self.time().0 + 1;
                    flow.set("until", Time(until).show());
                }
                None => {}
            }
            if flow.get("until").is_none() && waiting > 0.0 {
                let id = format!("f{}", into.len());
                flow.set("id", text(&id));
                ended.push((id, [src, dst]));
            }
            into.push(flow);
        }
    }

    /// Tables of traffic that is drawn. What the reader refuses of them is taken away again.
    fn drawn(&mut self, place: &Place, kind: &str, bytes: u64, classes: u64) -> Table {
        let mut table = Table::one_of(kind);
        match kind {
            "load" => {
                // So many messages, and as long as these take at the load: the reader draws no more than that.
                let messages = self.spread(1, 200);
                let most = self.spread(1, (bytes / messages).max(1));
                let least = self.between(1, most);
                let (named, load) = (bytes > 1_000_000 && self.chance(0.2), 0.01 + self.stream.uniform() * 1.2);
                let sizes = [Bytes(most).show(), format!("\"uniform {least}B..{most}B\"")];
                table.set(
                    "sizes",
                    if named { text(self.pick(&["hadoop", "google", "rpc"])) } else { self.pick(&sizes) },
                );
                let rate = (place.graph.rates().map(|rate| rate.0).sum::<u64>() / 2) as f64;
                let lasts = messages as f64 * least as f64 * 8e12 / (load * rate);
                let duration = if named { Time::from_us(50) } else { Time((lasts as u64).clamp(1, 1_000_000_000_000)) };
                match self.below(3) {
                    0 => table.set("flows", messages.min(40)),
                    _ if named => table.set("flows", 10),
                    _ => table.set("duration", duration.show()),
                }
                if table.get("flows").is_none() || self.chance(0.5) {
                    table.set("load", format!("{load:.3}"));
                } else {
                    table.set("duration", duration.show());
                }
                if self.chance(0.4) {
                    table.set("pattern", text(self.pick(&["permutation", "all-to-all", "rack-local", "inter-rack"])));
                }
            }
            "incast" => {
                let (degree, count) = (self.between(1, place.hosts + 2), self.between(1, 3));
                table.set("degree", degree);
                let most = (bytes / degree / count).max(1);
                let each = if self.chance(0.5) { most } else { self.spread(1, most) };
                match self.chance(0.5) {
                    true => table.set("size_each", Bytes(each).show()),
                    false => table.set("size", Bytes((each * degree).max(degree)).show()),
                }
                if self.chance(0.6) {
                    table.set("every", Time::from_ns(self.spread(10, 50_000)).show());
                    table.set("count", count);
                }
                if self.chance(0.3) {
                    table.set("spread", Time::from_ns(self.spread(1, 20_000)).show());
                }
                if self.chance(0.2) {
                    table.set("flows_per_sender", 2);
                }
            }
            "long" => {
                table.set("to", self.host(place));
                table.set("flows", self.between(1, 4));
                table.set("leave", Time::from_ns(self.spread(100, 100_000)).show());
            }
            _ => {
                let kinds = ["ring-all-reduce", "halving-doubling-all-reduce", "all-to-all"];
                let (kind, ranks) = (self.pick(&kinds), place.hosts.min(8));
                let ranks =
                    if kind == kinds[1] { 1 << self.between(1, ranks.ilog2() as u64) } else { self.between(2, ranks) };
                let first = self.below(place.hosts - ranks + 1);
                table.set("kind", text(kind));
                table.set("hosts", text(&format!("h{first}..h{}", first + ranks - 1)));
                table.set("size", Bytes(self.spread(ranks, (bytes / ranks).max(ranks))).show());
                table.set("rounds", self.between(1, 3));
                if self.chance(0.5) {
                    table.set("gap", self.time().show());
                }
            }
        }
        if ["load", "incast"].contains(&kind) {
            for key in ["from", "to"] {
                if self.chance(0.2) {
                    table.set(key, self.hosts(place));
                }
            }
            if self.chance(0.2) {
                table.set("arrivals", text(self.pick(&["poisson", "lognormal", "fixed"])));
            }
        }
        if self.chance(0.4) {
            table.set("start", self.time().show());
        }
        if classes > 1 {
            table.set("class", self.below(classes));
        }
        table
    }

    /// What is wrong with the hardware: links and receivers.
    fn faults(&mut self, place: &Place, into: &mut Vec<Table>) {
        let name = |node: fabric::id::NodeId| place.graph[node].name.clone();
        let mut done = Vec::new();
        for _ in 0..self.between(1, 3) {
            let link = self.pick(&place.graph.links);
            let ends = [name(link.a), name(link.b)];
            if done.contains(&ends) {
                continue;
            }
            let mut table = Table::one_of("link").with("between", format!("[\"{}\", \"{}\"]", ends[0], ends[1]));
            done.push(ends);
            match self.below(7) {
                0 => table.set("rate", self.rate()),
                5 | 6 => {
                    // One direction is not like the other.
                    let (back, part) = (self.chance(0.7), self.chance(0.4));
                    if back || !part {
                        table.set("rate_back", self.rate());
                    }
                    if part {
                        let key = if self.chance(0.5) { "queues" } else { "queues_back" };
                        table.set(key, format!("{:.3}", 0.02 + self.stream.uniform() * 1.5));
                    }
                }
                1 => table.set("delay", self.delay()),
                2 => table.set("loss", format!("{:.4}", self.stream.uniform() * 0.1)),
                3 => table.set("corruption", format!("{:.4}", self.stream.uniform() * 0.1)),
                _ => {
                    let from = self.spread(100, 60_000);
                    let until = from + self.spread(1, 60_000);
                    let second = until + self.spread(1, 60_000);
                    let outage = format!("[\"{from}ns\", \"{until}ns\"]");
                    table.set(
                        "down",
                        match self.below(4) {
                            0 => format!("[{outage}, [\"{second}ns\", \"{}ns\"]]", second + 5_000),
                            1 => format!("[{outage}, [\"{second}ns\"]]"),
                            _ => format!("[{outage}]"),
                        },
                    );
                }
            }
            into.push(table);
        }
    }

    fn slow(&mut self, place: &Place) -> Table {
        let mut slow = Table::one_of("slow").with("host", self.host(place)).with("rate", self.rate());
        if self.chance(0.5) {
            slow.set("from", self.time().show());
        }
        if self.chance(0.5) {
            slow.set("until", Time::from_ns(100_000 + self.below(100_000)).show());
        }
        if self.chance(0.5) {
            slow.set("buffer", Bytes(self.spread(1_000, 2_000_000)).show());
        }
        if self.chance(0.2) {
            slow.set("xoff", Bytes(self.spread(1, 1_000_000)).show());
        }
        slow
    }

    fn measure(&mut self, place: &Place) -> Table {
        let mut table = Table::new("measure");
        let link = self.pick(&place.graph.links);
        let ends = [link.a, link.b].map(|end| place.graph[end].name.clone());
        let patterns =
            [text("hosts"), text("nics"), text(&format!("{}->*", ends[0])), text(&format!("*->{}", ends[1]))];
        for key in ["ports", "capture"] {
            if self.chance(0.5) {
                table.set(key, self.pick(&patterns));
            }
        }
        for key in ["sample", "series"] {
            if self.chance(0.5) {
                table.set(key, Time(self.spread(500_000, 100_000_000)).show());
            }
        }
        if self.chance(0.3) {
            table.set("capture_packets", self.spread(1, 1_000));
        }
        table
    }

    fn scenario(&mut self) -> Option<Text> {
        let (topology, place) = (0..20).find_map(|_| self.topology())?;
        let mut root = Table::new("");
        if self.chance(0.5) {
            root.set("seed", self.below(1_000));
        }
        if self.chance(0.3) {
            let stop = if self.chance(0.1) { self.spread(1, 1_000_000) } else { self.spread(1_000_000, 2_000_000_000) };
            root.set("stop", Time(stop).show());
        }
        let mut tables = vec![root, topology];
        let sections = schema::sections();
        // Some scenarios have hardly any memory, tiny thresholds and a crowd: what pauses is put to the test.
        let squeezed = self.chance(0.2);
        let mut payload = 1_000;
        for path in ["switch", "nic"] {
            let Some(section) = sections.iter().find(|section| section.path == path) else { continue };
            let mut table = Table::new(path);
            self.keys(section, &mut table, &["unlimited", "queues"]);
            if self.chance(0.15) {
                match path {
                    "switch" => table.set("queues", self.spread(1, 64)),
                    _ => table.set("queues", text(self.pick(&["flow", "destination"]))),
                }
            }
            if path == "switch" && self.chance(0.05) {
                table.set("unlimited", true);
            }
            if squeezed && path == "switch" {
                table
                    .keys
                    .retain(|(key, _)| !["buffer", "headroom", "egress_alpha", "unlimited"].contains(&key.as_str()));
                table.set("buffer", text("1B"));
                table.set("alpha", self.pick(&["0", "0.000001", "0.001", "0.125", "1"]));
            } else if squeezed {
                table.set("payload", Bytes(self.spread(1, 9_000)).show());
            }
            if path == "switch" && table.get("buffer").is_none() && self.chance(0.7) {
                // The least that is accepted, or a little more.
                table.set("buffer", text("1B"));
            }
            let own = table.get("payload").and_then(|value| value.trim_matches('"').parse::<Bytes>().ok());
            payload = own.map_or(payload, |bytes| bytes.0);
            tables.push(table);
        }
        tables.extend(self.scheme(&place));
        let classes = if self.chance(0.3) { self.between(2, 8) } else { 1 };
        if classes > 1 {
            tables.push(Table::new("traffic").with("classes", classes));
        }
        if self.chance(0.25) {
            self.faults(&place, &mut tables);
        }
        if self.chance(0.1) {
            tables.push(self.slow(&place));
        }
        if self.chance(0.2) {
            tables.push(self.measure(&place));
        }
        // Enough that queues build up, and bounded.
        let packets = match self.chance(0.5) {
            true => self.between(PACKETS / 8, PACKETS / 2),
            false if squeezed => PACKETS / 4,
            false => self.spread(1, PACKETS / 2),
        };
        let bytes = packets * payload;
        let kinds = self.between(1, 2);
        for _ in 0..kinds {
            let kind = self.pick(&["flow", "flow", "load", "incast", "incast", "long", "collective", "collective"]);
            match kind {
                _ if squeezed => tables.push(self.drawn(&place, "incast", bytes / kinds, classes)),
                "flow" => self.flows(&place, bytes / kinds, classes, &mut tables),
                kind => tables.push(self.drawn(&place, kind, bytes / kinds, classes)),
            }
        }
        tables.retain(|table| table.many || !table.keys.is_empty() || table.path.is_empty());
        Some(Text(tables))
    }
}

/// The same traffic with every flow written down; nothing where that cannot be said, or would be long.
pub fn spelled_out(text: &Text, folder: &Path) -> Option<Text> {
    let resolved = read(&text.to_string(), folder).ok()?;
    let setup = &resolved.setup;
    let drawn = |table: &Table| ["load", "incast", "long", "collective"].contains(&table.path.as_str());
    let until = setup.flows.iter().any(|flow| flow.until != Time::MAX);
    if !text.0.iter().any(drawn) || until || setup.flows.len() > 400 {
        return None;
    }
    let mut plain = text.clone();
    plain.0.retain(|table| !(drawn(table) || table.many && table.path == "flow"));
    for (number, flow) in setup.flows.iter().enumerate() {
        let host = |node: fabric::id::NodeId| format!("{:?}", setup.graph[node].name);
        let mut table = Table::one_of("flow")
            .with("src", host(flow.src))
            .with("dst", host(flow.dst))
            .with("size", Bytes(flow.size).show());
        // Flows start as NICs see it.
        let start = flow.start.saturating_sub(resolved.setup.nic.bus.send);
        if start > Time::ZERO {
            table.set("start", start.show());
        }
        if flow.class.0 > 0 {
            table.set("class", flow.class.0);
        }
        let before: Vec<_> = setup.after.iter().filter(|after| after.flow.index() == number).collect();
        if let Some(after) = before.first() {
            let ids: Vec<String> = before.iter().map(|after| format!("\"f{}\"", after.first.0)).collect();
            table.set("after", format!("[{}]", ids.join(", ")));
            table.set("gap", after.gap.show());
        }
        if setup.after.iter().any(|after| after.first.index() == number) {
            table.set("id", format!("\"f{number}\""));
        }
        plain.0.push(table);
    }
    Some(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// A folder for graph files, and what was drawn into it.
    fn some(count: u64) -> (tempfile::TempDir, Vec<Text>) {
        schemes::install();
        let folder = tempfile::tempdir().unwrap();
        let drawn = (0..count).filter_map(|number| draw(7, number, folder.path()).ok()).collect();
        (folder, drawn)
    }

    #[test]
    fn most_of_what_is_drawn_is_accepted_and_nothing_that_exists_is_left_out() {
        let (folder, drawn) = some(1200);
        assert!(drawn.len() > 1000, "{} accepted", drawn.len());
        let mut seen = BTreeSet::new();
        for text in &drawn {
            let resolved = read(&text.to_string(), folder.path()).unwrap();
            assert!(resolved.setup.graph.hosts().count() <= HOSTS);
            let choices = &resolved.choices;
            seen.extend([choices.flow_control.name(), choices.congestion_control.name(), choices.edge_control.name()]);
            seen.extend([choices.transport.name(), choices.load_balancing.name(), choices.queueing.name()]);
            let words = text.0.iter().flat_map(|table| &table.keys).map(|(_, value)| value.trim_matches('"'));
            let known = |word: &&str| presets::named(word).is_some() || KINDS.contains(word);
            seen.extend(words.filter(known).filter_map(|word| {
                presets::named(word).map(|preset| preset.name).or(KINDS.into_iter().find(|kind| *kind == word))
            }));
        }
        let registry = fabric::Registry::get().definitions();
        let mechanisms = registry.iter().filter(|(axis, _)| *axis != "marking");
        let mechanisms = mechanisms.flat_map(|(_, variants)| variants.iter().map(|variant| variant.name()));
        let wanted = mechanisms.chain(presets::all().iter().map(|preset| preset.name)).chain(KINDS);
        let missing: Vec<&str> = wanted.filter(|name| !seen.contains(name)).collect();
        assert_eq!(missing, Vec::<&str>::new());
    }

    /// Kinds of topologies.
    const KINDS: [&str; 9] =
        ["star", "dumbbell", "leaf-spine", "fat-tree", "k-ary-n-tree", "two-sites", "chain", "bcube", "file"];

    #[test]
    fn the_same_seed_draws_the_same() {
        let ((_one, first), (_other, second)) = (some(40), some(40));
        assert_eq!(first, second);
    }

    #[test]
    fn traffic_that_is_spelled_out_is_the_same_traffic() {
        let (folder, drawn) = some(100);
        let mut compared = 0;
        for text in &drawn {
            let Some(plain) = spelled_out(text, folder.path()) else { continue };
            let [one, other] = [text, &plain].map(|text| read(&text.to_string(), folder.path()));
            let (Ok(one), Ok(other)) = (one, other) else { continue };
            let flows = |resolved: &Resolved| -> Vec<_> {
                let all = resolved.setup.flows.iter();
                all.map(|flow| (flow.src, flow.dst, flow.size, flow.start, flow.class)).collect()
            };
            assert_eq!(flows(&one), flows(&other), "{text}");
            compared += 1;
        }
        assert!(compared > 20, "{compared} compared");
    }
}
