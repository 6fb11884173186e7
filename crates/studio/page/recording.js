// Reads recording.bin: what happened at every port and to chosen flows, frame by frame.

const MAGIC = [0x54, 0x57, 0x52, 0x45, 0x43, 0x31, 0x0a, 0x00]; // "TWREC1\n\0"

/** A whole recording. Columns are made readable when they are first asked for; a column of nothing but zeros is null. */
export class Recording {
  constructor(header, body) {
    this.header = header;
    this.frames = header.frames;
    this.first = header.first_ps;
    this.every = header.every_ps;
    this.nodes = header.nodes;
    this.ports = header.ports;
    this.flows = header.flows ?? [];
    this.groups = header.groups ?? [];
    this.end = this.first + this.frames * this.every;
    this.places = new Map();
    this.ready = new Map();
    let at = 0;
    for (const [kind, list, series] of [
      ["", header.columns, this.ports.length],
      ["flow.", header.flow_columns ?? [], this.flows.length],
    ]) {
      for (const column of list) {
        const bytes = body.subarray(at, at + column.bytes);
        if (bytes.length !== column.bytes) throw new Error("The recording ends early: it was not written to its end.");
        this.places.set(kind + column.name, { bytes, series });
        at += column.bytes;
      }
    }
  }

  /** Values of a column, series after series, or null if all are zero or there is no such column. */
  column(name) {
    if (!this.ready.has(name)) {
      const place = this.places.get(name);
      this.ready.set(name, place ? decode(place.bytes, place.series, this.frames) : null);
    }
    return this.ready.get(name);
  }

  /** One value: of port (or flow, for "flow.sent") `which` in frame `frame`. */
  value(name, which, frame) {
    const column = this.column(name);
    return column ? column[which * this.frames + frame] : 0;
  }

  /** The series of one port or flow, or null if it is all zero. */
  series(name, which) {
    const column = this.column(name);
    return column ? column.subarray(which * this.frames, (which + 1) * this.frames) : null;
  }

  /** The frame that covers an instant; frame f covers (first + f·every, first + (f+1)·every]. */
  frameAt(ps) {
    return Math.min(this.frames - 1, Math.max(0, Math.ceil((ps - this.first) / this.every) - 1));
  }

  frameStart(frame) {
    return this.first + frame * this.every;
  }

  frameEnd(frame) {
    return this.first + (frame + 1) * this.every;
  }

  nodeName(node) {
    return this.nodes[node]?.name ?? "?";
  }

  /** "leaf0->h3", as scenarios call a port. */
  portName(port) {
    const { node, peer } = this.ports[port];
    return `${this.nodeName(node)}->${this.nodeName(this.ports[peer].node)}`;
  }

  /** What a link can carry in a frame. */
  capacity(port) {
    return (this.ports[port].rate_bps * this.every) / 8e12;
  }

  /** "h4", as scenarios call a port's neighbour. */
  neighbour(port) {
    return this.nodeName(this.ports[this.ports[port].peer].node);
  }

  /**
   * How much of a frame something of a port was paused, as three shares each of which is part of the one before: `any` counts single
   * queues too, `class` only whole classes, `port` only all classes at once. An early recording does not tell them apart, and is
   * taken at its word: a pause is one of the link.
   */
  stops(port, frame) {
    const of = (name) => Math.min(1, this.value(name, port, frame) / this.every);
    const any = of("paused");
    return this.header.version < 2 ? { any, class: any, port: any } : { any, class: of("paused_class"), port: of("paused_port") };
  }

  /** The column of pauses of whole classes. */
  get classColumn() {
    return this.header.version < 2 ? "paused" : "paused_class";
  }

  /**
   * What frames that a port sent to its neighbour in a frame of the recording were: what the neighbour obeyed when they arrived, in
   * words; null if that is not known. A pause that changes nothing, and an answer, are obeyed by nobody.
   */
  framesFrom(port, frame) {
    const { peer, delay_ps: delay } = this.ports[port];
    const first = frame + Math.floor(delay / this.every);
    let pauses = 0,
      resumes = 0;
    // Sent at the end of the frame, or behind a packet, it arrives a frame later.
    for (let at = first; at <= first + 1 && at < this.frames; at++) {
      pauses += this.value("pauses", peer, at);
      resumes += this.value("resumes", peer, at);
    }
    if (pauses && resumes) return "pause and resume";
    return pauses ? "pause" : resumes ? "resume" : null;
  }

  /** The port by which a flow leaves its host: where pauses of its class are obeyed. */
  nicOf(flow) {
    const port = flow.path.length ? flow.path[0] : this.ports.findIndex(({ node }) => node === flow.src);
    return port < 0 ? null : port;
  }

  /** How many times slower a flow was than alone; null where that is not known. */
  slowdown(flow) {
    if (!flow || !flow.ideal_ps || flow.received_ps === null || flow.start_ps === null) return null;
    return (flow.received_ps - flow.start_ps) / flow.ideal_ps;
  }

  /** The deepest queue of the whole time: {port, frame, bytes}, or null if nothing ever waited. */
  deepestQueue() {
    const queued = this.column("queued");
    if (!queued) return null;
    let best = 0;
    for (let at = 1; at < queued.length; at++) if (queued[at] > queued[best]) best = at;
    return { port: Math.floor(best / this.frames), frame: best % this.frames, bytes: queued[best] };
  }

  /** Ports by any part of their names, whatever the case; those that begin with it first. A whole name is one port's alone. */
  findPorts(text, most = 24) {
    const wanted = text.trim().toLowerCase().replace(/\s*(→|->|>)\s*/, "->");
    if (!wanted) return [];
    const found = [];
    for (let port = 0; port < this.ports.length; port++) {
      const name = this.portName(port).toLowerCase();
      const at = name.indexOf(wanted);
      if (at < 0) continue;
      // A whole end of a link before a part of one: "h1" is not "h10".
      const ends = name.split("->");
      const rank = name === wanted ? 0 : ends[0] === wanted || name.startsWith(`${wanted}->`) ? 1 : ends[1] === wanted ? 2 : at === 0 ? 3 : 4;
      found.push({ port, rank });
    }
    return found
      .sort((a, b) => a.rank - b.rank || a.port - b.port)
      .slice(0, most)
      .map(({ port }) => port);
  }

  /** Totals by frame over all ports, made once. */
  totals() {
    if (this.sums) return this.sums;
    const { frames } = this;
    const add = (name) => {
      const sum = new Float64Array(frames);
      const column = this.column(name);
      if (column)
        for (let at = 0, port = 0; port < this.ports.length; port++) for (let f = 0; f < frames; f++) sum[f] += column[at++];
      return sum;
    };
    // Links of which a class was paused, and those of which only queues were.
    const pausedPorts = new Uint32Array(frames),
      queuePausedPorts = new Uint32Array(frames);
    const paused = this.column("paused"),
      whole = this.column(this.classColumn);
    if (paused)
      for (let at = 0, port = 0; port < this.ports.length; port++)
        for (let f = 0; f < frames; f++, at++) {
          if (!paused[at]) continue;
          if (whole && whole[at] > 0) pausedPorts[f]++;
          else queuePausedPorts[f]++;
        }
    this.sums = {
      queued: add("queued"),
      sent: add("sent"),
      paused: add("paused"),
      held_queues: add("held_queues"),
      held_flows: add("held_flows"),
      control: add("pause_frames"),
      signals: add("signals"),
      marked: add("marked"),
      dropped: add("dropped"),
      pausedPorts,
      queuePausedPorts,
    };
    // The deepest queue anywhere gives the scale of the bars.
    let deepest = 0;
    const queued = this.column("queued");
    if (queued) for (const value of queued) if (value > deepest) deepest = value;
    this.sums.deepest = deepest;
    return this.sums;
  }
}

/** Takes a recording apart, or says in words what is wrong with it. */
export function readRecording(buffer) {
  const bytes = new Uint8Array(buffer);
  if (bytes.length < 12 || MAGIC.some((value, at) => bytes[at] !== value))
    throw new Error("This is not a recording of Tailwater.");
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(8, true);
  if (12 + length > bytes.length) throw new Error("The recording ends early: it was not written to its end.");
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + length)));
  } catch {
    throw new Error("The head of the recording cannot be read.");
  }
  if (header.version !== 1 && header.version !== 2)
    throw new Error(`The recording has version ${header.version}; this page reads versions 1 and 2. Load the page again.`);
  return new Recording(header, bytes.subarray(12 + length));
}

/** Differences, zigzagged, as LEB128; a difference of 0 is followed by how often it comes again. */
export function decode(bytes, series, frames) {
  let column = null;
  let at = 0;
  // Numbers of more than 32 bits are put together by arithmetic: JavaScript's shifts have 32.
  const varint = () => {
    let value = 0,
      scale = 1,
      byte;
    do {
      byte = bytes[at++];
      if (byte === undefined) throw new Error("A column of the recording ends early.");
      value += (byte & 127) * scale;
      scale *= 128;
    } while (byte & 128);
    return value;
  };
  for (let one = 0; one < series; one++) {
    let value = 0;
    const base = one * frames;
    for (let frame = 0; frame < frames;) {
      const coded = varint();
      if (coded === 0) {
        const again = varint() + 1;
        if (frame + again > frames) throw new Error("A column of the recording is damaged.");
        if (value !== 0) column.fill(value, base + frame, base + frame + again);
        frame += again;
      } else {
        value += coded % 2 ? -(coded + 1) / 2 : coded / 2;
        // Four bytes a value as long as that is enough, and no memory at all for a column without values.
        column ??= new Uint32Array(series * frames);
        if ((value > 0xffffffff || value < 0) && !(column instanceof Float64Array)) column = Float64Array.from(column);
        column[base + frame] = value;
        frame++;
      }
    }
  }
  if (at !== bytes.length) throw new Error("A column of the recording is longer than it says.");
  return column;
}
