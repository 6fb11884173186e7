//! Marking: what switches write on packets. One file each.

use fabric::axes::MarkingDef;
use fabric::axes::registry::Axis;

pub mod red;
pub mod red_port;

/// Every marking, the usual one first.
pub(crate) fn list(axis: &mut Axis<dyn MarkingDef>) {
    axis.add(|| Box::new(red::Params::default())).add(|| Box::new(red_port::Params::default()));
}

#[cfg(test)]
mod tests {
    use fabric::axes::MarkingDef;
    use fabric::axes::flow_control::NoFlowControl;
    use fabric::bench::Builder;
    use fabric::id::PortId;
    use fabric::setup::Ecn;

    /// Packets of 1062 bytes, of two classes that take turns, leave a port that marks surely above 3000 bytes and never at 2000 or
    /// less, nor between: class and mark of each in order.
    pub(super) fn marks(marking: &dyn MarkingDef, packets: [usize; 2]) -> Vec<(u8, bool)> {
        let ecn = Ecn { min: 2_000, max: 3_000, probability: 0.0, by_port: false };
        let builder = Builder::switch(3, 0).classes(2).marking(marking);
        let builder = builder.setup(|setup| setup.ports.iter_mut().for_each(|port| port.ecn = Some(ecn)));
        let mut bench = builder.build(NoFlowControl);
        bench.close(PortId(2));
        for (class, count) in (0..).zip(packets) {
            let flow = bench.flow(class as u32, 2, 0);
            (0..count).for_each(|_| bench.arrive_as(PortId(class as u16), flow, |packet| packet.class = class));
        }
        std::iter::from_fn(|| bench.transmit(PortId(2))).map(|sent| (sent.packet.class, sent.marked())).collect()
    }
}
