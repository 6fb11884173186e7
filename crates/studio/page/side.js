// One run in the fabric view: its picture, its words, and what the pointer does on it.

import { h, put } from "./dom.js";
import { Heat } from "./heat.js";
import { Stage } from "./stage.js";
import { Tracks } from "./tracks.js";
import { Why } from "./why.js";
import { bytes, plural, rate, share, time } from "./format.js";

export class Side {
  constructor(view, recording, run, at, deepest) {
    Object.assign(this, {
      view,
      recording,
      run,
      job: run.job,
      at,
      hover: null,
      text: "",
      name: recording.header.preset ?? run.scheme ?? run.label,
    });
    // The seed is shown only where there are several.
    const seeds = new Set(view.runs.map((one) => one.seed)).size;
    // The scheme is in the heading.
    const varied = run.labels.filter(([axis]) => axis !== "scheme").map(([axis, value]) => `${axis}=${value}`);
    const more = [...varied, ...(seeds > 1 ? [`seed ${run.seed}`] : [])].join(", ");
    this.canvas = h("canvas", { class: "stage", role: "img" });
    this.stage = new Stage(this.canvas, view.camera);
    this.stage.load(
      { nodes: recording.nodes, ports: recording.ports, kind: recording.header.topology?.kind },
      recording,
      deepest,
    );
    this.heatCanvas = h("canvas", { class: "heat", role: "img", hidden: true });
    this.heat = new Heat(this.heatCanvas, recording, deepest);
    this.why = new Why(run.causes, recording);
    this.tracks = new Tracks(this);
    /** What a card asks the causes of. */
    this.cause = null;
    this.tip = h("div", { class: "tip", hidden: true });
    this.numbers = h("span", { class: "numbers" });
    this.cycle = cycleOf(recording, run.summary);
    this.element = h(
      "figure",
      { class: "run" },
      h(
        "figcaption",
        {},
        h("strong", { class: `scheme s${at}` }, this.name),
        more && h("span", { class: "sub" }, more),
        this.numbers,
        this.cycle &&
          h(
            "button",
            {
              type: "button",
              class: "badge bad deadlock",
              title: "To where it closes",
              onclick: () => {
                view.toggle(false);
                view.seek(this.cycle.since);
              },
            },
            `✕ deadlock at ${time(this.cycle.since, 3)}`,
          ),
      ),
      h("div", { class: "canvas-box" }, this.canvas, this.heatCanvas, this.tracks.element, this.tip),
    );
    this.listen();
    this.listenHeat();
  }

  /** The picture, the map of all ports and times, or the timeline of stops. */
  choose(shown) {
    this.heatCanvas.hidden = shown !== "heat";
    this.tracks.element.hidden = shown !== "stops";
    this.canvas.hidden = shown !== "picture";
    this.tip.hidden = true;
  }

  /** The canvas that is on the screen. */
  get visible() {
    return [this.canvas, this.heatCanvas].find((canvas) => !canvas.hidden) ?? this.tracks.canvas;
  }

  listenHeat() {
    const { heatCanvas: canvas, view } = this;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      const hit = this.heat.hit(x, y);
      canvas.style.cursor = hit ? "crosshair" : "default";
      this.tip.hidden = !hit;
      if (hit) {
        const lines = this.heat.words(hit);
        put(
          this.tip,
          h("strong", {}, lines[0]),
          lines.slice(1).map((line) => h("div", {}, line)),
        );
        this.placeTip(x, y, this.heat.width, this.heat.height);
      }
    });
    canvas.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
    });
    canvas.addEventListener("click", (event) => {
      const hit = this.heat.hit(...at(event));
      if (!hit) return;
      view.active = this;
      view.toggle(false);
      view.seek(hit.ps);
      view.pick(hit.port);
    });
  }

  placeTip(x, y, width, height) {
    const wide = this.tip.offsetWidth,
      tall = this.tip.offsetHeight;
    this.tip.style.left = `${Math.max(4, Math.min(x + 14, width - wide - 4))}px`;
    this.tip.style.top = `${y + 18 + tall > height ? Math.max(2, y - tall - 12) : y + 18}px`;
  }

  words(ps) {
    const { recording } = this;
    const frame = recording.frameAt(ps);
    const totals = recording.totals();
    const parts = [`${bytes(totals.queued[frame])} queued`];
    if (recording.column(recording.classColumn)) parts.push(`${plural(totals.pausedPorts[frame], "link")} paused`);
    if (totals.queuePausedPorts[frame]) parts.push(`${plural(totals.queuePausedPorts[frame], "link")} with a queue paused`);
    if (totals.held_queues[frame]) parts.push(`${plural(totals.held_queues[frame], "queue")} held`);
    if (totals.held_flows[frame]) parts.push(`${plural(totals.held_flows[frame], "flow")} held`);
    if (totals.dropped[frame]) parts.push(`${plural(totals.dropped[frame], "packet")} dropped`);
    this.text = parts.join(", ");
    if (ps > recording.end) this.text = `over since ${time(recording.end)}`;
    if (this.numbers.textContent !== this.text) this.numbers.textContent = this.text;
    this.canvas.setAttribute("aria-label", `Fabric under ${this.name} at ${time(ps)}: ${this.text}`);
    this.tracks.canvas.setAttribute("aria-label", `Stops of all ports over the time under ${this.name}; at ${time(ps)}: ${this.text}`);
    this.heatCanvas.setAttribute("aria-label", `All ports over the time under ${this.name}; at ${time(ps)}: ${this.text}`);
    if (this.hover && !this.tip.hidden) this.describe();
  }

  listen() {
    const { canvas, view } = this;
    const held = new Map();
    let moved = 0;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const size = () => [this.stage.width, this.stage.height];
    canvas.addEventListener(
      "wheel",
      (event) => {
        // Down at the outermost view scrolls the page as usual.
        if (view.camera.home && event.deltaY > 0) return;
        event.preventDefault();
        const [x, y] = at(event);
        // A trackpad pinch comes as a wheel with Ctrl, in small steps.
        view.camera.zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0016)), x, y, ...size());
        view.moved();
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      held.set(event.pointerId, at(event));
      moved = 0;
      view.active = this;
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = at(event);
      if (!held.has(event.pointerId)) {
        this.point(x, y);
        return;
      }
      const [ox, oy] = held.get(event.pointerId);
      if (held.size === 2) {
        const [other] = [...held].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
        const before = Math.hypot(ox - other[0], oy - other[1]) || 1,
          after = Math.hypot(x - other[0], y - other[1]);
        view.camera.zoom(after / before, (x + other[0]) / 2, (y + other[1]) / 2, ...size());
        moved += 9;
      } else {
        moved += Math.abs(x - ox) + Math.abs(y - oy);
        if (moved > 4 && !view.camera.home) {
          canvas.setPointerCapture(event.pointerId);
          view.camera.pan(x - ox, y - oy, ...size());
        }
      }
      held.set(event.pointerId, [x, y]);
      view.moved();
    });
    const end = (event) => {
      if (!held.delete(event.pointerId) || event.type !== "pointerup" || moved > 6) return;
      const hit = this.stage.hit(...at(event));
      if (!hit) {
        if (view.state.port !== null) view.pick(null);
        return;
      }
      if (hit.port !== undefined) view.pick(hit.port);
      else view.pick(this.deepestOf(hit.node));
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => {
      this.hover = null;
      view.hovered = null;
      this.tip.hidden = true;
      view.redraw();
    });
    canvas.addEventListener("dblclick", (event) => {
      const [x, y] = at(event);
      view.camera.zoom(2.2, x, y, ...size());
      view.moved();
    });
  }

  // A node stands for its port with the most waiting.
  deepestOf(node) {
    const frame = this.recording.frameAt(this.view.state.t);
    let best = null,
      most = -1;
    this.recording.ports.forEach((one, port) => {
      const value = one.node === node ? this.recording.value("queued", port, frame) : -1;
      if (value > most) {
        most = value;
        best = port;
      }
    });
    return best;
  }

  point(x, y) {
    const hit = this.stage.hit(x, y);
    const before = this.hover;
    this.hover = this.view.hovered = hit;
    this.canvas.style.cursor = hit ? "pointer" : this.view.camera.home ? "default" : "grab";
    if (!hit) this.tip.hidden = true;
    else {
      this.describe();
      this.tip.hidden = false;
      this.placeTip(x, y, this.stage.width, this.stage.height);
    }
    if (before?.port !== hit?.port || before?.node !== hit?.node) this.view.redraw();
  }

  describe() {
    const { recording, hover } = this;
    const frame = recording.frameAt(this.view.state.t);
    const lines = hover.port !== undefined ? portWords(recording, hover.port, frame) : nodeWords(recording, hover.node, frame);
    put(
      this.tip,
      h("strong", {}, lines[0]),
      lines.slice(1).map((line) => h("div", {}, line)),
    );
  }
}

function portWords(recording, port, frame) {
  const of = (name) => recording.value(name, port, frame);
  const { node, peer, rate_bps } = recording.ports[port];
  const there = recording.nodeName(recording.ports[peer].node);
  const lines = [
    `${recording.nodeName(node)} → ${there}`,
    `${bytes(of("queued"))} waiting; ${share(Math.min(1, of("sent") / recording.capacity(port)), 2)} of ${rate(rate_bps)} used`,
  ];
  lines.push(...stopWords(recording, port, frame).map((text) => `${text} by ${there}`));
  if (of("held_queues")) lines.push(`${plural(of("held_queues"), "queue")} held`);
  if (of("held_flows")) lines.push(`${plural(of("held_flows"), "flow")} kept from sending`);
  if (of("pause_frames"))
    lines.push(
      `${plural(of("pause_frames"), "control frame")} to ${there}: ${recording.framesFrom(port, frame) ?? "pause, resume or answer"}`,
    );
  if (of("signals")) lines.push(`${plural(of("signals"), "signal")} to hosts`);
  if (of("marked")) lines.push(`${plural(of("marked"), "packet")} marked`);
  if (of("dropped")) lines.push(`${plural(of("dropped"), "packet")} dropped`);
  return lines;
}

/** What of a port was paused in a frame, and for how much of it; most first. */
export function stopWords(recording, port, frame) {
  const { any, class: whole, port: all } = recording.stops(port, frame);
  const part = (value) => `${share(value, 2)} of this frame`;
  const words = [];
  if (all > 0) words.push(`paused for ${part(all)}`);
  if (whole - all > 1e-6) words.push(`a class paused for ${all > 0 ? "another " : ""}${part(whole - all)}`);
  if (any - whole > 1e-6) words.push(`only a queue paused for ${whole > 0 ? "another " : ""}${part(any - whole)}`);
  return words;
}

function nodeWords(recording, node, frame) {
  const { name, kind, buffer } = recording.nodes[node];
  let queued = 0,
    ports = 0,
    paused = 0,
    single = 0,
    out = 0,
    into = 0,
    flows = 0;
  recording.ports.forEach((one, port) => {
    if (one.node !== node) return;
    ports++;
    queued += recording.value("queued", port, frame);
    const stops = recording.stops(port, frame);
    paused += stops.class > 0;
    single += stops.any > 0 && !stops.class;
    flows += recording.value("held_flows", port, frame);
    out += recording.value("sent", port, frame);
    into += recording.value("sent", one.peer, frame);
  });
  const per = 8e12 / recording.every;
  const lines = [
    `${name}, ${kind}${ports > 1 ? ` of ${ports} ports` : ""}`,
    `${bytes(queued)} waiting${buffer ? ` of ${bytes(buffer)}` : ""}`,
    `sends ${rate(out * per)}, receives ${rate(into * per)}`,
  ];
  if (paused) lines.push(`${plural(paused, "port")} paused`);
  if (single) lines.push(`${plural(single, "port")} with a queue paused`);
  if (flows) lines.push(`${plural(flows, "flow")} kept from sending`);
  return lines;
}

// The cycle of waits that a deadlocked run ended with, and since when none of it could move.
function cycleOf(recording, summary) {
  if (summary?.ending !== "deadlock" || !summary.waits?.length) return null;
  const names = new Map(recording.ports.map((_, port) => [recording.portName(port), port]));
  const waiting = summary.waits.map(({ from, to }) => names.get(`${from}->${to}`));
  const ports = [...new Set(waiting.filter((port) => port !== undefined))];
  if (!ports.length) return null;
  let frame = recording.frames - 1;
  const held = (at) =>
    ports.every((port) => recording.value("paused", port, at) > 0 || recording.value("held_queues", port, at) > 0);
  while (frame > 0 && held(frame - 1)) frame--;
  return { ports, since: recording.frameEnd(frame) };
}
