//! The settings of switches and NICs: their keys, units, defaults and limits.

use engine::{Bytes, Rate, Raw, Time, Value};
use fabric::setup::{Lines, Scheduler};

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
        buffer: Bytes = Bytes(12_000_000),
        /// Memory without end: nothing is paused or dropped for want of room.
        unlimited: bool = false,
        /// How ports share the memory beyond headroom and reserve. Static: every ingress port and class has the same part;
        /// without flow control that pauses, every egress queue.
        sharing: Sharing = Sharing::Dynamic,
        /// Memory that every ingress port has to itself, per class.
        reserve: Bytes = Bytes(4096),
        /// Dynamic threshold: the most that an ingress port and class may take of the shared memory, as a multiple of
        /// what is free.
        alpha: f64 = 0.125,
        /// Memory of every ingress port and class for what is in flight when it pauses its neighbour. Auto: just enough to
        /// lose nothing.
        headroom: Option<Bytes> = None,
        /// Memory that all ports and classes of a switch share for what does not fit in their own headroom.
        global_headroom: Bytes = Bytes(0),
        /// A paused neighbour may go on when this far below the threshold.
        resume_gap: Bytes = Bytes(3072),
        /// The most that an egress queue may hold, as a multiple of the free shared memory. Auto: 1 without flow control, no
        /// limit with it.
        egress_alpha: Option<f64> = None,
        /// From a packet's arrival to its being queued.
        pipeline: Time = Time::ZERO,
        /// Queues of every egress port and class; flows are spread over them by hash.
        queues: u32 = 1,
        /// How an egress port chooses among its queues.
        scheduler: Scheduler = Scheduler::Deficit,
        /// Bytes of a queue's turn with "drr". Auto: the largest packet.
        quantum: Option<Bytes> = None,
        /// Mark packets that leave a long queue. Auto: if the congestion control reacts to marks.
        ecn: Option<bool> = None,
        /// No packet is marked while its queue is no longer than this.
        ecn_min: Bytes = Bytes(100_000),
        /// Every packet is marked while its queue is longer than this.
        ecn_max: Bytes = Bytes(400_000),
        /// Probability of a mark just below ecn_max; it grows linearly from ecn_min.
        ecn_probability: f64 = 0.2,
        /// The two lengths are for links as fast as the hosts' and grow in proportion on faster ones.
        ecn_scale: bool = true,
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

engine::parameters! {
    /// Settings of every host's NIC: the table `[nic]`.
    pub struct NicSettings {
        /// Bytes of message in a full packet.
        payload: Bytes = Bytes(1000),
        /// Bytes of headers on a data packet. The default is RoCEv2: 14 Ethernet, 20 IPv4, 8 UDP, 12 BTH, 4 ICRC, 4 FCS;
        /// preamble and gap are not counted.
        header: Bytes = Bytes(62),
        /// Bytes of an ACK: the same headers and 4 of AETH.
        ack_size: Bytes = Bytes(66),
        /// A receiver acknowledges every so many packets, and the end of a message.
        ack_every: u32 = 1,
        /// Where ACKs travel.
        ack_lane: Lane = Lane::Control,
        /// A sender starts over from the last acknowledged byte when this long nothing was acknowledged. Auto: 1ms if
        /// packets can be lost, otherwise never.
        timeout: Option<Time> = None,
        /// A receiver that misses something says so at most this often for the same gap.
        nack_interval: Time = Time::from_us(500),
        /// Space packets by the flow's rate. Without, only the window slows a flow.
        pacing: bool = true,
        /// Where hosts forward: from a packet's arrival to its being queued.
        forward_delay: Time = Time::ZERO,
        /// Where hosts forward: the most that a port sends of forwarded data. Auto: what its link carries.
        forward_rate: Option<Rate> = None,
        /// Where hosts forward: packet memory of each host for it. Auto: as much as a switch has.
        forward_buffer: Option<Bytes> = None,
        /// Which messages of a host wait for one another: none (a queue for every message), or those to the same host and
        /// of the same class (a queue for every destination).
        queues: Lines = Lines::Flow,
    }
}

engine::parameters! {
    /// What to record: the table `[measure]`.
    pub struct MeasureSettings {
        /// How often the occupancy of the switches is sampled while flows are active. Auto: 10us.
        sample: Option<Time> = None,
        /// How often the ports and flows named by `ports` and `flows` are sampled. Auto: 1us.
        series: Option<Time> = None,
        /// Packets that are kept of each port that `capture` names.
        capture_packets: u32 = 10_000,
    }
}

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
    fn kind() -> String {
        "\"none\", \"bdp\" or a size in quotes, such as \"100KB\"".into()
    }
    fn read(raw: &Raw) -> Result<Self, String> {
        match raw {
            Raw::Text(text) if text == "none" => Ok(WindowSize::None),
            Raw::Text(text) if text == "bdp" => Ok(WindowSize::Bdp),
            Raw::Text(text) if !text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c)) => {
                Err(format!("expected {}, found {text:?}", Self::kind()))
            }
            _ => Bytes::read(raw).map(WindowSize::Fixed),
        }
    }
    fn show(&self) -> String {
        match self {
            WindowSize::None => "\"none\"".into(),
            WindowSize::Bdp => "\"bdp\"".into(),
            WindowSize::Fixed(bytes) => bytes.show(),
        }
    }
}

/// A value outside of what the simulator can compute with: its key, what is wrong, and what to write.
pub(crate) type OutOfRange = (&'static str, String, String);

/// The most memory of a switch, and of anything in it.
pub(super) const MAX_MEMORY: Bytes = Bytes(1_000_000_000_000);
/// The largest multiple of the free memory: with it and [`MAX_MEMORY`] a threshold fits its integers.
const MAX_ALPHA: f64 = 128.0;
/// The longest of all the waiting times.
const MAX_WAIT: Time = Time::from_ms(1_000_000);

fn within<T: PartialOrd + Value>(key: &'static str, value: &T, least: T, most: T) -> Result<(), OutOfRange> {
    if *value >= least && *value <= most {
        return Ok(());
    }
    Err((key, format!("{key} is {}", value.show()), format!("write {} to {}", least.show(), most.show())))
}

impl SwitchSettings {
    /// Whether every value is one that can be computed with.
    pub(crate) fn check(&self) -> Result<(), OutOfRange> {
        let byte = Bytes(1);
        within("buffer", &self.buffer, byte, MAX_MEMORY)?;
        within("reserve", &self.reserve, Bytes(0), MAX_MEMORY)?;
        within("alpha", &self.alpha, 0.0, MAX_ALPHA)?;
        within("headroom", &self.headroom.unwrap_or_default(), Bytes(0), MAX_MEMORY)?;
        within("global_headroom", &self.global_headroom, Bytes(0), Bytes(u32::MAX as u64))?;
        within("resume_gap", &self.resume_gap, Bytes(0), MAX_MEMORY)?;
        within("egress_alpha", &self.egress_alpha.unwrap_or_default(), 0.0, MAX_ALPHA)?;
        within("pipeline", &self.pipeline, Time::ZERO, Time::from_ms(1000))?;
        // Eight classes of these are as many as a port can number.
        within("queues", &self.queues, 1, 8192)?;
        within("quantum", &self.quantum.unwrap_or(byte), byte, Bytes(1_000_000_000))?;
        within("ecn_min", &self.ecn_min, Bytes(0), MAX_MEMORY)?;
        within("ecn_max", &self.ecn_max, self.ecn_min, MAX_MEMORY)?;
        within("ecn_probability", &self.ecn_probability, 0.0, 1.0)
    }
}

impl NicSettings {
    /// Whether every value is one that can be computed with.
    pub(crate) fn check(&self) -> Result<(), OutOfRange> {
        let byte = Bytes(1);
        within("payload", &self.payload, byte, Bytes(9000))?;
        within("header", &self.header, byte, Bytes(1000))?;
        within("ack_size", &self.ack_size, byte, Bytes(1000))?;
        within("ack_every", &self.ack_every, 1, 1_000_000)?;
        within("timeout", &self.timeout.unwrap_or(Time(1)), Time(1), MAX_WAIT)?;
        within("nack_interval", &self.nack_interval, Time::ZERO, MAX_WAIT)?;
        within("forward_delay", &self.forward_delay, Time::ZERO, Time::from_ms(1000))?;
        let (slowest, fastest) = (Rate(1_000_000), Rate::from_gbps(100_000));
        within("forward_rate", &self.forward_rate.unwrap_or(fastest), slowest, fastest)?;
        within("forward_buffer", &self.forward_buffer.unwrap_or(byte), byte, MAX_MEMORY)
    }
}

impl MeasureSettings {
    /// Whether every value is one that can be computed with.
    pub(crate) fn check(&self) -> Result<(), OutOfRange> {
        let least = Time::from_ns(1);
        within("sample", &self.sample.unwrap_or(least), least, MAX_WAIT)?;
        within("series", &self.series.unwrap_or(least), least, MAX_WAIT)?;
        within("capture_packets", &self.capture_packets, 1, 10_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Parameters;

    #[test]
    fn the_defaults_are_within_their_limits() {
        assert_eq!(SwitchSettings::default().check(), Ok(()));
        assert_eq!(NicSettings::default().check(), Ok(()));
        assert_eq!(MeasureSettings::default().check(), Ok(()));
    }

    #[test]
    fn a_value_out_of_range_is_named_with_the_range() {
        let switch = SwitchSettings { alpha: -1.0, ..SwitchSettings::default() };
        assert_eq!(switch.check(), Err(("alpha", "alpha is -1".into(), "write 0 to 128".into())));
        let switch = SwitchSettings { ecn_max: Bytes(1), ..SwitchSettings::default() };
        assert_eq!(switch.check().unwrap_err().2, "write \"100KB\" to \"1000GB\"");
        let nic = NicSettings { payload: Bytes(9001), ..NicSettings::default() };
        assert_eq!(nic.check().unwrap_err().0, "payload");
        let measure = MeasureSettings { sample: Some(Time::ZERO), ..MeasureSettings::default() };
        assert_eq!(measure.check().unwrap_err().0, "sample");
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
        assert!(read("64XB").unwrap_err().contains("unknown unit"));
        assert!(read("all").unwrap_err().contains("\"bdp\" or a size"));
        for window in [WindowSize::None, WindowSize::Bdp, WindowSize::Fixed(Bytes(7))] {
            assert_eq!(read(window.show().trim_matches('"')), Ok(window));
        }
    }
}
