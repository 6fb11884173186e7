// Fabrics and recordings for tests: made up, but in the true format.

/** Hosts and switches of a shape, with ports in the simulator's order: node by node, link by link. */
export function fabric(kind, options = {}) {
  const nodes = [],
    pairs = [];
  const add = (name, isHost, tier) =>
    nodes.push({ name, kind: isHost ? "host" : "switch", tier, buffer: isHost ? null : 12_000_000 }) - 1;
  const hosts = (n) => Array.from({ length: n }, (_, at) => add(`h${at}`, true, 0));
  const join = (a, b, rate = 100e9) => pairs.push([a, b, rate]);
  if (kind === "star") {
    const all = hosts(options.hosts ?? 5),
      hub = add("sw0", false, 1);
    all.forEach((host) => join(host, hub));
  } else if (kind === "leaf-spine") {
    const { leaves = 4, hosts_per_leaf = 4, spines = 2 } = options;
    const all = hosts(leaves * hosts_per_leaf);
    const leaf = Array.from({ length: leaves }, (_, at) => add(`leaf${at}`, false, 1));
    const spine = Array.from({ length: spines }, (_, at) => add(`spine${at}`, false, 2));
    all.forEach((host, at) => join(host, leaf[Math.floor(at / hosts_per_leaf)]));
    leaf.forEach((one) => spine.forEach((other) => join(one, other)));
  } else if (kind === "fat-tree") {
    const k = options.k ?? 4,
      half = k / 2;
    const all = hosts((k * k * k) / 4);
    const edge = Array.from({ length: k * half }, (_, at) => add(`edge${at}`, false, 1));
    const agg = Array.from({ length: k * half }, (_, at) => add(`agg${at}`, false, 2));
    const core = Array.from({ length: half * half }, (_, at) => add(`core${at}`, false, 3));
    all.forEach((host, at) => join(host, edge[Math.floor(at / half)]));
    edge.forEach((one, at) => {
      for (let j = 0; j < half; j++) join(one, agg[Math.floor(at / half) * half + j]);
    });
    agg.forEach((one, at) => {
      for (let j = 0; j < half; j++) join(one, core[(at % half) * half + j]);
    });
  } else if (kind === "bcube") {
    const n = options.n ?? 4;
    const all = hosts(n * n);
    const low = Array.from({ length: n }, (_, at) => add(`sw0.${at}`, false, 1));
    const high = Array.from({ length: n }, (_, at) => add(`sw1.${at}`, false, 2));
    all.forEach((host, at) => {
      join(host, low[Math.floor(at / n)]);
      join(host, high[at % n]);
    });
  } else if (kind === "dumbbell" || kind === "chain") {
    const per = options.per ?? 4,
      n = kind === "chain" ? (options.switches ?? 4) : 2;
    const all = hosts(per * n);
    const row = Array.from({ length: n }, (_, at) => add(`sw${at}`, false, 1));
    all.forEach((host, at) => join(host, row[Math.floor(at / per)]));
    for (let at = 1; at < n; at++) join(row[at - 1], row[at]);
  } else if (kind === "file") {
    // A ring of switches with two chords: no tiers.
    const n = options.switches ?? 7;
    const all = hosts(2 * n);
    const ring = Array.from({ length: n }, (_, at) => add(`s${at}`, false, 1));
    all.forEach((host, at) => join(host, ring[at % n]));
    ring.forEach((one, at) => join(one, ring[(at + 1) % n]));
    join(ring[0], ring[3]);
    join(ring[1], ring[5]);
  } else if (kind === "rail-optimised") {
    const { servers = 4, rails = 4, spines = 2 } = options;
    const all = hosts(servers * rails);
    const rail = Array.from({ length: rails }, (_, at) => add(`rail${at}`, false, 1));
    const up = Array.from({ length: servers }, (_, at) => add(`up${at}`, false, 1));
    const spine = Array.from({ length: spines }, (_, at) => add(`spine${at}`, false, 2));
    all.forEach((host, at) => join(host, rail[at % rails], 400e9));
    all.forEach((host, at) => join(host, up[Math.floor(at / rails)], 3600e9));
    rail.forEach((one) => spine.forEach((other) => join(one, other, 800e9)));
  } else if (kind === "multi-plane") {
    const { planes = 2, leaves = 2, hosts_per_leaf = 4, spines = 2 } = options;
    const all = hosts(leaves * hosts_per_leaf);
    const leaf = Array.from({ length: planes * leaves }, (_, at) => add(`leaf${at}`, false, 1));
    const spine = Array.from({ length: planes * spines }, (_, at) => add(`spine${at}`, false, 2));
    all.forEach((host, at) => {
      for (let plane = 0; plane < planes; plane++) join(host, leaf[plane * leaves + Math.floor(at / hosts_per_leaf)]);
    });
    leaf.forEach((one, at) => {
      const plane = Math.floor(at / leaves);
      for (let j = 0; j < spines; j++) join(one, spine[plane * spines + j]);
    });
  } else if (kind === "torus") {
    const { x = 4, y = 4, z = 1, per = 1 } = options;
    const all = hosts(x * y * z * per);
    const grid = Array.from({ length: x * y * z }, (_, at) => add(`sw${at}`, false, 1));
    all.forEach((host, at) => join(host, grid[Math.floor(at / per)]));
    grid.forEach((one, at) => {
      let stride = 1;
      for (const size of [x, y, z]) {
        const place = Math.floor(at / stride) % size;
        if (size > 2 || (size === 2 && place === 0)) join(one, grid[at + (((place + 1) % size) - place) * stride]);
        stride *= size;
      }
    });
  } else if (kind === "dragonfly") {
    // One link between any two groups.
    const { groups = 9, each = 4, per = 2 } = options;
    const global = Math.ceil((groups - 1) / each);
    const all = hosts(groups * each * per);
    const row = Array.from({ length: groups * each }, (_, at) => add(`sw${at}`, false, 1));
    all.forEach((host, at) => join(host, row[Math.floor(at / per)]));
    for (let group = 0; group < groups; group++)
      for (let a = 0; a < each; a++) for (let b = a + 1; b < each; b++) join(row[group * each + a], row[group * each + b]);
    const port = (ahead) => Math.floor((ahead - 1) / global);
    for (let from = 0; from < groups; from++)
      for (let to = from + 1; to < groups; to++)
        join(row[from * each + port(to - from)], row[to * each + port(groups - (to - from))]);
  } else if (kind === "slim-fly") {
    // McKay, Miller and Širáň for q = 5: generators 1 and 4, and 2 and 3.
    const q = 5,
      per = options.per ?? 1;
    const all = hosts(2 * q * q * per);
    const row = Array.from({ length: 2 * q * q }, (_, at) => add(`sw${at}`, false, 1));
    all.forEach((host, at) => join(host, row[Math.floor(at / per)]));
    const at = (half, column, place) => row[half * q * q + column * q + place];
    for (let column = 0; column < q; column++)
      for (let a = 0; a < q; a++) {
        join(at(0, column, a), at(0, column, (a + 1) % q));
        join(at(1, column, a), at(1, column, (a + 2) % q));
        for (let other = 0; other < q; other++) join(at(0, column, a), at(1, other, (((a - column * other) % q) + q) % q));
      }
  } else throw new Error(`no shape ${kind}`);
  const of = nodes.map(() => []);
  pairs.forEach(([a, b, rate], at) => {
    of[a].push([at, rate]);
    of[b].push([at, rate]);
  });
  const ports = [],
    ends = pairs.map(() => []);
  of.forEach((list, node) =>
    list.forEach(([pair, rate]) => {
      ends[pair].push(ports.length);
      ports.push({ node, peer: -1, rate_bps: rate, delay_ps: 1_000_000 });
    }),
  );
  ends.forEach(([a, b]) => {
    ports[a].peer = b;
    ports[b].peer = a;
  });
  return { nodes, ports, topology: { kind, ...options } };
}

function varint(out, value) {
  let rest = BigInt(value);
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest ? low | 128 : low);
  } while (rest);
}

/** A column as the format has it: `series` is a list of lists. */
export function encode(series) {
  const out = [];
  for (const values of series) {
    let before = 0,
      zeros = 0;
    const flush = () => {
      if (zeros) {
        out.push(0);
        varint(out, zeros - 1);
        zeros = 0;
      }
    };
    for (const value of values) {
      const step = BigInt(value) - BigInt(before);
      if (step === 0n) zeros++;
      else {
        flush();
        varint(out, (step << 1n) ^ (step >> 63n));
      }
      before = value;
    }
    flush();
  }
  return Uint8Array.from(out);
}

/** recording.bin from a header without its columns, and columns by name. */
export function recording(header, columns, flowColumns = {}) {
  const parts = [],
    list = (all) =>
      Object.entries(all).map(([name, series]) => {
        const bytes = encode(series);
        parts.push(bytes);
        return { name, unit: "bytes", bytes: bytes.length };
      });
  const whole = { version: 2, ...header, columns: list(columns), flow_columns: list(flowColumns) };
  const head = new TextEncoder().encode(JSON.stringify(whole));
  const out = new Uint8Array(12 + head.length + parts.reduce((sum, part) => sum + part.length, 0));
  out.set(new TextEncoder().encode("TWREC1\n\0"));
  new DataView(out.buffer).setUint32(8, head.length, true);
  out.set(head, 12);
  let at = 12 + head.length;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

// The path of a flow: breadth first, the neighbour chosen by the flow's number.
function pathOf({ nodes, ports }, of, src, dst, flow) {
  const far = new Map([[dst, 0]]),
    queue = [dst];
  while (queue.length) {
    const at = queue.shift();
    for (const port of of[at]) {
      const next = ports[ports[port].peer].node;
      if (!far.has(next)) {
        far.set(next, far.get(at) + 1);
        queue.push(next);
      }
    }
  }
  const path = [];
  for (let at = src; at !== dst;) {
    const good = of[at].filter((port) => far.get(ports[ports[port].peer].node) === far.get(at) - 1);
    const port = good[(flow * 7 + at) % good.length];
    path.push(port);
    at = ports[ports[port].peer].node;
  }
  return path;
}

/** A made-up run: an incast to h0 beside other flows, as a fluid, with pauses of whole links or of single flows. */
export function sketch(kind, options = {}, style = "pfc", frames = 400) {
  const shape = fabric(kind, options);
  const { nodes, ports } = shape;
  const of = nodes.map(() => []);
  ports.forEach(({ node }, port) => of[node].push(port));
  const hosts = nodes.flatMap((node, at) => (node.kind === "host" ? [at] : []));
  const every = 1_000_000,
    n = Math.min(64, hosts.length - 1);
  const flows = [];
  const add = (group, src, dst, size, start) =>
    flows.push({
      flow: flows.length,
      group,
      src,
      dst,
      size,
      start_ps: start,
      received_ps: null,
      acknowledged_ps: null,
      ideal_ps: Math.round((size * 8e12) / 100e9) + 4_000_000,
      path: pathOf(shape, of, src, dst, flows.length),
    });
  for (let at = 1; at <= n; at++) add(1, hosts[at], hosts[0], 200_000, 20_000_000);
  for (let at = 0; at < Math.min(64, hosts.length); at++) {
    add(
      0,
      hosts[(at * 5 + 3) % hosts.length],
      hosts[(at * 11 + 8) % hosts.length === (at * 5 + 3) % hosts.length ? 0 : (at * 11 + 8) % hosts.length],
      400_000,
      at * 1_500_000,
    );
  }
  const names = ["queued", "sent", "paused", "paused_class", "paused_port", "held_queues", "held_flows", "pause_frames", "signals", "marked", "dropped"];
  const columns = Object.fromEntries(names.map((name) => [name, ports.map(() => new Array(frames).fill(0))]));
  const flowColumns = Object.fromEntries(
    ["sent", "received", "acknowledged", "held", "paused", "by"].map((name) => [name, flows.map(() => new Array(frames).fill(0))]),
  );
  const limit = style === "pfc" ? 400_000 : 60_000;
  const waiting = flows.map((flow) => flow.path.map(() => 0));
  const sent = flows.map(() => 0),
    got = flows.map(() => 0),
    held = flows.map(() => 0),
    stood = flows.map(() => 0);
  const capacity = (port) => (ports[port].rate_bps * every) / 8e12;
  let stopped = new Set(),
    stoppedFlows = new Set();
  for (let f = 0; f < frames; f++) {
    const now = f * every;
    const use = ports.map(() => 0),
      wants = ports.map(() => []);
    flows.forEach((flow, at) => {
      if (flow.start_ps > now || got[at] >= flow.size) return;
      flow.path.forEach((port, hop) => {
        const has = hop === 0 ? flow.size - sent[at] : waiting[at][hop];
        if (has > 0 && !stopped.has(port) && !(hop === 0 && stoppedFlows.has(at))) wants[port].push([at, hop, has]);
      });
      if (stoppedFlows.has(at)) held[at] += every;
      if (stopped.has(flow.path[0]) && sent[at] < flow.size) stood[at] += every;
    });
    const arrive = [];
    wants.forEach((list, port) => {
      let room = capacity(port);
      list.forEach(([at, hop, has], place) => {
        const part = Math.min(has, Math.floor(room / (list.length - place)));
        room -= part;
        use[port] += part;
        if (hop === 0) sent[at] += part;
        else waiting[at][hop] -= part;
        arrive.push([at, hop + 1, part]);
      });
    });
    for (const [at, hop, part] of arrive) {
      if (hop === flows[at].path.length) {
        got[at] += part;
        if (got[at] >= flows[at].size && flows[at].received_ps === null) {
          flows[at].received_ps = now + every;
          flows[at].acknowledged_ps = now + 3 * every;
        }
      } else waiting[at][hop] += part;
    }
    const queued = ports.map(() => 0);
    flows.forEach((flow, at) =>
      flow.path.forEach((port, hop) => {
        queued[port] += waiting[at][hop];
      }),
    );
    const nextStop = new Set(),
      nextFlows = new Set();
    ports.forEach((_, port) => {
      if (nodes[ports[port].node].kind === "host" || queued[port] < limit * (stopped.size || stoppedFlows.size ? 0.6 : 1)) return;
      flows.forEach((flow, at) => {
        const hop = flow.path.indexOf(port);
        if (hop < 1 || waiting[at][hop] <= 0) return;
        if (style === "pfc") nextStop.add(flow.path[hop - 1]);
        else {
          nextFlows.add(at);
          flowColumns.by[at][f] = ports[port].node + 1;
        }
      });
    });
    ports.forEach((_, port) => {
      columns.queued[port][f] = Math.round(queued[port]);
      columns.sent[port][f] = Math.round(use[port]);
      for (const name of ["paused", "paused_class", "paused_port"]) columns[name][port][f] = stopped.has(port) ? every : 0;
      if (stopped.has(port) !== nextStop.has(port)) columns.pause_frames[ports[port].peer][f] = 1;
      columns.marked[port][f] = queued[port] > limit / 2 ? 3 : 0;
    });
    for (const at of nextFlows) {
      const first = flows[at].path[0];
      columns.held_flows[first][f]++;
      if (!stoppedFlows.has(at)) columns.signals[flows[at].path.at(-1)][f]++;
      if (flows[at].path.length > 1) columns.held_queues[flows[at].path[1]][f]++;
    }
    stopped = nextStop;
    stoppedFlows = nextFlows;
    flows.forEach((_, at) => {
      flowColumns.sent[at][f] = Math.round(sent[at]);
      flowColumns.received[at][f] = Math.round(got[at]);
      flowColumns.acknowledged[at][f] = f > 2 ? flowColumns.received[at][f - 2] : 0;
      flowColumns.held[at][f] = held[at];
      flowColumns.paused[at][f] = stood[at];
    });
  }
  const header = {
    scenario: "made up",
    scheme: style,
    seed: 1,
    topology: shape.topology,
    first_ps: 0,
    every_ps: every,
    frames,
    nodes,
    ports,
    groups: ["web", "incast"],
    flows: flows.slice(0, 256),
  };
  return recording(header, columns, flowColumns);
}
