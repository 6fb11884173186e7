// A run once more: a closer look at some microseconds of it, or the packets of one port.

import { getText, jobs, link } from "./api.js";
import { h, put } from "./dom.js";
import { timeText } from "./format.js";
import { action, note, problemOf, progress } from "./parts.js";
import { windowAt } from "./tracks.js";
import { asking } from "./why.js";

/** The scenario of a run as it was run, and changes to it. */
async function scenarioOf({ job, run }) {
  if (job.kind === "run") return { text: job.text, sets: job.request.sets ?? [] };
  return { text: await getText(`/api/jobs/${job.id}/files/runs/${run.index}/scenario.toml`), sets: [] };
}

/** A request for a run like that of a side, with changes that take the place of earlier ones. */
async function likeIt(side, name, changes) {
  const { text, sets } = await scenarioOf(side);
  const keys = Object.keys(changes);
  const kept = sets.filter((set) => !keys.includes(set.split("=")[0].trim()));
  return { kind: "run", name: name.slice(0, 200), text, sets: [...kept, ...keys.map((key) => `${key}=${changes[key]}`)] };
}

/** Runs what is shown again, with frames of 100 ns around the instant, and opens that. */
export async function lookCloser(view) {
  const { state, span, sides } = view;
  const { from, to, every } = windowAt(state.t, span, sides[0].recording.ports.length, view.chosenWindow);
  const made = [];
  for (const side of sides) {
    const request = await likeIt(side, `${view.job.name ?? "a run"}, closer: ${side.name}`, { stop: `${to}ps` });
    // What was asked why already knows all stops, also how they ended.
    const asked = side.why.known ? request : asking(request);
    made.push(await jobs.start({ ...asked, record: true, closer: { from: `${from}ps`, every: `${every}ps` } }));
  }
  const query = new URLSearchParams({ job: made[0], run: 0 });
  if (made[1] !== undefined) query.set("also", made[1]);
  query.set("t", timeText(Math.min(to, Math.max(from, state.t))));
  for (const key of ["port", "flow", "eye"]) if (view.address()[key] !== undefined) query.set(key, view.address()[key]);
  query.set("of", sides.map((side) => `${side.why.job}.${side.why.run}`).join(","));
  query.set("back", new URLSearchParams(view.address()).toString());
  location.hash = `#/fabric?${query}`;
}

/** A button that has the packets of a port captured, for analysers, in the run that was last pointed at. */
export function captureButton(view, port) {
  const side = view.active ?? view.sides[0];
  const name = side.recording.portName(port);
  const key = `${side.job.id}/${side.run.index}/${name}`;
  view.captures ??= new Map();
  if (view.captures.has(key)) return view.captures.get(key);
  const place = h("div", { class: "capture" });
  const start = action(
    view.sides.length > 1 ? `capture this port under ${side.name}` : "capture this port",
    async () => {
      const request = await likeIt(side, `${name} captured`, { "measure.capture": JSON.stringify([name]) });
      const id = await jobs.start({ ...request, record: true });
      const live = progress(id, (job) => {
        if (job.state !== "done") {
          put(place, live.element, problemOf(job));
          return;
        }
        put(place, h("a", { class: "button small", href: link(`/api/jobs/${id}/files/capture.pcapng`), download: `${name}.pcapng` }, "save capture.pcapng"));
        note(`The packets of ${name} are captured.`);
      });
      view.stop.push(live.stop);
      put(place, live.element);
      view.captures.set(key, place);
    },
    { class: "button small", title: "Runs it again and keeps the packets that this port sends, for Wireshark" },
  );
  put(place, start);
  return place;
}
