// Where nodes, ports and links of a fabric stand, in a box of given width and height.
//
// A node is a box (switches as wide as what hangs below them) or round. A port is a point on its node's edge with the direction into
// the node, in which the bar of its queue grows. Tiers are rows with the hosts below; BCube's levels stand on both sides of the
// hosts, and switches of servers below theirs; a torus is a grid, a dragonfly groups on a ring, a slim fly two blocks; any other graph finds
// its place by springs.

const TIERED = new Set(["star", "dumbbell", "leaf-spine", "fat-tree", "k-ary-n-tree", "two-sites", "chain", "rail-optimised", "dual-tor", "multi-plane", "three-tier"]);

/**
 * @param fabric {nodes: [{name, kind, tier}], ports: [{node, peer}]}
 * @param kind the topology's kind
 * @returns {mode, pitch, nodes: [{x, y, w, h, round, host, slot, rack}], ports: [{x, y, nx, ny, room, pitch}], links: [{a, b, bend}]}
 */
export function layout(fabric, kind, width, height) {
  const mode = kind === "bcube" ? "levels" : TIERED.has(kind) || tiered(fabric) ? "tiers" : "graph";
  const around = neighbours(fabric);
  const nodes = mode === "graph" ? free(fabric, around, kind, width, height) : rows(fabric, around, width, height, mode);
  const ports = anchors(fabric, nodes);
  return { mode, nodes, ports, links: links(fabric, nodes, ports), width, height };
}

// Every link joins neighbouring tiers.
function tiered({ nodes, ports }) {
  return ports.every(({ node, peer }) => Math.abs(nodes[node].tier - nodes[ports[peer].node].tier) === 1);
}

function neighbours({ nodes, ports }) {
  const around = nodes.map(() => []);
  for (const { node, peer } of ports) around[node].push(ports[peer].node);
  return around;
}

const isHost = (node) => node.kind === "host";

function rows(fabric, around, width, height, mode) {
  const { nodes } = fabric;
  const places = nodes.map((node) => ({ x: 0, y: 0, w: 0, h: 0, round: false, host: isHost(node), row: 0 }));
  const tiers = new Map();
  const own = mode === "tiers" ? ofServers(nodes, around) : new Set();
  nodes.forEach((node, at) => {
    const tier = isHost(node) ? 0 : own.has(at) ? BELOW : Math.max(1, node.tier);
    if (!tiers.has(tier)) tiers.set(tier, []);
    tiers.get(tier).push(at);
  });
  const order = [...tiers.keys()].sort((a, b) => a - b);
  // From the bottom up. BCube's lowest level goes below the hosts, so that no link runs behind a switch of another level.
  const stack = mode === "levels" && order.length > 2 ? [order[1], 0, ...order.slice(2)] : order;
  stack.forEach((tier, row) =>
    tiers.get(tier).forEach((at) => {
      places[at].row = row;
    }),
  );

  // Hosts in the order of their server's switch, or of their first, with gaps between racks.
  const hosts = tiers.get(0) ?? [];
  const home = (at) => {
    const switches = around[at].filter((peer) => !isHost(nodes[peer]));
    return switches.find((peer) => own.has(peer)) ?? Math.min(...switches, Infinity);
  };
  const sorted = hosts.map((at) => [home(at), at]).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const racks = new Set(sorted.map(([of]) => of)).size;
  const gap = racks > 1 ? Math.min(1.2, (0.25 * hosts.length) / racks + 0.3) : 0;
  const side = Math.max(8, Math.min(28, width * 0.02));
  const slots = hosts.length + gap * Math.max(0, racks - 1);
  const pitch = Math.min((width - 2 * side) / Math.max(1, slots), Math.max(64, width / 10));
  let x = (width - pitch * slots) / 2 + pitch / 2;
  let before = null,
    slot = 0,
    rack = -1;
  const spanOf = new Map();
  for (const [of, at] of sorted) {
    if (before !== null && of !== before) x += gap * pitch;
    rack += of === before ? 0 : 1;
    slot = of === before ? slot + 1 : 0;
    before = of;
    places[at].x = x;
    places[at].slot = slot;
    places[at].rack = rack;
    const span = spanOf.get(of) ?? [x, x];
    spanOf.set(of, [span[0], x]);
    x += pitch;
  }

  // Rows share the height; hosts need less of it than switches, and the mesh between switches the most.
  const count = stack.length;
  const boxHeight = Math.max(16, Math.min(count < 3 ? 120 : 84, height / (count * 2.1)));
  const hostHeight = Math.max(4, Math.min(mode === "levels" ? 30 : 18, pitch * 0.62, boxHeight * 0.5));
  const top = 10,
    bottom = hosts.length ? 20 : 10;
  const tall = stack.map((tier) => (tier === 0 ? hostHeight : boxHeight));
  const free = height - top - bottom - tall.reduce((a, b) => a + b, 0);
  // Between hosts and their switches links are short and straight; between switches they cross.
  const weight = stack.slice(1).map((tier, at) => (mode === "tiers" && stack[at] <= 0 ? 0.55 : 1));
  const all = weight.reduce((a, b) => a + b, 0) || 1;
  // A single row of switches stands near its hosts, in the middle of what room there is.
  const longest = 260;
  const spare = count === 2 ? Math.max(0, free - longest) : 0;
  let y = height - bottom - spare / 2;
  if (stack[0] !== 0) y += bottom - 10;
  stack.forEach((tier, row) => {
    const members = tiers.get(tier);
    y -= tall[row];
    for (const at of members) {
      places[at].y = y + tall[row] / 2;
      places[at].h = tall[row];
    }
    y -= ((free - spare) * (weight[row] ?? 0)) / all;
  });

  for (const at of hosts) places[at].w = Math.min(pitch * 0.74, 30);
  const planes = apart(nodes, around);
  for (const tier of order) {
    if (tier === 0) continue;
    const members = tiers.get(tier);
    const mean = new Map(
      members.map((at) => {
        const below = around[at].filter((peer) => nodes[peer].tier < nodes[at].tier);
        const from = below.length ? below : around[at];
        return [at, from.reduce((sum, peer) => sum + places[peer].x, 0) / Math.max(1, from.length)];
      }),
    );
    members.sort((a, b) => planes[a] - planes[b] || mean.get(a) - mean.get(b) || a - b);
    const racks = members.every((at) => spanOf.has(at));
    const cell = (width - 2 * side) / members.length;
    members.forEach((at, place) => {
      if (racks && (mode === "tiers" || tier === order[1])) {
        // As wide as its rack: links to hosts are straight.
        const [from, to] = spanOf.get(at);
        places[at].x = (from + to) / 2;
        places[at].w = to - from + pitch * 0.9;
      } else {
        places[at].x = side + cell * (place + 0.5);
        const wanted = Math.max(boxHeight * 1.1, around[at].length * 9);
        places[at].w = Math.min(cell * 0.82, wanted, width * 0.4);
      }
    });
  }
  return places;
}

// The row of switches that only join the accelerators of a server: below the hosts.
const BELOW = -1;

// Switches that lead to no other, at hosts that have a switch that does.
function ofServers(nodes, around) {
  const leads = nodes.map((node, at) => !isHost(node) && around[at].some((peer) => !isHost(nodes[peer])));
  const all = [...nodes.keys()].filter((at) => !isHost(nodes[at]) && !leads[at] && around[at].length);
  return new Set(all.filter((at) => around[at].every((host) => around[host].some((peer) => leads[peer]))));
}

// By switch, the first of those that it reaches without hosts: planes share nothing else. Where most of them stand alone, they are no planes.
function apart(nodes, around) {
  const plane = nodes.map(() => -1);
  nodes.forEach((node, first) => {
    if (isHost(node) || plane[first] >= 0) return;
    const queue = [first];
    plane[first] = first;
    for (let at = queue.pop(); at !== undefined; at = queue.pop())
      for (const peer of around[at])
        if (!isHost(nodes[peer]) && plane[peer] < 0) {
          plane[peer] = first;
          queue.push(peer);
        }
  });
  const alone = (at) => around[at].every((peer) => isHost(nodes[peer]));
  return plane.map((first, at) => (isHost(nodes[at]) || alone(at) ? -1 : first));
}

// Where the switches of a torus, a dragonfly or a slim fly stand, in the order of their numbers; nothing if it is none of these. The wiring tells.
function spots(fabric, around, kind) {
  const switches = [...fabric.nodes.keys()].filter((at) => !isHost(fabric.nodes[at]));
  const number = new Map(switches.map((at, place) => [at, place]));
  const to = switches.map((at) => new Set(around[at].filter((peer) => number.has(peer)).map((peer) => number.get(peer))));
  const made = { torus, dragonfly, "slim-fly": slimFly }[kind]?.(to);
  return made && { switches, ...made };
}

// How far the middle of a row is from a straight line, so that the link around the end is to be seen beside it.
const bulge = (at, size) => (size > 2 ? (4 * at * (size - 1 - at)) / (size - 1) ** 2 : 0) * 0.45;

function torus(to) {
  const n = to.length;
  for (let x = n; x >= 1; x--) {
    for (let y = n; n % x === 0 && y >= 1; y--) {
      if ((n / x) % y || !joined(to, [x, y, n / x / y])) continue;
      const place = (_, at) => {
        const [i, j, k] = [at % x, Math.floor(at / x) % y, Math.floor(at / x / y)];
        return [
          i + bulge(j, y) + k * (x + 0.9),
          // The last row at the bottom is the first: y goes up.
          y - 1 - j - bulge(i, x) - bulge(k, n / x / y),
        ];
      };
      return { at: to.map(place), out: to.map(() => -Math.PI / 4) };
    }
  }
  return null;
}

// Whether these are the links of a torus of such sizes.
function joined(to, sizes) {
  return to.every((peers, at) => {
    const all = new Set();
    let stride = 1;
    for (const size of sizes) {
      const place = Math.floor(at / stride) % size;
      for (const step of size > 1 ? [1, size - 1] : []) all.add(at + (((place + step) % size) - place) * stride);
      stride *= size;
    }
    return all.size === peers.size && [...all].every((peer) => peers.has(peer));
  });
}

// Small rings of `each` switches with their middles at `centres`.
function rings(n, each, centres, radius) {
  const at = [],
    out = [];
  for (let place = 0; place < n; place++) {
    const [x, y] = centres[Math.floor(place / each)];
    const angle = (2 * Math.PI * (place % each)) / each - Math.PI / 2;
    at.push([x + radius * Math.cos(angle), y + radius * Math.sin(angle)]);
    out.push(angle);
  }
  return { at, out };
}

function dragonfly(to) {
  const n = to.length;
  const all = (first, size) => [...Array(size).keys()].every((a) => [...Array(size).keys()].every((b) => a === b || to[first + a].has(first + b)));
  for (let size = n >> 1; size >= 2; size--) {
    const count = n / size;
    if (n % size || ![...Array(count).keys()].every((group) => all(group * size, size))) continue;
    const centres = [...Array(count).keys()].map((group) => {
      const angle = (2 * Math.PI * group) / count - Math.PI / 2;
      return [Math.cos(angle), Math.sin(angle)];
    });
    return rings(n, size, centres, 0.45 * Math.sin(Math.PI / count));
  }
  return null;
}

function slimFly(to) {
  const q = Math.round(Math.sqrt(to.length / 2));
  const column = (at) => Math.floor(at / q);
  // Within a half, no link leaves its column.
  const halves = to.every((peers, at) => [...peers].every((peer) => column(at) === column(peer) || at < q * q !== peer < q * q));
  if (2 * q * q !== to.length || !halves) return null;
  const centres = [...Array(2 * q).keys()].map((at) => [at < q ? 0 : 2.6, at % q]);
  return rings(to.length, q, centres, 0.24);
}

// Switches where their wiring puts them, or where springs do, and their hosts around them.
function free(fabric, around, kind, width, height) {
  const known = spots(fabric, around, kind);
  return known ? set(fabric, around, known, width, height) : springs(fabric, around, width, height);
}

function set(fabric, around, { switches, at, out }, width, height) {
  const { nodes } = fabric;
  const scaled = (values, room, margin) => {
    const low = Math.min(...values),
      span = Math.max(...values) - low;
    return values.map((value) => (span < 1e-9 ? room / 2 : margin + ((value - low) / span) * (room - 2 * margin)));
  };
  // As large as neighbours leave room for, with hosts between them.
  let radius = Math.min(34, Math.min(width, height) / 6);
  let xs, ys;
  for (let turn = 0; turn < 6; turn++) {
    const margin = radius * 2.9 + 4;
    xs = scaled(at.map(([x]) => x), width, margin);
    ys = scaled(at.map(([, y]) => y), height, margin);
    let near = Infinity;
    for (let a = 0; a < at.length; a++)
      for (let b = a + 1; b < at.length; b++) near = Math.min(near, Math.hypot(xs[a] - xs[b], ys[a] - ys[b]));
    radius = Math.max(3, Math.min(radius, near / 4.6));
  }
  const places = nodes.map((node) => {
    const r = isHost(node) ? Math.max(1.5, radius * 0.3) : radius;
    return { x: width / 2, y: height / 2, w: 2 * r, h: 2 * r, round: true, host: isHost(node), row: node.tier };
  });
  switches.forEach((node, place) => Object.assign(places[node], { x: xs[place], y: ys[place] }));
  switches.forEach((node, place) => {
    const members = around[node].filter((peer) => isHost(nodes[peer]));
    const spread = Math.min(Math.PI * 0.7, 0.42 * (members.length - 1));
    members.forEach((host, turn) => {
      const angle = out[place] + (members.length > 1 ? spread * (turn / (members.length - 1) - 0.5) : 0);
      places[host].x = places[node].x + Math.cos(angle) * radius * 2.1;
      places[host].y = places[node].y + Math.sin(angle) * radius * 2.1;
    });
  });
  return places;
}

// Springs between switches (and hosts with several links), then hosts as a fan around their switch. The same every time.
function springs(fabric, around, width, height) {
  const { nodes } = fabric;
  const core = [];
  nodes.forEach((node, at) => {
    if (!isHost(node) || new Set(around[at]).size !== 1) core.push(at);
  });
  const index = new Map(core.map((at, place) => [at, place]));
  const edges = [];
  for (const at of core)
    for (const peer of new Set(around[at])) if (index.has(peer) && at < peer) edges.push([index.get(at), index.get(peer)]);
  const n = core.length;
  // Breadth first around a circle is a good beginning: neighbours start side by side.
  const seen = new Set();
  const walk = [];
  for (const start of core.keys()) {
    const queue = [start];
    while (queue.length) {
      const at = queue.shift();
      if (seen.has(at)) continue;
      seen.add(at);
      walk.push(at);
      for (const [a, b] of edges)
        if (a === at) queue.push(b);
        else if (b === at) queue.push(a);
    }
  }
  const px = new Float64Array(n),
    py = new Float64Array(n);
  walk.forEach((at, place) => {
    const angle = (2 * Math.PI * place) / n - Math.PI / 2;
    px[at] = Math.cos(angle);
    py[at] = Math.sin(angle);
  });
  const ideal = 1.6 / Math.sqrt(Math.max(1, n));
  const steps = n > 400 ? 0 : n > 150 ? 80 : 260;
  for (let step = 0; step < steps; step++) {
    const heat = 0.12 * (1 - step / steps);
    const fx = new Float64Array(n),
      fy = new Float64Array(n);
    for (let a = 0; a < n; a++) {
      for (let b = a + 1; b < n; b++) {
        const dx = px[a] - px[b],
          dy = py[a] - py[b];
        const d2 = dx * dx + dy * dy + 1e-6;
        const push = (ideal * ideal) / d2;
        fx[a] += dx * push;
        fy[a] += dy * push;
        fx[b] -= dx * push;
        fy[b] -= dy * push;
      }
    }
    for (const [a, b] of edges) {
      const dx = px[a] - px[b],
        dy = py[a] - py[b];
      const pull = Math.hypot(dx, dy) / ideal;
      fx[a] -= dx * pull;
      fy[a] -= dy * pull;
      fx[b] += dx * pull;
      fy[b] += dy * pull;
    }
    for (let a = 0; a < n; a++) {
      const size = Math.hypot(fx[a], fy[a]) || 1;
      px[a] += (fx[a] / size) * Math.min(size, heat);
      py[a] += (fy[a] / size) * Math.min(size, heat);
    }
  }
  const fit = (values, room, margin) => {
    const low = Math.min(...values),
      high = Math.max(...values);
    const span = high - low;
    return span < 1e-9
      ? values.map(() => room / 2)
      : values.map((value) => margin + ((value - low) / span) * (room - 2 * margin));
  };
  const radius = Math.max(9, Math.min(34, Math.min(width, height) / (4.4 * Math.sqrt(Math.max(1, n)))));
  // Room at the edges for hosts around their switches.
  const margin = radius * 2.9 + 4;
  const xs = n ? fit([...px], width, margin) : [];
  const ys = n ? fit([...py], height, margin) : [];
  const places = nodes.map((node) => {
    const r = isHost(node) ? Math.max(4, radius * 0.34) : radius;
    return { x: width / 2, y: height / 2, w: 2 * r, h: 2 * r, round: true, host: isHost(node), row: node.tier };
  });
  core.forEach((at, place) => {
    places[at].x = xs[place];
    places[at].y = ys[place];
  });
  const cx = width / 2,
    cy = height / 2;
  const fans = new Map();
  nodes.forEach((node, at) => {
    if (index.has(at)) return;
    const of = around[at][0];
    if (of === undefined) return;
    if (!fans.has(of)) fans.set(of, []);
    fans.get(of).push(at);
  });
  for (const [of, members] of fans) {
    const home = places[of];
    const out = n > 1 ? Math.atan2(home.y - cy, home.x - cx) : -Math.PI / 2;
    const spread = n > 1 ? Math.min(Math.PI * 1.1, 0.42 * members.length) : 2 * Math.PI * (1 - 1 / members.length);
    members.forEach((at, place) => {
      const angle = out + (members.length > 1 ? spread * (place / (members.length - 1) - 0.5) : 0);
      const reach = radius * 2.5;
      places[at].x = home.x + Math.cos(angle) * reach;
      places[at].y = home.y + Math.sin(angle) * reach;
    });
  }
  return places;
}

// Ports on the edges of their nodes, each on the side of its neighbour and in the neighbours' order.
function anchors(fabric, nodes) {
  const { ports } = fabric;
  const places = ports.map(() => ({ x: 0, y: 0, nx: 0, ny: 0, room: 0, pitch: 8 }));
  const of = nodes.map(() => []);
  ports.forEach(({ node }, port) => of[node].push(port));
  of.forEach((mine, at) => {
    const here = nodes[at];
    if (here.round) return fan(fabric, nodes, places, mine, at);
    const sides = { top: [], bottom: [], left: [], right: [] };
    for (const port of mine) {
      const there = nodes[ports[ports[port].peer].node];
      if (there.row > here.row) sides.top.push(port);
      else if (there.row < here.row) sides.bottom.push(port);
      // Neighbours in a row meet at their sides; farther ones are reached over the top.
      else if (adjacent(nodes, here, there)) (there.x < here.x ? sides.left : sides.right).push(port);
      else sides.top.push(port);
    }
    const both = sides.top.length && sides.bottom.length;
    const depth = here.host
      ? here.h * (both ? 0.5 : 1)
      : both
        ? here.h * 0.5 - Math.min(7, here.h * 0.12)
        : here.h - Math.min(15, here.h * 0.32);
    for (const [side, list] of Object.entries(sides)) {
      const key = (port) => {
        const there = nodes[ports[ports[port].peer].node];
        return side === "left" || side === "right" ? there.y : there.x;
      };
      // Parallel links keep their order at both ends, so that they do not cross.
      list.sort((a, b) => key(a) - key(b) || Math.min(a, ports[a].peer) - Math.min(b, ports[b].peer));
      const flat = side === "top" || side === "bottom";
      const length = (flat ? here.w : here.h) * 0.9;
      // Straight down to hosts, if all of them stand below.
      const below =
        side === "bottom" &&
        list.every((port) => {
          const there = nodes[ports[ports[port].peer].node];
          return there.host && Math.abs(there.x - here.x) <= here.w / 2;
        });
      list.forEach((port, place) => {
        const spot = places[port];
        const step = length / list.length;
        const there = nodes[ports[ports[port].peer].node];
        const along = (place + 0.5) * step - length / 2;
        spot.pitch = step;
        spot.room = Math.max(2, flat ? depth : Math.min(here.w * 0.4, 40));
        if (flat) {
          spot.x = below ? there.x : here.x + along;
          spot.y = here.y + (side === "top" ? -here.h / 2 : here.h / 2);
          spot.ny = side === "top" ? 1 : -1;
        } else {
          spot.x = here.x + (side === "left" ? -here.w / 2 : here.w / 2);
          spot.y = here.y + along;
          spot.nx = side === "left" ? 1 : -1;
        }
      });
    }
  });
  return places;
}

function adjacent(nodes, here, there) {
  const low = Math.min(here.x, there.x),
    high = Math.max(here.x, there.x);
  return !nodes.some((node) => node !== here && node !== there && node.row === here.row && node.x > low && node.x < high);
}

function fan({ ports }, nodes, places, mine, at) {
  const here = nodes[at];
  const r = here.w / 2;
  const twins = new Map();
  for (const port of mine) {
    const peer = ports[ports[port].peer].node;
    if (!twins.has(peer)) twins.set(peer, []);
    twins.get(peer).push(port);
  }
  for (const [peer, list] of twins) {
    const there = nodes[peer];
    const angle = Math.atan2(there.y - here.y, there.x - here.x);
    // The two ends see each other mirrored.
    list.sort((a, b) => (at < peer ? 1 : -1) * (Math.min(a, ports[a].peer) - Math.min(b, ports[b].peer)));
    list.forEach((port, place) => {
      const turn = angle + (place - (list.length - 1) / 2) * Math.min(0.3, 5 / r);
      Object.assign(places[port], {
        x: here.x + Math.cos(turn) * r,
        y: here.y + Math.sin(turn) * r,
        nx: -Math.cos(turn),
        ny: -Math.sin(turn),
        room: r * 0.86,
        pitch: Math.max(3, Math.min(9, (2 * Math.PI * r) / mine.length)),
      });
    });
  }
}

// One for each pair of ports. `bend`: how far its middle is lifted, for links over the heads of others.
function links({ ports }, nodes, places) {
  const list = [];
  ports.forEach(({ node, peer }, port) => {
    if (peer < port) return;
    const a = nodes[node],
      b = nodes[ports[peer].node];
    const over = !a.round && a.row === b.row && places[port].ny !== 0;
    list.push({ a: port, b: peer, bend: over ? Math.min(a.y * 0.8, Math.abs(a.x - b.x) * 0.3) : 0 });
  });
  return list;
}
