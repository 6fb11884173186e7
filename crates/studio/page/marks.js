// Marks on the picture: chains of causes, and control frames on their way.

/** A chain of causes: each port that stood still with its number, up to the root. */
export function drawChain(stage, { ports, root }) {
  const {
    paint,
    colours,
    place,
    camera: { k, ky, x, y },
  } = stage;
  paint.strokeStyle = colours.bad;
  paint.lineCap = "round";
  for (const [list, wide, alpha] of [
    [ports, 10, 0.28],
    [root.ports, 14, 0.45],
  ]) {
    paint.globalAlpha = alpha;
    paint.lineWidth = wide;
    paint.beginPath();
    for (const port of list) stage.trace(port);
    paint.stroke();
  }
  paint.lineCap = "butt";
  paint.globalAlpha = 1;
  paint.font = `600 10px ${colours.font}`;
  paint.textAlign = "center";
  paint.textBaseline = "middle";
  const badge = (at, py, text, round) => {
    const half = Math.max(7, paint.measureText(text).width / 2 + 4);
    // At the edge it stays whole.
    const px = at < -half || at > stage.width + half ? at : Math.max(half + 1, Math.min(stage.width - half - 1, at));
    paint.fillStyle = colours.bad;
    paint.beginPath();
    paint.roundRect(px - half, py - 7, 2 * half, 14, round ? 7 : 3);
    paint.fill();
    paint.fillStyle = colours.paper;
    paint.fillText(text, px, py + 0.5);
  };
  const seen = new Set();
  ports.forEach((port, step) => {
    if (seen.has(port)) return;
    seen.add(port);
    if (root.ports.includes(port)) return;
    stage.arrow(port, colours.bad);
    badge(...stage.point(port, 0.3), String(step + 1), true);
  });
  for (const port of root.ports) badge(...stage.point(port, 0.5), root.kind === "deadlock" ? "cycle" : "root", false);
  if (root.node !== null && place.nodes[root.node]) {
    const { x: nx, y: ny, w, h } = place.nodes[root.node];
    paint.strokeStyle = colours.bad;
    paint.lineWidth = 3;
    paint.beginPath();
    paint.roundRect(nx * k + x - (w * k) / 2 - 3, ny * ky + y - (h * ky) / 2 - 3, w * k + 6, h * ky + 6, 6);
    paint.stroke();
    badge(nx * k + x, ny * ky + y - (h * ky) / 2 - 12, "root", false);
  }
}

/** Control frames where they are: a pause is full, a resume is open. */
export function drawFlying(stage, flying) {
  const { paint, colours, recording, seen } = stage;
  const shown = flying.filter(({ port }) => seen[port]);
  const few = shown.length <= 8;
  paint.font = `10px ${colours.font}`;
  paint.textAlign = "left";
  paint.textBaseline = "middle";
  paint.lineWidth = 1.6;
  paint.strokeStyle = colours.control;
  const named = [];
  for (const { port, part, pause } of shown) {
    const [px, py] = stage.point(port, part);
    paint.fillStyle = pause ? colours.control : colours.paper;
    paint.beginPath();
    paint.arc(px, py, few ? 4.5 : 3, 0, 7);
    paint.fill();
    paint.stroke();
    if (!few || named.some(([x, y]) => Math.abs(x - px) < 90 && Math.abs(y - py) < 12)) continue;
    named.push([px, py]);
    const text = `${pause ? "pause" : "resume"} to ${recording.neighbour(port)}`;
    const left = px + 8 + paint.measureText(text).width > stage.width ? px - 8 - paint.measureText(text).width : px + 8;
    paint.lineWidth = 3;
    paint.strokeStyle = colours.paper;
    paint.strokeText(text, left, py);
    paint.fillStyle = paint.strokeStyle = colours.control;
    paint.lineWidth = 1.6;
    paint.fillText(text, left, py);
  }
}

/** Links that wait for one another, in a cycle that never opens again. */
export function drawCycle(stage, ports) {
  const { paint, colours } = stage;
  paint.strokeStyle = colours.bad;
  for (const [wide, alpha] of [
    [11, 0.22],
    [2, 1],
  ]) {
    paint.globalAlpha = alpha;
    paint.lineWidth = wide;
    paint.beginPath();
    for (const port of ports) stage.trace(port);
    paint.stroke();
  }
  paint.globalAlpha = 1;
  for (const port of ports) stage.arrow(port, colours.bad);
}
