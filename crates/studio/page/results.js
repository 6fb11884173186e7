// Results: numbers, flows, figures and files of a job's runs.

import { get, jobs, link, over } from "./api.js";
import { choice, h, put } from "./dom.js";
import { jobWhole } from "./jobdata.js";
import { csv, save } from "./panels.js";
import { action, figure, figureName, fromCommandLine, isFigure, note, problemOf, progress, stateBadge, trouble } from "./parts.js";
import { bytes, clock, count, number, plural, share, time } from "./format.js";

export const title = "Results";
const PAGE = 100;

export function open(root, route) {
  const view = new Results(root);
  view.update(route);
  return view;
}

class Results {
  constructor(root) {
    this.root = root;
  }

  close() {
    this.closed = true;
    this.live?.stop();
  }

  async update({ query }) {
    let id = query.get("job") === null ? null : Number(query.get("job"));
    this.query = query;
    try {
      const all = await jobs.all();
      if (id === null) id = all.find((job) => job.kind !== "reproduce" && job.state === "done")?.id ?? null;
      if (this.closed) return;
      if (id === null) {
        const made = h("section", { class: "folders", hidden: true });
        const some = await fromCommandLine(made);
        if (this.closed) return;
        put(
          this.root,
          h(
            "section",
            { class: some ? "plain-view" : "empty" },
            h("h1", {}, some ? "Results" : "No results yet"),
            h(
              "p",
              {},
              "What runs on the ",
              h("a", { href: "#/bench" }, "bench"),
              " is kept here: numbers, flows, figures and files. Verdicts on claims are in the ",
              h("a", { href: "#/ledger" }, "ledger"),
              ".",
            ),
            made,
          ),
        );
        return;
      }
      if (this.whole?.job.id !== id) {
        put(this.root, h("p", { class: "loading", role: "status" }, "Reading results…"));
        this.whole = await jobWhole(id);
      }
      if (this.closed) return;
      this.show(all);
    } catch (error) {
      if (!this.closed)
        put(this.root, h("div", { class: "plain-view" }, trouble(error), h("p", {}, h("a", { href: "#/jobs" }, "All jobs"))));
    }
  }

  go(changes) {
    const query = new URLSearchParams(this.query);
    for (const [key, value] of Object.entries({ job: this.whole.job.id, ...changes }))
      if (value === null || value === "") query.delete(key);
      else query.set(key, value);
    this.query = query;
    history.replaceState(null, "", `#/results?${query}`);
  }

  show(all) {
    const { job, runs, comparison, files } = this.whole;
    const chosen = runs.find((run) => run.index === Number(this.query.get("run") ?? 0)) ?? runs[0];
    document.title = `${job.name ?? "Results"} – Tailwater studio`;
    const others = all.filter((one) => over(one));
    const picker = choice(
      {
        "aria-label": "Job",
        onchange: (event) => {
          location.hash = `#/results?job=${event.target.value}`;
        },
      },
      others.map((one) => [one.id, `${one.id}: ${one.name ?? one.kind}`]),
      job.id,
    );
    const body = h(
      "div",
      { class: "plain-view" },
      h(
        "div",
        { class: "headline" },
        h("h1", {}, job.name ?? `Job ${job.id}`),
        stateBadge(job),
        h("span", { class: "sub" }, clock(job.created)),
        h("span", { class: "grow" }),
        others.length > 1 && picker,
      ),
    );
    put(this.root, body);
    if (!over(job)) {
      this.live?.stop();
      this.live = progress(job.id, () => {
        this.whole = null;
        this.update({ query: this.query });
      });
      body.append(this.live.element);
      return;
    }
    const problem = problemOf(job);
    if (problem) body.append(problem);
    if (job.kind === "reproduce")
      body.append(
        h(
          "p",
          {},
          "Its verdict is in the ledger: ",
          h("a", { href: `#/ledger/${job.experiment ?? job.name}` }, job.experiment ?? job.name),
        ),
      );
    for (const text of job.notes ?? []) body.append(h("p", { class: "sub" }, text));
    if (comparison)
      body.append(
        h("h2", {}, "Side by side"),
        comparisonTable(this.whole, chosen?.index, (index) => {
          this.go({ run: index, offset: null });
          this.show(all);
        }),
      );
    const own = files.filter(({ path }) => !path.startsWith("runs/"));
    const pictures = comparison ? own.filter(({ path }) => isFigure(path)) : [];
    // Above the table of flows, which may be long.
    if (pictures.length) body.append(h("h2", {}, "Figures of the comparison"), gallery(job.id, pictures));
    if (chosen) body.append(this.run(chosen, all));
    if (files.length) {
      body.append(
        h("h2", {}, "Files"),
        h(
          "ul",
          { class: "files" },
          files
            .filter(({ path }) => !/figures\/.*\.(svg|png)$/.test(path))
            .map(({ path, bytes: size }) =>
              h(
                "li",
                {},
                h(
                  "a",
                  {
                    href: link(`/api/jobs/${job.id}/files/${path}`),
                    download: path.endsWith(".html") ? null : true,
                    target: path.endsWith(".html") ? "_blank" : null,
                    rel: "noopener",
                  },
                  named(path, runs),
                ),
                h("span", { class: "sub" }, ` ${bytes(size)}`),
              ),
            ),
        ),
      );
    }
    if (job.text)
      body.append(
        h(
          "p",
          { class: "actions" },
          h("a", { class: "button", href: `#/bench?job=${job.id}` }, "Open on the bench"),
          action("Run again", async () => {
            const { id } = await jobs.again(job.id);
            location.hash = `#/results?job=${id}`;
          }),
        ),
      );
    const made = h("section", { class: "folders", hidden: true });
    body.append(made);
    fromCommandLine(made);
  }

  run(run, all) {
    const { job, runs } = this.whole;
    const box = h("section", {});
    const tabs =
      runs.length > 1 &&
      choice(
        {
          "aria-label": "Run",
          onchange: (event) => {
            this.go({ run: Number(event.target.value), offset: null });
            this.show(all);
          },
        },
        runs.map((one) => [one.index, one.label]),
        run.index,
      );
    put(
      box,
      h(
        "h2",
        {},
        "Run ",
        tabs || "",
        " ",
        run.recording && h("a", { class: "button small", href: `#/fabric?job=${job.id}&run=${run.index}` }, "Watch it"),
      ),
      run.summary && cards(run.summary),
      run.summary && bySize(run.summary),
    );
    const flows = h("div", {});
    const pictures = run.files.filter(({ path }) => isFigure(path));
    put(
      box,
      [...box.childNodes],
      pictures.length > 0 && [h("h2", {}, "Figures"), gallery(job.id, pictures)],
      h("h2", {}, "Flows"),
      flows,
    );
    this.flows(flows, run);
    return box;
  }

  async flows(box, run) {
    const sort = this.query.get("sort") ?? "slowdown",
      down = this.query.get("desc") !== "0",
      offset = Number(this.query.get("offset") ?? 0),
      group = this.query.get("group") ?? "",
      slower = this.query.get("slower") ?? "";
    const ask = new URLSearchParams({ sort, desc: down ? "1" : "0", offset, limit: PAGE });
    if (group) ask.set("group", group);
    if (slower) ask.set("slower", slower);
    const address = `/api/jobs/${this.whole.job.id}/flows/${run.index}`;
    let data;
    try {
      data = await get(`${address}?${ask}`);
    } catch (error) {
      put(box, trouble(error));
      return;
    }
    if (this.closed) return;
    const groups = data.groups ?? (run.summary?.groups ?? []).map((one) => one.name);
    const again = (changes) => {
      this.go(changes);
      this.flows(box, run);
    };
    const columns = COLUMNS.filter(([key]) => data.columns.includes(key));
    const at = Object.fromEntries(data.columns.map((name, index) => [name, index]));
    put(
      box,
      h(
        "div",
        { class: "flows-bar" },
        groups.length > 1 &&
          h(
            "label",
            {},
            "group ",
            choice({ onchange: (event) => again({ group: event.target.value, offset: null }) }, [["", "all"], ...groups], group),
          ),
        h(
          "label",
          {},
          "slower than ",
          h("input", {
            type: "number",
            min: "0",
            step: "any",
            value: slower,
            placeholder: "20",
            class: "slower",
            "aria-label": "Slower than so many times",
            onchange: (event) => again({ slower: event.target.value, offset: null }),
          }),
          "×",
        ),
        h(
          "span",
          {},
          data.total
            ? `${count(offset + 1)} to ${count(Math.min(offset + PAGE, data.total))} of ${plural(data.total, "flow")}`
            : "no flows",
        ),
        h(
          "button",
          {
            type: "button",
            class: "button small",
            disabled: offset === 0,
            onclick: () => again({ offset: Math.max(0, offset - PAGE) || null }),
          },
          "Before",
        ),
        h(
          "button",
          {
            type: "button",
            class: "button small",
            disabled: offset + PAGE >= data.total,
            onclick: () => again({ offset: offset + PAGE }),
          },
          "After",
        ),
        action("CSV", () => saveFlows(address, ask, `${this.whole.job.name ?? "flows"}, ${run.label || "run"}.csv`), {
          class: "button small",
          title: "These flows, all pages of them",
        }),
      ),
      h(
        "div",
        { class: "table", tabindex: "0", role: "region", "aria-label": "Flows" },
        h(
          "table",
          { class: "flows" },
          h(
            "thead",
            {},
            h(
              "tr",
              {},
              columns.map(([key, name, , left]) =>
                h(
                  "th",
                  { class: left ? "" : "number", "aria-sort": sort === key ? (down ? "descending" : "ascending") : "none" },
                  h(
                    "button",
                    {
                      type: "button",
                      class: "sorter",
                      onclick: () => again({ sort: key, desc: sort === key && down ? "0" : "1", offset: null }),
                    },
                    name,
                  ),
                ),
              ),
            ),
          ),
          h(
            "tbody",
            {},
            data.rows.map((row) =>
              h(
                "tr",
                {},
                columns.map(([key, , format, left]) =>
                  h(
                    "td",
                    { class: left ? "" : "number" },
                    key === "flow" && run.recording
                      ? h(
                          "a",
                          {
                            href: `#/fabric?job=${this.whole.job.id}&run=${run.index}&flow=${row[at.flow]}&t=${Math.round(row[at.start_ps] ?? 0)}ps`,
                            title: "Its path and its life, if it was recorded",
                          },
                          row[at.flow],
                        )
                      : format(row[at[key]]),
                  ),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }
}

const COLUMNS = [
  ["flow", "flow", (value) => value],
  ["group", "group", (value) => value, true],
  ["src", "from", (value) => value, true],
  ["dst", "to", (value) => value, true],
  ["size", "size", (value) => bytes(value)],
  ["size_bytes", "size", (value) => bytes(value)],
  ["start_ps", "start", (value) => (value === null ? "–" : time(value))],
  ["received_ps", "received after", (value) => (value === null ? "–" : time(value))],
  ["ideal_ps", "alone", (value) => (value === null ? "–" : time(value))],
  ["held_ps", "held", (value) => (value ? time(value) : "–")],
  ["paused_ps", "class paused", (value) => (value ? time(value) : "–")],
  ["slowdown", "slowdown", (value) => (value === null ? "–" : `${number(value, 4)}×`)],
];

/** So many at a time, and so many times at the most: larger tables are there as Parquet. */
const ROWS = 1000,
  PARTS = 60;

async function saveFlows(address, ask, name) {
  const query = new URLSearchParams(ask);
  query.set("limit", ROWS);
  const rows = [];
  for (let part = 0; part < PARTS; part++) {
    query.set("offset", part * ROWS);
    const data = await get(`${address}?${query}`);
    if (!part) rows.push(data.columns);
    rows.push(...data.rows);
    if ((part + 1) * ROWS >= data.total) break;
    if (part + 1 === PARTS) note(`The first ${count(ROWS * PARTS)} of ${count(data.total)} flows; all of them are in flows.parquet.`);
  }
  save(name, csv(rows), "text/csv");
}

function gallery(job, files) {
  return h(
    "div",
    { class: "figures" },
    files.map(({ path }) => figure(`/api/jobs/${job}/files/${path}`, figureName(path))),
  );
}

function named(path, runs) {
  const match = /^runs\/(\d+)\/(.*)$/.exec(path);
  return match ? `${runs.find((run) => run.index === Number(match[1]))?.label ?? match[1]}: ${match[2]}` : path;
}

const ENDINGS = { complete: "complete", stopped: "stopped", deadlock: "deadlock", blocked: "blocked", lost: "packets lost" };

/** The numbers of a run that say most. */
export function cards(summary) {
  const { slowdown, pause, held, buffer, dropped } = summary;
  const big = (name, value, more) =>
    h("dl", { class: "big" }, h("dt", {}, name), h("dd", {}, value, more && h("small", {}, more)));
  const paused = pause?.paused_ps ?? pause?.time_ps ?? pause?.total_ps;
  return h(
    "div",
    { class: "numbers-grid" },
    big(
      "flows finished",
      `${count(summary.finished)} of ${count(summary.flows)}`,
      `${ENDINGS[summary.ending] ?? summary.ending} at ${time(summary.end_ps)}`,
    ),
    slowdown?.count > 0 && big("slowdown, median", `${number(slowdown.p50)}×`, `mean ${number(slowdown.mean)}×`),
    slowdown?.count > 0 && big("slowdown, 99th", `${number(slowdown.p99)}×`, `worst ${number(slowdown.max)}×`),
    buffer?.peak !== undefined && big("deepest switch", bytes(buffer.peak)),
    pause &&
      big(
        "paused",
        paused === undefined ? plural(pause.pauses ?? 0, "time") : time(paused),
        [
          pause.pauses !== undefined && plural(pause.pauses, "pause"),
          pause.share !== undefined && share(pause.share, 2),
          // A link of which only a queue is paused carries the rest.
          pause.class_ps !== undefined && pause.class_ps < paused && `whole classes ${time(pause.class_ps)}`,
        ]
          .filter(Boolean)
          .join(", "),
      ),
    held?.flows > 0 &&
      big(
        "flows held at hosts",
        time(held.held_ps),
        [
          plural(held.flows, "flow"),
          held.class_ps > 0 && `${time(held.class_ps)} with their class`,
          held.flow_ps > 0 && `${time(held.flow_ps)} by themselves`,
        ]
          .filter(Boolean)
          .join(", "),
      ),
    big(
      "packets dropped",
      count(dropped?.packets ?? 0),
      summary.retransmitted?.packets ? `${count(summary.retransmitted.packets)} sent again` : null,
    ),
    summary.marked > 0 && big("packets marked", count(summary.marked)),
    summary.waiting?.length > 0 &&
      big("waiting in a cycle", count(summary.waiting.length), summary.waiting.slice(0, 3).join("; ")),
  );
}

function bySize(summary) {
  const rows = [
    ["all", summary.slowdown],
    ...(summary.groups?.length > 1 ? summary.groups.map((group) => [group.name, group.slowdown]) : []),
    ...(summary.slowdown_by_size ?? []).map((bin) => [
      bin.up_to === null ? `above ${bytes(bin.above)}` : `up to ${bytes(bin.up_to)}`,
      bin.slowdown,
    ]),
  ].filter(([, one]) => one?.count > 0);
  if (rows.length < 2) return null;
  return h(
    "div",
    { class: "table" },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          h("th", {}, "slowdown"),
          ["flows", "mean", "p50", "p95", "p99", "p99.9", "worst"].map((name) => h("th", { class: "number" }, name)),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map(([name, one]) =>
          h(
            "tr",
            {},
            h("td", {}, name),
            h("td", { class: "number" }, count(one.count)),
            ["mean", "p50", "p95", "p99", "p999", "max"].map((key) => h("td", { class: "number" }, number(one[key]))),
          ),
        ),
      ),
    ),
  );
}

// How a number of each unit of a comparison's measures is written.
const UNITS = {
  ratio: (value) => number(value),
  bytes: (value) => bytes(value),
  ps: (value) => time(value, 3),
  count: (value) => count(value),
};

/** The table of a comparison: a row for each scheme and value, bars in each column, the best of it strong. */
export function comparisonTable(whole, chosen, choose) {
  const { comparison, runs, job } = whole;
  // A column that is the same everywhere shows nothing. A comparison of an earlier version does not describe its measures.
  const shown = (comparison.measures ?? []).filter(({ key }) => {
    const values = comparison.rows.map((row) => row.measures[key]?.mean);
    return !(
      ["flows", "dropped_packets", "paused_ps", "held_ps"].includes(key) &&
      values.every((value) => value === values[0] && (key === "flows" || !value))
    );
  });
  const ends = comparison.rows.some((row) => Object.keys(row.endings ?? {}).some((ending) => ending !== "complete"));
  const axes = comparison.axes.map((axis) => axis.name);
  const recorded = (index) => runs.find((run) => run.index === index)?.recording;
  const same = (row, cell) => axes.every((axis) => row.labels[axis] === cell.labels[axis]);
  const first = (row) => comparison.cells.findIndex((cell) => same(row, cell));
  return h(
    "div",
    { class: "table", tabindex: "0", role: "region", "aria-label": "Comparison" },
    h(
      "table",
      { class: "compare" },
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          axes.map((axis) => h("th", {}, axis)),
          shown.map(({ label }) => h("th", { class: "number" }, label)),
          ends && h("th", {}, "ending"),
          h("th", {}, ""),
        ),
      ),
      h(
        "tbody",
        {},
        comparison.rows.map((row) => {
          const run = first(row);
          const other = comparison.rows.find((one) => one !== row);
          const beside = other && recorded(run) ? first(other) : null;
          return h(
            "tr",
            { class: run === chosen && comparison.rows.length > 1 ? "chosen" : "" },
            axes.map((axis, at) =>
              h(
                "td",
                {},
                at === 0 && choose && run >= 0
                  ? h("button", { type: "button", class: "textual", onclick: () => choose(run) }, row.labels[axis] ?? "")
                  : (row.labels[axis] ?? ""),
              ),
            ),
            shown.map(({ key, unit, better }) => {
              const one = row.measures[key];
              const values = comparison.rows
                .map((each) => each.measures[key]?.mean)
                .filter((value) => value !== undefined && value !== null);
              const most = Math.max(...values),
                best = better === "more" ? most : Math.min(...values);
              const wins = better && values.length > 1 && one?.mean === best && values.some((value) => value !== best);
              return h(
                "td",
                { class: `number ${wins ? "best" : ""}` },
                one?.mean === undefined || one.mean === null
                  ? "–"
                  : [
                      UNITS[unit](one.mean),
                      one.ci95 !== null && one.ci95 !== undefined && h("span", { class: "pm" }, ` ± ${UNITS[unit](one.ci95)}`),
                      h("span", { class: "bar", style: { width: `${most > 0 ? (one.mean / most) * 100 : 0}%` } }),
                    ],
              );
            }),
            ends &&
              h(
                "td",
                {},
                Object.keys(row.endings ?? {}).map((ending) =>
                  h("span", { class: `badge ${ending === "complete" ? "" : "bad"}` }, ENDINGS[ending] ?? ending),
                ),
              ),
            h(
              "td",
              {},
              recorded(run) &&
                h(
                  "a",
                  { href: `#/fabric?job=${job.id}&run=${run}${beside !== null && beside >= 0 ? `&with=${beside}` : ""}` },
                  "watch",
                ),
            ),
          );
        }),
      ),
    ),
  );
}
