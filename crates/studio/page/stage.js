// Draws a fabric and what happens in it at one instant, on a canvas.
//
// What stands still (nodes, idle links, names) is drawn once for each camera position and kept; only links that carry something,
// queues that hold something and what is selected are drawn for each instant, and only where it can be seen. Links of a like
// use are drawn in one stroke.

import { Camera } from "./camera.js";
import { layout } from "./layout.js";
import { bytes as asBytes } from "./format.js";
import { drawChain, drawCycle, drawFlying } from "./marks.js";

const BUCKETS = 12;

export class Stage {
  constructor(canvas, camera = new Camera()) {
    this.canvas = canvas;
    this.camera = camera;
    this.paint = canvas.getContext("2d");
    this.base = document.createElement("canvas");
    this.width = this.height = 0;
    this.root = false;
  }

  /** What to draw: {nodes, ports, kind}, and its recording if there is one. */
  load(fabric, recording, deepest) {
    this.fabric = fabric;
    this.recording = recording;
    this.deepest = Math.max(1, deepest ?? 1);
    this.place = null;
    this.stale = true;
  }

  /** Fits the canvas to its element. */
  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const ratio = Math.min(2, window.devicePixelRatio || 1);
    if (!width || !height || (width === this.width && height === this.height && ratio === this.ratio)) return;
    Object.assign(this, { width, height, ratio, place: null, stale: true });
    for (const canvas of [this.canvas, this.base]) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
  }

  arrange() {
    const { fabric } = this;
    this.place = layout(fabric, fabric.kind, this.width, this.height);
    const n = fabric.ports.length;
    const geometry = {
      x1: new Float32Array(n),
      y1: new Float32Array(n),
      x2: new Float32Array(n),
      y2: new Float32Array(n),
      px: new Float32Array(n),
      py: new Float32Array(n),
      bend: new Float32Array(n),
      pitch: new Float32Array(n),
    };
    for (const { a, b, bend } of this.place.links) {
      const from = this.place.ports[a],
        to = this.place.ports[b];
      const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
      const px = -(to.y - from.y) / length,
        py = (to.x - from.x) / length;
      const pitch = Math.min(from.pitch, to.pitch);
      for (const [port, one, other, sign] of [
        [a, from, to, 1],
        [b, to, from, -1],
      ]) {
        geometry.x1[port] = one.x;
        geometry.y1[port] = one.y;
        geometry.x2[port] = other.x;
        geometry.y2[port] = other.y;
        geometry.px[port] = px * sign;
        geometry.py[port] = py * sign;
        geometry.bend[port] = bend;
        geometry.pitch[port] = pitch;
      }
    }
    this.camera.flat = this.place.mode !== "graph";
    const narrow = this.place.nodes.reduce((least, node) => Math.min(least, node.w), 40);
    this.camera.most = Math.max(3, 34 / narrow);
    this.closest = geometry.pitch.reduce((least, pitch) => Math.min(least, pitch), 40);
    this.lanes = geometry;
    this.buckets = Array.from({ length: BUCKETS }, () => new Int32Array(n));
    this.filled = new Int32Array(BUCKETS);
    this.seen = new Uint8Array(n);
  }

  /** Colours of the page, asked again when the theme changes. */
  look() {
    const style = getComputedStyle(this.canvas);
    const of = (name) => style.getPropertyValue(name).trim();
    this.colours = {
      paper: of("--paper"),
      ink: of("--ink"),
      soft: of("--soft"),
      line: of("--line"),
      shade: of("--shade"),
      idle: of("--idle"),
      box: of("--box"),
      edge: of("--edge"),
      queue: of("--queue"),
      pause: of("--pause"),
      held: of("--held"),
      control: of("--control"),
      bad: of("--bad"),
      pick: of("--pick"),
      host: of("--host"),
      use: Array.from({ length: BUCKETS }, (_, at) =>
        ramp([of("--use-0"), of("--use-1"), of("--use-2"), of("--use-3")], at / (BUCKETS - 1)),
      ),
      font: style.fontFamily,
    };
    this.stale = true;
  }

  // The direction across a port's lane on the screen, where a fabric in rows is stretched.
  across(port) {
    const { px, py } = this.lanes;
    const { k, ky } = this.camera;
    if (k === ky) return [px[port], py[port]];
    const dx = px[port] * ky,
      dy = py[port] * k,
      length = Math.hypot(dx, dy) || 1;
    return [dx / length, dy / length];
  }

  // Sideways shift of a port's lane on the screen.
  shift(port) {
    return Math.min(3.2, Math.max(0.55, this.lanes.pitch[port] * this.camera.k * 0.17));
  }

  // Lines are finer where ports stand close together.
  fine() {
    return Math.min(1, Math.max(0.6, (this.closest * this.camera.k) / 8));
  }

  /** The lane of a port on the screen: its two ends and, if it is bent, its middle. */
  lane(port) {
    const { k, ky, x, y } = this.camera;
    const { x1, y1, x2, y2, bend } = this.lanes;
    const by = this.shift(port);
    const [across, along] = this.across(port);
    const dx = across * by + x,
      dy = along * by + y;
    const lane = {
      x1: x1[port] * k + dx,
      y1: y1[port] * ky + dy,
      x2: x2[port] * k + dx,
      y2: y2[port] * ky + dy,
      bent: bend[port] > 0,
      cx: 0,
      cy: 0,
    };
    if (lane.bent) {
      lane.cx = (lane.x1 + lane.x2) / 2;
      lane.cy = Math.min(lane.y1, lane.y2) - bend[port] * 2 * ky;
    }
    return lane;
  }

  trace(port) {
    const lane = this.lane(port);
    this.paint.moveTo(lane.x1, lane.y1);
    if (lane.bent) this.paint.quadraticCurveTo(lane.cx, lane.cy, lane.x2, lane.y2);
    else this.paint.lineTo(lane.x2, lane.y2);
    return lane;
  }

  /** A stretch of a lane, `by` pixels beside it: what is on the lane itself stays visible. */
  traceBeside(port, from, to, by) {
    const { paint } = this;
    const [dx, dy] = this.across(port).map((value) => value * by);
    const lane = this.lane(port);
    const steps = lane.bent ? 12 : 1;
    for (let step = 0; step <= steps; step++) {
      const [px, py] = this.point(port, from + ((to - from) * step) / steps);
      if (step) paint.lineTo(px + dx, py + dy);
      else paint.moveTo(px + dx, py + dy);
    }
  }

  /** A point of a lane, `part` of the length along. */
  point(port, part) {
    const lane = this.lane(port);
    if (!lane.bent) return [lane.x1 + (lane.x2 - lane.x1) * part, lane.y1 + (lane.y2 - lane.y1) * part];
    const rest = 1 - part;
    return [
      rest * rest * lane.x1 + 2 * rest * part * lane.cx + part * part * lane.x2,
      rest * rest * lane.y1 + 2 * rest * part * lane.cy + part * part * lane.y2,
    ];
  }

  // Which lanes are on the screen, found once for each camera position. Close up, only those that begin or end in sight: others
  // would only pass through.
  cull() {
    const close = this.camera.flat && this.camera.k > 1.25;
    const within = (ax) => ax > -8 && ax < this.width + 8;
    const { k, ky, x, y } = this.camera;
    const { x1, y1, x2, y2, bend } = this.lanes;
    for (let port = 0; port < this.seen.length; port++) {
      const ax = x1[port] * k + x,
        bx = x2[port] * k + x,
        ay = y1[port] * ky + y,
        by = y2[port] * ky + y;
      this.seen[port] =
        (close ? within(ax) || within(bx) : true) &&
        Math.max(ax, bx) > -8 &&
        Math.min(ax, bx) < this.width + 8 &&
        Math.max(ay, by) > -8 &&
        Math.min(ay, by) - 2 * bend[port] * ky < this.height + 8
          ? 1
          : 0;
    }
  }

  drawBase() {
    const paint = this.base.getContext("2d");
    const {
      camera: { k, ky, x, y },
      colours,
      place,
    } = this;
    paint.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    paint.clearRect(0, 0, this.width, this.height);
    this.cull();
    paint.strokeStyle = colours.idle;
    paint.lineWidth = place.links.length > 1200 && k < 3 ? 0.5 : 1;
    paint.beginPath();
    for (const { a, b, bend } of place.links) {
      if (!this.seen[a]) continue;
      const from = place.ports[a],
        to = place.ports[b];
      paint.moveTo(from.x * k + x, from.y * ky + y);
      if (bend)
        paint.quadraticCurveTo(
          ((from.x + to.x) / 2) * k + x,
          (Math.min(from.y, to.y) - 2 * bend) * ky + y,
          to.x * k + x,
          to.y * ky + y,
        );
      else paint.lineTo(to.x * k + x, to.y * ky + y);
    }
    paint.stroke();
    // Switches, then hosts.
    for (const host of [false, true]) {
      paint.fillStyle = host ? colours.host : colours.box;
      paint.strokeStyle = colours.edge;
      paint.lineWidth = 1;
      paint.beginPath();
      place.nodes.forEach((node) => {
        if (node.host !== host) return;
        const w = Math.max(1, node.host ? Math.min(34, node.w * k) : node.w * k),
          h = node.h * ky,
          left = node.x * k + x - w / 2,
          top = node.y * ky + y - h / 2;
        if (left > this.width || left + w < 0 || top > this.height || top + h < 0) return;
        if (node.round) {
          paint.moveTo(left + w, top + h / 2);
          paint.arc(left + w / 2, top + h / 2, w / 2, 0, 7);
        } else if (w < 4) paint.rect(left, top, w, h);
        else paint.roundRect(left, top, w, h, Math.min(5, w / 4, h / 3));
      });
      paint.fill();
      if (!host || place.nodes.length < 400 || k > 3) paint.stroke();
    }
    this.drawNames(paint);
  }

  drawNames(paint) {
    const {
      camera: { k, ky, x, y },
      colours,
      place,
      fabric,
    } = this;
    paint.textBaseline = "middle";
    paint.textAlign = "center";
    // Every second, fourth, … host of a rack has its name, as they fit; or the first of every second, fourth, … rack.
    const hosts = place.nodes.filter((node) => node.host && !node.round);
    // How far neighbours are apart: on rails they are not those that follow each other in number.
    place.pitch ??= [hosts, hosts.filter((node) => node.slot === 0)].map((nodes) => {
      const across = nodes.map((node) => node.x).sort((a, b) => a - b);
      return across.reduce((least, x, at) => (at && x > across[at - 1] ? Math.min(least, x - across[at - 1]) : least), Infinity);
    });
    paint.font = `10px ${colours.font}`;
    const letters = paint.measureText(`h${hosts.length}`).width + 7;
    const fit = (pitch) => {
      let step = 1;
      while (step * pitch < letters && step < 1024) step *= 2;
      return step;
    };
    const [step, racks] = place.pitch.map((pitch) => fit(pitch * k));
    // Names of switches: all of a row in letters that fit, or none.
    const sizes = new Map();
    place.nodes.forEach((node, at) => {
      if (node.host) return;
      const { name } = fabric.nodes[at];
      const size = [11, 9, 8].find((size) => name.length * size * 0.62 + 5 < node.w * k) ?? 0;
      sizes.set(node.row, Math.min(size, sizes.get(node.row) ?? 11));
    });
    place.nodes.forEach((node, at) => {
      const cx = node.x * k + x,
        cy = node.y * ky + y,
        name = fabric.nodes[at].name;
      if (cx < -60 || cx > this.width + 60 || cy < -60 || cy > this.height + 60) return;
      const letter = node.host ? 10 : sizes.get(node.row);
      if (!letter) return;
      paint.font = `${letter}px ${colours.font}`;
      const wide = paint.measureText(name).width;
      if (node.host) {
        // As many names as fit beside each other.
        if (node.round) {
          if (node.w * k < 9) return;
        } else {
          if (node.slot % step || node.rack % racks) return;
        }
        paint.fillStyle = colours.soft;
        // A host with links below has its name inside.
        if (!node.round && this.nameShift(at, true) === 3) {
          if (wide + 4 < node.w * k) paint.fillText(name, cx, cy + 0.5);
        } else paint.fillText(name, cx, cy + (node.h * ky) / 2 + 8);
      } else if (node.h * ky > 15) {
        paint.fillStyle = colours.soft;
        paint.fillText(name, cx, node.round ? cy : cy + this.nameShift(at));
      }
    });
  }

  // The name stands in the band that no bar reaches.
  nameShift(at, sides = false) {
    const node = this.place.nodes[at];
    if (!this.sides) {
      this.sides = this.fabric.nodes.map(() => 0);
      this.fabric.ports.forEach(({ node }, port) => {
        this.sides[node] |= this.place.ports[port].ny > 0 ? 1 : this.place.ports[port].ny < 0 ? 2 : 0;
      });
    }
    if (sides) return this.sides[at];
    const h = node.h * this.camera.ky;
    return this.sides[at] === 3
      ? 0
      : this.sides[at] === 2
        ? -h / 2 + Math.min(9, h * 0.18)
        : this.sides[at] === 1
          ? h / 2 - Math.min(9, h * 0.18)
          : 0;
  }

  /**
   * Draws one instant.
   * @param now {t, playing, pace, wall, port, flow, hover, calm}: simulated ps; frames per second of wall time; seconds; what is selected
   */
  draw(now) {
    if (!this.fabric || !this.width) return;
    if (!this.place) {
      this.sides = null;
      this.arrange();
      this.stale = true;
    }
    if (!this.colours) this.look();
    const { paint, colours, recording, camera } = this;
    const eye = `${camera.k} ${camera.x} ${camera.y}`;
    if (this.stale || eye !== this.eye) {
      this.drawBase();
      this.eye = eye;
      this.stale = false;
    }
    paint.setTransform(1, 0, 0, 1, 0, 0);
    paint.clearRect(0, 0, this.canvas.width, this.canvas.height);
    paint.drawImage(this.base, 0, 0);
    paint.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    if (!recording) return;
    const frame = recording.frameAt(now.t);
    const part = Math.min(1, Math.max(0, (now.t - recording.frameStart(frame)) / recording.every));
    if (now.flow !== null && now.flow !== undefined) this.drawPath(recording.flows[now.flow], frame, now);
    this.drawUse(frame);
    this.drawPauses(frame);
    this.drawQueues(frame, now.playing ? part : 1);
    this.drawHolds(frame);
    // Where it is known where each frame is, that is drawn.
    if (!now.flying) this.drawPulses(frame, part, now);
    if (now.flying) drawFlying(this, now.flying);
    if (now.cycle) drawCycle(this, now.cycle);
    if (now.chain) drawChain(this, now.chain);
    if (now.hover?.port !== undefined) this.ring(now.hover.port, colours.ink, 1.5, 0.55);
    if (now.port !== null && now.port !== undefined) this.ring(now.port, colours.pick, 2.5, 1);
  }

  drawUse(frame) {
    const sent = this.recording.column("sent");
    if (!sent) return;
    const { paint, colours, recording, buckets, filled, seen } = this;
    const { frames } = recording;
    filled.fill(0);
    const per = recording.every / 8e12;
    for (let port = 0, at = frame; port < seen.length; port++, at += frames) {
      if (!seen[port] || sent[at] === 0) continue;
      const use = sent[at] / (recording.ports[port].rate_bps * per);
      const bucket = Math.min(BUCKETS - 1, Math.max(0, Math.ceil(use * BUCKETS) - 1));
      buckets[bucket][filled[bucket]++] = port;
    }
    const many = seen.length > 2500 && this.camera.k < 3;
    const fine = this.fine();
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      if (!filled[bucket]) continue;
      paint.strokeStyle = colours.use[bucket];
      // Where there are very many, the quiet ones stay in the background.
      paint.lineWidth = many ? 0.5 + (0.6 * bucket) / BUCKETS : (1 + (1.6 * (bucket + 1)) / BUCKETS) * fine;
      paint.globalAlpha = many ? 0.3 + (0.5 * bucket) / BUCKETS : 1;
      paint.beginPath();
      for (let at = 0; at < filled[bucket]; at++) this.trace(buckets[bucket][at]);
      paint.stroke();
    }
    paint.globalAlpha = 1;
  }

  // A pause is drawn beside the lane, which shows what the link carries all the same, and over as much of its length as of the frame:
  // first the time that all of the port was paused, then whole classes, then single queues, each finer than the one before. A bar
  // across is a stop for a class at the least; at the port that must wait.
  drawPauses(frame) {
    const paused = this.recording.column("paused");
    if (!paused) return;
    const { paint, colours, recording, seen } = this;
    const ports = [];
    for (let port = 0, at = frame; port < seen.length; port++, at += recording.frames)
      if (seen[port] && paused[at] > 0) ports.push([port, recording.stops(port, frame)]);
    if (!ports.length) return;
    const many = ports.length > 500;
    const fine = this.fine();
    const aside = many ? 0 : Math.min(3, Math.max(1, 2.6 * fine));
    paint.strokeStyle = colours.pause;
    for (const [wide, dash, stretch] of [
      [3, [], ({ port }) => [0, port]],
      [2.2, [6, 3], (stops) => [stops.port, stops.class]],
      [1.6, [1.6, 3.4], (stops) => [stops.class, stops.any]],
    ]) {
      paint.lineWidth = many ? 1.2 : wide * fine;
      paint.setLineDash(many ? [] : dash);
      paint.beginPath();
      for (const [port, stops] of ports) {
        const [from, to] = stretch(stops);
        if (to - from > 0.002) this.traceBeside(port, from, to, aside);
      }
      paint.stroke();
    }
    paint.setLineDash([]);
    paint.lineWidth = many ? 1.5 : 2.6 * fine;
    paint.beginPath();
    for (const [port, stops] of ports) {
      if (!stops.class) continue;
      const [cx, cy] = this.point(port, 0.1);
      // As long as the pause: a short one is a short bar.
      const half = Math.min(6.5, Math.max(2, this.lanes.pitch[port] * this.camera.k * 0.42)) * (0.35 + 0.65 * stops.class);
      const [dx, dy] = this.across(port);
      paint.moveTo(cx - dx * half, cy - dy * half);
      paint.lineTo(cx + dx * half, cy + dy * half);
    }
    paint.stroke();
  }

  height01(value) {
    const part = Math.min(1, value / this.deepest);
    return this.root ? Math.sqrt(part) : part;
  }

  drawQueues(frame, part) {
    const queued = this.recording.column("queued");
    if (!queued) return;
    const {
      paint,
      colours,
      recording,
      seen,
      place,
      camera: { k, ky, x, y },
    } = this;
    const held = new Float64Array(place.nodes.length);
    const round = [];
    paint.fillStyle = colours.queue;
    paint.beginPath();
    for (let port = 0, at = frame; port < seen.length; port++, at += recording.frames) {
      const after = queued[at],
        before = part < 1 && frame > 0 ? queued[at - 1] : after;
      const value = before + (after - before) * part;
      if (value <= 0) continue;
      held[recording.ports[port].node] += value;
      if (!seen[port]) continue;
      const spot = place.ports[port];
      const long = Math.max(1, this.height01(value) * spot.room * (spot.ny ? ky : k));
      if (place.nodes[recording.ports[port].node].round) {
        round.push([spot, long]);
        continue;
      }
      const wide = Math.min(14, Math.max(1, spot.pitch * k * 0.62));
      const px = spot.x * k + x,
        py = spot.y * ky + y;
      if (spot.ny) paint.rect(px - wide / 2, spot.ny > 0 ? py : py - long, wide, long);
      else paint.rect(spot.nx > 0 ? px : px - long, py - wide / 2, long, wide);
    }
    paint.fill();
    this.drawMarks();
    if (round.length) {
      paint.strokeStyle = colours.queue;
      paint.lineWidth = Math.min(9, 5 * Math.sqrt(k));
      paint.beginPath();
      for (const [spot, long] of round) {
        const px = spot.x * k + x,
          py = spot.y * ky + y;
        paint.moveTo(px, py);
        paint.lineTo(px + spot.nx * long, py + spot.ny * long);
      }
      paint.stroke();
    }
    // What a switch holds in all, where there is room to say it.
    paint.font = `600 10px ${colours.font}`;
    paint.textAlign = "right";
    paint.textBaseline = "middle";
    paint.fillStyle = colours.ink;
    place.nodes.forEach((node, at) => {
      if (node.host || node.round || held[at] < 500 || node.w * k < 118 || node.h * ky < 24) return;
      const right = node.x * k + x + (node.w * k) / 2 - 6,
        middle = node.y * ky + y + this.nameShift(at);
      if (right > 0 && right < this.width + 100) paint.fillText(asBytes(held[at], 2), right, middle);
    });
  }

  // Where packets begin to be marked, as a tick beside each bar that is wide enough.
  drawMarks() {
    const {
      paint,
      colours,
      fabric,
      seen,
      place,
      camera: { k, ky, x, y },
    } = this;
    paint.strokeStyle = colours.ink;
    paint.lineWidth = 1;
    paint.beginPath();
    for (let port = 0; port < seen.length; port++) {
      const { mark, node } = fabric.ports[port];
      const spot = place.ports[port];
      if (!mark || mark > this.deepest || !seen[port] || !spot.ny || place.nodes[node].round || spot.pitch * k < 6) continue;
      const wide = Math.min(14, spot.pitch * k * 0.62) / 2 + 1.5;
      const py = spot.y * ky + y + spot.ny * this.height01(mark) * spot.room * ky;
      const px = spot.x * k + x;
      paint.moveTo(px - wide, py);
      paint.lineTo(px + wide, py);
    }
    paint.stroke();
  }

  // Held queues are diamonds at the port; held flows two small bars under the host; losses crosses.
  drawHolds(frame) {
    const {
      paint,
      colours,
      recording,
      seen,
      place,
      camera: { k, ky, x, y },
    } = this;
    const each = (name, f) => {
      const column = recording.column(name);
      if (column)
        for (let port = 0, at = frame; port < seen.length; port++, at += recording.frames)
          if (seen[port] && column[at] > 0) f(port, column[at], place.ports[port]);
    };
    paint.fillStyle = colours.held;
    paint.beginPath();
    each("held_queues", (port, value, spot) => {
      const size = Math.min(4.5 + Math.log2(value), Math.max(1.6, spot.pitch * k * 0.42));
      const px = spot.x * k + x - spot.nx * (size + 2),
        py = spot.y * ky + y - spot.ny * (size + 2);
      paint.moveTo(px, py - size);
      paint.lineTo(px + size, py);
      paint.lineTo(px, py + size);
      paint.lineTo(px - size, py);
      paint.closePath();
    });
    each("held_flows", (port) => {
      const node = place.nodes[recording.ports[port].node];
      const size = Math.min(6, Math.max(1.5, node.w * k * 0.34));
      // Beside the name where that is inside, if there is room.
      const beside = this.nameShift(recording.ports[port].node, true) === 3 && node.w * k > 26;
      const px = node.x * k + x - (beside ? (node.w * k) / 2 + 5 : 0),
        py = node.y * ky + y;
      if (size < 2.5) {
        paint.rect(px - 0.5, py - (node.h * ky) / 2, 1, node.h * ky);
        return;
      }
      paint.rect(px - size * 0.7, py - size * 0.8, size * 0.5, size * 1.6);
      paint.rect(px + size * 0.2, py - size * 0.8, size * 0.5, size * 1.6);
    });
    paint.fill();
    paint.strokeStyle = colours.bad;
    paint.lineWidth = 2;
    paint.beginPath();
    each("dropped", (port, _, spot) => {
      const px = spot.x * k + x - spot.nx * 9,
        py = spot.y * ky + y - spot.ny * 9;
      paint.moveTo(px - 4, py - 4);
      paint.lineTo(px + 4, py + 4);
      paint.moveTo(px + 4, py - 4);
      paint.lineTo(px - 4, py + 4);
    });
    paint.stroke();
  }

  // Control frames run along their link once a frame; when frames pass too quickly for the eye, by the clock on the wall.
  drawPulses(frame, part, now) {
    const { paint, colours, recording, seen } = this;
    const along = (port) => {
      // Standing still, each at its own place, so that they do not hide each other.
      if (now.calm || (!now.playing && part >= 1)) return 0.35 + ((port * 0.381) % 0.3);
      return now.playing && now.pace > 6 ? (now.wall * 1.3 + port * 0.381) % 1 : part;
    };
    const size = (port) => Math.min(3.6, Math.max(1.5, this.lanes.pitch[port] * this.camera.k * 0.3));
    paint.fillStyle = colours.control;
    paint.beginPath();
    const frames = recording.column("pause_frames");
    if (frames)
      for (let port = 0, at = frame; port < seen.length; port++, at += recording.frames) {
        if (!seen[port] || !frames[at]) continue;
        const [px, py] = this.point(port, along(port)),
          r = size(port);
        paint.moveTo(px + r, py);
        paint.arc(px, py, r, 0, 7);
      }
    paint.fill();
    if (frames && !now.playing) this.nameFrames(frame, frames, along);
    const signals = recording.column("signals");
    if (!signals) return;
    paint.strokeStyle = colours.control;
    paint.fillStyle = colours.paper;
    paint.lineWidth = 1.4;
    paint.beginPath();
    for (let port = 0, at = frame; port < seen.length; port++, at += recording.frames) {
      if (!seen[port] || !signals[at]) continue;
      const [px, py] = this.point(port, along(port)),
        r = size(port);
      paint.rect(px - r, py - r, 2 * r, 2 * r);
    }
    paint.fill();
    paint.stroke();
  }

  // Standing still, a few dots have room to say what they are.
  nameFrames(frame, frames, along) {
    const { paint, colours, recording, seen } = this;
    const shown = [];
    for (let port = 0, at = frame; port < seen.length && shown.length <= 6; port++, at += recording.frames)
      if (seen[port] && frames[at]) shown.push([port, frames[at]]);
    if (shown.length > 6) return;
    paint.font = `10px ${colours.font}`;
    paint.textAlign = "left";
    paint.textBaseline = "middle";
    paint.lineWidth = 3;
    paint.strokeStyle = colours.paper;
    paint.fillStyle = colours.control;
    const named = [];
    for (const [port, count] of shown) {
      const [px, py] = this.point(port, along(port));
      // Two names in one place can both not be read.
      if (named.some(([x, y]) => Math.abs(x - px) < 96 && Math.abs(y - py) < 12)) continue;
      named.push([px, py]);
      const what = recording.framesFrom(port, frame) ?? "control";
      const text = `${count > 1 ? `${count}: ` : ""}${what} to ${recording.neighbour(port)}`;
      const left = px + 7 + paint.measureText(text).width > this.width ? px - 7 - paint.measureText(text).width : px + 7;
      paint.strokeText(text, left, py);
      paint.fillText(text, left, py);
    }
    paint.beginPath();
  }

  // An arrow head on a lane: its direction.
  arrow(port, colour) {
    const { paint } = this;
    const [hx, hy] = this.point(port, 0.62),
      [tx, ty] = this.point(port, 0.54);
    const length = Math.hypot(hx - tx, hy - ty) || 1,
      ux = (hx - tx) / length,
      uy = (hy - ty) / length;
    paint.fillStyle = colour;
    paint.beginPath();
    paint.moveTo(hx + ux * 5, hy + uy * 5);
    paint.lineTo(hx - ux * 4 - uy * 5, hy - uy * 4 + ux * 5);
    paint.lineTo(hx - ux * 4 + uy * 5, hy - uy * 4 - ux * 5);
    paint.fill();
  }

  // A flow's path beneath everything, its ends marked, and the port that holds it.
  drawPath(flow, frame, now) {
    if (!flow) return;
    const {
      paint,
      colours,
      place,
      recording,
      camera: { k, ky, x, y },
    } = this;
    paint.globalAlpha = 0.3;
    paint.strokeStyle = colours.pick;
    paint.lineWidth = 9;
    paint.lineCap = "round";
    paint.beginPath();
    for (const port of flow.path) this.trace(port);
    paint.stroke();
    paint.lineCap = "butt";
    paint.globalAlpha = 1;
    const around = (node, colour, dash) => {
      const { x: nx, y: ny, w, h } = place.nodes[node];
      paint.strokeStyle = colour;
      paint.lineWidth = 2.5;
      paint.setLineDash(dash);
      paint.beginPath();
      paint.roundRect(nx * k + x - (w * k) / 2 - 3, ny * ky + y - (h * ky) / 2 - 3, w * k + 6, h * ky + 6, 6);
      paint.stroke();
      paint.setLineDash([]);
    };
    around(flow.src, colours.pick, []);
    around(flow.dst, colours.pick, []);
    const by = recording.value("flow.by", now.flow, frame);
    if (by > 0 && place.nodes[by - 1]) around(by - 1, colours.held, [5, 3]);
    // Its class is paused at its NIC: by the neighbour.
    const nic = recording.nicOf(flow);
    if (nic !== null && grown(recording, "flow.paused", now.flow, frame) > 0)
      around(recording.ports[recording.ports[nic].peer].node, colours.pause, [5, 3]);
  }

  ring(port, colour, wide, alpha) {
    const {
      paint,
      place,
      camera: { k, ky, x, y },
    } = this;
    paint.strokeStyle = colour;
    paint.beginPath();
    this.trace(port);
    paint.globalAlpha = alpha * 0.25;
    paint.lineWidth = wide + 6;
    paint.stroke();
    paint.globalAlpha = alpha;
    paint.lineWidth = wide;
    paint.stroke();
    this.arrow(port, colour);
    const spot = place.ports[port];
    const r = Math.min(9, Math.max(4, spot.pitch * k * 0.5));
    paint.beginPath();
    paint.arc(spot.x * k + x, spot.y * ky + y, r, 0, 7);
    paint.stroke();
    paint.globalAlpha = 1;
  }

  /** What is at a point of the canvas: {port} or {node}, or nothing. */
  hit(px, py) {
    if (!this.place) return null;
    const {
      place,
      fabric,
      camera: { k, ky, x, y },
    } = this;
    const inside = place.nodes.findIndex(
      (node) => Math.abs(px - node.x * k - x) <= (node.w * k) / 2 + 1 && Math.abs(py - node.y * ky - y) <= (node.h * ky) / 2 + 1,
    );
    let best = null,
      near = inside >= 0 ? Infinity : 7;
    if (inside >= 0 && !place.nodes[inside].host) {
      // Inside a switch: the bar pointed at.
      place.ports.forEach((spot, port) => {
        if (fabric.ports[port].node !== inside) return;
        const dx = px - spot.x * k - x,
          dy = py - spot.y * ky - y;
        const deep = dx * spot.nx + dy * spot.ny,
          aside = Math.abs(dx * spot.ny) + Math.abs(dy * spot.nx);
        if (
          deep >= -2 &&
          deep <= spot.room * (spot.ny ? ky : k) + 2 &&
          aside <= Math.max(2, spot.pitch * k * 0.5) &&
          aside < near
        ) {
          near = aside;
          best = port;
        }
      });
      return best === null ? { node: inside } : { port: best, node: inside };
    }
    if (inside >= 0) return { node: inside };
    for (let port = 0; port < this.seen.length; port++) {
      if (!this.seen[port]) continue;
      const lane = this.lane(port);
      const away = lane.bent ? bentDistance(lane, px, py) : distance(lane, px, py);
      if (away < near) {
        near = away;
        best = port;
      }
    }
    return best === null ? null : { port: best };
  }
}

/** By how much a column that only grows did so in a frame. */
export const grown = (recording, name, which, frame) =>
  recording.value(name, which, frame) - (frame ? recording.value(name, which, frame - 1) : 0);

function distance({ x1, y1, x2, y2 }, px, py) {
  const dx = x2 - x1,
    dy = y2 - y1;
  const part = Math.max(0, Math.min(1, ((px - x1) * dx + (py - y1) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(px - x1 - part * dx, py - y1 - part * dy);
}

function bentDistance(lane, px, py) {
  let best = Infinity;
  for (let step = 0; step <= 24; step++) {
    const part = step / 24,
      rest = 1 - part;
    best = Math.min(
      best,
      Math.hypot(
        px - (rest * rest * lane.x1 + 2 * rest * part * lane.cx + part * part * lane.x2),
        py - (rest * rest * lane.y1 + 2 * rest * part * lane.cy + part * part * lane.y2),
      ),
    );
  }
  return best;
}

// A colour between several, `part` of the length.
function ramp(stops, part) {
  const at = Math.min(stops.length - 2, Math.floor(part * (stops.length - 1)));
  const mix = part * (stops.length - 1) - at;
  const parse = (text) => [1, 3, 5].map((from) => parseInt(text.slice(from, from + 2), 16));
  const a = parse(stops[at]),
    b = parse(stops[at + 1]);
  return `rgb(${a.map((value, channel) => Math.round(value + (b[channel] - value) * mix)).join(" ")})`;
}
