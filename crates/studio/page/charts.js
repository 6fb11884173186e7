// Small charts over time on canvases, all with the same cursor.

import { h } from "./dom.js";
import { time as asTime } from "./format.js";

/**
 * A chart of series over the time of a recording.
 * @param spec {title, format, height, top, lines: [{values, first, every, colour, kind: "line" | "area" | "bars", dash, name, mean}], marks: [{at, colour, text}]}
 * @param span {from, to} in ps
 * @param seek called with an instant when the chart is pointed at
 */
export function chart(spec, span, seek) {
  const canvas = h("canvas", { class: "chart-canvas", "aria-hidden": "true" });
  const cursor = h("div", { class: "chart-cursor" });
  const value = h("span", { class: "chart-value" });
  const area = h("div", { class: "chart-area", style: { height: `${spec.height ?? 58}px` } }, canvas, cursor);
  const element = h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, h("span", { class: "chart-title" }, spec.title), value),
    area,
  );
  let width = 0;
  const draw = () => {
    const ratio = Math.min(2, devicePixelRatio || 1);
    const { clientWidth, clientHeight } = area;
    if (!clientWidth) return;
    width = clientWidth;
    canvas.width = clientWidth * ratio;
    canvas.height = clientHeight * ratio;
    const paint = canvas.getContext("2d");
    paint.scale(ratio, ratio);
    plot(paint, spec, span, clientWidth, clientHeight, getComputedStyle(area));
  };
  const point = (event) => {
    const box = area.getBoundingClientRect();
    seek(span.from + ((event.clientX - box.left) / box.width) * (span.to - span.from));
  };
  area.addEventListener("pointerdown", (event) => {
    area.setPointerCapture(event.pointerId);
    point(event);
  });
  area.addEventListener("pointermove", (event) => {
    if (event.buttons) point(event);
  });
  return {
    element,
    draw,
    at(ps) {
      const part = (ps - span.from) / (span.to - span.from || 1);
      cursor.style.transform = `translateX(${Math.max(0, Math.min(1, part)) * width}px)`;
      value.textContent = spec.lines
        .map((line) => {
          const shown = line.readout === undefined ? spec.format(valueAt(line, ps)) : line.readout(ps);
          return line.name && spec.lines.length > 1 ? `${line.name} ${shown}` : shown;
        })
        .filter(Boolean)
        .join(", ");
    },
  };
}

function valueAt({ values, first, every }, ps) {
  if (!values) return 0;
  return values[Math.min(values.length - 1, Math.max(0, Math.ceil((ps - first) / every) - 1))];
}

/**
 * What a chart shows in each column of pixels, -1 where there is nothing. Of many values under a pixel the largest counts, so that no
 * peak is lost; of shares of time (`mean`) their mean, as the largest would make a link that is busy now and then look busy always.
 */
export function columnsOf({ values, first, every, mean }, span, columns) {
  const high = new Float64Array(columns).fill(-1);
  for (let column = 0; column < columns; column++) {
    const from = span.from + (column / columns) * (span.to - span.from),
      to = span.from + ((column + 1) / columns) * (span.to - span.from);
    const low = Math.max(0, Math.floor((from - first) / every)),
      end = Math.min(values.length - 1, Math.max(low, Math.ceil((to - first) / every) - 1));
    if (mean) {
      let sum = 0,
        weight = 0;
      for (let at = low; at <= end; at++) {
        // Only as much of a frame as is under the pixel.
        const part = Math.max(0, Math.min(to, first + (at + 1) * every) - Math.max(from, first + at * every));
        sum += values[at] * part;
        weight += part;
      }
      if (weight > 0) high[column] = sum / weight;
    } else for (let at = low; at <= end; at++) if (values[at] > high[column]) high[column] = values[at];
  }
  return high;
}

/** Draws the lines of a chart. */
export function plot(paint, spec, span, width, height, style) {
  const of = (colour) => (colour.startsWith("--") ? style.getPropertyValue(colour).trim() : colour);
  paint.clearRect(0, 0, width, height);
  let top = spec.top ?? 0;
  if (!spec.top) for (const { values } of spec.lines) if (values) for (const value of values) if (value > top) top = value;
  paint.strokeStyle = of("--line");
  paint.lineWidth = 1;
  paint.beginPath();
  paint.moveTo(0, height - 0.5);
  paint.lineTo(width, height - 0.5);
  if (spec.grid !== false) {
    paint.moveTo(0, 0.5);
    paint.lineTo(width, 0.5);
  }
  paint.stroke();
  const rim = spec.rim ?? 3;
  for (const line of spec.lines) {
    const { values, colour, kind = "line", dash, alpha } = line;
    if (!values || top <= 0) continue;
    const columns = Math.max(1, Math.floor(width));
    const high = columnsOf(line, span, columns);
    const y = (value) => height - 0.5 - (value / top) * (height - rim);
    paint.strokeStyle = paint.fillStyle = of(colour);
    paint.setLineDash(dash ?? []);
    paint.lineWidth = 1.5;
    if (kind === "bars") {
      paint.globalAlpha = alpha ?? 1;
      high.forEach((value, column) => {
        if (value > 0) {
          const up = Math.max(1.5, height - y(value));
          paint.fillRect(column, height - up, 1, up);
        }
      });
    } else {
      paint.beginPath();
      let open = false,
        last = 0;
      high.forEach((value, column) => {
        if (value < 0) return;
        if (!open) paint.moveTo(column, y(value));
        else paint.lineTo(column + 0.5, y(value));
        open = true;
        last = column;
      });
      if (kind === "area") {
        paint.globalAlpha = alpha ?? 0.28;
        const edge = new Path2D();
        paint.lineTo(last + 0.5, height);
        paint.lineTo(0, height);
        paint.closePath();
        paint.fill();
        paint.globalAlpha = 1;
        open = false;
        high.forEach((value, column) => {
          if (value >= 0) {
            if (open) edge.lineTo(column + 0.5, y(value));
            else edge.moveTo(column, y(value));
            open = true;
          }
        });
        paint.stroke(edge);
      } else paint.stroke();
    }
    paint.globalAlpha = 1;
    paint.setLineDash([]);
  }
  // Levels that mean something, such as a threshold: a thin line, and what it is.
  for (const { at, colour, text } of spec.marks ?? []) {
    if (!(at > 0) || at > top) continue;
    const y = Math.round(height - 0.5 - (at / top) * (height - rim)) + 0.5;
    paint.strokeStyle = paint.fillStyle = of(colour);
    paint.lineWidth = 1;
    paint.setLineDash([2, 3]);
    paint.beginPath();
    paint.moveTo(0, y);
    paint.lineTo(width, y);
    paint.stroke();
    paint.setLineDash([]);
    paint.font = `9px ${style.fontFamily}`;
    paint.textAlign = "right";
    paint.textBaseline = y < 12 ? "top" : "bottom";
    paint.fillText(text, width - 2, y + (y < 12 ? 1 : -1));
  }
}

/** Marks for a time axis: at most `most` round instants in a span. */
export function ticks(span, most) {
  const raw = (span.to - span.from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(Math.max(1, raw)));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= raw) ?? 10 * power;
  const list = [];
  for (let at = Math.ceil(span.from / step) * step; at <= span.to; at += step)
    list.push({ at, text: at === 0 ? "0" : asTime(at) });
  return list;
}
