// Pieces that several views have: problems, progress, figures, notes.

import { get, jobs, link, over } from "./api.js";
import { h, put } from "./dom.js";
import { clock, share, wall, instant, plural } from "./format.js";

/** What went wrong, in words, with what may help. */
export function trouble(error) {
  return h(
    "div",
    { class: "trouble", role: "alert" },
    h("p", {}, h("strong", {}, error.message)),
    error.help && h("p", {}, error.help),
  );
}

/** Fills a hidden section with what the command line has made beside the workspace, and says whether there is anything. */
export async function fromCommandLine(section) {
  const folders = await get("/api/folders").catch(() => []);
  if (!folders.length) return false;
  const kinds = { run: "run", compare: "comparison", sweep: "sweep" };
  const row = ({ name, kind, title, time, page }) =>
    h(
      "tr",
      { "data-folder": name },
      h(
        "td",
        { class: "name" },
        page ? h("a", { href: link(`/api/folders/${encodeURIComponent(name)}/report.html`), target: "_blank", rel: "noopener" }, title || name) : title || name,
        h("div", { class: "sub" }, [kinds[kind] ?? kind, `results/${name}`, clock(time * 1000)].join("; ")),
      ),
    );
  put(
    section,
    h("h2", {}, "From the command line"),
    h("p", { class: "sub" }, "Folders of results beside this workspace. Their runs are shared: what is in the store is not run again, here or there."),
    h("div", { class: "table" }, h("table", { class: "jobs" }, h("tbody", {}, folders.map(row)))),
  );
  section.hidden = false;
  return true;
}

/** A short word at the edge of the page that goes away by itself. */
export function note(text, bad = false) {
  const element = h("div", { class: bad ? "note bad" : "note" }, text);
  document.getElementById("notes").append(element);
  setTimeout(() => element.remove(), bad ? 9000 : 4000);
}

/** A button that starts something, is off while that is under way, and says if it fails. */
export function action(text, f, props = {}) {
  const button = h(
    "button",
    {
      type: "button",
      class: "button",
      ...props,
      onclick: async () => {
        button.disabled = true;
        try {
          await f(button);
        } catch (error) {
          note(error.help ? `${error.message} ${error.help}` : error.message, true);
        }
        button.disabled = false;
      },
    },
    text,
  );
  return button;
}

export const STATES = {
  queued: ["waits", "–"],
  running: ["runs", "▸"],
  done: ["done", "✓"],
  failed: ["failed", "✕"],
  cancelled: ["cancelled", "◌"],
  broken: ["broke a promise", "!"],
};

/** A job's state as a badge. */
export function stateBadge(job) {
  const [text, sign] = STATES[job.state] ?? [job.state, ""];
  const kind = { done: "good", failed: "bad", broken: "bad", running: "live" }[job.state] ?? "";
  return h("span", { class: `badge ${kind}` }, h("span", { "aria-hidden": "true" }, `${sign} `), text);
}

/** How far a job is, 0 to 1. */
export function farther(job) {
  const progress = job.progress ?? {};
  if (over(job)) return 1;
  if (typeof progress.share === "number") return progress.share;
  return progress.runs ? (progress.done ?? 0) / progress.runs : 0;
}

/** Progress in a line. */
export function progressText(job) {
  const progress = job.progress ?? {};
  if (job.state === "queued") return "waits for its turn";
  const parts = [];
  if (progress.runs > 1) parts.push(`${Math.min(progress.done ?? 0, progress.runs)} of ${plural(progress.runs, "run")}`);
  else if (job.state === "running") parts.push(share(farther(job), 2));
  if (progress.label && job.state === "running") parts.push(progress.label);
  const from = instant(job.started),
    to = instant(job.ended);
  if (from && (to || job.state === "running")) parts.push(wall(((to ?? new Date()) - from) / 1000));
  const left = job.state === "running" && from ? timeLeft((new Date() - from) / 1000, farther(job)) : null;
  if (left !== null) parts.push(`about ${wall(left)} left`);
  return parts.join(", ");
}

/** Seconds that something will still take, after so many and so far; null while that says nothing. */
export function timeLeft(seconds, part) {
  if (!(part > 0.03) || part >= 1 || seconds < 2) return null;
  return Math.max(1, Math.round((seconds * (1 - part)) / part));
}

/**
 * How long a claim will take, as [seconds, whether it took that here before]: as long as the last time, or by the runs of other claims at
 * the same scale. Nothing where there is nothing to go by.
 */
export function likely(past, id, scale, runs) {
  const seconds = (job) => (instant(job.ended) - instant(job.started)) / 1000;
  const done = past.filter(
    (job) => job.kind === "reproduce" && job.state === "done" && job.scale === scale && instant(job.started) && instant(job.ended),
  );
  const same = done.filter((job) => (job.experiment ?? job.name) === id).sort((a, b) => b.id - a.id);
  if (same.length) return [seconds(same[0]), true];
  const others = done.filter((job) => job.progress?.runs > 0);
  if (!others.length || !runs) return null;
  const each = others.reduce((sum, job) => sum + seconds(job), 0) / others.reduce((sum, job) => sum + job.progress.runs, 0);
  return [each * runs, false];
}

/** A live line for a job: bar, words, cancel. Calls `done(job)` once it is over. */
export function progress(id, done) {
  const bar = h("progress", { max: "1", value: 0, "aria-label": "Progress" });
  const text = h("span", { class: "progress-text" });
  const state = h("span", {});
  const cancel = action("Cancel", () => jobs.cancel(id), { class: "button small" });
  const element = h(
    "div",
    { class: "progress", "data-job": id },
    state,
    bar,
    text,
    cancel,
    h("a", { class: "quiet", href: "#/jobs" }, `job ${id}`),
  );
  let notified = false;
  const show = (job) => {
    if (!job || job.id !== id) return;
    put(state, stateBadge(job));
    bar.value = farther(job);
    text.textContent = progressText(job);
    cancel.hidden = bar.hidden = over(job);
    if (over(job) && !notified) {
      notified = true;
      done?.(job);
    }
  };
  const stop = jobs.watch((job, gone) => {
    if (!gone) show(job);
  });
  const known = jobs.get(id);
  if (known) queueMicrotask(() => show(known));
  else
    jobs.all().then(
      () => show(jobs.get(id)),
      () => {},
    );
  return { element, stop };
}

/** What a job says about why it failed. */
export function problemOf(job) {
  const problem = job.problem;
  if (!problem) return null;
  const text = typeof problem === "string" ? { message: problem } : problem;
  const place = text.line ? `line ${text.line}: ` : "";
  return h(
    "div",
    { class: "trouble", role: "alert" },
    h("p", {}, h("strong", {}, place + (text.message ?? text.text ?? "It failed.")), text.run && ` (in the run ${text.run})`),
    text.help && h("p", {}, text.help),
  );
}

/** A figure on white paper, which opens large. */
export function figure(path, name) {
  const address = link(path);
  return h(
    "figure",
    { class: "figure" },
    h(
      "a",
      { href: address, target: "_blank", rel: "noopener", title: "Open by itself" },
      h("img", { src: address, alt: `Figure: ${name}`, loading: "lazy" }),
    ),
  );
}

/** What a figure's file is about: "figures/1-time-paused.svg" is "time paused". */
export const figureName = (path) =>
  path
    .split("/")
    .at(-1)
    .replace(/\.\w+$/, "")
    .replace(/^\d+-/, "")
    .replaceAll("-", " ");
export const isFigure = (path) => path.endsWith(".svg");
