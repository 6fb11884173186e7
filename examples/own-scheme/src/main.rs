//! The whole laboratory, with a flow control and a congestion control of our own.

mod delay_aimd;
mod egress_stop;

use std::process::ExitCode;
use tailwater::{Preset, Registry};

/// What comes with the program, and what is here.
fn registry() -> Registry {
    let mut registry = tailwater::registry();
    registry.flow_control.add(|| Box::new(egress_stop::Params::default()));
    registry.congestion_control.add(|| Box::new(delay_aimd::Params::default()));
    registry.presets.push(Preset {
        name: "own",
        about: "Congested egress ports stop what feeds them, and senders keep the round-trip time short.",
        settings: &[
            ("scheme.flow_control", "egress-stop"),
            ("scheme.congestion_control", "delay-aimd"),
            ("scheme.window", "none"),
        ],
    });
    registry.identities.push(tailwater::identity!());
    registry
}

fn main() -> ExitCode {
    tailwater::main_with(registry())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_scenario_can_name_the_preset() {
        super::registry().install();
        let run = |scheme: &str| {
            let text = format!(
                "flow = [{{ src = \"h1\", dst = \"h0\", size = \"1MB\" }}, {{ src = \"h2\", dst = \"h0\", size = \"1MB\" }}]\n\
                 topology = {{ kind = \"star\", hosts = 3 }}\n{scheme}"
            );
            tailwater::run_scenario(&text)
        };
        let finished = run("scheme.preset = \"own\"").unwrap();
        assert_eq!((finished.summary.finished, finished.summary.ending), (2, "complete"));
        assert_eq!(finished.summary.identity.flow_control, "egress-stop");
        assert_eq!(finished.summary.dropped.packets, 0);
        let wrong = run("scheme.preset = \"own\"\nscheme.delay-aimd.decrease = 2.0");
        assert!(wrong.err().is_some_and(|problem| problem.to_string().contains("decrease")));
    }
}
