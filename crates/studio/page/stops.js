// Stops of a run, and the chain of causes from each to its root: what /api/jobs/N/stops/RUN answers.

import { bytes, plural, time } from "./format.js";

/** What a stop is, for colours and words. */
export const KINDS = {
  pause: { name: "pause by the neighbour", colour: "--pause" },
  hold: { name: "hold of a queue or flow", colour: "--held" },
  signal: { name: "hold by a signal from afar", colour: "--control" },
};

const arrow = (name) => name.replace("->", " → ");

export class Stops {
  constructor(table, recording) {
    this.table = table;
    this.recording = recording;
    this.count = table.stop.length;
    this.total = table.total;
    /** Nothing that begins between these is left out. */
    this.from = table.from_ps;
    this.until = table.until_ps;
    this.places = new Map(table.stop.map((row, at) => [row, at]));
    this.byPort = new Map();
    /** By port, the longest of its stops: how far before an instant one may begin that covers it. */
    this.longest = new Map();
    for (let at = 0; at < this.count; at++) {
      const port = table.port[at];
      if (!this.byPort.has(port)) this.byPort.set(port, []);
      this.byPort.get(port).push(at);
      this.longest.set(port, Math.max(this.longest.get(port) ?? 0, this.end(at) - table.begin[at]));
    }
  }

  begin(at) {
    return this.table.begin[at];
  }

  /** When it ended, or the run. */
  end(at) {
    return this.table.end[at] ?? this.table.end_ps;
  }

  port(at) {
    return this.table.port[at];
  }

  cause(at) {
    return this.table.cause[at];
  }

  by(at) {
    return this.table.nodes[this.table.by[at]];
  }

  kind(at) {
    const scope = this.table.scope[at];
    if (scope === "class" || scope === "queue") return "pause";
    return scope === "flow" && this.by(at) !== this.recording.neighbour(this.port(at)) ? "signal" : "hold";
  }

  /** The first of a port's stops, by place among them, that may reach into what is after an instant. */
  first(port, ps) {
    const list = this.byPort.get(port) ?? [];
    const least = ps - (this.longest.get(port) ?? 0);
    let low = 0,
      high = list.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.begin(list[middle]) < least) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  /** The stops of a port that there are between two instants. */
  within(port, from, to) {
    const list = this.byPort.get(port) ?? [];
    const found = [];
    for (let place = this.first(port, from); place < list.length && this.begin(list[place]) <= to; place++)
      if (this.end(list[place]) > from || this.begin(list[place]) >= from) found.push(list[place]);
    return found;
  }

  /** Of some stops the one with the longest way to its root, and of these the longest. */
  foremost(list) {
    let best = null,
      most = [0, 0];
    for (const at of list) {
      const weight = [this.chain(at).steps.length, this.end(at) - this.begin(at)];
      if (best === null || weight[0] > most[0] || (weight[0] === most[0] && weight[1] > most[1])) [best, most] = [at, weight];
    }
    return best;
  }

  /** From a stop to its root: {steps, cycle}, where `cycle` is the step that the last one leads back to. */
  chain(at) {
    const steps = [at];
    const seen = new Set(steps);
    for (let next = this.cause(at); next !== null; next = this.cause(next)) {
      if (seen.has(next)) return { steps, cycle: steps.indexOf(next) };
      seen.add(next);
      steps.push(next);
    }
    return { steps, cycle: null };
  }

  /** What is at the end of a chain: {kind, ports, node, words}. */
  root({ steps, cycle }) {
    const { table, recording } = this;
    if (cycle !== null) {
      const ports = [...new Set(steps.slice(cycle).map((at) => this.port(at)))];
      return { kind: "deadlock", ports, node: null, words: `${plural(ports.length, "port")} wait for each other in a cycle: a deadlock` };
    }
    const last = steps.at(-1);
    const filled = table.filled[last];
    if (filled === null) {
      const node = recording.nodes.findIndex((one) => one.name === this.by(last));
      return { kind: "scheme", ports: [], node, words: `the scheme at ${this.by(last)} holds, with no queue to blame` };
    }
    const name = arrow(recording.portName(filled));
    const { node } = recording.ports[filled];
    const waiting = table.waiting[last];
    if (waiting === "receiver")
      return { kind: "slow-receiver", ports: [], node, words: `${recording.nodeName(node)} takes packets more slowly than they come` };
    if (waiting === "down") return { kind: "link-down", ports: [filled], node: null, words: `the link ${name} is down` };
    const flows = table.flows[last];
    return { kind: "saturated", ports: [filled], node: null, words: `the link ${name} is saturated${flows ? ` by ${plural(flows, "flow")}` : ""}` };
  }

  /** What to mark on the picture: the ports of a chain in order, and where its root is. */
  marks(chain) {
    const { kind, ports, node } = this.root(chain);
    return { ports: chain.steps.map((at) => this.port(at)), root: { kind, ports, node } };
  }

  /** What was stopped, in words. */
  what(at) {
    return `${this.table.scope[at]} ${this.table.number[at]}`;
  }

  /** A step of a chain in words, without the port's own name. */
  words(at) {
    const { table, recording } = this;
    const length =
      table.end[at] === null
        ? `from ${time(this.begin(at), 4)} to the end`
        : `for ${time(this.end(at) - this.begin(at), 3)} from ${time(this.begin(at), 4)}`;
    const filled = table.filled[at];
    let because = "";
    if (filled !== null) {
      const state = { stopped: ", which was stopped itself", draining: ", which still sent what a stop had left", down: ", which was down" };
      because =
        table.waiting[at] === "receiver"
          ? `, because ${this.by(at)} itself was full`
          : `, because of ${arrow(recording.portName(filled))}${table.bytes[at] ? ` with ${bytes(table.bytes[at], 3)}` : ""}${state[table.waiting[at]] ?? ""}`;
    }
    return `${this.what(at)} stopped ${length}, by order of ${this.by(at)}${because}`;
  }

  /** Frames on their way at an instant: pauses from the order to the stop, and resumes as long as the link is before its end. */
  flying(ps) {
    const { table, recording } = this;
    const found = [];
    for (const [port, list] of this.byPort) {
      const { peer, delay_ps: delay } = recording.ports[port];
      for (let place = this.first(port, ps); place < list.length; place++) {
        const at = list[place];
        const arrives = this.begin(at),
          left = table.ordered[at] ?? arrives - delay;
        if (Math.min(left, arrives - delay) > ps) break;
        // Signals come from afar, and what a switch holds itself needs no frame.
        if (this.by(at) !== recording.neighbour(port)) continue;
        // One that waits behind a packet is still at the port that sends it.
        if (left <= ps && ps < arrives) found.push({ port: peer, part: Math.max(0, 1 - (arrives - ps) / (delay || 1)), pause: true, at });
        const ends = table.end[at];
        if (ends !== null && ends - delay <= ps && ps < ends) found.push({ port: peer, part: 1 - (ends - ps) / (delay || 1), pause: false, at });
      }
    }
    return found;
  }
}

/**
 * Ports in rows, nested by cause: a root first, below it the ports that stood still because of it, and so on. A port is below that one
 * because of which it was stopped for longest. Gives [{port, depth, root, stopped}], `root` where nothing stopped the port itself.
 */
export function nested(stops) {
  const { table } = stops;
  const stopped = new Map(),
    because = new Map();
  for (let at = 0; at < stops.count; at++) {
    const port = stops.port(at),
      length = stops.end(at) - stops.begin(at);
    stopped.set(port, (stopped.get(port) ?? 0) + length);
    const filled = table.filled[at];
    if (filled === null || filled === port) continue;
    if (!because.has(port)) because.set(port, new Map());
    because.get(port).set(filled, (because.get(port).get(filled) ?? 0) + length);
  }
  const parent = new Map();
  for (const [port, of] of because) {
    const [best] = [...of].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    parent.set(port, best[0]);
  }
  // Where causes go round in a cycle, the port that stood longest is the first.
  for (const start of [...parent.keys()].sort((a, b) => stopped.get(b) - stopped.get(a) || a - b)) {
    const seen = new Set([start]);
    for (let at = parent.get(start); at !== undefined; at = parent.get(at)) {
      if (at === start) {
        parent.delete(start);
        break;
      }
      if (seen.has(at)) break;
      seen.add(at);
    }
  }
  const children = new Map();
  for (const [port, above] of parent) children.set(above, [...(children.get(above) ?? []), port]);
  const all = new Set([...stopped.keys(), ...parent.values()]);
  // What a whole tree cost puts the trees into order.
  const cost = new Map();
  const weigh = (port) => {
    if (!cost.has(port)) {
      cost.set(port, 0);
      cost.set(port, (stopped.get(port) ?? 0) + (children.get(port) ?? []).reduce((sum, child) => sum + weigh(child), 0));
    }
    return cost.get(port);
  };
  const order = (ports) => ports.sort((a, b) => weigh(b) - weigh(a) || a - b);
  const rows = [];
  const add = (port, depth) => {
    rows.push({ port, depth, root: !stopped.has(port), stopped: stopped.get(port) ?? 0 });
    for (const child of order([...(children.get(port) ?? [])])) add(child, depth + 1);
  };
  for (const port of order([...all].filter((port) => !parent.has(port)))) add(port, 0);
  return rows;
}
