// The page's parts that need no browser. `node --test tests/studio/unit.test.mjs`
import assert from "node:assert/strict";
import test from "node:test";
import { fabric, recording, sketch } from "./fixture.mjs";
import { decode, readRecording } from "../../crates/studio/page/recording.js";
import { layout } from "../../crates/studio/page/layout.js";
import { columnsOf } from "../../crates/studio/page/charts.js";
import { bands, heatOf, rowOrder, spoken } from "../../crates/studio/page/heat.js";
import { csv, readFilter } from "../../crates/studio/page/panels.js";
import { Camera } from "../../crates/studio/page/camera.js";
import { nested, Stops } from "../../crates/studio/page/stops.js";
import { held, sought, windowAt, zoomed } from "../../crates/studio/page/tracks.js";
import { falls } from "../../crates/studio/page/waterfall.js";
import { verdictOf } from "../../crates/studio/page/verdict.js";
import { SvgPaint } from "../../crates/studio/page/svg.js";
import * as toml from "../../crates/studio/page/toml.js";
import * as format from "../../crates/studio/page/format.js";

const head = (frames, ports = 2) => ({
  scenario: "x",
  scheme: "pfc",
  seed: 1,
  topology: { kind: "star" },
  first_ps: 0,
  every_ps: 1000,
  frames,
  nodes: [
    { name: "h0", kind: "host", tier: 0 },
    { name: "sw0", kind: "switch", tier: 1 },
  ],
  ports: Array.from({ length: ports }, (_, at) => ({ node: at % 2, peer: at ^ 1, rate_bps: 100e9, delay_ps: 1000 })),
  groups: [],
  flows: [],
});

test("a column comes back as it was written, whatever its values", () => {
  let state = 7;
  const random = () => (state = (state * 1103515245 + 12345) % 2147483648) / 2147483648;
  for (let round = 0; round < 50; round++) {
    const frames = 1 + Math.floor(random() * 40);
    const top = [1, 100, 2 ** 31, 2 ** 33, 2 ** 52][round % 5];
    const series = Array.from({ length: 2 }, () =>
      Array.from({ length: frames }, () => (random() < 0.5 ? 0 : Math.floor(random() * top))),
    );
    const read = readRecording(recording(head(frames), { queued: series }).buffer);
    series.forEach((values, port) => values.forEach((value, frame) => assert.equal(read.value("queued", port, frame), value)));
  }
});

test("a run of equal values is one difference of zero and a count", () => {
  assert.deepEqual([...decode(Uint8Array.from([0, 2, 10, 0, 1]), 1, 6)], [0, 0, 0, 5, 5, 5]);
});

test("a column of zeros takes no memory", () => {
  assert.equal(
    readRecording(recording(head(900), { queued: [new Array(900).fill(0), new Array(900).fill(0)] }).buffer).column("queued"),
    null,
  );
});

test("damage is said in words", () => {
  const good = recording(head(3), {
    queued: [
      [1, 2, 3],
      [4, 5, 6],
    ],
  });
  assert.throws(() => readRecording(new Uint8Array(40).buffer), /not a recording/);
  assert.throws(() => readRecording(good.slice(0, good.length - 1).buffer), /ends early/);
  assert.throws(() => readRecording(good.slice(0, 60).buffer), /ends early/);
  const later = recording(
    { ...head(3), version: 9 },
    {
      queued: [
        [1, 2, 3],
        [4, 5, 6],
      ],
    },
  );
  assert.throws(() => readRecording(later.buffer), /version 9/);
  assert.throws(() => decode(Uint8Array.from([0, 9]), 1, 3), /damaged/);
  assert.throws(() => decode(Uint8Array.from([2, 2, 2, 2]), 1, 3), /longer/);
  assert.throws(() => decode(Uint8Array.from([2, 130]), 1, 3), /early/);
});

test("a pause of one queue is not one of the link, and an early recording is taken at its word", () => {
  const paused = [
    [1000, 400, 0],
    [0, 0, 0],
  ];
  const whole = [
    [0, 100, 0],
    [0, 0, 0],
  ];
  const read = readRecording(recording(head(3), { paused, paused_class: whole }).buffer);
  assert.deepEqual(read.stops(0, 0), { any: 1, class: 0, port: 0 });
  assert.deepEqual(read.stops(0, 1), { any: 0.4, class: 0.1, port: 0 });
  const { pausedPorts, queuePausedPorts } = read.totals();
  assert.deepEqual([[...pausedPorts], [...queuePausedPorts]], [
    [0, 1, 0],
    [1, 0, 0],
  ]);
  const early = readRecording(recording({ ...head(3), version: 1 }, { paused }).buffer);
  assert.deepEqual(early.stops(0, 0), { any: 1, class: 1, port: 1 });
  assert.deepEqual([...early.totals().pausedPorts], [1, 1, 0]);
});

test("a control frame is what the neighbour obeys when it arrives", () => {
  const zeros = () => [0, 0, 0, 0, 0, 0];
  const pauses = [zeros(), [0, 0, 1, 0, 0, 0]],
    resumes = [zeros(), [0, 0, 0, 0, 1, 1]];
  const slow = { ...head(6) };
  slow.ports = slow.ports.map((port) => ({ ...port, delay_ps: 2000 }));
  const read = readRecording(recording(slow, { pauses, resumes }).buffer);
  assert.deepEqual(
    [0, 1, 2, 3, 4].map((frame) => read.framesFrom(0, frame)),
    ["pause", "resume", "resume", "resume", null],
  );
});

test("of many frames under a pixel a chart shows the mean of a share, and the peak of a queue", () => {
  const values = [0, 0, 0, 1, 1, 0, 0, 0];
  const line = { values, first: 0, every: 10 };
  const span = { from: 0, to: 80 };
  assert.deepEqual([...columnsOf({ ...line, mean: true }, span, 2)], [0.25, 0.25]);
  assert.deepEqual([...columnsOf(line, span, 2)], [1, 1]);
  // A pixel that is finer than a frame shows that frame, and one beyond the end nothing.
  assert.deepEqual([...columnsOf({ ...line, mean: true }, span, 16)].slice(5, 11), [0, 1, 1, 1, 1, 0]);
  assert.deepEqual([...columnsOf({ ...line, mean: true }, { from: 0, to: 160 }, 2)], [0.25, -1]);
});

test("the deepest queue is a port and an instant, not the instant when most waits in all", () => {
  const read = readRecording(
    recording(head(3, 4), {
      queued: [
        [5, 60, 5],
        [5, 60, 5],
        [90, 0, 5],
        [0, 0, 5],
      ],
    }).buffer,
  );
  assert.deepEqual(read.deepestQueue(), { port: 2, frame: 0, bytes: 90 });
  assert.equal(readRecording(recording(head(3), {}).buffer).deepestQueue(), null);
});

test("a port is found by any part of its name, in any case, whole names first", () => {
  const shape = fabric("leaf-spine", { leaves: 4, hosts_per_leaf: 4, spines: 2 });
  const read = readRecording(recording({ ...head(1), ...shape }, {}).buffer);
  const names = (text) => read.findPorts(text).map((port) => read.portName(port));
  assert.equal(names("LEAF0 -> H0")[0], "leaf0->h0");
  assert.deepEqual(names("h1").slice(0, 2), ["h1->leaf0", "leaf0->h1"]);
  assert.ok(names("h1").includes("h10->leaf2"));
  assert.ok(names("spine1").length === 8 && names("Spine1")[0].startsWith("spine1->"));
  assert.deepEqual([names(""), names("  "), names("nowhere")], [[], [], []]);
});

test("a camera goes nearer in both directions, and a link brings it back on a screen of any size", () => {
  const camera = new Camera();
  camera.zoom(2, 300, 200, 800, 400);
  assert.deepEqual([camera.k, camera.ky], [2, 2]);
  // What was under the pointer still is.
  assert.deepEqual([(300 - camera.x) / camera.k, (200 - camera.y) / camera.ky], [300, 200]);
  const text = camera.text(800, 400);
  const other = new Camera();
  assert.ok(other.go(text, 800, 400));
  assert.ok(Math.abs(other.x - camera.x) < 1 && Math.abs(other.y - camera.y) < 1 && other.k === 2);
  const small = new Camera();
  assert.ok(small.go(text, 400, 300));
  assert.equal(small.text(400, 300), text);
  for (const bad of ["", "2", "a,b,c", "0.5,0,0", "2,0.5,0.5,1", "Infinity,0,0"]) assert.ok(!new Camera().go(bad, 800, 400), bad);
});

test("of two runs one of which comes to rest, the verdict is how many flows never end, and the first of them", () => {
  const flows = [
    { flow: 0, src: 1, dst: 2, group: 0, start_ps: 5, received_ps: 9 },
    { flow: 1, src: 1, dst: 3, group: 0, start_ps: 7, received_ps: null },
    { flow: 2, src: 2, dst: 3, group: 0, start_ps: 6, received_ps: null },
  ];
  const recording = (preset) => ({ header: { preset }, flows, groups: ["all"], nodeName: (node) => `h${node}` });
  const run = (ending, finished) => ({ summary: { ending, flows: 3, finished, groups: [] } });
  const of = (...runs) => verdictOf(runs, [recording("pfc"), recording("portfc")]);
  assert.deepEqual(of(run("deadlock", 1), run("complete", 3)), {
    group: "Flows that never end",
    text: "2 of 3 under pfc (deadlock), 0 of 3 under portfc",
    worst: 2,
    who: "h2 → h3, never received to the end under pfc",
  });
  assert.equal(of(run("stopped", 1), run("complete", 3)), null, "one that was only stopped may have gone on");
});

test("a filter of flows has words and a slowdown", () => {
  assert.deepEqual(readFilter("Victim >20×"), { words: "victim", slower: 20 });
  assert.deepEqual(readFilter("> 2.5x h4->h1"), { words: "h4 → h1", slower: 2.5 });
  assert.deepEqual(readFilter("  "), { words: "", slower: 0 });
});

test("a table with commas quotes what needs it", () => {
  assert.equal(csv([["a", "b, c", 'd"e'], [1, null, undefined]]), 'a,"b, c","d""e"\n1,,\n');
});

test("a map has a row for every port, the top of the fabric first, or the most of several ports in one", () => {
  const read = readRecording(sketch("leaf-spine", { leaves: 4, hosts_per_leaf: 4, spines: 2 }).buffer);
  const order = rowOrder(read);
  assert.equal(order.length, read.ports.length);
  assert.deepEqual(
    bands(read, order).map(({ name, ports }) => [name, ports]),
    [
      ["spine", 8],
      ["leaf", 24],
      ["h", 16],
    ],
  );
  const span = { from: read.first, to: read.end };
  const fine = heatOf(read, "queue", order, span, 100, 500),
    coarse = heatOf(read, "queue", order, span, 100, 12);
  assert.deepEqual([fine.rows, coarse.rows], [48, 12]);
  const most = (map) => map.values.reduce((a, b) => Math.max(a, b));
  assert.equal(most(fine), read.totals().deepest);
  assert.equal(most(coarse), most(fine));
  const pauses = heatOf(read, "pause", order, span, 10, 500);
  assert.ok(most(pauses) > 0 && most(pauses) <= 1);
  assert.equal(rowOrder(read, new Set(read.findPorts("spine0->leaf1"))).length, 1);
  // Hosts have no queues to show, but they send.
  assert.ok(spoken(read, "queue", order).every((port) => read.nodes[read.ports[port].node].kind === "switch"));
  assert.equal(spoken(read, "use", order).length, order.length);
});

// A dumbbell h0, h1 - sw0 - sw1 - h2, h3: sw1 pauses sw0, because of sw1->h2, and so sw0 pauses h0 and h1.
function stopped(rows) {
  const shape = fabric("dumbbell", { per: 2 });
  const header = { first_ps: 0, every_ps: 1000, frames: 1, flows: [], groups: [], ...shape };
  const record = readRecording(recording(header, {}).buffer);
  const port = (name) => shape.ports.findIndex((_, at) => record.portName(at) === name);
  const column = (f) => rows.map(f);
  const nodes = [...new Set(rows.map((row) => row.by))];
  const table = {
    total: rows.length,
    from_ps: 0,
    until_ps: 9000,
    end_ps: 9000,
    nodes,
    stop: column((_, at) => at + 100),
    port: column((row) => port(row.port)),
    scope: column((row) => row.scope ?? "class"),
    number: column(() => 0),
    begin: column((row) => row.begin),
    end: column((row) => row.end),
    by: column((row) => nodes.indexOf(row.by)),
    ordered: column((row) => row.ordered ?? null),
    filled: column((row) => (row.filled ? port(row.filled) : null)),
    bytes: column(() => 5000),
    flows: column((row) => row.flows ?? 0),
    waiting: column((row) => row.waiting ?? "stopped"),
    cause: column((row) => row.cause ?? null),
  };
  return { stops: new Stops(table, record), port };
}
const SQUEEZE = [
  { port: "sw0->sw1", begin: 1000, end: 4000, by: "sw1", filled: "sw1->h2", waiting: "busy", flows: 2 },
  { port: "h0->sw0", begin: 2000, end: 5000, by: "sw0", filled: "sw0->sw1", cause: 0 },
  { port: "h1->sw0", begin: 2500, end: null, by: "sw0", filled: "sw0->sw1", cause: 0 },
];

test("a stop is followed to its root, and words say what it is", () => {
  const { stops, port } = stopped(SQUEEZE);
  assert.deepEqual(stops.within(port("h0->sw0"), 2500, 3000), [1]);
  assert.deepEqual(stops.within(port("h0->sw0"), 5001, 6000), []);
  assert.deepEqual(stops.within(port("h1->sw0"), 8000, 8500), [2]);
  const chain = stops.chain(1);
  assert.deepEqual(chain, { steps: [1, 0], cycle: null });
  const root = stops.root(chain);
  assert.deepEqual([root.kind, root.ports, root.words], ["saturated", [port("sw1->h2")], "the link sw1 → h2 is saturated by 2 flows"]);
  assert.equal(stops.words(1), "class 0 stopped for 3 ns from 2 ns, by order of sw0, because of sw0 → sw1 with 5 KB, which was stopped itself");
  assert.match(stops.words(2), /from 2.5 ns to the end/);
  assert.deepEqual(stops.marks(chain), {
    ports: [port("h0->sw0"), port("sw0->sw1")],
    root: { kind: "saturated", ports: [port("sw1->h2")], node: null },
  });
  assert.equal(stops.foremost([0, 1, 2]), 2);
  assert.equal(stops.places.get(101), 1);
});

test("other roots: a receiver, a link that is down, a scheme, a cycle", () => {
  const root = (rows, at = 0) => {
    const { stops } = stopped(rows);
    return stops.root(stops.chain(at));
  };
  const one = { port: "sw0->h0", begin: 0, end: 10, by: "h0", filled: "h0->sw0" };
  assert.match(root([{ ...one, waiting: "receiver" }]).words, /^h0 takes packets more slowly/);
  assert.match(root([{ ...one, waiting: "down" }]).words, /h0 → sw0 is down/);
  const scheme = root([{ ...one, filled: null, by: "sw1" }]);
  assert.match(scheme.words, /the scheme at sw1 holds/);
  assert.equal(scheme.ports.length, 0);
  const cycle = [
    { port: "h1->sw0", begin: 0, end: null, by: "sw0", filled: "sw0->sw1", cause: 1 },
    { port: "sw0->sw1", begin: 0, end: null, by: "sw1", filled: "sw1->sw0", cause: 2 },
    { port: "sw1->sw0", begin: 0, end: null, by: "sw0", filled: "sw0->sw1", cause: 1 },
  ];
  const dead = root(cycle);
  assert.deepEqual([dead.kind, dead.ports.length], ["deadlock", 2]);
});

test("a pause is one by the neighbour, a signal one from afar", () => {
  const { stops } = stopped([
    { port: "h0->sw0", begin: 0, end: 10, by: "sw0", scope: "queue" },
    { port: "h0->sw0", begin: 0, end: 10, by: "sw0", scope: "flow" },
    { port: "h0->sw0", begin: 0, end: 10, by: "sw1", scope: "flow" },
    { port: "sw0->sw1", begin: 0, end: 10, by: "sw0", scope: "held queue" },
  ]);
  assert.deepEqual([0, 1, 2, 3].map((at) => stops.kind(at)), ["pause", "hold", "signal", "hold"]);
});

test("rows are nested by cause: the root first, also where causes go round", () => {
  const { stops, port } = stopped(SQUEEZE);
  const names = (of) => nested(of).map((row) => [of.recording.portName(row.port), row.depth, row.root]);
  const expected = [
    ["sw1->h2", 0, true],
    ["sw0->sw1", 1, false],
    ["h1->sw0", 2, false],
    ["h0->sw0", 2, false],
  ];
  assert.deepEqual(names(stops), expected);
  const rows = nested(stops);
  const all = expected.map(([name]) => name);
  // Who is found brings along what it is nested in.
  assert.deepEqual(sought(rows, all, "H0 → ").map((row) => row.port), ["sw1->h2", "sw0->sw1", "h0->sw0"].map(port));
  assert.deepEqual(sought(rows, all, "nobody"), rows);
  const { stops: round } = stopped([
    { port: "sw0->sw1", begin: 0, end: 10, by: "sw1", filled: "sw1->sw0", cause: 1 },
    { port: "sw1->sw0", begin: 0, end: 90, by: "sw0", filled: "sw0->sw1", cause: 0 },
  ]);
  assert.deepEqual(names(round), [
    ["sw1->sw0", 0, false],
    ["sw0->sw1", 1, false],
  ]);
});

test("control frames are where they are: a pause from its order on, a resume as long as its link is", () => {
  const { stops, port } = stopped([{ port: "h0->sw0", begin: 5_000_000, end: 9_000_000, by: "sw0", ordered: 3_900_000 }]);
  const at = (ps) => stops.flying(ps).map(({ port, part, pause }) => [port, Math.round(part * 100) / 100, pause]);
  const back = port("sw0->h0");
  assert.deepEqual(at(3_800_000), []);
  // Behind a packet, then on the link.
  assert.deepEqual(at(3_950_000), [[back, 0, true]]);
  assert.deepEqual(at(4_500_000), [[back, 0.5, true]]);
  assert.deepEqual(at(6_000_000), []);
  assert.deepEqual(at(8_250_000), [[back, 0.25, false]]);
  assert.deepEqual(at(9_000_000), []);
});

test("a window of time is zoomed around a point and stays within the whole", () => {
  const span = { from: 0, to: 1_000_000 };
  assert.deepEqual(zoomed(span, span, 2, 500_000), { from: 250_000, to: 750_000 });
  assert.deepEqual(zoomed({ from: 0, to: 100_000 }, span, 0.5, 0), { from: 0, to: 200_000 });
  assert.deepEqual(zoomed({ from: 0, to: 100_000 }, span, 0.001, 0), span);
  assert.equal(zoomed(span, span, 1e9, 0).to, 10_000);
  assert.deepEqual(held({ from: 990_000, to: 1_090_000 }, span), { from: 900_000, to: 1_000_000 });
});

test("a closer look has frames of 100 ns around the instant, longer ones where there are too many", () => {
  const span = { from: 0, to: 1e9 };
  assert.deepEqual(windowAt(5e8, span, 96), { from: 490_000_000, to: 510_000_000, every: 100_000 });
  assert.equal(windowAt(0, span, 96).from, 0);
  assert.equal(windowAt(1e9, span, 96).to, 1e9);
  const chosen = windowAt(0, span, 96, { from: 1e8, to: 9e8 });
  assert.deepEqual([chosen.from, chosen.to, chosen.every], [1e8, 9e8, 200_000]);
  assert.ok((chosen.to - chosen.from) / chosen.every <= 4096);
  const large = windowAt(5e8, span, 20_000);
  assert.ok((large.to - large.from) / large.every <= (2 << 20) / 20_000);
});

test("the parts of a flow fall from its start to its end, small ones together", () => {
  const part = (part, hop, time_ps) => ({ part, place: "x", hop, time_ps });
  const { rows, total } = falls([part("receiver", null, 50), part("queueing", 1, 300), part("pause", null, 600), part("propagation", 0, 3), part("turn", null, 4)], 10);
  assert.equal(total, 957);
  assert.deepEqual(
    rows.map((row) => [row.part, row.from, row.time, row.count]),
    [
      ["pause", 0, 600, undefined],
      ["queueing", 600, 300, undefined],
      ["receiver", 900, 50, undefined],
      [null, 950, 7, 2],
    ],
  );
  assert.deepEqual(falls([], 1), { rows: [], total: 0 });
});

test("what is drawn is the same as SVG", () => {
  const svg = new SvgPaint();
  svg.fillStyle = "#123456";
  svg.beginPath();
  svg.rect(1, 2, 3, 4);
  svg.fill();
  svg.globalAlpha = 0.5;
  svg.setLineDash([4, 2]);
  svg.stroke();
  svg.font = "600 10px Some <Font>";
  svg.textAlign = "center";
  svg.fillText("a < b & c", 5, 6);
  assert.deepEqual(svg.out, [
    '<path d="M1 2h3v4h-3Z" fill="#123456"></path>',
    '<path d="M1 2h3v4h-3Z" fill="none" stroke="#000" stroke-width="1" stroke-dasharray="4 2" opacity="0.5"></path>',
    '<text x="5" y="6" fill="#123456" font-family="Some &lt;Font>" font-size="10" font-weight="600" text-anchor="middle" opacity="0.5">a &lt; b &amp; c</text>',
  ]);
});

test("a frame covers what is after its start and up to its end", () => {
  const read = readRecording(
    recording(head(4), {
      queued: [
        [1, 2, 3, 4],
        [0, 0, 0, 0],
      ],
    }).buffer,
  );
  assert.deepEqual(
    [0, 1, 1000, 1001, 2000, 4000, 9999].map((ps) => read.frameAt(ps)),
    [0, 0, 0, 1, 1, 3, 3],
  );
});

for (const [kind, options] of [
  ["star", { hosts: 17 }],
  ["dumbbell", {}],
  ["chain", {}],
  ["leaf-spine", { leaves: 8, hosts_per_leaf: 16, spines: 8 }],
  ["leaf-spine", { leaves: 32, hosts_per_leaf: 32, spines: 16 }],
  ["fat-tree", { k: 8 }],
  ["bcube", { n: 4 }],
  ["file", {}],
  ["rail-optimised", {}],
  ["rail-optimised", { servers: 16, rails: 8, spines: 8 }],
  ["multi-plane", { planes: 4 }],
  ["torus", {}],
  ["torus", { x: 3, y: 5 }],
  ["torus", { x: 3, y: 3, z: 3 }],
  ["dragonfly", {}],
  ["dragonfly", { groups: 5, each: 2 }],
  ["slim-fly", {}],
]) {
  test(`a ${kind} ${JSON.stringify(options)} stands inside its box, and nothing covers anything else`, () => {
    for (const [width, height] of [
      [1200, 600],
      [340, 420],
    ]) {
      const shape = fabric(kind, options);
      const { nodes, ports, links } = layout(shape, kind, width, height);
      assert.equal(links.length, shape.ports.length / 2);
      for (const { x, y, w, h } of nodes) {
        assert.ok(
          x - w / 2 >= -0.5 && x + w / 2 <= width + 0.5 && y - h / 2 >= -0.5 && y + h / 2 <= height + 0.5,
          `${x} ${y} ${w} ${h}`,
        );
      }
      for (let a = 0; a < nodes.length; a++) {
        for (let b = a + 1; b < nodes.length; b++) {
          const one = nodes[a],
            two = nodes[b];
          const apart =
            Math.abs(one.x - two.x) + 0.01 >= (one.w + two.w) / 2 || Math.abs(one.y - two.y) + 0.01 >= (one.h + two.h) / 2;
          assert.ok(apart, `${shape.nodes[a].name} and ${shape.nodes[b].name} overlap at ${width}`);
        }
      }
      ports.forEach((port, at) => {
        const node = nodes[shape.ports[at].node];
        assert.ok(Math.abs(port.x - node.x) <= node.w / 2 + 0.5 && Math.abs(port.y - node.y) <= node.h / 2 + 0.5);
        assert.ok(Math.abs(Math.hypot(port.nx, port.ny) - 1) < 1e-9 && port.room > 0);
      });
    }
  });
}

test("tiers go up from the hosts, and BCube's hosts stand between its two levels", () => {
  const tiers = layout(fabric("fat-tree", { k: 4 }), "fat-tree", 800, 500).nodes;
  const shape = fabric("fat-tree", { k: 4 });
  const y = (name) => tiers[shape.nodes.findIndex((node) => node.name === name)].y;
  assert.ok(y("h0") > y("edge0") && y("edge0") > y("agg0") && y("agg0") > y("core0"));
  const cube = fabric("bcube", { n: 4 });
  const at = layout(cube, "bcube", 800, 500).nodes;
  const of = (name) => at[cube.nodes.findIndex((node) => node.name === name)].y;
  assert.ok(of("sw0.0") > of("h0") && of("h0") > of("sw1.0"));
});

test("servers stand below their accelerators, and planes side by side", () => {
  const of = (kind, options) => {
    const shape = fabric(kind, options);
    const { nodes } = layout(shape, kind, 900, 500);
    return (name) => nodes[shape.nodes.findIndex((node) => node.name === name)];
  };
  const rails = of("rail-optimised");
  assert.ok(rails("up0").y > rails("h0").y && rails("h0").y > rails("rail0").y && rails("rail0").y > rails("spine0").y);
  // The accelerators of a server stand together, over its switch.
  assert.ok(rails("h3").x < rails("h4").x && Math.abs(rails("up0").x - (rails("h0").x + rails("h3").x) / 2) < 1);
  const planes = of("multi-plane", { planes: 2, leaves: 3 });
  assert.ok(planes("leaf2").x < planes("leaf3").x && planes("spine1").x < planes("spine2").x);
});

test("a torus is a grid, a dragonfly groups on a ring, and a slim fly two blocks", () => {
  const of = (kind, options) => {
    const shape = fabric(kind, options);
    const { nodes } = layout(shape, kind, 900, 700);
    return nodes.filter((_, at) => shape.nodes[at].kind === "switch");
  };
  const far = (a, b) => Math.hypot(a.x - b.x, a.y - b.y);
  const torus = of("torus", { x: 4, y: 3 });
  for (let at = 0; at < 12; at++) {
    if (at % 4 < 3) assert.ok(torus[at].x < torus[at + 1].x, `${at} is left of the next`);
    if (at < 8) assert.ok(torus[at].y > torus[at + 4].y, `${at} is below the next row`);
  }
  const layers = of("torus", { x: 2, y: 2, z: 3 });
  assert.ok(Math.max(...layers.slice(0, 4).map(({ x }) => x)) < Math.min(...layers.slice(4, 8).map(({ x }) => x)));
  const fly = of("dragonfly", { groups: 6, each: 3 });
  for (let a = 0; a < 18; a++) {
    const own = fly.filter((_, b) => b !== a && Math.floor(a / 3) === Math.floor(b / 3)).map((node) => far(node, fly[a]));
    const others = fly.filter((_, b) => Math.floor(a / 3) !== Math.floor(b / 3)).map((node) => far(node, fly[a]));
    assert.ok(Math.max(...own) < Math.max(...others) / 2);
  }
  const slim = of("slim-fly");
  assert.ok(Math.max(...slim.slice(0, 25).map(({ x }) => x)) < Math.min(...slim.slice(25).map(({ x }) => x)));
});

test("the same graph stands the same way every time", () => {
  assert.deepEqual(layout(fabric("file"), "file", 700, 500), layout(fabric("file"), "file", 700, 500));
});

test("a made-up run adds up", () => {
  const read = readRecording(sketch("leaf-spine", { leaves: 4, hosts_per_leaf: 4, spines: 2 }).buffer);
  const { queued, pausedPorts, deepest } = read.totals();
  assert.ok(Math.max(...queued) >= deepest && deepest > 0);
  assert.ok(Math.max(...pausedPorts) > 0);
});

const TEXT = `# A comment that stays.
name = "x"   # with a note
flow = [
    { src = "h1", dst = "h0", size = "1MB" }, # ] not the end
]

[topology]
kind = "star"
hosts = 17

# About the scheme.
[scheme]
preset = "dcqcn+win" # this one

[scheme.dcqcn]
ai = "50Mbps"

[[load]]
sizes = "hadoop"
load = 0.3

# The second.
[[load]]
sizes = "google"
odd = """
[not a table]
"""
`;

test("entries are found by path", () => {
  const doc = toml.parse(TEXT);
  const of = (path) => toml.plain(toml.find(doc, path));
  assert.equal(of("name"), "x");
  assert.equal(of("topology.hosts"), 17);
  assert.equal(of("scheme.dcqcn.ai"), "50Mbps");
  assert.equal(of("load.0.load"), 0.3);
  assert.equal(of("load.1.sizes"), "google");
  assert.equal(of("flow"), undefined);
  assert.equal(doc.tables.length, 6);
});

test("setting a value changes its line and nothing else", () => {
  const next = toml.set(TEXT, "scheme.preset", '"bfc"');
  const before = TEXT.split("\n"),
    after = next.split("\n");
  assert.equal(after.length, before.length);
  before.forEach((line, at) => assert.equal(after[at], line.startsWith("preset") ? 'preset = "bfc" # this one' : line));
});

test("setting what a text has already leaves the text as it was", () => {
  for (const entry of toml.parse(TEXT).entries)
    assert.equal(toml.set(TEXT, entry.path, entry.raw.includes("\n") ? entry.raw : entry.raw), TEXT);
});

test("a new key joins its table, a new table comes before the arrays, and both can be taken away again", () => {
  const one = toml.set(TEXT, "topology.rate", '"40Gbps"');
  assert.match(one, /hosts = 17\nrate = "40Gbps"\n\n# About/);
  assert.equal(toml.unset(one, "topology.rate"), TEXT);
  const two = toml.set(TEXT, "switch.buffer", '"4MB"');
  assert.match(two, /ai = "50Mbps"\n\n\[switch\]\nbuffer = "4MB"\n\n\[\[load\]\]/);
  assert.equal(toml.plain(toml.find(toml.parse(two), "switch.buffer")), "4MB");
  const three = toml.set(TEXT, "seed", "3");
  assert.equal(toml.plain(toml.find(toml.parse(three), "seed")), 3);
  assert.equal(toml.plain(toml.find(toml.parse(three), "topology.kind")), "star");
  const four = toml.set("", "topology.kind", '"star"');
  assert.equal(toml.plain(toml.find(toml.parse(four), "topology.kind")), "star");
  const five = toml.set('topology.kind = "star"\n', "topology.hosts", "3");
  assert.equal(five, 'topology.kind = "star"\ntopology.hosts = 3\n');
});

test("tables of an array come and go with their comments", () => {
  const more = toml.addTable(TEXT, "incast", [
    ["degree", "4"],
    ["size_each", '"1MB"'],
  ]);
  assert.equal(toml.plain(toml.find(toml.parse(more), "incast.0.degree")), 4);
  const less = toml.removeTable(TEXT, "load.1");
  assert.ok(!less.includes("The second.") && less.includes('sizes = "hadoop"'));
  assert.equal(toml.removeTable(TEXT, "load.7"), TEXT);
  const first = toml.removeTable(TEXT, "load.0");
  assert.ok(first.includes("The second.") && !first.includes("hadoop"));
});

test("broken text is passed over without harm", () => {
  for (const text of [
    "[",
    "= 3",
    "[[x]",
    "a = [1, 2\n[topology]\nkind = 1",
    'a = "open\nb = 2',
    "\u0000",
    "[topology]\nkind = \n",
  ]) {
    const doc = toml.parse(text);
    assert.equal(doc.lines.join("\n"), text);
    assert.ok(toml.set(text, "topology.kind", '"star"').includes('kind = "star"'));
  }
  assert.equal(toml.plain(toml.find(toml.parse("a = [1, 2\n[topology]\nkind = 1"), "topology.kind")), 1);
});

test("fields are written bare or in quotes", () => {
  assert.equal(toml.written("16", true), "16");
  assert.equal(toml.written("0.5", true), "0.5");
  assert.equal(toml.written("12MB", true), '"12MB"');
  assert.equal(toml.written("16", false), '"16"');
  assert.equal(toml.written('["a", "b"]', false), '["a", "b"]');
});

test("what an experiment changes at quick scale can be written into its scenario", () => {
  const { sets, presets } = toml.quickOf(
    'id = "x"\n[scale.quick]\nset = [\n  "load.0.duration=2ms", # short\n  "topology.leaves=4",\n]\n[[variant]]\nname = "A"\npreset = "bfc"\n[[variant]]\nname = "B"\npreset = "pfc"\n',
  );
  assert.deepEqual(
    [sets, presets],
    [
      ["load.0.duration=2ms", "topology.leaves=4"],
      ["bfc", "pfc"],
    ],
  );
  const text = toml.change('[topology]\nkind = "leaf-spine"\nleaves = 16\n\n[[load]]\nload = 0.3\nduration = "20ms"\n', [
    ...sets,
    "-load.0.load",
  ]);
  assert.equal(text, '[topology]\nkind = "leaf-spine"\nleaves = 4\n\n[[load]]\nduration = "2ms"\n');
});

test("colouring loses no letter", () => {
  let inside = "";
  for (const line of TEXT.split("\n")) {
    const cut = toml.pieces(line, inside);
    inside = cut.inside;
    assert.equal(cut.out.map(([, text]) => text).join(""), line);
  }
});

test("times survive a link, and numbers have their units", () => {
  for (const ps of [0, 1, 999, 1000, 123_400_000, 1_599_087_764, 2_000_000_000_000])
    assert.equal(format.readTime(format.timeText(ps)), ps);
  assert.equal(format.readTime("soon"), null);
  assert.deepEqual(
    [format.time(1_234_567_000), format.bytes(8_095_626), format.rate(100e9), format.share(0.5)],
    ["1.235 ms", "8.1 MB", "100 Gbps", "50 %"],
  );
});

test("an answer that is older than an event does not take a job back in time", async () => {
  const sources = [];
  globalThis.location = { search: "", pathname: "/", hash: "" };
  globalThis.document = { visibilityState: "visible", addEventListener() {} };
  globalThis.EventSource = class {
    constructor() {
      this.heard = {};
      sources.push(this);
    }
    addEventListener(name, f) {
      this.heard[name] = f;
    }
    close() {}
  };
  const event = (name, data) => sources.at(-1).heard[name]({ data: JSON.stringify(data) });
  const answers = new Map([["POST /api/jobs", { id: 7 }]]);
  // What happens after the server has looked, and before its answer is here.
  let meanwhile = () => {};
  globalThis.fetch = async (path, { method }) => {
    const text = JSON.stringify(answers.get(`${method} ${path}`));
    if (method === "GET") meanwhile();
    return { ok: true, text: async () => text };
  };
  const { connect, jobs } = await import("../../crates/studio/page/api.js");
  connect();

  answers.set("GET /api/jobs/7", { id: 7, state: "running" });
  meanwhile = () => event("job", { id: 7, state: "failed" });
  assert.equal(await jobs.start({ kind: "run" }), 7);
  assert.equal(jobs.get(7).state, "failed");

  answers.set("GET /api/jobs", [
    { id: 7, state: "failed" },
    { id: 8, state: "running" },
    { id: 9, state: "queued" },
  ]);
  meanwhile = () => {
    event("job", { id: 8, state: "done" });
    event("gone", { id: 9 });
    event("job", { id: 10, state: "queued" });
  };
  const all = await jobs.all();
  assert.deepEqual(
    all.map(({ id, state }) => [id, state]),
    [
      [10, "queued"],
      [8, "done"],
      [7, "failed"],
    ],
  );
});

test("a claim takes as long as the last time, or as its runs took elsewhere, and says how long it has still to go", async () => {
  globalThis.location ??= { search: "", pathname: "/", hash: "" };
  const { likely, timeLeft } = await import("../../crates/studio/page/parts.js");
  const job = (id, name, scale, seconds, runs, state = "done") => ({
    id,
    name,
    kind: "reproduce",
    scale,
    state,
    started: 1_790_000_000_000,
    ended: 1_790_000_000_000 + seconds * 1000,
    progress: { runs },
  });
  const past = [
    job(1, "bfc/a", "quick", 40, 10),
    job(2, "bfc/a", "quick", 30, 10),
    job(3, "bfc/b", "quick", 50, 30),
    job(4, "bfc/c", "paper", 900, 3),
    job(5, "bfc/a", "quick", 1, 10, "failed"),
  ];
  assert.deepEqual(likely(past, "bfc/a", "quick", 10), [30, true]);
  // 120 s for 50 runs.
  assert.deepEqual(likely(past, "bfc/d", "quick", 5), [12, false]);
  assert.equal(likely(past, "bfc/d", "quick", 0), null);
  assert.equal(likely([], "bfc/d", "quick", 5), null);
  assert.deepEqual([timeLeft(30, 0.25), timeLeft(1, 0.5), timeLeft(60, 0.01), timeLeft(60, 1)], [90, null, null, null]);
});
