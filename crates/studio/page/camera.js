// Where the eye is.

/** Fabrics in rows are wide and low: they grow in both directions up to here, and only wider from there on. */
const TALLEST = 3;

/** Where the eye is; two stages side by side share one. */
export class Camera {
  constructor() {
    this.flat = true;
    this.most = 8;
    this.reset();
  }
  reset() {
    Object.assign(this, { k: 1, x: 0, y: 0 });
  }
  get ky() {
    return this.flat ? Math.min(TALLEST, this.k) : this.k;
  }
  get home() {
    return this.k === 1;
  }
  zoom(factor, px, py, width, height) {
    const before = this.ky;
    const k = Math.min(this.most, Math.max(1, this.k * factor));
    const by = k / this.k;
    this.x = px - (px - this.x) * by;
    this.k = k;
    this.y = py - ((py - this.y) * this.ky) / before;
    this.hold(width, height);
  }
  /** Where it is, for a link: how close, and which part of the fabric is in the middle. The same on a screen of any size. */
  text(width, height) {
    const round = (value, digits) => String(Number(value.toFixed(digits)));
    return [
      round(this.k, 2),
      round((width / 2 - this.x) / (width * this.k), 4),
      round((height / 2 - this.y) / (height * this.ky), 4),
    ].join(",");
  }
  /** Goes where a link says; false if that is no place. */
  go(text, width, height) {
    const [k, cx, cy, ...rest] = String(text).split(",").map(Number);
    if (rest.length || ![k, cx, cy].every(Number.isFinite) || k < 1) return false;
    this.k = Math.min(this.most, k);
    this.see(cx, cy, width, height);
    return true;
  }
  /** Has a part of the fabric in the middle, as far as that goes. */
  see(cx, cy, width, height) {
    this.x = width / 2 - cx * width * this.k;
    this.y = height / 2 - cy * height * this.ky;
    this.hold(width, height);
  }
  pan(dx, dy, width, height) {
    this.x += dx;
    this.y += dy;
    this.hold(width, height);
  }
  // Something of the fabric is always in sight.
  hold(width, height) {
    this.x = Math.min(0, Math.max(width * (1 - this.k), this.x));
    this.y = Math.min(0, Math.max(height * (1 - this.ky), this.y));
  }
}
