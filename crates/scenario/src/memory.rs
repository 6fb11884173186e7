//! How much memory a run may have, asked before it takes any: a program that gets none ends without a word of its own.

use std::fs::read_to_string;

/// Bytes that a flow takes at the least in a run, with its halves at both hosts and its rows in the results.
const OF_FLOW: u64 = 560;

/// How many flows the memory that is free now has room for; `None` where the system does not say.
pub(crate) fn flows() -> Option<u64> {
    Some(free()? / OF_FLOW)
}

/// Bytes that this process can still get: what the machine has left, within the limits of the process and of its container.
fn free() -> Option<u64> {
    let machine = read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
    let process = read_to_string("/proc/self/limits").ok().zip(read_to_string("/proc/self/status").ok());
    let process = process.and_then(|(limits, status)| of_process(&limits, &status));
    let group = |name: &str| read_to_string(format!("/sys/fs/cgroup/{name}")).ok();
    let group = group("memory.max").zip(group("memory.stat")).and_then(|(most, stat)| of_group(&most, &stat));
    [machine, process, group].into_iter().flatten().min()
}

/// The number after a word at the beginning of a line.
fn after(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word))?.split_whitespace().next()?.parse().ok()
}

fn of_machine(meminfo: &str) -> Option<u64> {
    let kib = |word: &str| after(meminfo, word).map(|kib| kib.saturating_mul(1024));
    Some(kib("MemAvailable:")?.saturating_add(kib("SwapFree:").unwrap_or(0)))
}

/// By `ulimit -v`; `None` without a limit.
fn of_process(limits: &str, status: &str) -> Option<u64> {
    let used = after(status, "VmSize:")?.saturating_mul(1024);
    Some(after(limits, "Max address space")?.saturating_sub(used))
}

/// By a container; `None` without a limit. What it keeps of files does not count: it is given back.
fn of_group(most: &str, stat: &str) -> Option<u64> {
    Some(most.trim().parse::<u64>().ok()?.saturating_sub(after(stat, "anon ")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_of_all_limits_counts_and_what_is_unlimited_does_not() {
        let meminfo = "MemTotal:  8000 kB\nMemAvailable:   3000 kB\nSwapTotal: 5 kB\nSwapFree:   1000 kB\n";
        assert_eq!(of_machine(meminfo), Some(4000 * 1024));
        let status = "Name:\ta\nVmPeak:\t 900 kB\nVmSize:\t 500 kB\n";
        let limits = |soft: &str| {
            format!("Limit  Soft Limit  Hard Limit  Units\nMax address space     {soft}   unlimited   bytes\n")
        };
        assert_eq!(of_process(&limits("1024000"), status), Some(512_000));
        assert_eq!(of_process(&limits("1000"), status), Some(0));
        assert_eq!(of_process(&limits("unlimited"), status), None);
        assert_eq!(of_group("5000\n", "anon 1000\nfile 3000\n"), Some(4000));
        assert_eq!(of_group("max\n", "anon 1000\n"), None);
    }
}
