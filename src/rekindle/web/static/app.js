// Shows the page that the address names.

import { find, openLink, showError } from "./core.js";
import { readServer } from "./actions.js";

const PAGES = {
  "": () => import("./fleet.js"),
  a: () => import("./agent.js"),
  search: () => import("./search.js"),
  morning: () => import("./morning.js"),
  runs: () => import("./runs.js"),
};

async function start() {
  if (location.pathname === "/open") await openLink();
  const [page, ...rest] = location.pathname.slice(1).split("/");
  for (const link of document.querySelectorAll("nav a")) {
    if (link.pathname === `/${page}`) link.setAttribute("aria-current", "page");
  }
  await readServer();
  const module = await PAGES[page]();
  await module.show(...rest.map(decodeURIComponent));
}

window.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !find("dialog").open) document.activeElement?.blur();
});
start().catch(showError);
