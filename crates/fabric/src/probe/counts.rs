//! What a run counts as it goes.

/// What a run counts as it goes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    /// Events handled.
    pub events: u64,
    /// Packets that crossed a link.
    pub hops: u64,
    /// Data packets handed to a link by their sender, retransmissions included, and their bytes of message.
    pub injected: (u64, u64),
    /// Data packets that reached their receiver, duplicates included, and their bytes of message.
    pub delivered: (u64, u64),
    /// Data packets sent again, and their bytes of message.
    pub retransmitted: (u64, u64),
    /// Bytes of frames and signals that flow control made.
    pub control_bytes: u64,
    /// Packets of any kind created (data, ACKs, frames, signals).
    pub created: u64,
    /// Packets of any kind that ended at a node that used them.
    pub consumed: u64,
    /// Packets that found no room in a buffer.
    pub dropped_full: u64,
    /// Packets lost or damaged on a link.
    pub dropped_fault: u64,
    /// Packets lost with a link that went down, or without a path to their destination.
    pub dropped_down: u64,
    /// Packets that the scheme dropped from a queue.
    pub dropped_scheme: u64,
    /// Bytes on the wire of all packets dropped.
    pub dropped_bytes: u64,
    /// Data packets among those dropped, and their bytes of message.
    pub dropped_data: (u64, u64),
    /// Data packets that a switch cut down to their headers, and their bytes of message.
    pub trimmed: (u64, u64),
    /// Data packets that arrived ahead of one sent before them.
    pub out_of_order: u64,
    /// Data packets that arrived after one of their flow that was sent later.
    pub overtaken: u64,
    /// Packets marked by switches.
    pub marked: u64,
    /// Those among them that were marked before the link to a host.
    pub marked_receiver: u64,
    /// ACKs and NACKs sent.
    pub acks: u64,
    /// Pauses and resumes received by ports.
    pub pauses: u64,
    /// See `pauses`.
    pub resumes: u64,
    /// Times a sender started over because of a timeout.
    pub timeouts: u64,
}

impl Counts {
    /// Adds what another shard has counted.
    pub(crate) fn add(&mut self, other: &Counts) {
        let pair = |a: &mut (u64, u64), b: (u64, u64)| *a = (a.0 + b.0, a.1 + b.1);
        pair(&mut self.injected, other.injected);
        pair(&mut self.delivered, other.delivered);
        pair(&mut self.retransmitted, other.retransmitted);
        pair(&mut self.dropped_data, other.dropped_data);
        pair(&mut self.trimmed, other.trimmed);
        self.events += other.events;
        self.hops += other.hops;
        self.control_bytes += other.control_bytes;
        self.created += other.created;
        self.consumed += other.consumed;
        self.dropped_full += other.dropped_full;
        self.dropped_fault += other.dropped_fault;
        self.dropped_down += other.dropped_down;
        self.dropped_scheme += other.dropped_scheme;
        self.dropped_bytes += other.dropped_bytes;
        self.out_of_order += other.out_of_order;
        self.overtaken += other.overtaken;
        self.marked_receiver += other.marked_receiver;
        self.marked += other.marked;
        self.acks += other.acks;
        self.pauses += other.pauses;
        self.resumes += other.resumes;
        self.timeouts += other.timeouts;
    }

    /// What was counted since, without the data that was sent and received.
    pub(crate) fn less(&self, before: &Counts) -> Counts {
        Counts {
            events: self.events - before.events,
            hops: self.hops - before.hops,
            control_bytes: self.control_bytes - before.control_bytes,
            created: self.created - before.created,
            consumed: self.consumed - before.consumed,
            marked: self.marked - before.marked,
            marked_receiver: self.marked_receiver - before.marked_receiver,
            overtaken: self.overtaken - before.overtaken,
            out_of_order: self.out_of_order - before.out_of_order,
            acks: self.acks - before.acks,
            pauses: self.pauses - before.pauses,
            resumes: self.resumes - before.resumes,
            ..Counts::default()
        }
    }

    /// So many times as much.
    pub(crate) fn scaled(&self, share: f64) -> Counts {
        let scaled = |count: u64| (count as f64 * share).round() as u64;
        Counts {
            events: scaled(self.events),
            hops: scaled(self.hops),
            control_bytes: scaled(self.control_bytes),
            created: scaled(self.created),
            consumed: scaled(self.consumed),
            marked: scaled(self.marked),
            marked_receiver: scaled(self.marked_receiver),
            overtaken: scaled(self.overtaken),
            out_of_order: scaled(self.out_of_order),
            acks: scaled(self.acks),
            pauses: scaled(self.pauses),
            resumes: scaled(self.resumes),
            ..Counts::default()
        }
    }

    /// Packets dropped for whatever reason.
    pub fn dropped(&self) -> u64 {
        self.dropped_full + self.dropped_fault + self.dropped_down + self.dropped_scheme
    }
}
