//! ns3-datacenter, PowerTCP's simulator (Addanki et al., NSDI 2022). Its keys are the HPCC authors'; it is told by its topologies, and
//! chooses PowerTCP by an option.

use super::Column::{Destination, Port, Priority, Size, Source, Start};
use super::{Fork, Ports, Rates, Results};

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
    size_bits: 63,
    ports: Ports::PerPair,
    results: Results::Addresses,
    differs: Some(
        "switches are those of the HPCC authors' simulator, and completion times are written as there and not said as they come",
    ),
};
