// Search in the transcripts, relays and decisions of one project.

import { agentPath, h, read, renderMoment, show as showPage } from "./core.js";
import { follow } from "./stream.js";

export function renderHit(hit) {
  const when = hit.at ? renderMoment(hit.at) : "time unknown";
  const place = hit.kind === "turn" ? `session ${hit.session}, turn ${hit.number}` : `${hit.kind} ${hit.number}`;
  const name = hit.project ? h("a", { href: agentPath(hit.project, hit.agent) }, hit.agent) : h("strong", {}, hit.agent);
  return h("li", {}, h("p", {}, name, h("span", { class: "dim" }, ` ${when} · ${hit.who} · ${place}`)), h("pre", {}, hit.excerpt));
}

export function show() {
  const query = new URLSearchParams(location.search);
  const words = h("input", { type: "search", id: "words", required: false });
  const file = h("input", { type: "text", id: "file", placeholder: "api.py" });
  const project = h("select", { id: "project" });
  const found = h("ol", { class: "hits" });
  words.value = query.get("q") || "";
  file.value = query.get("file") || "";
  const search = async (event) => {
    event?.preventDefault();
    history.replaceState(null, "", `?${new URLSearchParams({ q: words.value, file: file.value, project: project.value })}`);
    found.replaceChildren(h("li", {}, "Searching …"));
    try {
      const { hits } = await read("/api/search", { project: project.value, words: words.value, file: file.value });
      found.replaceChildren(...(hits.length ? hits.map((hit) => renderHit({ ...hit, project: project.value })) : [h("li", {}, "Nothing found. Use fewer words, or word* for the beginning of a word.")]));
    } catch (error) {
      found.replaceChildren(h("li", {}, `${error.message} ${error.hint || ""}`));
    }
  };
  showPage(
    "Search – Rekindle",
    h("h1", {}, "Search"),
    h("form", { onsubmit: search, class: "fields" }, h("label", {}, "Words ", words), h("label", {}, "File ", file), h("label", {}, "Project ", project), h("button", { type: "submit", class: "primary" }, "search")),
    found,
  );
  let isStarted = false;
  follow((rows) => {
    const projects = [...new Set([...rows.values()].map((row) => row.project))];
    if (projects.length !== project.options.length) {
      const chosen = project.value || query.get("project") || projects[0];
      project.replaceChildren(...projects.map((name) => h("option", { selected: name === chosen }, name)));
    }
    if (!isStarted && projects.length) {
      isStarted = true;
      if (words.value || file.value) search();
    }
  });
  words.focus();
}
