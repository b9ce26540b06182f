// The trace viewer: texts, the list, going about. What tools, models and requests say is only ever set as text; see viewer.py
// for where the data come from. `viewer_episode.js`, which precedes it in the same script, draws one episode.

const $ = id => document.getElementById(id);
const CHUNK = 80; // Rows drawn at a time; more follow while one scrolls.
const PREVIEW = 160; // Characters of a folded text that can be seen.

const rows = JSON.parse($("data").textContent);
const packs = new Map();
const title = document.title;
let shown = rows; // What the filter leaves, in order.
let drawn = 0; // How many of them stand in the table.
let current = 0; // The row that the keys move.
let opened = null; // The row whose episode is open.
let scrolled = 0; // Where the list was left.
let sorting = { key: "", down: false };

// ---- Text and elements

/** Text with a replacement character for every control character but tab and line feed. */
const printable = text => String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g, "\ufffd");
const clip = (text, length) => (text.length > length ? `${text.slice(0, length)}…` : text);
const number = value => value.toLocaleString("en", { maximumFractionDigits: 2 });
const plural = (count, one, many = `${one}s`) => `${number(count)} ${count === 1 ? one : many}`;
const words = name => name.replaceAll("_", " ");
const seconds = value =>
  value >= 100 ? `${number(Math.round(value))} s` : value >= 1 ? `${value.toFixed(1)} s` : `${Math.round(value * 1000)} ms`;

/** An element; strings among the children become text. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value !== false) element.setAttribute(name, value === true ? "" : printable(value));
  }
  const kept = children.flat(Infinity).filter(child => child !== null && child !== undefined && child !== "");
  element.append(...kept.map(child => (child instanceof Node ? child : printable(child))));
  return element;
}

const tag = (text, kind = "") => make("span", { class: `tag ${kind}` }, text);
const unseen = text => make("span", { class: "unseen" }, text);
const sign = ok => make("b", { class: ok ? "good" : "bad" }, ok ? "✓" : "✗", unseen(ok ? " succeeded " : " failed "));
const code = text => make("code", {}, text);

/** Text that may be long, in a region that can be scrolled by keyboard. */
const pre = (text, label) => make("pre", { tabindex: 0, role: "group", "aria-label": label, dir: "ltr" }, text);

/** A folded part that is filled when it is first opened. */
function fold(summary, fill, kind = "") {
  const body = make("div");
  const details = make("details", { class: kind }, make("summary", {}, summary), body);
  details.addEventListener("toggle", () => {
    if (details.open && !body.hasChildNodes()) body.append(...[fill()].flat());
  });
  return details;
}

/** A folded text whose first words can be seen. */
function folded(label, text, kind = "") {
  const start = clip(text.slice(0, 4 * PREVIEW).replace(/\s+/g, " "), PREVIEW);
  return fold([make("b", {}, label), " ", make("span", { class: "preview" }, start || "(empty)")], () => pre(text, label), `text ${kind}`);
}

// ---- The list

const COLUMNS = [
  { key: "request", label: "Request" },
  { key: "outcome", label: "Outcome" },
  { key: "policy", label: "Policy" },
  { key: "paradigm", label: "Paradigm" },
  { key: "task", label: "Task" },
  { key: "shape", label: "Shape" },
  { key: "turns", label: "Turns", unit: "turn" },
  { key: "searches", label: "Searches", unit: "search" },
  { key: "calls", label: "Calls", unit: "call" },
  { key: "together", label: "A turn", hint: "calls per turn that calls", unit: "a turn" },
  { key: "failed", label: "Failed", hint: "failed calls", unit: "failed" },
  { key: "tokens", label: "Tokens", hint: "tokens that the model wrote", unit: "tokens" },
  { key: "seconds", label: "Time", hint: "when the last turn or call ended" },
];

/** What the outcome column and its facet say: by the reward where there is one, else how the episode ended. */
function outcomeOf(row) {
  if (row.solved === null) return `ended: ${words(row.end)}`;
  return row.solved ? "solved" : row.end === "answer" ? "not solved" : `not solved: ${words(row.end)}`;
}

function outcomeMark(row) {
  const kind = row.solved === null ? "plain" : row.solved ? "good" : "bad";
  const mark = { plain: "○", good: "✓", bad: "✗" }[kind];
  return make("span", { class: kind }, make("span", { "aria-hidden": "true" }, `${mark} `), outcomeOf(row));
}

function prepare() {
  for (const row of rows) {
    row.outcome = outcomeOf(row);
    row.words = [row.request, row.key, row.task, row.shape, ...row.tools].join("\n").toLowerCase();
  }
  for (const key of ["policy", "paradigm", "shape"]) {
    for (const value of [...new Set(rows.map(row => row[key]))].sort()) {
      if (value) $(key).append(make("option", { value }, value));
    }
  }
  const ends = [...new Set(rows.map(row => row.end))].sort().map(end => [`end ${end}`, `ended: ${words(end)}`]);
  const solved = rows.some(row => row.solved !== null) ? [["solved", "solved"], ["not", "not solved"]] : [];
  $("outcome").append(...[...solved, ...ends].map(([value, label]) => make("option", { value }, label)));
  $("rows").tHead.append(make("tr", { role: "row" }, COLUMNS.map(headCell)));
}

function headCell(column) {
  const label = column.hint ? [column.label, unseen(`: ${column.hint}`)] : [column.label];
  const button = make("button", { type: "button", title: column.hint ?? false, click: () => sortBy(column.key) }, label);
  return make("th", { role: "columnheader", scope: "col", class: column.unit || column.key === "seconds" ? "n" : "", "data-key": column.key }, button);
}

function sortBy(key) {
  const numeric = typeof rows[0][key] === "number";
  sorting = { key, down: sorting.key === key ? !sorting.down : numeric };
  for (const cell of $("rows").tHead.rows[0].cells) {
    if (cell.dataset.key === key) cell.setAttribute("aria-sort", sorting.down ? "descending" : "ascending");
    else cell.removeAttribute("aria-sort");
  }
  refresh();
}

function matches(row, asked, facets) {
  if (facets.some(([key, value]) => row[key] !== value)) return false;
  const outcome = $("outcome").value;
  if (outcome.startsWith("end ") ? row.end !== outcome.slice(4) : outcome && row.solved !== (outcome === "solved")) return false;
  return asked.every(word => row.words.includes(word));
}

/** Apply the filter and the order; only the first rows are drawn at once. */
function refresh() {
  const asked = $("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
  const facets = ["policy", "paradigm", "shape"].map(key => [key, $(key).value]).filter(([, value]) => value);
  shown = rows.filter(row => matches(row, asked, facets));
  const { key, down } = sorting;
  if (key) {
    const order = (a, b) => (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0);
    shown.sort(down ? (a, b) => order(b, a) : order);
  }
  current = drawn = 0;
  $("rows").tBodies[0].replaceChildren();
  $("rows").setAttribute("aria-rowcount", shown.length + 1);
  $("count").textContent = `${number(shown.length)} of ${plural(rows.length, "episode")}`;
  $("rows").hidden = !shown.length;
  $("none").hidden = shown.length > 0;
  draw(CHUNK);
}

/** Draw rows until `end` of them stand in the table. */
function draw(end) {
  const part = shown.slice(drawn, Math.max(end, drawn));
  $("rows").tBodies[0].append(...part.map((row, index) => rowOf(row, drawn + index)));
  drawn += part.length;
  $("more").hidden = drawn >= shown.length;
  $("more").textContent = `Show ${number(Math.min(CHUNK, shown.length - drawn))} more`;
  // Observed anew, for an observer speaks only when something changes.
  watcher.unobserve($("more"));
  watcher.observe($("more"));
}

const watcher = new IntersectionObserver(seen => seen.some(entry => entry.isIntersecting) && draw(drawn + CHUNK), { rootMargin: "800px" });

const hashOf = row => `#${encodeURIComponent(row.key).replaceAll("%2F", "/")}`;

function rowOf(row, index) {
  const cells = COLUMNS.slice(1).map(column => cellOf(row, column));
  const link = make("a", { href: hashOf(row) }, clip(row.request.trim(), 300) || "(no request)");
  const open = event => event.target.closest("a") || String(getSelection()) || go(row);
  return make("tr", { role: "row", "aria-rowindex": index + 2, click: open }, make("th", { role: "rowheader", scope: "row" }, link), cells);
}

function cellOf(row, { key, unit }) {
  if (key === "outcome") return make("td", { role: "cell", title: row.outcome }, outcomeMark(row));
  if (key === "seconds") return make("td", { role: "cell", class: "n" }, row.seconds ? seconds(row.seconds) : make("span", { class: "nil" }, "–"));
  if (!unit) return make("td", { role: "cell", class: "name", title: row[key] }, row[key] || "–");
  const label = { turn: "turns", search: "searches", call: "calls" }[unit] ?? unit;
  const kind = key === "failed" && row.failed ? "n bad" : row[key] ? "n" : "n nil";
  return make("td", { role: "cell", class: kind, "data-label": row[key] === 1 ? unit : label }, number(row[key]));
}

/** Focus a row of the list, which is drawn where it is not yet. */
function focusRow(index) {
  if (!shown.length) return;
  current = Math.min(Math.max(index, 0), shown.length - 1);
  draw(current + 1);
  const link = $("rows").tBodies[0].rows[current].querySelector("a");
  link.focus({ preventScroll: true });
  link.closest("tr").scrollIntoView({ block: "nearest" });
}

// ---- Going from one to another

const go = row => { location.hash = hashOf(row); };
const back = () => { if (rows.length > 1) location.hash = ""; };

/** The next or previous episode of the list; it takes the place of the open one, so that going back leads to the list. */
function step(by) {
  const row = shown[shown.indexOf(opened) + by];
  if (row && shown.includes(opened)) location.replace(hashOf(row));
}

function route() {
  let key = location.hash.slice(1);
  try { key = decodeURIComponent(key); } catch { /* A mangled address names no episode. */ }
  const row = rows.find(each => each.key === key) ?? (rows.length === 1 ? rows[0] : null);
  if (row) open(row);
  else showList();
}

function showList() {
  const from = opened;
  opened = null;
  document.title = title;
  $("episode").hidden = true;
  $("episode").replaceChildren();
  $("list").hidden = false;
  if (!from) return;
  scrollTo(0, scrolled);
  if (shown.includes(from)) focusRow(shown.indexOf(from));
  else $("list-title").focus();
}

async function open(row) {
  if (!opened) scrolled = scrollY;
  opened = row;
  let content;
  try {
    content = episode(row, (await unpack(row.pack))[row.place]);
  } catch (fault) {
    content = [make("h2", { tabindex: -1 }, "This episode cannot be read"), make("p", {}, String(fault))];
  }
  if (opened !== row) return;
  document.title = `${clip(row.key, 60)} · ${title}`;
  $("list").hidden = true;
  $("episode").replaceChildren(...content);
  $("episode").hidden = false;
  scrollTo(0, 0);
  $("episode").querySelector("h2").focus({ preventScroll: true });
}

/** The episodes of one pack: base64 of gzip of JSON. */
function unpack(place) {
  if (!packs.has(place)) {
    const bytes = Uint8Array.from(atob($(`pack-${place}`).textContent), mark => mark.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    packs.set(place, new Response(stream).json());
  }
  return packs.get(place);
}

// ---- Keys

const heads = () => [...$("episode").querySelectorAll(".turns h4")];

function focusTurn(index) {
  const head = heads()[index];
  head?.focus({ preventScroll: true });
  head?.scrollIntoView({ block: "start" });
}

/** The turn after or before the one that has the focus, or the first one. */
function moveTurn(by) {
  const turn = document.activeElement.closest?.(".turns > li");
  const at = turn ? [...turn.parentElement.children].indexOf(turn) : -1;
  focusTurn(at < 0 ? (by > 0 ? 0 : heads().length - 1) : Math.min(Math.max(at + by, 0), heads().length - 1));
}

function unfoldAll() {
  const all = [...$("episode").querySelectorAll("details")];
  const open = all.some(details => !details.open);
  for (const details of all) details.open = open;
}

/** Moves from the row that has the focus, or to the first one. */
function moveRow(by) {
  const row = document.activeElement.closest?.("#rows tbody tr");
  if (row) current = row.sectionRowIndex;
  focusRow(row ? current + by : current);
}

const LIST_KEYS = {
  "/": () => $("filter").focus(), j: () => moveRow(1), ArrowDown: () => moveRow(1), k: () => moveRow(-1), ArrowUp: () => moveRow(-1),
};
const EPISODE_KEYS = {
  j: () => moveTurn(1), k: () => moveTurn(-1), n: () => step(1), "]": () => step(1), p: () => step(-1), "[": () => step(-1),
  e: unfoldAll, Escape: back, Backspace: back, h: back,
};

function onKey(event) {
  const typing = event.target.closest?.("input, select, textarea, [contenteditable]");
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || typing || $("keys").open) return;
  const onNothing = document.activeElement === document.body || document.activeElement.id === "list-title";
  const enter = event.key === "Enter" && onNothing && !opened && shown.length ? () => go(shown[current]) : null;
  const act = event.key === "?" ? () => $("keys").showModal() : enter ?? (opened ? EPISODE_KEYS : LIST_KEYS)[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

function start() {
  history.scrollRestoration = "manual";
  prepare();
  refresh();
  for (const id of ["filter", "policy", "paradigm", "shape", "outcome"]) $(id).addEventListener("input", refresh);
  $("facets").addEventListener("submit", event => event.preventDefault());
  $("clear").addEventListener("click", () => { $("facets").reset(); refresh(); $("filter").focus(); });
  $("more").addEventListener("click", () => draw(drawn + CHUNK));
  $("help").addEventListener("click", () => $("keys").showModal());
  $("skip").addEventListener("click", event => { event.preventDefault(); $("main").focus(); });
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", route);
  route();
}

start();
