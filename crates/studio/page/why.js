// Why: what the studio knows of the causes of a run, and the part of a card that tells it.

import { get, jobs } from "./api.js";
import { h, put } from "./dom.js";
import { plural, time } from "./format.js";
import { action, trouble } from "./parts.js";
import { Stops } from "./stops.js";

/** Of so many stops the one that tells most is looked for. */
const MANY = 5000;

/** The change to a scenario with which a run is asked why. */
export const ASK = "measure.why=true";

/** A request for a job that asks why, unless it says something about that itself. */
export function asking(request) {
  const says = (change) => /^\s*measure\s*(\.\s*why\s*)?=/.test(change);
  if ([...(request.sets ?? []), ...(request.vary ?? [])].some(says)) return request;
  return { ...request, sets: [...(request.sets ?? []), ASK] };
}

/** The same job once more, asked why: its number. */
export async function askAgain(job) {
  const { request, text } = job;
  const sets = (request.sets ?? []).filter((set) => !/^\s*measure\.why\s*=/.test(set));
  return jobs.start({ ...request, text, record: true, sets: [...sets, ASK] });
}

/** What is known of a run; asked for when it is needed. */
export class Why {
  /** `kept` says where: {job, index, why}. */
  constructor({ job, index, why }, recording) {
    Object.assign(this, { job, run: index, known: Boolean(why), recording, stops: null, answers: new Map() });
  }

  /** An answer about a flow or a link: {flow: 7} or {link: "a->b"}. */
  ask(words) {
    const key = new URLSearchParams(words).toString();
    if (!this.answers.has(key)) {
      const answer = get(`/api/jobs/${this.job}/why/${this.run}?${key}`);
      answer.catch(() => this.answers.delete(key));
      this.answers.set(key, answer);
      if (this.answers.size > 60) this.answers.delete(this.answers.keys().next().value);
    }
    return this.answers.get(key);
  }

  /** Has the stops around an instant; calls `then` when they are there. */
  need(ps, then) {
    if (!this.known || this.asked || this.failed) return;
    if (this.stops && ((ps >= this.stops.from && ps <= this.stops.until) || this.stops.count >= this.stops.total)) return;
    this.asked = true;
    get(`/api/jobs/${this.job}/stops/${this.run}?at=${Math.max(0, Math.round(ps))}`)
      .then(
        (table) => {
          this.stops = new Stops(table, this.recording);
        },
        (error) => {
          this.failed = error;
        },
      )
      .finally(() => {
        this.asked = false;
        then();
      });
  }

  /** Of all stops of a port, or those at which a flow waited, the one that tells most. */
  foremost(part) {
    const { stops } = this;
    const { waits, port } = part;
    if (part.best?.stops !== stops) {
      const list = waits ? waits.map(([row]) => stops.places.get(row)) : (stops.byPort.get(port) ?? []);
      part.best = { stops, at: stops.foremost(list.filter((at) => at !== undefined).slice(0, MANY)) };
    }
    return part.best.at;
  }

  /** The stop to tell of at an instant: of the port that is selected, or of the flow. */
  stopAt({ port, waits }, ps) {
    const { stops, recording } = this;
    if (!stops) return null;
    const from = Math.min(ps, recording.frameStart(recording.frameAt(ps)));
    if (waits) {
      const found = waits.filter(([, begin, end]) => begin <= ps && end > from).map(([row]) => stops.places.get(row));
      return stops.foremost(found.filter((at) => at !== undefined));
    }
    return port === null || port === undefined ? null : stops.foremost(stops.within(port, from, ps));
  }
}

const arrow = (text) => text.replaceAll("->", " → ");

/** A chain step by step, as a list whose steps can be picked. */
export function chainList(view, stops, at) {
  const chain = stops.chain(at);
  const root = stops.root(chain);
  const { recording } = stops;
  const go = (step) => () => {
    view.toggle(false);
    const [begin, end] = [stops.begin(step), stops.end(step)];
    if (view.state.t < begin || view.state.t > end) view.seek(Math.min(end, begin + 1));
    view.pick(stops.port(step));
  };
  return h(
    "ol",
    { class: "chain" },
    chain.steps.map((step) =>
      h(
        "li",
        {},
        h("button", { type: "button", class: "textual", onclick: go(step) }, arrow(recording.portName(stops.port(step)))),
        ` had ${stops.words(step)}.`,
      ),
    ),
    h(
      "li",
      { class: "root" },
      h("strong", {}, "The root: "),
      root.ports.length === 1
        ? h("button", { type: "button", class: "textual", onclick: () => view.pick(root.ports[0]) }, `${root.words}.`)
        : `${root.words}.`,
    ),
  );
}

/** Those who waited because of a root and do not pass through it. */
function victims(view, root) {
  const list = root.victim_flows ?? [];
  if (!root.victims) return h("p", { class: "facts" }, "No victims: all that waited because of it pass through it.");
  return h(
    "details",
    { class: "victims", open: list.length < 7 },
    h("summary", {}, `${plural(root.victims, "victim")}, ${time(root.victim_ps, 3)} of waiting in all`),
    h(
      "div",
      { class: "flow-buttons" },
      list.map((victim) =>
        h(
          "button",
          { type: "button", class: "textual", onclick: () => view.pickNumber(victim.flow) },
          `${victim.src} → ${victim.dst}, flow ${victim.flow}, ${victim.group}: ${time(victim.waited_ps, 3)}${victim.for_ever ? ", never ends" : ""}`,
        ),
      ),
      root.victims > list.length && h("span", { class: "sub" }, `and ${plural(root.victims - list.length, "more", "more")}`),
    ),
  );
}

/** What the card of a port or of a flow says of its causes, for one run. Gives {element, at(ps)}. */
export function whyPart(view, side, what, named) {
  const { why } = side;
  const now = h("div", { class: "why-now" }),
    whole = h("div", { class: "why-whole" }, h("p", { class: "facts" }, "Looking for causes…"));
  const element = h("div", { class: "why" }, named && h("h3", {}, side.name), now, whole);
  let shown = "";
  const part = { waits: null, port: what.port ?? null };
  const at = (ps) => {
    const stop = why.stopAt(part, ps);
    const { stops } = why;
    const key = `${stops?.from} ${stop}`;
    if (key === shown) return;
    shown = key;
    if (stop !== null) {
      put(now, h("p", { class: "facts live" }, "Why it waits now:"), chainList(view, stops, stop));
      return;
    }
    // Not now: one of its stops tells most of what there is.
    const other = stops && why.foremost(part);
    put(
      now,
      other !== null &&
        other !== undefined && [
          h(
            "p",
            { class: "facts" },
            "It does not wait now. ",
            h(
              "button",
              {
                type: "button",
                class: "textual",
                onclick: () => {
                  view.toggle(false);
                  view.seek(stops.begin(other) + 1);
                },
              },
              `One of its stops, at ${time(stops.begin(other), 4)}`,
            ),
            ":",
          ),
          chainList(view, stops, other),
        ],
    );
  };
  side.cause = part;
  why
    .ask(what.link ? { link: what.link } : { flow: what.flow })
    .then((answer) => {
      if (!element.isConnected && !view.aside.contains(element)) return;
      part.waits = answer.waits ?? null;
      part.tree = answer.causes?.[0]?.root ?? null;
      what.parts?.(answer.parts ?? []);
      part.best = null;
      // Of a link, what it did; of a flow, how long it waited.
      const lead = answer.lead ?? (answer.sentences ?? []).slice(0, 1);
      put(
        whole,
        h("p", { class: "facts" }, arrow(lead.join(" "))),
        (answer.causes ?? []).slice(0, 3).map(({ root, waited_ps, stopped_ps, stops: count, victim }) => [
          h(
            "p",
            { class: "facts live" },
            waited_ps !== undefined
              ? `${time(waited_ps, 3)} because ${arrow(root.clause)}${victim ? ", through which it does not pass" : ""}.`
              : `${plural(count, "stop")}, ${time(stopped_ps, 3)} in all, because ${arrow(root.clause)}.`,
          ),
          victims(view, root),
        ]),
        (answer.losses ?? []).slice(0, 3).map(({ sentence }) => h("p", { class: "facts live lost-packets" }, arrow(sentence))),
        (answer.root ?? []).map((root) => [
          h("p", { class: "facts live" }, `It is a root itself. ${arrow(root.sentence)}`),
          root.victims > 0 && victims(view, root),
        ]),
      );
      shown = "";
      view.redraw();
    })
    .catch((error) => put(whole, trouble(error)));
  return { element, at };
}

/** What a card says where causes are not known. */
export function notAsked(view) {
  const { job } = view;
  if (view.live) return h("p", { class: "facts why" }, "Why it waits is known when the run is over, if it was asked.");
  return h(
    "div",
    { class: "why" },
    h("p", { class: "facts" }, "Why it waited is not known: this run was not asked. With it a run takes up to twice as long."),
    job.kind !== "reproduce" &&
      action(
        "Run it again, asked why",
        async () => {
          const id = await askAgain(job);
          location.hash = `#/fabric?${new URLSearchParams({ ...view.address(), job: id })}`;
        },
        { class: "button small" },
      ),
  );
}
