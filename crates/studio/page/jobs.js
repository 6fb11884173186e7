// Jobs: what waits, what runs, what is over.

import { fixed, jobs, over } from "./api.js";
import { h, put } from "./dom.js";
import { action, farther, fromCommandLine, note, problemOf, progressText, stateBadge, trouble } from "./parts.js";
import { clock, plural } from "./format.js";

export const title = "Jobs";
const KINDS = { run: "run", compare: "comparison", reproduce: "claim" };

export function open(root) {
  const body = h("tbody", {});
  const rows = new Map();
  const none = h(
    "p",
    { hidden: true },
    "Nothing has been run yet. The ",
    h("a", { href: "#/ledger" }, "ledger"),
    " and the ",
    h("a", { href: "#/bench" }, "bench"),
    " start jobs.",
  );
  const table = h(
    "table",
    { class: "jobs" },
    h(
      "thead",
      {},
      h(
        "tr",
        {},
        ["job", "", "state", "", ""].map((text) => h("th", {}, text)),
      ),
    ),
    body,
  );
  const about = h("p", { class: "sub" });
  const made = h("section", { class: "folders", hidden: true });
  put(
    root,
    h(
      "div",
      { class: "plain-view" },
      h("h1", {}, "Jobs"),
      h(
        "p",
        { class: "sub" },
        "They run in the order in which they were asked for. Whatever is finished stays, even if the studio is stopped in between.",
      ),
      h("div", { class: "table" }, table),
      none,
      about,
      made,
    ),
  );
  fixed("/api/about").then(
    ({ version, workspace, cores }) => put(about, `Tailwater ${version}, ${plural(cores, "core")}, workspace ${workspace}`),
    () => {},
  );

  fromCommandLine(made);

  const show = (job) => {
    let row = rows.get(job.id);
    if (!row) {
      row = { element: h("tr", { "data-job": job.id }), state: null };
      rows.set(job.id, row);
      // Newest first.
      const next = [...rows.entries()].filter(([id]) => id < job.id).sort((a, b) => b[0] - a[0])[0];
      body.insertBefore(row.element, next ? next[1].element : null);
    }
    if (row.state === job.state && !over(job)) {
      row.bar.value = farther(job);
      row.text.textContent = progressText(job);
      return;
    }
    row.state = job.state;
    row.bar = h("progress", { max: "1", value: farther(job), "aria-label": `Progress of job ${job.id}`, hidden: over(job) });
    row.text = h("span", { class: "progress-text" }, progressText(job));
    const ready = job.state === "done" || job.state === "broken";
    const name = job.name || `Job ${job.id}`;
    const main = job.kind === "reproduce" ? `#/ledger/${job.experiment ?? job.name}` : `#/results?job=${job.id}`;
    put(
      row.element,
      h("td", { class: "number sub" }, job.id),
      h(
        "td",
        { class: "name" },
        h("a", { href: main }, name),
        h(
          "div",
          { class: "sub" },
          [KINDS[job.kind] ?? job.kind, job.schemes?.length && job.schemes.join(", "), clock(job.created)]
            .filter(Boolean)
            .join("; "),
        ),
        job.state === "failed" || job.state === "broken" ? problemOf(job) : null,
      ),
      h("td", {}, stateBadge(job)),
      h("td", {}, h("div", { class: "progress" }, row.bar, row.text)),
      h(
        "td",
        {},
        h(
          "div",
          { class: "row-actions" },
          ready &&
            job.kind !== "reproduce" &&
            h(
              "a",
              {
                class: "button small",
                href: `#/fabric?job=${job.id}&run=0${job.schemes?.length > 1 ? `&with=${job.seeds ?? 1}` : ""}`,
              },
              "Watch",
            ),
          !over(job) &&
            action("Cancel", () => jobs.cancel(job.id), { class: "button small", "aria-label": `Cancel job ${job.id}` }),
          over(job) &&
            action(
              "Again",
              async () => {
                const { id } = await jobs.again(job.id);
                note(`Queued as job ${id}.`);
              },
              { class: "button small", "aria-label": `Run job ${job.id} again` },
            ),
          over(job) &&
            action(
              "Delete",
              async (button) => {
                // The second press counts.
                if (button.dataset.sure) {
                  await jobs.remove(job.id);
                  return;
                }
                button.dataset.sure = "yes";
                button.textContent = "Really?";
                setTimeout(() => {
                  delete button.dataset.sure;
                  button.textContent = "Delete";
                }, 3000);
              },
              { class: "button small", "aria-label": `Delete job ${job.id}` },
            ),
        ),
      ),
    );
  };
  const gone = (id) => {
    rows.get(id)?.element.remove();
    rows.delete(id);
  };
  const empty = () => {
    none.hidden = rows.size > 0;
    table.hidden = rows.size === 0;
  };
  const stop = jobs.watch((job, left) => {
    if (left) gone(job.id);
    else show(job);
    empty();
  });
  jobs.all().then(
    (all) => {
      all.forEach(show);
      empty();
    },
    (error) => put(root, h("div", { class: "plain-view" }, trouble(error))),
  );
  return { close: stop, update() {} };
}
