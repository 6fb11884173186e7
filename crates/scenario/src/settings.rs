//! The settings of switches and NICs: their keys, units, defaults and limits.

use crate::declared::{Key, Section};
use engine::{Bytes, Kind, Misfit, Ordered, Rate, Raw, Stream, Time, Value, ValueError, Word};
use fabric::setup::Lines;
use std::sync::LazyLock;

/// The most memory of a switch, and of anything in it.
pub(super) const MAX_MEMORY: Bytes = Bytes(1_000_000_000_000);
/// The largest multiple of the free memory: with it and [`MAX_MEMORY`] a threshold fits its integers.
const MAX_ALPHA: f64 = 128.0;
/// The longest of all the waiting times.
const MAX_WAIT: Time = Time::from_ms(1_000_000);
/// The longest that a packet takes through a switch or a host.
const MAX_PASSAGE: Time = Time::from_ms(1000);
/// The longest that a frame takes to act.
const MAX_REACTION: Time = Time::from_ms(1);
/// The largest cell of a switch's memory.
const MAX_CELL: Bytes = Bytes(10_000);
/// The longest way between a host and its NIC, and the longest that NICs take over a notification.
const MAX_LATENCY: Time = Time::from_ms(100);
/// The slowest link.
pub(super) const MIN_RATE: Rate = Rate::from_mbps(1);
/// The fastest link: what is computed from it fits its integers.
pub(super) const MAX_RATE: Rate = Rate::from_gbps(100_000);

/// What a scenario must be like for some keys to have an effect; [`crate::notes`] knows how to tell.
pub(crate) mod under {
    /// Switches have so much memory and no more.
    pub const MEMORY: &str = "limited memory";
    /// Thresholds divide it.
    pub const THRESHOLDS: &str = "thresholds that divide the memory";
    /// They follow what is free.
    pub const FOLLOWING: &str = "a threshold that follows what is free";
    /// A full ingress stops its neighbour.
    pub const PAUSES: &str = "flow control that pauses";
    /// The scenario says how many queues there are.
    pub const QUEUES: &str = "flow control that has no queues of its own";
    /// Switches mark packets.
    pub const MARKS: &str = "switches that mark";
    /// Marks reach senders as notifications.
    pub const NOTIFIED: &str = "congestion control by notifications, such as dcqcn";
    /// Hosts forward.
    pub const FORWARDING: &str = "hosts that forward";
    /// Flows have a window.
    pub const WINDOW: &str = "a window";
    /// Ports or flows are followed.
    pub const SERIES: &str = "ports or flows that are followed";
    /// Ports are captured.
    pub const CAPTURE: &str = "ports that are captured";
}

engine::choice! {
    /// How ports share the memory of a switch.
    pub enum Sharing {
        /// Up to thresholds that follow what is free.
        Dynamic = "dynamic",
        /// Each has a part of its own.
        Static = "static",
    }
}

engine::parameters! {
    /// Settings of every switch: the table `[switch]`.
    pub struct SwitchSettings {
        /// Packet memory of each switch.
        buffer: Bytes = Bytes(12_000_000), in Bytes(1)..=MAX_MEMORY, under under::MEMORY,
        /// Memory without end: nothing is paused or dropped for want of room.
        unlimited: bool = false,
        /// How ports share the memory beyond headroom and reserve. Static: every ingress port and class has the same part;
        /// without flow control that pauses, every egress queue.
        sharing: Sharing = Sharing::Dynamic, under under::THRESHOLDS, under under::MEMORY,
        /// Memory that every ingress port has to itself, per class.
        reserve: Bytes = Bytes(4096), in Bytes(0)..=MAX_MEMORY, under under::MEMORY,
        /// Dynamic threshold: the most that an ingress port and class may take of the shared memory, as a multiple of
        /// what is free. Only with flow control that pauses.
        alpha: f64 = 0.125, in 0.0..=MAX_ALPHA, if sharing == Sharing::Dynamic, under under::FOLLOWING, under under::THRESHOLDS,
            under under::PAUSES, under under::MEMORY,
        /// Absolute threshold: the most that an ingress port and class may take of the shared memory, however much is free. Auto: it
        /// follows what is free by `alpha`.
        threshold: Option<Bytes> = None, in Bytes(0)..=MAX_MEMORY, if sharing == Sharing::Dynamic, under under::THRESHOLDS,
            under under::PAUSES, under under::MEMORY,
        /// Memory of every ingress port and class for what is in flight when it pauses its neighbour. Auto: just enough to
        /// lose nothing.
        headroom: Option<Bytes> = None, in Bytes(0)..=MAX_MEMORY, under under::THRESHOLDS, under under::PAUSES, under under::MEMORY,
        /// Memory that all ports and classes of a switch share for what does not fit in their own headroom.
        global_headroom: Bytes = Bytes(0), in Bytes(0)..=Bytes(u32::MAX as u64), under under::PAUSES, under under::MEMORY,
        /// A paused neighbour may go on when this far below the threshold.
        resume_gap: Bytes = Bytes(3072), in Bytes(0)..=MAX_MEMORY, under under::PAUSES, under under::MEMORY,
        /// Memory is given out in cells of so many bytes: a packet takes whole ones. Thresholds are whole cells, rounded down; headroom, reserve and
        /// resume_gap too, rounded up. Queues and their marks count bytes.
        cell: Bytes = Bytes(1), in Bytes(1)..=MAX_CELL, under under::MEMORY,
        /// The most that an egress queue may hold: a reserve, and this multiple of the free shared memory. Auto: 1 without
        /// flow control, no limit with it.
        egress_alpha: Option<f64> = None, in 0.0..=MAX_ALPHA, under under::MEMORY,
        /// From a packet's arrival to its being queued.
        pipeline: Time = Time::ZERO, in Time::ZERO..=MAX_PASSAGE,
        /// From the arrival of a pause, or another frame between neighbours, at a switch or a NIC to its taking effect. Headroom counts it.
        /// Signals to senders act at once.
        reaction: Time = Time::ZERO, in Time::ZERO..=MAX_REACTION, under under::PAUSES,
        // Eight classes of these are as many as a port can number.
        /// Queues of every egress port and class; flows are spread over them by hash.
        queues: u32 = 1, in 1..=8192, under under::QUEUES,
        /// How an egress port chooses among its queues.
        scheduler: String = "drr".into(),
        /// What switches write on packets.
        marking: String = "red".into(),
        /// Bytes of a queue's turn with "drr". Auto: the largest packet.
        quantum: Option<Bytes> = None, in Bytes(1)..=Bytes(1_000_000_000), if scheduler == String::from("drr"),
        /// Mark packets that leave a long queue. Auto: if the congestion control reacts to marks. With DASR, ports to hosts
        /// never mark.
        ecn: Option<bool> = None,
        /// No packet is marked while its queue is no longer than this.
        ecn_min: Bytes = Bytes(100_000), in Bytes(0)..=MAX_MEMORY, under under::MARKS,
        /// Every packet is marked while its queue is longer than this.
        ecn_max: Bytes = Bytes(400_000), in Bytes(0)..=MAX_MEMORY, under under::MARKS,
        /// Probability of a mark just below ecn_max; it grows linearly from ecn_min.
        ecn_probability: f64 = 0.2, in 0.0..=1.0, under under::MARKS,
        /// The two lengths are for links as fast as the hosts' and grow in proportion on faster ones.
        ecn_scale: bool = true, under under::MARKS,
    }
}

engine::choice! {
    /// Where ACKs travel.
    pub enum Lane {
        /// In a queue of their own that goes first and is never paused.
        Control = "control",
        /// Among the data of their flow's class.
        Data = "data",
    }
}

engine::choice! {
    /// Whose packets a forwarding host sends.
    pub enum Order {
        /// Its own and those of others in turns.
        Turns = "turns",
        /// Those of others before its own.
        First = "first",
    }
}

engine::parameters! {
    /// Settings of every host's NIC: the table `[nic]`.
    pub struct NicSettings {
        /// Bytes of message in a full packet.
        payload: Bytes = Bytes(1000), in Bytes(1)..=Bytes(9000),
        /// Bytes of headers on a data packet. The default is RoCEv2: 14 Ethernet, 20 IPv4, 8 UDP, 12 BTH, 4 ICRC, 4 FCS;
        /// preamble and gap are not counted.
        header: Bytes = Bytes(62), in Bytes(1)..=Bytes(1000),
        /// Bytes of an ACK: the same headers and 4 of AETH.
        ack_size: Bytes = Bytes(66), in Bytes(1)..=Bytes(1000),
        /// A receiver acknowledges every so many packets, and the end of a message.
        ack_every: u32 = 1, in 1..=1_000_000,
        /// Where ACKs travel.
        ack_lane: Lane = Lane::Control,
        /// A sender starts over from the last acknowledged byte when this long nothing was acknowledged. Auto: 1ms, or twice the
        /// longest round trip if that is more, if packets can be lost, or overtake each other where receivers take them in order only; otherwise never.
        timeout: Option<Time> = None, in Time::from_us(1)..=MAX_WAIT,
        /// A receiver that misses something says so at most this often for the same gap, except when it sees the sender start
        /// over in vain.
        nack_interval: Time = Time::from_us(500), in Time::ZERO..=MAX_WAIT,
        /// Space packets by the flow's rate. Without, only the window slows a flow.
        pacing: bool = true,
        /// A flow's sender is notified of marks (by a CNP) at most this often.
        cnp_interval: Time = Time::ZERO, in Time::ZERO..=MAX_LATENCY, under under::NOTIFIED,
        /// What NICs take over a notification, at both ends together: a mark acts so much later.
        cnp_delay: Time = Time::ZERO, in Time::ZERO..=MAX_LATENCY, under under::NOTIFIED,
        /// From a message's being handed over to its first packet's being ready: software, doorbell, and reading memory over PCIe.
        send_latency: Time = Time::ZERO, in Time::ZERO..=MAX_LATENCY,
        /// From the last byte of a message, or its last ACK, to the host's knowing of it: writing memory over PCIe, completion, software. Packets
        /// are acknowledged before.
        receive_latency: Time = Time::ZERO, in Time::ZERO..=MAX_LATENCY,
        /// Where hosts forward: from a packet's arrival to its being queued.
        forward_delay: Time = Time::ZERO, in Time::ZERO..=MAX_PASSAGE, under under::FORWARDING,
        /// Where hosts forward: the most that a port sends of forwarded data. Auto: what its link carries.
        forward_rate: Option<Rate> = None, in MIN_RATE..=MAX_RATE, under under::FORWARDING,
        /// Where hosts forward: packet memory of each host for it. Auto: as much as a switch has.
        forward_buffer: Option<Bytes> = None, in Bytes(1)..=MAX_MEMORY, under under::FORWARDING, under under::MEMORY,
        /// Where hosts forward: what they forward and their own packets take turns, or what they forward goes first.
        forward_order: Order = Order::Turns, under under::FORWARDING,
        /// Which messages of a host wait for one another: none (a queue for every message), or those to the same host and
        /// of the same class (a queue for every destination).
        queues: Lines = Lines::Flow,
        /// Queue pairs that messages between two hosts take in turn, in order of start: each has a source port, and so a path, of its own for good.
        /// Auto: every message has one of its own.
        queue_pairs: Option<u32> = None, in 1..=32_768,
    }
}

impl NicSettings {
    /// What lies between a host and its NIC.
    pub(super) fn bus(&self) -> fabric::setup::Bus {
        fabric::setup::Bus { send: self.send_latency, receive: self.receive_latency }
    }
    /// What forwarding costs a host, and in which order it sends.
    pub(super) fn forward(&self) -> fabric::setup::Forward {
        let first = self.forward_order == Order::First;
        fabric::setup::Forward { delay: self.forward_delay, rate: self.forward_rate, first }
    }
}

engine::parameters! {
    /// What to record: the table `[measure]`.
    pub struct MeasureSettings {
        /// How often the occupancy of the switches is sampled while flows are active. Auto: 10us.
        sample: Option<Time> = None, in Time::from_ns(1)..=MAX_WAIT,
        /// How often the ports and flows named by `ports` and `flows` are sampled. Auto: 1us.
        series: Option<Time> = None, in Time::from_ns(1)..=MAX_WAIT, under under::SERIES,
        /// Packets that are kept of each port that `capture` names.
        capture_packets: u32 = 10_000, in 1..=10_000_000, under under::CAPTURE,
        /// Whether to find out why flows are slow: where the time of each goes, at its sender and at each hop of the packet that completes it; and every
        /// stop, with who ordered it and what filled that node. `tailwater explain` tells of it.
        why: bool = false,
    }
}

/// `[switch]`.
pub(crate) static SWITCH: LazyLock<Section> = LazyLock::new(|| {
    let mut section = Section::of("switch", "Settings of every switch.", &SwitchSettings::default());
    // What there is to choose from is known when the program starts.
    for key in section.keys.iter_mut().filter(|key| ["scheduler", "marking"].contains(&key.name)) {
        key.kind = Kind::Choice(crate::schema::words(key.name));
    }
    section.with_tables(vec!["buffers"])
});

/// `[switch.buffers]`.
pub(crate) static BUFFERS: LazyLock<Section> = LazyLock::new(|| Section {
    others: Some(Bytes::limited((Bytes(1)..=MAX_MEMORY).into())),
    ..Section::new(
        "switch.buffers",
        "Packet memory by the name of a switch, in which * stands for any text; of two that match the later one counts.",
        Vec::new(),
    )
});

/// `[nic]`.
pub(crate) static NIC: LazyLock<Section> =
    LazyLock::new(|| Section::of("nic", "Settings of every host's NIC.", &NicSettings::default()));

/// A text, or an array of texts.
pub(super) fn texts() -> Kind {
    let name = "array of texts";
    let many = Kind::Array { name, said: "an array of texts", of: Box::new(Kind::Text), length: (0..).into() };
    let (name, said) = ("text or an array of texts", "text in quotes, or an array of texts");
    Kind::Either { name, said, of: vec![Kind::Text, many] }
}

/// `[measure]`.
pub(crate) static MEASURE: LazyLock<Section> = LazyLock::new(|| {
    let mut section = Section::of("measure", "What to record.", &MeasureSettings::default());
    section.keys.extend([
        Key::new("ports", texts(), "Ports whose queue and rate are recorded over time."),
        Key::new("flows", texts(), "Groups of flows whose received bytes are recorded over time."),
        Key::new("capture", texts(), "Ports whose packets are kept in a file for analysers."),
    ]);
    section
});

/// How much a flow may have unacknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowSize {
    /// Any amount.
    None,
    /// The bandwidth-delay product of the longest base round trip at the sender's line rate.
    Bdp,
    /// That many bytes.
    Fixed(Bytes),
}

impl Value for WindowSize {
    fn kind() -> Kind {
        let word = |word, about: &str| Word { word, about: about.into() };
        let words = vec![
            word("none", "Any amount."),
            word("bdp", "The bandwidth-delay product of the longest base round trip at the sender's line rate."),
        ];
        let said = "\"none\", \"bdp\" or a size in quotes, such as \"100KB\"";
        Kind::Either { name: "`\"none\"`, `\"bdp\"` or size", said, of: vec![Kind::Choice(words), Bytes::kind()] }
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Text(text) if text == "none" => Ok(WindowSize::None),
            Raw::Text(text) if text == "bdp" => Ok(WindowSize::Bdp),
            Raw::Text(text) if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Err(ValueError::Expected { expected: Self::kind().to_string(), found: Some(format!("{text:?}")) })
            }
            _ => Bytes::read(raw).map(WindowSize::Fixed),
        }
    }
    fn raw(&self) -> Raw {
        match self {
            WindowSize::None => Raw::Text("none".into()),
            WindowSize::Bdp => Raw::Text("bdp".into()),
            WindowSize::Fixed(bytes) => bytes.raw(),
        }
    }
}

/// What switches add to the seeds of their hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Salt {
    /// Drawn from the seed of the run.
    Seed,
    /// The same in every run.
    Fixed(u32),
}

impl Salt {
    /// The number, in a run with this seed.
    pub fn number(self, seed: u64) -> u32 {
        // A stream that belongs to no node.
        const OWNER: u64 = u64::MAX;
        match self {
            Salt::Seed => Stream::new(seed, OWNER).bits() as u32,
            Salt::Fixed(number) => number,
        }
    }
}

impl Value for Salt {
    fn kind() -> Kind {
        let words =
            vec![Word { word: "seed", about: "Drawn from the seed, so that every seed draws new hashes.".into() }];
        let said = "\"seed\" or a whole number up to 4294967295";
        Kind::Either { name: "`\"seed\"` or whole number", said, of: vec![Kind::Choice(words), u32::kind()] }
    }
    fn read(raw: &Raw) -> Result<Self, ValueError> {
        match raw {
            Raw::Text(text) if text == "seed" => Ok(Salt::Seed),
            Raw::Text(text) if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Err(ValueError::Expected { expected: Self::kind().to_string(), found: Some(format!("{text:?}")) })
            }
            _ => u32::read(raw).map(Salt::Fixed),
        }
    }
    fn raw(&self) -> Raw {
        match self {
            Salt::Seed => Raw::Text("seed".into()),
            Salt::Fixed(number) => number.raw(),
        }
    }
}

impl SwitchSettings {
    /// Whether the values go together. Each is within its limits.
    pub(crate) fn check(&self) -> Result<(), Misfit> {
        if self.ecn_max >= self.ecn_min {
            return Ok(());
        }
        let message = format!("ecn_max is {}, below ecn_min, which is {}", self.ecn_max, self.ecn_min);
        let help = format!(
            "write {} or more for ecn_max, or {} or less for ecn_min",
            self.ecn_min.show(),
            self.ecn_max.show()
        );
        Err(Misfit { parameter: "ecn_max", message, help })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Parameters;

    #[test]
    fn the_defaults_are_within_their_limits() {
        let tables: [&dyn Parameters; 3] =
            [&SwitchSettings::default(), &NicSettings::default(), &MeasureSettings::default()];
        for parameter in tables.iter().flat_map(|table| table.list()) {
            assert_eq!(parameter.kind.check(&parameter.raw), Ok(()), "{parameter:?}");
        }
        assert_eq!(SwitchSettings::default().check(), Ok(()));
    }

    #[test]
    fn a_value_out_of_range_is_named_with_the_range() {
        let refused = |mut settings: Box<dyn Parameters>, key: &str, raw: Raw| {
            settings.set(key, &raw).expect("a parameter").expect_err("out of range").to_string()
        };
        let (switch, nic, measure) = (SwitchSettings::default(), NicSettings::default(), MeasureSettings::default());
        let text = |text: &str| Raw::Text(text.into());
        assert_eq!(refused(Box::new(switch.clone()), "alpha", Raw::Integer(-1)), "-1 is out of range: write 0 to 128");
        assert!(refused(Box::new(nic), "payload", text("9001B")).contains("\"1B\" to \"9KB\""));
        assert!(refused(Box::new(measure), "sample", text("0ps")).contains("\"1ns\" to \"1000s\", or \"auto\""));
        let switch = SwitchSettings { ecn_max: Bytes(1), ..switch };
        let misfit = switch.check().unwrap_err();
        assert_eq!(misfit.message, "ecn_max is 1B, below ecn_min, which is 100KB");
        assert_eq!(misfit.help, "write \"100KB\" or more for ecn_max, or \"1B\" or less for ecn_min");
    }

    #[test]
    fn every_setting_has_its_sentence() {
        let tables: [&dyn Parameters; 3] =
            [&SwitchSettings::default(), &NicSettings::default(), &MeasureSettings::default()];
        for parameter in tables.iter().flat_map(|table| table.list()) {
            assert!(parameter.about.ends_with('.'), "{parameter:?}");
        }
    }

    #[test]
    fn a_window_is_a_word_or_a_size() {
        let read = |text: &str| WindowSize::read(&Raw::Text(text.into()));
        assert_eq!(read("none"), Ok(WindowSize::None));
        assert_eq!(read("bdp"), Ok(WindowSize::Bdp));
        assert_eq!(read("64KB"), Ok(WindowSize::Fixed(Bytes(64_000))));
        assert!(read("64XB").unwrap_err().to_string().contains("unknown unit"));
        assert!(read("all").unwrap_err().to_string().contains("\"bdp\" or a size"));
        for window in [WindowSize::None, WindowSize::Bdp, WindowSize::Fixed(Bytes(7))] {
            assert_eq!(read(window.show().trim_matches('"')), Ok(window));
        }
    }
}
