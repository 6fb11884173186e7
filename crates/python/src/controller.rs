//! A congestion controller written in Python: slow, and exact.
//!
//! The object that the user gives is a pattern. Every flow gets a deep copy of it when it starts, so that a flow's state is what
//! its methods put on `self`, flows cannot see each other, and the results depend on nothing else than the scenario.

use crate::watch::Watch;
use engine::{Parameter, Parameters, Rate, Raw, Time, ValueError};
use fabric::axes::congestion_control::{self as scheme, FlowStart, Needs};
use fabric::axes::{CongestionControl, CongestionControlDef, Definition};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit, intern};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What a controller learns of a flow when it starts.
#[pyclass(frozen, get_all, module = "tailwater")]
pub struct Flow {
    /// Bits per second of the sender's link.
    line: u64,
    /// Round-trip time of an idle network, in picoseconds.
    base_rtt: u64,
    /// The window in bytes; 0 for none.
    window: u64,
    /// Bytes of message.
    size: u64,
    /// Switches on the path.
    hops: u32,
    /// Bytes of message in a full packet.
    payload: u32,
}

/// What a switch on the path reported.
#[pyclass(frozen, get_all, module = "tailwater")]
pub struct Hop {
    /// When the packet left its queue, in picoseconds.
    time: u64,
    /// Bytes that the port had sent before it.
    sent: u64,
    /// Bytes left in the port's queues.
    queued: u64,
    /// Bits per second of the port.
    rate: u64,
}

/// What an ACK says. Times are in picoseconds.
#[pyclass(frozen, get_all, module = "tailwater")]
pub struct Ack {
    /// Now.
    now: u64,
    /// Everything before this byte has arrived.
    seq: u64,
    /// The next byte that the sender will send.
    next: u64,
    /// Whether the acknowledged packet was marked by a switch.
    marked: bool,
    /// When the acknowledged packet was sent.
    stamp: u64,
    /// How long that packet was in flight, if the controller has `delay = True`.
    delay: u64,
    /// What the switches on the path reported, if the controller has `telemetry = True`.
    telemetry: Vec<Py<Hop>>,
}

#[pymethods]
impl Ack {
    /// Picoseconds from the packet's sending to now.
    #[getter]
    fn rtt(&self) -> u64 {
        self.now.saturating_sub(self.stamp)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.telemetry.iter().try_for_each(|hop| visit.call(hop))
    }
}

/// What a flow may do. A controller changes it.
#[pyclass(module = "tailwater")]
pub struct Permit {
    rate: u64,
    /// Bytes that may be unacknowledged, for a controller that has `sets_window = True`; `None` for any number.
    #[pyo3(get, set)]
    window: Option<u64>,
    /// When to call `timer`, in picoseconds; `None` for never.
    #[pyo3(get, set)]
    timer: Option<u64>,
    /// Nothing is sent before this instant, in picoseconds.
    #[pyo3(get, set)]
    resume: u64,
    /// The pause after the last packet is stretched or shrunk to the new rate, rather than left as it was.
    #[pyo3(get, set)]
    repace: bool,
}

#[pymethods]
impl Permit {
    /// Bits per second.
    #[getter]
    fn rate(&self) -> u64 {
        self.rate
    }

    /// Takes what is not whole without its fraction.
    #[setter]
    fn set_rate(&mut self, rate: &Bound<'_, PyAny>) -> PyResult<()> {
        let wrong = || PyValueError::new_err("a rate is a number of bits per second, and at least 1");
        let whole = match rate.extract::<u64>() {
            Ok(whole) => whole,
            Err(_) => rate.extract::<f64>().map_err(|_| wrong())? as u64,
        };
        if whole == 0 {
            return Err(wrong());
        }
        self.rate = whole;
        Ok(())
    }
}

impl Permit {
    fn of(permit: &scheme::Permit) -> Permit {
        let timer = (permit.timer != Time::MAX).then_some(permit.timer.0);
        let window = (permit.window != u64::MAX).then_some(permit.window);
        Permit { rate: permit.rate.0, window, timer, resume: permit.resume.0, repace: permit.repace }
    }

    /// What the fabric makes of it: no flow is faster than its line, and no timer lies in the past.
    fn read(&self, line: u64, now: Time) -> PyResult<scheme::Permit> {
        if self.timer.is_some_and(|timer| timer <= now.0) {
            let now = now.0;
            return Err(PyValueError::new_err(format!(
                "a timer is to come: this one is not after now, which is {now}"
            )));
        }
        if self.timer.max(Some(self.resume)) > Some(FARTHEST) {
            return Err(PyValueError::new_err("a time is too far away: more than 1000 hours"));
        }
        Ok(scheme::Permit {
            rate: Rate(self.rate.min(line)),
            window: self.window.unwrap_or(u64::MAX),
            timer: self.timer.map_or(Time::MAX, Time),
            repace: self.repace,
            resume: Time(self.resume),
            own: 0,
        })
    }
}

/// The latest picosecond that a permit may speak of: 1000 hours.
const FARTHEST: u64 = 3_600_000_000_000_000_000;

/// The exception that ended a run, if one did.
#[derive(Clone, Default)]
pub struct Fault(Arc<Mutex<Option<PyErr>>>);

impl Fault {
    /// What it was. From then on there is none.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn is_some(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn put(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
    }
}

/// A controller of Python's among the congestion controls.
pub struct Controller {
    pattern: Arc<Py<PyAny>>,
    name: &'static str,
    needs: Needs,
    uses_marks: bool,
    needs_window: bool,
    header: (u16, u16),
    fault: Fault,
    watch: Arc<Watch>,
}

/// A name that is kept for good: there are as many as controllers have names.
fn kept(name: &str) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let name: &'static str = Box::leak(name.to_string().into_boxed_str());
    names.insert(name);
    name
}

impl Controller {
    /// Of an object with `start`, `ack` and, if it likes, `timer`. An exception in one of them stops `watch`.
    pub fn new(pattern: &Bound<'_, PyAny>, watch: &Arc<Watch>) -> PyResult<Controller> {
        for method in ["start", "ack"] {
            if !pattern.hasattr(method)? {
                let class = pattern.get_type().name()?;
                return Err(PyTypeError::new_err(format!(
                    "{class} is no congestion control: it has no method {method}"
                )));
            }
        }
        if pattern.is_instance_of::<pyo3::types::PyType>() {
            return Err(PyTypeError::new_err("give an object of the class, such as Aimd(), not the class"));
        }
        let flag = |name: &str, usual: bool| match pattern.getattr_opt(name)? {
            Some(value) => value.is_truthy(),
            None => Ok(usual),
        };
        Ok(Controller {
            name: kept(&pattern.get_type().name()?.to_string_lossy()),
            needs: Needs {
                telemetry: flag("telemetry", false)?,
                every_ack: flag("every_ack", true)?,
                delay: flag("delay", false)?,
                census: None,
                window: flag("sets_window", false)?,
                incidents: false,
                credits: None,
            },
            uses_marks: flag("uses_marks", true)?,
            needs_window: flag("needs_window", false)?,
            header: pattern.getattr_opt("header")?.map_or(Ok((0, 0)), |header| header.extract())?,
            pattern: Arc::new(pattern.clone().unbind()),
            fault: Fault::default(),
            watch: watch.clone(),
        })
    }

    /// Where its exception will be.
    pub fn fault(&self) -> Fault {
        self.fault.clone()
    }
}

impl Parameters for Controller {
    fn list(&self) -> Vec<Parameter> {
        Vec::new()
    }
    fn set(&mut self, _: &str, _: &Raw) -> Option<Result<(), ValueError>> {
        None
    }
}

impl Definition for Controller {
    fn name(&self) -> &'static str {
        self.name
    }
    fn about(&self) -> &'static str {
        "Written in Python."
    }
}

impl CongestionControlDef for Controller {
    fn build(&self) -> Box<dyn CongestionControl> {
        Box::new(Flows {
            pattern: self.pattern.clone(),
            needs: self.needs,
            flows: Vec::new(),
            fault: self.fault.clone(),
            watch: self.watch.clone(),
        })
    }
    fn uses_marks(&self) -> bool {
        self.uses_marks
    }
    fn needs_window(&self) -> bool {
        self.needs_window
    }
    fn header(&self) -> (u16, u16) {
        self.header
    }
}

/// The flows' copies of a controller, by slot, with the rates of their lines.
struct Flows {
    pattern: Arc<Py<PyAny>>,
    needs: Needs,
    flows: Vec<Option<(Py<PyAny>, u64)>>,
    fault: Fault,
    watch: Arc<Watch>,
}

impl Flows {
    /// Calls a flow's copy, which may change the permit. After an exception nothing is called any more.
    fn call(
        &mut self,
        slot: u32,
        now: Time,
        permit: &mut scheme::Permit,
        act: impl FnOnce(Python<'_>, &Bound<'_, PyAny>, &Bound<'_, Permit>) -> PyResult<()>,
    ) {
        if self.fault.is_some() {
            permit.timer = Time::MAX;
            return;
        }
        let Some(Some((flow, line))) = self.flows.get(slot as usize) else { return };
        let result = Python::attach(|py| {
            let asked = Bound::new(py, Permit::of(permit))?;
            act(py, flow.bind(py), &asked)?;
            asked.borrow().read(*line, now)
        });
        match result {
            Ok(allowed) => *permit = allowed,
            Err(error) => {
                permit.timer = Time::MAX;
                self.fault.put(error);
                self.watch.stop();
            }
        }
    }
}

impl CongestionControl for Flows {
    fn needs(&self) -> Needs {
        self.needs
    }

    fn start(&mut self, slot: u32, flow: FlowStart) -> scheme::Permit {
        let mut permit = scheme::Permit::at(flow.line);
        let copy = Python::attach(|py| {
            let deepcopy = py.import(intern!(py, "copy"))?.getattr(intern!(py, "deepcopy"))?;
            Ok(deepcopy.call1((self.pattern.bind(py),))?.unbind())
        });
        let place = slot as usize;
        if place >= self.flows.len() {
            self.flows.resize_with(place + 1, || None);
        }
        match copy {
            Ok(copy) => self.flows[place] = Some((copy, flow.line.0)),
            Err(error) => {
                self.fault.put(error);
                self.watch.stop();
            }
        }
        self.call(slot, Time::ZERO, &mut permit, |py, controller, permit| {
            let flow_start = Flow {
                line: flow.line.0,
                base_rtt: flow.base_rtt.0,
                window: flow.window,
                size: flow.size,
                hops: flow.hops,
                payload: flow.payload,
            };
            controller.call_method1(intern!(py, "start"), (Bound::new(py, flow_start)?, permit)).map(drop)
        });
        permit
    }

    fn ack(&mut self, slot: u32, ack: &scheme::Ack<'_>, permit: &mut scheme::Permit) {
        self.call(slot, ack.now, permit, |py, controller, permit| {
            let hop = |hop: &fabric::packet::Hop| {
                let rate = hop.mbps as u64 * 1_000_000;
                Py::new(py, Hop { time: hop.time.0, sent: hop.tx_bytes(), queued: hop.queued as u64, rate })
            };
            let ack = Ack {
                now: ack.now.0,
                seq: ack.seq,
                next: ack.next,
                marked: ack.marked,
                stamp: ack.stamp.0,
                delay: ack.delay.0,
                telemetry: ack.telemetry.iter().map(hop).collect::<PyResult<_>>()?,
            };
            controller.call_method1(intern!(py, "ack"), (Bound::new(py, ack)?, permit)).map(drop)
        });
    }

    fn timer(&mut self, slot: u32, now: Time, permit: &mut scheme::Permit) {
        permit.timer = Time::MAX;
        self.call(slot, now, permit, |py, controller, permit| {
            controller.call_method1(intern!(py, "timer"), (now.0, permit)).map(drop)
        });
    }
}
