// Numbers with their units, in the words of the command line: us, Gbps, KB.

/** Three digits that count, without needless zeros. */
export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (!Number.isFinite(value)) return "∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e9 || size < 1e-3) return value.toPrecision(digits).replace(/\.?0+(e|$)/, "$1");
  const decimals = Math.max(0, digits - 1 - Math.floor(Math.log10(size)));
  const text = value.toFixed(Math.min(decimals, 6));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

/** A whole number with thin spaces between thousands. */
export function count(value) {
  if (value === null || value === undefined) return "–";
  return String(Math.round(value)).replace(/\B(?=(\d{3})+(?!\d))/g, "\u202f");
}

function scaled(value, steps, digits) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  const [unit, name] = steps.find(([unit]) => size >= unit * 0.9995) ?? steps[steps.length - 1];
  return `${number(value / unit, digits)} ${name}`;
}

const TIMES = [
  [1e12, "s"],
  [1e9, "ms"],
  [1e6, "us"],
  [1e3, "ns"],
  [1, "ps"],
];
const BYTES = [
  [1e12, "TB"],
  [1e9, "GB"],
  [1e6, "MB"],
  [1e3, "KB"],
  [1, "B"],
];
const RATES = [
  [1e12, "Tbps"],
  [1e9, "Gbps"],
  [1e6, "Mbps"],
  [1e3, "kbps"],
  [1, "bps"],
];

/** Picoseconds. */
export const time = (ps, digits = 4) => (ps === 0 ? "0 us" : scaled(ps, TIMES, digits));
export const bytes = (value, digits = 3) => scaled(value, BYTES, digits);
export const rate = (bps, digits = 3) => scaled(bps, RATES, digits);
export const share = (value, digits = 3) => (value === null || value === undefined ? "–" : `${number(100 * value, digits)} %`);

/** A time as links have it, "123.4us": exact, so that a link restores the instant. */
export function timeText(ps) {
  const whole = Math.round(ps);
  for (const [unit, name] of TIMES) {
    const text = String(whole / unit);
    if (whole >= unit && !text.includes("e") && text.length < 14) return text + name;
  }
  return `${whole}ps`;
}

/** Picoseconds from "123.4us"; nothing if it is not a time. */
export function readTime(text) {
  const match = /^\s*(\d+(?:\.\d+)?)\s*(ps|ns|us|µs|ms|s)\s*$/.exec(text ?? "");
  if (!match) return null;
  const unit = TIMES.find(([, name]) => name === match[2].replace("µ", "u"))[0];
  return Math.round(Number(match[1]) * unit);
}

/** A value of an expectation in its unit. */
export function inUnit(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit === "%") return share(value, 4);
  if (unit === "B") return bytes(value, 4);
  if (unit === "x") return `${number(value, 4)}×`;
  return unit ? `${number(value, 4)} ${unit}` : number(value, 4);
}

/** Seconds of wall time: "0.4 s", "2 min 5 s". */
export function wall(seconds) {
  if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "–";
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 90) return `${Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** An instant that the server sends, in seconds, milliseconds or as text. */
export function instant(value) {
  if (value === null || value === undefined) return null;
  const date = typeof value === "number" ? new Date(value < 1e11 ? value * 1000 : value) : new Date(value);
  return Number.isNaN(date.getTime()) ? null : date;
}

/** "14:03" today, "12 Nov, 14:03" before. */
export function clock(value) {
  const date = instant(value);
  if (!date) return "–";
  const hours = date.toTimeString().slice(0, 5);
  if (date.toDateString() === new Date().toDateString()) return hours;
  const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
  return `${date.getDate()} ${months[date.getMonth()]}, ${hours}`;
}

export const plural = (n, one, many = `${one}s`) => `${count(n)} ${n === 1 ? one : many}`;
