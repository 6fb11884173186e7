//! The schemes: one folder per axis, one file per variant, one list each.
//!
//! * [`flow_control`]: when does a node stop its neighbours, or a sender?
//! * [`congestion_control`]: how fast may a flow go?
//! * [`edge_control`]: what does a sender do on top of that?
//! * [`transport`]: how are messages cut into packets and repaired?
//! * [`load_balancing`]: which of several paths does a packet take?
//! * [`queueing`]: which queue sends next?
//! * [`marking`]: what do switches write on packets?
//!
//! Each file holds a mechanism whole: its parameters with the published defaults, its state, its counters, its tests.
//! Adding one is a new file and a line in the list of its folder. [`presets`] combine them.

pub mod congestion_control;
pub mod edge_control;
pub mod flow_control;
pub mod load_balancing;
pub mod marking;
pub mod presets;
pub mod queueing;
pub mod testing;
pub mod transport;

use fabric::Registry;

/// The digest of the code of this crate.
pub const CODE: &str = env!("TAILWATER_CODE");

/// Everything that is here.
pub fn registry() -> Registry {
    let mut registry = Registry::default();
    flow_control::list(&mut registry.flow_control);
    congestion_control::list(&mut registry.congestion_control);
    edge_control::list(&mut registry.edge_control);
    transport::list(&mut registry.transport);
    load_balancing::list(&mut registry.load_balancing);
    queueing::list(&mut registry.queueing);
    marking::list(&mut registry.marking);
    registry.presets.extend(presets::PRESETS);
    registry.identities.push(("schemes", CODE.into()));
    registry
}

/// Makes everything that is here known to the program, unless a registry is there already.
pub fn install() {
    registry().install();
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_guide_shows_letflow_as_it_is() {
        let (guide, file) =
            (include_str!("../../../docs/adding-a-scheme.md"), include_str!("load_balancing/letflow.rs"));
        let (code, tests) = file.split_at(file.find("#[cfg(test)]").unwrap());
        for part in [code, tests] {
            assert!(
                guide.contains(part.trim_end()),
                "docs/adding-a-scheme.md has another letflow.rs than this:\n{part}"
            );
        }
    }
}
