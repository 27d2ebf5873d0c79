// One agent: its state, its questions, the last night, its documents and its output.

import { agentPath, find, h, read, redraw, renderAge, renderCount, renderMoment, renderState, renderUsd, secondsNow, show as showPage, tell } from "./core.js";
import { ask, buttons } from "./actions.js";
import { drawLines, drawTimeline } from "./night.js";
import { drawCharts } from "./charts.js";
import { follow, keyOf } from "./stream.js";
import { renderHit } from "./search.js";

const SPANS = { "last 12 hours": 12, "last 24 hours": 24, "last 3 days": 72, "last 7 days": 168 };
const TABS = { relay: drawRelay, loops: drawLoops, decisions: drawDecisions, transcript: drawTranscript, output: drawOutput };
const BY_STATE = {
  running: ["tell", "hand off", "restart", "fresh restart", "stop"],
  waiting: ["tell", "restart", "fresh restart", "stop"],
  "needs you": ["answer", "tell", "restart", "fresh restart", "stop"],
  broken: ["restart"],
  stopped: ["tell", "start"],
  done: ["tell", "start"],
};

let names;
let parts;
let agent = null;
let night = null;
let hours = 12;
let tab = "";
let timer = null;

export async function show(project, name) {
  names = { project, agent: name };
  tab = location.hash.slice(1) in TABS ? location.hash.slice(1) : "relay";
  parts = {
    head: h("div", { class: "agent-head" }),
    questions: h("div", {}),
    timeline: h("div", { class: "timeline" }),
    charts: h("div", { class: "charts" }),
    lines: h("ol", { class: "lines" }),
    tabs: h("div", { role: "tablist", class: "tabs", "aria-label": "Details" }),
    panel: h("div", { role: "tabpanel", id: "panel", tabindex: "0", "aria-labelledby": `tab-${tab}` }),
  };
  const range = h("select", { "aria-label": "Period", onchange: (event) => { hours = Number(event.target.value); readNight(); } }, Object.entries(SPANS).map(([text, value]) => h("option", { value }, text)));
  showPage(
    `${name} – Rekindle`,
    parts.head,
    parts.questions,
    h("div", { class: "title-row" }, h("h2", {}, "What happened"), range),
    parts.timeline,
    parts.charts,
    parts.lines,
    parts.tabs,
    parts.panel,
  );
  await readAgent();
  drawTabs();
  await readNight();
  follow((rows, changed) => {
    const key = keyOf(names);
    if (changed.has(key) && rows.get(key)) refreshSoon();
  });
  addEventListener("resize", () => night && drawNight());
}

/** Read the agent again, at most once per two seconds. */
function refreshSoon() {
  if (timer) return;
  timer = setTimeout(() => {
    timer = null;
    refresh(() => tab !== "transcript" && !find("dialog").open && !parts.panel.contains(document.activeElement));
  }, 2000);
}

async function refresh(isFree = () => true) {
  try {
    await Promise.all([readAgent(), readNight()]);
    if (isFree()) drawTabs();
  } catch (error) {
    tell(error.message, true);
  }
}

async function readAgent() {
  agent = await read("/api/agent", names);
  drawHead();
  drawQuestions();
}

async function readNight() {
  night = await read("/api/night", { ...names, hours });
  drawNight();
}

function drawNight() {
  drawTimeline(parts.timeline, night);
  drawCharts(parts.charts, night);
  drawLines(parts.lines, night);
}

const about = (more = {}) => ({ ...names, ...more, done: () => refresh() });

function drawHead() {
  const { row } = agent;
  const age = row.last_active ? `, seen ${renderAge(secondsNow() - Date.parse(row.last_active) / 1000)} ago` : "";
  redraw(
    parts.head,
    h("div", { class: "title-row" }, h("h1", {}, row.agent, h("span", { class: "dim harness" }, ` ${row.harness} in ${names.project}`)), h("span", { class: "actions" }, buttons([...(BY_STATE[row.state] || []), ...(row.spend.usd_cap ? ["raise budget"] : [])], about({ question: row.reason })))),
    h("p", {}, renderState(row), row.reason ? `: ${row.reason}` : "", h("span", { class: "dim" }, age)),
    row.next_action && h("p", {}, h("strong", {}, "next: "), row.next_action),
    h("p", { class: "dim" }, listFacts(row).join(" · ")),
  );
}

function listFacts(row) {
  const { spend, window: used } = row;
  const mark = (figure) => (figure.source === "estimated" ? "~" : "");
  const facts = [`cycle ${row.cycle}${row.cycles_of ? `, ${row.cycles_done} of ${row.cycles_of} done` : ""}`];
  if (used.percent.value !== null) facts.push(`window ${mark(used.percent)}${Math.round(used.percent.value)} % of ${used.size.toLocaleString("en")} tokens`);
  if (spend.usd.value !== null) facts.push(`${mark(spend.usd)}$${renderUsd(spend.usd.value)}${spend.usd_cap ? ` of $${spend.usd_cap}` : ""}`);
  if (spend.tokens.value) facts.push(`${mark(spend.tokens)}${spend.tokens.value.toLocaleString("en")} tokens`);
  facts.push(`${renderCount(row.open_loops, "open loop")}${row.stale_loops ? `, ${row.stale_loops} stale` : ""}`);
  if (row.refused) facts.push(renderCount(row.refused, "refused call"));
  return facts;
}

function drawQuestions() {
  redraw(
    parts.questions,
    ...agent.questions.map((question) =>
      h(
        "section",
        { class: "question" },
        h("h2", {}, `Question ${question.id}`),
        h("blockquote", {}, question.text),
        question.request && h("pre", {}, question.request),
        h("p", { class: "actions" }, question.choices.flatMap((choice) => choiceButton(question, choice)), buttons(["answer"], about({ target: question.id, question: question.text }))),
        question.deadline && h("p", { class: "dim" }, `Without an answer, ${question.default} applies at ${renderMoment(question.deadline)}.`),
      ),
    ),
  );
}

/** A button that answers a question with one of its choices. */
function choiceButton(question, choice) {
  if (choice === "TEXT") return [];
  const more = choice === "raise AMOUNT" ? { text: "raise " } : { choice };
  const [button] = buttons(["answer"], about({ target: question.id, question: question.text, ...more }));
  if (button) button.textContent = choice === "raise AMOUNT" ? "raise the budget" : choice;
  return button ? [button] : [];
}

function drawTabs() {
  const counts = { loops: agent.loops.length, decisions: agent.decisions.length };
  const all = Object.keys(TABS);
  const select = (name) => {
    tab = name;
    history.replaceState(null, "", `${agentPath(names.project, names.agent)}#${name}`);
    drawTabs();
    find(`tab-${name}`).focus();
  };
  const onKey = (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step) select(all[(all.indexOf(tab) + step + all.length) % all.length]);
  };
  redraw(
    parts.tabs,
    ...all.map((name) =>
      h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(name === tab), "aria-controls": "panel", tabindex: name === tab ? 0 : -1, onclick: () => select(name), onkeydown: onKey }, `${name}${counts[name] ? ` ${counts[name]}` : ""}`),
    ),
  );
  parts.panel.setAttribute("aria-labelledby", `tab-${tab}`);
  drawTab();
}

function drawTab() {
  Promise.resolve(TABS[tab](parts.panel)).catch((error) => parts.panel.replaceChildren(h("p", {}, error.message), error.hint ? h("p", {}, `→ ${error.hint}`) : ""));
}

function drawRelay(panel) {
  const { relay } = agent;
  if (!relay.text) return panel.replaceChildren(h("p", {}, "This agent has no relay yet. Its first cycle writes one."));
  const result = h("div", {});
  const [older, newer] = ["older", "newer"].map((name, place) => {
    const choice = h("select", { "aria-label": `${name} relay` }, relay.revisions.map((one) => h("option", { value: one.seq }, `${one.seq} · ${renderMoment(one.ts)} · ${one.by}`)));
    choice.selectedIndex = Math.min(1 - place, relay.revisions.length - 1);
    return choice;
  });
  const compare = async () => {
    const { diff } = await read("/api/diff", { ...names, older: older.value, newer: newer.value });
    result.replaceChildren(renderDiff(diff));
  };
  const edit = { text: relay.text, base: relay.base, diff: (newText) => renderEdit(relay.text, newText) };
  panel.replaceChildren(
    relay.revisions.length > 1 ? h("p", { class: "actions" }, "Compare ", older, " with ", newer, h("button", { type: "button", onclick: () => compare().catch((error) => tell(error.message, true)) }, "show the difference")) : "",
    result,
    h("div", { class: "title-row" }, h("h3", {}, "Current relay"), h("span", {}, buttons(["edit relay"], about(edit)))),
    h("pre", {}, relay.text),
  );
}

export function renderDiff(lines) {
  if (!lines.length) return h("p", {}, "These relays are the same.");
  const kind = (line, place) => (line.startsWith("@@") || (place < 2 && /^(---|\+\+\+) relay /.test(line)) ? "at" : { "+": "plus", "-": "minus" }[line[0]]);
  return h("pre", { class: "diff" }, lines.map((line, place) => h("span", { class: kind(line, place) || null }, line || " ")));
}

/** Show which lines an edit adds and removes, whenever the text changes. */
function renderEdit(before, newText) {
  const result = h("div", {});
  const update = () => {
    const [old, changed] = [before.split("\n"), newText().split("\n")];
    const removed = old.filter((line) => !changed.includes(line)).map((line) => `-${line}`);
    const added = changed.filter((line) => !old.includes(line)).map((line) => `+${line}`);
    result.replaceChildren(removed.length + added.length ? renderDiff([...removed, ...added]) : h("p", { class: "dim" }, "No changes yet."));
  };
  setTimeout(() => {
    update();
    find("action-text")?.addEventListener("input", update);
  });
  return result;
}

function drawLoops(panel) {
  panel.replaceChildren(
    agent.loops.length ? "" : h("p", {}, "There are no open loops."),
    h("ul", { class: "plain" }, agent.loops.map((loop) => h("li", {}, h("strong", {}, loop.id), `: ${loop.text} `, h("span", { class: "dim" }, `since ${loop.added}${loop.stale ? ", stale" : ""} `), buttons(["resolve"], about({ target: loop.id, question: loop.text }))))),
    agent.resolved.length ? h("h3", {}, "Recently resolved") : "",
    h("ul", { class: "plain" }, agent.resolved.map((loop) => h("li", {}, h("strong", {}, loop.id), `: ${loop.reason}`))),
  );
}

function drawDecisions(panel) {
  panel.replaceChildren(agent.decisions.length ? h("ul", { class: "plain" }, agent.decisions.map((decision) => h("li", {}, decision))) : h("p", {}, "The relay contains no decisions."));
}

function drawTranscript(panel) {
  const input = h("input", { type: "search", "aria-label": "Words in the transcripts", placeholder: "words" });
  const found = h("ol", { class: "hits" });
  const search = async (event) => {
    event.preventDefault();
    found.replaceChildren(h("li", {}, "Searching …"));
    try {
      const { hits } = await read("/api/search", { project: names.project, agent: names.agent, words: input.value });
      found.replaceChildren(...(hits.length ? hits.map(renderHit) : [h("li", {}, "Nothing found.")]));
    } catch (error) {
      found.replaceChildren(h("li", {}, `${error.message} ${error.hint || ""}`));
    }
  };
  panel.replaceChildren(h("form", { onsubmit: search, class: "actions" }, input, h("button", { type: "submit" }, "search")), found);
}

let watching = null;

async function drawOutput(panel) {
  const { lines } = await read("/api/output", names);
  if (tab !== "output") return;
  const before = panel.querySelector(".output");
  const isAtEnd = !before || before.scrollTop + before.clientHeight > before.scrollHeight - 40;
  // The element stays, so that it keeps the focus and its place.
  const output = before || h("pre", { class: "output", tabindex: 0, "aria-label": "Output" });
  if (!before || !lines.length) panel.replaceChildren(lines.length ? output : h("p", {}, "There is no output yet."));
  if (output.textContent !== lines.join("\n")) output.textContent = lines.join("\n");
  if (isAtEnd) output.scrollTop = output.scrollHeight;
  clearTimeout(watching);
  watching = setTimeout(() => tab === "output" && !document.hidden && drawTab(), 3000);
}

addEventListener("visibilitychange", () => tab === "output" && !document.hidden && drawTab());
addEventListener("keydown", (event) => {
  if (!agent || find("dialog").open || event.ctrlKey || event.metaKey || event.target.matches?.("input, textarea, select")) return;
  const action = { a: "answer", s: "stop", h: "hand off", r: "restart" }[event.key];
  if (action) { event.preventDefault(); ask(action, about({ question: agent.row.reason })); }
});
