// All ports over all the time, as a map of colours: a fabric too large for a picture can still be seen whole.

import { h } from "./dom.js";
import { columnsOf } from "./charts.js";
import { bytes, plural, share, time } from "./format.js";

/** What the colours can mean: a name, how a value is written, and where it comes from. Shares of time have means. */
export const HEATS = {
  queue: { name: "queues", colour: "--queue", format: (value) => `${bytes(value)} waiting`, column: () => "queued", share: false },
  use: { name: "link use", colour: "--use-2", format: (value) => `${share(value, 2)} used`, column: () => "sent", share: true },
  pause: {
    name: "pauses of links",
    colour: "--pause",
    format: (value) => `paused for ${share(value, 2)} of the time`,
    column: (recording) => recording.classColumn,
    share: true,
  },
  single: {
    name: "pauses of anything",
    colour: "--pause",
    format: (value) => `something paused for ${share(value, 2)} of the time`,
    column: () => "paused",
    share: true,
  },
};

/** Ports without tiers of which nothing is to be said: hosts have no queues, and would be half of the map. */
export function spoken(recording, kind, order) {
  const name = HEATS[kind].column(recording);
  const tier = (port) => recording.nodes[recording.ports[port].node].tier;
  const loud = new Set();
  for (const port of order) if (!loud.has(tier(port)) && recording.series(name, port)?.some((value) => value > 0)) loud.add(tier(port));
  return loud.size ? order.filter((port) => loud.has(tier(port))) : order;
}

/** Ports in the order of the rows: the top of the fabric first, and of each node one after the other. */
export function rowOrder({ nodes, ports }, allowed = null) {
  const order = [];
  ports.forEach((_, port) => (!allowed || allowed.has(port)) && order.push(port));
  return order.sort((a, b) => nodes[ports[b].node].tier - nodes[ports[a].node].tier || ports[a].node - ports[b].node || a - b);
}

/**
 * The values of a map: for each row of pixels and each column the largest of its ports. `rows` are as many as there are ports, or as
 * many as fit; row r has the ports order[starts[r]] up to order[starts[r + 1]].
 */
export function heatOf(recording, kind, order, span, width, height) {
  const { column, share: shares } = HEATS[kind];
  const rows = Math.max(1, Math.min(order.length, Math.floor(height)));
  const starts = Array.from({ length: rows + 1 }, (_, row) => Math.round((row * order.length) / rows));
  const values = new Float32Array(rows * width);
  const name = column(recording);
  for (let row = 0; row < rows; row++) {
    for (let at = starts[row]; at < starts[row + 1]; at++) {
      const series = recording.series(name, order[at]);
      if (!series) continue;
      const full = shares ? (kind === "use" ? recording.capacity(order[at]) : recording.every) : 1;
      const line = columnsOf({ values: series, first: recording.first, every: recording.every, mean: shares }, span, width);
      for (let x = 0; x < width; x++) {
        const value = line[x] / full;
        if (value > values[row * width + x]) values[row * width + x] = value;
      }
    }
  }
  return { rows, starts, values, width };
}

/** The tiers of a map: where each begins, and what is in it. */
export function bands({ nodes, ports }, order) {
  const list = [];
  order.forEach((port, place) => {
    const { tier, name } = nodes[ports[port].node];
    if (list.at(-1)?.tier === tier) list.at(-1).ports++;
    else list.push({ tier, name: name.replace(/[\d.]+$/, ""), from: place, ports: 1 });
  });
  return list;
}

const LEFT = 76;

export class Heat {
  constructor(canvas, recording, deepest) {
    Object.assign(this, { canvas, recording, deepest, kind: "queue", filter: null, made: "" });
    this.image = document.createElement("canvas");
  }

  /** Shows only ports whose name has this in it. */
  only(text) {
    const found = text ? this.recording.findPorts(text, Infinity) : [];
    this.filter = found.length ? new Set(found) : null;
    this.wanted = found.length ? text : "";
  }

  /** What the colours mean. */
  key() {
    const { colour, share: shares, name } = HEATS[this.kind];
    const ramp = h("span", { class: "ramp", "aria-hidden": "true" });
    ramp.style.background = `linear-gradient(90deg, var(--shade), var(${colour}))`;
    const top = shares ? "all the time" : bytes(this.deepest);
    return [ramp, ` ${name}, nothing to ${top}; a row for each port, or the most of several; tiers without any are left out`];
  }

  prepare(span, root) {
    const { clientWidth, clientHeight } = this.canvas;
    const ratio = Math.min(2, devicePixelRatio || 1);
    if (clientWidth < LEFT + 20 || clientHeight < 30) return false;
    const style = getComputedStyle(this.canvas);
    const theme = style.getPropertyValue("--paper");
    const key = [clientWidth, clientHeight, ratio, this.kind, this.wanted, root, theme, span.from, span.to].join(" ");
    if (key === this.made) return true;
    this.made = key;
    Object.assign(this, { width: clientWidth, height: clientHeight, ratio, span });
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    this.plotWidth = Math.floor(clientWidth - LEFT - 8);
    this.plotHeight = clientHeight - 10;
    this.order = spoken(this.recording, this.kind, rowOrder(this.recording, this.filter));
    this.map = heatOf(this.recording, this.kind, this.order, span, this.plotWidth, this.plotHeight);
    const hue = (name) => [1, 3, 5].map((from) => parseInt(style.getPropertyValue(name).trim().slice(from, from + 2), 16));
    const [ground, full] = [hue("--shade"), hue(HEATS[this.kind].colour)];
    const top = HEATS[this.kind].share ? 1 : this.deepest;
    this.image.width = this.plotWidth;
    this.image.height = this.map.rows;
    const paint = this.image.getContext("2d");
    const pixels = paint.createImageData(this.plotWidth, this.map.rows);
    this.map.values.forEach((value, at) => {
      const part = Math.min(1, value / top);
      // Something is never as pale as nothing.
      const mix = part > 0 ? 0.22 + 0.78 * (root ? Math.sqrt(part) : part) : 0;
      for (let channel = 0; channel < 3; channel++)
        pixels.data[at * 4 + channel] = Math.round(ground[channel] + (full[channel] - ground[channel]) * mix);
      pixels.data[at * 4 + 3] = 255;
    });
    paint.putImageData(pixels, 0, 0);
    this.colours = Object.fromEntries(
      ["ink", "soft", "line", "pick", "cursor"].map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
    );
    this.font = style.fontFamily;
    return true;
  }

  draw({ t, span, root, port, flow }) {
    if (!this.prepare(span, root)) return;
    const paint = this.canvas.getContext("2d");
    const { colours, plotWidth, plotHeight, recording } = this;
    paint.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    paint.clearRect(0, 0, this.width, this.height);
    paint.imageSmoothingEnabled = false;
    paint.drawImage(this.image, LEFT, 4, plotWidth, plotHeight);
    paint.font = `10px ${this.font}`;
    paint.textAlign = "right";
    paint.textBaseline = "top";
    for (const band of bands(recording, this.order)) {
      const y = 4 + (band.from / this.order.length) * plotHeight;
      paint.fillStyle = colours.line;
      paint.fillRect(0, Math.round(y), this.width, 1);
      const tall = (band.ports / this.order.length) * plotHeight;
      paint.fillStyle = colours.soft;
      if (tall > 11) paint.fillText(`${band.name || "tier"} ports`, LEFT - 6, y + 2);
      if (tall > 24) paint.fillText(String(band.ports), LEFT - 6, y + 13);
    }
    // The rows of the path of the flow that is selected, and that of the port.
    const rowOf = (which) => {
      const place = this.order.indexOf(which);
      return place < 0 ? null : 4 + ((place + 0.5) / this.order.length) * plotHeight;
    };
    const point = (which, colour) => {
      const y = rowOf(which);
      if (y === null) return;
      paint.fillStyle = colour;
      paint.beginPath();
      paint.moveTo(LEFT - 1, y);
      paint.lineTo(LEFT - 6, y - 4);
      paint.lineTo(LEFT - 6, y + 4);
      paint.fill();
    };
    if (flow) flow.path.forEach((one) => point(one, colours.soft));
    if (port !== null && port !== undefined) {
      point(port, colours.pick);
      const y = rowOf(port);
      if (y !== null) {
        paint.strokeStyle = colours.pick;
        paint.lineWidth = 1;
        const tall = Math.max(3, plotHeight / this.order.length);
        paint.strokeRect(LEFT - 0.5, y - tall / 2 - 0.5, plotWidth + 1, tall + 1);
      }
    }
    const x = LEFT + ((t - span.from) / (span.to - span.from || 1)) * plotWidth;
    paint.fillStyle = colours.cursor;
    paint.fillRect(x - 0.5, 2, 1, plotHeight + 4);
  }

  /** What is under a point: {port, ps, value, ports}: of several ports in a row the one that gives it its colour. */
  hit(px, py) {
    if (!this.map || px < LEFT || px > LEFT + this.plotWidth || py < 4 || py > 4 + this.plotHeight) return null;
    const { map, span, recording } = this;
    const row = Math.min(map.rows - 1, Math.floor(((py - 4) / this.plotHeight) * map.rows));
    const column = Math.min(map.width - 1, Math.floor(px - LEFT));
    const ps = span.from + ((column + 0.5) / map.width) * (span.to - span.from);
    const frame = recording.frameAt(ps);
    const name = HEATS[this.kind].column(recording);
    let port = this.order[map.starts[row]],
      most = -1;
    for (let at = map.starts[row]; at < map.starts[row + 1]; at++) {
      const value = recording.value(name, this.order[at], frame);
      if (value > most) [most, port] = [value, this.order[at]];
    }
    return { port, ps, value: map.values[row * map.width + column], ports: map.starts[row + 1] - map.starts[row] };
  }

  words({ port, ps, value, ports }) {
    return [
      this.recording.portName(port).replace("->", " → "),
      `${time(ps)}: ${HEATS[this.kind].format(value)}`,
      ...(ports > 1 ? [`the most of ${plural(ports, "port")} in this row`] : []),
    ];
  }
}
