// Rows of all agents. One tab reads the stream, and passes it on to the other tabs of this browser,
// because a browser opens at most six connections to a server.

import { call, find, renderAge, renderClock, secondsNow } from "./core.js";

const QUIET_SECONDS = 20;
const rows = new Map();
const channel = "BroadcastChannel" in window ? new BroadcastChannel("rekindle") : null;
const listeners = [];
let isComplete = false;
let isLeader = false;
let heard = null;
let isLost = false;
let cursor = "";

/** Call a function with all rows and the changed keys whenever rows change. */
export function follow(listener) {
  listeners.push(listener);
  if (listeners.length > 1) return;
  if (channel) channel.onmessage = ({ data }) => receive(data);
  if (navigator.locks) {
    channel?.postMessage({ kind: "want" });
    navigator.locks.request("rekindle-stream", lead);
  } else lead();
  setInterval(showLife, 1000);
}

function receive(message) {
  if (message.kind === "want") {
    if (isLeader && heard) channel.postMessage({ kind: "rows", event: { whole: true, complete: isComplete, rows: [...rows.values()], gone: [] } });
  } else if (!isLeader) {
    heard = secondsNow();
    if (message.kind === "rows") apply(message.event);
  }
}

async function lead() {
  isLeader = true;
  for (let pause = 1; ; pause = Math.min(pause * 2, 5)) {
    try {
      const response = await call("/api/stream", undefined, { headers: cursor ? { "Last-Event-ID": cursor } : {} });
      pause = 1;
      isLost = false;
      await readEvents(response.body.getReader());
    } catch (error) {
      if (error.status === 401) return;
    }
    isLost = true;
    await new Promise((resolve) => setTimeout(resolve, pause * 1000));
  }
}

async function readEvents(reader) {
  const decoder = new TextDecoder();
  let parts = [];
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    heard = secondsNow();
    const text = decoder.decode(value, { stream: true });
    parts.push(text);
    if (!text.includes("\n\n") && !text.startsWith("\n")) continue;
    const events = parts.join("").split("\n\n");
    parts = [events.pop()];
    events.forEach(readEvent);
  }
}

function readEvent(text) {
  if (text.startsWith(":")) {
    channel?.postMessage({ kind: "alive" });
    return;
  }
  const fields = Object.fromEntries(text.split("\n").map((line) => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 2)]));
  cursor = fields.id;
  const event = JSON.parse(fields.data);
  channel?.postMessage({ kind: "rows", event });
  apply(event);
}

export const keyOf = (row) => `${row.project}/${row.agent}`;

function apply(event) {
  const changed = new Set(event.rows.map(keyOf));
  const gone = event.whole ? [...rows.keys()].filter((key) => !changed.has(key)) : event.gone;
  for (const row of event.rows) rows.set(keyOf(row), row);
  for (const key of gone) rows.delete(key);
  isComplete = isComplete || event.complete;
  for (const listener of listeners) listener(rows, changed, { isComplete, gone });
  showLife();
}

/** Say how current the page is, and warn if the server is silent. */
function showLife() {
  const age = heard === null ? 0 : secondsNow() - heard;
  const isStale = age > QUIET_SECONDS;
  document.body.classList.toggle("stale", isStale);
  const banner = find("banner");
  banner.hidden = !isStale;
  if (isStale) {
    const text = `No updates for ${renderAge(age)}. This page shows the state at ${renderClock(heard * 1000)}. Check that rekindle ui still runs.`;
    if (banner.textContent !== text) banner.textContent = text;
  }
  const live = heard === null || (isLost && !isStale) ? "connecting …" : isStale ? "" : "live";
  if (find("live").textContent !== live) find("live").textContent = live;
}
