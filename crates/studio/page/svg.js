// Drawing calls as SVG.

/** A canvas's drawing calls, kept as SVG. Only what the stage calls is there. */
export class SvgPaint {
  constructor() {
    Object.assign(this, { out: [], path: "", dash: [], fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1 });
    Object.assign(this, { font: "10px sans-serif", textAlign: "left", textBaseline: "alphabetic", lineCap: "butt" });
    this.measure = globalThis.document?.createElement("canvas").getContext("2d");
  }
  setTransform() {}
  clearRect() {}
  drawImage() {}
  beginPath() {
    this.path = "";
  }
  moveTo(x, y) {
    this.path += `M${round(x)} ${round(y)}`;
  }
  lineTo(x, y) {
    this.path += `L${round(x)} ${round(y)}`;
  }
  quadraticCurveTo(cx, cy, x, y) {
    this.path += `Q${round(cx)} ${round(cy)} ${round(x)} ${round(y)}`;
  }
  closePath() {
    this.path += "Z";
  }
  rect(x, y, w, h) {
    this.path += `M${round(x)} ${round(y)}h${round(w)}v${round(h)}h${round(-w)}Z`;
  }
  roundRect(x, y, w, h, r) {
    const by = Math.max(0, Math.min(r, w / 2, h / 2));
    const corner = (dx, dy) => `a${round(by)} ${round(by)} 0 0 1 ${round(dx)} ${round(dy)}`;
    this.path +=
      `M${round(x + by)} ${round(y)}h${round(w - 2 * by)}${corner(by, by)}v${round(h - 2 * by)}${corner(-by, by)}` +
      `h${round(2 * by - w)}${corner(-by, -by)}v${round(2 * by - h)}${corner(by, -by)}Z`;
  }
  // The stage draws whole circles only.
  arc(x, y, r) {
    const turn = `a${round(r)} ${round(r)} 0 1 1`;
    this.path += `M${round(x - r)} ${round(y)}${turn} ${round(2 * r)} 0${turn} ${round(-2 * r)} 0Z`;
  }
  setLineDash(dash) {
    this.dash = dash;
  }
  fill() {
    if (this.path) this.add("path", { d: this.path, fill: this.fillStyle });
  }
  stroke() {
    if (this.path) this.add("path", { d: this.path, fill: "none", ...this.pen() });
  }
  pen() {
    return {
      stroke: this.strokeStyle,
      "stroke-width": round(this.lineWidth),
      "stroke-dasharray": this.dash.length ? this.dash.join(" ") : null,
      "stroke-linecap": this.lineCap === "butt" ? null : this.lineCap,
    };
  }
  measureText(text) {
    if (!this.measure) return { width: text.length * 6 };
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  letters() {
    const [, weight, size, family] = /^(?:(\d+) )?([\d.]+)px (.*)$/.exec(this.font) ?? [null, null, "10", "sans-serif"];
    return {
      "font-family": family,
      "font-size": size,
      "font-weight": weight,
      "text-anchor": { center: "middle", right: "end" }[this.textAlign] ?? null,
      "dominant-baseline": this.textBaseline === "middle" ? "central" : null,
    };
  }
  fillText(text, x, y) {
    this.add("text", { x: round(x), y: round(y), fill: this.fillStyle, ...this.letters() }, text);
  }
  strokeText(text, x, y) {
    this.add("text", { x: round(x), y: round(y), fill: "none", ...this.pen(), ...this.letters() }, text);
  }
  add(tag, attributes, text = "") {
    const all = { ...attributes, opacity: this.globalAlpha < 1 ? round(this.globalAlpha) : null };
    const words = Object.entries(all).filter(([, value]) => value !== null && value !== undefined);
    this.out.push(`<${tag}${words.map(([key, value]) => ` ${key}="${escaped(value)}"`).join("")}>${escaped(text)}</${tag}>`);
  }
}

const round = (value) => Number(value.toFixed(2));
/** A text as SVG has it. */
export const escaped = (value) => String(value).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
