// The timeline of stops: a row for each port, nested by cause, with bars for pauses, holds and signals. Only rows in sight are drawn.

import { h, put } from "./dom.js";
import { columnsOf, ticks } from "./charts.js";
import { count, plural, time } from "./format.js";
import { KINDS, nested } from "./stops.js";

const ROW = 15,
  HEAD = 20,
  INDENT = 9;
/** The least time that a window shows: 10 ns. */
const LEAST = 10_000;

/** A window of time with a point of it staying where it is; `factor` above 1 shows less. */
export function zoomed({ from, to }, span, factor, middle) {
  const wide = Math.min(span.to - span.from, Math.max(LEAST, (to - from) / factor));
  const part = (middle - from) / (to - from || 1);
  return held({ from: middle - part * wide, to: middle + (1 - part) * wide }, span);
}

/** A window moved back into the whole time. */
export function held({ from, to }, span) {
  const wide = Math.min(to - from, span.to - span.from);
  const begin = Math.max(span.from, Math.min(span.to - wide, from));
  return { from: begin, to: begin + wide };
}

/** How long a frame is in a closer look, and how much time it shows unless somebody has chosen some. */
const FRAME = 100_000;
const WINDOW = 20_000_000;
/** The most frames of a recording, and of all its ports together. */
const FRAMES = 4096,
  PORT_FRAMES = 2 << 20;

/** The window to look at, in ps: {from, to, every}. The chosen one, or some time around an instant; as much as a recording holds. */
export function windowAt(ps, span, ports, chosen) {
  const most = Math.max(64, Math.min(FRAMES, Math.floor(PORT_FRAMES / Math.max(1, ports)))) - 2;
  const width = chosen ? chosen.to - chosen.from : Math.min(WINDOW, most * FRAME);
  const from = Math.max(span.from, Math.round(chosen ? chosen.from : ps - width / 2));
  const to = Math.min(span.to, Math.round(from + width));
  const every = FRAME * Math.max(1, Math.ceil((to - from) / FRAME / most));
  return { from, to: Math.max(to, from + every), every };
}

/** Rows whose port has a text in its name, and all that they are nested in. */
export function sought(rows, names, text) {
  if (!text) return rows;
  const wanted = text.toLowerCase().replace(/\s*(→|->)\s*/, "->");
  const keep = new Set();
  rows.forEach((row, at) => {
    if (!names[at].toLowerCase().includes(wanted)) return;
    keep.add(at);
    for (let above = at - 1, depth = row.depth; above >= 0 && depth > 0; above--)
      if (rows[above].depth < depth) {
        keep.add(above);
        depth = rows[above].depth;
      }
  });
  return keep.size ? rows.filter((_, at) => keep.has(at)) : rows;
}

export class Tracks {
  constructor(side) {
    this.side = side;
    this.canvas = h("canvas", { class: "tracks-canvas", role: "img", tabindex: "0" });
    this.spacer = h("div", { class: "tracks-spacer" });
    this.message = h("p", { class: "tracks-message facts" });
    this.element = h("div", { class: "tracks", hidden: true }, this.canvas, this.spacer, this.message);
    this.text = "";
    this.element.addEventListener("scroll", () => side.view.redraw());
    this.listen();
  }

  get stops() {
    return this.side.why.stops;
  }

  only(text) {
    this.text = text;
    this.made = null;
  }

  // The rows, made again when other stops are there or others are sought.
  prepare() {
    const { stops } = this;
    if (!stops) return false;
    if (this.made !== stops) {
      if (this.of !== stops) {
        this.of = stops;
        this.all = nested(stops);
        this.names = this.all.map(({ port }) => stops.recording.portName(port));
      }
      this.made = stops;
      this.rows = sought(this.all, this.names, this.text);
      this.place = new Map(this.rows.map(({ port }, at) => [port, at]));
      this.spacer.style.height = `${this.rows.length * ROW + HEAD + 8}px`;
    }
    return true;
  }

  get gutter() {
    return Math.min(168, Math.max(96, this.width * 0.2));
  }

  x(ps, { from, to }) {
    return this.gutter + ((ps - from) / (to - from || 1)) * (this.width - this.gutter - 4);
  }

  ps(x, { from, to }) {
    return from + ((x - this.gutter) / (this.width - this.gutter - 4)) * (to - from);
  }

  draw({ t, win, port, chain }) {
    const { element, canvas, side } = this;
    const { clientWidth: width, clientHeight: height } = element;
    if (!width || !height) return;
    const ready = this.prepare();
    put(
      this.message,
      side.why.failed
        ? side.why.failed.message
        : !side.why.known
          ? "This run was not asked why, so its stops were not kept."
          : !ready
            ? "Loading stops…"
            : !this.rows.length
              ? "Nothing was ever stopped."
              : null,
    );
    this.message.hidden = ready && this.rows.length > 0;
    const ratio = Math.min(2, devicePixelRatio || 1);
    if (width !== this.width || height !== this.height || ratio !== this.ratio) {
      Object.assign(this, { width, height, ratio });
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
      this.spacer.style.marginTop = `-${height}px`;
    }
    const paint = canvas.getContext("2d");
    paint.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint.clearRect(0, 0, width, height);
    if (!ready) return;
    const style = getComputedStyle(element);
    const of = (name) => style.getPropertyValue(name).trim();
    const colours = Object.fromEntries(["ink", "soft", "line", "shade", "paper", "queue", "pick", "cursor", "bad"].map((name) => [name, of(`--${name}`)]));
    const kinds = Object.fromEntries(Object.entries(KINDS).map(([name, { colour }]) => [name, of(colour)]));
    this.font = style.fontFamily;
    const { scrollTop } = element;
    const first = Math.max(0, Math.floor((scrollTop - HEAD) / ROW)),
      last = Math.min(this.rows.length - 1, Math.ceil((scrollTop + height - HEAD) / ROW));
    const y = (row) => HEAD + row * ROW - scrollTop;
    this.drawn = last - first + 1;
    paint.font = `11px ${this.font}`;
    paint.textBaseline = "middle";
    const { gutter } = this;
    for (let row = first; row <= last; row++) {
      const one = this.rows[row];
      const top = y(row);
      if (one.port === port) {
        paint.fillStyle = colours.shade;
        paint.fillRect(0, top, width, ROW);
      }
      if (one.depth === 0 && row > 0) {
        paint.fillStyle = colours.line;
        paint.fillRect(0, top, width, 1);
      }
      if (one.root) this.drawRoot(paint, one, top, win, colours);
      else this.drawRow(paint, one, top, win, kinds);
      // Indented by how far it is from its root.
      paint.fillStyle = colours.paper;
      paint.globalAlpha = 0.85;
      paint.fillRect(0, top + 1, gutter - 2, ROW - 1);
      paint.globalAlpha = 1;
      const left = 6 + Math.min(one.depth, 7) * INDENT;
      if (one.depth) {
        paint.strokeStyle = colours.line;
        paint.beginPath();
        paint.moveTo(left - 5, top);
        paint.lineTo(left - 5, top + ROW / 2);
        paint.lineTo(left - 1, top + ROW / 2);
        paint.stroke();
      }
      paint.fillStyle = one.port === port ? colours.ink : one.root ? colours.bad : colours.soft;
      paint.fillText(this.stops.recording.portName(one.port).replace("->", " → "), left + 1, top + ROW / 2 + 0.5, gutter - left - 6);
    }
    if (chain) this.drawChain(paint, chain, y, win, colours);
    this.drawHead(paint, t, win, colours);
  }

  // What waits at the root: nothing stopped it, and it is full.
  drawRoot(paint, { port }, top, win, colours) {
    const { recording } = this.stops;
    const queued = recording.series("queued", port);
    if (!queued) return;
    const { gutter } = this;
    const wide = Math.max(1, Math.floor(this.width - gutter - 4));
    const deepest = Math.max(1, this.side.stage.deepest);
    paint.fillStyle = colours.queue;
    paint.globalAlpha = 0.6;
    columnsOf({ values: queued, first: recording.first, every: recording.every }, win, wide).forEach((value, at) => {
      const tall = (Math.max(0, value) / deepest) * (ROW - 3);
      if (tall > 0) paint.fillRect(gutter + at, top + ROW - 1 - tall, 1, tall);
    });
    paint.globalAlpha = 1;
  }

  // Bars of a row; those that are in one pixel are drawn once.
  drawRow(paint, { port }, top, win, kinds) {
    const { stops, gutter, width } = this;
    const list = stops.byPort.get(port) ?? [];
    const reached = { pause: -1, hold: -1, signal: -1 };
    for (let place = stops.first(port, win.from); place < list.length; place++) {
      const at = list[place];
      if (stops.begin(at) > win.to) break;
      const kind = stops.kind(at);
      const left = Math.max(gutter, this.x(stops.begin(at), win)),
        right = Math.min(width - 4, Math.max(left + 1, this.x(stops.end(at), win)));
      if (right <= reached[kind] || right < gutter || left > width - 4) continue;
      const from = Math.max(left, reached[kind]);
      paint.fillStyle = kinds[kind];
      // Room is left between bars where there is some.
      paint.fillRect(from, top + 3, right - from > 3 ? right - from - 0.6 : right - from, ROW - 6);
      reached[kind] = right;
    }
  }

  // From each stop of a chain to the one that caused it.
  drawChain(paint, { steps, cycle }, y, win, colours) {
    const { stops, gutter, width } = this;
    const spot = (at, ps) => {
      const row = this.place.get(stops.port(at));
      return row === undefined ? null : [Math.max(gutter, Math.min(width - 4, this.x(ps, win))), y(row) + ROW / 2];
    };
    paint.save();
    paint.beginPath();
    paint.rect(0, HEAD, width, this.height - HEAD);
    paint.clip();
    paint.strokeStyle = paint.fillStyle = colours.ink;
    paint.lineWidth = 1.5;
    const all = cycle === null ? steps : [...steps, steps[cycle]];
    all.forEach((at, step) => {
      const row = this.place.get(stops.port(at));
      if (row !== undefined) {
        const left = Math.max(gutter, this.x(stops.begin(at), win)),
          right = Math.min(width - 4, this.x(stops.end(at), win));
        if (right >= gutter && left <= width - 4) paint.strokeRect(left - 1, y(row) + 2, Math.max(2, right - left) + 2, ROW - 4);
      }
      const moment = stops.begin(at);
      const next = all[step + 1];
      const filled = stops.table.filled[at];
      const to =
        next !== undefined
          ? spot(next, Math.min(moment, stops.end(next)))
          : filled !== null && this.place.has(filled)
            ? [Math.max(gutter, Math.min(width - 4, this.x(moment, win))), y(this.place.get(filled)) + ROW / 2]
            : null;
      const from = spot(at, moment);
      if (!from || !to) return;
      paint.beginPath();
      paint.moveTo(...from);
      paint.lineTo(...to);
      paint.stroke();
      paint.beginPath();
      paint.arc(...to, 3, 0, 7);
      paint.fill();
    });
    paint.restore();
  }

  drawHead(paint, t, win, colours) {
    const { width, height, gutter } = this;
    paint.fillStyle = colours.paper;
    paint.fillRect(0, 0, width, HEAD);
    paint.fillStyle = colours.line;
    paint.fillRect(0, HEAD - 1, width, 1);
    paint.fillStyle = colours.soft;
    paint.textAlign = "center";
    for (const { at, text } of ticks(win, Math.max(2, (width - gutter) / 110))) {
      const px = this.x(at, win);
      if (px < gutter + 20 || px > width - 30) continue;
      paint.fillText(text, px, HEAD / 2);
      paint.globalAlpha = 0.22;
      paint.fillRect(px, HEAD, 1, height);
      paint.globalAlpha = 1;
    }
    paint.textAlign = "left";
    const { stops } = this;
    const ports = stops.byPort.size;
    const words = `${count(stops.total)} stops, ${plural(ports, "port")}`;
    paint.fillText(words, 6, HEAD / 2, gutter - 10);
    if (t >= win.from && t <= win.to) {
      paint.fillStyle = colours.cursor;
      paint.fillRect(this.x(t, win) - 0.5, 2, 1.4, height);
    }
    // Beyond this nothing is loaded.
    paint.fillStyle = colours.shade;
    paint.globalAlpha = 0.75;
    if (stops.count < stops.total)
      for (const [from, to] of [
        [win.from, stops.from],
        [stops.until, win.to],
      ])
        if (to > from) paint.fillRect(this.x(from, win), HEAD, this.x(to, win) - this.x(from, win), height);
    paint.globalAlpha = 1;
  }

  /** What is at a point: {port, ps, at}, where `at` is a stop or nothing. */
  hit(px, py) {
    const { view } = this.side;
    if (!this.rows || py < HEAD) return null;
    const row = Math.floor((py - HEAD + this.element.scrollTop) / ROW);
    const one = this.rows[row];
    if (!one) return null;
    const ps = this.ps(px, view.win);
    if (px < this.gutter) return { port: one.port, ps: null, at: null, row: one };
    const near = (2 * (view.win.to - view.win.from)) / (this.width - this.gutter);
    const found = this.stops.within(one.port, ps - near, ps + near);
    return { port: one.port, ps, at: this.stops.foremost(found), row: one };
  }

  words({ port, at, row }) {
    const { stops } = this;
    const name = stops.recording.portName(port).replace("->", " → ");
    if (at === null || at === undefined)
      return [name, row.root ? "a root: nothing stopped it" : `stopped for ${time(row.stopped, 3)} in all, what overlaps counted again`];
    return [name, stops.words(at), `in the end because ${stops.root(stops.chain(at)).words}`];
  }

  /** Brings the row of a port into sight. */
  reveal(port) {
    if (!this.prepare()) return;
    const row = this.place.get(port);
    if (row === undefined) return;
    const top = row * ROW;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop || top > scrollTop + clientHeight - HEAD - ROW) this.element.scrollTop = top - clientHeight / 2;
  }

  listen() {
    const { canvas, side } = this;
    const { view } = side;
    const at = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let held = null,
      moved = 0;
    canvas.addEventListener(
      "wheel",
      (event) => {
        const [px] = at(event);
        if (event.ctrlKey || event.metaKey) view.zoomTime(Math.exp(-event.deltaY * 0.004), this.ps(px, view.win));
        else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          const by = ((event.deltaX || event.deltaY) / (this.width - this.gutter)) * (view.win.to - view.win.from);
          view.moveTime(by);
        } else return;
        event.preventDefault();
      },
      { passive: false },
    );
    canvas.addEventListener("pointerdown", (event) => {
      held = at(event);
      moved = 0;
      view.active = side;
    });
    canvas.addEventListener("pointermove", (event) => {
      const [px, py] = at(event);
      if (held && event.buttons) {
        moved += Math.abs(px - held[0]) + Math.abs(py - held[1]);
        if (moved > 5) {
          canvas.setPointerCapture(event.pointerId);
          view.moveTime((-(px - held[0]) / (this.width - this.gutter)) * (view.win.to - view.win.from));
          if (event.pointerType === "mouse") this.element.scrollTop -= py - held[1];
        }
        held = [px, py];
        side.tip.hidden = true;
        return;
      }
      const hit = this.hit(px, py);
      canvas.style.cursor = hit ? "pointer" : "default";
      side.tip.hidden = !hit;
      if (!hit) return;
      const [name, ...lines] = this.words(hit);
      put(
        side.tip,
        h("strong", {}, name),
        lines.map((line) => h("div", {}, line)),
      );
      side.placeTip(px, py, this.width, this.height);
    });
    canvas.addEventListener("pointerleave", () => {
      side.tip.hidden = true;
    });
    canvas.addEventListener("pointerup", (event) => {
      const was = held;
      held = null;
      if (!was || moved > 5) return;
      const hit = this.hit(...at(event));
      if (!hit) return;
      view.toggle(false);
      if (hit.at !== null && hit.at !== undefined)
        view.seek(Math.max(this.stops.begin(hit.at) + 1, Math.min(this.stops.end(hit.at), hit.ps)));
      else if (hit.ps !== null) view.seek(hit.ps);
      view.pick(hit.port);
    });
    canvas.addEventListener("dblclick", (event) => view.zoomTime(2.5, this.ps(at(event)[0], view.win)));
  }
}
