//! What frames and signals say, as types of the scheme that sends them.
//!
//! A scheme declares an enum or a struct with [`message!`](crate::message!). On a link it is at most 128 bits (a signal: 64) inside the
//! packet. A frame may have one field of any length besides, a [`Payload`]. Packing and unpacking are derived; no scheme decodes words by
//! hand.
//!
//! A frame with a payload:
//!
//! ```
//! # use fabric::{axes::flow_control::NoFlowControl, bench::Bench, id::PortId, message::Payload};
//! fabric::message! {
//!     struct Filter { bits: Payload }
//! }
//! let mut bench = Bench::switch(NoFlowControl, 2);
//! bench.view().send_frame(PortId(0), 64, Filter { bits: Box::new([1, 2]) });
//! assert_eq!(bench.sent()[0].message::<Filter>(), Filter { bits: Box::new([1, 2]) });
//! ```
//!
//! What does not fit does not compile. That is a second payload in a frame,
//!
//! ```compile_fail
//! # use fabric::{axes::flow_control::NoFlowControl, bench::Bench, id::PortId, message::Payload};
//! # fabric::message! {
//! #     struct Filter { bits: Payload, more: Payload }
//! # }
//! # let mut bench = Bench::switch(NoFlowControl, 2);
//! bench.view().send_frame(PortId(0), 64, Filter { bits: Box::new([1]), more: Box::new([2]) });
//! ```
//!
//! or any in a signal:
//!
//! ```compile_fail
//! # use fabric::{axes::flow_control::NoFlowControl, bench::Bench, id::PortId, message::Payload, packet::Packet};
//! # fabric::message! {
//! #     struct Filter { bits: Payload }
//! # }
//! # let mut bench = Bench::switch(NoFlowControl, 2);
//! bench.view().send_signal(PortId(0), &Packet::BLANK, 64, Filter { bits: Box::new([1]) });
//! ```
//!
//! ```compile_fail
//! # use fabric::{axes::FlowControl, bench::Bench, message::Payload, view::Site};
//! # #[derive(Clone)]
//! # struct Wordy;
//! impl FlowControl for Wordy {
//!     type Signal = Payload;
//! #     type Node = ();
//! #     type Frame = ();
//! #     fn node(&self, _: &Site<'_>) {}
//! }
//! # Bench::switch(Wordy, 2);
//! ```

use crate::id::{ClassId, FlowId, NodeId, PortId, QueueId};
use engine::Time;

/// What a frame carries beyond its message, such as a Bloom filter. A signal carries none.
pub type Payload = Box<[u64]>;

/// Something that fits into a frame or a signal.
pub trait Message: Sized {
    /// How many bits it takes.
    const BITS: u32;
    /// How many payloads it has.
    const PAYLOADS: u32;
    /// Appends it.
    fn pack(self, to: &mut Packer);
    /// Reads it back.
    fn unpack(from: &mut Unpacker) -> Self;
}

/// Bits being put together.
#[derive(Default)]
pub struct Packer {
    bits: u128,
    used: u32,
    payload: Option<Payload>,
}

impl Packer {
    /// A message as bits and payload.
    #[inline]
    pub fn of(message: impl Message) -> (u128, Option<Payload>) {
        let mut packer = Packer::default();
        message.pack(&mut packer);
        (packer.bits, packer.payload)
    }
    #[inline]
    fn put(&mut self, value: u64, bits: u32) {
        debug_assert!(bits == 64 || value >> bits == 0);
        self.bits |= (value as u128) << self.used;
        self.used += bits;
    }
}

/// Bits being taken apart.
pub struct Unpacker {
    bits: u128,
    payload: Option<Payload>,
    layer: u8,
}

impl Unpacker {
    /// The message in these bits.
    #[inline]
    pub fn read<M: Message>(bits: u128, payload: Option<Payload>) -> M {
        M::unpack(&mut Unpacker { bits, payload, layer: 0 })
    }
    #[inline]
    fn take(&mut self, bits: u32) -> u64 {
        let value = self.bits as u64 & if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
        self.bits >>= bits;
        value
    }
}

macro_rules! fields {
    ($($type:ty: $bits:literal, $value:ident => $into:expr, $word:ident => $from:expr;)+) => {$(
        impl Message for $type {
            const BITS: u32 = $bits;
            const PAYLOADS: u32 = 0;
            #[inline]
            fn pack(self, to: &mut Packer) {
                let $value = self;
                to.put($into, $bits);
            }
            #[inline]
            fn unpack(from: &mut Unpacker) -> Self {
                let $word = from.take($bits);
                $from
            }
        }
    )+};
}

fields! {
    bool: 1, x => x as u64, w => w != 0;
    u8: 8, x => x as u64, w => w as u8;
    u16: 16, x => x as u64, w => w as u16;
    u32: 32, x => x as u64, w => w as u32;
    u64: 64, x => x, w => w;
    Time: 64, x => x.0, w => Time(w);
    FlowId: 32, x => x.0 as u64, w => FlowId(w as u32);
    // A fabric has far fewer nodes than that.
    NodeId: 24, x => x.0 as u64, w => NodeId(w as u32);
    PortId: 16, x => x.0 as u64, w => PortId(w as u16);
    QueueId: 32, x => x.0 as u64, w => QueueId(w as u32);
    ClassId: 8, x => x.0 as u64, w => ClassId(w as u8);
}

impl Message for Payload {
    const BITS: u32 = 0;
    const PAYLOADS: u32 = 1;
    fn pack(self, to: &mut Packer) {
        to.payload = Some(self);
    }
    fn unpack(from: &mut Unpacker) -> Self {
        from.payload.take().unwrap_or_default()
    }
}

/// Nothing at all: of schemes that send none.
impl Message for () {
    const BITS: u32 = 0;
    const PAYLOADS: u32 = 0;
    fn pack(self, _: &mut Packer) {}
    fn unpack(_: &mut Unpacker) {}
}

/// A message as it is on a link, with the [layer](crate::axes::flow_control::Over) that sent it: who it is for reads it.
#[derive(Clone, Debug)]
pub struct Sealed {
    pub(crate) layer: u8,
    pub(crate) bits: u128,
    pub(crate) payload: Option<Payload>,
}

/// Read as it is, by the code that distinguishes layers.
impl Message for Sealed {
    const BITS: u32 = 128;
    const PAYLOADS: u32 = 1;
    fn pack(self, _: &mut Packer) {
        unreachable!("a sealed message is only received")
    }
    fn unpack(from: &mut Unpacker) -> Self {
        Sealed { layer: from.layer, bits: from.bits, payload: from.payload.take() }
    }
}

impl Sealed {
    /// Which layer sent it.
    pub fn layer(&self) -> u8 {
        self.layer
    }
    /// What it says.
    #[inline]
    pub fn open<M: Message>(self) -> M {
        M::unpack(&mut Unpacker { bits: self.bits, payload: self.payload, layer: self.layer })
    }
}

/// What a frame may say. To be evaluated when a scheme is compiled, so that nothing is cut off in a run.
pub(crate) const fn assert_frame<M: Message>() {
    assert!(M::BITS <= 128, "a frame says at most 128 bits, besides a payload");
    assert!(M::PAYLOADS <= 1, "a frame has at most one payload");
}

/// What a signal may say.
pub(crate) const fn assert_signal<M: Message>() {
    assert!(M::BITS <= 64, "a signal says at most 64 bits");
    assert!(M::PAYLOADS == 0, "a signal has no payload");
}

/// What the frames and signals of a flow control may say.
pub(crate) const fn assert_messages<Frame: Message, Signal: Message>() {
    assert_frame::<Frame>();
    assert_signal::<Signal>();
}

/// Declares a message: an enum, or a struct, of fields that are messages.
#[macro_export]
macro_rules! message {
    ($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$doc:meta])* $variant:ident $({ $($(#[$note:meta])* $field:ident: $type:ty),* $(,)? })?,)+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis enum $name { $($(#[$doc])* $variant $({ $($(#[$note])* $field: $type),* })?,)+ }

        impl $crate::message::Message for $name {
            const BITS: u32 = {
                let mut most = 0;
                $({
                    let bits = 0 $($(+ <$type as $crate::message::Message>::BITS)*)?;
                    if bits > most { most = bits }
                })+
                8 + most
            };
            const PAYLOADS: u32 = {
                let mut most = 0;
                $({
                    let payloads = 0 $($(+ <$type as $crate::message::Message>::PAYLOADS)*)?;
                    if payloads > most { most = payloads }
                })+
                most
            };
            #[inline]
            fn pack(self, to: &mut $crate::message::Packer) {
                #[repr(u8)]
                enum Number { $($variant),+ }
                match self {
                    $($name::$variant $({ $($field),* })? => {
                        $crate::message::Message::pack(Number::$variant as u8, to);
                        $($($crate::message::Message::pack($field, to);)*)?
                    })+
                }
            }
            #[inline]
            fn unpack(from: &mut $crate::message::Unpacker) -> Self {
                #[repr(u8)]
                enum Number { $($variant),+ }
                let number: u8 = $crate::message::Message::unpack(from);
                $(if number == Number::$variant as u8 {
                    return $name::$variant $({ $($field: $crate::message::Message::unpack(from)),* })?;
                })+
                unreachable!("a message of another type")
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $($(#[$note:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        $vis struct $name { $($(#[$note])* $field: $type),* }

        impl $crate::message::Message for $name {
            const BITS: u32 = 0 $(+ <$type as $crate::message::Message>::BITS)*;
            const PAYLOADS: u32 = 0 $(+ <$type as $crate::message::Message>::PAYLOADS)*;
            #[inline]
            fn pack(self, to: &mut $crate::message::Packer) {
                $($crate::message::Message::pack(self.$field, to);)*
            }
            #[inline]
            fn unpack(from: &mut $crate::message::Unpacker) -> Self {
                $name { $($field: $crate::message::Message::unpack(from)),* }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    message! {
        enum Sample {
            /// Without fields.
            Bare,
            Pause { class: ClassId, on: bool },
            Filter { bits: Payload },
            Long { flow: FlowId, stamp: Time },
        }
    }
    message! {
        struct Note { us: u32, near: bool, from: NodeId }
    }

    fn there_and_back<M: Message>(message: M) -> M {
        let (bits, payload) = Packer::of(message);
        Unpacker::read(bits, payload)
    }

    proptest! {
        #[test]
        fn a_message_that_was_packed_is_read_as_it_was(
            class: u8, on: bool, bits in prop::collection::vec(any::<u64>(), 0..20), flow: u32, stamp: u64, us: u32, from in 0u32..1 << 24,
        ) {
            for message in [
                Sample::Bare,
                Sample::Pause { class: ClassId(class), on },
                Sample::Filter { bits: bits.into() },
                Sample::Long { flow: FlowId(flow), stamp: Time(stamp) },
            ] {
                prop_assert_eq!(there_and_back(message.clone()), message);
            }
            let note = Note { us, near: on, from: NodeId(from) };
            prop_assert_eq!(there_and_back(note.clone()), note);
        }
    }

    #[test]
    fn a_message_takes_as_many_bits_as_its_largest_variant() {
        assert_eq!((Sample::BITS, Note::BITS), (8 + 96, 57));
        assert_eq!((Sample::PAYLOADS, Note::PAYLOADS), (1, 0));
    }
}
