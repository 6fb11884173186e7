//! NDP (Handley et al., SIGCOMM 2017): trimming switches, and receivers that pull.
//!
//! The mechanism is part of the fabric (`fabric::network`): it is the switch's queue and the hosts' transport at once.
//! Here are its parameters.

use super::{Choice, bandwidth_delay};
use engine::{Bytes, Misfit, Time};
use fabric::Setup;
use fabric::setup::{AckLane, AckPolicy, NdpSetup};

engine::parameters! {
    /// Parameters of NDP.
    pub struct Params {
        /// Packets that a sender sends before it is pulled. Auto: one bandwidth-delay product of the fastest host link and
        /// the longest base round trip, and one more because a pull follows an ACK.
        window: Option<u32> = None,
        /// Full packets that a queue of a switch holds; what finds it full is trimmed.
        queue: u32 = 8,
        /// Bytes that the control queue of a switch's port holds: headers, ACKs, NACKs and pulls. Auto: one bandwidth-delay
        /// product.
        headers: Option<Bytes> = None,
        /// Size of a trimmed packet. Auto: 64B, or the NIC's headers if they are longer.
        header: Option<Bytes> = None,
        /// Size of a pull.
        pull: Bytes = Bytes(64),
        /// Control packets that a port sends before it lets a waiting data packet go.
        ratio: u32 = 10,
    }
}

/// The least room for control packets: a few of the largest.
const LEAST_HEADERS: Bytes = Bytes(2048);

impl Choice for Params {
    fn name(&self) -> &'static str {
        "ndp"
    }
    fn about(&self) -> &'static str {
        "NDP: senders start at line rate, switches trim what finds a short queue full to its header, and receivers pull packet by packet \
         at the pace of their link."
    }
    fn check(&self) -> Result<(), Misfit> {
        const MOST: u32 = 1 << 24;
        if let Some(window) = self.window
            && !(1..=MOST).contains(&window)
        {
            return Err(Misfit::new("window", window, format!("write 1 to {MOST}, or \"auto\"")));
        }
        for (name, value) in [("queue", self.queue), ("ratio", self.ratio)] {
            if !(1..=1_000_000).contains(&value) {
                return Err(Misfit::new(name, value, "write 1 to 1000000"));
            }
        }
        if let Some(headers) = self.headers
            && !(LEAST_HEADERS..=Bytes(1_000_000_000)).contains(&headers)
        {
            return Err(Misfit::new("headers", headers, format!("write \"{LEAST_HEADERS}\" to \"1GB\", or \"auto\"")));
        }
        for (name, size) in [("header", self.header), ("pull", Some(self.pull))] {
            if let Some(size) = size
                && !(1..=1000).contains(&size.0)
            {
                return Err(Misfit::new(name, size, "write a size from \"1B\" to \"1000B\""));
            }
        }
        Ok(())
    }
    fn alone(&self) -> bool {
        true
    }
    fn timeout(&self) -> Option<Time> {
        // The default of its authors' simulator, as the SFC paper has it (App. B.4).
        Some(Time::from_ms(50))
    }
    fn ignores(&self) -> &'static [&'static str] {
        &["switch.queues", "switch.egress_alpha", "nic.ack_every", "nic.ack_lane", "nic.nack_interval"]
    }
    fn apply(&self, setup: &mut Setup) {
        let product = bandwidth_delay(setup);
        let nic = &mut setup.nic;
        let full = nic.payload as u64 + nic.header as u64;
        nic.ndp = Some(NdpSetup {
            window: self.window.unwrap_or(product.div_ceil(full).saturating_add(1).min(1 << 24) as u32),
            queue: self.queue,
            headers: self.headers.map_or(product.max(LEAST_HEADERS.0), |bytes| bytes.0),
            header: self.header.map_or(nic.header.max(64), |bytes| bytes.0 as u16),
            pull: self.pull.0 as u16,
            ratio: self.ratio,
        });
        nic.acks = AckPolicy::Every(1);
        nic.ack_lane = AckLane::Control;
        nic.recovery.timeout = nic.recovery.timeout.or(self.timeout());
        setup.switch.queues = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::Rate;
    use fabric::setup::FlowSpec;
    use fabric::topology::{Graph, Kind};

    #[test]
    fn what_is_left_to_be_derived_is_a_bandwidth_delay_product() {
        let mut graph = Graph::default();
        let (a, b) = (graph.add(Kind::Host, 0, "a"), graph.add(Kind::Host, 0, "b"));
        let switch = graph.add(Kind::Switch, 1, "s");
        graph.connect(a, switch, Rate::from_gbps(100), Time::from_us(1));
        graph.connect(b, switch, Rate::from_gbps(50), Time::from_us(1));
        let flow = FlowSpec { base_rtt: Time::from_us(8), ..FlowSpec::plain(0, a, b, 1000, Time::ZERO) };
        let mut setup = Setup::plain(graph, vec![flow]);
        Params::default().apply(&mut setup);
        // 100 Gb/s for 8 us are 100 000 B, which is 94.2 packets of 1062 B.
        let expected = NdpSetup { window: 96, queue: 8, headers: 100_000, header: 64, pull: 64, ratio: 10 };
        assert_eq!(setup.nic.ndp, Some(expected));
        assert_eq!(setup.nic.recovery.timeout, Some(Time::from_ms(50)));
    }

    #[test]
    fn values_that_cannot_be_are_named() {
        assert_eq!(Params::default().check(), Ok(()));
        let wrong = [
            ("window", Params { window: Some(0), ..Params::default() }),
            ("queue", Params { queue: 0, ..Params::default() }),
            ("ratio", Params { ratio: 0, ..Params::default() }),
            ("headers", Params { headers: Some(Bytes(100)), ..Params::default() }),
            ("header", Params { header: Some(Bytes(0)), ..Params::default() }),
            ("pull", Params { pull: Bytes(1001), ..Params::default() }),
        ];
        for (name, params) in wrong {
            assert_eq!(params.check().unwrap_err().parameter, name);
        }
    }
}
