// Draws the figures of the page, and switches names off and on in all of them.
(() => {
  if (!window.Plotly) return;
  const root = document.documentElement;
  root.classList.add('interactive');
  const specs = new Map();
  for (const plot of document.querySelectorAll('.plot')) {
    specs.set(plot, JSON.parse(plot.nextElementSibling.textContent));
  }
  const hidden = new Set();
  const names = new Set([...document.querySelectorAll('.chip')].map(chip => chip.dataset.name));
  const drawn = new Set();
  const css = name => getComputedStyle(root).getPropertyValue(name).trim();
  const touch = matchMedia('(pointer: coarse)').matches;
  const config = {
    displaylogo: false, responsive: true, doubleClick: false,
    modeBarButtonsToRemove: ['toImage', 'select2d', 'lasso2d', 'autoScale2d', 'resetScale2d'],
    modeBarButtonsToAdd: [{ name: 'reset', title: 'Reset axes', icon: Plotly.Icons.home, click: reset }],
  };

  // A value as the figures on paper have it: 100 KB, 20 µs, 10⁻³.
  const raised = power => String(power).replace(/./g, c => '⁰¹²³⁴⁵⁶⁷⁸⁹'[c] ?? '⁻');
  const round = (value, digits = 3) => String(Number(value.toPrecision(digits))).replace('-', '−');
  function plain(value, powers, digits) {
    if (!powers || value === 0) return round(value, digits);
    const power = Math.floor(Math.log10(Math.abs(value)) + 1e-9), factor = round(value / 10 ** power, digits);
    return (factor === '1' ? '' : factor + '·') + '10' + raised(power);
  }
  function words(value, unit, digits) {
    if (unit.percent) return round(value * 100, digits) + '%';
    if (unit.base) {
      const [low, high] = unit.powers, size = Math.log10(Math.abs(value) || 1);
      const power = Math.min(high, Math.max(low, Math.floor(size / 3 + 1e-9)));
      return round(value / 10 ** (3 * power), digits) + ' ' + ['p', 'n', 'µ', 'm', '', 'K', 'M', 'G', 'T', 'P'][power + 4] + unit.base;
    }
    return plain(value, Math.abs(value) >= 1e6 || Math.abs(value) < 1e-3, digits) + (unit.plain ? ' ' + escape(unit.plain) : '');
  }
  const escape = text => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

  // What is said of a point: its value with its interval, and where it is.
  function hover(trace, { units: { xaxis, yaxis } }) {
    const names = xaxis.names, error = trace.error_y;
    const y = value => words(value * yaxis.divisor, yaxis);
    return trace.y.map((value, at) => value === null ? null : [
      names ? escape(names[trace.x[at]]) : words(trace.x[at] * xaxis.divisor, xaxis),
      y(value) + (typeof error?.array[at] === 'number' ? ` (${y(value - error.arrayminus[at])} – ${y(value + error.array[at])})` : ''),
    ]);
  }
  for (const spec of specs.values()) {
    const names = spec.units.xaxis.names;
    for (const trace of spec.data.filter(trace => !trace.fill)) {
      trace.customdata = hover(trace, spec);
      trace.hovertemplate = '<b>%{fullData.name}</b>' + (names ? '  %{customdata[1]}' : '<br>%{customdata[1]}<br>at %{customdata[0]}') + '<extra></extra>';
    }
  }

  // Ticks of a logarithmic axis: decades, with what lies between them as far as there is room.
  function ticks(range, pixels, unit, upright) {
    const [low, high] = [Math.min(...range), Math.max(...range)];
    const decade = pixels / (high - low), need = upright ? 26 : 54;
    const digits = decade > 9 * need ? [1, 2, 3, 4, 5, 6, 7, 8, 9] : decade > 3.4 * need ? [1, 2, 5] : [1];
    const every = Math.max(1, Math.ceil(need / decade)), tickvals = [];
    for (let power = Math.floor(low); power <= high; power++) {
      if (((power % every) + every) % every) continue;
      for (const digit of digits) {
        const value = Number(digit + 'e' + power);
        if (Math.log10(value) >= low - 1e-9 && Math.log10(value) <= high + 1e-9) tickvals.push(value);
      }
    }
    // Deep inside a decade the axis is as good as linear.
    let exact = 3;
    if (tickvals.length < 2) {
      const [from, to] = [10 ** low, 10 ** high], rough = (to - from) / 4, power = 10 ** Math.floor(Math.log10(rough));
      const step = power * [1, 2, 5, 10].find(factor => factor * power >= rough);
      tickvals.length = 0;
      for (let value = Math.ceil(from / step) * step; value <= to; value += step) tickvals.push(value);
      exact = Math.ceil(high - Math.log10(step)) + 1;
    }
    const powers = high > 4.95 || low < -3.7;
    const text = value => unit.base || unit.percent ? words(value, unit, exact) : plain(value, powers, exact);
    return {
      tickmode: 'array', tickvals, ticktext: tickvals.map(text),
      minor: { ticks: 'outside', ticklen: 3, dtick: 'D1', showgrid: true, gridcolor: css('--fine'), tickcolor: css('--axis') },
    };
  }

  function draw(plot) {
    const spec = specs.get(plot);
    const paper = css('--paper'), ink = css('--ink'), soft = css('--soft'), grid = css('--grid'), axis = css('--axis');
    const data = spec.data.map(trace => {
      const colour = css('--s' + trace.meta.slot % 8);
      return {
        ...trace,
        visible: !hidden.has(trace.meta.name),
        line: { ...trace.line, color: colour },
        marker: { ...trace.marker, color: colour, line: { color: paper, width: trace.type === 'bar' || trace.marker?.size < 8 ? 0 : .8 } },
        ...(trace.fill ? { fillcolor: colour + '30' } : {}),
        ...(trace.error_y ? { error_y: { ...trace.error_y, color: trace.type === 'bar' ? ink : colour } } : {}),
      };
    });
    const layout = {
      ...spec.layout,
      autosize: true, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
      hoverlabel: { bgcolor: css('--shade'), bordercolor: css('--line'), font: { color: ink, size: 13 }, align: 'left' },
      modebar: { bgcolor: 'rgba(0,0,0,0)', color: soft, activecolor: ink },
      // A finger scrolls the page; the buttons zoom, and need room as they are always there.
      dragmode: touch ? false : 'zoom',
      margin: { ...spec.layout.margin, t: touch ? 36 : 10 },
      shapes: spec.layout.shapes.map(shape => ({
        ...shape, line: { ...shape.line, color: soft }, label: { ...shape.label, font: { color: soft, size: 12 } },
      })),
    };
    for (const name of ['xaxis', 'yaxis']) {
      const now = plot.layout?.[name].range ?? spec.layout[name].range;
      const pixels = (name === 'xaxis' ? plot.clientWidth : plot.clientHeight) - 80;
      layout[name] = {
        ...spec.layout[name], range: [...spec.layout[name].range], gridcolor: grid, linecolor: axis, tickcolor: axis,
        ...(spec.layout[name].type === 'log' ? ticks(now, pixels, spec.units[name], name === 'yaxis') : {}),
      };
    }
    return Plotly.react(plot, data, layout, config);
  }

  function reset(plot) {
    const { xaxis, yaxis } = specs.get(plot).layout;
    Plotly.relayout(plot, { 'xaxis.range': [...xaxis.range], 'yaxis.range': [...yaxis.range] });
  }

  // A figure is drawn when it is about to be seen.
  const seen = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || drawn.has(target)) continue;
      drawn.add(target);
      seen.unobserve(target);
      draw(target).then(() => {
        target.on('plotly_relayout', change => {
          if (Object.keys(change).some(key => /axis\.range|autosize/.test(key))) draw(target);
        });
        target.on('plotly_doubleclick', () => reset(target));
      });
    }
  }, { rootMargin: '800px' });
  for (const plot of specs.keys()) seen.observe(plot);
  const redraw = () => drawn.forEach(draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);

  function show() {
    for (const chip of document.querySelectorAll('.chip')) chip.setAttribute('aria-pressed', !hidden.has(chip.dataset.name));
    redraw();
  }
  document.addEventListener('click', event => {
    const name = event.target.closest('.chip')?.dataset.name;
    if (name === undefined) return;
    if (!hidden.delete(name)) hidden.add(name);
    show();
  });
  document.addEventListener('dblclick', event => {
    const name = event.target.closest('.chip')?.dataset.name;
    if (name === undefined) return;
    const others = [...names].filter(other => other !== name);
    const alone = others.every(other => hidden.has(other));
    hidden.clear();
    if (!alone) others.forEach(other => hidden.add(other));
    show();
  });

  // What is folded away on the screen is shown on paper.
  addEventListener('beforeprint', () => document.querySelectorAll('details').forEach(details => { details.open = true; }));

  // Saving a figure: the drawing for paper, or its data.
  function save(blob, name) {
    const link = document.createElement('a');
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1e4);
  }
  function table(figure) {
    const cell = value => /[",\n]/.test(value) ? '"' + String(value).replaceAll('"', '""') + '"' : String(value);
    const exact = value => Number(value.toPrecision(6));
    const rows = [['panel', 'series', 'x', 'y', 'low', 'high', 'x axis', 'y axis']];
    figure.querySelectorAll('.plot').forEach((plot, panel) => {
      const { data, units: { xaxis, yaxis } } = specs.get(plot);
      for (const trace of data.filter(trace => !trace.fill)) {
        trace.y.forEach((y, at) => {
          if (y === null) return;
          const x = trace.x[at], above = trace.error_y?.array[at], below = trace.error_y?.arrayminus[at];
          const interval = typeof above === 'number' ? [exact(y - below), exact(y + above)] : ['', ''];
          rows.push([panel + 1, trace.meta.name, xaxis.names ? xaxis.names[x] : x, y, ...interval, xaxis.label, yaxis.label]);
        });
      }
    });
    return rows.map(row => row.map(cell).join(',')).join('\n') + '\n';
  }
  document.addEventListener('click', event => {
    const kind = event.target.dataset?.save;
    if (!kind) return;
    const figure = event.target.closest('.drawing'), drawing = figure.querySelector('.paper svg');
    const text = new XMLSerializer().serializeToString(drawing);
    if (kind === 'CSV') save(new Blob([table(figure)], { type: 'text/csv' }), figure.id + '.csv');
    if (kind === 'SVG') save(new Blob([text], { type: 'image/svg+xml' }), figure.id + '.svg');
    if (kind === 'PNG') {
      const image = new Image(), { width, height } = drawing.viewBox.baseVal;
      image.onload = () => {
        const canvas = Object.assign(document.createElement('canvas'), { width: 3 * width, height: 3 * height });
        canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
        canvas.toBlob(blob => save(blob, figure.id + '.png'));
      };
      image.src = 'data:image/svg+xml;charset=utf-8,' + encodeURIComponent(text);
    }
  });
})();
