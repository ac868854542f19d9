// Draws the figures of a page with ECharts.  The data stand in #figures; each chart replaces the still
// picture on the screen, which stays for paper.  Text from the results is only ever set as text.
'use strict';
const edgewise = (() => {
  const number = new Intl.NumberFormat('en', {maximumSignificantDigits: 4});
  const show = (v) => (Number.isFinite(v) ? number.format(v) : '');
  const short = new Intl.NumberFormat('en', {notation: 'compact', maximumSignificantDigits: 3});
  const tick = (v) => (Math.abs(v) >= 1e5 ? short.format(v) : show(v)); // at an axis, where room is scarce
  const named = (a) => (a.unit ? `${a.label} [${a.unit}]` : a.label);
  const real = (s) => s.quality === 'measured' || s.quality === 'derived';

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const get = (name) => style.getPropertyValue(name).trim();
    return {
      series: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => get(`--c${i}`)),
      ink: get('--ink'), soft: get('--soft'), line: get('--line'), paper: get('--paper'), shade: get('--shade'),
    };
  }

  // Mixes two colours written as #rrggbb.
  function mix(a, b, share) {
    const part = (text, i) => parseInt(text.slice(1 + 2 * i, 3 + 2 * i), 16);
    const both = [0, 1, 2].map((i) => Math.round(part(a, i) + share * (part(b, i) - part(a, i))));
    return `#${both.map((v) => v.toString(16).padStart(2, '0')).join('')}`;
  }

  // Eight colours; the ninth series begins them anew, darker, the seventeenth lighter, and so on (as in style.css).
  function colourOf(c, s) {
    const base = c.series[s.colour % 8], turn = Math.floor(s.colour / 8) % 5;
    return turn ? mix(base, turn % 2 ? c.ink : c.paper, turn < 3 ? 0.45 : 0.7) : base;
  }

  // ---- Hovering: a small table, made of nodes so that no text becomes markup.
  function tip(title, rows) {
    const box = document.createElement('div');
    const head = document.createElement('b');
    head.textContent = title;
    box.append(head);
    for (const row of rows) {
      const line = document.createElement('div');
      line.textContent = row;
      box.append(line);
    }
    return box;
  }

  function pointRows(f, s, p) {
    const axis = s.right ? f.right : f.left;
    const rows = [];
    if (f.kind === 'points') rows.push(`${f.x.label}: ${show(p.x)} ${f.x.unit}`);
    rows.push(`${axis.label}: ${show(p.y)} ${axis.unit}` +
      (Number.isFinite(p.high) ? ` ± ${show(p.high - p.y)}` : ''));
    if (p.box) rows.push(`lowest ${show(p.box[0])}, median ${show(p.box[2])}, highest ${show(p.box[4])}`);
    if (p.runs) rows.push(`${p.runs} run${p.runs > 1 ? 's' : ''}${p.noisy ? `, ${p.noisy} noisy` : ''}`);
    rows.push(s.quality);
    return rows;
  }

  // ---- Looks: what was not measured here is hatched, dashed or hollow.
  function fill(s, c) {
    const colour = colourOf(c, s);
    if (s.quality === 'published')
      return {color: 'transparent', borderColor: colour, borderType: 'dotted', borderWidth: 2};
    if (real(s)) return {color: colour};
    return {color: colour, opacity: 0.75, decal: {symbol: 'rect', color: c.paper, dashArrayX: [1, 0],
      dashArrayY: [3, 4], rotation: Math.PI / 4}};
  }

  const stroke = (s) => (s.quality === 'published' ? 'dotted' : real(s) ? 'solid' : 'dashed');

  // ---- Parts of figures.
  function whiskers(f, s, c, place, bars) {
    const ends = s.points.filter((p) => Number.isFinite(p.low) && p.high > p.low && (p.low > 0 || !f.log));
    if (!ends.length) return [];
    return [{
      type: 'custom', name: s.name, silent: true, clip: true, z: 5, yAxisIndex: s.right ? 1 : 0,
      data: ends.map((p) => [p.x, p.low, p.high]), encode: {x: 0, y: [1, 2]}, tooltip: {show: false},
      renderItem(_, api) {
        const shift = bars ? api.barLayout({count: bars, barMaxWidth: 48, barCategoryGap: '24%'})[place].offsetCenter : 0;
        const low = api.coord([api.value(0), api.value(1)]), high = api.coord([api.value(0), api.value(2)]);
        const x = low[0] + shift;
        const range = f.kind === 'trace'; // of a stretch of time: its colour, no caps
        const line = (x1, y1, x2, y2) => ({type: 'line', shape: {x1, y1, x2, y2},
          style: {stroke: range ? colourOf(c, s) : c.ink, lineWidth: range ? 2 : 1, opacity: range ? 0.4 : 0.75}});
        if (range) return {type: 'group', children: [line(x, low[1], x, high[1])]};
        return {type: 'group', children: [line(x, low[1], x, high[1]), line(x - 3, low[1], x + 3, low[1]),
          line(x - 3, high[1], x + 3, high[1])]};
      },
    }];
  }

  const datum = (s, p, value, more) => ({value, point: p, series: s, ...more});

  function bars(f, c) {
    const stacked = f.kind === 'stack';
    const count = f.series.length;
    const out = f.series.map((s) => ({
      type: 'bar', name: s.name, stack: stacked ? 'all' : undefined, barMaxWidth: stacked ? 60 : 48,
      barCategoryGap: '24%', barGap: 0, itemStyle: fill(s, c), emphasis: {focus: stacked ? 'none' : 'series'},
      data: s.points.map((p) => datum(s, p, [p.x, p.y])),
    }));
    if (!stacked) f.series.forEach((s, i) => out.push(...whiskers(f, s, c, i, count)));
    return out;
  }

  // Series differ by shape too, for those who cannot tell the colours apart; published ones are hollow.
  const shapes = ['Circle', 'Rect', 'Triangle', 'Diamond'];
  function shapeOf(s, hollow) {
    const shape = shapes[(s.colour || 0) % shapes.length];
    return hollow ? `empty${shape}` : shape.toLowerCase();
  }

  function lines(f, c) {
    const out = [];
    for (const s of f.series) {
      const colour = s.front ? c.soft : colourOf(c, s);
      out.push({
        type: 'line', name: s.name, yAxisIndex: s.right ? 1 : 0, symbolSize: s.right ? 5 : 7,
        symbol: shapeOf(s, s.quality === 'published'),
        showSymbol: s.points.length <= 60, showAllSymbol: true, itemStyle: {color: colour},
        lineStyle: {color: colour, width: 2, type: s.right && s.quality !== 'published' ? 'dashed' : stroke(s)},
        data: s.points.map((p) => datum(s, p, [p.x, p.y])),
      });
      out.push(...whiskers(f, s, c, 0, 0));
    }
    return out;
  }

  function dots(f, c, width) {
    const colour = (s) => (s.front ? c.soft : colourOf(c, s));
    // At the right of its dot; at the left where it would leave the picture.
    const beside = ({rect, labelRect}) => ({hideOverlap: true,
      dx: labelRect.x + labelRect.width > width ? -labelRect.width - rect.width - 10 : 0});
    return f.series.flatMap((s) => (s.front || s.trend ? [{
      type: 'line', name: s.name, symbol: 'none', silent: true, z: 1, itemStyle: {color: colour(s)},
      lineStyle: {color: colour(s), type: s.quality === 'published' ? 'dotted' : 'dashed',
        width: s.quality === 'published' ? 3 : 1.5, opacity: s.trend ? 0.7 : 1},
      data: s.points.map((p) => [p.x, p.y]),
    }] : [{
      type: 'scatter', name: s.name, symbol: shapeOf(s), symbolSize: 12, itemStyle: fill(s, c),
      label: {show: true, position: 'right', color: c.soft, fontSize: 11, formatter: (d) => d.data.point.label || ''},
      labelLayout: beside,
      data: s.points.map((p) => datum(s, p, [p.x, p.y])),
    }, ...whiskers(f, s, c, 0, 0)]));
  }

  // The density of values, for the outline behind a box: Gaussian kernel, Silverman's width.
  function density(values, steps) {
    const n = values.length, mean = values.reduce((a, b) => a + b, 0) / n;
    const sd = Math.sqrt(values.reduce((a, b) => a + (b - mean) ** 2, 0) / (n - 1));
    const h = 1.06 * sd * n ** -0.2;
    if (!(h > 0)) return [];
    const from = values[0], to = values[n - 1], out = [];
    for (let i = 0; i <= steps; i++) {
      const y = from + (to - from) * i / steps;
      out.push([y, values.reduce((a, v) => a + Math.exp(-0.5 * ((y - v) / h) ** 2), 0)]);
    }
    const most = Math.max(...out.map((p) => p[1]));
    return out.map((p) => [p[0], p[1] / most]);
  }

  function boxParts(api, p, x, width, colour, c) {
    const y = (v) => api.coord([0, v])[1];
    const children = [];
    if (p.values.length >= 8) {
      const shape = density(p.values, 40);
      const side = (sign) => shape.map(([v, d]) => [x + sign * d * width * 0.5, y(v)]);
      children.push({type: 'polygon', shape: {points: [...side(-1), ...side(1).reverse()]},
        style: {fill: colour, opacity: 0.16}});
    }
    const half = width * 0.22, [low, q1, median, q3, high] = p.box.map(y);
    const line = (x1, y1, x2, y2, w) => ({type: 'line', shape: {x1, y1, x2, y2}, style: {stroke: c.ink, lineWidth: w}});
    children.push(line(x, low, x, q1, 1), line(x, q3, x, high, 1), {
      type: 'rect', shape: {x: x - half, y: q3, width: 2 * half, height: Math.max(q1 - q3, 1)},
      style: {fill: colour, stroke: colour, opacity: 0.6},
    }, line(x - half, median, x + half, median, 2));
    p.values.forEach((v, i) => children.push({type: 'circle', style: {fill: c.ink, opacity: 0.45},
      shape: {cx: x + (i % 5 - 2) * half * 0.2, cy: y(v), r: 2}}));
    return {type: 'group', children};
  }

  function boxes(f, c) {
    const count = f.series.length;
    return f.series.map((s, place) => ({
      type: 'custom', name: s.name, itemStyle: {color: colourOf(c, s)},
      data: s.points.map((p) => datum(s, p, [p.x, p.box[0], p.box[4]])), encode: {x: 0, y: [1, 2]},
      renderItem(params, api) {
        const layout = api.barLayout({count, barMaxWidth: 90, barCategoryGap: '20%'})[place];
        const x = api.coord([api.value(0), 0])[0] + layout.offsetCenter;
        return boxParts(api, s.points[params.dataIndex], x, layout.width, colourOf(c, s), c);
      },
    }));
  }

  function trace(f, c) {
    const out = lines(f, c);
    if (out.length && f.bands.length) {
      const end = f.bands[f.bands.length - 1].to;
      out[0].markArea = {
        silent: true, label: {color: c.soft, fontSize: 10, position: 'insideBottom'},
        data: f.bands.map((b, i) => [{xAxis: b.from, name: b.to - b.from > 0.09 * end ? b.name : '',
          itemStyle: {color: i % 2 ? 'transparent' : c.shade, opacity: 0.8}}, {xAxis: b.to}]),
      };
    }
    for (const s of out) if (s.lineStyle) { s.showSymbol = s.yAxisIndex === 1; s.lineStyle.width = 1.5; }
    return out;
  }

  function matrix(f, c) {
    const [s] = f.series, most = Math.max(1, ...s.points.map((p) => p.y));
    return [{
      type: 'heatmap', name: s.name, itemStyle: {borderColor: c.paper, borderWidth: 1},
      label: {show: f.rows.length <= 20, formatter: (d) => (d.value[2] ? show(d.value[2]) : '')},
      data: s.points.map((p) => datum(s, p, [p.x, p.low, p.y],
        {label: {color: p.y > most / 2 ? c.paper : c.ink}})),
    }];
  }

  const kinds = {stack: bars, bars, lines, points: dots, boxes, trace, matrix};

  // ---- The whole.
  function axis(a, c, more) {
    return {
      name: named(a), nameTextStyle: {color: c.ink, fontSize: 12}, axisLine: {lineStyle: {color: c.soft}},
      axisLabel: {color: c.soft, fontSize: 11, hideOverlap: true}, splitLine: {lineStyle: {color: c.line}}, ...more,
    };
  }

  function yAxes(f, c, narrow) {
    if (f.kind === 'matrix') {
      return [axis(f.left, c, {type: 'category', data: f.rows, inverse: true, nameLocation: 'start',
        nameTextStyle: {color: c.ink, align: 'left'}})];
    }
    const scale = f.kind === 'points' || f.kind === 'boxes';
    const at = (align) => ({color: c.ink, fontSize: narrow ? 11 : 12, align});
    const out = [axis(f.left, c, {type: 'value', scale, nameTextStyle: at('left')})];
    out[0].axisLabel.formatter = tick;
    if (f.kind === 'bars' && !f.log) { // a deviation of many times the values would leave nothing of the bars
      const points = f.series.filter((s) => !s.right).flatMap((s) => s.points);
      const top = Math.max(...points.map((p) => p.y)), reach = Math.max(...points.map((p) => p.high || 0));
      const unit = 10 ** Math.floor(Math.log10(2 * top));
      if (top > 0 && reach > 4 * top) out[0].max = Math.ceil(2 * top / unit) * unit;
    }
    if (f.log) {
      const least = Math.min(...f.series.flatMap((s) => s.points.map((p) => p.y)).filter((y) => y > 0));
      const foot = 10 ** Math.floor(Math.log10(least) - 0.1); // the least bar has a height too
      Object.assign(out[0], {type: 'log', min: foot, startValue: foot}); // bars stand on it, not on 1
    }
    if (f.right) {
      out.push(axis(f.right, c, {type: 'value', nameTextStyle: at('right'), splitLine: {show: false}}));
      if (narrow) out[1].name = `${f.right.label.slice(0, 18)}${f.right.unit ? ` [${f.right.unit}]` : ''}`;
    }
    return out;
  }

  function xAxis(f, c, width) {
    const lines = Math.max(1, ...f.categories.map((t) => t.split('\n').length));
    if (f.kind === 'points' || f.kind === 'trace') {
      return axis(f.x, c, {type: f.log_x ? 'log' : 'value', scale: true, nameLocation: 'middle', nameGap: 28,
        splitLine: {show: false}, min: f.kind === 'trace' ? 0 : undefined,
        max: f.kind === 'trace' ? 'dataMax' : undefined,
        axisLabel: {color: c.soft, fontSize: 11, hideOverlap: true, formatter: tick, showMaxLabel: f.kind !== 'trace'}});
    }
    const room = width / Math.max(1, f.categories.length) - 8;
    const long = Math.max(...f.categories.flatMap((t) => t.split('\n')).map((t) => t.length)) * 6.2;
    const turn = long > room && f.categories.length <= 24;
    const most = turn ? 130 : room, wide = Math.min(long, most);
    const gap = turn ? wide * 0.7 + 14 * lines : 14 + 15 * lines;
    return axis(f.x, c, {type: 'category', data: f.categories, nameLocation: 'middle', nameGap: gap,
      axisTick: {alignWithLabel: true},
      axisLabel: {color: c.soft, fontSize: 11, interval: f.categories.length <= 24 ? 0 : 'auto',
        rotate: turn ? 40 : 0, ...(turn && long > most ? {width: most, overflow: 'truncate', formatter: ownPart(f.categories)} : {}), lineHeight: 14}});
  }

  // Long names at an axis: without the words that all begin with.
  function ownPart(names) {
    const [first = ''] = names;
    let same = 0;
    while (same < first.length && names.every((n) => n[same] === first[same] && n[same] !== '\n')) same++;
    const from = first.slice(0, same).lastIndexOf(' ') + 1;
    return (name) => (names.length > 1 && from > 8 ? `…${name.slice(from)}` : name);
  }

  // Long names in a legend: their beginning, what tells them apart, their end.
  function shortener(names, most) {
    const long = names.filter((n) => n.length > most);
    let a = 0, b = 0;
    const [first = ''] = long;
    const several = long.length > 1; // one long name has nothing in common with others
    while (several && a < first.length && long.every((n) => n[a] === first[a])) a++;
    while (several && b < first.length - a && long.every((n) => n.at(-1 - b) === first.at(-1 - b))) b++;
    return (name) => {
      if (name.length <= most) return name;
      if (!several || most < 42) return `${name.slice(0, most - 13)}…${name.slice(-12)}`;
      const from = Math.max(8, a - 4), own = name.slice(from, Math.max(from, name.length - b)).slice(0, 16);
      return `${name.slice(0, 8)}${from > 8 ? '…' : ''}${own}…${name.slice(own.length - 24)}`;
    };
  }

  // How many lines of a legend the names take; 0: more than a picture has room for, so that they are paged.
  function legendLines(names, width) {
    let lines = 1, x = 0;
    for (const name of names) {
      const w = 36 + Math.min(6.6 * name.length, 290, width / 2);
      if (x > 0 && x + w > width) { lines++; x = 0; }
      x += w;
    }
    return lines <= 3 ? lines : 0;
  }

  function option(f, width) {
    const c = colours(), narrow = width < 480;
    const series = kinds[f.kind](f, c, width);
    const names = [...new Set(f.series.map((s) => s.name))];
    const legend = names.length > 1 && f.kind !== 'matrix';
    const brief = shortener(names, Math.floor(Math.min(42, width / 2 / 6.8))), lines = legendLines(names.map(brief), width);
    const out = {
      animation: false, textStyle: {fontFamily: getComputedStyle(document.body).fontFamily},
      aria: {enabled: true, label: {description: f.title}}, series,
      grid: {left: 8, right: f.right ? 8 : 16, top: 46, bottom: legend ? 38 + 18 * (lines || 1) : 30, containLabel: true},
      xAxis: xAxis(f, c, width - 90), yAxis: yAxes(f, c, narrow),
      legend: {show: legend, type: lines ? 'plain' : 'scroll', bottom: 0, left: 'center', data: names, itemWidth: 16, itemHeight: 10,
        textStyle: {color: c.ink, fontSize: 12, width: Math.min(290, width / 2), overflow: 'truncate'},
        formatter: brief,
        tooltip: {show: true, formatter: (d) => tip(d.name, [])}, pageTextStyle: {color: c.soft}},
      toolbox: {right: 0, top: 2, padding: 0, itemSize: 12, iconStyle: {borderColor: c.soft},
        feature: {dataZoom: {yAxisIndex: false, title: {zoom: 'zoom', back: 'back'}}, restore: {title: 'all'}}},
      dataZoom: [{type: 'inside', zoomOnMouseWheel: 'ctrl', moveOnMouseWheel: false}],
      tooltip: {
        trigger: 'item', confine: true, backgroundColor: c.paper, borderColor: c.line,
        textStyle: {color: c.ink, fontSize: 12},
        formatter(d) {
          const {point: p, series: s} = d.data;
          if (!p) return '';
          if (f.kind === 'matrix')
            return tip(`${show(p.y)} of class ${f.rows[p.low]}`, [`predicted class ${f.categories[p.x]}`]);
          const at = p.label || f.categories[p.x] || `${show(p.x)} ${f.x.unit}`;
          return tip(`${s.name}: ${at.replace('\n', ', ')}`, pointRows(f, s, p));
        },
      },
    };
    if (f.kind === 'trace') out.tooltip = {...out.tooltip, trigger: 'axis', formatter: (list) =>
      tip(`${show(list[0].value[0])} s`, list.map((d) =>
        `${d.seriesName}: ${show(d.value[1])} ${(d.data.series.right ? f.right : f.left).unit}`))};
    if (f.kind === 'matrix') {
      out.visualMap = {show: false, min: 0, max: Math.max(1, ...f.series[0].points.map((p) => p.y)),
        inRange: {color: [c.shade, c.series[0]]}};
      delete out.dataZoom;
      out.toolbox.show = false;
    }
    return out;
  }

  const drawn = new Map();

  function draw(place, f) {
    place.classList.add('drawn');
    let live = place.querySelector('.live');
    if (!live) {
      live = document.createElement('div');
      live.className = 'live';
      place.append(live);
    }
    let chart = drawn.get(f.id)?.chart;
    if (chart && drawn.get(f.id).live !== live) { // its place was made anew
      chart.dispose();
      chart = null;
    }
    chart = chart || echarts.init(live, null, {renderer: 'svg'});
    drawn.set(f.id, {chart, live, f});
    chart.setOption(option(f, live.clientWidth), true);
  }

  const placeOf = (root, f) => [...root.querySelectorAll('[data-figure]')].find((e) => e.dataset.figure === f.id);

  function drawAll(root, figures) {
    for (const f of figures) {
      const place = placeOf(root, f);
      if (place) draw(place, f);
    }
  }

  // First what can be seen, then the others whenever there is nothing else to do.
  async function drawPage(figures) {
    const pause = () => new Promise((done) => {
      if (window.requestIdleCallback) requestIdleCallback(done, {timeout: 100}); else setTimeout(done);
    });
    const seen = new Set(figures.filter((f) => placeOf(document, f)?.getBoundingClientRect().top < 1.5 * innerHeight));
    drawAll(document, [...seen]);
    document.documentElement.dataset.ready = String(drawn.size);
    for (const f of figures) {
      if (seen.has(f)) continue;
      await pause();
      drawAll(document, [f]);
    }
  }

  function again() {
    for (const [id, {chart, live, f}] of drawn) {
      if (!live.isConnected) {
        chart.dispose();
        drawn.delete(id);
        continue;
      }
      chart.resize();
      chart.setOption(option(f, live.clientWidth), true);
    }
  }

  function watch() {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
    let timer = 0;
    addEventListener('resize', () => { clearTimeout(timer); timer = setTimeout(again, 150); });
    addEventListener('beforeprint', () => document.querySelectorAll('details').forEach((d) => { d.open = true; }));
  }

  // The library and the figures are in the page, packed; an old browser that cannot unpack them keeps the still pictures.
  async function unpack(id) {
    const text = atob(document.getElementById(id).textContent), bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i); // ten times as fast as Uint8Array.from
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Response(stream).text();
  }

  function library(text) {
    const script = document.createElement('script');
    script.textContent = text;
    document.head.append(script);
  }

  // All figures; those of a page that has them packed bring the links' CSV along.
  async function read() {
    const plain = document.getElementById('figures');
    if (plain) return JSON.parse(plain.textContent);
    const {figures, csv} = JSON.parse(await unpack('packed'));
    for (const link of document.querySelectorAll('a.csv:not([href])')) {
      const {id} = link.closest('figure');
      link.download = `${id}.csv`;
      link.href = `data:text/csv;charset=utf-8,${encodeURIComponent(csv[id])}`;
    }
    return figures;
  }

  async function start() {
    const there = (id) => document.getElementById(id);
    if (!there('library') || !(there('figures') || there('packed')) || typeof DecompressionStream !== 'function') return;
    const [figures, text] = await Promise.all([read(), unpack('library')]);
    library(text);
    watch();
    await drawPage(figures);
    document.documentElement.dataset.drawn = String(drawn.size);
  }

  return {start, read, drawAll, watch, draw, drawn, show};
})();
edgewise.start();
