// Where the time of a flow went: a waterfall, part by part, with the same scale for every run.

import { h, s } from "./dom.js";
import { plural, share, time } from "./format.js";

/** Parts below this share of the whole are put together. */
const LEAST = 0.004;

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

/** The parts one after the other: [{name, place, part, from, time}], from the sender along the path to the receiver. */
export function falls(parts) {
  const place = ({ part, hop }) => (part === "receiver" ? Infinity : (hop ?? -1));
  const total = parts.reduce((sum, part) => sum + part.time_ps, 0);
  const rows = [];
  let at = 0,
    small = null;
  for (const one of [...parts].sort((a, b) => place(a) - place(b))) {
    const row = { part: one.part, place: one.place, from: at, time: one.time_ps };
    at += one.time_ps;
    if (one.time_ps < total * LEAST) {
      // Next to each other they are one row.
      if (small && small === rows.at(-1)) {
        small.time += row.time;
        small.count++;
      } else rows.push((small = { ...row, part: null, count: 1 }));
      continue;
    }
    small = null;
    rows.push(row);
  }
  return { rows, total };
}

/** Waterfalls of one flow in several runs: `runs` is [{name, parts}]. */
export function waterfall(runs) {
  const all = runs.map(({ name, parts }) => ({ name, ...falls(parts) }));
  const longest = Math.max(1, ...all.map(({ total }) => total));
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
