// The page of `toolwright view`. Everything from a transcript is shown with textContent: it is text, never markup.
'use strict';

const ROW = 28;        // the height of a row, as in style.css
const PAGE = 100;      // rows fetched at once
const LONGEST = 2e5;   // characters of a text that are shown at once; more would keep the browser busy
const TALLEST = 8e6;   // browsers stop at some tens of millions of pixels; beyond this, rows are reached by scale

const $ = (id) => document.getElementById(id);
// Signs that cannot be seen, or turn the direction of others, are shown by their numbers; joiners stay where writing needs them.
const HIDDEN = new RegExp('[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e0fff}]'
  + '|(?<![\\u0600-\\u{10ffff}])[\\u200c\\u200d]|[\\u200c\\u200d](?![\\u0600-\\u{10ffff}])', 'gu');
const visible = (text) => String(text).replace(/\r\n/g, '\n').replace(HIDDEN, (c) => '\\u{' + c.codePointAt(0).toString(16) + '}');
const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = visible(text);
  return element;
};
const get = async (path) => {
  const answer = await fetch('api/' + path);
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
};
const span = (us) => us < 1e3 ? us + ' µs' : us < 1e6 ? (us / 1e3).toFixed(1) + ' ms' : us < 6e7 ? (us / 1e6).toFixed(1) + ' s'
  : Math.floor(us / 6e7) + ' min ' + Math.floor(us / 1e6 % 60) + ' s';
// A record that was damaged has no times, or wild ones.
const took = (us) => us == null || us > 366 * 864e8 ? 'not known' : span(us);
// Times are those of the person who looks.
const when = (text) => {
  const time = new Date(text), two = (number) => String(number).padStart(2, '0');
  return time.getFullYear() + '-' + two(time.getMonth() + 1) + '-' + two(time.getDate()) + ' ' + two(time.getHours()) + ':' + two(time.getMinutes());
};
const whenLong = (text) => new Date(text).toLocaleString('en-GB', { dateStyle: 'long', timeStyle: 'long' });
const count = (number) => number.toLocaleString('en-US');
const counted = (number, what) => count(number) + ' ' + what + (number === 1 ? '' : 's');

let run = null;        // the run that is shown: its summary
let shown = null;      // numbers of the items that match the filter; null means all
let rows = new Map();  // rows that were fetched, by page
let selected = -1;     // place of the selected row
let stream = null;     // news of a run that goes on
let offset = 0;        // runs listed so far
let listing = 0;       // how often the list was asked for

const total = () => shown ? shown.length : run ? run.items : 0;

// ---- the list of runs

async function listRuns(fresh) {
  const [ticket, text] = [++listing, $('filter').value.trim()];
  const answer = await get('runs?' + new URLSearchParams({ offset: fresh ? 0 : offset, q: text }));
  // Something else was typed meanwhile.
  if (ticket !== listing) return undefined;
  if (fresh) { offset = 0; $('runs').replaceChildren(); }
  for (const summary of answer.runs) {
    const item = make('li');
    item.dataset.id = summary.run;
    // A link, for Tab, Enter and another tab of the browser.
    const link = make('a');
    link.href = '#' + encodeURIComponent(summary.run);
    link.append(make('div', '', summary.prompt || summary.about || summary.run), make('div', 'soft'));
    if (summary.started) link.title = whenLong(summary.started);
    // How it stands comes first: the rest may be cut off.
    link.lastChild.append(make('span', summary.status === 'done' ? 'ok' : summary.status === 'running' ? 'running' : 'error', summary.status),
      ' · ' + [summary.command, summary.started ? when(summary.started) : 'time not known', counted(summary.calls, 'call')].filter(Boolean).join(' · '));
    link.addEventListener('click', () => showList(false));
    item.append(link);
    if (run && run.run === summary.run) item.setAttribute('aria-current', 'true');
    $('runs').append(item);
  }
  offset += answer.runs.length;
  $('more').hidden = offset >= answer.all;
  $('none').hidden = answer.all > 0 || !text;
  return answer.runs[0];
}

// Where there is no room for both, the list covers the run while it is open.
function showList(open) {
  document.body.classList.toggle('listing', open);
  $('list').setAttribute('aria-expanded', String(open));
  // While it was covered, the timeline had no height to fill.
  if (!open && run) draw().catch(fail);
}

// ---- one run

let opening = null;    // the run that was asked for last

async function openRun(id) {
  if (stream) { stream.close(); stream = null; }
  opening = id;
  const opened = await get('run/' + encodeURIComponent(id));
  // Another one may have been asked for meanwhile.
  if (opening !== id) return;
  run = opened;
  detail++;
  [shown, rows, selected] = [null, new Map(), -1];
  $('detail').hidden = true;
  for (const item of $('runs').children) item.setAttribute('aria-current', String(item.dataset.id === id));
  drawFacts();
  $('timeline').scrollTop = 0;
  await narrow();
  if (opening === id && run.status === 'running') follow(id);
}

function follow(id) {
  if (stream) stream.close();
  stream = new EventSource('api/run/' + encodeURIComponent(id) + '/live');
  $('live').hidden = false;
  stream.onmessage = () => refresh(id).catch(fail);
}

// Shows what was added to the run, and how it stands now.
async function refresh(id) {
  if (!run || run.run !== id) return;
  const box = $('timeline');
  const atEnd = box.scrollTop + box.clientHeight >= box.scrollHeight - 2 * ROW;
  const now = await get('run/' + encodeURIComponent(id));
  // Another one may have been opened meanwhile.
  if (run.run !== id) return;
  run = now;
  rows = new Map();
  drawFacts();
  await narrow();
  if (run.run !== id) return;
  if (atEnd) { box.scrollTop = box.scrollHeight; await draw(); }
  if (run.status === 'running' || !stream) return;
  stream.close();
  stream = null;
  await listRuns(true);
}

// Sees whether a run that goes on has ended.
async function look() {
  if (document.hidden || !run || run.status !== 'running') return;
  const id = run.run;
  const now = await get('run/' + encodeURIComponent(id));
  if (run.run === id && now.status !== run.status) await refresh(id);
}

function drawFacts() {
  const facts = $('facts');
  const fact = (name, value, kind) => {
    const box = make('span', '');
    box.append(make('span', 'soft', name + ' '), make('b', kind, value));
    facts.append(box);
  };
  facts.replaceChildren();
  fact('run', run.run);
  fact('status', run.status, run.status === 'done' ? 'ok' : run.status === 'running' ? 'running' : 'error');
  if (run.started) fact('started', whenLong(run.started));
  fact('took', took(run.duration_us));
  if (run.models.length) fact('model', run.models.join(', '));
  fact('turns', count(run.turns));
  fact('calls', count(run.calls) + (run.errors ? ' (' + count(run.errors) + ' failed)' : ''));
  fact('tokens', count(run.usage.input_tokens) + ' in, ' + count(run.usage.output_tokens) + ' out');
  if (run.cost) fact('cost', '$' + run.cost.toFixed(4));
  $('live').hidden = run.status !== 'running';
  const tools = $('tool');
  const chosen = tools.value;
  tools.replaceChildren(new Option('every tool', ''));
  for (const tool of run.tools) tools.append(new Option(tool.name + ' (' + tool.calls + ')', tool.name));
  tools.value = run.tools.some((tool) => tool.name === chosen) ? chosen : '';
  drawCharts();
}

const svg = (tag, attributes, text) => {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
};

function figure(caption, drawing) {
  const box = make('figure');
  box.append(drawing, make('figcaption', '', caption));
  $('charts').append(box);
}

function drawCharts() {
  $('charts').replaceChildren();
  const [width, height] = [320, 64];
  const turns = run.chart;
  if (turns.some((turn) => turn.input + turn.output > 0)) {
    const most = Math.max(...turns.map((turn) => turn.input + turn.output));
    const drawing = svg('svg', { width, height, class: 'chart', role: 'img' });
    const step = width / turns.length;
    turns.forEach((turn, at) => {
      const low = turn.input / most * height, high = turn.output / most * height;
      const x = at * step, wide = Math.max(1, step - 1);
      drawing.append(svg('rect', { class: 'c-in', x, y: height - low, width: wide, height: low }),
        svg('rect', { class: 'c-out', x, y: height - low - high, width: wide, height: high }));
    });
    figure('tokens per turn: in, out (most ' + count(most) + ')', drawing);
  }
  if (run.cost > 0) {
    const drawing = svg('svg', { width, height, class: 'chart', role: 'img' });
    let sum = 0;
    const points = turns.map((turn, at) => {
      sum += turn.cost;
      return (turns.length > 1 ? at / (turns.length - 1) * width : width) + ',' + (height - 2 - sum / run.cost * (height - 4));
    });
    drawing.append(svg('polyline', { class: 'c-cost', points: ['0,' + (height - 2), ...points].join(' ') }));
    figure('cost, summed: $' + run.cost.toFixed(4), drawing);
  }
  const tools = [...run.tools].sort((a, b) => b.total_us - a.total_us).slice(0, 4);
  if (tools.length) {
    const drawing = svg('svg', { width, height, class: 'chart', role: 'img' });
    const most = Math.max(1, ...tools.map((tool) => tool.total_us));
    tools.forEach((tool, at) => {
      const wide = Math.max(2, tool.total_us / most * 110);
      drawing.append(svg('rect', { class: tool.errors ? 'c-bad' : 'c-bar', x: 0, y: at * 16 + 2, width: wide, height: 12 }),
        svg('text', { x: wide + 6, y: at * 16 + 12 }, tool.name + '  ' + counted(tool.calls, 'call') + ', ' + span(tool.total_us)));
    });
    figure('time spent in tools (red: some failed)', drawing);
  }
}

// ---- the timeline: only what is seen is there

let [asked, answered] = [0, 0];  // how often the timeline was narrowed, and which of that is shown

async function narrow() {
  const [ticket, id] = [++asked, run && run.run];
  const [text, tool, failed] = [$('search').value.trim(), $('tool').value, $('failed').checked];
  if (text || tool || failed) {
    const query = new URLSearchParams({ q: text, tool, failed: failed ? '1' : '' });
    const answer = await get('run/' + encodeURIComponent(run.run) + '/filter?' + query);
    // A later answer was faster, or another run is shown.
    if (ticket < answered || run.run !== id) return;
    shown = answer.items;
    $('found').textContent = count(shown.length) + (answer.more ? '+' : '') + ' found';
  } else {
    shown = null;
    $('found').textContent = '';
  }
  answered = ticket;
  rows = new Map();
  await draw();
}

async function page(number) {
  if (!rows.has(number)) {
    const from = number * PAGE;
    const query = shown ? 'list=' + shown.slice(from, from + PAGE).join(',') : 'from=' + from + '&count=' + PAGE;
    rows.set(number, get('run/' + encodeURIComponent(run.run) + '/items?' + query));
    if (rows.size > 30) rows.delete(rows.keys().next().value);
  }
  return rows.get(number);
}

let drawing = 0;

async function draw() {
  const ticket = ++drawing;
  const box = $('timeline');
  const height = Math.min(total() * ROW, TALLEST);
  $('space').style.height = height + 'px';
  const scale = total() * ROW / Math.max(1, height);
  const seen = Math.ceil(box.clientHeight / ROW) + 1;
  const first = Math.max(0, Math.min(Math.floor(box.scrollTop * scale / ROW), total() - seen + 1));
  const last = Math.min(total(), first + seen);
  const found = [];
  for (let number = Math.floor(first / PAGE); number * PAGE < last; number++) {
    const part = await page(number);
    part.forEach((row, at) => {
      const place = number * PAGE + at;
      if (place >= first && place < last) found.push([place, row]);
    });
  }
  if (ticket !== drawing) return;
  $('rows').style.top = (scale === 1 ? first * ROW : box.scrollTop) + 'px';
  $('rows').replaceChildren(...found.map(([place, row]) => drawRow(place, row)));
}

function drawRow(place, row) {
  const line = make('div', 'row ' + row.kind);
  line.setAttribute('role', 'option');
  line.setAttribute('aria-selected', String(place === selected));
  line.dataset.place = place;
  line.append(make('span', 'what', row.tool === undefined ? row.kind : row.tool));
  // The name stands before it already.
  const named = row.kind === 'call' && row.text.startsWith(row.tool + '(');
  const text = make('span', 'text', named ? row.text.slice(row.tool.length + 1).replace(/\)$/, '') : row.text);
  text.style.paddingLeft = (row.depth || 0) * 18 + 'px';
  line.append(text);
  if (row.tool !== undefined) {
    line.append(make('span', row.state, row.state === 'ok' ? '' : row.state));
    const lane = make('span', 'lane');
    if (row.time != null && run.duration_us != null) {
      const bar = make('i');
      const whole = Math.max(1, run.duration_us);
      bar.style.left = Math.max(0, Math.min(99, (row.time - run.started_us) / whole * 100)) + '%';
      bar.style.width = Math.min(100, (row.duration_us || 0) / whole * 100) + '%';
      lane.append(bar);
    }
    line.append(lane);
  }
  line.append(make('span', 'took', row.state === 'running' ? '…' : row.duration_us === null ? '?' : row.duration_us ? span(row.duration_us) : ''));
  line.addEventListener('click', () => select(place));
  return line;
}

async function select(place) {
  if (place < 0 || place >= total()) return;
  selected = place;
  const part = await page(Math.floor(place / PAGE));
  await showDetail(part[place % PAGE].number);
  const box = $('timeline');
  if (total() * ROW <= TALLEST) {
    if (place * ROW < box.scrollTop) box.scrollTop = place * ROW;
    if ((place + 1) * ROW > box.scrollTop + box.clientHeight) box.scrollTop = (place + 1) * ROW - box.clientHeight;
  }
  await draw();
}

// ---- details of one item

let detail = 0;        // which detail was asked for last

async function showDetail(number) {
  const ticket = ++detail;
  const whole = await get('run/' + encodeURIComponent(run.run) + '/item/' + number);
  if (ticket !== detail) return;
  const side = $('detail');
  side.replaceChildren();
  side.hidden = false;
  const close = make('button', 'close', '✕');
  close.addEventListener('click', () => { side.hidden = true; });
  side.append(close);
  const part = (name, text) => { side.append(make('h3', '', name)); side.append(marked(text)); };
  const json = (value) => JSON.stringify(value, null, 2);
  const event = whole.event;
  if (event.event === 'message_added') {
    const message = event.message;
    side.append(make('h2', '', message.role));
    blocks(side, message.content || []);
    if (message.error) part('error: ' + message.error.type, message.error.message + (message.error.hint ? '\n\n' + message.error.hint : ''));
    for (const call of message.tool_calls || []) part('asks for ' + call.name, json(call.arguments));
    return;
  }
  if (event.event !== 'call_started') {
    side.append(make('h2', '', event.event.replace('_', ' ')), marked(json(event)));
    return;
  }
  side.append(make('h2', '', event.tool));
  part('arguments', json(event.arguments));
  if (whole.decided) {
    const decided = whole.decided;
    part('decision', decided.decision + ' by ' + decided.approver + (decided.reason ? ': ' + decided.reason : ''));
    if (decided.arguments !== undefined) part('arguments used', json(decided.arguments));
  }
  const notes = whole.notes.map((note) => note.text || note.message || json(note));
  if (notes.length) part('while it ran', notes.join('\n'));
  const finished = whole.finished;
  if (!finished) { part('result', run.status === 'running' ? 'still running' : 'none: the run was cut off'); return; }
  part('took', took(finished.duration_us) + (finished.interrupted ? ', interrupted' : ''));
  if (finished.error) part('error: ' + finished.error.type, finished.error.message + (finished.error.hint ? '\n\n' + finished.error.hint : ''));
  if (finished.result) {
    const result = finished.result;
    if ((result.content || []).length) { side.append(make('h3', '', 'result')); blocks(side, result.content); }
    if (result.structured !== undefined) part('structured', json(result.structured));
    if (result.metadata) part('metadata', json(result.metadata));
    if (result.truncated) part('cut', 'of ' + count(result.truncated.original) + ' bytes, ' + count(result.truncated.limit) + ' may be given');
  }
}

function blocks(side, content) {
  for (const block of content) {
    if (block.type === 'text') side.append(marked(block.text));
    else if (block.type === 'json') side.append(marked(JSON.stringify(block.value, null, 2)));
    else if (block.type === 'reasoning') side.append(make('h3', '', 'reasoning'), marked(block.text));
    else if (block.type === 'image' && block.data && /^image\/(png|jpeg|gif|webp|svg\+xml)$/.test(block.mime_type)) {
      const image = make('img');
      image.alt = 'a picture of the transcript';
      image.src = 'data:' + block.mime_type + ';base64,' + block.data;
      side.append(image);
    } else side.append(marked('(' + [block.type, block.mime_type, block.name, block.uri || block.url].filter(Boolean).join(' ') + ')'));
  }
}

// Text with what is searched for marked; of a very long one the beginning, and a button for more.
function marked(whole) {
  const box = make('pre');
  extend(box, whole, 0);
  return box;
}

function extend(box, whole, start) {
  mark(box, visible(whole.slice(start, start + LONGEST)));
  const rest = whole.length - start - LONGEST;
  if (rest <= 0) return;
  const more = make('button', 'more', count(rest) + ' more characters');
  more.addEventListener('click', () => { more.remove(); extend(box, whole, start + LONGEST); });
  box.append(more);
}

function mark(box, text) {
  const wanted = $('search').value.trim();
  if (!wanted) { box.append(text); return; }
  const plain = text.toLowerCase(), needle = wanted.toLowerCase();
  let from = 0;
  for (let at = plain.indexOf(needle), hits = 0; at >= 0 && hits < 500; at = plain.indexOf(needle, from), hits++) {
    box.append(text.slice(from, at), make('mark', '', text.slice(at, at + needle.length)));
    from = at + needle.length;
  }
  box.append(text.slice(from));
}

// ---- start

const fail = (error) => { $('facts').replaceChildren(make('span', 'error', String(error.message || error))); };
const soon = (work, wait) => {
  let timer;
  return () => { clearTimeout(timer); timer = setTimeout(() => Promise.resolve(work()).catch(fail), wait); };
};

$('timeline').addEventListener('scroll', () => draw().catch(fail));
addEventListener('resize', () => draw().catch(fail));
$('search').addEventListener('input', soon(narrow, 200));
$('tool').addEventListener('change', soon(narrow, 0));
$('failed').addEventListener('change', soon(narrow, 0));
$('filter').addEventListener('input', soon(() => listRuns(true), 200));
$('more').addEventListener('click', () => listRuns(false).catch(fail));
addEventListener('hashchange', () => openRun(decodeURIComponent(location.hash.slice(1))).catch(fail));
addEventListener('keydown', (event) => {
  if (event.target.matches('input, select')) {
    if (event.key !== 'Escape') return;
    // The box and what it narrowed are cleared together.
    if (event.target.type === 'search' && event.target.value) { event.target.value = ''; event.target.dispatchEvent(new Event('input')); }
    event.target.blur();
    return;
  }
  if (event.key === '/') { event.preventDefault(); $('search').focus(); }
  else if (event.key === 'Escape') $('detail').hidden = true;
  else if (event.key === 'ArrowDown' || event.key === 'j') { event.preventDefault(); select(selected + 1).catch(fail); }
  else if (event.key === 'ArrowUp' || event.key === 'k') { event.preventDefault(); select(selected - 1).catch(fail); }
});
$('list').addEventListener('click', () => showList(!document.body.classList.contains('listing')));
const themed = (theme) => { document.documentElement.dataset.theme = theme; };
if (localStorage.theme) themed(localStorage.theme);
$('theme').addEventListener('click', () => {
  const dark = getComputedStyle(document.documentElement).colorScheme === 'dark'
    || (!localStorage.theme && matchMedia('(prefers-color-scheme: dark)').matches);
  localStorage.theme = dark ? 'light' : 'dark';
  themed(localStorage.theme);
});

(async () => {
  const newest = await listRuns(true);
  if (location.hash) await openRun(decodeURIComponent(location.hash.slice(1)));
  else if (newest) location.hash = newest.run;
  else $('facts').replaceChildren(make('p', 'soft', 'No run is recorded yet. `toolwright ask \'What can you do?\'` makes one, and it appears here.'));
  setInterval(() => { if (!document.hidden && !$('filter').value && offset <= 50) listRuns(true).catch(() => {}); }, 4000);
  // One whose process was killed writes nothing more, so there is no news of it.
  setInterval(() => look().catch(() => {}), 4000);
})().catch(fail);
