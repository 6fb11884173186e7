//! Priority flow control (IEEE 802.1Qbb): a full ingress stops its neighbour, class by class.
//!
//! A switch watches what each (ingress port, class) holds. At the dynamic threshold it sends a pause frame up the
//! link; well below, a resume frame. What is in flight meanwhile goes into headroom. A pause lasts until it is
//! taken back: refreshing it by a timer, as hardware does, changes nothing in a fabric that loses no frame.

use super::{Choice, Report, run_with};
use engine::{Bytes, Misfit};
use fabric::network::Core;
use fabric::packet::Packet;
use fabric::scheme::{CongestionControl, Counter, FlowControl};
use fabric::{Outcome, Setup};

engine::parameters! {
    /// Parameters of PFC. The threshold itself belongs to the switch's buffer.
    pub struct Params {
        /// Size of a pause or resume frame on the wire.
        frame: Bytes = Bytes(64),
    }
}

impl Choice for Params {
    fn name(&self) -> &'static str {
        "pfc"
    }
    fn about(&self) -> &'static str {
        "Priority flow control: a switch whose ingress is full pauses the neighbour, per port and class. Lossless."
    }
    fn needs_headroom(&self) -> bool {
        true
    }
    fn check(&self) -> Result<(), Misfit> {
        match self.frame.0 {
            1..=2048 => Ok(()),
            _ => Err(Misfit::new("frame", self.frame, "write a size from \"1B\" to \"2048B\"")),
        }
    }
    fn frame_size(&self) -> u64 {
        self.frame.0
    }
    fn run(
        &self,
        setup: Setup,
        promised: bool,
        control: Box<dyn CongestionControl>,
        report: &mut Report<'_>,
    ) -> Outcome {
        run_with(Pfc::new(self, promised), setup, control, report)
    }
}

/// The mechanism.
pub struct Pfc {
    frame: u16,
    lossless: bool,
    pauses_sent: u64,
    resumes_sent: u64,
}

impl Pfc {
    /// PFC that promises to lose nothing, or does not.
    pub fn new(params: &Params, lossless: bool) -> Pfc {
        Pfc { frame: params.frame.0 as u16, lossless, pauses_sent: 0, resumes_sent: 0 }
    }
}

impl FlowControl for Pfc {
    fn lossless(&self) -> bool {
        self.lossless
    }

    #[inline]
    fn enqueued(&mut self, core: &mut Core, in_port: u32, class: u8) {
        let (account, buffer) = core.account(in_port, class);
        if !account.paused && buffer.over(account) {
            account.paused = true;
            self.pauses_sent += 1;
            core.send_frame(in_port, self.frame, class as u32, 1);
        }
    }

    #[inline]
    fn dequeued(&mut self, core: &mut Core, in_port: u32, class: u8) {
        let (account, buffer) = core.account(in_port, class);
        if account.paused && buffer.under(account) {
            account.paused = false;
            self.resumes_sent += 1;
            core.send_frame(in_port, self.frame, class as u32, 0);
        }
    }

    fn frame(&mut self, core: &mut Core, port: u32, frame: &Packet) {
        core.pause_class(port, frame.flow as u8, frame.seq == 1);
    }

    fn link_lost(&mut self, core: &mut Core, port: u32) {
        (0..core.classes()).for_each(|class| core.account(port, class).0.paused = false);
    }

    fn counters(&self) -> Vec<Counter> {
        vec![("pause_frames", self.pauses_sent), ("resume_frames", self.resumes_sent)]
    }
}
