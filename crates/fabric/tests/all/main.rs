//! What the fabric promises, in one program: a test binary for each file would link everything once more.

mod forwarding;
mod hooks;
mod order;
mod passing;
mod physics;
mod program;
mod record;
mod retry;

use fabric::axes::registry::Axis;
use fabric::axes::{Chosen, CongestionControlDef, Definition, FlowControl};
use fabric::{Network, Outcome, Setup};

fn first<T: ?Sized + Definition>(axis: &Axis<T>, name: &str) -> Box<T> {
    axis.named(name).expect("a variant of that name")
}

/// Runs a setup under a flow control and a congestion control with go-back-N and ECMP, with a discipline of that name.
fn run_chosen<F: FlowControl>(setup: Setup, scheme: F, control: &dyn CongestionControlDef, queueing: &str) -> Outcome {
    let registry = schemes::registry();
    let chosen = Chosen {
        flow_control: &*first(&registry.flow_control, "none"),
        congestion_control: control,
        edge_control: &*first(&registry.edge_control, "none"),
        transport: &*first(&registry.transport, "go-back-n"),
        load_balancing: &*first(&registry.load_balancing, "ecmp"),
        queueing: &*first(&registry.queueing, queueing),
        marking: &*first(&registry.marking, "red"),
        window: false,
    };
    Network::new(setup, scheme, &chosen).run(|_, _| true)
}

/// The same at line rate.
fn run_queued<F: FlowControl>(setup: Setup, scheme: F, queueing: &str) -> Outcome {
    run_chosen(setup, scheme, &*first(&schemes::registry().congestion_control, "none"), queueing)
}

/// The same with one packet from each queue in turn.
fn run<F: FlowControl>(setup: Setup, scheme: F) -> Outcome {
    run_queued(setup, scheme, "round-robin")
}
