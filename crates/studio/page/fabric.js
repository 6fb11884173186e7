// The fabric view: a run as it happened, one or two of them in lock step.

import { jobs, over, sharedLink } from "./api.js";
import { choice, debounce, h, put, say } from "./dom.js";
import { chart } from "./charts.js";
import { Camera, grown } from "./stage.js";
import { Side } from "./side.js";
import { HEATS } from "./heat.js";
import { FlowList, icon, legend, Now, save, Timeline, took } from "./panels.js";
import { forgetRecordings, jobWhole, recordingOf } from "./jobdata.js";
import { action, note, problemOf, progress, trouble } from "./parts.js";
import { bytes, count, number, plural, rate, readTime, share, time, timeText } from "./format.js";
import { START, startHere } from "./start.js";

export const title = "Fabric";
const SPEEDS = [0.125, 0.25, 0.5, 1, 2, 4, 8];
const SPEED_NAMES = ["⅛", "¼", "½", "1", "2", "4", "8"];
/** At speed 1 a run takes this many seconds to watch. */
const SHOW = 24;
/** A fabric with more hosts than this is shown as a map of its ports first: a picture has no room for them. */
const CROWD = 256;
/** Tails that are no further apart are as good as the same. */
const ALIKE = 1.05;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function open(root, route) {
  const view = new View(root);
  view.update(route);
  return view;
}

class View {
  constructor(root) {
    this.root = root;
    this.stop = [];
    this.state = {};
    this.camera = new Camera();
    this.sides = [];
    this.charts = [];
    this.playing = false;
    const look = () => {
      for (const side of this.sides) side.stage.look();
      this.drawCharts();
      this.redraw();
    };
    document.addEventListener("look", look);
    this.sizes = new ResizeObserver(() => this.fit());
    this.stop.push(
      () => document.removeEventListener("look", look),
      () => this.sizes.disconnect(),
    );
    this.speak = debounce(() => this.announce(), 500);
    this.remember = debounce(() => this.write(), 250);
  }

  close() {
    this.write();
    this.closed = true;
    this.playing = false;
    cancelAnimationFrame(this.beat);
    this.remember.cancel();
    this.speak.cancel();
    this.waiting?.stop();
    this.abort?.abort();
    for (const f of this.stop) f();
  }

  async update({ query }) {
    const whole = (name) =>
      query.get(name) === null || query.get(name) === "" || Number.isNaN(Number(query.get(name)))
        ? null
        : Number(query.get(name));
    const next = {
      job: whole("job"),
      run: whole("run") ?? 0,
      with: whole("with"),
      t: readTime(query.get("t")),
      port: whole("port"),
      flow: whole("flow"),
      // Somebody has closed what was chosen for them.
      closed: query.get("flow") === "none",
      eye: query.get("eye"),
      view: ["heat", "picture"].includes(query.get("view")) ? query.get("view") : null,
      heat: HEATS[query.get("heat")] ? query.get("heat") : "queue",
      speed: SPEEDS.includes(whole("speed")) ? whole("speed") : 1,
      play: query.get("play") === "1",
      root: query.get("bars") === "root",
    };
    if (query.get("job") && next.job === null) {
      put(
        this.root,
        h(
          "section",
          { class: "empty" },
          h("h1", {}, "This link names no job"),
          h("p", {}, `It says “job=${query.get("job")}”, and a job is a number.`),
          h("p", {}, h("a", { href: "#/jobs" }, "All jobs")),
        ),
      );
      this.sides = [];
      this.state = {};
      return;
    }
    if (next.job === null) {
      let latest;
      try {
        latest = (await jobs.all()).find((job) => job.kind !== "reproduce" && job.state === "done");
      } catch (error) {
        put(this.root, trouble(error));
        return;
      }
      if (this.closed) return;
      if (!latest) {
        this.nothing();
        return;
      }
      next.job = latest.id;
      next.with = next.run === 0 && (latest.schemes?.length ?? 0) > 1 ? (latest.seeds ?? 1) : null;
    }
    const other = next.job !== this.state.job || next.run !== this.state.run || next.with !== this.state.with;
    this.state = next;
    if (other || !this.sides.length) await this.load();
    else this.apply();
  }

  nothing() {
    put(
      this.root,
      h(
        "section",
        { class: "empty" },
        h("h1", {}, "Nothing to watch yet"),
        h(
          "p",
          {},
          "A run that is recorded can be watched here: queues as they fill, links as they are paused, flows in flight.",
        ),
        h("p", {}, action("Start here: an incast under two schemes", startHere, { class: "button main" })),
        h("p", {}, "Or write a scenario of your own on the ", h("a", { href: "#/bench" }, "bench"), "."),
      ),
    );
  }

  async load() {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.waiting?.stop();
    this.sides = [];
    this.playing = false;
    put(this.root, h("p", { class: "loading", role: "status" }, "Loading the recording…"));
    try {
      await jobs.all();
      const { job, runs } = await jobWhole(this.state.job, signal);
      if (signal.aborted) return;
      if (!over(job)) {
        this.wait(job);
        return;
      }
      this.job = job;
      this.runs = runs.filter((run) => run.recording);
      if (job.state === "failed" || job.state === "cancelled") {
        if (!this.runs.length) {
          put(
            this.root,
            h(
              "section",
              { class: "empty" },
              h("h1", {}, job.state === "failed" ? "This job failed" : "This job was cancelled"),
              problemOf(job),
              h("p", {}, h("a", { href: "#/jobs" }, "All jobs")),
            ),
          );
          return;
        }
      }
      if (!this.runs.length) {
        put(
          this.root,
          h(
            "section",
            { class: "empty" },
            h("h1", {}, "Nothing was recorded"),
            h(
              "p",
              {},
              "This job ran without a recording, so there is nothing to watch. Its numbers are in the ",
              h("a", { href: `#/results?job=${job.id}` }, "results"),
              ".",
            ),
          ),
        );
        return;
      }
      const first = this.runs.find((run) => run.index === this.state.run) ?? this.runs[0];
      const second = this.runs.find((run) => run.index === this.state.with && run !== first) ?? null;
      this.state.run = first.index;
      this.state.with = second?.index ?? null;
      const chosen = [first, second].filter(Boolean);
      const recordings = await Promise.all(chosen.map((run) => recordingOf(job.id, run.index)));
      if (signal.aborted) return;
      this.build(chosen, recordings);
    } catch (error) {
      if (error.name !== "AbortError" && !this.closed)
        put(this.root, h("section", { class: "empty" }, trouble(error), h("p", {}, h("a", { href: "#/jobs" }, "All jobs"))));
    }
  }

  wait(job) {
    this.waiting = progress(job.id, () => {
      forgetRecordings(job.id);
      this.load();
    });
    put(
      this.root,
      h(
        "section",
        { class: "empty waiting" },
        h("h1", {}, job.name ?? `Job ${job.id}`),
        h(
          "p",
          {},
          job.name === START.name
            ? "Twenty-four hosts answer one at once, while others only pass by. First under PFC, which stops whole links; then under BFC, which stops single flows. The two will stand side by side."
            : "It can be watched as soon as it is done.",
        ),
        this.waiting.element,
      ),
    );
  }

  build(chosen, recordings) {
    const { state } = this;
    this.span = { from: Math.min(...recordings.map((one) => one.first)), to: Math.max(...recordings.map((one) => one.end)) };
    const [main, other] = recordings;
    const same = !other || (main.ports.length === other.ports.length && main.nodes.length === other.nodes.length);
    const deepest = Math.max(...recordings.map((one) => one.totals().deepest));
    this.sides = recordings.map((recording, at) => new Side(this, recording, chosen[at], at, deepest));
    this.same = same;
    this.active = this.sides[0];
    this.crowded = recordings.some((one) => one.nodes.filter((node) => node.kind === "host").length > CROWD);
    this.verdict = same ? verdictOf(chosen, recordings) : null;
    // The worst victim is chosen for who has chosen nothing.
    const fresh = state.port === null && state.flow === null && state.t === null && !state.closed;
    if (fresh && this.verdict?.worst !== undefined) state.flow = this.verdict.worst;
    state.t ??= this.span.from;

    const options = this.runs.map((run) => [run.index, run.label]);
    const go = (changes) => {
      Object.assign(this.state, changes);
      this.write();
      this.load();
    };
    const first = choice(
      {
        "aria-label": "Run",
        onchange: (event) =>
          go({ run: Number(event.target.value), with: state.with === Number(event.target.value) ? null : state.with }),
      },
      options,
      state.run,
    );
    const beside = choice(
      {
        "aria-label": "Beside it",
        onchange: (event) => go({ with: event.target.value === "" ? null : Number(event.target.value) }),
      },
      [["", "alone"], ...options.filter(([index]) => index !== state.run)],
      state.with ?? "",
    );
    this.found = h("datalist", { id: "ports" });
    const finder = h("input", {
      type: "search",
      list: "ports",
      placeholder: "find a port: h0",
      "aria-label": "Find a port",
      "data-search": true,
      autocomplete: "off",
      size: "20",
      oninput: (event) => this.find(event.target),
      onkeydown: (event) => {
        if (event.key === "Enter") this.find(event.target, true);
      },
    });
    this.stages = h(
      "div",
      { class: `stages n${this.sides.length}` },
      this.sides.map((side) => side.element),
    );
    this.verdictLine =
      this.verdict &&
      h(
        "p",
        { class: "verdict-above" },
        h("strong", {}, this.verdict.group),
        `: ${this.verdict.text}`,
        this.verdict.worst !== undefined && [
          "; worst ",
          h("button", { type: "button", class: "textual", onclick: () => this.pickNumber(this.verdict.worst) }, this.verdict.who),
        ],
      );
    const views = choice(
      {
        "aria-label": "View",
        onchange: (event) => {
          const [view, heat] = event.target.value.split(" ");
          Object.assign(state, { view, heat: heat ?? state.heat });
          this.chooseView();
          this.remember();
        },
      },
      [["picture", "picture"], ...Object.entries(HEATS).map(([key, { name }]) => [`heat ${key}`, `map of ${name}`])],
      this.mapped ? `heat ${state.heat}` : "picture",
    );
    this.play = h("button", { type: "button", class: "play", onclick: () => this.toggle() });
    this.readout = h("output", { class: "instant" });
    const step = (text, name, f) =>
      h("button", { type: "button", class: "step", "aria-label": name, title: name, onclick: f }, text);
    this.speedBox = choice(
      {
        "aria-label": "Speed",
        onchange: (event) => {
          state.speed = Number(event.target.value);
          this.remember();
          this.showPace();
        },
      },
      SPEEDS.map((speed, at) => [speed, `${SPEED_NAMES[at]}×`]),
      state.speed,
    );
    this.pace = h("span", { class: "pace" });
    this.mapKey = h("span", { class: "key map-key" });
    this.timeline = new Timeline(this);
    const zoom = (text, name, factor) =>
      h("button", { type: "button", class: "step", "aria-label": name, title: name, onclick: () => this.zoom(factor) }, text);
    const zooms = h(
      "div",
      { class: "zoom", role: "group", "aria-label": "Zoom" },
      zoom("−", "Farther", 1 / 1.6),
      zoom("+", "Closer", 1.6),
      zoom("⤢", "All of it", 0),
    );
    this.aside = h("aside", { class: "side", "aria-label": "What is selected" });
    const bars = h(
      "label",
      { class: "check" },
      h("input", {
        type: "checkbox",
        checked: state.root,
        onchange: (event) => {
          state.root = event.target.checked;
          this.remember();
          this.redraw();
        },
      }),
      "lift small queues",
    );
    put(
      this.root,
      h("h1", { class: "unseen" }, `Fabric: ${this.job.name ?? ""}`),
      h(
        "div",
        { class: "fabric-bar" },
        h("span", { class: "fabric-name" }, this.job.name ?? `Job ${this.job.id}`),
        h("label", {}, "run ", first),
        this.runs.length > 1 && h("label", {}, "beside ", beside),
        h("span", { class: "grow" }),
        finder,
        this.found,
        h("label", {}, "show ", views),
        bars,
        h("button", { type: "button", class: "button small", onclick: () => this.picture() }, "save picture"),
        h("button", { type: "button", class: "button small", onclick: () => this.share() }, "copy link"),
        h("a", { class: "quiet", href: `#/results?job=${this.job.id}&run=${state.run}` }, "results"),
      ),
      h(
        "div",
        { class: "fabric-body" },
        h(
          "div",
          { class: "fabric-left" },
          this.verdictLine,
          this.stages,
          h(
            "div",
            { class: "transport" },
            h(
              "div",
              { class: "buttons" },
              this.play,
              step(icon("begin"), "To the beginning", () => this.seek(this.span.from)),
              step(icon("back"), "One frame back", () => this.step(-1)),
              step(icon("on"), "One frame on", () => this.step(1)),
              this.readout,
              h("label", { class: "speed" }, this.speedBox, this.pace),
              h("span", { class: "grow" }),
              h("button", { type: "button", class: "button small", title: "Key p", onclick: () => this.peak() }, "deepest queue"),
              h(
                "button",
                { type: "button", class: "button small", title: "Key n", onclick: () => this.nextPause() },
                "next pause",
              ),
              zooms,
            ),
            this.timeline.element,
          ),
          legend(recordings, this.mapKey),
        ),
        this.aside,
      ),
    );
    // After a press with the pointer, space plays again.
    this.root.querySelector(".fabric-left").addEventListener("click", (event) => {
      if (event.detail > 0) event.target.closest("button")?.blur();
    });
    for (const side of this.sides) this.sizes.observe(side.element);
    this.sizes.observe(this.timeline.area);
    this.now = new Now(this);
    this.list = new FlowList(this);
    this.apply();
    this.chooseView();
    if (!this.same) note("These two runs have different fabrics: what is selected is of the first.");
    if (state.play && !calm.matches) this.toggle(true);
    state.play = false;
  }

  // Brings everything to the state that the address names.
  apply() {
    const { state } = this;
    const [main] = this.sides.map((side) => side.recording);
    if (state.port !== null && !main.ports[state.port]) state.port = null;
    // Links name a flow by its number in the run.
    const known = main.flows.findIndex((flow) => flow.flow === state.flow);
    this.flow = state.flow === null || known < 0 ? null : known;
    // A link, or a table of all flows, may name one that was not recorded.
    this.missing = state.flow !== null && known < 0 ? state.flow : null;
    this.speedBox.value = state.speed;
    for (const side of this.sides) side.stage.root = state.root;
    this.panels();
    this.showPace();
    this.showPlay();
    this.seek(state.t ?? this.span.from, true);
  }

  /** Whether the map is shown in place of the picture. */
  get mapped() {
    return (this.state.view ?? (this.crowded ? "heat" : "picture")) === "heat";
  }

  chooseView() {
    for (const side of this.sides) {
      side.heat.kind = this.state.heat;
      side.choose(this.mapped);
    }
    this.root.classList.toggle("mapped", this.mapped);
    put(this.mapKey, this.sides[0].heat.key());
    this.fit();
  }

  /** Selects a flow by its number in the run. */
  pickNumber(number) {
    const at = this.sides[0].recording.flows.findIndex((flow) => flow.flow === number);
    if (at >= 0) this.pickFlow(at);
  }

  /** What is on the screen as one image, with the names of the runs above. */
  picture() {
    const canvases = this.sides.map((side) => (this.mapped ? side.heatCanvas : side.canvas));
    const head = 34 * Math.min(2, devicePixelRatio || 1);
    const whole = document.createElement("canvas");
    whole.width = canvases.reduce((sum, one) => sum + one.width, 0);
    whole.height = Math.max(...canvases.map((one) => one.height)) + head;
    const style = getComputedStyle(this.stages);
    const paint = whole.getContext("2d");
    paint.fillStyle = style.getPropertyValue("--paper").trim();
    paint.fillRect(0, 0, whole.width, whole.height);
    paint.font = `600 ${head * 0.4}px ${style.fontFamily}`;
    paint.textBaseline = "middle";
    paint.fillStyle = style.getPropertyValue("--ink").trim();
    let x = 0;
    canvases.forEach((one, at) => {
      const side = this.sides[at];
      paint.fillText(`${side.name}, ${time(this.state.t)}: ${side.text}`, x + head * 0.3, head / 2, one.width - head * 0.6);
      paint.drawImage(one, x, head);
      x += one.width;
    });
    whole.toBlob((blob) => save(`${this.job.name ?? "fabric"} ${timeText(this.state.t)}.png`, blob));
  }

  /** A link to just this, that others can open where they can reach the studio. */
  async share() {
    this.write();
    const { address, others } = await sharedLink();
    try {
      await navigator.clipboard.writeText(address);
      note(others ? "Copied. Whoever has the link has this studio's token with it." : "Copied. Only this machine can open it: others need --listen.");
    } catch {
      // The clipboard is closed to pages that came without encryption.
      prompt("The link:", address);
    }
  }

  fit() {
    for (const side of this.sides) side.stage.resize();
    this.enter();
    this.timeline?.draw();
    this.drawCharts();
    this.redraw();
  }

  // To the place that the link names, as soon as it is known how large the picture is.
  enter() {
    const { stage } = this.sides[0] ?? {};
    if (!this.state.eye || !stage?.width || this.mapped) return;
    if (!stage.place) stage.arrange();
    this.camera.go(this.state.eye, stage.width, stage.height);
    this.state.eye = null;
    this.moved();
  }

  drawCharts() {
    for (const one of this.charts) {
      one.draw();
      one.at(this.state.t);
    }
    this.timeline?.draw();
  }

  get base() {
    return (this.span.to - this.span.from) / SHOW;
  }

  showPace() {
    this.pace.textContent = `${time(this.base * this.state.speed, 2)} a second`;
  }

  showPlay() {
    put(this.play, icon(this.playing ? "stop" : "play"));
    this.play.setAttribute("aria-label", this.playing ? "Stop" : "Play");
    this.play.title = `${this.playing ? "Stop" : "Play"} (space)`;
  }

  toggle(on = !this.playing) {
    if (on === this.playing) return;
    this.playing = on;
    this.showPlay();
    if (on) {
      if (this.state.t >= this.span.to) this.state.t = this.span.from;
      this.last = performance.now();
      const beat = (now) => {
        if (!this.playing) return;
        const elapsed = Math.min(100, now - this.last) / 1000;
        this.last = now;
        this.state.t = Math.min(this.span.to, this.state.t + elapsed * this.base * this.state.speed);
        this.show(now);
        if (this.state.t >= this.span.to) this.toggle(false);
        else this.beat = requestAnimationFrame(beat);
      };
      this.beat = requestAnimationFrame(beat);
    } else {
      cancelAnimationFrame(this.beat);
      this.remember();
      this.speak();
      this.redraw();
    }
  }

  seek(ps, quiet = false) {
    this.state.t = Math.max(this.span.from, Math.min(this.span.to, ps));
    this.redraw();
    if (!quiet) {
      this.remember();
      this.speak();
    }
  }

  // To the end of the frame so many before or after.
  step(by) {
    this.toggle(false);
    const recording = this.sides.reduce((a, b) => (a.recording.every < b.recording.every ? a : b)).recording;
    const frame = Math.max(
      -1,
      Math.min(
        recording.frames - 1,
        recording.frameAt(this.state.t) +
          (this.state.t < recording.frameEnd(recording.frameAt(this.state.t)) && by > 0 ? by - 1 : by),
      ),
    );
    this.seek(Math.max(this.span.from, recording.frameEnd(frame)));
  }

  // To the port and the instant of the deepest queue.
  peak() {
    let best = null;
    for (const side of this.same ? this.sides : this.sides.slice(0, 1)) {
      const found = side.recording.deepestQueue();
      if (found && found.bytes > (best?.bytes ?? 0)) best = { ...found, side };
    }
    this.toggle(false);
    if (!best) {
      note("Nothing ever waited in a queue.");
      return;
    }
    this.active = best.side;
    this.seek(best.side.recording.frameEnd(best.frame));
    this.pick(best.port);
    this.reveal(best.port);
  }

  // Brings a port into sight.
  reveal(port) {
    const { stage } = this.sides[0];
    if (this.camera.home || !stage.place) return;
    const spot = stage.place.ports[port];
    const x = spot.x * this.camera.k + this.camera.x,
      y = spot.y * this.camera.ky + this.camera.y;
    if (x > 12 && x < stage.width - 12 && y > 12 && y < stage.height - 12) return;
    this.camera.see(spot.x / stage.width, spot.y / stage.height, stage.width, stage.height);
    this.moved();
  }

  nextPause() {
    let next = Infinity;
    for (const { recording } of this.sides) {
      const { pausedPorts, queuePausedPorts: single, held_queues: queues, held_flows: flows } = recording.totals();
      const busy = (frame) => pausedPorts[frame] + single[frame] + queues[frame] + flows[frame];
      for (let frame = recording.frameAt(this.state.t) + 1; frame < recording.frames; frame++) {
        if (busy(frame) > busy(frame - 1)) {
          next = Math.min(next, recording.frameEnd(frame));
          break;
        }
      }
    }
    this.toggle(false);
    if (next === Infinity) note("Nothing is paused after this.");
    else this.seek(next);
  }

  redraw() {
    if (this.playing || this.drawing) return;
    this.drawing = requestAnimationFrame((now) => {
      this.drawing = 0;
      this.show(now);
    });
  }

  show(now) {
    if (this.closed || !this.sides.length) return;
    const { state } = this;
    for (const side of this.sides) {
      const first = side === this.sides[0] || this.same;
      if (this.mapped) {
        const flow = first ? this.flowIn(side) : null;
        const shown = flow === null ? null : side.recording.flows[flow];
        side.heat.draw({ t: state.t, span: this.span, root: state.root, port: first ? state.port : null, flow: shown });
        continue;
      }
      side.stage.resize();
      side.stage.root = state.root;
      side.stage.draw({
        t: state.t,
        playing: this.playing,
        pace: (this.base * state.speed) / side.recording.every,
        wall: now / 1000,
        calm: calm.matches,
        cycle: side.cycle && state.t >= side.cycle.since ? side.cycle.ports : null,
        port: first ? state.port : null,
        flow: first ? this.flowIn(side) : null,
        hover: side.hover ?? (this.same ? this.hovered : null),
      });
    }
    const text = time(state.t, 5);
    if (this.readout.textContent !== text) this.readout.textContent = text;
    this.timeline.at(state.t);
    for (const one of this.charts) one.at(state.t);
    // Words change five times a second; more cannot be read.
    if (!this.playing || now - (this.worded ?? 0) > 200) {
      this.worded = now;
      for (const side of this.sides) side.words(state.t);
      this.now.show(state.t);
      this.flowNow?.(state.t);
    }
  }

  // The selected flow in another run: the same flow of the same traffic.
  flowIn(side) {
    if (this.flow === null) return null;
    if (side === this.sides[0]) return this.flow;
    const id = this.sides[0].recording.flows[this.flow].flow;
    const at = side.recording.flows.findIndex((flow) => flow.flow === id);
    return at < 0 ? null : at;
  }

  announce() {
    if (!this.sides.length || this.playing) return;
    say(`${time(this.state.t)}. ${this.sides.map((side) => `${side.name}: ${side.text}`).join(". ")}`, "instant");
  }

  // A port by any part of its name: the list offers what there is, Enter takes the first, a whole name is taken at once.
  find(input, enter = false) {
    const { recording } = this.sides[0];
    const matches = recording.findPorts(input.value);
    put(
      this.found,
      matches.map((port) => h("option", { value: recording.portName(port) })),
    );
    for (const side of this.sides) side.heat.only(input.value.trim());
    if (this.mapped) this.redraw();
    const whole = matches.length > 0 && recording.portName(matches[0]).toLowerCase() === input.value.trim().toLowerCase();
    if (whole || (enter && matches.length)) {
      if (enter) input.value = recording.portName(matches[0]);
      this.pick(matches[0]);
      this.reveal(matches[0]);
    } else if (enter && input.value.trim())
      note("No port has that in its name. A port is named by both ends, the sending one first: leaf0->h0.", true);
  }

  pick(port) {
    this.state.port = port;
    this.panels();
    this.remember();
    this.redraw();
  }

  pickFlow(index) {
    this.flow = index;
    this.missing = null;
    this.state.closed = index === null;
    this.state.flow = index === null ? null : this.sides[0].recording.flows[index].flow;
    this.panels();
    this.remember();
    this.redraw();
    this.timeline.draw();
  }

  // The cards beside the picture.
  panels() {
    this.charts = [];
    this.flowNow = null;
    const cards = [];
    if (this.flow !== null) cards.push(this.flowCard());
    else if (this.missing !== null) cards.push(this.missingCard());
    if (this.state.port !== null) cards.push(this.portCard());
    const focus = this.aside.contains(document.activeElement) ? document.activeElement : null;
    put(
      this.aside,
      cards,
      !cards.length &&
        h(
          "p",
          { class: "hint" },
          "Point at a link, a bar or a host to read it; click to see its whole time. Space plays, arrow keys step.",
        ),
      this.now.element,
      this.list.element,
    );
    this.list.show();
    this.drawCharts();
    // Who came by keyboard stays where they were.
    if (focus?.isConnected) focus.focus({ preventScroll: true });
    else if (focus?.dataset.flow) this.aside.querySelector(`[data-flow="${focus.dataset.flow}"]`)?.focus({ preventScroll: true });
  }

  card(name, close, ...children) {
    return h(
      "section",
      { class: "card" },
      h("h2", {}, name, h("button", { type: "button", class: "close", "aria-label": "Close", onclick: close }, "×")),
      children,
    );
  }

  chart(spec) {
    const one = chart(spec, this.span, (ps) => {
      this.toggle(false);
      this.seek(ps);
    });
    this.charts.push(one);
    return one.element;
  }

  // A flow that is asked for and was not recorded.
  missingCard() {
    return this.card(
      h("span", {}, `Flow ${this.missing}`),
      () => this.pickFlow(null),
      h(
        "p",
        { class: "facts" },
        "It was not recorded. Of a run with very many flows, 256 are: the slowest of each group, and of the others some of all sizes. Groups that ",
        h("code", {}, "measure.flows"),
        " names come before all others. What it took is in the ",
        h("a", { href: `#/results?job=${this.job.id}&run=${this.state.run}` }, "results"),
        ".",
      ),
    );
  }

  // The same series of both runs: the first filled, the second a dashed line. Shares of time have means.
  lines(series, colour, kind = "area", mean = false) {
    const sides = this.same ? this.sides : this.sides.slice(0, 1);
    return sides.map((side, at) => ({
      values: series(side.recording),
      first: side.recording.first,
      every: side.recording.every,
      colour: at ? "--ink" : colour,
      kind: at ? "line" : kind,
      mean,
      dash: at ? [4, 3] : undefined,
      name: sides.length > 1 ? side.name : undefined,
    }));
  }

  portCard() {
    const { port } = this.state;
    const main = this.sides[0].recording;
    const { rate_bps, delay_ps, peer } = main.ports[port];
    const per = (name, by) => (recording) => {
      const values = recording.series(name, port);
      return values && by ? Float64Array.from(values, (value) => by(value, recording)) : values;
    };
    const any = (name) =>
      this.sides.some(({ recording }) => recording.ports[port] && recording.series(name, port)?.some((value) => value > 0));
    const charts = [
      {
        title: "queue",
        format: (value) => bytes(value),
        lines: this.lines(per("queued"), "--queue"),
        marks: main.ports[port].mark ? [{ at: main.ports[port].mark, colour: "--soft", text: `marks above ${bytes(main.ports[port].mark, 2)}` }] : [],
      },
      {
        title: "link use",
        format: (value) => share(value, 2),
        top: 1,
        lines: this.lines(
          per("sent", (value, recording) => Math.min(1, value / recording.capacity(port))),
          "--use-2",
          "area",
          true,
        ),
      },
    ];
    // Each kind of pause without those that stop more.
    const parts = [
      ["paused by its neighbour", "paused_port", null],
      ["a class paused by its neighbour", "paused_class", "paused_port"],
      ["only a queue paused by its neighbour", "paused", "paused_class"],
    ];
    const early = main.header.version < 2;
    for (const [title, name, less] of early ? [[parts[0][0], "paused", null]] : parts) {
      const series = (recording) => {
        const values = recording.series(name, port),
          inner = less && recording.series(less, port);
        return values && Float64Array.from(values, (value, at) => Math.min(1, (value - (inner ? inner[at] : 0)) / recording.every));
      };
      if (this.sides.some(({ recording }) => recording.ports[port] && series(recording)?.some((value) => value > 0)))
        charts.push({
          title,
          format: (value) => share(value, 2),
          top: 1,
          height: 34,
          lines: this.lines(series, "--pause", "bars", true),
        });
    }
    if (any("held_queues"))
      charts.push({
        title: "queues held",
        format: (value) => count(value),
        height: 40,
        lines: this.lines(per("held_queues"), "--held"),
      });
    if (any("held_flows"))
      charts.push({
        title: "flows held at this NIC",
        format: (value) => count(value),
        height: 40,
        lines: this.lines(per("held_flows"), "--held"),
      });
    if (any("pause_frames"))
      charts.push({
        title: "control frames to its neighbour",
        format: (value) => count(value),
        height: 34,
        lines: this.lines(per("pause_frames"), "--control", "bars"),
      });
    if (any("signals"))
      charts.push({
        title: "signals to hosts sent here",
        format: (value) => count(value),
        height: 34,
        lines: this.lines(per("signals"), "--control", "bars"),
      });
    if (any("marked"))
      charts.push({
        title: "packets marked",
        format: (value) => count(value),
        height: 34,
        lines: this.lines(per("marked"), "--soft", "bars"),
      });
    if (any("dropped"))
      charts.push({
        title: "packets dropped",
        format: (value) => count(value),
        height: 34,
        lines: this.lines(per("dropped"), "--bad", "bars"),
      });
    const through = main.flows.map((flow, at) => [flow, at]).filter(([flow]) => flow.path.includes(port));
    return this.card(
      h(
        "span",
        {},
        main.nodeName(main.ports[port].node),
        h("span", { class: "arrow" }, " → "),
        main.nodeName(main.ports[peer].node),
      ),
      () => this.pick(null),
      h(
        "p",
        { class: "facts" },
        `port ${port}, ${rate(rate_bps)}, ${time(delay_ps)} long `,
        h("button", { type: "button", class: "textual", onclick: () => this.pick(peer) }, "the other direction"),
      ),
      this.sides.length > 1 &&
        this.same &&
        h("p", { class: "facts" }, "filled: ", this.sides[0].name, "; dashed: ", this.sides[1].name),
      charts.map((spec) => this.chart(spec)),
      through.length > 0 &&
        h(
          "details",
          { class: "through", open: through.length < 7 },
          h("summary", {}, `${plural(through.length, "recorded flow")} ${through.length === 1 ? "takes" : "take"} this link`),
          h(
            "div",
            { class: "flow-buttons" },
            through
              .slice(0, 60)
              .map(([flow, at]) =>
                h(
                  "button",
                  { type: "button", class: "textual", onclick: () => this.pickFlow(at) },
                  `${main.nodeName(flow.src)} → ${main.nodeName(flow.dst)}, ${bytes(flow.size)}`,
                ),
              ),
          ),
        ),
    );
  }

  flowCard() {
    const main = this.sides[0].recording;
    const flow = main.flows[this.flow];
    const name = (node) => main.nodeName(node);
    const ended = (recording, at) => {
      const one = recording.flows[at];
      return one?.received_ps === null || one?.received_ps === undefined
        ? "not received to the end"
        : `received after ${time(took(one))}${recording.slowdown(one) === null ? "" : `, ${number(recording.slowdown(one), 3)}× as long as alone`}`;
    };
    const sides = this.same ? this.sides : this.sides.slice(0, 1);
    const held = h("p", { class: "facts live" });
    this.flowNow = (ps) => {
      const lines = sides
        .map((side) => {
          const at = this.flowIn(side);
          if (at === null) return null;
          const { recording } = side;
          const frame = recording.frameAt(ps),
            one = recording.flows[at];
          const by = recording.value("flow.by", at, frame);
          const stood = grown(recording, "flow.paused", at, frame),
            nic = recording.nicOf(one);
          const what =
            one.start_ps === null || ps < one.start_ps
              ? "has not begun"
              : recording.value("flow.acknowledged", at, frame) >= one.size
                ? "done"
                : by > 0
                  ? `held by ${recording.nodeName(by - 1)}`
                  : stood > 0
                    ? `held at its NIC: ${nic === null ? "its neighbour" : recording.neighbour(nic)} pauses its class, for ${share(Math.min(1, stood / recording.every), 2)} of this frame`
                  : frame > 0 && recording.value("flow.held", at, frame) > recording.value("flow.held", at, frame - 1)
                    ? "held"
                    : "under way";
          return (sides.length > 1 ? `${side.name}: ` : "") + what;
        })
        .filter(Boolean);
      held.textContent = `now ${lines.join("; ")}`;
    };
    const life = sides.flatMap((side) => {
      const at = this.flowIn(side);
      if (at === null) return [];
      const { recording } = side;
      const tag = sides.length > 1 ? `${side.name}: ` : "";
      const line = (column, colour, dash, kind = "line") => ({
        values: recording.series(`flow.${column}`, at),
        first: recording.first,
        every: recording.every,
        colour,
        dash,
        kind,
      });
      const one = recording.flows[at],
        nic = recording.nicOf(one),
        lasted = took(one) ?? recording.end - (one.start_ps ?? recording.end);
      const stands = [
        ["held by flow control", "flow.held", "--held"],
        [`its class paused at its NIC by ${nic === null ? "its neighbour" : recording.neighbour(nic)}`, "flow.paused", "--pause"],
      ].map(([what, column, colour]) => {
        const series = recording.series(column, at);
        const total = series ? series[series.length - 1] : 0;
        if (!total) return null;
        const values = Float64Array.from(series, (value, frame) =>
          Math.min(1, (value - (frame ? series[frame - 1] : 0)) / recording.every),
        );
        return this.chart({
          title: `${tag}${what}, ${time(total, 3)}${lasted > 0 ? ` of ${time(lasted, 3)}` : ""}`,
          height: 26,
          top: 1,
          format: (value) => share(value, 2),
          lines: [{ values, first: recording.first, every: recording.every, colour, kind: "bars", mean: true }],
        });
      });
      return [
        this.chart({
          title: [
            tag,
            h("span", { class: "w-sent" }, "sent"),
            ", ",
            h("span", { class: "w-received" }, "received"),
            ", ",
            h("span", { class: "w-acknowledged" }, "acknowledged"),
          ],
          height: 64,
          top: flow.size,
          format: bytes,
          lines: [
            { ...line("sent", "--use-1"), readout: () => "" },
            { ...line("received", "--use-3"), readout: (ps) => bytes(recording.value("flow.received", at, recording.frameAt(ps))) },
            { ...line("acknowledged", "--control", [3, 3]), readout: () => "" },
          ],
        }),
        ...stands,
      ];
    });
    return this.card(
      h("span", {}, name(flow.src), h("span", { class: "arrow" }, " → "), name(flow.dst)),
      () => this.pickFlow(null),
      h(
        "p",
        { class: "facts" },
        `flow ${flow.flow}, ${main.groups[flow.group] ?? "flows"}, ${bytes(flow.size)}, ${flow.start_ps === null ? "never started" : `starts at ${time(flow.start_ps)}`}`,
      ),
      sides.map((side) =>
        h(
          "p",
          { class: "facts" },
          sides.length > 1 && h("strong", {}, `${side.name}: `),
          this.flowIn(side) === null ? "not recorded there" : ended(side.recording, this.flowIn(side)),
        ),
      ),
      held,
      life.filter(Boolean),
      flow.path.length === 0
        ? h("p", { class: "facts" }, "Its packets take many paths.")
        : h(
            "p",
            { class: "path" },
            "path: ",
            flow.path.map((port, at) => [
              at > 0 && " → ",
              h(
                "button",
                { type: "button", class: "textual", title: "This port", onclick: () => this.pick(port) },
                name(main.ports[port].node),
              ),
            ]),
            ` → ${name(flow.dst)}`,
          ),
    );
  }

  key(event) {
    if (!this.sides.length) return false;
    const onButton = event.target.closest?.("button, a, summary, input");
    const { key } = event;
    if ((key === " " && !onButton) || key === "k") this.toggle();
    else if (key === "ArrowRight") this.step(event.shiftKey ? 10 : 1);
    else if (key === "ArrowLeft") this.step(event.shiftKey ? -10 : -1);
    else if (key === "Home") {
      this.toggle(false);
      this.seek(this.span.from);
    } else if (key === "End") {
      this.toggle(false);
      this.seek(this.span.to);
    } else if (key === "p") this.peak();
    else if (key === "n") this.nextPause();
    else if (key === "[" || key === "]") {
      const at = Math.max(0, Math.min(SPEEDS.length - 1, SPEEDS.indexOf(this.state.speed) + (key === "]" ? 1 : -1)));
      this.state.speed = SPEEDS[at];
      this.speedBox.value = SPEEDS[at];
      this.showPace();
      this.remember();
    } else if (key === "+" || key === "=" || key === "-" || key === "0") {
      this.zoom({ "-": 1 / 1.4, 0: 0 }[key] ?? 1.4);
    } else if (key === "Escape" && (this.state.port !== null || this.flow !== null)) {
      if (this.flow !== null) this.pickFlow(null);
      if (this.state.port !== null) this.pick(null);
    } else return false;
    return true;
  }

  zoom(factor) {
    const { width, height } = this.sides[0].stage;
    if (factor === 0) this.camera.reset();
    else this.camera.zoom(factor, width / 2, height / 2, width, height);
    this.moved();
  }

  moved() {
    for (const side of this.sides) side.canvas.style.touchAction = this.camera.home ? "pan-y" : "none";
    this.remember();
    this.redraw();
  }

  write() {
    if (this.closed || !this.sides.length || !location.hash.startsWith("#/fabric")) return;
    const { state } = this;
    const query = new URLSearchParams({ job: state.job, run: state.run });
    if (state.with !== null) query.set("with", state.with);
    if (state.t > this.span.from) query.set("t", timeText(state.t));
    if (state.port !== null) query.set("port", state.port);
    if (this.flow !== null) query.set("flow", this.sides[0].recording.flows[this.flow].flow);
    else if (this.missing !== null) query.set("flow", this.missing);
    else if (state.closed) query.set("flow", "none");
    if (state.view && state.view !== (this.crowded ? "heat" : "picture")) query.set("view", state.view);
    if (this.mapped && state.heat !== "queue") query.set("heat", state.heat);
    const { stage } = this.sides[0];
    if (state.eye) query.set("eye", state.eye);
    else if (!this.camera.home && stage.width) query.set("eye", this.camera.text(stage.width, stage.height));
    if (state.speed !== 1) query.set("speed", state.speed);
    if (state.root) query.set("bars", "root");
    history.replaceState(null, "", `#/fabric?${query}`);
  }
}

/** Of two runs, what became of the flows that differ most between them, and the one that had the worst of it. */
export function verdictOf(runs, recordings) {
  if (runs.length < 2) return null;
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
  const name = (at) => recordings[at].header.preset ?? runs[at].scheme ?? runs[at].label;
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
