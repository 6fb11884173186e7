// Of two runs: what differs most between them.

import { number } from "./format.js";

/** Tails that are no further apart are as good as the same. */
const ALIKE = 1.05;

/** Endings of runs that came to rest with flows that never end. */
const AT_REST = ["deadlock", "blocked", "lost"];

/** Of two runs, how many flows never end, where that differs: no percentile says more. */
function neverEnds(runs, recordings, name) {
  const left = runs.map(({ summary }) => (AT_REST.includes(summary?.ending) ? summary.flows - summary.finished : 0));
  if (left[0] === left[1]) return null;
  const how = (at) => (left[at] > 0 ? ` (${runs[at].summary.ending})` : "");
  const text = left.map((count, at) => `${count} of ${runs[at].summary?.flows} under ${name(at)}${how(at)}`).join(", ");
  const side = left[0] > left[1] ? 0 : 1;
  const known = new Set(recordings[1 - side].flows.map((flow) => flow.flow));
  const stuck = recordings[side].flows.filter((flow) => flow.received_ps === null && flow.start_ps !== null && known.has(flow.flow));
  const verdict = { group: "Flows that never end", text };
  if (!stuck.length) return verdict;
  const flow = stuck.reduce((first, other) => (other.start_ps < first.start_ps ? other : first));
  const who = `${recordings[side].nodeName(flow.src)} → ${recordings[side].nodeName(flow.dst)}, never received to the end under ${name(side)}`;
  return { ...verdict, worst: flow.flow, who };
}

/** Of two runs, what became of the flows that differ most between them, and the one that had the worst of it. */
export function verdictOf(runs, recordings) {
  if (runs.length < 2) return null;
  const name = (at) => recordings[at].header.preset ?? runs[at].scheme ?? runs[at].label;
  const never = neverEnds(runs, recordings, name);
  if (never) return never;
  const groups = (run) => run.summary?.groups ?? [];
  let best = null;
  for (const group of groups(runs[0])) {
    const tails = runs.map((run) => groups(run).find((one) => one.name === group.name)?.slowdown);
    if (tails.some((tail) => !(tail?.count > 0) || !(tail.p99 > 0))) continue;
    const p99 = tails.map((tail) => tail.p99);
    const ratio = Math.max(...p99) / Math.min(...p99);
    if (!best || ratio > best.ratio) best = { group: group.name, ratio, p99 };
  }
  if (!best) return null;
  const each = best.p99.map((value, at) => `${number(value, 3)}× under ${name(at)}`).join(", ");
  // Runs that treat all groups alike should not be read as if they did not.
  const alike = best.ratio < ALIKE ? "; no group differs more" : "";
  const text = `99th percentile of slowdown ${each}${alike}`;
  // In the run that treats them worse.
  const side = best.p99[0] >= best.p99[1] ? 0 : 1;
  const known = new Set(recordings[0].flows.map((flow) => flow.flow));
  const victims = recordings[side].flows
    .filter((flow) => recordings[side].groups[flow.group] === best.group && known.has(flow.flow) && flow.start_ps !== null)
    .map((flow) => [recordings[side].slowdown(flow) ?? (flow.received_ps === null ? Infinity : 0), flow])
    .sort((a, b) => b[0] - a[0] || a[1].flow - b[1].flow);
  if (!victims.length) return { ...best, text };
  const [slow, flow] = victims[0];
  const how = slow === Infinity ? "never received to the end" : `${number(slow, 3)}×`;
  const who = `${recordings[side].nodeName(flow.src)} → ${recordings[side].nodeName(flow.dst)}, ${how} under ${name(side)}`;
  return { ...best, text, worst: flow.flow, who };
}
