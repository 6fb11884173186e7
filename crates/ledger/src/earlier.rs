//! What was said of rows before they were put on their papers' own terms, for the list of what changed.

/// A row with what it was before, one after the other, and why it is something else now.
pub(crate) type Earlier = (&'static str, &'static str, &'static str);

/// Rows whose verdict changed. *Quick* and *one seed* are what it was of; the others had three seeds or more at paper scale.
#[rustfmt::skip]
pub(crate) const EARLIER: &[Earlier] = &[
    ("bfc/fig9", "does not hold, 1 of 7", "what is said of flows between the sites is judged up to 100 KB"),
    ("bfc/fig10", "holds in part, 1 of 3; cannot tell, 2 of 5", "queues of ports to hosts; BufferOpt's growth is open, since BFC's queue grows as well"),
    ("bfc/fig12", "holds, 5 of 5", "PFC is never triggered: added"),
    ("bfc/overhead", "holds, 2 of 2", "follows from size and period of frames: open"),
    ("bfc/queued-flows", "cannot tell, 0 of 3; holds in part, 1 of 3", "judged at a utilisation of 75 %, headers included, as §3.2 has it"),
    ("blitz/convergence", "holds, 5 of 5 (quick); holds, 6 of 6", "TIMELY's 50 round trips have an upper bound"),
    ("blitz/dart-incast", "does not hold, 0 of 2", "paced messages in place of slots"),
    ("blitz/dart-latency", "cannot tell, 0 of 1; does not hold, 0 of 1", "cannot be had with the incast that is ours: open"),
    ("blitz/fig1b", "holds in part, 1 of 2", "paced messages in place of slots; the spread, which follows from pacing, is open"),
    ("blitz/localised", "holds, 5 of 5 (quick); cannot tell, 0 of 4 (one seed)", "three seeds; DCQCN with its parameters of 2015"),
    ("dvl/802.1qcz", "holds, 2 of 2", "no document claims anything of it: open"),
    ("dvl/ecn", "holds, 1 of 1", "what is claimed is of injection rates, whose order turns with the sampling: open"),
    ("dvl/net1", "holds in part, 1 of 4 (one seed)", "the network of 64 hosts; three of four, which no text claims, are open"),
    ("dvl/net1-1024", "holds in part, 1 of 4 (one seed)", "three of four, which no text claims, are open; ECN with parameters of 2015"),
    ("dvl/net2", "holds in part, 1 of 3 (one seed)", "two of three, which no text claims, are open; ECN with parameters of 2015"),
    ("dvl/resources", "cannot tell, 0 of 2", "the slides name no proposal and no measure: open"),
    ("dvl/static-queues", "holds, 3 of 3", "that a victim shares the queue is put in: open"),
    ("floodgate/incast", "cannot tell, 0 of 3", "the same values: none can hold, though some may partly"),
    ("portfc/deadlock", "holds, 4 of 4 (quick)", "asked of the runs that deadlock, over detection times; 20 seeds"),
    ("portfc/latency", "does not hold, 0 of 2 (quick); holds in part, 1 of 2", "judged against IRN; what is against our watchdog, or everywhere, is open"),
    ("portfc/load", "cannot tell, 0 of 2; does not hold, 0 of 2", "the slides do not say at every load: open"),
    ("portfc/prevention", "holds, 1 of 1", "fixed classes prevent nothing by construction: open"),
    ("portfc/throughput", "holds in part, 2 of 5 (one seed); holds in part, 1 of 4", "judged against IRN over all flows; what is against our watchdog, or of bytes in time, is open"),
    ("sfc/fig2", "holds, 8 of 8 (one seed)", "three seeds; window, marks, floor and packets as the paper has them"),
    ("sfc/fig5", "holds in part, 2 of 6", "the queue is judged against every sender's own delay; PFC's level is open"),
    ("sfc/fig15", "holds, 4 of 4 (one seed); holds in part, 2 of 5", "window and marks as the paper has them; what could hardly fail is open"),
    ("sfc/hpcc-no-trigger", "cannot tell, 0 of 2 (one seed)", "done three times, which shows that the answer is exact"),
    ("sfc/table2", "does not hold, 0 of 4 (one seed)", "judged for 3 and for 20 ms of arrivals; three seeds"),
];
