// Elements, requests and formats that all pages share. Text from agents is only ever set as text.

const TOKEN = "rekindle.session";

/** Create an element. Properties that start with "on" are listeners, the others attributes. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** Create an SVG element. */
export function svg(tag, properties = {}, ...children) {
  return fill(document.createElementNS("http://www.w3.org/2000/svg", tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const find = (id) => document.getElementById(id);

export class Refusal extends Error {
  constructor(status, message, hint) {
    super(message);
    this.status = status;
    this.hint = hint || "";
  }
}

/** Call the server. With a body, the request is a POST. */
export async function call(path, body, more = {}) {
  const headers = { Authorization: `Bearer ${localStorage.getItem(TOKEN) || ""}`, ...more.headers };
  const options = { headers, cache: "no-store", credentials: "omit", signal: more.signal };
  if (body !== undefined) {
    headers["Content-Type"] = "application/json";
    Object.assign(options, { method: "POST", body: JSON.stringify(body) });
  }
  const response = await fetch(path, options).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "the server does not answer", "start `rekindle ui` again, and open its link");
  });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  if (response.status === 401 && (path !== "/api/session" || !localStorage.getItem(TOKEN))) showLogin(told);
  throw new Refusal(response.status, told.error || `the server answered ${response.status}`, told.hint);
}

export async function read(path, fields = {}) {
  const query = new URLSearchParams(Object.entries(fields).filter(([, value]) => value !== ""));
  const text = query.toString();
  return (await call(text ? `${path}?${text}` : path)).json();
}

/** Exchange the token of a link for a session token, and remove it from the address. */
export async function openLink() {
  const link = location.hash.slice(1);
  history.replaceState(null, "", "/");
  const answer = await call("/api/session", { link }).catch((error) => {
    if (!localStorage.getItem(TOKEN)) throw error;
  });
  if (answer) localStorage.setItem(TOKEN, (await answer.json()).session);
}

let isLoggedOut = false;

// Another tab has opened a new link.
addEventListener("storage", (event) => isLoggedOut && event.key === TOKEN && location.reload());

function showLogin(told) {
  if (isLoggedOut) return;
  isLoggedOut = true;
  document.body.classList.add("logged-out");
  show(
    "Rekindle",
    h("h1", {}, "This page needs a new link"),
    h("p", {}, told.error === "the link has expired" ? "The link has expired or was already used." : "The server was restarted, or this browser has not been used with it yet."),
    h("p", {}, "Run this command, then open the link that it prints:"),
    h("pre", {}, h("code", {}, "rekindle ui --link")),
  );
}

/** Replace an element's children, and keep the focus on the same link or button. */
export function redraw(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement : null;
  const identify = (one) => [one.tagName, one.id || one.textContent, one.dataset.about, one.href].join("\n");
  place.replaceChildren(...children);
  if (!focused || place.contains(document.activeElement)) return;
  const same = [...place.querySelectorAll(focused.tagName)].find((one) => identify(one) === identify(focused));
  same?.focus({ preventScroll: true });
}

export function show(title, ...children) {
  document.title = title;
  find("main").replaceChildren(...children.filter(Boolean));
}

export function showError(error) {
  if (isLoggedOut) return;
  show("Rekindle", h("h1", {}, "This does not work"), h("p", {}, error.message), error.hint && h("p", {}, `→ ${error.hint}`));
}

/** Announce a message below the page. */
export function tell(text, isBad = false) {
  const told = find("told");
  told.textContent = text;
  told.className = isBad ? "bad" : "";
}

const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];

export function renderAge(seconds) {
  const [size, unit] = UNITS.find(([one]) => seconds >= one) || UNITS[3];
  return `${Math.max(0, Math.floor(seconds / size))} ${unit}`;
}

export const secondsNow = () => Date.now() / 1000;
export const renderUsd = (usd) => usd.toFixed(2);
export const agentPath = (project, agent) => `/a/${encodeURIComponent(project)}/${encodeURIComponent(agent)}`;
export const stateClass = (state) => `state-${state.replace(" ", "-")}`;

export const MARKS = { running: "●", "needs you": "◐", waiting: "◔", stopped: "○", done: "✓", broken: "✕" };

export function renderState(row) {
  return h("span", { class: `state ${stateClass(row.state)}` }, h("span", { "aria-hidden": "true" }, `${MARKS[row.state] || "?"} `), row.label || row.state);
}

const pad = (number) => String(number).padStart(2, "0");

/** Return the time of day, such as 07:02. */
export function renderClock(time) {
  const moment = new Date(time);
  return `${pad(moment.getHours())}:${pad(moment.getMinutes())}`;
}

/** Return the date and time, such as 2026-01-31 07:02. */
export function renderMoment(time) {
  const moment = new Date(time);
  return `${moment.getFullYear()}-${pad(moment.getMonth() + 1)}-${pad(moment.getDate())} ${renderClock(time)}`;
}

export const renderCount = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;
