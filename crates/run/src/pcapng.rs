//! Captures: what chosen ports sent, as a file that packet analysers read.
//!
//! The file is pcapng with an interface for every port. Data and acknowledgements are RoCEv2 (Ethernet, IPv4, UDP to port 4791,
//! BTH, and AETH on acknowledgements), pauses of PFC are MAC control frames, and frames and packets of other schemes are in
//! formats of our own, which `docs/capture.md` describes. Every frame has the length that it has in the simulation (but for what
//! RoCEv2 fills up to words), its payload is zeros, and its checksums are right.

use engine::Time;
use fabric::axes::FlowControlDef;
use fabric::packet::{Kind, Packet, flag};
use fabric::probe::Captured;
use fabric::routing::PortMap;
use fabric::topology::Graph;
use std::io::{self, Write};

/// EtherType of frames between neighbours that are not PFC's: for experiments (IEEE 802).
const OWN_FRAMES: u16 = 0x88b5;
/// UDP port of control packets that are not RoCEv2's.
const OWN_PACKETS: u16 = 4793;
/// UDP port of RoCEv2.
const ROCE: u16 = 4791;
/// The queue pair of flow 0: the first two are for management.
const FIRST_QUEUE_PAIR: u64 = 2;
/// Bytes of all headers and checks of a RoCEv2 packet.
const HEADERS: u16 = 62;
/// Bytes of an Ethernet header and its check.
const SHORTEST: usize = 14 + 4;
/// Bytes of Ethernet, IPv4 and UDP headers.
const UDP_END: usize = 14 + 20 + 8;

/// What an analyser must know about the frames besides their bytes.
pub struct Scene<'a> {
    /// The fabric.
    pub graph: &'a Graph,
    /// Its ports.
    pub map: &'a PortMap,
    /// The scheme whose frames they are.
    pub flow_control: &'a dyn FlowControlDef,
    /// Bytes of message in a full packet.
    pub payload: u64,
}

/// Writes a capture. `ports` are those that were watched.
pub fn write(out: &mut impl Write, scene: &Scene<'_>, ports: &[u32], captured: &[Captured]) -> io::Result<()> {
    let mut section = Vec::new();
    section.extend(0x1a2b_3c4du32.to_le_bytes());
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    option(&mut section, 4, b"tailwater");
    end_of_options(&mut section);
    block(out, 0x0a0d_0d0a, &section)?;
    for &port in ports {
        let mut interface = Vec::new();
        interface.extend(1u16.to_le_bytes()); // Ethernet
        interface.extend([0; 2]);
        interface.extend(0u32.to_le_bytes()); // nothing is cut off
        option(&mut interface, 2, name(scene, port).as_bytes());
        let rate = scene.map.rate(scene.graph, port).0;
        option(&mut interface, 8, &rate.to_le_bytes());
        option(&mut interface, 9, &[12]); // times in picoseconds
        option(&mut interface, 13, &[4]); // frames end with their check sequence
        end_of_options(&mut interface);
        block(out, 1, &interface)?;
    }
    for captured in captured {
        let frame = frame(scene, captured);
        let number = ports.binary_search(&captured.port).unwrap_or(0) as u32;
        let Time(time) = captured.time;
        let mut packet = Vec::with_capacity(frame.len() + 24);
        for word in [number, (time >> 32) as u32, time as u32, frame.len() as u32, frame.len() as u32] {
            packet.extend(word.to_le_bytes());
        }
        packet.extend(&frame);
        block(out, 6, &packet)?;
    }
    Ok(())
}

fn name(scene: &Scene<'_>, port: u32) -> String {
    let name = |port: u32| &scene.graph.nodes[scene.map.node[port as usize] as usize].name;
    format!("{}->{}", name(port), name(scene.map.peer[port as usize]))
}

/// A block of a pcapng file: its type and length before it, its length after it, all on a multiple of four bytes.
fn block(out: &mut impl Write, kind: u32, body: &[u8]) -> io::Result<()> {
    let padding = body.len().next_multiple_of(4) - body.len();
    let length = (12 + body.len() + padding) as u32;
    out.write_all(&kind.to_le_bytes())?;
    out.write_all(&length.to_le_bytes())?;
    out.write_all(body)?;
    out.write_all(&[0; 3][..padding])?;
    out.write_all(&length.to_le_bytes())
}

fn option(to: &mut Vec<u8>, code: u16, value: &[u8]) {
    to.extend(code.to_le_bytes());
    to.extend((value.len() as u16).to_le_bytes());
    to.extend(value);
    to.resize(to.len().next_multiple_of(4), 0);
}

fn end_of_options(to: &mut Vec<u8>) {
    to.extend([0; 4]);
}

/// A node's address on Ethernet: locally administered.
fn mac(node: u32) -> [u8; 6] {
    let [a, b, c, d] = node.to_be_bytes();
    [0x02, 0x54, a, b, c, d]
}

/// The bytes of a frame on the wire.
fn frame(scene: &Scene<'_>, captured: &Captured) -> Vec<u8> {
    let (packet, port) = (&captured.packet, captured.port as usize);
    let (here, there) = (scene.map.node[port], scene.map.node[scene.map.peer[port] as usize]);
    let mut bytes = Vec::with_capacity(packet.size as usize);
    if packet.kind == Kind::Frame {
        // PFC has eight classes; what a scheme calls a class beyond them is its own.
        let pause = (packet.flags & flag::PAYLOAD == 0).then(|| scene.flow_control.pause_in(packet)).flatten();
        let pause = pause.filter(|(class, _)| *class < 8);
        match pause {
            Some((class, pause)) => pfc(&mut bytes, here, class, pause),
            None => own_frame(&mut bytes, (here, there), packet, &captured.payload),
        }
    } else {
        bytes.extend(mac(there));
        bytes.extend(mac(here));
        bytes.extend(0x0800u16.to_be_bytes());
        match packet.kind {
            Kind::Data | Kind::Ack | Kind::Nack => roce(&mut bytes, packet, scene.payload),
            _ => own_packet(&mut bytes, packet),
        }
    }
    bytes.resize((packet.size as usize + padding(packet)).saturating_sub(4).max(bytes.len()), 0);
    if packet.kind != Kind::Frame {
        internet(&mut bytes, packet);
    }
    let check = crc32fast::hash(&bytes);
    bytes.extend(check.to_le_bytes());
    bytes
}

/// IEEE 802.1Qbb: one class, for the longest time or for none.
fn pfc(bytes: &mut Vec<u8>, from: u32, class: u8, pause: bool) {
    bytes.extend([0x01, 0x80, 0xc2, 0, 0, 0x01]);
    bytes.extend(mac(from));
    bytes.extend(0x8808u16.to_be_bytes());
    bytes.extend(0x0101u16.to_be_bytes());
    bytes.extend((1u16 << class).to_be_bytes());
    for number in 0..8 {
        let quanta: u16 = if number == class && pause { u16::MAX } else { 0 };
        bytes.extend(quanta.to_be_bytes());
    }
}

/// A scheme's own frame: a version, whether words follow, its message as the fabric packs it, and the words.
fn own_frame(bytes: &mut Vec<u8>, (from, to): (u32, u32), packet: &Packet, payload: &[u64]) {
    bytes.extend(mac(to));
    bytes.extend(mac(from));
    bytes.extend(OWN_FRAMES.to_be_bytes());
    bytes.extend([2, (packet.flags & flag::PAYLOAD != 0) as u8]);
    bytes.extend(packet.bits().to_be_bytes());
    payload.iter().for_each(|word| bytes.extend(word.to_be_bytes()));
    // A control ordered set is no Ethernet frame, and shorter than the header of one.
    if packet.size as usize >= SHORTEST {
        bytes.truncate(packet.size as usize - 4);
    }
}

fn u24(number: u64) -> [u8; 3] {
    let [.., a, b, c] = number.to_be_bytes();
    [a, b, c]
}

/// Bytes that fill the payload of a data packet up to words, as RoCEv2 has it. The simulation does not count them.
fn padding(packet: &Packet) -> usize {
    match packet.kind {
        Kind::Data => (HEADERS as usize).wrapping_sub(packet.size as usize) % 4,
        _ => 0,
    }
}

/// A RoCEv2 packet without the headers before BTH filled in, and without ICRC.
fn roce(bytes: &mut Vec<u8>, packet: &Packet, payload: u64) {
    bytes.resize(UDP_END, 0);
    let (first, last) = (packet.flags & flag::FIRST != 0, packet.flags & flag::LAST != 0);
    let opcode = match (packet.kind, first, last) {
        (Kind::Ack | Kind::Nack, ..) => 0x11,
        (_, true, true) => 0x04,
        (_, true, false) => 0x00,
        (_, false, true) => 0x02,
        _ => 0x01,
    };
    // A message of less than a word is shown as a word: analysers look for one.
    let padding = if packet.size < HEADERS + 4 { 0 } else { padding(packet) as u8 };
    // No solicited event; the default partition.
    bytes.extend([opcode, 0x40 | padding << 4, 0xff, 0xff]);
    bytes.push(0);
    bytes.extend(u24(packet.flow as u64 + FIRST_QUEUE_PAIR));
    bytes.push(if packet.kind == Kind::Data { 0x80 } else { 0 });
    let number = match packet.kind {
        // The last packet that has arrived, or the one that is missing.
        Kind::Ack => packet.seq.div_ceil(payload.max(1)).wrapping_sub(1),
        _ => packet.seq / payload.max(1),
    };
    bytes.extend(u24(number));
    if packet.kind != Kind::Data {
        bytes.push(if packet.kind == Kind::Ack { 0x1f } else { 0x60 });
        bytes.extend(u24(number));
    }
}

/// A control packet to or from a host that RoCEv2 does not know: version, kind, class, flags, its flow and its word.
fn own_packet(bytes: &mut Vec<u8>, packet: &Packet) {
    bytes.resize(UDP_END, 0);
    bytes.extend([1, packet.kind as u8, packet.class, packet.flags as u8]);
    bytes.extend(packet.flow.to_be_bytes());
    bytes.extend(packet.seq.to_be_bytes());
    bytes.truncate((packet.size as usize).saturating_sub(4).max(UDP_END));
}

/// Fills in IPv4 and UDP headers, and ICRC at the end of a RoCEv2 packet.
fn internet(bytes: &mut [u8], packet: &Packet) {
    let roce = matches!(packet.kind, Kind::Data | Kind::Ack | Kind::Nack);
    let length = bytes.len() as u16 - 14;
    // Explicit congestion notification: capable, or marked. The class is the code point's upper part.
    let marked = packet.kind == Kind::Data && packet.flags & flag::MARKED != 0;
    let service = packet.class << 5 | if marked { 3 } else { 2 };
    let ip = &mut bytes[14..34];
    ip[0] = 0x45;
    ip[1] = service;
    ip[2..4].copy_from_slice(&length.to_be_bytes());
    ip[6] = 0x40;
    ip[8] = 64;
    ip[9] = 17;
    ip[12..16].copy_from_slice(&packet.tuple.source.to_be_bytes());
    ip[16..20].copy_from_slice(&packet.tuple.destination.to_be_bytes());
    let sum: u32 = ip.chunks(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]) as u32).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    let check = !((sum & 0xffff) + (sum >> 16)) as u16;
    ip[10..12].copy_from_slice(&check.to_be_bytes());
    // A port of RoCEv2 is the destination's in both directions; the other one identifies the flow.
    let ports = [packet.tuple.source_port, packet.tuple.destination_port];
    let own = ports.into_iter().find(|&port| port != ROCE).unwrap_or(ROCE);
    let to = if roce { ROCE } else { OWN_PACKETS };
    let udp = &mut bytes[34..UDP_END];
    udp[0..2].copy_from_slice(&own.to_be_bytes());
    udp[2..4].copy_from_slice(&to.to_be_bytes());
    udp[4..6].copy_from_slice(&(length - 20).to_be_bytes());
    if roce && bytes.len() >= UDP_END + 16 {
        let check = icrc(bytes).to_le_bytes();
        let end = bytes.len();
        bytes[end - 4..].copy_from_slice(&check);
    }
}

/// The invariant CRC of a RoCEv2 packet whose last four bytes are its place: over a header of ones and the packet from IP on, with
/// what changes in flight set to ones (InfiniBand annex A17).
fn icrc(bytes: &[u8]) -> u32 {
    let mut masked = bytes[14..bytes.len() - 4].to_vec();
    for place in [1, 8, 10, 11, 26, 27, 32] {
        masked[place] = 0xff;
    }
    let mut crc = crc32fast::Hasher::new();
    crc.update(&[0xff; 8]);
    crc.update(&masked);
    crc.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_that_of_ethernet() {
        assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn blocks_and_options_fill_words() {
        let mut text = Vec::new();
        option(&mut text, 2, b"abcde");
        assert_eq!(text, [2, 0, 5, 0, b'a', b'b', b'c', b'd', b'e', 0, 0, 0]);
        let mut out = Vec::new();
        block(&mut out, 6, &[1, 2, 3]).unwrap();
        assert_eq!(out, [6, 0, 0, 0, 16, 0, 0, 0, 1, 2, 3, 0, 16, 0, 0, 0]);
    }
}
