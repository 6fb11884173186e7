// Draws the figures of the page, and switches names off and on in all of them.
(() => {
  document.documentElement.classList.add('interactive');
  const specs = new Map(), plots = new Map(), hidden = new Set();
  for (const host of document.querySelectorAll('.plot')) specs.set(host, JSON.parse(host.nextElementSibling.textContent));
  const names = new Set([...document.querySelectorAll('.chip')].map(chip => chip.dataset.name));

  // A figure is drawn when it is about to be seen.
  const seen = new IntersectionObserver(entries => {
    for (const { isIntersecting, target } of entries) {
      if (!isIntersecting || plots.has(target)) continue;
      seen.unobserve(target);
      const title = target.closest('.panel').querySelector('h4') ?? target.closest('.drawing').querySelector('h3');
      plots.set(target, new Plot(target, specs.get(target), title.textContent, hidden));
    }
  }, { rootMargin: '800px' });
  for (const host of specs.keys()) seen.observe(host);

  function show() {
    for (const chip of document.querySelectorAll('.chip')) chip.setAttribute('aria-pressed', !hidden.has(chip.dataset.name));
    plots.forEach(plot => plot.draw());
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

  // What is wider than its place says so.
  const slides = host => {
    host.classList.toggle('slides', host.scrollWidth > host.clientWidth + 2);
    host.classList.toggle('slid', host.scrollLeft > 2 && host.scrollLeft + host.clientWidth > host.scrollWidth - 4);
  };
  const watch = new ResizeObserver(entries => entries.forEach(({ target }) => slides(target)));
  for (const host of document.querySelectorAll('.table, .picture')) {
    watch.observe(host);
    host.addEventListener('scroll', () => slides(host), { passive: true });
  }

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
    const rows = [['panel', 'series', 'x', 'y', 'low', 'high', 'x axis', 'y axis']];
    figure.querySelectorAll('.plot').forEach((plot, panel) => {
      const { x: across, y: up, series: all } = specs.get(plot);
      for (const { name, x, y, low, high } of all) {
        x.forEach((x, at) => {
          if (x === null) return;
          rows.push([panel + 1, name, across.names ? across.names[x] : x, y[at], low?.[at] ?? '', high?.[at] ?? '', across.label, up.label]);
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
