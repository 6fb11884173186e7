// Around the pictures of the fabric view: the strip of time, the deepest queues, the flows, the legend.

import { h, put, s } from "./dom.js";
import { columnsOf, plot, ticks } from "./charts.js";
import { bytes, number, share, time } from "./format.js";
import { KINDS } from "./stops.js";

// The whole time in a strip: what is queued, and when links or flows were held. One row for each run.
export class Timeline {
  constructor(view) {
    this.view = view;
    this.canvas = h("canvas", { "aria-hidden": "true" });
    this.cursor = h("div", { class: "time-cursor" });
    this.scale = h("div", { class: "time-scale", "aria-hidden": "true" });
    this.rows = view.sides.length;
    this.area = h(
      "div",
      {
        class: "time-area",
        style: { height: `${this.rows * 44}px` },
        role: "slider",
        tabindex: "0",
        "aria-label": "Time",
        "aria-valuemin": "0",
        "aria-valuemax": "1000",
      },
      this.canvas,
      view.sides.map((side, at) => h("span", { class: "time-name", style: { top: `${at * 44 + 2}px` } }, side.name)),
      this.cursor,
    );
    this.element = h("div", { class: "timeline" }, this.area, this.scale);
    const point = (event) => {
      const box = this.area.getBoundingClientRect();
      view.toggle(false);
      view.seek(
        view.span.from + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (view.span.to - view.span.from),
      );
    };
    this.area.addEventListener("pointerdown", (event) => {
      this.area.setPointerCapture(event.pointerId);
      point(event);
    });
    this.area.addEventListener("pointermove", (event) => {
      if (event.buttons) point(event);
    });
  }

  draw() {
    const { view } = this;
    const width = this.area.clientWidth,
      height = this.rows * 44;
    if (!width || !view.sides.length) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    this.width = width;
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const paint = this.canvas.getContext("2d");
    const style = getComputedStyle(this.area);
    const most = Math.max(1, ...view.sides.map(({ recording }) => recording.totals().queued.reduce((a, b) => Math.max(a, b), 0)));
    const held = Math.max(
      1,
      ...view.sides.map(({ recording }) => {
        const sums = recording.totals();
        return sums.pausedPorts.reduce(
          (top, value, at) => Math.max(top, value, sums.queuePausedPorts[at], sums.held_queues[at], sums.held_flows[at]),
          0,
        );
      }),
    );
    view.sides.forEach((side, row) => {
      const { recording } = side;
      const totals = recording.totals();
      const part = { first: recording.first, every: recording.every };
      paint.setTransform(ratio, 0, 0, ratio, 0, row * 44 * ratio);
      paint.save();
      paint.beginPath();
      paint.rect(0, 0, width, 44);
      paint.clip();
      plot(
        paint,
        {
          top: most,
          rim: 4,
          grid: false,
          lines: [{ ...part, values: totals.queued, colour: "--queue", kind: "area", alpha: 0.4 }],
        },
        view.span,
        width,
        32,
        style,
      );
      paint.restore();
      // Below the line: paused links red, held queues and flows violet, paused queues a fine red line between them. A pixel that
      // stands for many frames has their mean.
      const columns = [
        [totals.pausedPorts, "--pause", 34, 4],
        [totals.queuePausedPorts, "--pause", 37, 1.5],
        [totals.held_queues, "--held", 39, 4],
        [totals.held_flows, "--held", 39, 4],
      ];
      for (const [values, colour, top, high] of columns) {
        paint.fillStyle = style.getPropertyValue(colour).trim();
        columnsOf({ ...part, values, mean: true }, view.span, Math.floor(width)).forEach((value, column) => {
          if (value <= 0) return;
          paint.globalAlpha = Math.min(1, 0.2 + 0.8 * Math.sqrt(value / held));
          paint.fillRect(column, top, 1, high);
        });
      }
      paint.globalAlpha = 1;
      const flow = view.flowIn(side);
      const one = flow === null ? null : recording.flows[flow];
      if (one && one.start_ps !== null) {
        const x = (ps) => ((ps - view.span.from) / (view.span.to - view.span.from)) * width;
        const end = one.received_ps ?? view.span.to;
        paint.strokeStyle = style.getPropertyValue("--pick").trim();
        paint.lineWidth = 2;
        paint.beginPath();
        paint.moveTo(x(one.start_ps), 6);
        paint.lineTo(x(one.start_ps), 2);
        paint.lineTo(x(end), 2);
        paint.lineTo(x(end), 6);
        paint.stroke();
      }
    });
    put(
      this.scale,
      ticks(view.span, Math.max(2, width / 95))
        .filter(({ at }) => at < view.span.to - (view.span.to - view.span.from) * 0.03)
        .map(({ at, text }) =>
          h(
            "span",
            {
              class: at - view.span.from < (view.span.to - view.span.from) * 0.02 ? "first" : "",
              style: { left: `${((at - view.span.from) / (view.span.to - view.span.from)) * 100}%` },
            },
            text,
          ),
        ),
    );
    this.at(view.state.t);
  }

  at(ps) {
    const { span } = this.view;
    const part = (ps - span.from) / (span.to - span.from || 1);
    this.cursor.style.transform = `translateX(${part * (this.width ?? 0)}px)`;
    const text = time(ps);
    if (this.said === text) return;
    this.said = text;
    this.area.setAttribute("aria-valuenow", String(Math.round(part * 1000)));
    this.area.setAttribute("aria-valuetext", text);
  }
}

// The deepest queues of the instant, as buttons: so that a port can be reached without a pointer.
export class Now {
  constructor(view) {
    this.view = view;
    this.body = h("div", { class: "now" });
    this.name = h("span", { class: "sub" });
    this.element = h("section", { class: "card plain" }, h("h2", {}, "Deepest queues now ", this.name), this.body);
    this.rows = Array.from({ length: 7 }, () => {
      const row = {
        bar: h("span", { class: "now-bar" }),
        name: h("span", { class: "now-name" }),
        value: h("span", { class: "now-value" }),
        port: null,
      };
      row.element = h(
        "button",
        { type: "button", class: "now-row", hidden: true, onclick: () => view.pick(row.port) },
        row.bar,
        row.name,
        row.value,
      );
      return row;
    });
    this.none = h("p", { class: "facts" }, "No queue holds anything.");
    this.scale = h("p", { class: "facts scale" });
    put(
      this.body,
      this.rows.map((row) => row.element),
      this.none,
      this.scale,
    );
  }

  show(ps) {
    const { recording, name } = this.view.active;
    this.name.textContent = this.view.sides.length > 1 ? name : "";
    const queued = recording.column("queued");
    const frame = recording.frameAt(ps);
    const best = [];
    if (queued)
      for (let port = 0; port < recording.ports.length; port++) {
        const value = queued[port * recording.frames + frame];
        if (value > 0 && (best.length < this.rows.length || value > best.at(-1)[0])) {
          best.push([value, port]);
          best.sort((a, b) => b[0] - a[0] || a[1] - b[1]);
          best.length = Math.min(best.length, this.rows.length);
        }
      }
    const { deepest } = this.view.active.stage;
    const { buffer } = recording.nodes.find((node) => node.buffer) ?? {};
    this.scale.textContent = `A full bar, here and in the picture, is ${bytes(deepest)}${buffer ? `, ${share(deepest / buffer, 2)} of a switch's ${bytes(buffer)}` : ""}.`;
    // Without any queue there is no scale.
    this.scale.hidden = deepest <= 1;
    this.rows.forEach((row, at) => {
      row.element.hidden = at >= best.length;
      if (at >= best.length) return;
      const [value, port] = best[at];
      row.port = port;
      row.bar.style.width = `${(value / deepest) * 100}%`;
      const marks = [
        stopWord(recording, port, frame),
        recording.value("held_queues", port, frame) > 0 && `${recording.value("held_queues", port, frame)} held`,
      ].filter(Boolean);
      row.name.textContent = recording.portName(port).replace("->", " → ") + (marks.length ? ` (${marks.join(", ")})` : "");
      row.value.textContent = bytes(value);
    });
    this.none.hidden = best.length > 0;
  }
}

/** One word for what of a port is paused. */
function stopWord(recording, port, frame) {
  const stops = recording.stops(port, frame);
  return stops.port ? "paused" : stops.class ? "a class paused" : stops.any ? "a queue paused" : null;
}

/**
 * What a filter of flows asks for: words that a flow must have, and how slow it must be at the least. "victim >20×" is both.
 */
export function readFilter(text) {
  let slower = 0;
  const words = text
    .toLowerCase()
    .replace(/>\s*(\d+(?:\.\d+)?)\s*[×x]?/g, (_, value) => {
      slower = Math.max(slower, Number(value));
      return " ";
    })
    .replace(/\s*(->)\s*/g, " → ")
    .trim()
    .replace(/\s+/g, " ");
  return { words, slower };
}

/** Lines of a table, with commas; texts with commas or quotes are quoted. */
export function csv(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

/** Hands something to the browser as a file. */
export function save(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const anchor = h("a", { href: address, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

// The recorded flows, to be searched and sorted.
export class FlowList {
  constructor(view) {
    this.view = view;
    this.sort = view.sides.some(({ recording }) => recording.flows.some((flow) => recording.slowdown(flow))) ? "time0" : "size";
    this.body = h("tbody", {});
    this.search = h("input", {
      type: "search",
      placeholder: "host, group, >20×",
      "aria-label": "Filter flows",
      title: "A part of a host's or a group's name, and how slow: victim >20×",
      oninput: () => this.show(),
    });
    this.heads = ["flow", "size", ...view.sides.map((_, at) => `time${at}`)].map((key) => {
      const side = key.startsWith("time") ? view.sides[Number(key.slice(4))] : null;
      const text = side ? (view.sides.length > 1 ? side.name : "took") : key;
      return h(
        "th",
        { class: key === "flow" ? "" : "number", "aria-sort": "none", "data-key": key },
        h(
          "button",
          {
            type: "button",
            class: "sorter",
            onclick: () => {
              this.sort = key;
              this.show();
            },
          },
          text,
        ),
      );
    });
    this.summary = h("span", { class: "sub" });
    this.element = h(
      "section",
      { class: "card plain" },
      h("h2", {}, "Flows ", this.summary),
      h(
        "div",
        { class: "flow-tools" },
        this.search,
        h("button", { type: "button", class: "button small", onclick: () => this.export() }, "CSV"),
      ),
      h(
        "div",
        { class: "flow-table", tabindex: "0", role: "region", "aria-label": "Recorded flows" },
        h("table", {}, h("thead", {}, h("tr", {}, this.heads)), this.body),
      ),
    );
  }

  // The flows that the filter lets through, each with what it took in every run, and how slow that was.
  rows() {
    const { view } = this;
    const { recording } = view.sides[0];
    const { words, slower } = readFilter(this.search.value);
    const others = view.sides.map((side) => new Map(side.recording.flows.map((flow) => [flow.flow, flow])));
    return recording.flows
      .map((flow, at) => ({
        flow,
        at,
        times: others.map((of) => took(of.get(flow.flow))),
        slow: others.map((of, side) => view.sides[side].recording.slowdown(of.get(flow.flow))),
      }))
      .filter(({ flow, slow, times }) => {
        const name = `${recording.nodeName(flow.src)} → ${recording.nodeName(flow.dst)} ${recording.groups[flow.group] ?? ""}`;
        // One that never came to its end is slower than any.
        const late = slow.some((value, side) => (value === null ? times[side] === null && flow.start_ps !== null : value > slower));
        return name.toLowerCase().includes(words) && (!slower || late);
      });
  }

  export() {
    const { view } = this;
    const { recording } = view.sides[0];
    const names = view.sides.map((side) => side.name);
    const head = ["flow", "group", "src", "dst", "size_bytes", "start_ps"];
    for (const name of names) head.push(`${name} received_ps`, `${name} slowdown`, `${name} held_ps`, `${name} paused_ps`);
    const last = (side, column, flow) => {
      const at = side.recording.flows.findIndex((one) => one.flow === flow);
      return at < 0 ? null : side.recording.value(column, at, side.recording.frames - 1);
    };
    const rows = this.rows().map(({ flow, times, slow }) => [
      flow.flow,
      recording.groups[flow.group] ?? "",
      recording.nodeName(flow.src),
      recording.nodeName(flow.dst),
      flow.size,
      flow.start_ps,
      ...view.sides.flatMap((side, at) => [
        times[at],
        slow[at],
        last(side, "flow.held", flow.flow),
        last(side, "flow.paused", flow.flow),
      ]),
    ]);
    save(`${view.job.name ?? "flows"}.csv`, csv([head, ...rows]), "text/csv");
  }

  show() {
    const { view } = this;
    const [main] = view.sides;
    const { recording } = main;
    const rows = this.rows();
    const slowOrLong = (row, side) => row.slow[side] ?? (row.times[side] === null ? Infinity : row.times[side] / 1e18);
    const key = this.sort.startsWith("time")
      ? (row) => -slowOrLong(row, Number(this.sort.slice(4)))
      : this.sort === "size"
        ? (row) => -row.flow.size
        : (row) => row.flow.flow;
    rows.sort((a, b) => key(a) - key(b) || a.at - b.at);
    for (const head of this.heads)
      head.setAttribute(
        "aria-sort",
        head.dataset.key === this.sort ? (this.sort === "flow" ? "ascending" : "descending") : "none",
      );
    this.summary.textContent = `${rows.length} of ${recording.flows.length} recorded`;
    put(
      this.body,
      rows.slice(0, 256).map(({ flow, at, times, slow }) =>
        h(
          "tr",
          { class: at === view.flow ? "chosen" : "" },
          h(
            "td",
            {},
            h(
              "button",
              {
                type: "button",
                class: "textual",
                "data-flow": flow.flow,
                "aria-pressed": String(at === view.flow),
                title: recording.groups[flow.group] ?? "",
                onclick: () => view.pickFlow(at === view.flow ? null : at),
              },
              `${recording.nodeName(flow.src)} → ${recording.nodeName(flow.dst)}`,
            ),
          ),
          h("td", { class: "number" }, bytes(flow.size)),
          times.map((ps, side) =>
            h(
              "td",
              { class: "number", title: ps === null ? "not received to the end" : `${time(ps, 4)} from start to end` },
              ps === null ? "–" : slow[side] === null ? time(ps, 3) : `${number(slow[side], 3)}×`,
            ),
          ),
        ),
      ),
    );
  }
}

// What the recordings can show.
export function legend(recordings, map) {
  const any = (name) => recordings.some((one) => one.column(name));
  // Pauses of classes and queues have a sign of their own only where there are some.
  const kinds = { port: false, class: false, queue: false };
  for (const one of recordings) {
    const [all, whole, some] = [one.header.version < 2 ? "paused" : "paused_port", one.classColumn, "paused"].map((name) => {
      const column = one.column(name);
      return column ? column.reduce((sum, value) => sum + value, 0) : 0;
    });
    kinds.port ||= all > 0;
    kinds.class ||= whole > all;
    kinds.queue ||= some > whole;
  }
  const deepest = Math.max(...recordings.map((one) => one.totals().deepest));
  const { buffer } = recordings[0].nodes.find((node) => node.buffer) ?? {};
  const least = (name) => {
    const values = recordings.flatMap((one) => one.ports.map((port) => port[name]).filter((value) => value));
    return values.length ? values.reduce((a, b) => Math.min(a, b)) : null;
  };
  const [mark, threshold] = [least("mark"), least("threshold")];
  const levels = [
    `full bar ${bytes(deepest, 2)}`,
    buffer && `buffer ${bytes(buffer, 2)}`,
    threshold && `pause threshold of one ingress alone ${bytes(threshold, 2)}`,
    mark && `marks above ${bytes(mark, 2)}${mark <= deepest ? " (tick)" : ""}`,
  ].filter(Boolean);
  const key = (draw, text) =>
    h("span", { class: "key" }, s("svg", { viewBox: "0 0 26 14", width: "26", height: "14", "aria-hidden": "true" }, draw), text);
  const sign = (draw, text, column) => any(column) && key(draw, text);
  const lane = () => s("path", { d: "M1 9H25", class: "l-use" });
  return h(
    "div",
    { class: "legend", "aria-label": "Legend" },
    map,
    Object.values(KINDS).map(({ name, colour }) => {
      const bar = s("rect", { x: 2, y: 4, width: 22, height: 6 });
      bar.style.fill = `var(${colour})`;
      const one = key(bar, name);
      one.classList.add("track-key");
      return one;
    }),
    h("span", { class: "key track-key" }, "rows are below the port that they waited for; red names are roots, with their queue; Ctrl and the wheel, or w a s d, zoom and move"),
    h("span", { class: "key" }, h("span", { class: "ramp", "aria-hidden": "true" }), "link use, idle to full"),
    key(
      [
        s("rect", { x: 4, y: 1, width: 5, height: 12, class: "l-track" }),
        s("rect", { x: 4, y: 5, width: 5, height: 8, class: "l-queue" }),
        s("rect", { x: 14, y: 1, width: 5, height: 12, class: "l-track" }),
        s("rect", { x: 14, y: 10, width: 5, height: 3, class: "l-queue" }),
      ],
      `queue: ${levels.join(", ")}`,
    ),
    kinds.port && key([lane(), s("path", { d: "M1 5H17", class: "l-pause" }), s("path", { d: "M4 1V13", class: "l-bar" })], "link paused, as long as of the frame"),
    kinds.class && key([lane(), s("path", { d: "M1 5H17", class: "l-class" }), s("path", { d: "M4 1V13", class: "l-bar" })], "a class paused"),
    kinds.queue && key([lane(), s("path", { d: "M1 5H17", class: "l-single" })], "only a queue paused"),
    sign(s("path", { d: "M13 2L18 7L13 12L8 7Z", class: "l-held" }), "queues held", "held_queues"),
    sign(
      [
        s("rect", { x: 8, y: 2, width: 3.5, height: 10, class: "l-held" }),
        s("rect", { x: 14, y: 2, width: 3.5, height: 10, class: "l-held" }),
      ],
      "flows held at a host",
      "held_flows",
    ),
    sign(
      [s("path", { d: "M1 7H25", class: "l-idle" }), s("circle", { cx: 13, cy: 7, r: 3.6, class: "l-control" })],
      "control frame to a neighbour: pause, resume or answer",
      "pause_frames",
    ),
    sign(
      [s("path", { d: "M1 7H25", class: "l-idle" }), s("rect", { x: 10, y: 4, width: 6, height: 6, class: "l-signal" })],
      "signal to a host",
      "signals",
    ),
    sign(s("path", { d: "M9 3L17 11M17 3L9 11", class: "l-drop" }), "packet dropped", "dropped"),
  );
}

/** From its start to its last byte; null if that never came. */
export const took = (flow) =>
  flow && flow.received_ps !== null && flow.start_ps !== null ? flow.received_ps - flow.start_ps : null;

const ICONS = {
  play: "M4 2L14 8L4 14Z",
  stop: "M3 2H6.500V14H3ZM9.500 2H13V14H9.500Z",
  begin: "M2 3H4V13H2ZM14 3L5 8L14 13Z",
  back: "M11 3L4 8L11 13Z",
  on: "M5 3L12 8L5 13Z",
};
/** A sign on a button. */
export const icon = (name) =>
  s(
    "svg",
    { viewBox: "0 0 16 16", width: "13", height: "13", "aria-hidden": "true" },
    s("path", { d: ICONS[name], fill: "currentColor" }),
  );
