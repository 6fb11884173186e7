//! Floodgate's windows by its own keys.

use crate::ns3::config::Config;
use crate::ns3::tokens::{Tokens, Want};
use crate::ns3::topology::Topology;
use engine::{Bytes, Time};
use files::problem::{Problem, read_text};
use schemes::flow_control::floodgate::Params;
use std::collections::BTreeSet;

/// The most queues that a port can have for what is beyond windows.
const MOST_VOQS: u64 = 4000;

/// What of the keys cannot be run.
pub fn check(config: &Config) -> Vec<Problem> {
    let its = &config.floodgate;
    let mut problems = Vec::new();
    let mut refuse =
        |key: &str, message: &str, remedy: &str| problems.push(config.problem(key, message).help(remedy.to_owned()));
    if !its.windows {
        if its.dst_pause {
            let message = match config.is_given("SRCTOR_DST_PFC") {
                true => {
                    "SRCTOR_DST_PFC 1 cannot be run without USE_FLOODGATE 1: only Floodgate's switches pause by destination here"
                }
                false => "SRCTOR_DST_PFC is missing, and is 1 there: it cannot be run without USE_FLOODGATE 1",
            };
            refuse("SRCTOR_DST_PFC", message, "write SRCTOR_DST_PFC 0, or USE_FLOODGATE 1");
        }
        return problems;
    }
    if its.config_file.is_none() {
        let message = "FLOODGATE_CONFIG_FILE is missing: without it the reference runs as with USE_FLOODGATE 0";
        refuse("FLOODGATE_CONFIG_FILE", message, "name the file, or write USE_FLOODGATE 0");
    }
    if its.ack_mode == 0 {
        let message =
            "SWTICH_ACK_MODE 0 cannot be run: windows that come back with hosts' ACKs are not in this front end";
        refuse("SWTICH_ACK_MODE", message, "write 1 or 2");
    }
    if its.only_tors {
        let message = "RESET_ONLY_TOR_SWITCH_WIN 1 cannot be run: every switch has windows here";
        refuse("RESET_ONLY_TOR_SWITCH_WIN", message, "write 0");
    }
    if its.ack_mode == 1 && its.byte_counter > 1 {
        let message = "SWTICH_ACK_MODE 1 with SWTICH_BYTE_COUNTER above 1 cannot be run: bytes are counted for all destinations together";
        refuse("SWTICH_ACK_MODE", message, "write SWTICH_ACK_MODE 2, or SWTICH_BYTE_COUNTER 1");
    }
    if its.byte_counter > 1 && its.credit_interval_us == 0.0 {
        let message = "SWTICH_CREDIT_INTERVAL 0 with SWTICH_BYTE_COUNTER above 1 cannot be run: an interval ends the wait for more bytes";
        refuse("SWTICH_CREDIT_INTERVAL", message, "write an interval above 0, or SWTICH_BYTE_COUNTER 1");
    }
    if its.dst_pause && config.use_dynamic_pfc_threshold {
        let message =
            "SRCTOR_DST_PFC 1 needs USE_DYNAMIC_PFC_THRESHOLD 0: the threshold of pauses by destination is fixed here";
        refuse("SRCTOR_DST_PFC", message, "write USE_DYNAMIC_PFC_THRESHOLD 0 and PFC_TH_STATIC, or SRCTOR_DST_PFC 0");
    }
    problems
}

/// Our Floodgate as the configuration has it, or nothing if it has no windows.
pub fn params(config: &Config, topology: &Topology) -> Result<Option<Params>, Problem> {
    let its = &config.floodgate;
    let Some(file) = its.config_file.as_ref().filter(|_| its.windows) else { return Ok(None) };
    let voqs = queues(&file.display().to_string(), &read_text(file)?, topology)?;
    // One byte is reached by every packet: then nothing waits for others, and the window has nothing on top.
    let batched = its.byte_counter > 1;
    let interval = if batched { Time::from_ns((its.credit_interval_us * 1e3) as u64) } else { Time::ZERO };
    let defaults = Params::default();
    Ok(Some(Params {
        window: its.win_m,
        interval,
        batch: Bytes(its.byte_counter.max(1) as u64),
        withhold: its.ack_th_m,
        voqs,
        dst_pause: its.dst_pause,
        pause_at: its.pause_at,
        syn_timeout: match its.syn_timeout_us {
            0 => defaults.syn_timeout,
            us => Time::from_us(us as u64),
        },
        ..defaults
    }))
}

/// The queues that a switch has, from the file that names the switches with windows.
pub fn queues(file: &str, text: &str, topology: &Topology) -> Result<u32, Problem> {
    const HELP: &str = "begin with how many switches have windows, how many have rules of their own, their queues and 0 or 1, then list the switches";
    let mut tokens = Tokens::new(file, text);
    let switches = tokens.announced("switches", 1)?;
    let ruled = tokens.announced("switches with rules", 1)?;
    if ruled.count > 0 {
        let message = format!("{} switches have rules of their own, which are not in this front end", ruled.count);
        return Err(ruled.token.problem(file, message).help("write 0, and the switches without rules"));
    }
    let limit = tokens.announced("queues", 1)?;
    let dynamic = tokens.announced("dynamic", 1)?;
    if dynamic.count == 1 && limit.count == 0 {
        let message = "queues that are shared by hash need a number, and it is 0";
        return Err(limit.token.problem(file, message).help("write how many there are, such as 100"));
    }
    let last = topology.nodes().saturating_sub(1) as u64;
    let is = format!("a node, 0 to {last}");
    let mut listed = BTreeSet::new();
    for done in 0..switches.count {
        let [token] = tokens.record(&switches, done as usize)?;
        let node = tokens.whole(token, Want { what: "switch", is: &is, help: HELP }, 0..=last)? as u32;
        if topology.is_host(node) {
            return Err(token.problem(file, format!("node {node} is a host")).help("list switches"));
        }
        listed.insert(node);
    }
    let missing = (0..topology.nodes()).find(|&node| !topology.is_host(node) && !listed.contains(&node));
    if let Some(node) = missing {
        let message = format!("switch {node} is not listed, and all switches have windows here");
        return Err(switches.token.problem(file, message).help("list all switches, or write USE_FLOODGATE 0"));
    }
    // Without a limit every destination has one of its own.
    let wanted = if limit.count == 0 { topology.hosts().count() as u64 } else { limit.count };
    Ok(wanted.clamp(1, MOST_VOQS) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns3::topology::tests::star;

    #[test]
    fn the_file_of_switches_gives_the_queues() {
        let read = |text: &str| queues("f.cfg", text, &star(3));
        assert_eq!(read("1 0 100 1\n3\n"), Ok(100));
        assert_eq!(read("1 0 0 0\n3\n"), Ok(3), "one for every host");
        for (text, message) in [
            ("1 1 100 1\n3\n", "rules of their own"),
            ("1 0 0 1\n3\n", "need a number"),
            ("0 0 100 1\n", "switch 3 is not listed"),
            ("1 0 100 1\n0\n", "is a host"),
            ("1 0 100 1\n7\n", "is not a node"),
            ("1 0 100 1\n", "ends after 0 of the 1 switches"),
            ("", "ends before"),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.message.contains(message) && problem.help.is_some(), "{problem}");
        }
    }
}
