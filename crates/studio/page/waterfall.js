// Where the time of a flow went: a waterfall, part by part, with the same scale for every run.

import { h, s } from "./dom.js";
import { plural, share, time } from "./format.js";

/** Parts below this share of the longest waterfall are put together at its end. */
const LEAST = 0.01;

const COLOURS = {
  serialisation: "--use-2",
  propagation: "--use-1",
  forwarding: "--use-1",
  queueing: "--queue",
  pause: "--pause",
  stopped: "--pause",
  down: "--pause",
  hold: "--held",
  retransmission: "--bad",
  receiver: "--control",
};

/**
 * The parts one after the other, from the sender along the path to the receiver, those that are shorter than `least` together at the end:
 * {rows: [{part, place, from, time}], total}.
 */
export function falls(parts, least) {
  const place = ({ part, hop }) => (part === "receiver" ? Infinity : (hop ?? -1));
  const total = parts.reduce((sum, part) => sum + part.time_ps, 0);
  const long = parts.filter((part) => part.time_ps >= least).sort((a, b) => place(a) - place(b));
  let at = 0;
  const rows = long.map((one) => {
    at += one.time_ps;
    return { part: one.part, place: one.place, from: at - one.time_ps, time: one.time_ps };
  });
  if (total > at) rows.push({ part: null, count: parts.length - long.length, from: at, time: total - at });
  return { rows, total };
}

/** Waterfalls of one flow in several runs: `runs` is [{name, parts}]. */
export function waterfall(runs) {
  const longest = Math.max(1, ...runs.map(({ parts }) => falls(parts, 0).total));
  const all = runs.map(({ name, parts }) => ({ name, ...falls(parts, longest * LEAST) }));
  return h(
    "div",
    { class: "waterfall" },
    all.map(({ name, rows, total }) =>
      h(
        "figure",
        { "aria-label": `Where its time went${name ? ` under ${name}` : ""}` },
        h("figcaption", {}, h("strong", {}, name), h("span", {}, total ? time(total, 4) : "nothing kept")),
        rows.map((row) => {
          const words = row.part === null ? plural(row.count, "smaller part") : `${row.part} at ${row.place.replace("->", " → ")}`;
          const colour = row.part === null ? "--edge" : (COLOURS[row.part] ?? "--soft");
          const bar = s("rect", {
            x: `${(100 * row.from) / longest}%`,
            y: 0,
            width: `${Math.max(0.4, (100 * row.time) / longest)}%`,
            height: 5,
          });
          bar.style.fill = `var(${colour})`;
          return h(
            "div",
            { class: "fall", title: `${words}: ${time(row.time, 4)}, ${share(row.time / (total || 1), 2)}` },
            h("span", { class: "fall-name" }, words),
            h("span", { class: "number" }, time(row.time, 3)),
            s("svg", { width: "100%", height: 5, "aria-hidden": "true" }, bar),
          );
        }),
      ),
    ),
  );
}
