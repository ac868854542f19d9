// Drives headless Chromium through its debugging pipe; needs only node.
import {spawn} from 'node:child_process';
import {mkdtempSync, rmSync, writeFileSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join} from 'node:path';

const flags = ['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
  '--disable-component-update', '--disable-sync', '--disable-default-apps', '--hide-scrollbars',
  '--remote-debugging-pipe'];

export class Browser {
  constructor(program) {
    this.dir = mkdtempSync(join(tmpdir(), 'edgewise-browser-'));
    this.process = spawn(program, [...flags, `--user-data-dir=${this.dir}`, 'about:blank'],
      {stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe']});
    this.next = 1;
    this.waiting = new Map();
    this.pages = new Map();
    let rest = '';
    this.process.stdio[4].setEncoding('utf8');
    this.process.stdio[4].on('data', (text) => {
      const parts = (rest + text).split('\0');
      rest = parts.pop();
      parts.forEach((part) => this.hear(JSON.parse(part)));
    });
    this.process.on('exit', () => this.waiting.forEach(({fail}) => fail(new Error('the browser has ended'))));
  }

  hear(message) {
    if (message.id) {
      const {done, fail} = this.waiting.get(message.id);
      this.waiting.delete(message.id);
      if (message.error) fail(new Error(message.error.message)); else done(message.result);
    } else {
      this.pages.get(message.sessionId)?.hear(message.method, message.params);
    }
  }

  send(method, params = {}, sessionId = undefined) {
    const id = this.next++;
    return new Promise((done, fail) => {
      this.waiting.set(id, {done, fail});
      this.process.stdio[3].write(`${JSON.stringify({id, method, params, sessionId})}\0`);
    });
  }

  // width, height, dark, print
  async open(url, look) {
    const {targetId} = await this.send('Target.createTarget', {url: 'about:blank'});
    const {sessionId} = await this.send('Target.attachToTarget', {targetId, flatten: true});
    const page = new Page(this, sessionId, targetId);
    this.pages.set(sessionId, page);
    for (const domain of ['Page', 'Runtime', 'Log', 'Network']) await page.send(`${domain}.enable`);
    await page.look(look);
    const loaded = new Promise((done) => { page.loaded = done; });
    await page.send('Page.navigate', {url});
    await loaded;
    return page;
  }

  async close() {
    const gone = new Promise((done) => { this.process.on('exit', done); });
    await this.send('Browser.close').catch(() => {});
    await gone;
    rmSync(this.dir, {recursive: true, force: true, maxRetries: 5, retryDelay: 100});
  }
}

class Page {
  constructor(browser, session, target) {
    Object.assign(this, {browser, session, target, errors: [], requests: []});
  }

  send(method, params) {
    return this.browser.send(method, params, this.session);
  }

  hear(method, params) {
    if (method === 'Page.loadEventFired') this.loaded?.();
    if (method === 'Runtime.exceptionThrown')
      this.errors.push(params.exceptionDetails.exception?.description || params.exceptionDetails.text);
    if (method === 'Runtime.consoleAPICalled' && ['error', 'warning', 'assert'].includes(params.type))
      this.errors.push(params.args.map((a) => a.value || a.description).join(' '));
    if (method === 'Log.entryAdded' && ['error', 'warning'].includes(params.entry.level))
      this.errors.push(params.entry.text);
    if (method === 'Network.requestWillBeSent') this.requests.push(params.request.url);
  }

  async look({width = 1280, height = 900, dark = false, print = false} = {}) {
    await this.send('Emulation.setDeviceMetricsOverride', {width, height, deviceScaleFactor: 1, mobile: false});
    await this.send('Emulation.setEmulatedMedia', {media: print ? 'print' : '',
      features: [{name: 'prefers-color-scheme', value: dark ? 'dark' : 'light'}]});
  }

  async run(expression) {
    const r = await this.send('Runtime.evaluate', {expression, awaitPromise: true, returnByValue: true});
    if (r.exceptionDetails) throw new Error(r.exceptionDetails.exception?.description || r.exceptionDetails.text);
    return r.result.value;
  }

  async until(expression, what, seconds = 10) {
    const end = Date.now() + seconds * 1000;
    while (!(await this.run(expression))) {
      if (Date.now() > end) throw new Error(`${what} did not come in ${seconds} s`);
      await new Promise((done) => { setTimeout(done, 50); });
    }
  }

  async picture(file, whole = false) {
    const {data} = await this.send('Page.captureScreenshot', {format: 'png', captureBeyondViewport: whole,
      ...(whole ? {clip: {x: 0, y: 0, width: await this.run('innerWidth'),
        height: await this.run('document.documentElement.scrollHeight'), scale: 1}} : {})});
    writeFileSync(file, Buffer.from(data, 'base64'));
  }

  async hover(x, y) {
    await this.send('Input.dispatchMouseEvent', {type: 'mouseMoved', x, y});
  }

  close() {
    return this.browser.send('Target.closeTarget', {targetId: this.target});
  }
}
