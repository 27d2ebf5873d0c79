// Pipeline runs and their steps.

import { h, read, show as showPage, stateClass } from "./core.js";
import { follow } from "./stream.js";

export async function show() {
  const { runs } = await read("/api/runs");
  showPage(
    "Pipelines – Rekindle",
    h("h1", {}, "Pipeline runs"),
    runs.length ? "" : h("p", {}, "There are no pipeline runs. ", h("code", {}, "rekindle pipeline run NAME"), " starts one."),
    ...runs.map(renderRun),
  );
  follow(() => {});
}

function renderRun({ project, name, row, error }) {
  if (error) return h("article", { class: "card" }, h("h2", {}, name, h("span", { class: "dim" }, ` ${project}`)), h("p", {}, error));
  return h(
    "article",
    { class: "card" },
    h("h2", {}, name, h("span", { class: "dim" }, ` ${project} `), h("span", { class: `state ${stateClass(row.state)}` }, row.state)),
    row.reason ? h("p", {}, row.reason) : "",
    h("table", {}, h("thead", {}, h("tr", {}, ["step", "state", "workers"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, row.steps.map(renderStep))),
    row.tasks.length ? [h("h3", {}, "Waits for you"), h("ul", {}, row.tasks.map((task) => h("li", {}, task.text, h("pre", {}, task.commands.join("\n")))))] : "",
    row.failures.length ? [h("h3", {}, "Failed"), h("ul", {}, row.failures.map((one) => h("li", {}, `${one.step} ${one.worker}: ${one.why}`)))] : "",
    row.command ? h("pre", {}, row.command) : "",
  );
}

function renderStep(step) {
  const workers = step.workers ? `${step.done}/${step.workers}${step.failed ? `, ${step.failed} failed` : ""}` : "";
  return h("tr", {}, h("th", { scope: "row" }, step.step), h("td", {}, h("span", { class: `state ${stateClass(step.state)}` }, step.state)), h("td", {}, workers));
}
