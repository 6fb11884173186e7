// The frame around the views: which one is open, themes, keys, the connection.

import { connect, disconnect, jobs, onConnection } from "./api.js";
import { h, keep, put, say } from "./dom.js";
import * as ledger from "./ledger.js";
import * as bench from "./bench.js";
import * as fabric from "./fabric.js";
import * as results from "./results.js";
import * as jobsView from "./jobs.js";

const views = { ledger, bench, fabric, results, jobs: jobsView };
const main = document.getElementById("main");
let open = null;

/** What the address says: {view, path, query}; or what is wrong with it: {problem}. */
function route() {
  const bare = location.hash.replace(/^#\/?/, "");
  if (!bare) return { view: "ledger", path: "", query: new URLSearchParams() };
  const [, view, path, query = ""] = /^([^/?]*)\/?([^?]*)\??(.*)$/s.exec(bare);
  if (!location.hash.startsWith("#/") || !Object.hasOwn(views, view))
    return { problem: `There is no page “${bare.slice(0, 60)}” in the studio.` };
  try {
    return { view, path: decodeURIComponent(path), query: new URLSearchParams(query) };
  } catch {
    return { problem: "The link is damaged: it has a % that stands for nothing." };
  }
}

// A link that leads nowhere says so, with somewhere to go.
function lead(problem) {
  open?.page.close?.();
  open = null;
  main.className = "";
  document.title = "Tailwater studio";
  put(
    main,
    h(
      "section",
      { class: "empty" },
      h("h1", {}, "This link leads nowhere"),
      h("p", { role: "alert" }, problem),
      h(
        "p",
        {},
        Object.entries(views).map(([name, { title }], at) => [at > 0 && ", ", h("a", { href: `#/${name}` }, title)]),
      ),
    ),
  );
}

function show() {
  // The link that leads to the content is none of ours.
  if (location.hash === "#main") return;
  const to = route();
  for (const link of document.querySelectorAll("nav [data-view]")) {
    if (link.dataset.view === to.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (to.problem) {
    lead(to.problem);
    return;
  }
  if (open?.view === to.view && open.page.update) {
    open.page.update(to);
    return;
  }
  open?.page.close?.();
  main.className = `view-${to.view}`;
  put(main);
  document.title = `${views[to.view].title} – Tailwater studio`;
  open = { view: to.view, page: views[to.view].open(main, to) };
  window.scrollTo(0, 0);
}

window.addEventListener("hashchange", show);

// Themes: as the system has it, or one of the two for good.
const themes = ["auto", "light", "dark"];
const button = document.getElementById("theme");
function theme(name) {
  keep.set("theme", name === "auto" ? null : name);
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  button.textContent = { auto: "◐", light: "☀", dark: "☾" }[name];
  button.setAttribute("aria-label", { auto: "Theme: as the system has it", light: "Theme: light", dark: "Theme: dark" }[name]);
  button.dataset.now = name;
  document.dispatchEvent(new Event("look"));
}
theme(themes.includes(keep.get("theme")) ? keep.get("theme") : "auto");
button.addEventListener("click", () => theme(themes[(themes.indexOf(button.dataset.now) + 1) % 3]));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => document.dispatchEvent(new Event("look")));

// Keys.
const keys = document.getElementById("keys");
const KEYS = [
  [
    "Everywhere",
    [
      ["g then l, b, f, r, j", "go to Ledger, Bench, Fabric, Results, Jobs"],
      ["/", "search, or find a port"],
      ["t", "light, dark, as the system has it"],
      ["?", "these keys"],
    ],
  ],
  [
    "Fabric",
    [
      ["Space, k", "play or stop; k wherever the focus is"],
      ["← →", "one frame back or on; with Shift ten"],
      ["Home End", "to the beginning, to the end"],
      ["p", "to the deepest queue, its port and instant"],
      ["n", "to the next pause"],
      ["[ ]", "slower, faster"],
      ["+ − 0", "closer, farther, all of it"],
      ["w s, a d", "in the timeline of stops: nearer and farther, back and on"],
      ["Esc", "nothing selected"],
    ],
  ],
  [
    "Bench",
    [
      ["Ctrl Enter", "run"],
      ["Tab", "leave the text"],
    ],
  ],
];
function showKeys() {
  put(
    keys,
    h("h2", { id: "keys-title" }, "Keys"),
    KEYS.map(([name, list]) => [
      h("h3", {}, name),
      h(
        "dl",
        { class: "keys" },
        list.map(([key, what]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, what)]),
      ),
    ]),
    h("form", { method: "dialog" }, h("button", { class: "button", autofocus: true }, "Close")),
  );
  keys.showModal();
}
document.getElementById("help").addEventListener("click", showKeys);

let going = 0;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || keys.open) return;
  const field = event.target.closest("input, textarea, select, [contenteditable]");
  if (field && !field.matches("input[type=checkbox], input[type=radio], input[type=range]")) return;
  if (going && performance.now() - going < 1200) {
    going = 0;
    const view = { l: "ledger", b: "bench", f: "fabric", r: "results", j: "jobs" }[event.key];
    if (view) {
      location.hash = `#/${view}`;
      event.preventDefault();
      return;
    }
  }
  if (event.key === "?") showKeys();
  else if (event.key === "g") going = performance.now();
  else if (event.key === "t") button.click();
  else if (event.key === "/") {
    const search = main.querySelector("[data-search]");
    if (!search) return;
    search.focus();
    search.select?.();
  } else if (open?.page.key?.(event)) {
    /* the view took it */
  } else return;
  event.preventDefault();
});

// The connection, and how much is under way.
const lost = document.getElementById("lost");
onConnection((state) => {
  lost.hidden = state !== "lost" && state !== "refused";
  lost.textContent =
    state === "lost"
      ? "The studio does not answer. Is tailwater studio still running? This page keeps trying, and nothing that is finished is lost."
      : state === "refused"
        ? "The studio is running, and wants its token: open the address that it printed when it was started."
        : "";
  if (state === "open") say("Connected.");
});
const busy = document.getElementById("busy");
function count() {
  const n = jobs.running().length;
  busy.hidden = n === 0;
  busy.textContent = n;
  busy.setAttribute("aria-label", `${n} under way`);
}
jobs.watch((job, gone) => {
  count();
  if (!gone && job.state !== "running" && job.state !== "queued") say(`Job ${job.id}, ${job.name ?? job.kind}: ${job.state}.`);
});
connect();
// A page that the browser keeps but does not run hears nothing; when it runs again it asks what it has missed.
window.addEventListener("pagehide", disconnect);
window.addEventListener("pageshow", ({ persisted }) => persisted && connect());
document.addEventListener("freeze", disconnect);
document.addEventListener("resume", connect);
jobs.all().then(count, () => {});
show();
