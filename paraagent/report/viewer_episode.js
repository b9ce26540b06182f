"use strict";
// One episode of the trace viewer: facts, timeline, turns and plans as elements. `viewer.js` follows in the same script.

const SVG = "http://www.w3.org/2000/svg";
const NAMES = { search: "Search", call: "Call", answer: "Answer", mixed: "Mixed blocks", invalid: "Not readable" };
const STATES = {
  done: ["✓", "done"], failed: ["✗", "failed"], hidden: ["◌", "succeeded, but not shown to the model"], open: ["○", "never called"],
};

// ---- The whole of it

function episode(row, data) {
  const long = row.request.length > 400;
  return [
    ways(row),
    make("h2", { tabindex: -1, id: "title" }, clip(row.request.trim(), 400) || "(no request)"),
    long ? folded("The whole request", row.request) : null,
    make("p", { class: "kicker" }, outcomeMark(row), " · ", make("bdi", {}, row.key)),
    factsOf(row, data),
    data.error === null ? null : make("div", { class: "notice bad" }, make("h3", {}, "Broken off"), make("p", {}, data.error)),
    make("div", { class: "pair" }, answerOf(data), data.rewards.length ? rewardsOf(data) : null),
    neededOf(data),
    data.opening.length
      ? section("Searched before the first turn", "opening", data.opening.map(search => searchOf(search, data.targets)))
      : null,
    section("Timeline", "timeline-part", data.turns.length ? timeline(data) : make("p", { class: "note" }, "No turn was taken.")),
    section("Turns", "turns-part", make("ol", { class: "turns" }, turnsOf(data))),
    section("Around it", "rest",
      data.changes.length ? folded(`What became of the world (${data.changes.length})`, data.changes.join("\n")) : null,
      folded("System prompt", data.system)),
  ].filter(part => part !== null);
}

const section = (name, kind, ...children) => make("section", { class: kind, "aria-label": name }, make("h3", {}, name), ...children);

function ways(row) {
  const place = shown.indexOf(row);
  const way = (by, label, key) =>
    make("button", { type: "button", disabled: place < 0 || !shown[place + by], "aria-keyshortcuts": key, click: () => step(by) }, label);
  if (rows.length === 1) return null;
  return make("nav", { "aria-label": "Episodes" },
    make("a", { href: "#" }, "← All episodes"),
    make("span", { class: "note" }, place < 0 ? "" : `${number(place + 1)} of ${number(shown.length)}`),
    way(-1, "‹ Previous", "p"), way(1, "Next ›", "n"));
}

function factsOf(row, data) {
  const facts = [
    ["Policy", row.policy], ["Paradigm", row.paradigm], ["Task", row.task], ["Shape", row.shape || "task not known"],
    ["Ended by", words(row.end)], ["Seed", data.seed], ["Turns", number(row.turns)], ["Searches", number(row.searches)],
    ["Calls", `${number(row.calls)}${row.failed ? `, ${number(row.failed)} failed` : ""}`],
    ["Calls a turn", row.calls ? number(row.together) : "–"],
    ["Tokens", row.tokens || data.prompt ? `${number(row.tokens)} written, ${number(data.prompt)} read` : "–"],
    ["Time", row.seconds ? seconds(row.seconds) : "not measured"],
  ];
  return make("dl", { class: "facts" }, facts.map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value))));
}

function answerOf(data) {
  const said = data.answer === null ? make("p", { class: "note" }, "There is none.") : make("p", { class: "answer" }, data.answer);
  const asked = data.atoms.map(atom => make("li", {}, code(atom)));
  return section("Answer", "plain", said,
    asked.length ? [make("p", { class: "label" }, "Facts asked for"), make("ul", { class: "hits" }, asked)] : null);
}

function rewardsOf(data) {
  const lines = data.rewards.map(([name, value]) => make("tr", {}, make("th", { scope: "row" }, name), make("td", { class: "n" }, value)));
  return section("Rewards", "plain", make("table", { class: "rewards" }, make("caption", { class: "unseen" }, "Rewards"), make("tbody", {}, lines)));
}

/** The tools that the task needs: when each was found, and whether a call of it succeeded. */
function neededOf(data) {
  if (data.targets === null) return null;
  const searches = [[0, data.opening], ...data.turns.map((turn, index) => [index + 1, turn.searches])];
  const entry = ([name, ...others], target) => {
    const hit = searches.find(([, list]) => list.some(each => each.visible && each.hits.some(([, which]) => which === target)));
    const calls = data.turns.flatMap(turn => turn.calls).filter(call => call.target === target);
    const called = calls.some(call => !call.error && call.visible);
    const unread = calls.some(call => !call.error);
    const found = hit === undefined ? "missed: no search returned it" : hit[0] ? `found in turn ${hit[0]}` : "found before the first turn";
    const then = called ? "called" : unread ? "called, but no result was shown to the model" : calls.length ? "every call failed" : "never called";
    return make("li", { class: hit && called ? "" : "missed" },
      sign(Boolean(hit && called)), " ", code(`★ ${name}`), make("span", { class: "note" }, ` ${found}, ${then}`),
      others.length ? make("span", { class: "note" }, `; as good: ${others.join(", ")}`) : "");
  };
  const list = data.targets.map(entry);
  return section("Tools that the task needs", "plain",
    list.length ? make("ul", { class: "needed" }, list) : make("p", { class: "note" }, "None: it is to be answered without a call."));
}

// ---- Timeline

function timeline(data) {
  const ends = data.turns.flatMap(turn => [turn, ...turn.calls]).map(each => each.started + each.seconds);
  const total = Math.max(...ends);
  const tick = total ? niceStep(total) : 1;
  const scale = total
    ? { total, place: (_, started, length) => [(100 * started) / total, (100 * length) / total] }
    : { total, place: index => [(100 * index) / data.turns.length, 100 / data.turns.length] };
  const list = make("ol", { class: "timeline" }, bands(data).map(band => bandOf(band, data, scale)));
  list.style.setProperty("--tick", `${total ? (100 * tick) / total : 100 / data.turns.length}%`);
  return [
    make("p", { class: "note" }, total
      ? "Seconds since the episode began. Bars that lie under each other in time ran together."
      : "No time was simulated or measured: only the order is drawn, one column of equal width a turn."),
    legend(data, total),
    total ? axis(total, tick) : null,
    list,
  ].filter(Boolean);
}

/** About five ticks of 1, 2 or 5 times a power of ten. */
function niceStep(total) {
  const power = 10 ** Math.floor(Math.log10(total / 5));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => total / step <= 6);
}

function axis(total, tick) {
  const marks = [];
  for (let place = 0; place * tick <= total * 0.97; place++) {
    const mark = make("span", {}, number(Number((place * tick).toPrecision(6))) + (place ? "" : " s"));
    mark.style.setProperty("left", `${(100 * place * tick) / total}%`);
    marks.push(mark);
  }
  return make("div", { class: "axis", "aria-hidden": "true" }, make("div", {}, marks));
}

function legend(data, total) {
  const calls = data.turns.flatMap(turn => turn.calls);
  const entries = [
    ["model", total ? "the model’s own time" : "the model", true], ["search", "◆ search", data.turns.some(turn => turn.searches.length)],
    ["call", "call", calls.length], ["call failed", "✗ failed", calls.some(call => call.error)],
    ["", "⚡ injected fault", calls.some(call => call.injected)], ["", "×2 sent again", calls.some(call => call.attempts > 1)],
    ["call hidden", "◌ not shown to the model", calls.some(call => !call.visible)],
  ];
  return make("ul", { class: "legend", "aria-hidden": "true" },
    entries.filter(([, , there]) => there).map(([kind, label]) => make("li", {}, kind ? make("i", { class: `span ${kind}` }) : "", label)));
}

/** Turns in groups of one phase; a turn outside any phase stands alone. */
function bands(data) {
  const groups = [];
  data.turns.forEach((turn, index) => {
    const last = groups.at(-1);
    if (last && turn.phase && last.phase === turn.phase) last.turns.push(index);
    else groups.push({ phase: turn.phase, family: turn.family, turns: [index] });
  });
  return groups;
}

function bandOf({ phase, family, turns }, data, scale) {
  const lines = turns.map(index => lineOf(data.turns[index], index, scale));
  if (!phase) return make("li", { class: "band" }, make("ol", {}, lines));
  const span = turns.length > 1 ? `turns ${turns[0] + 1}–${turns.at(-1) + 1}` : `turn ${turns[0] + 1}`;
  const name = make("p", { class: "band-name" }, `${NAMES[family]} phase`, make("span", { class: "note" }, ` · ${span}`));
  return make("li", { class: `band ${family}` }, name, make("ol", {}, lines));
}

function lineOf(turn, index, scale) {
  const own = bar("model", scale.place(index, turn.started, turn.seconds), `model: ${seconds(turn.seconds)}`);
  const searched = turn.searches.length ? plural(turn.searches.length, "search", "searches") : "";
  const at = scale.total ? scale.place(index, turn.started + turn.seconds, 0) : [scale.place(index)[0] + scale.place(index)[1] / 2, 0];
  const marks = searched ? [bar("search", at, searched)] : [];
  const jump = make("button", { type: "button", class: "jump", click: () => focusTurn(index) }, `${index + 1} ${NAMES[turn.family]}`);
  const label = [jump, searched ? make("span", { class: "note" }, ` ${searched}`) : ""];
  const calls = turn.calls.map(call => {
    const notes = notesOf(call);
    const spoken = scale.total ? `${seconds(call.seconds)} from ${seconds(call.started)}` : "";
    const text = [call.name || "(unreadable)", spoken, ...notes.map(([, note]) => note)].filter(Boolean).join(", ");
    const kind = `call ${call.error ? "failed" : ""} ${call.visible ? "" : "hidden"}`;
    return track(call.name || "(unreadable)", bar(kind, scale.place(index, call.started, call.seconds), text, notes.map(([mark]) => mark).join(" ")), text);
  });
  const kind = turn.calls.length > 12 ? "tl-turn dense" : "tl-turn";
  return make("li", { class: kind }, track(label, [own, ...marks], scale.total ? `model ${seconds(turn.seconds)}` : ""), calls);
}

/** What is unusual about a call, as (mark, words). */
function notesOf(call) {
  return [
    call.error ? ["✗", `failed: ${call.error[0]}`] : null,
    call.injected ? ["⚡", "injected fault"] : null,
    call.attempts > 1 ? [`×${call.attempts}`, `sent ${call.attempts} times`] : null,
    call.visible ? null : ["◌", "not shown to the model"],
  ].filter(Boolean);
}

const track = (label, bars, spoken) =>
  make("div", { class: "tl-line" },
    make("span", { class: "tl-name", title: typeof label === "string" ? label : false }, label, spoken ? unseen(` ${spoken}`) : ""),
    make("span", { class: "track", "aria-hidden": "true" }, bars));

function bar(kind, [left, width], text, mark = "") {
  const element = make("span", { class: `span ${kind}`, title: text });
  element.style.setProperty("left", `${left}%`);
  element.style.setProperty("width", `${width}%`);
  if (!mark) return element;
  const end = left + width;
  const note = make("span", { class: end > 80 ? "marks before" : "marks" }, mark);
  note.style.setProperty("left", `${end > 80 ? left : end}%`);
  return [element, note];
}

// ---- Turns

function turnsOf(data) {
  const found = new Set(data.opening.filter(search => search.visible).flatMap(search => search.hits.map(([, which]) => which)));
  return data.turns.map((turn, index) => {
    for (const search of turn.searches) if (search.visible) search.hits.forEach(([, which]) => found.add(which));
    const missing = (data.targets ?? []).filter((_, which) => !found.has(which)).map(([name]) => name);
    return turnOf(turn, index, missing, data.targets);
  });
}

function turnOf(turn, index, missing, targets) {
  const sent = [turn.searches.length ? plural(turn.searches.length, "search", "searches") : "", turn.calls.length ? plural(turn.calls.length, "call") : ""];
  const what = sent.filter(Boolean).join(", ");
  const together = turn.searches.length + turn.calls.length > 1 ? " together" : "";
  const facts = [
    turn.tokens ? `${number(turn.tokens)} tokens` : "",
    turn.seconds ? `${seconds(turn.seconds)} from ${seconds(turn.started)}` : "",
    turn.formed ? "" : "not well formed",
  ].filter(Boolean);
  return make("li", { class: turn.family },
    make("h4", { tabindex: -1 }, `${index + 1}. ${NAMES[turn.family]}`, make("span", { class: "note" }, what ? ` · ${what}${together}` : "", facts.map(fact => ` · ${fact}`))),
    turn.think ? make("p", { class: "think", dir: "auto" }, turn.think) : null,
    planOf(turn),
    turn.searches.map(search => searchOf(search, targets)),
    turn.searches.length && missing.length
      ? make("p", { class: "note missing" }, "Needed and not found so far: ", missing.map((name, place) => [place ? ", " : "", code(name)]))
      : null,
    turn.calls.length ? make("div", { class: "calls" }, turn.calls.map(callOf)) : null,
    turn.problems.length ? make("ul", { class: "problems bad" }, turn.problems.map(problem => make("li", {}, problem))) : null,
    turn.notes.length ? fold([make("b", {}, `What the team said (${turn.notes.length})`)], () => notesOfTeam(turn.notes), "text") : null,
    folded("What the model wrote", turn.text),
    turn.observation ? folded("What it was shown then", turn.observation) : null);
}

const notesOfTeam = notes => make("ul", { class: "notes" }, notes.map(([role, text]) => make("li", {}, tag(role), " ", text)));

function searchOf(search, targets) {
  const hits = search.hits.map(([name, which], place) =>
    make("li", { class: which < 0 ? "" : "target" },
      make("span", { class: "rank", "aria-hidden": "true" }, place + 1), make("bdi", {}, name), which < 0 ? "" : " ★ needed",
      which >= 0 && targets && targets[which][0].toLowerCase() !== name.trim().toLowerCase() ? ` (as good as ${targets[which][0]})` : ""));
  return make("div", { class: "found" },
    search.slot ? [tag(search.slot), " "] : null, make("q", { dir: "auto" }, search.query),
    search.visible ? null : [" ", tag("◌ not shown to the model", "warn")],
    hits.length ? make("ol", { class: "hits" }, hits) : make("p", { class: "note" }, "Nothing was found."));
}

function callOf(call) {
  const ok = !call.error;
  const chips = [
    call.occurrence ? tag(`plan: ${call.occurrence}`) : null, call.backend ? tag(call.backend) : null,
    call.seconds ? tag(seconds(call.seconds)) : null, ...notesOf(call).slice(ok ? 0 : 1).map(([mark, note]) => tag(`${mark} ${note}`, "warn")),
  ];
  const references = Object.entries(call.references).map(([path, from]) => make("li", {}, code(path), " ← ", code(from)));
  return make("div", { class: "call" },
    make("p", {}, sign(ok), " ", code(call.name || "(unreadable)"), call.target < 0 ? "" : " ★"),
    make("p", { class: "tags" }, chips),
    folded("Arguments", call.arguments),
    references.length ? make("ul", { class: "references", "aria-label": "Taken from other calls" }, references) : null,
    ok ? folded("Result", call.result) : folded(call.error[0], call.error[1], "bad"));
}

// ---- Plans

function planOf(turn) {
  const plan = turn.plan;
  const rule = `a plan was ${turn.rule} here${turn.kept ? "" : ": the rule was broken"}`;
  const said = make("span", { class: turn.kept ? "note" : "note bad" }, ` · ${rule}`);
  if (!plan) return turn.kept ? null : make("p", { class: "plan-name" }, make("b", { class: "bad" }, "✗ No plan"), said);
  const name = make("p", { class: "plan-name" },
    make("b", {}, "Plan"), " ", tag(`${plan.accepted ? "✓ accepted" : "✗ not taken up"}: ${words(plan.kind)}`, plan.accepted ? "" : "warn"), said,
    plan.problem ? make("span", { class: "bad" }, ` · ${plan.problem}`) : "");
  const slots = plan.slots?.map(({ text, searched }) =>
    make("li", {}, plan.accepted ? make("b", { class: searched ? "good" : "open" }, searched ? "✓ " : "○ ") : "", text,
      plan.accepted ? make("span", { class: "note" }, searched ? " searched" : " never searched") : ""));
  return make("div", { class: "plan" }, name,
    slots ? make("ul", { class: "hits slots" }, slots) : null,
    plan.nodes ? [graphOf(plan), stepsOf(plan)] : null,
    folded("Plan as written", plan.body));
}

const stateOf = (node, plan) => (plan.accepted ? STATES[node.state] : ["", "this plan was not taken up"]);

/** The plan as a list, for those who cannot see the drawing or want to copy it. */
function stepsOf(plan) {
  return fold([make("b", {}, "Steps as a list")], () => {
    const layers = Array.from({ length: 1 + Math.max(...plan.nodes.map(node => node.layer)) }, (_, layer) => plan.nodes.filter(node => node.layer === layer));
    return make("ol", { class: "steps" }, layers.map(nodes => make("li", {}, make("ul", {}, nodes.map(node => {
      const before = plan.edges.filter(([, to]) => to === node.id).map(([from]) => from);
      return make("li", {}, code(node.id), `: ${stateOf(node, plan)[1]}`, before.length ? `; needs ${before.join(", ")}` : "");
    })))));
  }, "text");
}

const NODE = { width: 216, height: 30, across: 56, down: 10, margin: 8 };

/** Layers as columns, planned calls as nodes, dependencies as arrows. */
function graphOf(plan) {
  const heights = [];
  for (const node of plan.nodes) {
    heights[node.layer] ??= 0;
    node.row = heights[node.layer]++;
  }
  const most = Math.max(...heights);
  // Columns are centred, but not so far that a short one lies out of sight of a very long one.
  const shift = layer => (Math.min(most, 12) - Math.min(heights[layer], 12)) / 2;
  const place = node => ({
    x: NODE.margin + node.layer * (NODE.width + NODE.across),
    y: NODE.margin + (node.row + shift(node.layer)) * (NODE.height + NODE.down),
  });
  const width = 2 * NODE.margin + heights.length * (NODE.width + NODE.across) - NODE.across;
  const height = 2 * NODE.margin + most * (NODE.height + NODE.down) - NODE.down;
  const count = state => plan.nodes.filter(node => node.state === state).length;
  const hidden = count("hidden") ? `, ${count("hidden")} not shown to the model` : "";
  const states = plan.accepted ? `; ${count("done")} done, ${count("failed")} failed${hidden}, ${count("open")} never called` : "";
  const label = `Plan of ${plural(plan.nodes.length, "call")} in ${plural(heights.length, "step")} with ${plural(plan.edges.length, "dependency", "dependencies")}${states}`;
  const svg = draws("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    ...arrows(plan, place), ...plan.nodes.map(node => nodeOf(node, plan, place(node))));
  return [
    make("div", { class: "graph", tabindex: 0, role: "group", "aria-label": "Plan, can be scrolled" }, svg),
    make("p", { class: "note" }, label.replace("Plan of ", "")),
  ];
}

/** All arrows as two paths, which stays quick with thousands of them. */
function arrows(plan, place) {
  const byId = new Map(plan.nodes.map(node => [node.id, place(node)]));
  const ends = plan.edges.map(([from, to]) => {
    const [start, end] = [byId.get(from), byId.get(to)];
    return [start.x + NODE.width, start.y + NODE.height / 2, end.x, end.y + NODE.height / 2];
  });
  const lines = ends.map(([x, y, u, v]) => `M${x} ${y}C${x + 28} ${y} ${u - 34} ${v} ${u - 6} ${v}`);
  const heads = ends.map(([, , u, v]) => `M${u} ${v}l-7 -4v8z`);
  return [draws("path", { class: "edge", d: lines.join("") }), draws("path", { class: "head", d: heads.join("") })];
}

function nodeOf(node, plan, { x, y }) {
  const [mark, state] = stateOf(node, plan);
  const half = 13;
  const name = node.id.length > 2 * half ? `${node.id.slice(0, half - 1)}…${node.id.slice(-half)}` : node.id;
  return draws("g", { class: `node ${plan.accepted ? node.state : "idle"}`, transform: `translate(${x} ${y})` },
    draws("title", {}, `${node.id}: ${state}`),
    draws("rect", { width: NODE.width, height: NODE.height, rx: 6 }),
    draws("text", { class: "mark", x: 9, y: 19.5 }, mark),
    draws("text", { x: 25, y: 19.5 }, name));
}

function draws(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, printable(value));
  element.append(...children.map(child => (child instanceof Node ? child : printable(child))));
  return element;
}
