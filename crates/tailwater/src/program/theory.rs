//! `tailwater theory`: the closed forms of the papers, with numbers put in.

use crate::program::commands::{printed, say};
use clap::{Args, Subcommand};
use engine::{Bytes, Rate, Time};
use files::problem::Problem;
use ledger::theory::sfc::Path;
use std::process::ExitCode;

/// What is computed.
#[derive(Subcommand)]
pub enum Theory {
    /// SFC's appendix C: the buffer that each kind of congestion signal needs.
    Sfc(Sfc),
}

/// The simplified topology of SFC's appendix C. The defaults are its worked example.
#[derive(Args)]
pub struct Sfc {
    /// R, the rate of the congested link.
    #[arg(long, default_value = "100Gbps")]
    rate: Rate,
    /// T_A, from the senders to the congested switch.
    #[arg(long, default_value = "4us")]
    to_switch: Time,
    /// T_B, from the congested switch to the receiver.
    #[arg(long, default_value = "1us")]
    to_receiver: Time,
    /// T_ToR, from a sender to its own ToR.
    #[arg(long, default_value = "1us")]
    to_tor: Time,
    /// Bytes of a full packet.
    #[arg(long, default_value = "4000B")]
    mtu: Bytes,
    /// k, packets in the queue when the second sender starts [default: what keeps the link busy, T_F·R].
    #[arg(long)]
    queue: Option<u64>,
    /// N, senders of an incast.
    #[arg(long, default_value_t = 16)]
    senders: u64,
}

/// `tailwater theory sfc`.
pub fn theory(theory: &Theory) -> Result<ExitCode, Problem> {
    let Theory::Sfc(s) = theory;
    let help = "write it as in a scenario, such as 100Gbps, 4us, 4000B";
    if s.rate < Rate(1_000_000) || s.mtu.0 == 0 || s.mtu.0 > 1_000_000 {
        return Err(Problem::new("theory sfc", "the rate is below 1Mbps, or the packet empty or above 1MB").help(help));
    }
    let longest = [s.to_switch, s.to_receiver, s.to_tor].into_iter().max().unwrap_or_default();
    if longest > Time::from_ms(1000) || s.senders > 1_000_000 || s.queue.is_some_and(|k| k > 1_000_000_000) {
        let message = "a delay is above 1s, or there are more than a million senders or a billion packets";
        return Err(Problem::new("theory sfc", message).help(help));
    }
    if s.to_tor > s.to_switch {
        let message = "the sender's own ToR is farther than the congested switch";
        return Err(Problem::new("--to-tor", message).help("write a time up to that of --to-switch"));
    }
    let path =
        Path { rate: s.rate, to_switch: s.to_switch, to_receiver: s.to_receiver, to_tor: s.to_tor, mtu: s.mtu.0 };
    let k = s.queue.unwrap_or(path.target_packets());
    let (acks, bts) = (path.buffer_with_acks(k), path.buffer_with_bts(k));
    let saved = if acks > 0 { (acks - bts) as f64 * 100.0 / acks as f64 } else { 0.0 };
    let lines = [
        ("T_S, a full packet on the link".to_string(), path.packet_time().to_string()),
        ("RTT = 2T_A + 2T_B + 2T_S".into(), path.rtt().to_string()),
        ("T_F = 2T_A + T_S, the feedback loop of BTS".into(), path.feedback().to_string()),
        (format!("B_ack, notice by ACKs of {k} packets (1)"), Bytes(acks).to_string()),
        ("B_bts, notice by BTS (2)".into(), Bytes(bts).to_string()),
        ("saved".into(), format!("{} ({saved:.1} %)", Bytes(acks - bts))),
        (
            format!("B_incast of {} senders with BTS (3)", s.senders),
            Bytes(path.buffer_of_incast(s.senders)).to_string(),
        ),
        ("the least without".into(), Bytes(path.buffer_of_incast_with_acks(s.senders)).to_string()),
        ("T_cache, the senders' ToR knows (7)".into(), path.cached_at().to_string()),
        ("a later sender misses the cache before".into(), path.cache_miss_before().to_string()),
        ("B_cache hit, notified by its own ToR (8)".into(), Bytes(path.buffer_with_cache()).to_string()),
    ];
    printed(say(lines.iter().map(|(name, value)| format!("{name:<46} {value}\n")).collect()))
}
