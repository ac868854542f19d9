// Tests the report, the live page and the page of a network in a browser: charts have as many marks as there are values,
// no error is logged, nothing is fetched from other servers, and no name from the results is executed as script.
// usage: node look.mjs BROWSER REPORT HOSTILE STILL LIVE-URL GRAPH PICTURES
import {Browser} from './browser.mjs';

const [program, report, hostile, still, live, graph, pictures] = process.argv.slice(2);
let failed = 0;

function verdict(name, problems) {
  for (const p of problems) console.log(`  ${p}`);
  console.log(`${problems.length ? 'FAIL' : 'ok'} ${name}`);
  failed += problems.length > 0;
}

async function check(name, test) {
  try {
    verdict(name, (await test()).filter(Boolean));
  } catch (e) {
    verdict(name, [e.message]);
  }
}

const expect = (is, want, what) => (is === want ? '' : `${what}: ${is}, expected ${want}`);
const drawn = 'document.documentElement.dataset.drawn';

// Runs in the page: returns the errors in its charts' marks.  A mark is a graphic element of the charting library that
// has an SVG element with a size.
const marks = `(() => {
  const wrong = [];
  let all = 0;
  for (const [id, {chart, f}] of edgewise.drawn) {
    const want = f.series.reduce((n, s) => n + s.points.length, 0);
    let got = 0;
    for (const s of chart.getModel().getSeries()) {
      const silent = s.get('silent'), data = s.getData();
      if (s.subType === 'line' && (silent || !s.get('showSymbol'))) { got += data.count(); continue; }
      if (s.subType === 'custom' && silent) continue;
      for (let i = 0; i < data.count(); i++) {
        const rect = data.getItemGraphicEl(i)?.getBoundingRect();
        if (rect && (rect.width > 0 || rect.height > 0 || data.get('y', i) === 0)) got++;
      }
    }
    const svg = chart.getDom().querySelector('svg');
    const shapes = svg ? svg.querySelectorAll('path').length : 0;
    const lines = f.series.filter((s) => s.shape === 'line' && (s.front || s.points.length > 60 || f.kind === 'trace'));
    const least = want - lines.reduce((n, s) => n + s.points.length - 1, 0);
    if (got !== want) wrong.push(id + ': ' + got + ' marks, expected ' + want);
    if (shapes < least) wrong.push(id + ': ' + shapes + ' shapes in the picture, expected at least ' + least);
    all += got;
  }
  return {wrong, all, charts: edgewise.drawn.size};
})()`;

const sideways = `[...document.querySelectorAll('body *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1
  && !e.closest('.scroll') && !e.closest('svg') && !e.closest('.log')).map((e) => e.tagName + '.' + e.className).slice(0, 3).join(' ')`;

const browser = new Browser(program);

const whole = process.env.EW_PICTURES === 'whole'; // long ones take seconds each
const page = await browser.open(`file://${report}`, {width: 1280});
const frame = () => page.run(`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))`);

await check('report', async () => {
  await page.until(`${drawn} !== undefined`, 'the charts', 20);
  const figures = await page.run(`edgewise.read().then((f) => f.length)`);
  const found = await page.run(marks);
  await page.picture(`${pictures}/report.png`, whole);
  console.log(`  ${found.charts} charts, ${found.all} marks`);
  return [expect(found.charts, figures, 'charts'), ...found.wrong, ...page.errors,
    figures >= 15 ? '' : `only ${figures} figures`,
    ...page.requests.filter((url) => !/^(file|data|blob):/.test(url)).map((url) => `asked for ${url}`),
    expect(await page.run(`document.querySelectorAll('figure .csv[download][href^="data:text/csv"]').length`), figures, 'CSV links'),
    expect(await page.run(sideways), '', 'wider than the page')];
});

await check('hover, legend and zoom', async () => {
  const at = JSON.parse(await page.run(`(() => {
    const {chart} = edgewise.drawn.get('workers-lenet5');
    chart.getDom().scrollIntoView({block: 'center'});
    const rect = chart.getModel().getSeriesByIndex(0).getData().getItemGraphicEl(0).getBoundingRect();
    const box = chart.getDom().getBoundingClientRect();
    return JSON.stringify({x: box.x + rect.x + rect.width / 2, y: box.y + rect.y + rect.height / 2});
  })()`));
  await page.hover(at.x, at.y);
  await page.hover(at.x + 1, at.y);
  await page.until(`document.body.innerText.includes('compute: 0, first')`, 'what hovering shows', 10);
  const bars = `edgewise.drawn.get('workers-lenet5').chart.getDom().querySelectorAll('svg path').length`;
  const before = await page.run(bars);
  await page.run(`edgewise.drawn.get('workers-lenet5').chart.dispatchAction({type: 'legendToggleSelect', name: 'stall'})`);
  await frame();
  const less = await page.run(bars);
  await page.run(`edgewise.drawn.get('workers-lenet5').chart.dispatchAction({type: 'dataZoom', start: 0, end: 50})`);
  await frame();
  const zoomed = await page.run(bars);
  return [less <= before - 10 ? '' : `${before} shapes, ${less} without a series of 10`,
    zoomed < less ? '' : `${less} shapes, ${zoomed} after zooming in`, ...page.errors];
});

// Charts are redrawn for another window or theme, with all series, including one that was switched off.
for (const [name, look] of [['phone', {width: 390, height: 844}], ['dark-phone', {width: 390, height: 844, dark: true}],
  ['dark', {width: 1280, dark: true}]]) {
  await check(name, async () => {
    await page.run(`scrollTo(0, 0)`);
    await page.look(look);
    await page.until(`edgewise.drawn.get('workers-lenet5').chart.getWidth() < innerWidth &&
      edgewise.drawn.get('workers-lenet5').chart.getWidth() > innerWidth * 0.3`, 'the new width');
    await page.run(`new Promise((done) => setTimeout(done, 250))`);
    const found = await page.run(marks);
    await page.picture(`${pictures}/${name}.png`, whole);
    const dark = await page.run(`getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)[0] < 60`);
    return [...found.wrong, ...page.errors, expect(await page.run(sideways), '', 'wider than the page'),
      expect(dark, Boolean(look.dark), 'dark')];
  });
}

await check('paper', async () => {
  await page.look({width: 800, dark: true, print: true});
  await page.picture(`${pictures}/paper.png`);
  return [
    expect(await page.run(`[...document.querySelectorAll('.live')].filter((e) => e.offsetHeight > 0).length`), 0, 'charts of the screen'),
    expect(await page.run(`[...document.querySelectorAll('.still')].every((e) => e.offsetHeight > 100)`), true, 'still pictures'),
    expect(await page.run(`getComputedStyle(document.body).backgroundColor`), 'rgb(255, 255, 255)', 'background'),
    ...page.errors];
});
await page.close();

await check('without scripts', async () => {
  const page = await browser.open(`file://${still}`, {width: 1280});
  await page.until(`document.readyState === 'complete'`, 'the page');
  await page.picture(`${pictures}/still.png`);
  return [expect(await page.run(`document.scripts.length`), 0, 'scripts'),
    await page.run(`document.querySelectorAll('.still svg .mark').length`) > 200 ? '' : 'few marks', ...page.errors];
});

await check('hostile names', async () => {
  const page = await browser.open(`file://${hostile}`, {width: 1280});
  await page.until(`${drawn} !== undefined`, 'the charts');
  await page.run(`new Promise((done) => setTimeout(done, 300))`);
  return [expect(await page.run(`typeof hostile`), 'undefined', 'the hostile script'),
    expect(await page.run(`document.images.length`), 0, 'images'), ...(await page.run(marks)).wrong, ...page.errors,
    await page.run(`document.body.innerText.includes('</script><img src=x onerror=')`) ? '' : 'the name is not shown'];
});

await check('live page', async () => {
  const page = await browser.open(live, {width: 1280});
  const bars = `[...edgewise.drawn].filter(([id]) => id.startsWith('time-')).map(([, d]) => d.f.series[0].points.length)[0] || 0`;
  await page.until(`${bars} >= 2`, 'a chart of what runs', 20);
  const before = await page.run(bars);
  await page.until(`${bars} > ${before}`, 'another epoch', 10);
  await page.until(`${drawn} !== undefined`, 'the figures so far', 20);
  const found = await page.run(marks);
  await page.picture(`${pictures}/live.png`, whole);
  return [...found.wrong, ...page.errors, found.charts >= 15 ? '' : `only ${found.charts} charts`,
    await page.run(`document.querySelector('[role=progressbar]') !== null`) ? '' : 'no progress',
    await page.run(`document.getElementById('log').textContent.includes('7.2 GiB are free')`) ? '' : 'no log',
    ...page.requests.filter((url) => !url.startsWith(new URL(live).origin) && !url.startsWith('data:')).map((url) => `asked for ${url}`)];
});

await check('video on the live page', async () => {
  const page = await browser.open(live, {width: 1280});
  await page.until(`edgewise.drawn.has('video-latency')`, 'the charts of video', 20);
  const [[answers, latency], picture] = [await page.run(`['video-answers', 'video-latency'].map((id) =>
    edgewise.drawn.get(id).f.series.reduce((n, s) => Math.max(n, s.points.length), 0))`),
    await page.run(`document.querySelector('.video-frame').naturalWidth`)];
  await page.picture(`${pictures}/video.png`, whole);
  return [...page.errors, expect(picture, 28, 'width of the frame'), expect(answers, 13, 'answers over time'),
    expect(latency, 13, 'latencies'), expect(await page.run(`document.querySelectorAll('.video-bars .bar-outer').length`), 4, 'bars'),
    await page.run(`document.querySelector('.video-facts').innerText.includes('ended')`) ? '' : 'not said to have ended',
    expect(await page.run(sideways), '', 'wider than the page')];
});

await check('page of a network', async () => {
  const page = await browser.open(`file://${graph}`, {width: 1280});
  await page.until(`document.querySelectorAll('#list li').length > 20`, 'the list of layers');
  const colour = `[...document.querySelectorAll('g[data-i] rect')].map((e) => getComputedStyle(e).fill).join()`;
  const box = `document.querySelector('#view svg').getAttribute('viewBox')`;
  const pick = (m) => page.run(`(() => { const s = document.getElementById('measure'); s.value = '${m}';
    s.dispatchEvent(new Event('change')); })()`);
  const [byTime, before] = [await page.run(colour), await page.run(box)];
  await page.picture(`${pictures}/graph.png`);
  await pick('weights');
  const byWeights = await page.run(colour);
  await page.run(`document.querySelector('#list li').click()`);
  const after = await page.run(box);
  await page.run(`document.getElementById('view').dispatchEvent(new WheelEvent('wheel', {deltaY: -300, cancelable: true}))`);
  const nearer = await page.run(box);
  return [byTime !== byWeights ? '' : 'the same colours by time and by weights',
    after !== before ? '' : 'a click in the list does not move the picture',
    Number(nearer.split(' ')[2]) < Number(after.split(' ')[2]) ? '' : 'the wheel does not zoom',
    await page.run(`document.querySelector('#detail').innerText.includes('GFLOP/s')`) ? '' : 'no speed of a layer',
    expect(await page.run(`document.querySelectorAll('g.chosen').length >= 1`), true, 'a chosen box'),
    ...page.errors, ...page.requests.filter((url) => !/^(file|data|blob):/.test(url)).map((url) => `asked for ${url}`)];
});

// Relative luminance of what is behind the picture and of its box without a time, the heading and a layer's name.
await check('page of a network in the dark', async () => {
  const page = await browser.open(`file://${graph}`, {width: 1280});
  await page.until(`document.querySelectorAll('#list li').length > 20`, 'the list of layers');
  const light = (selector, what) => page.run(`(() => {
    const s = getComputedStyle(document.querySelector('${selector}')).${what};
    return s === 'none' ? 0 : s.match(/[\\d.]+/g).slice(0, 3).map((v) => (v / 255) ** 2.2).reduce((sum, v, k) => sum + v * [0.21, 0.72, 0.07][k], 0);
  })()`);
  const wrong = [];
  for (const dark of [true, false]) {
    await page.look({width: 1280, dark});
    const ground = await light('#view', 'backgroundColor');
    if (dark) await page.picture(`${pictures}/graph-dark.png`);
    wrong.push(expect(ground < 0.1, dark, `dark: ${dark}, behind the picture`),
      expect(await light('#view svg > rect', 'fill') < 0.1, dark, `dark: ${dark}, the sheet`),
      expect(await light('#view svg > text', 'fill') > 0.3, dark, `dark: ${dark}, light text`),
      expect(await light('g[data-i] .t', 'fill') > 0.3, dark, `dark: ${dark}, light titles`),
      expect(await light('g[data-i] rect', 'fill') < 0.1, dark, `dark: ${dark}, the box of the input`));
  }
  return [...wrong, ...page.errors];
});

await browser.close();
process.exit(failed ? 1 : 0);
