// The table of all agents. Rows keep their order; above 200 rows, only visible rows are in the page.

import { agentPath, find, h, redraw, renderAge, renderCount, renderState, renderUsd, secondsNow, show as showPage, svg } from "./core.js";
import { ask, buttons, readServer } from "./actions.js";
import { follow } from "./stream.js";

const MOST_PLAIN = 200;
const AROUND = 10;
const FILTERS = { "!": "needs you", "@": "running", "#": "waiting", "&": "stopped" };
const NEEDING = new Set(["needs you", "broken"]);
const COLUMNS = ["state", "agent", "what, or why", "cycle", "window", "spent", "loops", "seen"];

const KEYS = [["/", "filter"], ["!", "needs you"], ["@", "running"], ["j k", "move"], ["enter", "open"], ["space", "peek"]];
const ACTION_KEYS = [["a", "answer"], ["t", "tell"], ["s", "stop"], ["h", "hand off"], ["r", "restart"]];

let rows = new Map();
let shown = [];
let drawn = new Map();
let height = 0;
let isComplete = false;
let isSingle = true;
const filter = { text: "", state: "" };
let parts;

export async function show() {
  const query = new URLSearchParams(location.search);
  filter.text = query.get("q") || "";
  filter.state = query.get("state") || "";
  const { read_only: isReadOnly } = await readServer();
  draw(isReadOnly ? KEYS : [...KEYS, ...ACTION_KEYS]);
  follow(update);
  addEventListener("scroll", drawRows, { passive: true });
  addEventListener("resize", () => { height = 0; drawRows(); });
  addEventListener("keydown", onKey);
  setInterval(drawAges, 5000);
}

function draw(keys) {
  parts = {
    count: h("p", { class: "counts" }),
    strip: h("ul", { class: "strip" }),
    stripTitle: h("h2", { hidden: true }, "Needs you"),
    input: h("input", { type: "search", id: "filter", placeholder: "filter ( / )", "aria-label": "Filter agents", oninput: (event) => setFilter({ text: event.target.value }) }),
    states: h("p", { class: "filters" }),
    empty: h("div", { class: "empty", hidden: true }),
    above: h("tr", { role: "presentation", "aria-hidden": "true" }),
    below: h("tr", { role: "presentation", "aria-hidden": "true" }),
    body: h("tbody", { role: "rowgroup" }),
  };
  parts.input.value = filter.text;
  parts.table = h(
    "table",
    { role: "table", "aria-label": "Agents", class: "fleet" },
    h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, COLUMNS.map((name) => h("th", { role: "columnheader", scope: "col" }, name)))),
    parts.body,
  );
  showPage(
    "Agents – Rekindle",
    h("h1", { class: "hidden" }, "Agents"),
    parts.count,
    parts.stripTitle,
    parts.strip,
    h("div", { class: "bar-of-filters" }, parts.input, parts.states),
    parts.empty,
    parts.table,
    h("p", { class: "keys dim" }, "Keys: ", keys.map(([names, text]) => [names.split(" ").map((key) => [h("kbd", {}, key), " "]), text, ", "]), h("kbd", {}, "esc"), " show all"),
  );
  update(rows, new Set(), { isComplete: false });
}

function update(newRows, changed, { isComplete: complete, gone = [] }) {
  rows = newRows;
  isComplete = complete;
  isSingle = new Set([...rows.values()].map((row) => row.project)).size < 2;
  for (const key of [...changed, ...gone]) drawn.delete(key);
  select();
}

function setFilter(change) {
  Object.assign(filter, change);
  const query = new URLSearchParams();
  if (filter.text) query.set("q", filter.text);
  if (filter.state) query.set("state", filter.state);
  history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  select();
}

function select() {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  shown = [];
  const counts = {};
  for (const [key, row] of rows) {
    counts[row.state] = (counts[row.state] || 0) + 1;
    const isNamed = !filter.state || row.state === filter.state || (filter.state === "needs you" && row.needs);
    if (!isNamed) continue;
    const text = words.length ? `${key} ${row.harness} ${row.label || row.state} ${row.why || ""}`.toLowerCase() : "";
    if (words.every((word) => text.includes(word))) shown.push(key);
  }
  drawCounts(counts);
  drawStrip();
  drawEmpty();
  parts.table.setAttribute("aria-rowcount", shown.length + 1);
  drawRows();
}

function drawCounts(counts) {
  const order = ["needs you", "broken", "running", "waiting", "stopped", "done"];
  const spent = [...rows.values()].reduce((sum, row) => sum + (row.usd || 0), 0);
  const needing = (counts["needs you"] || 0) + (counts.broken || 0);
  const words = order.filter((state) => counts[state]).map((state) => `${counts[state]} ${state === "needs you" && counts[state] > 1 ? "need you" : state}`);
  parts.count.textContent = [words.join(" · "), spent ? `$${renderUsd(spent)} spent` : ""].filter(Boolean).join("   ");
  document.title = `${needing ? `(${needing}) ` : ""}Agents – Rekindle`;
  redraw(
    parts.states,
    ...Object.entries(FILTERS).map(([key, state]) =>
      h("button", { type: "button", "aria-pressed": String(filter.state === state), title: `key ${key}`, onclick: () => setFilter({ state: filter.state === state ? "" : state }) }, state),
    ),
  );
}

function drawStrip() {
  const needing = [...rows.values()].filter((row) => row.needs);
  parts.stripTitle.hidden = !needing.length;
  const items = needing.slice(0, 20).map((row) =>
    h(
      "li",
      { class: "need" },
      linkTo(row),
      h("span", { class: "why" }, isAsking(row) ? renderCount(row.questions, "open question") : row.why || row.label || row.state),
      row.seen && h("span", { class: "dim" }, `for ${renderAge(secondsNow() - row.seen)}`),
      h("span", { class: "actions" }, isAsking(row) && h("a", { href: agentPath(row.project, row.agent) }, "see it and answer"), buttons(isProject(row) || isAsking(row) ? [] : row.questions || row.state === "needs you" ? ["answer", "restart"] : ["restart"], about(row))),
    ),
  );
  if (needing.length > items.length) items.push(h("li", {}, h("a", { href: "/?state=needs+you" }, `and ${needing.length - items.length} more`)));
  redraw(parts.strip, ...items);
}

const about = (row) => ({ project: row.project, agent: row.agent, question: row.why });
/** Return whether an agent asks something, although it works on. Its own page shows the question. */
const isAsking = (row) => row.questions > 0 && row.state !== "needs you";
/** Return whether a row stands for a project that cannot be read, and so is not an agent. */
const isProject = (row) => row.agent === "-";
const nameOf = (row) => (isProject(row) ? row.project : isSingle ? row.agent : `${row.project}/${row.agent}`);
const linkTo = (row) => (isProject(row) ? h("strong", {}, nameOf(row)) : h("a", { href: agentPath(row.project, row.agent) }, nameOf(row)));

function drawEmpty() {
  parts.empty.hidden = shown.length > 0;
  parts.table.hidden = shown.length === 0;
  if (shown.length) return;
  if (rows.size) {
    parts.empty.replaceChildren(h("p", {}, "No agent matches the filter."), h("button", { type: "button", onclick: clearFilter }, "show all agents"));
  } else if (isComplete) {
    parts.empty.replaceChildren(h("p", {}, "There are no agents yet. These two commands create one and run it:"), h("pre", {}, h("code", {}, "rekindle init AGENT\nrekindle up AGENT")));
  } else parts.empty.replaceChildren(h("p", {}, "Reading the agents …"));
}

function clearFilter() {
  parts.input.value = "";
  setFilter({ text: "", state: "" });
}

/** Draw all rows, or only those in the window if there are many. */
function drawRows() {
  const isMany = shown.length > MOST_PLAIN;
  if (isMany && !height) {
    parts.body.replaceChildren(rowOf(shown[0], 0));
    height = parts.body.firstChild.getBoundingClientRect().height || 44;
  }
  let [first, last] = [0, shown.length];
  if (isMany) {
    const start = parts.body.getBoundingClientRect().top;
    first = Math.max(0, Math.min(shown.length - 1, Math.floor(-start / height) - AROUND));
    last = Math.min(shown.length, first + Math.ceil(innerHeight / height) + 2 * AROUND);
  }
  const visible = shown.slice(first, last).map((key, place) => rowOf(key, first + place));
  parts.above.style.height = `${first * height}px`;
  parts.below.style.height = `${(shown.length - last) * height}px`;
  const wanted = isMany ? [parts.above, ...visible, parts.below] : visible;
  replaceRows(wanted);
  if (isMany && drawn.size > 2000) drawn = new Map(shown.slice(first, last).map((key) => [key, drawn.get(key)]));
}

/** Replace the rows that differ, so that the focus stays where it is. */
function replaceRows(wanted) {
  const focused = document.activeElement?.closest?.("tr")?.dataset.key;
  const keep = new Set(wanted);
  for (const child of [...parts.body.children]) if (!keep.has(child)) child.remove();
  wanted.forEach((row, place) => {
    if (parts.body.children[place] !== row) parts.body.insertBefore(row, parts.body.children[place] || null);
  });
  if (focused && !parts.body.contains(document.activeElement)) drawn.get(focused)?.querySelector("a")?.focus({ preventScroll: true });
}

function rowOf(key, place) {
  let row = drawn.get(key);
  if (!row) {
    row = makeRow(key, rows.get(key));
    drawn.set(key, row);
  }
  row.setAttribute("aria-rowindex", place + 2);
  return row;
}

function makeRow(key, row) {
  const cell = (name, ...children) => h("td", { role: "cell", class: name, "data-label": name }, ...children);
  return h(
    "tr",
    { role: "row", "data-key": key, class: row.needs ? "needs" : null },
    cell("state-cell", renderState(row)),
    h("th", { role: "rowheader", scope: "row", class: "agent" }, linkTo(row), h("span", { class: "dim harness" }, ` ${row.harness || ""}`)),
    cell("what", h("span", { title: row.why || row.next || "" }, row.why || row.next || "")),
    cell("cycle", row.cycle ? `${row.done || 0}${row.of ? `/${row.of}` : ""}` : "–"),
    cell("window", renderWindow(row)),
    cell("spent", renderSpent(row)),
    cell("loops", `${row.loops || 0}${row.stale ? ` · ${row.stale} stale` : ""}`),
    cell("seen", row.seen ? h("time", { "data-seen": row.seen }, renderAge(secondsNow() - row.seen)) : "never"),
  );
}

const guess = (row, name) => (row.guessed?.includes(name) ? "~" : "");

function renderWindow(row) {
  if (row.window === undefined) return "?";
  const bar = svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": "true" }, svg("rect", { class: "bar-all", width: 100, height: 10 }), svg("rect", { class: "bar-used", width: Math.min(100, row.window), height: 10 }));
  return [bar, ` ${guess(row, "window")}${Math.round(row.window)} %`];
}

function renderSpent(row) {
  const cap = row.cap ? `/${row.cap}` : "";
  if (row.usd !== undefined) return `${guess(row, "usd")}$${renderUsd(row.usd)}${cap}`;
  if (row.tokens) return `${guess(row, "tokens")}${Intl.NumberFormat("en", { notation: "compact" }).format(row.tokens)} tokens`;
  return `?${cap}`;
}

function drawAges() {
  for (const time of parts.body.querySelectorAll("time[data-seen]")) {
    const age = renderAge(secondsNow() - Number(time.dataset.seen));
    if (time.textContent !== age) time.textContent = age;
  }
}

function onKey(event) {
  if (find("dialog").open || event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches?.("input, textarea, select");
  if (event.key === "Escape") { if (isTyping || filter.text || filter.state) clearFilter(); return; }
  if (isTyping) return;
  if (event.key === "/") { event.preventDefault(); parts.input.focus(); return; }
  if (event.key in FILTERS) { setFilter({ state: filter.state === FILTERS[event.key] ? "" : FILTERS[event.key] }); return; }
  const key = document.activeElement?.closest?.("tr")?.dataset.key;
  if (event.key === "j" || event.key === "k") { move(key, event.key === "j" ? 1 : -1); return; }
  if (event.key === " " && rows.has(key)) { event.preventDefault(); peek(rows.get(key)); return; }
  const action = { a: "answer", t: "tell", s: "stop", h: "hand off", r: "restart" }[event.key];
  if (action && rows.has(key)) { event.preventDefault(); ask(action, about(rows.get(key))); }
}

/** Show all that the row says about an agent, without leaving the table. */
function peek(row) {
  const dialog = find("dialog");
  const facts = { state: row.label || row.state, why: row.why, next: row.next, harness: row.harness, project: row.project, "open questions": row.questions };
  dialog.replaceChildren(
    h("h2", { id: "dialog-title" }, row.agent),
    h("dl", {}, Object.entries(facts).filter(([, value]) => value).map(([name, value]) => [h("dt", { class: "dim" }, name), h("dd", {}, value)])),
    h("p", { class: "actions" }, h("a", { href: agentPath(row.project, row.agent) }, "open"), h("button", { type: "button", onclick: () => dialog.close() }, "close")),
  );
  dialog.showModal();
}

function move(from, step) {
  const agents = shown.filter((key) => !isProject(rows.get(key)));
  const key = agents[Math.max(0, Math.min(agents.length - 1, agents.indexOf(from) + step))];
  if (!key) return;
  if (shown.length > MOST_PLAIN) {
    const top = parts.body.getBoundingClientRect().top + scrollY + shown.indexOf(key) * height;
    if (top < scrollY || top + height > scrollY + innerHeight) scrollTo(0, top - innerHeight / 2);
    drawRows();
  }
  drawn.get(key)?.querySelector("a")?.focus();
}
