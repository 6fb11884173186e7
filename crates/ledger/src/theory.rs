//! Closed forms that papers derive, to compare simulations with.

/// SFC's appendix C: the buffer that a congested switch needs before its senders have heard of it.
pub mod sfc {
    use engine::{Rate, Time};

    /// The simplified topology of the appendix: senders, one congested switch, one receiver.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Path {
        /// R, the congested link.
        pub rate: Rate,
        /// T_A, from the senders to the congested switch.
        pub to_switch: Time,
        /// T_B, from the congested switch to the receiver.
        pub to_receiver: Time,
        /// T_ToR, from a sender to its own ToR.
        pub to_tor: Time,
        /// Bytes of a full packet.
        pub mtu: u64,
    }

    /// The worked example of appendix C.1: 100 Gb/s, a round trip of 10 us, T_B of 1 us, 4000 B packets.
    pub const EXAMPLE: Path = Path {
        rate: Rate::from_gbps(100),
        to_switch: Time::from_us(4),
        to_receiver: Time::from_us(1),
        to_tor: Time::from_us(1),
        mtu: 4000,
    };

    impl Path {
        /// T_S, the time a full packet takes on the congested link.
        pub fn packet_time(&self) -> Time {
            self.rate.time_for(self.mtu)
        }
        /// RTT = 2T_A + 2T_B + 2T_S.
        pub fn rtt(&self) -> Time {
            Time(2 * (self.to_switch.0 + self.to_receiver.0 + self.packet_time().0))
        }
        /// T_F = 2T_A + T_S: from a packet that meets congestion to its sender hearing of it.
        pub fn feedback(&self) -> Time {
            Time(2 * self.to_switch.0 + self.packet_time().0)
        }
        /// k for a queue that keeps the link busy while senders wait: T_F·R in whole packets (footnote 6).
        pub fn target_packets(&self) -> u64 {
            self.rate.bytes_in(self.feedback()) / self.mtu
        }
        /// B_ack (1): what a second sender puts in the buffer if notice of a queue of `k` packets comes back with ACKs.
        pub fn buffer_with_acks(&self, k: u64) -> u64 {
            self.rate.bytes_in(self.notice_by_acks(k))
        }
        /// B_bts (2): the same if the switch itself sends the notice.
        pub fn buffer_with_bts(&self, k: u64) -> u64 {
            self.rate.bytes_in(self.notice_by_bts(k))
        }
        /// When a second sender hears of a queue of `k` packets by ACKs: 2T_A + 2kT_S + 2T_B.
        pub fn notice_by_acks(&self, k: u64) -> Time {
            Time(2 * (self.to_switch.0 + k * self.packet_time().0 + self.to_receiver.0))
        }
        /// When it hears of it by BTS: 2T_A + kT_S.
        pub fn notice_by_bts(&self, k: u64) -> Time {
            Time(2 * self.to_switch.0 + k * self.packet_time().0)
        }
        /// B_incast (3): what `senders` that start at once put in the buffer with BTS, N·R·T_F.
        pub fn buffer_of_incast(&self, senders: u64) -> u64 {
            self.rate.bytes_in(Time(self.feedback().0 * senders))
        }
        /// The least they put there without: N·R·RTT.
        pub fn buffer_of_incast_with_acks(&self, senders: u64) -> u64 {
            self.rate.bytes_in(Time(self.rtt().0 * senders))
        }
        /// T_cache (7): when the senders' ToR knows of congestion that the first sender met, T_F − T_ToR.
        pub fn cached_at(&self) -> Time {
            self.feedback().saturating_sub(self.to_tor)
        }
        /// A later sender under the same ToR that starts before this finds nothing in the cache: 2(T_A − T_ToR).
        pub fn cache_miss_before(&self) -> Time {
            Time(2 * self.to_switch.saturating_sub(self.to_tor).0)
        }
        /// B_cache hit (8): what a sender puts in the buffer that its own ToR notifies to wait, R(2T_ToR + T_S).
        pub fn buffer_with_cache(&self) -> u64 {
            self.rate.bytes_in(Time(2 * self.to_tor.0 + self.packet_time().0))
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn the_worked_example_saves_129_kb_or_38_7_percent() {
            assert_eq!(EXAMPLE.packet_time(), Time::from_ns(320));
            let k = EXAMPLE.target_packets();
            assert_eq!(k, 26);
            let (acks, bts) = (EXAMPLE.buffer_with_acks(k), EXAMPLE.buffer_with_bts(k));
            assert_eq!((acks, bts, acks - bts), (333_000, 204_000, 129_000));
            assert_eq!(EXAMPLE.notice_by_bts(k), Time::from_ns(16_320));
            let saved = (acks - bts) as f64 / acks as f64;
            assert!((saved - 0.387).abs() < 0.0005, "{saved}");
            assert_eq!(EXAMPLE.notice_by_acks(k) - EXAMPLE.notice_by_bts(k), Time::from_ns(10_320));
        }

        #[test]
        fn the_nearer_the_notice_the_smaller_the_buffer() {
            assert_eq!(EXAMPLE.feedback(), Time::from_ns(8_320));
            assert_eq!(EXAMPLE.buffer_of_incast(16), 16 * 104_000);
            let ratio = EXAMPLE.buffer_of_incast_with_acks(16) as f64 / EXAMPLE.buffer_of_incast(16) as f64;
            assert!((ratio - EXAMPLE.rtt().us_f64() / EXAMPLE.feedback().us_f64()).abs() < 1e-9);
            assert_eq!(EXAMPLE.cached_at(), Time::from_ns(7_320));
            assert_eq!(EXAMPLE.cache_miss_before(), Time::from_us(6));
            assert_eq!(EXAMPLE.buffer_with_cache(), 29_000);
            assert!(EXAMPLE.buffer_with_cache() < EXAMPLE.buffer_with_bts(1));
        }
    }
}
