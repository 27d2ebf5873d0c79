// The timeline of a night: spans and marks as a picture, and the same events as lines.

import { h, renderClock as clock, svg } from "./core.js";

const LEFT = 80;
const ROW = 26;
const GLYPH = 14;
const LANES = ["session", "waits", "needs you"];
const LANE_OF = { session: 0, wait: 1 }; // all others need a person
const LEGEND = "green: working · red: crashed or hung · amber: waits for a limit or an outage · grey: waits for you · ▪ progress · ▫ no progress";
const MARK_ROWS = [
  ["events", ["crash", "hang", "repeat", "refused", "question", "answer"]],
  ["handoffs", ["handoff", "compaction"]],
  ["relays", ["relay"]],
  ["cycles", ["cycle"]],
];
const GLYPHS = { crash: "✕", handoff: "▲", hang: "⚠", compaction: "▽", relay: "◆", cycle: "▪", question: "?", answer: "☺", refused: "⊘" };

/** Draw the picture. Narrow screens show only the lines below it. */
export function drawTimeline(place, night) {
  const width = Math.max(300, place.clientWidth || 1000);
  const [start, end] = [Date.parse(night.since), Date.parse(night.until)];
  const x = (time) => LEFT + ((Math.min(Math.max(Date.parse(time), start), end) - start) / (end - start)) * (width - LEFT - 8);
  const rows = [...LANES, ...MARK_ROWS.map(([name]) => name)];
  const top = 22;
  const height = top + rows.length * ROW + 6;
  const parts = rows.map((name, row) => svg("text", { class: "lane", x: 0, y: top + row * ROW + 17 }, name));
  for (const tick of listTicks(start, end)) {
    const at = x(tick);
    parts.push(svg("line", { class: "tick", x1: at, x2: at, y1: top - 4, y2: height }), svg("text", { class: "hour", x: at, y: 12, "text-anchor": "middle" }, clock(tick)));
  }
  for (const span of night.spans) {
    const row = LANE_OF[span.lane] ?? 2;
    const [from, to] = [x(span.start), x(span.end || night.until)];
    const text = `${span.lane} ${clock(span.start)}–${span.end ? clock(span.end) : ""} ${span.text}`;
    const isBad = ["crash", "hang"].includes(span.exit);
    parts.push(svg("rect", { class: `span span-${span.lane}${isBad ? " span-bad" : ""}`, x: from, y: top + row * ROW + 4, width: Math.max(2, to - from - 1), height: ROW - 10, rx: 2 }, svg("title", {}, text)));
  }
  const last = {}; // marks of the same moment are drawn side by side
  for (const mark of night.marks) {
    const row = MARK_ROWS.findIndex(([, kinds]) => kinds.includes(mark.kind));
    if (row < 0) continue; // the wait's own span shows it
    const text = [clock(mark.at), mark.kind, mark.verdict, mark.percent ? `${Math.round(mark.percent)} %` : "", mark.text].filter(Boolean).join(" ");
    const glyph = mark.kind === "cycle" ? (["progress", ""].includes(mark.verdict) ? "▪" : "▫") : GLYPHS[mark.kind];
    const at = (last[row] = Math.max(x(mark.at), (last[row] ?? -GLYPH) + GLYPH));
    parts.push(svg("text", { class: `mark mark-${mark.kind}`, x: at, y: top + (row + LANES.length) * ROW + 17, "text-anchor": "middle" }, glyph, svg("title", {}, text)));
  }
  const summary = `Timeline from ${clock(start)} to ${clock(end)}. The list below describes the same events.`;
  place.replaceChildren(svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": summary }, parts), h("p", { class: "dim legend" }, LEGEND));
}

/** Return times of day in the period, at most a dozen. */
function* listTicks(start, end) {
  const hour = 3600_000;
  const step = [1, 2, 3, 6, 12, 24].find((count) => (end - start) / (count * hour) <= 13) * hour;
  const zone = new Date(start).getTimezoneOffset() * 60_000;
  for (let time = Math.ceil((start - zone) / step) * step + zone; time < end; time += step) yield new Date(time).toISOString();
}

export function drawLines(list, night) {
  if (!night.lines.length) {
    list.replaceChildren(h("li", { class: "dim" }, "Nothing happened in this period."));
    return;
  }
  const day = (time) => new Date(time).toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" });
  let before = day(night.since);
  const items = [];
  for (const line of night.lines) {
    if (day(line.at) !== before) items.push(h("li", { class: "day" }, (before = day(line.at))));
    const place = line.first === line.last ? `event ${line.first}` : `events ${line.first}–${line.last}`;
    items.push(h("li", { class: `line-${line.kind}` }, h("time", { datetime: line.at }, clock(line.at)), h("span", { class: "glyph", "aria-hidden": "true" }, line.glyph), h("span", {}, line.text), h("span", { class: "dim place" }, place)));
  }
  list.replaceChildren(...items);
}
