//! Transports: how a message is cut into packets, acknowledged, and repaired where something got lost. One file each.

use fabric::Setup;
use fabric::axes::TransportDef;
use fabric::axes::registry::Axis;

pub mod go_back_n;
pub mod irn;
pub mod ndp;
pub mod uet;

/// Every transport, the usual one first.
pub(crate) fn list(axis: &mut Axis<dyn TransportDef>) {
    axis.add(|| Box::new(go_back_n::GoBackN::default()))
        .add(|| Box::new(irn::Params::default()))
        .add(|| Box::new(ndp::Params::default()))
        .add(|| Box::new(uet::Params::default()));
}

/// The bandwidth-delay product of the fastest link of a host and the longest base round trip.
pub(crate) fn bandwidth_delay(setup: &Setup) -> u64 {
    setup.graph.hosts_rate().unwrap_or_default().bytes_over(setup.longest_rtt())
}
