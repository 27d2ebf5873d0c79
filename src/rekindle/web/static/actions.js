// Actions: each shows the command that it runs, and asks once.

import { call, find, h, read, tell } from "./core.js";

let server = null;

/** Return the facts about the server: its version, whether it is read-only, and its commands. */
export async function readServer() {
  server = server || (await read("/api/server"));
  return server;
}

const LABELS = { "fresh restart": "restart fresh" };
const NOTES = {
  stop: "The agent stays stopped until you start it again.",
  restart: "The agent's process is started again now, and resumes its session.",
  "fresh restart": "The agent starts a fresh session. Only the session's context window is lost.",
  "hand off": "The session stops between two tool calls. A fresh one continues from a checkpoint.",
  tell: "The agent is not interrupted. It gets your message once, at the next opportunity.",
  start: "The agent runs in the background.",
  "raise budget": "The new limit applies to this run only.",
};
const FIELDS = { answer: "Your answer", tell: "Your message", resolve: "Reason", "edit relay": "Relay", "raise budget": "New limit in dollars" };

/** Return the buttons for actions, or nothing if the server is read-only. */
export function buttons(names, about) {
  if (!server || server.read_only) return [];
  return names
    .filter((name) => name in server.actions)
    .map((name) => h("button", { type: "button", "data-action": name, "data-about": [about.project, about.agent, about.target].join("/"), onclick: () => ask(name, about) }, LABELS[name] || name));
}

/** Ask once, then run an action. `about` names the agent, and what the action is about. */
export function ask(name, about) {
  if (!server || server.read_only || document.body.classList.contains("stale")) return;
  const id = crypto.randomUUID();
  const dialog = find("dialog");
  const label = FIELDS[name];
  const isFixed = about.choice !== undefined;
  const input = label && !isFixed ? h("textarea", { id: "action-text", rows: { "edit relay": 20, "raise budget": 1 }[name] || 3, required: true }) : null;
  if (input) input.value = about.text || "";
  const text = () => (isFixed ? about.choice : input ? input.value : "");
  const command = h("code", {});
  const showCommand = () => {
    command.textContent = renderCommand(name, about, text());
  };
  const send = h("button", { type: "submit", class: "primary" }, LABELS[name] || name);
  const run = async (event) => {
    event.preventDefault();
    if (input && !input.value.trim()) return;
    send.disabled = true;
    tell(`${about.agent}: ${name} requested …`);
    try {
      const { project, agent, target = "", base = "" } = about;
      const answer = await call("/api/act", { id, project, agent, action: name, target, text: text(), base });
      const result = await answer.json();
      tell(result.output.trim() || result.command, result.code !== 0);
      if (result.code === 0) {
        dialog.close();
        about.done?.();
      } else showProblem(dialog, result.output);
    } catch (error) {
      tell(error.message, true);
      showProblem(dialog, `${error.message}${error.hint ? `\n→ ${error.hint}` : ""}`);
    }
    send.disabled = false;
  };
  dialog.replaceChildren(
    h(
      "form",
      { onsubmit: run },
      h("h2", { id: "dialog-title" }, `${LABELS[name] || name}: ${about.agent}`, h("span", { class: "dim" }, ` in ${about.project}`)),
      about.question && h("blockquote", {}, about.question),
      NOTES[name] && h("p", {}, NOTES[name]),
      input && h("label", { for: "action-text" }, label),
      input,
      about.diff?.(() => text()),
      h("p", { class: "dim" }, "Rekindle runs:"),
      h("pre", { class: "command" }, command),
      h("pre", { class: "problem", role: "alert", hidden: true }),
      h("p", { class: "actions" }, send, h("button", { type: "button", onclick: () => dialog.close() }, "cancel")),
    ),
  );
  input?.addEventListener("input", showCommand);
  input?.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send.click();
  });
  showCommand();
  dialog.showModal();
  (input || send).focus();
}

function showProblem(dialog, text) {
  const problem = dialog.querySelector(".problem");
  problem.textContent = text;
  problem.hidden = false;
}

function renderCommand(name, about, text) {
  const words = server.actions[name].map((word) => ({ AGENT: about.agent, ID: about.target || about.agent, TEXT: text || "TEXT", SHA256: about.base })[word] ?? word);
  const folder = about.folder ? `cd ${quote(about.folder)} && ` : "";
  return `${folder}rekindle ${words.map(quote).join(" ")}`;
}

const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
