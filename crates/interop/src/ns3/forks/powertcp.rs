//! ns3-datacenter, PowerTCP's simulator (Addanki et al., NSDI 2022). Its keys are the HPCC authors'; it is told by its topologies, and
//! its three programs, for bursts, fairness and workloads, choose much by options.

pub mod printed;
pub mod workload;

use super::Column::{Destination, Port, Priority, Size, Source, Start};
use super::{Fork, Ports, Rates, Results};
use crate::ns3::Options;
use crate::ns3::config::{CcMode, Config};
use files::problem::Problem;

/// The simulator.
pub static FORK: Fork = Fork {
    name: "ns3-datacenter, PowerTCP's simulator",
    home: "inet-tub/ns3-datacenter",
    keys: &[],
    defaults: |_| {},
    check: |_| Vec::new(),
    counts: &["nodes", "switches", "ToRs", "links"],
    link_fields: 5,
    rates: Rates::WithUnit,
    flow: &[Source, Destination, Priority, Port, Size, Start],
    without_flows: Some(
        "its workload program draws flows: write --program=workload and --cdfFileName=FILE; the others read them: name the file with --flows FILE",
    ),
    size_bits: 63,
    ports: Ports::PerPair,
    any_order: false,
    link_header: 14,
    ack_size: 60,
    headroom: 3,
    shift: 3,
    results: Results::Addresses,
    differs: Some(
        "switches are those of the HPCC authors' simulator, PowerTCP is our own, and no run of that simulator was at hand to compare with",
    ),
};

/// Options of its programs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choices {
    /// `--wien`: whether CC_MODE 3 is PowerTCP. It is unless it is said not to be.
    pub wien: Option<bool>,
    /// `--delayWien`: whether CC_MODE 3 is θ-PowerTCP.
    pub delay_wien: bool,
    /// `--algorithm`: what goes before CC_MODE.
    pub algorithm: Option<u64>,
    /// `--windowCheck`: what goes before HAS_WIN and VAR_WIN.
    pub window_check: Option<bool>,
    /// Which program's results are printed.
    pub program: Option<Program>,
    /// What the workload program draws flows by.
    pub workload: Option<workload::Workload>,
}

/// One of its programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// `powertcp-evaluation-burst`: the ports of the first ToR to its hosts.
    Burst,
    /// `powertcp-evaluation-fairness`: what hosts send.
    Fairness,
    /// `powertcp-evaluation-workload`: completion times.
    Workload,
}

/// Takes over what the command line says.
pub fn take(config: &mut Config, options: &Options) -> Result<(), Problem> {
    let choices = &options.datacenter;
    if *config.fork != FORK {
        if *choices == Choices::default() {
            return Ok(());
        }
        let message = format!(
            "--wien, --delayWien, --algorithm, --windowCheck, --program and those of a workload are options of ns3-datacenter; this configuration is of {}",
            config.fork.name
        );
        return Err(Problem::new(config.name(), message).help("leave them out"));
    }
    // Its programs read LINK_DOWN and never act on it.
    config.link_down = None;
    if let Some(number) = choices.algorithm {
        let Some(mode) = CcMode::from_number(number) else {
            let message = format!("{number} is none of the CC_MODEs 0, 1, 3, 7, 8 and 10");
            return Err(Problem::new("--algorithm", message).help("write one of these"));
        };
        config.cc_mode = mode;
    }
    if let Some(windows) = choices.window_check {
        config.has_win = windows;
        // The workload program leaves VAR_WIN as it is.
        if choices.workload.is_none() {
            config.var_win = windows;
        }
    }
    if config.cc_mode == CcMode::Hpcc {
        if !config.has_win {
            let message = "CC_MODE 3, PowerTCP or HPCC, needs a window";
            return Err(Problem::new("--windowCheck", message).help("write --windowCheck=1, or another --algorithm"));
        }
        match (choices.delay_wien, choices.wien) {
            (true, _) => config.cc_mode = CcMode::ThetaPowerTcp,
            (false, Some(true) | None) => config.cc_mode = CcMode::PowerTcp,
            (false, Some(false)) => {}
        }
    }
    if let Some(workload) = &choices.workload {
        config.simulator_stop_time_s = workload.end_s;
    }
    config.check()
}
