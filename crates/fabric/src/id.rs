//! Identifiers. A number that names one thing is never mistaken for one that names another.

macro_rules! id {
    ($($(#[$doc:meta])+ $name:ident($type:ty),)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub $type);

        impl $name {
            /// As a place in a table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

id! {
    /// A host or a switch of the fabric.
    NodeId(u32),
    /// A port of a node, counted from the node's first. It means nothing at another node.
    PortId(u16),
    /// A queue of an egress port, counted from the port's first.
    QueueId(u32),
    /// A flow, counted in order of start.
    FlowId(u32),
    /// A priority class of data.
    ClassId(u8),
}
