//! IRN (Mittal et al., SIGCOMM 2018): selective repeat, a cap of one bandwidth-delay product, two timeouts.
//!
//! The mechanism is the fabric's (`network/irn.rs`); here are its parameters.

use super::{Choice, bandwidth_delay};
use engine::{Bytes, Misfit, Time};
use fabric::Setup;
use fabric::setup::IrnSetup;

engine::parameters! {
    /// Parameters of IRN.
    pub struct Params {
        /// The most of a message that may be on the way. Auto: the bandwidth-delay product of the longest base round trip and
        /// the fastest link of a host.
        cap: Option<Bytes> = None,
        /// How long a sender with few packets on the way waits for news before it sends again.
        rto_low: Time = Time::from_us(100),
        /// The same with more packets on the way. Auto: nic.timeout if that is written, otherwise 320us.
        rto_high: Option<Time> = None,
        /// Fewer packets than this are few.
        few: u32 = 3,
    }
}

/// Published for a fabric of 40 Gb/s links (§4.1).
const RTO_HIGH: Time = Time::from_us(320);

impl Choice for Params {
    fn name(&self) -> &'static str {
        "irn"
    }
    fn about(&self) -> &'static str {
        "Selective repeat (IRN): receivers take packets in any order and name each that came early; senders repeat only what is \
         missing, with at most one bandwidth-delay product on the way."
    }
    fn check(&self) -> Result<(), Misfit> {
        let longest = Time::from_ms(1_000_000);
        for (name, time) in [("rto_low", Some(self.rto_low)), ("rto_high", self.rto_high)] {
            if let Some(time) = time
                && (time < Time::from_us(1) || time > longest)
            {
                return Err(Misfit::new(name, time, "write a time from \"1us\" to \"1000s\""));
            }
        }
        match self.cap {
            Some(Bytes(0)) => Err(Misfit::new("cap", "zero", "write a size above zero, or \"auto\"")),
            _ => Ok(()),
        }
    }
    fn ignores(&self) -> &'static [&'static str] {
        &["nic.nack_interval"]
    }
    fn own_timeout(&self) -> bool {
        true
    }
    fn apply(&self, setup: &mut Setup) {
        let high = self.rto_high.or(setup.nic.recovery.timeout).unwrap_or(RTO_HIGH);
        let cap = self.cap.map_or_else(|| bandwidth_delay(setup), |cap| cap.0).max(1);
        setup.nic.irn = Some(IrnSetup { cap, low: self.rto_low.min(high), high, few: self.few });
    }
}

#[cfg(test)]
mod tests;
