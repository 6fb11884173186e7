// A figure as SVG in an element of the page: it can be hovered, zoomed, and moved along with the keys.
// Colours are CSS variables, so that a change of the reader's colours needs no redraw.

// Numbers as the figures on paper have them: 100 KB, 20 µs, 10⁻³.
const raised = power => String(power).replace(/./g, c => '⁰¹²³⁴⁵⁶⁷⁸⁹'[c] ?? '⁻');
const round = (value, digits = 3) => String(Number(value.toPrecision(digits))).replace('-', '−');
function plain(value, powers, digits) {
  if (!powers || value === 0) return round(value, digits);
  const power = Math.floor(Math.log10(Math.abs(value)) + 1e-9), factor = round(value / 10 ** power, digits);
  return (factor === '1' ? '' : factor + '·') + '10' + raised(power);
}
/** A value of an axis in words. It is in the unit of the axis, as everything in a figure's data. */
function words(value, axis, digits) {
  value *= axis.divisor;
  if (axis.count && Math.abs(value) >= 100) return String(Math.round(value)).replace('-', '−');
  if (axis.percent) return round(value * 100, digits) + '%';
  if (axis.base) {
    const [low, high] = axis.powers, size = Math.log10(Math.abs(value) || 1);
    const power = Math.min(high, Math.max(low, Math.floor(size / 3 + 1e-9)));
    return round(value / 10 ** (3 * power), digits) + ' ' + ['p', 'n', 'µ', 'm', '', 'K', 'M', 'G', 'T', 'P'][power + 4] + axis.base;
  }
  return plain(value, Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3, digits) + (axis.unit ? ' ' + axis.unit : '');
}

/** The same with all of three digits, where it stands in a column of others: 20.0 above 13.6. */
function exact(value, axis) {
  return words(value, axis).replace(/^(−?)(\d+(?:\.\d+)?)(?=$| |%)/, (text, sign, number) => {
    const size = Number(number);
    return axis.count || size < 1 ? text : sign + (size < 100 ? size.toFixed(size < 10 ? 2 : 1) : number);
  });
}

// Text: how wide it is on the page, and where it breaks.
const SIZE = 13, LINE = 17;
const measure = document.createElement('canvas').getContext('2d');
const width = text => measure.measureText(text).width;
const widest = lines => Math.max(0, ...lines.map(width));
function wrap(text, room) {
  const lines = [];
  // A number stays with its unit.
  for (const word of text.replace(/(\d) (?=[A-Zµa-z]{1,4}\b)/g, '$1\u00a0').split(/[ \n\t]+/).filter(Boolean)) {
    const longer = lines.length ? lines.at(-1) + ' ' + word : word;
    if (lines.length && width(longer) <= room) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  return lines;
}
function shorten(text, room) {
  if (width(text) <= room) return text;
  while (text && width(text + '…') > room) text = text.slice(0, -1);
  return text.trimEnd() + '…';
}

/** A round step at least as large, and the decimals that its multiples need; a `whole` one for what is counted. */
function nice(step, whole) {
  if (whole) step = Math.max(1, step);
  const power = Math.floor(Math.log10(step) + 1e-9), fits = factor => factor * 10 ** power >= step * (1 - 1e-9) && !(whole && power === 0 && factor === 2.5);
  const factor = [1, 2, 2.5, 5, 10].find(fits) ?? 10;
  return [factor * 10 ** power, Math.max(0, -(power + (factor === 10)) + (factor === 2.5))];
}

/** Ticks of a linear axis, as many as have room. */
function linear([low, high], pixels, axis, upright) {
  for (let count = Math.min(12, Math.max(1, Math.floor(pixels / (upright ? 34 : 44)))); ; count--) {
    const [step, digits] = nice((high - low) / count, axis.count && axis.divisor === 1), ticks = [];
    for (let at = Math.ceil(low / step - 1e-9); at * step <= high + 1e-9 * step; at++) {
      const value = at * step, long = digits > 6 || Math.abs(value) >= 1e7;
      const text = (long ? plain(value, true, 6) : String(Number(value.toFixed(digits))).replace('-', '−')) + (axis.percent ? '%' : '');
      ticks.push({ at: value, text });
    }
    if (upright || count <= 1 || widest(ticks.map(tick => tick.text)) + 14 <= step / (high - low) * pixels) return { ticks, minor: [] };
  }
}

/** Ticks of a logarithmic axis, whose ends are powers of ten: decades, and what lies between as far as there is room. */
function logarithmic([low, high], pixels, axis, upright) {
  const decade = pixels / (high - low), need = upright ? 26 : 54, values = [], minor = [];
  const digits = 0.0458 * decade > need - 8 ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : decade > 3.4 * need ? [1, 2, 5] : [1];
  const every = Math.max(1, Math.ceil(need / decade)), inside = value => Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9;
  for (let power = Math.floor(low); power <= high; power++) {
    for (let digit = 1; digit < 10 && high - low < 9; digit++) minor.push(Number(digit + 'e' + power));
    if (power % every === 0) values.push(...digits.map(digit => Number(digit + 'e' + power)).filter(inside));
  }
  // Deep inside a decade the axis is as good as linear.
  let exact = 3;
  if (values.length < 3 && high - low < 0.7) {
    const [from, to] = [10 ** low, 10 ** high], [step, decimals] = nice((to - from) / 4);
    values.length = 0;
    for (let at = Math.ceil(from / step - 1e-9); at * step <= to * (1 + 1e-9); at++) values.push(at * step);
    exact = Math.max(1, Math.floor(high + 1e-9) + 1 + decimals);
  }
  const powers = high > 4.95 || low < -3.7;
  const text = value => axis.base || axis.percent ? words(value, axis, exact) : plain(value, powers, exact);
  return { ticks: values.map(at => ({ at, text: text(at) })), minor: minor.filter(inside) };
}

/** The corners of a line; a step holds its height until the next. */
const corners = (places, step) => !step ? places
  : places.flatMap((place, at) => at ? [[place[0], places[at - 1][1]], place] : [place]);
/** Coordinates to a tenth of a pixel, and near enough for a drawing to be drawn. */
const n = value => Math.round(Math.max(-1e5, Math.min(1e5, value)) * 10) / 10;
const path = places => places.map(([x, y], at) => (at ? 'L' : 'M') + n(x) + ' ' + n(y)).join('');
/** Places along a line, a few pixels apart. */
function along([a, b], [c, d]) {
  const steps = Math.min(200, Math.max(1, Math.floor((Math.abs(c - a) + Math.abs(d - b)) / 6)));
  return Array.from({ length: steps }, (_, at) => [a + (c - a) * at / steps, b + (d - b) * at / steps]);
}
function make(tag, attributes = {}, ...inside) {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...inside);
  return node;
}
function element(tag, attributes, ...inside) {
  const node = Object.assign(document.createElement(tag), attributes);
  node.append(...inside);
  return node;
}

class Plot {
  /** `hidden` has the names that are switched off. */
  constructor(host, spec, title, hidden) {
    Object.assign(this, { host, spec, hidden, shown: [], focus: null });
    this.home = { x: this.ends(spec.x), y: this.ends(spec.y) };
    this.view = { ...this.home };
    this.svg = make('svg', { tabindex: 0, role: 'img', 'aria-label': `${title}: ${spec.y.label} by ${spec.x.label}` });
    this.readout = element('div', { className: 'readout', hidden: true });
    this.readout.setAttribute('role', 'status');
    const button = (text, label, click) => {
      const node = element('button', { type: 'button', title: label, onclick: click }, text);
      node.setAttribute('aria-label', label);
      return node;
    };
    const tools = element('div', { className: 'tools' }, button('+', 'Zoom in', () => this.zoom(0.6)),
      button('−', 'Zoom out', () => this.zoom(1 / 0.6)), button('Reset', 'Show all', () => this.reset()));
    // What is drawn again and again, and what stays where it is: a hand may hold it.
    [this.content, this.cursor, this.sheet] = [make('g'), make('g', { class: 'cursor' }), make('rect', { class: 'sheet' })];
    this.plot = make('g', {}, this.content, this.cursor, this.sheet);
    this.svg.append(this.plot);
    host.replaceChildren(this.svg, tools, this.readout);
    this.listen(this.sheet);
    this.svg.addEventListener('keydown', event => this.key(event));
    this.svg.addEventListener('blur', () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(host);
  }

  /** The ends of an axis, as the view has them: of a logarithmic one the powers of ten. */
  ends({ log, range }) {
    return log ? range.map(Math.log10) : [...range];
  }
  across(x) {
    const [low, high] = this.view.x;
    return ((this.spec.x.log ? Math.log10(x) : x) - low) / (high - low) * this.wide;
  }
  down(y) {
    const [low, high] = this.view.y;
    return (1 - ((this.spec.y.log ? Math.log10(Math.max(y, 1e-300)) : y) - low) / (high - low)) * this.high;
  }
  /** Where a point is, moved along the names by `shift`. On its side, a plot has its names below each other and its values to the right. */
  spot(x, y, shift) {
    if (!this.turned) return [this.across(x) + shift, this.down(y)];
    return [(1 - this.down(y) / this.high) * this.wide, this.across(x) / this.wide * this.high + shift];
  }
  inside([x, y]) {
    return x >= -0.5 && x <= this.wide + 0.5 && y >= -0.5 && y <= this.high + 0.5;
  }

  draw() {
    const { host, spec, svg } = this, [room, tall] = [host.clientWidth, host.clientHeight];
    if (room < 40 || tall < 40) return;
    measure.font = `${SIZE}px ${getComputedStyle(host).fontFamily}`;
    const touch = matchMedia('(pointer: coarse)').matches, top = touch ? 40 : 10;
    const ticks = (axis, view, pixels, upright) => (axis.log ? logarithmic : linear)(view, pixels, axis, upright);
    // What stands at an axis takes room from the plot, which changes what stands there: the second time it fits.
    let left = 60, right = 14, bottom, x, y, names, below, beside;
    this.wide = Math.max(20, room - left - right);
    // Names that have no room beside each other have rows.
    this.turned = Boolean(spec.turns && spec.x.names && !spec.empty && this.names().slanted);
    host.classList.toggle('turned', this.turned);
    if (this.turned) {
      const apart = spec.single ? 1 : new Set(spec.series.filter(({ hollow }) => !hollow).map(({ name }) => name)).size;
      names = { list: spec.x.names.map((name, at) => ({ at, lines: [shorten(name, 0.42 * room)] })) };
      left = widest(names.list.map(({ lines }) => lines[0])) + 10;
      this.beyond = spec.single ? Math.max(...spec.series.flatMap(({ y }) => y).filter(y => y !== null).map(y => width(exact(y, spec.y)))) + 10 : 0;
      right = 14 + this.beyond;
      this.wide = Math.max(20, room - left - right);
      y = ticks(spec.y, this.view.y, this.wide, false);
      below = wrap(spec.y.label, this.wide);
      beside = [];
      bottom = 12 + LINE + LINE * below.length + 4;
      this.high = names.list.length * Math.max(20, 11 * apart);
      const height = `${top + this.high + bottom}px`;
      if (host.style.height !== height) host.style.height = height;
    } else if (host.style.height) host.style.height = '';
    for (let pass = 0; pass < 2 && !this.turned; pass++) {
      this.wide = Math.max(20, room - left - right);
      names = spec.x.names ? this.names() : null;
      x = names ? null : ticks(spec.x, this.view.x, this.wide, false);
      const last = x?.ticks.at(-1);
      if (last) right = Math.max(14, this.across(last.at) + width(last.text) / 2 - this.wide + 2);
      below = wrap(spec.x.label, this.wide);
      bottom = 12 + (spec.empty ? 0 : names ? names.tall : LINE) + LINE * below.length + 4;
      this.high = Math.max(20, tall - top - bottom);
      y = ticks(spec.y, this.view.y, this.high, true);
      beside = wrap(spec.y.label, this.high);
      left = 6 + LINE * beside.length + (spec.empty ? 0 : 10 + widest(y.ticks.map(tick => tick.text)));
      left = Math.max(left, names?.before ?? 0);
    }
    const { wide, high } = this;
    svg.setAttribute('viewBox', `0 0 ${room} ${this.turned ? top + high + bottom : tall}`);
    this.plot.setAttribute('transform', `translate(${n(left)} ${top})`);
    const plot = this.content;
    plot.replaceChildren();

    const layers = { bands: [], bars: [], lines: [], over: [], ink: [] };
    const labels = make('g');
    const say = (text, attributes) => labels.append(make('text', attributes, text));
    if (this.turned) {
      const columns = list => list.map(at => n(this.spot(0, at, 0)[0])), stubs = columns(y.ticks.map(tick => tick.at));
      plot.append(make('path', { class: 'fine', d: columns(y.minor).map(x => `M${x} 0V${n(high)}`).join('') }));
      plot.append(make('path', { class: 'grid', d: stubs.map(x => `M${x} 0V${n(high)}`).join('') }));
      labels.append(make('path', { class: 'axis', d: stubs.map(x => `M${x} ${n(high)}v5`).join('') + columns(y.minor).map(x => `M${x} ${n(high)}v2.5`).join('') }));
      y.ticks.forEach((tick, at) => say(tick.text, { x: stubs[at], y: n(high + 20), 'text-anchor': 'middle' }));
      for (const { at, lines } of names.list) say(lines[0], { x: -8, y: n((at + 0.5) * high / names.list.length + 4.5), 'text-anchor': 'end' });
    } else if (!spec.empty) {
      const rows = list => list.map(at => n(this.down(at))), columns = list => list.map(at => n(this.across(at)));
      const lines = (rows, columns) => rows.map(y => `M0 ${y}H${n(wide)}`).join('') + columns.map(x => `M${x} 0V${n(high)}`).join('');
      const ats = ticks => ticks.map(tick => tick.at);
      const stubs = names ? names.list.map(name => n(this.across(name.at))) : columns(ats(x.ticks));
      plot.append(make('path', { class: 'fine', d: lines(rows(y.minor), x ? columns(x.minor) : []) }));
      plot.append(make('path', { class: 'grid', d: lines(rows(ats(y.ticks)), x ? columns(ats(x.ticks)) : []) }));
      labels.append(make('path', { class: 'axis', d: rows(ats(y.ticks)).map(y => `M-5 ${y}H0`).join('') + stubs.map(x => `M${x} ${n(high)}v5`).join('')
        + rows(y.minor).map(y => `M-2.5 ${y}H0`).join('') + columns(x?.minor ?? []).map(x => `M${x} ${n(high)}v2.5`).join('') }));
      for (const tick of y.ticks) say(tick.text, { x: -8, y: n(this.down(tick.at) + 4.5), 'text-anchor': 'end' });
      for (const tick of x?.ticks ?? []) say(tick.text, { x: n(this.across(tick.at)), y: n(high + 20), 'text-anchor': 'middle' });
      for (const { at, lines } of names?.list ?? []) {
        const [x, y] = [n(this.across(at)), n(high + 20)];
        if (names.slanted) say(lines[0], { x: x + 4, y: y - 4, 'text-anchor': 'end', transform: `rotate(${names.turn} ${x + 4} ${y - 4})` });
        else lines.forEach((line, row) => say(line, { x, y: y + LINE * row, 'text-anchor': 'middle' }));
      }
    }
    below.forEach((line, row) => say(line, { x: n(wide / 2), y: n(tall - top - 6 - LINE * (below.length - 1 - row)), 'text-anchor': 'middle' }));
    beside.forEach((line, row) => {
      const x = n(LINE * (row + 0.75) - left + 2), y = n(high / 2);
      say(line, { x, y, 'text-anchor': 'middle', transform: `rotate(-90 ${x} ${y})` });
    });
    labels.append(make('path', { class: 'axis', d: `M0 0V${n(high)}H${n(wide)}` }));

    this.shown = spec.series.filter(series => !this.hidden.has(series.name));
    this.places = this.shown.map(series => this.series(layers, series));
    const clip = make('svg', { x: -2, y: -2, width: n(wide + 4), height: n(high + 4), viewBox: `-2 -2 ${n(wide + 4)} ${n(high + 4)}` });
    clip.append(...layers.bands, ...layers.bars, ...layers.lines);
    plot.append(clip, ...layers.over);
    if (spec.empty) plot.append(make('text', { class: 'soft', x: n(wide / 2), y: n(high / 2), 'text-anchor': 'middle' }, 'no data'));
    this.marks(plot, layers.ink);
    plot.append(labels);
    this.sheet.setAttribute('width', n(wide));
    this.sheet.setAttribute('height', n(high));
    host.classList.toggle('zoomed', this.zoomed());
    if (this.focus) this.point(this.focus);
  }

  /** The names along the axis that are in view: level, in lines of their own, or slanting up to their place. */
  names() {
    const [low, high] = this.view.x, slot = this.wide / (high - low);
    const all = this.spec.x.names.map((name, at) => ({ name, at })).filter(({ at }) => at >= low && at <= high);
    const list = all.map(({ name, at }) => ({ at, lines: wrap(name, slot - 6) }));
    if (list.every(({ lines }) => lines.length <= 3 && widest(lines) <= slot - 4)) {
      return { list, slanted: false, tall: LINE * Math.max(1, ...list.map(({ lines }) => lines.length)) };
    }
    const short = all.map(({ name, at }) => ({ at, lines: [shorten(name, 120)] }));
    // Upright where they would lie on each other.
    const [turn, sine, cosine] = 0.574 * slot < 1.05 * SIZE ? [-90, 1, 0] : [-35, 0.574, 0.82];
    const before = Math.max(0, ...short.map(({ at, lines }) => cosine * width(lines[0]) + 12 - (at - low) * slot));
    const every = turn === -90 ? Math.max(1, Math.ceil(16 / slot)) : 1;
    return { list: short.filter((_, at) => at % every === 0), slanted: true, turn, tall: sine * widest(short.map(({ lines }) => lines[0])) + 16, before };
  }

  /** Draws a series into the layers; gives back the places of its points. */
  series(layers, series) {
    const { spec, shown } = this, bars = shown.filter(({ kind }) => kind === 'bars');
    const [low, high] = this.view.x, slot = (this.turned ? this.high : this.wide) / (high - low), step = series.kind === 'step';
    const group = () => make('g', { style: `color:${series.colour}` });
    const sets = spec.alone ? 1 : Math.max(1, bars.length), thick = Math.min(56, 0.82 * slot / sets);
    // What is stated of a series stands where that does.
    const own = series.hollow ? shown.find(other => !other.hollow && other.slot === series.slot) : series;
    const apart = shown.filter(other => !other.hollow), nth = own ? apart.indexOf(own) : (apart.length - 1) / 2;
    const shift = own?.kind === 'bars' ? (spec.alone ? 0 : (bars.indexOf(own) - (sets - 1) / 2) * thick)
      : spec.apart ? (nth - (apart.length - 1) / 2) * Math.min(spec.dots ? 18 : 7, (spec.dots ? 0.8 : 0.5) * slot / Math.max(1, apart.length)) : 0;
    const places = series.x.map((x, at) => x === null ? null : this.spot(x, series.y[at], shift));
    const whisker = at => {
      if (this.turned) {
        const end = value => n(Math.max(0, Math.min(this.wide, this.spot(0, value, 0)[0]))), y = places[at][1];
        const [a, b] = [end(series.low[at]), end(series.high[at])];
        layers.ink.push(...along([a, y], [b, y]));
        return `M${a} ${n(y)}H${b}M${a} ${n(y - 3)}V${n(y + 3)}M${b} ${n(y - 3)}V${n(y + 3)}`;
      }
      const end = value => n(Math.max(0, Math.min(this.high, this.down(value)))), x = places[at][0];
      const [a, b] = [end(series.low[at]), end(series.high[at])];
      return `M${n(x)} ${a}V${b}M${n(x - 3)} ${a}H${n(x + 3)}M${n(x - 3)} ${b}H${n(x + 3)}`;
    };
    const seen = at => places[at] && (this.turned || places[at][0] >= -0.5 && places[at][0] <= this.wide + 0.5);
    const whiskers = series.low && !series.band
      ? places.map((_, at) => seen(at) && series.low[at] !== null ? whisker(at) : '').join('') : '';
    const over = group();
    layers.over.push(over);
    const write = (at, x, y, anchor) => over.append(make('text', { class: 'number', x: n(x), y: n(y), 'text-anchor': anchor }, exact(series.y[at], spec.y)));
    if (this.turned && spec.single) places.forEach((place, at) => { if (place) write(at, this.wide + this.beyond, place[1] + 4.5, 'end'); });

    if (series.kind === 'bars') {
      const node = group(), ground = spec.y.log ? this.high : Math.max(0, Math.min(this.high, this.down(0))), gap = thick > 6 ? 1.5 : 0;
      places.forEach((place, at) => {
        if (!place) return;
        if (this.turned) {
          const from = spec.y.log ? 0 : Math.max(0, this.spot(0, 0, 0)[0]), long = Math.max(1, Math.abs(place[0] - from)), y = place[1] - thick / 2;
          node.append(make('rect', { x: n(Math.min(from, place[0])), y: n(y + gap / 2), width: n(long), height: n(thick - gap), fill: 'currentColor' }));
          if (spec.cut && place[0] > this.wide + 0.5) {
            node.append(make('path', { class: 'gap', d: `M${n(this.wide - 14)} ${n(y + thick)}L${n(this.wide - 8)} ${n(y)}` }));
            if (!spec.single) write(at, this.wide - 18, place[1] + 4.5, 'end');
          }
          layers.ink.push(...along([from, place[1]], [Math.min(this.wide, place[0]), place[1]]));
          return;
        }
        // A hairline tells a small value from zero.
        const tall = Math.max(1, Math.abs(place[1] - ground)), top = place[1] > ground ? ground : ground - tall, x = place[0] - thick / 2;
        node.append(make('rect', { x: n(x + gap / 2), y: n(top), width: n(thick - gap), height: n(tall), fill: 'currentColor' }));
        for (let y = top; y < top + tall; y += 6) layers.ink.push(...along([x, y], [x + thick, y]));
        if (spec.cut && place[1] < -0.5) {
          node.append(make('path', { class: 'gap', d: `M${n(x)} 14L${n(x + thick)} 10` }));
          const half = width(words(series.y[at], spec.y)) / 2;
          write(at, Math.max(half, Math.min(this.wide - half, place[0])), 30, 'middle');
        }
      });
      layers.bars.push(node);
      if (whiskers) over.append(make('path', { class: 'ink', d: whiskers }));
      return places;
    }
    if (series.kind === 'line' || step) {
      const node = group(), bands = group(), beyond = place => !place || place[0] < -50 || place[0] > this.wide + 50;
      let line = '', dots = '';
      for (let from = 0; from < places.length; from++) {
        if (!places[from]) continue;
        let to = from;
        while (places[to + 1]) to++;
        // Only what is in view, and what leads to it.
        const kept = [];
        for (let at = from; at <= to; at++) if (![at - 1, at, at + 1].every(near => beyond(places[near]))) kept.push(at);
        const run = corners(kept.map(at => places[at]), step);
        line += path(run);
        if (kept.length < 300) run.forEach((place, at) => { if (at) layers.ink.push(...along(run[at - 1], place)); });
        else layers.ink.push(...run);
        if (from === to && !series.marker && this.inside(places[from])) dots += `M${n(places[from][0])} ${n(places[from][1])}h0`;
        if (series.band) {
          const edge = end => corners(kept.map(at => [places[at][0], end[at] === null ? places[at][1] : this.down(end[at])]), step);
          bands.append(make('path', { class: 'band', d: path([...edge(series.high), ...edge(series.low).reverse()]) + 'Z' }));
        }
        from = to;
      }
      layers.bands.push(bands);
      node.append(make('path', { stroke: 'currentColor', 'stroke-width': series.thin ? 1.3 : 2, 'stroke-dasharray': series.dash, d: line }));
      if (dots) over.append(make('path', { class: 'dot', d: dots }));
      layers.lines.push(node);
    }
    if (whiskers) over.append(make('path', { stroke: 'currentColor', 'stroke-width': 1.3, d: whiskers }));
    if (series.kind === 'cloud') {
      const dots = places.filter(place => place && this.inside(place)).map(([x, y]) => `M${n(x)} ${n(y)}h0`).join('');
      over.append(make('path', { class: 'cloud', d: dots }));
    } else if (series.marker) {
      const crowded = series.kind === 'line' && places.length * 14 > this.wide;
      let last = -Infinity;
      for (const place of places) {
        if (!place || !this.inside(place) || (crowded && Math.abs(place[0] - last) < 14)) continue;
        last = place[0];
        over.append(make('path', { class: series.hollow ? 'hollow' : 'marker', transform: `translate(${n(place[0])} ${n(place[1])})`, d: series.marker }));
        layers.ink.push(place);
      }
    }
    return places;
  }

  /** Reference lines, each with its label where it hides the least. */
  marks(plot, ink) {
    const { wide, high, spec } = this, taken = [];
    for (const mark of this.spec.marks) {
      const upright = mark.upright !== this.turned, spot = this.spot(mark.upright ? mark.at : 0, mark.upright ? spec.y.range[0] : mark.at, 0);
      const at = spot[upright ? 0 : 1];
      if (!(at >= -0.5 && at <= (upright ? wide : high) + 0.5)) continue;
      plot.append(make('path', { class: 'mark', d: upright ? `M${n(at)} 0V${n(high)}` : `M0 ${n(at)}H${n(wide)}` }));
      const lines = wrap(mark.label, 0.6 * wide), w = widest(lines), h = LINE * lines.length, parts = [0, 1, 0.5, 0.25, 0.75];
      const spots = parts.flatMap(part => upright ? [at + 5, at - 5 - w].map(x => [x, part * (high - h)])
        : [at - 2 - h, at + 2].map(y => [wide - w - 5 - part * (wide - w - 10), y]));
      const cost = ([x, y]) => ink.filter(([a, b]) => a > x - 3 && a < x + w + 3 && b > y && b < y + h).length
        + 1e3 * taken.filter(([a, b, c, d]) => x < c && x + w > a && y < d && y + h > b).length
        + 1e6 * (x < 0 || x + w > wide || y < 0 || y + h > high);
      const costs = spots.map(cost), [x, y] = spots[costs.indexOf(Math.min(...costs))];
      taken.push([x, y, x + w, y + h]);
      lines.forEach((line, row) => plot.append(make('text', { class: 'halo', x: n(x), y: n(y + LINE * (row + 0.75)) }, line)));
    }
  }

  // What is said of a point: its value with its interval, and where it is.
  value(series, at) {
    const { y } = this.spec, known = series.low && series.low[at] !== null;
    return words(series.y[at], y) + (known ? ` (${words(series.low[at], y)} – ${words(series.high[at], y)})` : '');
  }

  /** Shows what is at a name (`place`), or one point of a series; nothing if `focus` is null. */
  point(focus) {
    const { spec, readout, cursor } = this, rows = [];
    this.focus = focus;
    cursor.replaceChildren();
    const line = (series, ...text) => {
      const swatch = element('i', {});
      swatch.style.background = series.colour;
      rows.push(element('p', {}, swatch, element('b', {}, series.name), ...text));
    };
    let at;
    if (focus?.place !== undefined) {
      rows.push(element('p', {}, spec.x.names[focus.place]));
      this.shown.forEach(series => series.x.forEach((x, at) => { if (x === focus.place) line(series, ' ' + this.value(series, at)); }));
      if (this.turned) {
        const [slot, middle] = [this.high / spec.x.names.length, this.spot(focus.place, spec.y.range[0], 0)[1]];
        cursor.append(make('rect', { x: 0, y: n(middle - slot / 2), width: n(this.wide), height: n(slot) }));
        at = [this.wide / 2, middle];
      }
      const slot = this.across(1) - this.across(0), middle = this.across(focus.place);
      const [from, to] = [middle - slot / 2, middle + slot / 2].map(x => Math.max(0, Math.min(this.wide, x)));
      if (!this.turned) cursor.append(make('rect', { x: n(from), width: n(to - from), height: n(this.high) }));
      at ??= [middle, Math.min(this.high / 2, focus.y ?? 20)];
    } else if (focus) {
      const series = this.shown.find(({ name }) => name === focus.name);
      at = this.places[this.shown.indexOf(series)]?.[focus.at];
      if (at && this.inside(at)) {
        line(series);
        rows.push(element('p', {}, this.value(series, focus.at)), element('p', {}, 'at ' + words(series.x[focus.at], spec.x)));
        cursor.append(make('circle', { cx: n(at[0]), cy: n(at[1]), r: 6, style: `color:${series.colour}` }));
      }
    }
    readout.hidden = rows.length < 2;
    if (readout.hidden) return;
    readout.replaceChildren(...rows);
    // Beside the place, on the side that has room.
    const box = this.plot.getCTM(), x = box.e + at[0], y = box.f + at[1], [w, h] = [readout.offsetWidth, readout.offsetHeight];
    const beside = x + 14 + w <= this.host.clientWidth ? x + 14 : x - 14 - w;
    readout.style.left = Math.max(0, Math.min(this.host.clientWidth - w, beside)) + 'px';
    readout.style.top = Math.max(0, Math.min(this.host.clientHeight - h, y - h / 2)) + 'px';
  }

  /** What is nearest to a place: the name, or a point not far away. */
  nearest([x, y]) {
    if (this.spec.empty) return null;
    const { x: axis } = this.spec, [low, high] = this.view.x;
    if (axis.names) {
      const place = Math.round(low + (this.turned ? y / this.high : x / this.wide) * (high - low));
      return place >= 0 && place < axis.names.length ? { place, y } : null;
    }
    let best = null, least = 60 ** 2;
    this.places.forEach((places, order) => places.forEach((place, at) => {
      const far = place ? (place[0] - x) ** 2 + (place[1] - y) ** 2 : Infinity;
      if (far < least && this.inside(place)) [least, best] = [far, { name: this.shown[order].name, at }];
    }));
    return best;
  }

  listen(sheet) {
    const spot = event => {
      const box = sheet.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const limit = ([x, y]) => [Math.max(0, Math.min(this.wide, x)), Math.max(0, Math.min(this.high, y))];
    let start = null, view, box;
    sheet.addEventListener('pointerdown', event => {
      const touch = event.pointerType === 'touch';
      if (event.button !== 0) return;
      this.svg.focus({ preventScroll: true, focusVisible: false });
      if (touch) this.point(this.nearest(spot(event)));
      if (this.turned || touch && !this.zoomed()) return;
      sheet.setPointerCapture(event.pointerId);
      // With a finger, or the shift key, a zoomed plot is moved.
      [start, view, box] = [spot(event), { ...this.view }, touch || event.shiftKey ? null : make('rect', { class: 'box' })];
    });
    sheet.addEventListener('pointermove', event => {
      const here = spot(event);
      if (!start) {
        if (event.pointerType !== 'touch') this.point(this.nearest(here));
        return;
      }
      if (!box) {
        const move = ([low, high], by) => [low + by * (high - low), high + by * (high - low)];
        this.view = { x: move(view.x, (start[0] - here[0]) / this.wide), y: move(view.y, (here[1] - start[1]) / this.high) };
        this.pending ??= requestAnimationFrame(() => {
          this.pending = null;
          this.draw();
        });
        return;
      }
      this.point(null);
      const [[a, b], [c, d]] = this.corners(start, limit(here));
      for (const [name, value] of Object.entries({ x: a, y: b, width: c - a, height: d - b })) box.setAttribute(name, n(value));
      this.cursor.replaceChildren(box);
    });
    const end = event => {
      if (start && box && event.type === 'pointerup') {
        const here = limit(spot(event)), [[a, b], [c, d]] = this.corners(start, here);
        if (Math.hypot(here[0] - start[0], here[1] - start[1]) > 8) {
          const part = ([low, high], from, to) => [low + from * (high - low), low + to * (high - low)];
          this.show({ x: part(view.x, a / this.wide, c / this.wide), y: part(view.y, 1 - d / this.high, 1 - b / this.high) });
        } else this.point(this.nearest(here));
      }
      start = null;
    };
    sheet.addEventListener('pointerup', end);
    sheet.addEventListener('pointercancel', end);
    sheet.addEventListener('pointerleave', () => { if (!start) this.point(null); });
    sheet.addEventListener('dblclick', () => this.reset());
  }

  /** The rectangle between two places; one that is narrow in a direction takes all of it. */
  corners([a, b], [c, d]) {
    const [flat, narrow] = [Math.abs(d - b) < 14, Math.abs(c - a) < 14];
    const [x, y] = [narrow && !flat ? [0, this.wide] : [Math.min(a, c), Math.max(a, c)], flat ? [0, this.high] : [Math.min(b, d), Math.max(b, d)]];
    return [[x[0], y[0]], [x[1], y[1]]];
  }

  zoomed() {
    return ['x', 'y'].some(axis => this.view[axis].some((end, at) => end !== this.home[axis][at]));
  }
  /** Shows a part; not one so small that numbers cannot tell its ends apart. */
  show(view) {
    if (this.turned) return;
    const fine = ['x', 'y'].every(axis => view[axis][1] - view[axis][0] > 1e-6 * (this.home[axis][1] - this.home[axis][0]));
    if (!fine) return;
    this.view = view;
    this.focus = null;
    this.draw();
    this.point(null);
  }
  reset() {
    this.show({ ...this.home });
  }
  zoom(factor) {
    const about = (axis) => {
      const [low, high] = this.view[axis], middle = (low + high) / 2, half = (high - low) / 2 * factor;
      // Never further out than all there is.
      return half * 2 >= this.home[axis][1] - this.home[axis][0] ? [...this.home[axis]] : [middle - half, middle + half];
    };
    this.show({ x: about('x'), y: about('y') });
  }

  key(event) {
    const { key } = event, { names } = this.spec.x, step = { ArrowRight: 1, ArrowLeft: -1 }[key], other = { ArrowDown: 1, ArrowUp: -1 }[key];
    const turn = (at, by, length) => ((at + by) % length + length) % length;
    if (key === '+' || key === '=') this.zoom(0.6);
    else if (key === '-') this.zoom(1 / 0.6);
    else if (key === '0') this.reset();
    else if (key === 'Escape') this.point(null);
    else if ((step || other) && this.shown.length && !this.spec.empty) {
      if (names) {
        const by = this.turned ? other : step;
        if (!by) return;
        this.point({ place: this.focus ? turn(this.focus.place, by, names.length) : by > 0 ? 0 : names.length - 1 });
      } else {
        const order = Math.max(0, this.shown.findIndex(({ name }) => name === this.focus?.name));
        const series = turn(order, this.focus && other || 0, this.shown.length), places = this.places[series];
        let at = this.focus ? this.focus.at : -1;
        if (series !== order) {
          const x = this.shown[order].x[at], gap = value => value === null ? Infinity : Math.abs(value - x);
          at = this.shown[series].x.reduce((best, value, place, all) => gap(value) < gap(all[best]) ? place : best, 0);
        } else {
          const by = step ?? 1;
          if (at < 0 && by < 0) at = places.length;
          do at += by; while (at >= 0 && at < places.length && !(places[at] && this.inside(places[at])));
        }
        if (places[at]) this.point({ name: this.shown[series].name, at });
      }
    } else return;
    event.preventDefault();
  }
}
