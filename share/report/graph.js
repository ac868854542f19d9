// The page of a network: moves and zooms its picture, colours the boxes by a measure, lists them by it.
// Names come from files, so text is only ever set as text.
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('graph').textContent);
  const app = document.getElementById('app');
  const view = document.getElementById('view');
  const svg = view.querySelector('svg');
  const boxes = data.boxes;
  const drawn = boxes.map(() => []);
  for (const g of svg.querySelectorAll('g[data-i]')) drawn[Number(g.dataset.i)].push(g);
  const number = new Intl.NumberFormat('en', {maximumSignificantDigits: 3});
  const make = (tag, text, parent) => {
    const e = document.createElement(tag);
    if (text !== undefined) e.textContent = text;
    if (parent) parent.append(e);
    return e;
  };

  // ---- Measures.
  const steps = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k'], [1, '']];
  function count(v) {
    const [by, letter] = steps.find(([s]) => v >= s) || [1, ''];
    return `${number.format(v / by)} ${letter}`.trim();
  }
  function bytes(v) {
    const units = ['B', 'KiB', 'MiB', 'GiB'];
    let i = 0;
    while (v >= 1024 && i < 3) { v /= 1024; i++; }
    return `${number.format(v)} ${units[i]}`;
  }
  const time = (v) => (v >= 1000 ? `${number.format(v / 1000)} ms` : `${number.format(v)} µs`);
  const measures = {
    us: {label: 'time', get: (b) => b.us, text: time, share: true},
    rate: {label: 'speed [GFLOP/s]', get: (b) => (b.us > 0 && b.flops ? b.flops / b.us / 1000 : undefined), text: (v) => number.format(v)},
    macs: {label: 'multiply-accumulates', get: (b) => b.macs || undefined, text: count, share: true},
    weights: {label: 'bytes of weights', get: (b) => b.weights || undefined, text: bytes, share: true},
    output: {label: 'bytes of its output', get: (b) => b.output || undefined, text: bytes},
    precision: {label: 'precision', get: (b) => b.precision, text: String, named: true},
    kind: {label: 'kind of layer'},
  };
  const has = (m) => m === 'kind' || boxes.some((b) => measures[m].get(b) !== undefined);
  const known = Object.keys(measures).filter(has);

  // ---- Colours of the light and of the dark scheme, of which the style sheet takes one; text is legible on all.
  const tint = (e, [light, dark]) => {
    e.classList.add('tinted');
    e.style.setProperty('--light', light);
    e.style.setProperty('--dark', dark);
  };
  const ramps = [[[255, 251, 235], [253, 230, 138], [253, 186, 116], [248, 113, 113]],
    [[35, 43, 52], [106, 78, 24], [142, 76, 20], [180, 38, 38]]];
  const shade = (x) => ramps.map((ramp) => {
    const at = Math.min(Math.max(x, 0), 1) * (ramp.length - 1);
    const i = Math.min(Math.floor(at), ramp.length - 2);
    const mix = ramp[i].map((v, k) => Math.round(v + (ramp[i + 1][k] - v) * (at - i)));
    return `rgb(${mix.join(',')})`;
  });
  const named = [['#bfdbfe', '#1e40af'], ['#bbf7d0', '#166534'], ['#fde68a', '#854d0e'], ['#fbcfe8', '#9d174d'],
    ['#ddd6fe', '#5b21b6'], ['#fed7aa', '#9a3412']];
  const plain = ['#f3f4f6', '#232b34'];
  const kinds = [[['#dbeafe', '#1e3a5f'], 'convolution'], [['#ede9fe', '#3f3169'], 'dense'], [['#dcfce7', '#17472d'], 'pooling'],
    [['#ffedd5', '#5c3616'], 'joins'], [['#fef9c3', '#4f4512'], 'other']];
  const own = drawn.map(([g]) => {
    const fill = g && g.querySelector('rect').getAttribute('fill');
    const kind = kinds.find(([pair]) => pair[0] === fill);
    return kind ? kind[0] : plain;
  });
  const paint = (i, pair) => drawn[i].forEach((g) => tint(g.querySelector('rect'), pair));

  const scale = document.getElementById('scale');
  const list = document.getElementById('list');
  let chosen = -1;

  function legend(items) {
    for (const [pair, text] of items) {
      const e = make('span', undefined, scale);
      tint(make('i', undefined, e), pair);
      e.append(text);
    }
  }

  function colourNamed(m) {
    const names = [...new Set(boxes.map(m.get).filter((v) => v !== undefined))];
    boxes.forEach((b, i) => paint(i, m.get(b) === undefined ? plain : named[names.indexOf(m.get(b)) % named.length]));
    legend(names.map((n, i) => [named[i % named.length], n]));
  }

  function colourNumber(m) {
    const most = Math.max(...boxes.map((b) => m.get(b) || 0)) || 1;
    boxes.forEach((b, i) => paint(i, m.get(b) === undefined ? plain : shade(m.get(b) / most)));
    make('span', m.text(0), scale);
    make('span', undefined, scale).className = 'ramp';
    const stops = [0, 1 / 3, 2 / 3, 1].map(shade);
    tint(scale.lastChild, [0, 1].map((scheme) => `linear-gradient(90deg,${stops.map((pair) => pair[scheme]).join(',')})`));
    make('span', m.text(most), scale);
  }

  function rows(m) {
    const order = boxes.map((b, i) => i).filter((i) => boxes[i].macs !== undefined);
    if (m.get && !m.named) {
      const value = (i) => m.get(boxes[i]) || 0;
      return order.filter((i) => value(i) > 0).sort((a, b) => value(b) - value(a));
    }
    return order;
  }

  function fill(m) {
    list.replaceChildren();
    const shown = rows(m);
    const value = (i) => (m.get ? m.get(boxes[i]) : undefined);
    const most = m.named || !m.get ? 0 : Math.max(...shown.map(value));
    const all = m.share ? (m === measures.us && data.us ? data.us : shown.reduce((s, i) => s + value(i), 0)) : 0;
    for (const i of shown) {
      const li = make('li', undefined, list);
      li.dataset.i = i;
      const top = make('div', undefined, li);
      top.className = 'top';
      make('span', boxes[i].name, top).title = boxes[i].title;
      const share = all ? `, ${number.format(100 * value(i) / all)} %` : '';
      make('span', value(i) === undefined ? '' : m.text(value(i)) + share, top);
      if (most) {
        const bar = make('div', undefined, li);
        bar.className = 'share';
        bar.style.width = `${100 * value(i) / most}%`;
      }
    }
    mark();
  }

  function show(name) {
    const m = measures[name];
    scale.replaceChildren();
    if (!m.get) {
      boxes.forEach((b, i) => paint(i, own[i]));
      legend(kinds);
    } else if (m.named) {
      colourNamed(m);
    } else {
      colourNumber(m);
    }
    fill(m);
  }

  // ---- One box.
  function detail(b) {
    const place = document.getElementById('detail');
    place.replaceChildren();
    if (!b) return;
    const dl = make('dl', undefined, place);
    const line = (k, v) => { if (v !== undefined && v !== null && v !== '') { make('dt', k, dl); make('dd', v, dl); } };
    line('layer', b.name);
    line('does', b.title);
    line('output', b.shape);
    line('parameters', b.params ? count(b.params) : undefined);
    line('MACs', b.macs ? count(b.macs) : undefined);
    line('weights', b.weights ? bytes(b.weights) : undefined);
    line('output size', b.output ? bytes(b.output) : undefined);
    line('precision', b.precision);
    if (data.us && b.macs !== undefined)
      line('time', b.us === undefined ? 'in the step of a layer beside it' : `${time(b.us)}, ${number.format(100 * b.us / data.us)} %`);
    line('speed', b.us > 0 && b.flops ? `${number.format(b.flops / b.us / 1000)} GFLOP/s` : undefined);
    line('kernel', b.kernel);
  }

  function mark() {
    for (const e of document.querySelectorAll('.chosen')) e.classList.remove('chosen');
    if (chosen < 0) return;
    for (const g of drawn[chosen]) g.classList.add('chosen');
    const li = list.querySelector(`li[data-i="${chosen}"]`);
    if (li) li.classList.add('chosen');
  }

  function choose(i, centre) {
    chosen = i;
    mark();
    detail(boxes[i]);
    if (centre && drawn[i] && drawn[i].length) look(drawn[i][drawn[i].length - 1].getBBox());
  }

  // ---- Moving: the viewBox is what is seen.
  const full = svg.viewBox.baseVal;
  const whole = {x: full.x, y: full.y, w: full.width, h: full.height};
  let seen = {...whole};
  const ratio = () => view.clientHeight / Math.max(view.clientWidth, 1);
  const apply = () => svg.setAttribute('viewBox', `${seen.x} ${seen.y} ${seen.w} ${seen.h}`);
  function fit() { // its width at first, so that text can be read; the rest is below
    const w = Math.min(Math.max(whole.w, 700), Math.max(view.clientWidth, 300) * 1.3);
    seen = {x: (whole.w - w) / 2, y: 0, w, h: w * ratio()};
    if (whole.w > w) seen.x = 0;
    apply();
  }
  function all() {
    const h = Math.max(whole.h, whole.w * ratio()), w = h / ratio();
    seen = {x: (whole.w - w) / 2, y: 0, w, h};
    apply();
  }
  function zoom(by, px, py) {
    const w = Math.min(Math.max(seen.w * by, 80), 40 * whole.w + 4000), h = w * ratio();
    seen = {x: seen.x + (seen.w - w) * px, y: seen.y + (seen.h - h) * py, w, h};
    apply();
  }
  // Paper has the whole picture.
  addEventListener('beforeprint', () => svg.setAttribute('viewBox', `${whole.x} ${whole.y} ${whole.w} ${whole.h}`));
  addEventListener('afterprint', apply);
  function look(b) {
    seen.x = b.x + b.width / 2 - seen.w / 2;
    seen.y = b.y + b.height / 2 - seen.h / 2;
    apply();
  }

  let from = null;
  view.addEventListener('pointerdown', (e) => {
    from = {x: e.clientX, y: e.clientY, seen: {...seen}, moved: false, target: e.target};
    view.setPointerCapture(e.pointerId);
  });
  view.addEventListener('pointermove', (e) => {
    if (!from) return;
    const dx = e.clientX - from.x, dy = e.clientY - from.y, k = seen.w / view.clientWidth;
    if (Math.abs(dx) + Math.abs(dy) > 4) { from.moved = true; view.classList.add('moving'); }
    if (!from.moved) return;
    seen.x = from.seen.x - dx * k;
    seen.y = from.seen.y - dy * k;
    apply();
  });
  view.addEventListener('pointerup', () => {
    if (from && !from.moved) {
      const g = from.target.closest('g[data-i]');
      choose(g ? Number(g.dataset.i) : -1, false);
    }
    from = null;
    view.classList.remove('moving');
  });
  view.addEventListener('wheel', (e) => {
    e.preventDefault();
    const r = view.getBoundingClientRect();
    zoom(Math.exp(e.deltaY * 0.0015), (e.clientX - r.left) / r.width, (e.clientY - r.top) / r.height);
  }, {passive: false});
  list.addEventListener('click', (e) => {
    const li = e.target.closest('li');
    if (li) choose(Number(li.dataset.i), true);
  });

  // ---- Controls.
  const controls = document.getElementById('controls');
  make('label', 'colour by', controls).htmlFor = 'measure';
  const select = make('select', undefined, controls);
  select.id = 'measure';
  for (const m of known) make('option', measures[m].label, select).value = m;
  select.addEventListener('change', () => show(select.value));
  const search = make('input', undefined, controls);
  search.type = 'search';
  search.placeholder = 'find a layer';
  search.setAttribute('aria-label', 'find a layer');
  search.addEventListener('input', () => {
    const word = search.value.toLowerCase();
    const fits = (b) => `${b.name} ${b.title}`.toLowerCase().includes(word);
    boxes.forEach((b, i) => drawn[i].forEach((g) => g.classList.toggle('faded', word !== '' && !fits(b))));
    const first = word ? boxes.findIndex(fits) : -1;
    if (first >= 0) choose(first, true);
  });
  for (const [text, about, act] of [['+', 'larger', () => zoom(0.7, 0.5, 0.5)], ['−', 'smaller', () => zoom(1.4, 0.5, 0.5)],
    ['all', 'the whole network', all], ['1:1', 'the beginning, to be read', fit]]) {
    const b = make('button', text, controls);
    b.title = about;
    b.addEventListener('click', act);
  }
  document.addEventListener('keydown', (e) => {
    if (e.target === search || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === '+') zoom(0.7, 0.5, 0.5);
    else if (e.key === '-') zoom(1.4, 0.5, 0.5);
    else if (e.key === '0') all();
    else if (e.key === 'Escape') choose(-1, false);
  });

  app.classList.add('live');
  svg.removeAttribute('width');
  svg.removeAttribute('height');
  window.addEventListener('resize', () => { seen.h = seen.w * ratio(); apply(); });
  fit();
  show(known[0]);
})();
