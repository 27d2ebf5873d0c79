// Charts of the context window and of the spending, drawn by uPlot.

import { h, renderClock } from "./core.js";

let plots = [];

/** Draw the charts of a night. A period without figures has no chart. */
export async function drawCharts(place, night) {
  const charts = [makeWindow(night), makeSpend(night)].filter(Boolean);
  for (const plot of plots) plot.destroy();
  plots = [];
  place.replaceChildren();
  if (!charts.length) return;
  const { default: uPlot } = await import("./uplot.js");
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  place.replaceChildren();
  const boxes = charts.map((chart) => h("div", { role: "img", "aria-label": chart.summary }));
  place.append(...charts.map((chart, index) => h("figure", {}, h("figcaption", {}, chart.title), boxes[index])));
  for (const [index, chart] of charts.entries()) {
    const box = boxes[index];
    const axis = { stroke: colour("--dim"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") } };
    plots.push(
      new uPlot(
        {
          width: Math.max(280, box.clientWidth),
          height: 150,
          legend: { show: false },
          cursor: { y: false },
          scales: { x: { min: Date.parse(night.since) / 1000, max: Date.parse(night.until) / 1000 }, y: { range: chart.range } },
          axes: [{ ...axis, values: (_plot, values) => values.map((value) => renderClock(value * 1000)) }, { ...axis, size: 60, values: (_plot, values) => values.map(chart.format) }],
          series: [{}, { stroke: colour("--accent"), width: 2, fill: colour("--added"), paths: chart.isStep ? uPlot.paths.stepped({ align: 1 }) : undefined }, { stroke: colour("--red"), width: 1, dash: [6, 4], points: { show: false } }],
        },
        chart.data,
        box,
      ),
    );
  }
}

const seconds = (time) => Date.parse(time) / 1000;

function makeWindow(night) {
  const points = night.window.filter((point) => point.percent !== null);
  if (!points.length) return null;
  const data = [[], [], []];
  let session = points[0].session;
  for (const point of points) {
    if (point.session !== session) push(data, seconds(point.at) - 0.001, null, night.handoff_percent);
    session = point.session;
    push(data, seconds(point.at), point.percent, night.handoff_percent);
  }
  const most = Math.round(Math.max(...points.map((point) => point.percent)));
  const limit = night.handoff_percent ? `, handoff at ${night.handoff_percent} %` : "";
  const summary = `Context window in percent: highest ${most} %${limit}.`;
  return { title: `Window${limit}`, summary, data, range: [0, 100], format: (value) => `${value} %` };
}

function makeSpend(night) {
  const points = night.spend.filter((point) => point.usd !== null);
  if (!points.length) return null;
  const data = [[], [], []];
  for (const point of points) push(data, seconds(point.at), point.usd, night.usd_cap);
  const last = points.at(-1);
  const spent = `${last.is_estimated ? "~" : ""}$${last.usd.toFixed(2)}`;
  const cap = night.usd_cap ? ` of $${night.usd_cap}` : "";
  const most = Math.max(night.usd_cap || 0, ...points.map((point) => point.usd));
  return { title: `Spent ${spent}${cap}`, summary: `Spending: ${spent}${cap}.`, data, isStep: true, range: [0, most * 1.1 || 1], format: (value) => `$${value.toFixed(2)}` };
}

function push(data, ...values) {
  values.forEach((value, place) => data[place].push(value));
}
