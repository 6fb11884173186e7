// The ledger: every claim of the papers with its verdict.

import { get, jobs, link } from "./api.js";
import { choice, debounce, h, keep, put, s } from "./dom.js";
import { action, figure, figureName, isFigure, likely, problemOf, progress, trouble } from "./parts.js";
import { inUnit, plural, wall } from "./format.js";
import { change, quickOf } from "./toml.js";
import { startHere } from "./start.js";
import { openText } from "./bench.js";
import { asking } from "./why.js";

export const title = "Ledger";

/** Verdicts: word, sign, colour. Signs differ in shape, so that they do not need the colour. */
const STATES = {
  holds: ["holds", "●", "good"],
  partly: ["holds in part", "◐", "fair"],
  fails: ["does not hold", "○", "bad"],
  needs: ["needs a scheme", "◌", "none"],
  unclear: ["cannot tell", "◌", "none"],
  untold: ["no data", "◌", "none"],
  measured: ["measured", "◇", "none"],
  never: ["not run yet", "·", "none"],
};
const HOLDS = { holds: "good", partly: "fair", "does not hold": "bad" };
const about = {
  BFC: "backpressure for each flow, hop by hop",
  SFC: "pauses sent straight to the source",
  DVL: "queues made on demand for congested flows",
  PortFC: "lossless BCube without deadlock",
  Blitz: "receivers divide, switches deflect",
  HPCC: "senders that know how full every link is",
  ConWeave: "flows change paths, and the last switch puts packets in order",
  Floodgate: "windows between switches, for each receiver",
  LetFlow: "flowlets over paths drawn at random",
  REPS: "packets over paths that were good a moment ago",
  "no document": "every scheme against every other",
};
/** Rows of no document are the league's. */
const called = (name) => (name === "no document" ? "League" : name);

export function open(root, route) {
  return new Ledger(root, route);
}

class Ledger {
  constructor(root, route) {
    this.root = root;
    this.route = route;
    this.live = [];
    this.list = h("nav", { class: "ledger-list", "aria-label": "Claims" });
    this.page = h("article", { class: "ledger-page", "aria-live": "off" });
    this.frame = h("div", { class: "ledger" }, this.list, this.page);
    put(root, h("p", { class: "loading", role: "status" }, "Reading the ledger…"));
    this.wanted = route.query.get("q") ?? "";
    this.document = route.query.get("document") ?? "";
    this.verdict = route.query.get("verdict") ?? "";
    this.stop = jobs.watch((job) => this.heard(job));
    this.load();
  }

  close() {
    this.stop();
    this.quiet();
  }

  quiet() {
    for (const one of this.live) one.stop();
    this.live = [];
  }

  async load() {
    try {
      [this.all] = await Promise.all([get("/api/experiments"), jobs.all().catch(() => [])]);
    } catch (error) {
      put(this.root, h("div", { class: "plain-view" }, trouble(error)));
      return;
    }
    this.build();
    this.update(this.route);
  }

  build() {
    const remember = debounce(() => this.write(), 200);
    const search = h("input", {
      type: "search",
      placeholder: "Search the claims",
      "aria-label": "Search the claims",
      "data-search": true,
      value: this.wanted,
      oninput: (event) => {
        this.wanted = event.target.value;
        this.fill();
        remember();
      },
    });
    this.docChips = h("div", { class: "chips", role: "group", "aria-label": "Document" });
    this.chips = h("div", { class: "chips", role: "group", "aria-label": "Verdict" });
    this.bar = h("div", { class: "tally", "aria-hidden": "true" });
    this.body = h("div", {});
    put(this.list, h("div", { class: "ledger-head" }, search, this.docChips, this.chips, this.bar), this.body);
    put(this.root, this.frame);
    this.fill();
  }

  write() {
    const query = new URLSearchParams();
    if (this.wanted) query.set("q", this.wanted);
    if (this.document) query.set("document", this.document);
    if (this.verdict) query.set("verdict", this.verdict);
    const text = query.toString();
    history.replaceState(null, "", `#/ledger${this.id ? `/${this.id}` : ""}${text ? `?${text}` : ""}`);
  }

  fill() {
    const running = new Map(
      jobs
        .running()
        .filter((job) => job.kind === "reproduce")
        .map((job) => [job.experiment ?? job.name, job]),
    );
    const words = this.wanted.toLowerCase().split(/\s+/).filter(Boolean);
    const found = this.all.filter((one) => {
      const text =
        `${one.id} ${one.title} ${one.document} ${one.place ?? ""} ${one.says ?? ""} ${(one.claims ?? []).map((claim) => claim.paper).join(" ")}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const toggle = (key, value, text, n) =>
      h(
        "button",
        {
          type: "button",
          class: "chip",
          "aria-pressed": String(this[key] === value),
          onclick: () => {
            this[key] = this[key] === value ? "" : value;
            this.fill();
            this.write();
          },
        },
        text,
        h("span", { class: "sub" }, n),
      );
    const of = (list, key) => list.reduce((map, one) => map.set(key(one), (map.get(key(one)) ?? 0) + 1), new Map());
    put(
      this.docChips,
      [...of(this.all, (one) => one.document)].map(([name, n]) => toggle("document", name, called(name), n)),
    );
    const counts = of(this.all, (one) => one.state);
    put(
      this.chips,
      Object.entries(STATES)
        .filter(([state]) => counts.has(state))
        .map(([state, [text, sign]]) => toggle("verdict", state, `${sign} ${text}`, counts.get(state))),
    );
    put(this.bar, tallyParts(this.all));
    const shown = found.filter(
      (one) => (!this.document || one.document === this.document) && (!this.verdict || one.state === this.verdict),
    );
    const groups = new Map();
    for (const one of shown) groups.set(one.document, [...(groups.get(one.document) ?? []), one]);
    const focus = this.body.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    put(
      this.body,
      [...groups].map(([name, list]) => [
        h("h2", {}, called(name)),
        h(
          "ul",
          { class: "claims" },
          list.map((one) => h("li", {}, this.row(one, running.get(one.id)))),
        ),
      ]),
      shown.length === 0 && h("p", { class: "loading" }, "No claim is like that."),
    );
    if (focus) this.body.querySelector(`[data-id="${focus}"]`)?.focus({ preventScroll: true });
  }

  row(one, job) {
    const [word, sign, colour] = job ? ["runs", "▸", "live"] : (STATES[one.state] ?? STATES.never);
    const query = location.hash.split("?")[1];
    return h(
      "a",
      {
        class: "claim",
        "data-id": one.id,
        href: `#/ledger/${one.id}${query ? `?${query}` : ""}`,
        "aria-current": one.id === this.id ? "true" : null,
      },
      h("span", { class: `sign ${colour}`, role: "img", "aria-label": word, title: word }, sign),
      h("span", { class: "claim-title" }, one.title),
      h("span", {}),
      h("span", { class: "claim-id" }, one.id, cells(one)),
    );
  }

  heard(job) {
    if (!this.all || job.kind !== "reproduce") return;
    const busy = jobs
      .running()
      .filter((one) => one.kind === "reproduce")
      .map((one) => one.id)
      .join();
    if (busy !== this.busy) {
      this.busy = busy;
      this.fill();
    }
    if (job.state === "done" && this.seen !== `${job.id}`) {
      this.seen = `${job.id}`;
      this.renew(job.experiment ?? job.name);
    }
  }

  // A verdict has come: ask for that one claim.
  async renew(id) {
    try {
      const one = await get(`/api/experiments/${id}`);
      this.all = this.all.map((old) => (old.id === id ? { ...old, ...one } : old));
      this.fill();
      if (this.id === id) this.show(id);
    } catch {
      /* the list stays as it was */
    }
  }

  update(route) {
    this.route = route;
    if (!this.all) return;
    this.id = route.path;
    this.frame.classList.toggle("opened", Boolean(this.id));
    this.fill();
    this.quiet();
    if (this.id) this.show(this.id);
    else this.welcome();
  }

  welcome() {
    document.title = "Ledger – Tailwater studio";
    const documents = [...new Set(this.all.map((one) => one.document))];
    const first = keep.get("started") !== "no";
    put(
      this.page,
      first && startCard(() => this.welcome()),
      h("h1", {}, "What the papers say, and what we measure"),
      h(
        "p",
        {},
        `Each of these ${this.all.length} rows is an experiment that can be run here. Most are something that a paper claims about flow control in lossless fabrics: such a row draws the paper's figure and says whether the claim holds, with the measured number beside the paper's. The league's are questions of our own, and have measurements instead of verdicts.`,
      ),
      h(
        "div",
        { class: "table" },
        h(
          "table",
          { class: "docs" },
          h(
            "tbody",
            {},
            documents.map((name) => {
              const list = this.all.filter((one) => one.document === name);
              const done = list.filter((one) => one.state !== "never").length;
              return h(
                "tr",
                {},
                h(
                  "td",
                  {},
                  h(
                    "a",
                    {
                      href: `#/ledger?document=${encodeURIComponent(name)}`,
                      onclick: () => {
                        this.document = name;
                        this.fill();
                      },
                    },
                    called(name),
                  ),
                ),
                h("td", { class: "sub" }, about[name] ?? ""),
                h("td", {}, h("div", { class: "tally", "aria-hidden": "true" }, tallyParts(list))),
                h("td", { class: "number sub" }, `${done} of ${list.length} run`),
              );
            }),
          ),
        ),
      ),
      h(
        "ul",
        { class: "links" },
        h("li", {}, h("strong", {}, "Ledger"), "Find a claim, run it, read the verdict. Quick scale takes under a minute."),
        h(
          "li",
          {},
          h("a", { href: "#/bench" }, h("strong", {}, "Bench")),
          "Write a scenario of your own, or change an example, and compare schemes on it.",
        ),
        h(
          "li",
          {},
          h("a", { href: "#/fabric" }, h("strong", {}, "Fabric")),
          "Watch a run: queues fill, links are paused, control frames travel.",
        ),
        h("li", {}, h("a", { href: "#/results" }, h("strong", {}, "Results")), "Numbers, figures and files of every run."),
      ),
    );
  }

  async show(id) {
    const known = this.all.find((one) => one.id === id);
    if (!known) {
      put(this.page, trouble({ message: `There is no claim ${id}.`, help: "The list has all of them." }));
      return;
    }
    document.title = `${known.title} – Tailwater studio`;
    let whole, past;
    try {
      whole = await get(`/api/experiments/${id}`);
      past = await jobs.all();
    } catch (error) {
      put(this.page, trouble(error));
      return;
    }
    if (this.id !== id) return;
    this.quiet();
    const { verdict } = whole;
    const [word, , colour] = STATES[whole.state] ?? STATES.never;
    const busy = jobs.running().find((job) => job.kind === "reproduce" && (job.experiment ?? job.name) === id);
    const place = h("div", { class: "runs-here" });
    const follow = (job) => {
      const live = progress(job, (ended) => {
        if (ended.state !== "done") put(place, live.element, problemOf(ended));
      });
      this.live.push(live);
      put(place, live.element);
    };
    if (busy) follow(busy.id);
    const run = (scale, text, props) =>
      action(text, async () => follow(await jobs.start({ kind: "reproduce", id, scale })), props);
    const size = (scale) => whole.scale?.[scale]?.runs;
    const quick = quickOf(whole.text ?? "");
    const expectations = whole.expectations ?? verdict?.expectations ?? whole.claims ?? [];
    const figures = (whole.figures ?? []).filter(isFigure);
    put(
      this.page,
      h("p", { class: "place" }, h("a", { href: "#/ledger" }, "All claims"), ` / ${whole.id}`),
      h("h1", {}, whole.title),
      h(
        "p",
        { class: "place" },
        h("span", { class: `badge ${colour === "none" ? "" : colour}` }, word),
        ` ${called(whole.document)}${whole.place ? `, ${whole.place}` : ""}`,
        verdict &&
          `; ${verdict.scale} scale, ${plural(verdict.runs, "run")}${verdict.seeds ? `, ${plural(verdict.seeds, "seed")}` : ""}`,
      ),
      whole.says && h("blockquote", { class: "says" }, whole.says),
      h(
        "div",
        { class: "actions" },
        run("quick", verdict ? "Run quick again" : "Run quick", { class: "button main" }),
        size("quick") !== undefined &&
          h(
            "span",
            { class: "sub" },
            size("quick") ? [plural(size("quick"), "run"), estimate(past, id, "quick", size("quick"))].join("") : "nothing to simulate",
          ),
        size("paper") > 0 &&
          run("paper", `At paper scale, ${plural(size("paper"), "run")}${estimate(past, id, "paper", size("paper"))}`),
        whole.scenario &&
          size("quick") > 0 &&
          h(
            "button",
            { type: "button", class: "button", onclick: () => openText(change(whole.scenario, quick.sets), quick.presets) },
            "Its scenario on the bench",
          ),
        (whole.page || figures.length > 0) &&
          h(
            "a",
            { class: "quiet", href: link(`/api/ledger/${id}/report.html`), target: "_blank", rel: "noopener" },
            "whole report",
          ),
      ),
      watching(whole),
      place,
      whole.missing?.length > 0 && h("p", { class: "sub" }, `Needs what is not there yet: ${whole.missing.join(", ")}.`),
      h("h2", {}, verdict ? "Claimed and measured" : "Claimed"),
      table(expectations, Boolean(verdict)),
      figures.length > 0 && [
        h("h2", {}, "Figures"),
        h(
          "div",
          { class: "figures" },
          figures.map((path) => {
            const one = figure(`/api/ledger/${id}/${path}`, figureName(path));
            // Pictures with several panels are wide.
            one
              .querySelector("img")
              .addEventListener("load", (event) =>
                one.classList.toggle("wide", event.target.naturalWidth > 2 * event.target.naturalHeight),
              );
            return one;
          }),
        ),
      ],
      whole.reading && [h("h2", {}, "How we read it"), h("p", {}, whole.reading)],
      whole.text && h("details", {}, h("summary", {}, "The experiment's file"), h("pre", {}, whole.text)),
    );
  }
}

/** A run of a claim, or two side by side, recorded to be watched. */
function watching({ id, runs, scenario }) {
  if (!scenario || !runs?.length) return null;
  const options = runs.map(({ name }, at) => [at, name]);
  const first = choice({ "aria-label": "Run to watch" }, options, 0);
  const beside = choice({ "aria-label": "Beside it" }, [["", "alone"], ...options], runs.length > 1 ? 1 : "");
  const start = async (at) => {
    const { name, sets } = runs[at];
    return jobs.start(asking({ kind: "run", name: `${id}: ${name}`.slice(0, 200), text: scenario, sets, record: true }));
  };
  const watch = async () => {
    const chosen = [...new Set([first.value, beside.value].filter((at) => at !== ""))];
    const made = [];
    for (const at of chosen) made.push(await start(at));
    location.hash = `#/fabric?job=${made[0]}&run=0${made.length > 1 ? `&also=${made[1]}` : ""}`;
  };
  return h(
    "div",
    { class: "actions watching" },
    action("Watch a run of it", watch, { title: "Runs it once at quick scale with its first seed, recorded and asked why" }),
    first,
    runs.length > 1 && [h("span", { class: "sub" }, "beside"), beside],
  );
}

function startCard(closed) {
  return h(
    "section",
    { class: "start", "aria-labelledby": "start" },
    h("h2", { id: "start" }, "Start here"),
    h(
      "p",
      {},
      "Twenty-four servers answer one at the same instant, while others only pass by. Watch what PFC does to the bystanders, and what BFC does instead, side by side on the same traffic. It takes a second or two.",
    ),
    h("p", {}, action("Run it and watch", startHere, { class: "button main" })),
    h(
      "button",
      {
        type: "button",
        class: "close",
        "aria-label": "Do not show this again",
        title: "Do not show this again",
        onclick: () => {
          keep.set("started", "no");
          closed();
        },
      },
      "×",
    ),
  );
}

function tallyParts(list) {
  const part = (states, colour) => {
    const n = list.filter((one) => states.includes(one.state)).length;
    return n > 0 && h("span", { class: colour, style: { flex: String(n) } });
  };
  const rest = list.filter((one) => one.state === "never").length;
  return [
    part(["holds"], "good"),
    part(["partly"], "fair"),
    part(["fails"], "bad"),
    part(["measured", "needs", "unclear", "untold"], "asked"),
    rest > 0 && h("span", { style: { flex: String(rest) } }),
  ];
}

// One small mark for each expectation.
function cells(one) {
  const list = one.verdict?.expectations ?? one.claims ?? [];
  if (!list.length) return null;
  return h(
    "span",
    { class: "cells", "aria-hidden": "true" },
    list.slice(0, 16).map((claim) => h("span", { class: `cell ${HOLDS[claim.holds] ?? ""}` })),
  );
}

const badge = { holds: ["good", "● holds"], partly: ["fair", "◐ partly"], "does not hold": ["bad", "○ does not hold"] };

function table(list, measured) {
  if (!list.length) return h("p", { class: "sub" }, "It claims no numbers.");
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      { class: "expect" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", {}, "the paper"),
          h("th", { class: "number" }, "expected"),
          measured && [h("th", { class: "number" }, "measured"), h("th", {}, ""), h("th", {}, "verdict")],
        ),
      ),
      h(
        "tbody",
        {},
        list.map((one) => {
          const [colour, text] = badge[one.holds] ?? ["", one.holds ?? ""];
          return h(
            "tr",
            {},
            h("td", {}, one.paper, one.band && h("span", { class: "band" }, one.band)),
            h(
              "td",
              { class: "number", "data-label": "expected" },
              range(one, one.unit),
              one.partly && h("span", { class: "band" }, `partly ${range({ ...one, ...given(one.partly) }, one.unit)}`),
            ),
            measured && [
              h(
                "td",
                { class: "number", "data-label": "measured" },
                one.value === null || one.value === undefined
                  ? h("span", { class: "sub" }, one.why ?? "–")
                  : [
                      inUnit(one.value, one.unit),
                      one.interval &&
                        h("span", { class: "pm" }, ` ${inUnit(one.interval[0], one.unit)} to ${inUnit(one.interval[1], one.unit)}`),
                    ],
              ),
              h("td", {}, gauge(one)),
              h(
                "td",
                {},
                h("span", { class: `badge ${colour}` }, text),
                one.value !== null && one.why && h("span", { class: "band" }, one.why),
                one.few_samples && h("span", { class: "band" }, `few samples: ${one.samples}`),
              ),
            ],
          );
        }),
      ),
    ),
  );
}

// The bounds that are there.
function given(bounds) {
  return Object.fromEntries(Object.entries(bounds).filter(([, bound]) => bound !== null && bound !== undefined));
}

function range({ at_least: low, at_most: high }, unit) {
  if (low !== null && low !== undefined && high !== null && high !== undefined)
    return low === high ? inUnit(low, unit) : `${inUnit(low, unit)} to ${inUnit(high, unit)}`;
  if (low !== null && low !== undefined) return `≥ ${inUnit(low, unit)}`;
  if (high !== null && high !== undefined) return `≤ ${inUnit(high, unit)}`;
  return "asked";
}

// The range as a band, the value as a mark in or beside it.
function gauge(one) {
  const { value, at_least: low, at_most: high, partly, interval } = one;
  const ends = [low, high, partly?.at_least, partly?.at_most].filter((end) => end !== null && end !== undefined);
  if (value === null || value === undefined || !Number.isFinite(value) || !ends.length) return null;
  const points = [value, ...ends, ...(interval ?? [])];
  let from = Math.min(...points),
    to = Math.max(...points);
  const room = (to - from || Math.abs(to) || 1) * 0.25;
  from -= room;
  to += room;
  const x = (at) => Math.max(0, Math.min(144, ((at - from) / (to - from)) * 144));
  const band = (a, b, kind) =>
    s("rect", { class: kind, x: x(a ?? from), y: 5, width: Math.max(1.5, x(b ?? to) - x(a ?? from)), height: 14, rx: 2 });
  const wide = partly && (partly.at_least ?? partly.at_most) !== undefined;
  return s(
    "svg",
    { class: "gauge", viewBox: "0 0 144 24", role: "img", "aria-label": `${one.holds ?? ""}` },
    s("path", { class: "g-axis", d: "M0 12H144" }),
    wide && band(partly.at_least ?? low, partly.at_most ?? high, "g-part"),
    band(low, high, "g-range"),
    interval &&
      s("path", {
        class: "g-interval",
        d: `M${x(interval[0])} 12H${x(interval[1])}M${x(interval[0])} 8V16M${x(interval[1])} 8V16`,
      }),
    s("path", { class: "g-value", d: `M${x(value)} 7l5 5-5 5-5-5z` }),
  );
}

// How long it will take, as far as that is known from what was run here.
function estimate(past, id, scale, runs) {
  const [seconds, sure] = likely(past, id, scale, runs) ?? [];
  return seconds === undefined ? "" : `, ${sure ? "took" : "about"} ${wall(seconds)}${sure ? " here before" : ""}`;
}
