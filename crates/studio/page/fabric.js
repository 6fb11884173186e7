// The fabric view: a run as it happened, one or two of them in lock step.

import { jobs, sharedLink } from "./api.js";
import { debounce, h, put, say } from "./dom.js";
import { chart } from "./charts.js";
import { Camera } from "./camera.js";
import { Opening } from "./opening.js";
import { Side } from "./side.js";
import { HEATS } from "./heat.js";
import { FlowList, icon, Now } from "./panels.js";
import { flowCard, missingCard, portCard } from "./cards.js";
import { buildFrame, SPEEDS } from "./frame.js";
import { held, zoomed } from "./tracks.js";
import { verdictOf } from "./verdict.js";
import { note, trouble } from "./parts.js";
import { readTime, time, timeText } from "./format.js";

export const title = "Fabric";
/** At speed 1 a run takes this many seconds to watch. */
const SHOW = 24;
/** A fabric with more hosts than this is shown as a map of its ports first: a picture has no room for them. */
const CROWD = 256;
/** Frames that are no longer than this show where each control frame is. */
const CLOSE = 200_000;
const calm = matchMedia("(prefers-reduced-motion: reduce)");

export function open(root, route) {
  const view = new View(root);
  view.update(route);
  return view;
}

class View extends Opening {
  constructor(root) {
    super();
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
    clearTimeout(this.renewal);
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
      // A run of another job beside the first.
      also: whole("also"),
      // The window of the timeline of stops, and where a closer look came from.
      win: query.get("win"),
      back: query.get("back"),
      // Of a closer look, the runs that it looks at.
      of: query.get("of"),
      view: ["heat", "picture", "stops"].includes(query.get("view")) ? query.get("view") : null,
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
    const other = ["job", "run", "with", "also"].some((key) => next[key] !== this.state[key]);
    this.state = next;
    if (other || !this.sides.length) await this.load();
    else {
      this.setWindow(next.win);
      this.apply();
      this.chooseView();
    }
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

    this.setWindow(state.win);
    buildFrame(this, chosen, recordings);
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

  /** What is shown of each run: the picture, the map, or the timeline of stops. */
  get shown() {
    return this.state.view ?? (this.crowded ? "heat" : "picture");
  }

  get mapped() {
    return this.shown === "heat";
  }

  chooseView() {
    for (const side of this.sides) {
      side.heat.kind = this.state.heat;
      side.choose(this.shown);
    }
    this.root.classList.toggle("mapped", this.mapped);
    this.root.classList.toggle("tracked", this.shown === "stops");
    this.views.value = this.mapped ? `heat ${this.state.heat}` : this.shown;
    put(this.mapKey, this.sides[0].heat.key());
    this.fit();
  }

  /** Selects a flow by its number in the run, also one that was not recorded. */
  pickNumber(number) {
    const at = this.sides[0].recording.flows.findIndex((flow) => flow.flow === number);
    this.pickFlow(at < 0 ? null : at);
    if (at >= 0) return;
    this.missing = this.state.flow = number;
    this.state.closed = false;
    this.panels();
    this.remember();
  }

  // The window of time that the timeline of stops shows.
  setWindow(text) {
    const [from, to] = (text ?? "").split(",").map(readTime);
    this.win = from !== null && to !== null && to > from ? held({ from, to }, this.span) : { ...this.span };
  }

  /** The window that somebody has chosen for a closer look, if it is not all the time. */
  get chosenWindow() {
    return this.shown === "stops" && this.win.to - this.win.from < (this.span.to - this.span.from) * 0.999 ? this.win : null;
  }

  zoomTime(factor, middle = this.state.t) {
    this.win = factor === 0 ? { ...this.span } : zoomed(this.win, this.span, factor, Math.max(this.win.from, Math.min(this.win.to, middle)));
    this.remember();
    this.redraw();
  }

  moveTime(by) {
    this.win = held({ from: this.win.from + by, to: this.win.to + by }, this.span);
    this.remember();
    this.redraw();
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
    if (!this.state.eye || !stage?.width || this.shown !== "picture") return;
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
    if (this.shown === "stops") for (const side of this.sides) side.tracks.reveal(port);
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
      if (!this.playing || !side.why.stops) side.why.need(state.t, () => this.redraw());
      if (this.shown === "stops") {
        side.tracks.draw({ t: state.t, win: this.win, port: first ? state.port : null, chain: first ? this.chainIn(side) : null });
        continue;
      }
      if (this.mapped) {
        const flow = first ? this.flowIn(side) : null;
        const shown = flow === null ? null : side.recording.flows[flow];
        side.heat.draw({ t: state.t, span: this.span, root: state.root, port: first ? state.port : null, flow: shown });
        continue;
      }
      side.stage.resize();
      side.stage.root = state.root;
      side.stage.draw(this.stageNow(side, now));
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
      for (const show of this.whyNow) show(state.t);
    }
    this.follow?.();
  }

  /** What the picture of a run shows at this instant. */
  stageNow(side, now) {
    const { state } = this;
    const first = side === this.sides[0] || this.same;
    const chain = first ? this.chainIn(side) : null;
    return {
      t: state.t,
      playing: this.playing,
      pace: (this.base * state.speed) / side.recording.every,
      wall: now / 1000,
      calm: calm.matches,
      cycle: side.cycle && state.t >= side.cycle.since ? side.cycle.ports : null,
      port: first ? state.port : null,
      flow: first ? this.flowIn(side) : null,
      hover: side.hover ?? (this.same ? this.hovered : null),
      chain: chain && side.why.stops.marks(chain),
      flying: side.recording.every <= CLOSE ? side.why.stops?.flying(state.t) : null,
    };
  }

  // The selected flow in another run: the same flow of the same traffic.
  flowIn(side) {
    if (this.flow === null) return null;
    if (side === this.sides[0]) return this.flow;
    const id = this.sides[0].recording.flows[this.flow].flow;
    const at = side.recording.flows.findIndex((flow) => flow.flow === id);
    return at < 0 ? null : at;
  }

  // The chain of causes of what is selected, at this instant.
  chainIn(side) {
    if (!side.cause) return null;
    const at = side.why.stopAt(side.cause, this.state.t);
    return at === null || at === undefined ? null : side.why.stops.chain(at);
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
    for (const side of this.sides) {
      side.heat.only(input.value.trim());
      side.tracks.only(input.value.trim());
    }
    if (this.shown !== "picture") this.redraw();
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
    this.whyNow = [];
    for (const side of this.sides) side.cause = null;
    const cards = [];
    if (this.flow !== null) cards.push(flowCard(this));
    else if (this.missing !== null) cards.push(missingCard(this));
    if (this.state.port !== null) cards.push(portCard(this));
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
    else if (this.shown === "stops" && "wasd".includes(key)) {
      if (key === "w" || key === "s") this.zoomTime(key === "w" ? 1.5 : 1 / 1.5);
      else this.moveTime((key === "d" ? 0.2 : -0.2) * (this.win.to - this.win.from));
    } else if (key === "[" || key === "]") {
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
    if (this.shown === "stops") {
      this.zoomTime(factor);
      return;
    }
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

  /** What the address names of what is shown. */
  address() {
    const { state } = this;
    const query = { job: state.job, run: state.run };
    if (state.with !== null) query.with = state.with;
    if (state.also !== null && state.with !== null) query.also = state.also;
    if (state.t > this.span.from) query.t = timeText(state.t);
    if (state.port !== null) query.port = state.port;
    if (this.flow !== null) query.flow = this.sides[0].recording.flows[this.flow].flow;
    else if (this.missing !== null) query.flow = this.missing;
    else if (state.closed) query.flow = "none";
    if (state.view && state.view !== (this.crowded ? "heat" : "picture")) query.view = state.view;
    if (this.mapped && state.heat !== "queue") query.heat = state.heat;
    if (this.chosenWindow) query.win = `${timeText(this.win.from)},${timeText(this.win.to)}`;
    const { stage } = this.sides[0];
    if (state.eye) query.eye = state.eye;
    else if (!this.camera.home && stage.width) query.eye = this.camera.text(stage.width, stage.height);
    if (state.speed !== 1) query.speed = state.speed;
    if (state.root) query.bars = "root";
    if (state.back) query.back = state.back;
    if (state.of) query.of = state.of;
    return query;
  }

  write() {
    if (this.closed || !this.sides.length || !location.hash.startsWith("#/fabric")) return;
    history.replaceState(null, "", `#/fabric?${new URLSearchParams(this.address())}`);
  }
}
