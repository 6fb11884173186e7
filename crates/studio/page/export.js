// What is on the screen, to take away: a picture, a drawing, an animation.

import { h } from "./dom.js";
import { time, timeText } from "./format.js";
import { save } from "./panels.js";
import { note } from "./parts.js";
import { escaped, SvgPaint } from "./svg.js";

/** A menu of what can be saved. */
export function savers(view) {
  const menu = h("details", { class: "picker" }, h("summary", { class: "button small" }, "save"));
  const item = (text, title, f) =>
    h(
      "button",
      {
        type: "button",
        class: "button small",
        title,
        onclick: () => {
          menu.open = false;
          f(view);
        },
      },
      text,
    );
  menu.append(
    h(
      "div",
      { class: "savers" },
      item("picture", "What is on the screen, as PNG", picture),
      item("drawing", "The picture of the fabric as SVG, sharp at any size", drawing),
      item("animation", "Plays from this instant on and saves that as WebM; stop to end it", animation),
    ),
  );
  return menu;
}

const nameOf = (view, end) => `${view.job.name ?? "fabric"} ${timeText(view.state.t)}.${end}`.replaceAll("/", "-");

/** What the runs show, side by side or one above the other as on the screen, with their names above. */
export function compose(view, whole = document.createElement("canvas")) {
  const canvases = view.sides.map((side) => side.visible);
  const head = 34 * Math.min(2, devicePixelRatio || 1);
  const stacked = canvases.length > 1 && canvases[1].getBoundingClientRect().top > canvases[0].getBoundingClientRect().top + 2;
  const sum = (of) => canvases.reduce((all, one) => all + of(one), 0);
  const most = (of) => Math.max(...canvases.map(of));
  const width = stacked ? most((one) => one.width) : sum((one) => one.width);
  const height = stacked ? sum((one) => one.height + head) : most((one) => one.height) + head;
  if (whole.width !== width || whole.height !== height) Object.assign(whole, { width, height });
  const style = getComputedStyle(view.stages);
  const paint = whole.getContext("2d");
  paint.fillStyle = style.getPropertyValue("--paper").trim();
  paint.fillRect(0, 0, width, height);
  paint.font = `600 ${head * 0.4}px ${style.fontFamily}`;
  paint.textBaseline = "middle";
  paint.fillStyle = style.getPropertyValue("--ink").trim();
  let x = 0,
    y = 0;
  canvases.forEach((one, at) => {
    const side = view.sides[at];
    paint.fillText(`${side.name}, ${time(view.state.t)}: ${side.text}`, x + head * 0.3, y + head / 2, one.width - head * 0.6);
    paint.drawImage(one, x, y + head);
    if (stacked) y += one.height + head;
    else x += one.width;
  });
  return whole;
}

function picture(view) {
  compose(view).toBlob((blob) => save(nameOf(view, "png"), blob));
}

/** Records what plays, from this instant to the end or until it is stopped. */
function animation(view) {
  const kinds = ["video/webm;codecs=vp9", "video/webm;codecs=vp8", "video/webm"];
  const type = globalThis.MediaRecorder && kinds.find((kind) => MediaRecorder.isTypeSupported(kind));
  if (!type) {
    note("This browser records no WebM. The picture can be saved frame by frame.", true);
    return;
  }
  const name = nameOf(view, "webm");
  view.toggle(false);
  const canvas = compose(view);
  const recorder = new MediaRecorder(canvas.captureStream(30), { mimeType: type, videoBitsPerSecond: 8_000_000 });
  const pieces = [];
  recorder.addEventListener("dataavailable", ({ data }) => data.size && pieces.push(data));
  recorder.addEventListener("stop", () => save(name, new Blob(pieces, { type: "video/webm" })));
  recorder.start(500);
  note("Recording what plays. Stop it to end the animation.");
  view.follow = () => {
    compose(view, canvas);
    if (view.playing) return;
    view.follow = null;
    // The last frame stays for a moment.
    setTimeout(() => recorder.stop(), 250);
  };
  view.toggle(true);
}

function drawing(view) {
  if (view.shown !== "picture") {
    note("Only the picture of the fabric can be a drawing: choose it under show.", true);
    return;
  }
  const style = getComputedStyle(view.stages);
  const ink = (name) => style.getPropertyValue(name).trim();
  let x = 0;
  const parts = view.sides.map((side) => {
    const { stage } = side;
    const svg = new SvgPaint();
    const kept = { paint: stage.paint, base: stage.base };
    Object.assign(stage, { paint: svg, base: { getContext: () => svg }, stale: true });
    try {
      stage.draw(view.stageNow(side, performance.now()));
    } finally {
      Object.assign(stage, kept, { stale: true });
    }
    const title = `${side.name}, ${time(view.state.t)}: ${side.text}`;
    const part =
      `<svg x="${x}" width="${stage.width}" height="${stage.height + 30}" viewBox="0 -30 ${stage.width} ${stage.height + 30}">` +
      `<text x="10" y="-12" font-family="${escaped(style.fontFamily)}" font-size="13" font-weight="600" fill="${ink("--ink")}">${escaped(title)}</text>` +
      `${svg.out.join("\n")}</svg>`;
    x += stage.width;
    return part;
  });
  const height = Math.max(...view.sides.map(({ stage }) => stage.height)) + 30;
  const whole =
    `<svg xmlns="http://www.w3.org/2000/svg" width="${x}" height="${height}" viewBox="0 0 ${x} ${height}">` +
    `<rect width="${x}" height="${height}" fill="${ink("--paper")}"/>${parts.join("\n")}</svg>\n`;
  view.redraw();
  save(nameOf(view, "svg"), whole, "image/svg+xml");
}
