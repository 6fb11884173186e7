//! What the counters of a run say about what its scheme did, and did not.

use super::many;
use serde_json::Value;

/// In sentences. A key is said to have had no effect only where a larger value provably gives the same run.
pub fn deeds(summary: &Value) -> Vec<String> {
    let said = [flow_control(summary), congestion_control(summary), repeated(summary), unfinished(summary)];
    said.into_iter().flatten().collect()
}

fn count(summary: &Value, path: &str) -> u64 {
    summary.pointer(path).and_then(Value::as_u64).unwrap_or(0)
}

fn share(summary: &Value, path: &str) -> Option<f64> {
    summary.pointer(path).and_then(|account| account["share"].as_f64())
}

fn flow_control(summary: &Value) -> Option<String> {
    let control = summary["flow_control"].as_str().filter(|control| *control != "none")?;
    if summary.pointer("/why/stops").and_then(Value::as_u64) != Some(0) {
        return None;
    }
    let mut said = format!("Flow control ({control}) never stopped anything");
    if let Some(share) = share(summary, "/why/fullest_account") {
        said += &format!(": the fullest account reached {:.0} % of its threshold", 100.0 * share);
        // Whoever is under a threshold is so under a higher one. Other schemes may use it for something else besides.
        if control == "pfc" && share < 1.0 {
            let key = if summary.pointer("/why/dynamic") == Some(&Value::Bool(true)) {
                "key switch.alpha"
            } else {
                "threshold"
            };
            said += &format!(". The {key} had no effect: a higher one gives the same run");
        }
    }
    Some(said + ".")
}

fn congestion_control(summary: &Value) -> Option<String> {
    let control = summary["congestion_control"].as_str().filter(|control| *control != "none")?;
    let why = summary.get("why")?;
    if why["marks_only"] == true && count(summary, "/marked") == 0 {
        let mut said = format!("Congestion control ({control}) never acted: no packet was marked");
        if let Some(share) = share(why, "/fullest_port").filter(|share| *share <= 1.0) {
            said += &format!(
                ", and no port held more than {:.0} % of the bytes at which marking begins. The key switch.ecn_min had no effect: a \
                 higher one gives the same run",
                100.0 * share
            );
        }
        return Some(said + ".");
    }
    let mut parts = why["parts"].as_array()?.iter().flat_map(|group| [&group["parts_ps"], &group["unfinished_ps"]]);
    let idle = parts.all(|parts| ["window", "pacing"].iter().all(|part| count(parts, &format!("/{part}")) == 0));
    idle.then(|| {
        format!("Congestion control ({control}) never held anybody back: no flow waited for its window or its rate.")
    })
}

fn repeated(summary: &Value) -> Option<String> {
    let packets = |count: u64| many(count as usize, "packet");
    let (dropped, again) = (count(summary, "/dropped/buffer"), count(summary, "/retransmitted/packets"));
    // With trimming, a full queue costs a packet its payload; what is dropped is a header that found no room either.
    let trimmed = count(summary, "/counters/trimmed");
    match (dropped, again, trimmed) {
        (0, 0, 0) => None,
        (0, again, 0) => Some(format!("{} sent again, none for want of room in a buffer.", packets(again))),
        (dropped, _, 0) => Some(format!("{} dropped for want of room.", packets(dropped))),
        (0, again, trimmed) => Some(format!(
            "{} trimmed to headers for want of room, none dropped; {} sent again.",
            packets(trimmed),
            packets(again)
        )),
        (dropped, again, trimmed) => Some(format!(
            "{} trimmed to headers for want of room; {} besides dropped; {} sent again.",
            packets(trimmed),
            packets(dropped),
            packets(again)
        )),
    }
}

fn unfinished(summary: &Value) -> Option<String> {
    let left = count(summary, "/flows").saturating_sub(count(summary, "/finished")) as usize;
    let ending = summary["ending"].as_str().unwrap_or_default();
    (left > 0).then(|| format!("{} did not finish: {ending}.", many(left, "flow")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_scheme_that_did_nothing_is_said_to_have_done_nothing() {
        let why = json!({ "stops": 0, "fullest_account": { "share": 0.612 }, "marks_only": true });
        let mut summary = json!({ "flow_control": "pfc", "congestion_control": "dcqcn", "marked": 0, "why": why });
        let said = deeds(&summary);
        assert_eq!(
            said,
            [
                "Flow control (pfc) never stopped anything: the fullest account reached 61 % of its threshold. The threshold had no \
                 effect: a higher one gives the same run.",
                "Congestion control (dcqcn) never acted: no packet was marked."
            ]
        );
        summary["why"]["fullest_port"] = json!({ "share": 0.4 });
        assert!(deeds(&summary)[1].ends_with(
            "no packet was marked, and no port held more than 40 % of the bytes at which marking begins. The key switch.ecn_min had no \
             effect: a higher one gives the same run."
        ));
        summary["why"]["dynamic"] = true.into();
        assert!(deeds(&summary)[0].ends_with("The key switch.alpha had no effect: a higher one gives the same run."));
        summary["flow_control"] = "dvl".into();
        assert!(deeds(&summary)[0].ends_with("61 % of its threshold."), "what else it is for is not known");
    }

    #[test]
    fn congestion_control_that_held_nobody_back_is_said_to() {
        let parts = |pacing: u64| json!([{ "parts_ps": { "turn": 5, "pacing": pacing } }, { "parts_ps": {} }]);
        let why = |pacing| json!({ "stops": 3, "marks_only": false, "parts": parts(pacing) });
        let summary = |pacing| json!({ "flow_control": "pfc", "congestion_control": "swift", "why": why(pacing) });
        let said = "Congestion control (swift) never held anybody back: no flow waited for its window or its rate.";
        assert_eq!(deeds(&summary(0)), [said]);
        assert_eq!(deeds(&summary(1)), [""; 0]);
    }

    #[test]
    fn what_is_trimmed_is_not_lost() {
        let summary = |dropped: u64, trimmed: u64| {
            json!({
                "dropped": { "buffer": dropped }, "retransmitted": { "packets": 7 }, "counters": { "trimmed": trimmed },
            })
        };
        assert_eq!(deeds(&summary(0, 0)), ["7 packets sent again, none for want of room in a buffer."]);
        assert_eq!(
            deeds(&summary(0, 9)),
            ["9 packets trimmed to headers for want of room, none dropped; 7 packets sent again."]
        );
        assert_eq!(
            deeds(&summary(1, 9)),
            ["9 packets trimmed to headers for want of room; 1 packet besides dropped; 7 packets sent again."]
        );
    }
}
