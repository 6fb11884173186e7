//! Schemes by name: well-known choices of flow control, congestion control and window.
//!
//! A preset is a list of keys and values that a scenario has unless it says otherwise. Adding one is one more entry in
//! [`PRESETS`].

use fabric::axes::registry::Preset;

/// Settings with the parameters of the DCQCN paper (Zhu et al., SIGCOMM 2015).
macro_rules! dcqcn_of_2015 {
    ($($setting:expr),+ $(,)?) => {
        &[
            $($setting,)+
            ("scheme.dcqcn.alpha_interval", "55us"),
            ("scheme.dcqcn.decrease_interval", "50us"),
            ("scheme.dcqcn.increase_timer", "55us"),
            ("scheme.dcqcn.recovery_stages", "5"),
            ("scheme.dcqcn.ai", "40Mbps"),
            ("scheme.dcqcn.hai", "40Mbps"),
            ("scheme.dcqcn.min_rate", "100Mbps"),
            ("scheme.dcqcn.clamp_target", "true"),
        ]
    };
}

/// Every preset.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "pfc",
        about: "PFC alone: senders go at line rate until they are paused.",
        settings: &[("scheme.flow_control", "pfc"), ("scheme.congestion_control", "none"), ("scheme.window", "none")],
    },
    Preset {
        name: "cbfc",
        about: "Credit-based flow control alone: senders go at line rate as far as the next node has granted room.",
        settings: &[("scheme.flow_control", "cbfc"), ("scheme.congestion_control", "none"), ("scheme.window", "none")],
    },
    Preset {
        name: "dcqcn+win+cbfc",
        about: "DCQCN over credit-based flow control, with a window of one bandwidth-delay product that shrinks with the rate.",
        settings: &[
            ("scheme.flow_control", "cbfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "lossy",
        about: "No control at all: senders go at line rate, and what does not fit is dropped and sent again.",
        settings: &[("scheme.flow_control", "none"), ("scheme.congestion_control", "none"), ("scheme.window", "none")],
    },
    Preset {
        name: "window",
        about: "PFC, and a fixed window of one bandwidth-delay product.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "fixed"),
        ],
    },
    Preset {
        name: "dcqcn",
        about: "DCQCN over PFC.",
        settings: &[("scheme.flow_control", "pfc"), ("scheme.congestion_control", "dcqcn"), ("scheme.window", "none")],
    },
    Preset {
        name: "dcqcn+win",
        about: "DCQCN over PFC, with a window of one bandwidth-delay product that shrinks with the rate.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "hpcc",
        about: "HPCC over PFC.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "dcqcn-no-pfc",
        about: "DCQCN without PFC: what does not fit is dropped and sent again.",
        settings: &[("scheme.flow_control", "none"), ("scheme.congestion_control", "dcqcn"), ("scheme.window", "none")],
    },
    Preset {
        name: "dcqcn-sigcomm15",
        about: "DCQCN over PFC, with the parameters of its paper of 2015.",
        settings: dcqcn_of_2015![
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "dcqcn-no-pfc-sigcomm15",
        about: "DCQCN without PFC, with the parameters of its paper of 2015.",
        settings: dcqcn_of_2015![
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "dcqcn+win-sigcomm15",
        about: "DCQCN over PFC, with the parameters of its paper of 2015 and a fixed window of one bandwidth-delay product.",
        settings: dcqcn_of_2015![
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "fixed"),
        ],
    },
    Preset {
        name: "dcqcn+win+sfq-sigcomm15",
        about: "DCQCN+Win of 2015, with flows spread over 32 queues of every port by hash.",
        settings: dcqcn_of_2015![
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "fixed"),
            ("switch.queues", "32"),
        ],
    },
    Preset {
        name: "dcqcn+win+sfq",
        about: "DCQCN+Win, with flows spread over 32 queues of every port by hash (stochastic fair queueing).",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("switch.queues", "32"),
        ],
    },
    Preset {
        name: "hpcc+sfq",
        about: "HPCC, with flows spread over 32 queues of every port by hash (stochastic fair queueing).",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("switch.queues", "32"),
        ],
    },
    Preset {
        name: "ideal-fq",
        about: "Ideal fair queueing as BFC has it: 1000 queues of every port, memory without end, a window of one BDP.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "fixed"),
            ("switch.queues", "1000"),
            ("switch.unlimited", "true"),
        ],
    },
    Preset {
        name: "sfq+inf",
        about: "SFQ+InfBuffer: 32 queues of every port, memory without end, a window of one bandwidth-delay product.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "fixed"),
            ("switch.queues", "32"),
            ("switch.unlimited", "true"),
        ],
    },
    Preset {
        name: "bfc",
        about: "Backpressure flow control; senders go at line rate until they are paused.",
        settings: &[("scheme.flow_control", "bfc"), ("scheme.congestion_control", "none"), ("scheme.window", "none")],
    },
    Preset {
        name: "bfc-vfid",
        about: "BFC with queues by hash, the paper's straw proposal.",
        settings: &[
            ("scheme.flow_control", "bfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.bfc.assignment", "hashed"),
        ],
    },
    Preset {
        name: "bfc-no-buffer-opt",
        about: "BFC that resumes all flows of a queue at once (BFC-BufferOpt).",
        settings: &[
            ("scheme.flow_control", "bfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.bfc.resume", "all"),
        ],
    },
    Preset {
        name: "bfc-no-high-priority",
        about: "BFC without the high-priority queue (BFC-HighPriorityQ).",
        settings: &[
            ("scheme.flow_control", "bfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.bfc.high_priority", "false"),
        ],
    },
    Preset {
        name: "bfc-nsdi22",
        about: "BFC as its authors' simulator of 2022 has it: pauses name queues, flows come back to theirs for 6 us.",
        settings: &[
            ("scheme.flow_control", "bfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.bfc.queues", "31"),
            ("scheme.bfc.pauses", "queues"),
            ("scheme.bfc.keep", "6us"),
            ("scheme.bfc.resume", "marked"),
            ("scheme.bfc.high_priority", "false"),
            ("switch.scheduler", "round-robin"),
        ],
    },
    Preset {
        name: "sfc",
        about: "Source flow control; senders go at line rate until a switch signals them to wait.",
        settings: &[("scheme.flow_control", "sfc"), ("scheme.congestion_control", "none"), ("scheme.window", "none")],
    },
    Preset {
        name: "bts-ingress",
        about: "SFC without the cache: only the congested switch signals senders to wait.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.sfc.cache", "false"),
        ],
    },
    Preset {
        name: "bts-egress",
        about: "SFC's signal built after queueing, once for every packet that leaves a congested queue.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.sfc.signal", "egress"),
            ("scheme.sfc.cache", "false"),
        ],
    },
    Preset {
        name: "dcqcn+win+sfc",
        about: "DCQCN+Win, with source flow control over PFC.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "dcqcn+win+sfc-p",
        about: "DCQCN+Win, with source flow control whose pauses stop a NIC's whole class (SFC-P), over PFC.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("scheme.sfc.deliver", "pfc"),
        ],
    },
    Preset {
        name: "hpcc+sfc",
        about: "HPCC, with source flow control over PFC.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "ndp",
        about: "NDP: packets are sprayed over all paths, trimmed where a queue is full, and pulled by their receivers.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.transport", "ndp"),
            ("scheme.load_balancing", "spray"),
        ],
    },
    Preset {
        name: "uec",
        about: "Ultra Ethernet: NSCC at senders and RCCC's credits at receivers, packets sprayed over many paths and trimmed where a queue is full.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "nscc"),
            ("scheme.edge_control", "rccc"),
            ("scheme.transport", "uet"),
            ("scheme.window", "none"),
            ("scheme.load_balancing", "mixed"),
        ],
    },
    Preset {
        name: "uec-nscc",
        about: "Ultra Ethernet with NSCC at senders alone.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "nscc"),
            ("scheme.transport", "uet"),
            ("scheme.window", "none"),
            ("scheme.load_balancing", "mixed"),
        ],
    },
    Preset {
        name: "uec-rccc",
        about: "Ultra Ethernet with RCCC's credits at receivers alone.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "none"),
            ("scheme.edge_control", "rccc"),
            ("scheme.transport", "uet"),
            ("scheme.window", "none"),
            ("scheme.load_balancing", "mixed"),
        ],
    },
    Preset {
        name: "irn",
        about: "IRN alone: selective repeat with at most one bandwidth-delay product in flight, in a fabric that drops what does not fit.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "none"),
            ("scheme.transport", "irn"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "hpcc+irn",
        about: "HPCC with selective repeat (IRN), in a fabric that drops what does not fit.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.transport", "irn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "hpcc+irn+onramp",
        about: "HPCC with selective repeat (IRN), and OnRamp on top, in a fabric that drops what does not fit.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.edge_control", "onramp"),
            ("scheme.transport", "irn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "hpcc+irn+sfc",
        about: "HPCC with selective repeat (IRN), and source flow control without PFC.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.transport", "irn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("scheme.sfc.pfc", "false"),
        ],
    },
    Preset {
        name: "dcqcn+win+irn",
        about: "DCQCN+Win with selective repeat (IRN), in a fabric that drops what does not fit.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.transport", "irn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "dcqcn+win+irn+onramp",
        about: "DCQCN+Win with selective repeat (IRN), and OnRamp on top, in a fabric that drops what does not fit.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.edge_control", "onramp"),
            ("scheme.transport", "irn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "dcqcn+win+irn+sfc",
        about: "DCQCN+Win with selective repeat (IRN), and source flow control without PFC.",
        settings: &[
            ("scheme.flow_control", "sfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.transport", "irn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("scheme.sfc.pfc", "false"),
        ],
    },
    Preset {
        name: "onramp",
        about: "OnRamp alone over PFC: senders go at line rate and pause flows whose packets take too long.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.edge_control", "onramp"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "hpcc+onramp",
        about: "HPCC with OnRamp on top, over PFC.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "hpcc"),
            ("scheme.edge_control", "onramp"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "dcqcn+win+onramp",
        about: "DCQCN+Win with OnRamp on top, over PFC.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.edge_control", "onramp"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "pfc-watchdog",
        about: "PFC with a watchdog: a queue that was paused for long is emptied, and its pauses are ignored for a while.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.pfc.watchdog", "true"),
        ],
    },
    Preset {
        name: "portfc",
        about: "PortFC for BCube(n, 1); senders go at line rate until a congested egress queue stops them.",
        settings: &[
            ("scheme.flow_control", "portfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "dvl",
        about: "Dynamic virtual lanes; senders go at line rate until they are paused.",
        settings: &[
            ("scheme.flow_control", "dvl"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.dvl.enhanced", "false"),
        ],
    },
    Preset {
        name: "edvl",
        about: "Enhanced dynamic virtual lanes: each switch deallocates its queues for itself.",
        settings: &[
            ("scheme.flow_control", "dvl"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.dvl.enhanced", "true"),
        ],
    },
    Preset {
        name: "802.1qcz",
        about: "Congestion isolation as in IEEE 802.1Qcz: DVL with few messages per flow and entries that live on.",
        settings: &[
            ("scheme.flow_control", "dvl"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.dvl.enhanced", "false"),
            ("scheme.dvl.messages", "3"),
            ("scheme.dvl.octets", "48B"),
            ("scheme.dvl.life", "1s"),
        ],
    },
    Preset {
        name: "floodgate",
        about: "Floodgate alone: switches send no more for a host than its window; senders go at line rate.",
        settings: &[
            ("scheme.flow_control", "floodgate"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "dcqcn+win+floodgate",
        about: "DCQCN+Win, with Floodgate over PFC.",
        settings: &[
            ("scheme.flow_control", "floodgate"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            // What waits in virtual output queues counts, as in the authors' simulator.
            ("switch.marking", "red-port"),
        ],
    },
    Preset {
        name: "dcqcn+win+floodgate-ideal",
        about: "DCQCN+Win, with Floodgate's ideal design: a credit for every packet, and hosts stopped for single destinations.",
        settings: &[
            ("scheme.flow_control", "floodgate"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            // What waits in virtual output queues counts, as in the authors' simulator.
            ("switch.marking", "red-port"),
            ("scheme.floodgate.interval", "0us"),
            ("scheme.floodgate.dst_pause", "true"),
        ],
    },
    Preset {
        name: "letflow",
        about: "PFC alone, with flowlets balanced by LetFlow.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "none"),
            ("scheme.window", "none"),
            ("scheme.load_balancing", "letflow"),
            // Go-back-N discards what arrives early.
            ("nic.timeout", "1ms"),
        ],
    },
    Preset {
        name: "dcqcn+win+letflow",
        about: "DCQCN+Win, with flowlets balanced by LetFlow.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dcqcn"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("scheme.load_balancing", "letflow"),
            ("nic.timeout", "1ms"),
        ],
    },
    Preset {
        name: "timely",
        about: "TIMELY over PFC.",
        settings: &[("scheme.flow_control", "pfc"), ("scheme.congestion_control", "timely"), ("scheme.window", "none")],
    },
    Preset {
        name: "timely+win",
        about: "TIMELY over PFC, with a window of one bandwidth-delay product that shrinks with the rate.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "timely"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "powertcp",
        about: "PowerTCP over PFC: telemetry of every switch sets the window.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "powertcp"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "theta-powertcp",
        about: "θ-PowerTCP over PFC: the round-trip time and its gradient set the window, without telemetry.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "powertcp"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("scheme.powertcp.feedback", "delay"),
        ],
    },
    Preset {
        name: "dctcp",
        about: "DCTCP over PFC: every packet is marked above one queue length.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "dctcp"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
            ("switch.ecn_min", "300KB"),
            ("switch.ecn_max", "300KB"),
            ("switch.ecn_probability", "1.0"),
        ],
    },
    Preset {
        name: "swift",
        about: "Swift over PFC.",
        settings: &[("scheme.flow_control", "pfc"), ("scheme.congestion_control", "swift"), ("scheme.window", "none")],
    },
    Preset {
        name: "swift+irn",
        about: "Swift with selective repeat (IRN), in a fabric that drops what does not fit.",
        settings: &[
            ("scheme.flow_control", "none"),
            ("scheme.congestion_control", "swift"),
            ("scheme.transport", "irn"),
            ("scheme.window", "none"),
        ],
    },
    Preset {
        name: "ib-cc",
        about: "InfiniBand's congestion control, with PFC in place of credits for about 100 KB per port.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "ib-cc"),
            ("scheme.window", "none"),
            ("switch.alpha", "0.01"),
            ("switch.ecn_min", "32KB"),
            ("switch.ecn_max", "32KB"),
            ("switch.ecn_probability", "1.0"),
        ],
    },
    Preset {
        name: "bolt",
        about: "Bolt over PFC: switches notify senders of congestion directly, and hand out bandwidth that is or will be free.",
        settings: &[
            ("scheme.flow_control", "pfc"),
            ("scheme.congestion_control", "bolt"),
            ("scheme.window", "bdp"),
            ("scheme.window_rule", "scaled"),
        ],
    },
    Preset {
        name: "dasr",
        about: "Receivers divide their link among those that send to them, over PFC; DCQCN for congestion in the network.",
        settings: &[("scheme.flow_control", "pfc"), ("scheme.congestion_control", "dasr"), ("scheme.window", "none")],
    },
    Preset {
        name: "iofd",
        about: "In-order flow deflection over PFC, with DCQCN.",
        settings: &[("scheme.flow_control", "iofd"), ("scheme.congestion_control", "dcqcn"), ("scheme.window", "none")],
    },
    Preset {
        name: "blitz",
        about: "Blitz: DASR at the edge, in-order flow deflection in the network, DCQCN for the remaining congestion.",
        settings: &[("scheme.flow_control", "iofd"), ("scheme.congestion_control", "dasr"), ("scheme.window", "none")],
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_has_its_own_name_and_a_sentence() {
        for (place, preset) in PRESETS.iter().enumerate() {
            assert!(preset.about.ends_with('.'), "{}", preset.name);
            assert_eq!(PRESETS.iter().position(|other| other.name == preset.name), Some(place));
        }
    }
}
