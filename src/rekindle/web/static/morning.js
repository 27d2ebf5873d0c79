// The morning page: what each agent has done, and what waits for you.

import { agentPath, h, read, show as showPage, stateClass } from "./core.js";
import { follow } from "./stream.js";

export async function show() {
  const { pages } = await read("/api/morning");
  showPage(
    "Morning – Rekindle",
    h("h1", {}, "Morning"),
    pages.length ? "" : h("p", {}, "There are no projects yet."),
    ...pages.map((page) => renderProject(page)),
  );
  follow(() => {});
}

function renderProject({ name, page, error, hint }) {
  if (error) return h("section", {}, h("h2", {}, name), h("p", {}, error), hint ? h("p", {}, `→ ${hint}`) : "");
  return h("section", {}, h("h2", {}, name, h("span", { class: "dim" }, ` ${page.written} ${page.cost}`)), page.entries.map((entry) => renderEntry(name, entry)));
}

function renderEntry(project, entry) {
  const list = (title, items) => (items.length ? [h("h4", {}, title), h("ul", {}, items.map((item) => h("li", {}, item)))] : []);
  return h(
    "article",
    { class: "card" },
    h("h3", {}, h("a", { href: agentPath(project, entry.agent) }, entry.agent), " ", h("span", { class: `state ${stateClass(entry.state)}` }, entry.label || entry.state)),
    entry.why ? h("p", {}, entry.why) : "",
    list("Waiting for you", entry.asks.map((one) => [one.text, one.command ? h("pre", {}, one.command) : ""])),
    list("Done", entry.done),
    entry.next ? [h("h4", {}, "Next"), h("p", {}, entry.next)] : "",
    list("Open loops", entry.open_loops),
    entry.night.length ? [h("h4", {}, "The night"), h("ol", { class: "lines" }, entry.night.map((line) => h("li", {}, h("time", {}, line.at), h("span", {}, line.text))))] : "",
    h("p", { class: "dim" }, [entry.loops, entry.refused, entry.cost].filter(Boolean).join(" · ")),
  );
}
