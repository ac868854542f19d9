// The live page: asks for the state every second while it is looked at, and draws what runs.  Text from
// the results is only ever set as text; figures come as elements that the program has escaped.
'use strict';
(() => {
  const at = (id) => document.getElementById(id);
  const {show} = edgewise;

  function element(tag, className, text) {
    const e = document.createElement(tag);
    if (className) e.className = className;
    if (text !== undefined) e.textContent = text;
    return e;
  }

  function span(seconds) {
    if (!Number.isFinite(seconds)) return '-';
    const s = Math.max(0, Math.round(seconds));
    if (s < 60) return `${s} s`;
    if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
    return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
  }

  // In the reader's own time zone; the store keeps UTC.
  const clock = new Intl.DateTimeFormat(undefined, {dateStyle: 'short', timeStyle: 'medium'});
  const local = (t) => (Number.isFinite(Date.parse(t)) ? clock.format(new Date(t)) : '');

  function facts(pairs) {
    const box = element('div', 'facts');
    for (const [name, value] of pairs) {
      const one = element('div');
      one.append(element('span', '', name), element('b', '', value));
      box.append(one);
    }
    return box;
  }

  // ---- Studies
  function study(s) {
    const card = element('article', 'box');
    const done = (s.done || 0) + (s.failed || 0) + (s.skipped || 0), all = Math.max(1, s.jobs || 0);
    card.append(element('h3', '', s.title || s.name));
    if (s.about) card.append(element('p', '', s.about.split('\n')[0]));
    const outer = element('div', 'bar-outer'), inner = element('div');
    outer.setAttribute('role', 'progressbar');
    outer.setAttribute('aria-valuenow', String(Math.round(100 * done / all)));
    inner.style.width = `${100 * Math.min(1, done / all)}%`;
    outer.append(inner);
    card.append(outer);
    const state = s.alive ? 'running' : done >= all ? 'complete' : 'not running';
    const list = [['jobs', `${done} of ${s.jobs}`], ['state', state]];
    if (s.failed) list.push(['failed', String(s.failed)]);
    if (s.skipped) list.push(['skipped', String(s.skipped)]);
    if (s.alive) list.push(['left', span(s.left_s)], ['now', s.now || '-']);
    if (s.quick) list.push(['size', 'quick']);
    card.append(facts(list));
    return card;
  }

  function studies(list) {
    const box = at('studies');
    box.replaceChildren(...list.map(study));
    if (!list.length) box.append(element('p', '', 'None yet.'));
  }

  // ---- What runs: figures made of its epochs, drawn as those of the report are.
  const line = (name, colour, right, points) =>
    ({name, shape: 'line', colour, right, front: false, quality: 'measured', points});

  function points(epochs, key) {
    return epochs.map((e, x) => ({x, y: e[key]})).filter((p) => Number.isFinite(p.y));
  }

  function timeFigure(run) {
    const parts = [['compute', 'compute_s'], ['stall', 'stall_s'], ['overhead', 'overhead_s'], ['other ranks', 'comm_s']];
    return {
      id: `time-${run.uid}`, kind: 'stack', title: 'time of each epoch', x: {label: 'epoch', unit: ''},
      left: {label: 'time', unit: 's'}, categories: run.epochs.map((e) => String(e.epoch)), rows: [], bands: [],
      series: parts.map(([name, key], colour) => ({name, shape: 'bar', colour, right: false, front: false,
        quality: run.quality || 'measured', points: points(run.epochs, key)})).filter((s) => s.points.length),
    };
  }

  function scoreFigure(run) {
    return {
      id: `score-${run.uid}`, kind: 'lines', title: 'accuracy and loss', x: {label: 'epoch', unit: ''},
      left: {label: 'accuracy', unit: ''}, right: {label: 'loss', unit: ''},
      categories: run.epochs.map((e) => String(e.epoch)), rows: [], bands: [],
      series: [line('accuracy', 2, false, points(run.epochs, 'accuracy')),
        line('accuracy in training', 0, false, points(run.epochs, 'train_accuracy')),
        line('loss', 1, true, points(run.epochs, 'loss'))].filter((s) => s.points.length),
    };
  }

  function chartBox(figure) {
    const box = element('div', 'box'), chart = element('div', 'chart');
    chart.dataset.figure = figure.id;
    box.append(element('h3', '', figure.title), chart);
    return box;
  }

  // Options that tell runs apart; the rest is in `edgewise results`.
  const told = ['batch', 'optimizer', 'lr', 'schedule', 'augment', 'workers', 'threads', 'device', 'precision', 'width', 'seed'];

  function options(run) {
    try { return JSON.parse(run.options) || {}; } catch (e) { return {}; }
  }

  function settings(run) {
    const all = options(run);
    return told.filter((k) => all[k] !== undefined && all[k] !== null && all[k] !== '')
      .map((k) => `${k} ${all[k]}`).join(', ');
  }

  // How far the epoch under way is, by what the last one took; nothing in the store says more.
  function within(run, last, seconds) {
    const took = (last.wall_s || 0) + (last.eval_s || 0);
    if (!(took > 0) || !Number.isFinite(last.start_s)) return '';
    const share = (seconds - last.start_s - took) / took;
    return share >= 0 ? `, about ${Math.min(99, Math.round(100 * share))} %` : '';
  }

  function runFacts(run, now) {
    const last = run.epochs[run.epochs.length - 1] || {}, wanted = options(run).epochs;
    const since = (Date.parse(now) - Date.parse(run.started)) / 1000, done = run.epochs.length;
    const of = wanted > 0 ? ` of ${wanted}` : '';
    const list = run.machine ? [['machine', run.machine]] : [];
    if (run.status === 'running') {
      list.push(['since', span(since)], ['epoch', `${done + 1 > wanted ? wanted : done + 1}${of}${within(run, last, since)}`]);
      if (wanted > done && done > 0)
        list.push(['left, about', span((wanted - done) * ((last.wall_s || 0) + (last.eval_s || 0)))]);
    } else {
      list.push(['began', local(run.started)], ['took', span(run.wall_s)], ['epochs', `${done}${of}`]);
    }
    const add = (name, v, unit) => { if (Number.isFinite(v)) list.push([name, `${show(v)} ${unit}`]); };
    add('last epoch', last.wall_s, 's');
    add('speed', last.images_per_s, 'images/s');
    add('accuracy', last.accuracy, '');
    add('power', last.power_w, 'W');
    return facts(list);
  }

  // Charts stay where they are while a run goes on: only their data change.
  function runBox(run) {
    const box = element('div');
    box.dataset.run = run.uid;
    const head = element('div', 'box');
    head.append(element('h3', '', [...new Set([run.study, run.label, run.command, run.network, run.dataset])].filter(Boolean).join(' · ')),
      element('p', 'run-settings', settings(run)), element('div', 'run-facts'));
    const charts = element('div', 'grid2');
    charts.style.marginTop = '16px';
    box.append(head, charts);
    return box;
  }

  function running(all, now) {
    // The last run with epochs stays when it is done.
    const root = at('running'), list = all.filter((r) => r.status !== 'running' || r.alive !== false);
    at('running-title').textContent = list.length && list.every((r) => r.status !== 'running') ? 'The last run' : 'Running now';
    root.querySelectorAll(':scope > p').forEach((e) => e.remove());
    for (const old of [...root.children])
      if (!list.some((r) => r.uid === old.dataset.run)) old.remove();
    for (const run of list) {
      let box = [...root.children].find((e) => e.dataset.run === run.uid);
      if (!box) { box = runBox(run); root.append(box); }
      box.querySelector('.run-facts').replaceChildren(runFacts(run, now));
      const figures = [timeFigure(run), scoreFigure(run)].filter((f) => f.series.some((s) => s.points.length));
      const charts = box.querySelector('.grid2');
      for (const f of figures)
        if (![...charts.querySelectorAll('.chart')].some((c) => c.dataset.figure === f.id)) charts.append(chartBox(f));
      if (box.dataset.epochs !== String(run.epochs.length)) edgewise.drawAll(box, figures);
      box.dataset.epochs = String(run.epochs.length);
    }
    if (!list.length) root.replaceChildren(element('p', '', 'Nothing.'));
  }

  // ---- Video: the last frame, its answer as bars, and answers and latencies over time.
  const percent = (v) => (Number.isFinite(v) ? `${(100 * v).toFixed(1)} %` : '-');
  const ms = (v) => (Number.isFinite(v) ? `${v.toFixed(1)} ms` : '-');

  function videoFacts(v, age) {
    const state = v.ended ? 'ended' : age > 5 ? `no frame for ${span(age)}` : 'running';
    const list = [['state', state], ['frames', String(v.frames)], ['dropped', String(v.dropped)],
      ['frames/s', show(v.frames / v.wall_s)], ['latency p50', ms(v.median_ms)], ['latency p99', ms(v.p99_ms)],
      [`over ${ms(v.budget_ms)}`, `${v.late} of ${v.answers}`], ['decoding', percent(v.decode_share)],
      ['network', percent(v.network_share)]];
    return facts(list);
  }

  function videoBars(answer) {
    const box = element('div', 'video-bars');
    for (const {label, probability} of answer ? answer.top : []) {
      const outer = element('div', 'bar-outer'), inner = element('div');
      inner.style.width = `${100 * Math.min(1, Math.max(0, probability))}%`;
      outer.append(inner);
      const row = element('div');
      row.append(element('span', '', label), element('b', '', percent(probability)), outer);
      box.append(row);
    }
    if (answer && Number.isFinite(answer.error)) box.append(element('p', '', `error ${show(answer.error)}`));
    return box;
  }

  // The classes that were ever best, at most eight, each a line of its probability.
  function answersFigure(list) {
    const best = [...new Set(list.map((a) => (a.top[0] || {}).label).filter(Boolean))].slice(-8);
    const at = (a, label) => (a.top.find((c) => c.label === label) || {probability: 0}).probability;
    const series = best.map((label, i) => line(label, i, false, list.map((a, x) => ({x, y: at(a, label)}))));
    const errors = list.map((a, x) => ({x, y: a.error})).filter((p) => Number.isFinite(p.y));
    if (errors.length) series.push(line('error', 1, false, errors));
    return {id: 'video-answers', kind: 'lines', title: 'answers over time', x: {label: 'time', unit: 's'},
      left: {label: errors.length ? 'error' : 'probability', unit: ''}, categories: list.map((a) => show(a.time_s)),
      rows: [], bands: [], series};
  }

  function latencyFigure(list) {
    return {id: 'video-latency', kind: 'lines', title: 'from frame to answer', x: {label: 'time', unit: 's'},
      left: {label: 'latency', unit: 'ms'}, categories: list.map((a) => show(a.time_s)), rows: [], bands: [],
      series: [line('latency', 0, false, list.map((a, x) => ({x, y: a.latency_ms})))]};
  }

  function videoBox() {
    const box = element('div'), head = element('div', 'box video-now'), charts = element('div', 'grid2');
    const picture = element('img', 'video-frame'), side = element('div');
    picture.alt = 'the last frame';
    side.append(element('h3'), element('div', 'video-answer'), element('div', 'video-facts'));
    head.append(picture, side);
    charts.style.marginTop = '16px';
    charts.append(chartBox({id: 'video-answers', title: 'answers over time'}),
      chartBox({id: 'video-latency', title: 'from frame to answer'}));
    box.append(head, charts);
    return box;
  }

  function video({age_s: age, video: v}) {
    const root = at('video-box');
    at('video').hidden = !v;
    if (!v) return;
    if (!root.firstChild) root.append(videoBox());
    const list = v.answers_over_time, last = list[list.length - 1];
    if (v.picture) root.querySelector('.video-frame').src = v.picture;
    root.querySelector('h3').textContent = `${v.network} on ${v.source}`;
    root.querySelector('.video-answer').replaceChildren(videoBars(last));
    root.querySelector('.video-facts').replaceChildren(videoFacts(v, age));
    const drawn = `${v.answers}/${list.length ? last.frame : ''}`;
    if (window.echarts && root.dataset.drawn !== drawn) edgewise.drawAll(root, [answersFigure(list), latencyFigure(list)]);
    root.dataset.drawn = drawn;
  }

  async function lookAtVideo() {
    let next = 2000;
    try {
      const answer = await fetch('video.json');
      const state = answer.ok ? await answer.json() : {};
      video(state);
      if (state.video && !state.video.ended) next = 250;
    } catch (e) {
      next = 2000; // look() says so
    }
    setTimeout(lookAtVideo, document.hidden ? 5000 : next);
  }

  // ---- What happened
  function log(list) {
    const several = new Set(list.map((r) => r.machine)).size > 1;
    at('log').textContent = list.map((r) => {
      const what = [...new Set([r.study, r.label, r.network])].filter(Boolean).join(' · ');
      const how = r.status === 'done' && Number.isFinite(r.wall_s) ? `done in ${span(r.wall_s)}` : r.status;
      const where = several && r.machine ? ` on ${r.machine}` : '';
      return `${local(r.started)}  ${how.padEnd(20)} ${what}${where}${r.reason ? `: ${r.reason}` : ''}${r.noise ? ` (noisy: ${r.noise})` : ''}`;
    }).join('\n') || 'Nothing yet.';
  }

  // ---- Figures so far
  let shown = '', asked = 0;
  async function figures(counts) {
    const state = JSON.stringify(counts.filter((c) => c.status !== 'running'));
    if (state === shown || Date.now() - asked < 5000) return;
    asked = Date.now();
    const answer = await fetch('figures');
    if (!answer.ok) return;
    const parsed = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const data = parsed.getElementById('figures');
    const list = data ? JSON.parse(data.textContent) : [];
    if (data) data.remove();
    const open = new Set([...document.querySelectorAll('#figures figure')].filter((f) => f.querySelector('details[open]')).map((f) => f.id));
    at('figures').replaceChildren(...parsed.body.children);
    for (const f of document.querySelectorAll('#figures figure')) {
      const details = f.querySelector('details');
      if (details) details.open = open.has(f.id);
    }
    if (window.echarts) edgewise.drawAll(at('figures'), list);
    document.documentElement.dataset.drawn = String(edgewise.drawn.size);
    shown = state;
  }

  async function look() {
    try {
      const answer = await fetch('state.json');
      if (!answer.ok) throw new Error((await answer.text()).trim());
      const state = await answer.json();
      at('link').textContent = '';
      studies(state.studies);
      if (window.echarts || !state.running.length) running(state.running, state.now);
      log(state.log);
      await figures(state.counts);
    } catch (e) {
      // Video needs no results.
      at('link').textContent = at('video').hidden ? `No answer: ${e.message}. Asking again.` : '';
    }
    setTimeout(look, document.hidden ? 5000 : 1000);
  }

  edgewise.watch();
  look();
  lookAtVideo();
})();
