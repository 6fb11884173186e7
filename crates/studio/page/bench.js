// The bench: a scenario as a form and as text, side by side. The text is the truth; the form edits lines of it.

import { fixed, get, jobs, post } from "./api.js";
import { choice, debounce, h, keep, put, say } from "./dom.js";
import * as toml from "./toml.js";
import { action, note, problemOf, progress, trouble } from "./parts.js";
import { cards, comparisonTable } from "./results.js";
import { jobWhole } from "./jobdata.js";
import { plural } from "./format.js";
import { Stage } from "./stage.js";
import { START } from "./start.js";
import { asking } from "./why.js";

export const title = "Bench";
const TRAFFIC = ["flow", "load", "incast", "long", "collective", "job"];
const OTHERS = [
  ["switch", "Switches"],
  ["nic", "NICs"],
  ["traffic", "Traffic file and classes"],
  ["measure", "What is measured"],
];
/** What a new table of traffic begins with. */
const BEGIN = {
  flow: [
    ["src", '"h1"'],
    ["dst", '"h0"'],
    ["size", '"1MB"'],
  ],
  load: [
    ["sizes", '"websearch"'],
    ["load", "0.3"],
    ["duration", '"1ms"'],
  ],
  incast: [
    ["degree", "8"],
    ["size_each", '"100KB"'],
    ["count", "1"],
  ],
  long: [
    ["to", '"h0"'],
    ["flows", "2"],
    ["leave", '"1ms"'],
  ],
  collective: [
    ["kind", '"ring-all-reduce"'],
    ["size", '"1MB"'],
  ],
  job: [
    ["layers", "4"],
    ["hidden", "256"],
    ["sequence", "256"],
  ],
};

let handed = null;
/** Opens the bench with a text from elsewhere and the schemes that belong to it. */
export function openText(text, schemes) {
  handed = text;
  location.hash = `#/bench?schemes=${schemes.map(encodeURIComponent).join(",")}`;
}

export function open(root, route) {
  const view = new Bench(root);
  view.begin(route);
  return view;
}

class Bench {
  constructor(root) {
    this.root = root;
    this.text = "";
    this.schemes = [];
    this.seeds = 1;
    this.vary = "";
    this.problems = [];
    this.out = null;
    this.checkSoon = debounce(() => this.check(), 220);
    this.formSoon = debounce(() => this.buildForm(), 180);
    this.writeSoon = debounce(() => this.write(), 500);
    this.look = () => {
      this.stage?.look();
      this.stage?.draw({});
    };
    document.addEventListener("look", this.look);
  }

  close() {
    this.closed = true;
    document.removeEventListener("look", this.look);
    document.removeEventListener("pointerdown", this.away);
    this.checkSoon.cancel();
    this.formSoon.cancel();
    this.writeSoon.cancel();
    this.sizes?.disconnect();
    this.live?.stop();
    this.abort?.abort();
    keep.set("draft", this.text);
  }

  async begin(route) {
    put(this.root, h("p", { class: "loading", role: "status" }, "Setting up the bench…"));
    try {
      [this.presets, this.topologies, this.schema, this.examples] = await Promise.all(
        ["/api/presets", "/api/topologies", "/api/schema", "/api/examples"].map(fixed),
      );
    } catch (error) {
      put(this.root, h("div", { class: "plain-view" }, trouble(error)));
      return;
    }
    if (this.closed) return;
    this.build();
    await this.update(route);
  }

  async update({ query }) {
    if (!this.examples) return;
    if (query.get("schemes") !== null)
      this.schemes = query
        .get("schemes")
        .split(",")
        .filter((name) => this.presets.some((preset) => preset.name === name));
    this.seeds = Math.max(1, Number(query.get("seeds")) || 1);
    this.vary = query.get("vary") ?? this.vary;
    let text = null;
    if (handed) {
      text = handed;
      handed = null;
    } else if (query.get("z"))
      text = await unpack(query.get("z")).catch(() => {
        note("This link does not hold a scenario that can be read.", true);
        return null;
      });
    else if (query.get("example"))
      text =
        query.get("example") === "start"
          ? START.text
          : (this.examples.find((one) => one.name === query.get("example"))?.text ?? null);
    else if (query.get("job")) {
      try {
        const job = await get(`/api/jobs/${query.get("job")}`);
        text = job.text;
        if (job.schemes && query.get("schemes") === null) this.schemes = job.schemes;
        if (job.seeds) this.seeds = job.seeds;
      } catch (error) {
        note(error.message, true);
      }
    }
    if (this.closed) return;
    this.setText(text ?? (this.text || keep.get("draft") || START.text), true);
    this.showSchemes();
    const out = query.get("out") ? Number(query.get("out")) : null;
    if (out !== null && out !== this.out) this.follow(out);
  }

  build() {
    this.area = h("textarea", {
      class: "code",
      spellcheck: "false",
      autocapitalize: "off",
      autocomplete: "off",
      wrap: "off",
      "aria-label": "Scenario text",
      "aria-describedby": "diagnosis",
      "data-search": true,
      oninput: () => {
        this.text = this.area.value;
        this.changed();
        this.formSoon();
      },
      onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          this.run();
        }
      },
    });
    this.ink = h("pre", { class: "ink", "aria-hidden": "true" });
    this.gutter = h("div", {});
    this.sheet = h("div", { class: "sheet" }, h("div", { class: "sheet-in" }, this.ink, this.area));
    this.sheet.addEventListener("scroll", () => {
      this.gutter.style.transform = `translateY(${-this.sheet.scrollTop}px)`;
    });
    this.diagnosis = h("div", { id: "diagnosis", class: "verdict-line", role: "status" });
    this.form = h("form", {
      class: "form",
      "aria-label": "Scenario form",
      onsubmit: (event) => event.preventDefault(),
      onchange: (event) => this.edited(event),
    });
    this.describe = h("pre", { hidden: true });
    this.canvas = h("canvas", { role: "img", "aria-label": "The fabric of this scenario" });
    this.preview = h("div", { class: "preview", hidden: true }, this.canvas);
    this.stage = new Stage(this.canvas);
    this.sizes = new ResizeObserver(() => {
      this.stage.resize();
      this.stage.draw({});
    });
    this.sizes.observe(this.canvas);
    this.picked = h("summary", { class: "button" });
    this.filter = h("input", {
      type: "search",
      placeholder: "Search schemes",
      "aria-label": "Search schemes",
      oninput: () => this.listSchemes(),
    });
    this.list = h("div", { class: "schemes", role: "group", "aria-label": "Schemes" });
    this.seedBox = h("input", {
      type: "number",
      min: "1",
      max: "50",
      value: this.seeds,
      "aria-label": "Seeds",
      style: { width: "4rem" },
      onchange: (event) => {
        this.seeds = Math.max(1, Number(event.target.value) || 1);
        this.writeSoon();
        this.showSchemes();
      },
    });
    this.varyBox = h("input", {
      type: "text",
      placeholder: "switch.buffer=2MB,4MB",
      "aria-label": "Vary a key",
      size: "22",
      value: this.vary,
      onchange: (event) => {
        this.vary = event.target.value.trim();
        this.writeSoon();
        this.showSchemes();
      },
    });
    const picker = h(
      "details",
      { class: "picker" },
      this.picked,
      h(
        "div",
        {},
        this.filter,
        this.list,
        h(
          "div",
          { class: "adders" },
          h("label", {}, "seeds ", this.seedBox),
          h("label", {}, "vary ", this.varyBox),
          h(
            "button",
            {
              type: "button",
              class: "button small",
              onclick: () => {
                this.schemes = [];
                this.showSchemes();
                this.writeSoon();
              },
            },
            "none",
          ),
          h(
            "button",
            {
              type: "button",
              class: "button small",
              onclick: () => {
                picker.open = false;
                this.picked.focus();
              },
            },
            "done",
          ),
        ),
      ),
    );
    picker.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        picker.open = false;
        this.picked.focus();
        event.stopPropagation();
      }
    });
    this.away = (event) => {
      if (picker.open && !picker.contains(event.target)) picker.open = false;
    };
    document.addEventListener("pointerdown", this.away);
    const examples = choice(
      {
        "aria-label": "Take an example",
        onchange: (event) => {
          if (event.target.value) location.hash = `#/bench?example=${event.target.value}`;
          event.target.value = "";
        },
      },
      [["", "Take an example…"], ["start", START.name], ...this.examples.map((one) => [one.name, one.title || one.name])],
      "",
    );
    this.why = h("input", {
      type: "checkbox",
      checked: keep.get("why") !== "no",
      onchange: (event) => keep.set("why", event.target.checked ? null : "no"),
    });
    this.runButton = action("Run", () => this.run(), { class: "button main", title: "Ctrl Enter" });
    this.compareButton = action("Compare", () => this.compare());
    this.outcome = h("section", { class: "outcome", "aria-label": "Results", hidden: true });
    put(
      this.root,
      h("h1", { class: "unseen" }, "Bench"),
      h(
        "div",
        { class: "bench" },
        h(
          "div",
          { class: "bench-bar" },
          examples,
          h("span", { class: "grow" }),
          h("label", { title: "Keeps who stopped whom, what filled them, and where the time of flows went. A run takes up to twice as long." }, this.why, "ask why"),
          this.runButton,
          picker,
          this.compareButton,
        ),
        this.form,
        h(
          "div",
          {},
          h("div", { class: "editor" }, h("div", { class: "gutter", "aria-hidden": "true" }, this.gutter), this.sheet),
          this.diagnosis,
          this.outcome,
          h("details", { class: "meaning" }, h("summary", {}, "What it means in full"), this.describe),
          this.preview,
        ),
      ),
    );
    this.showSchemes();
  }

  // Text.

  setText(text, fresh = false) {
    this.text = text;
    if (this.area.value !== text) this.area.value = text;
    if (fresh) this.sheet.scrollTop = 0;
    this.changed();
    this.buildForm();
  }

  changed() {
    this.paint();
    this.checkSoon();
    this.writeSoon();
  }

  // Colours beneath the transparent text, and what is wrong at the end of its line.
  paint() {
    const lines = this.text.split("\n");
    const wrong = new Map(this.problems.filter((problem) => problem.line).map((problem) => [problem.line - 1, problem]));
    put(
      this.gutter,
      lines.map((_, at) => [at > 0 && "\n", wrong.has(at) ? h("span", { class: "bad" }, at + 1) : String(at + 1)]),
    );
    if (lines.length > 3000) {
      this.ink.textContent = `${this.text}\n`;
      return;
    }
    let inside = "";
    const out = document.createDocumentFragment();
    lines.forEach((line, at) => {
      const cut = toml.pieces(line, inside);
      inside = cut.inside;
      const problem = wrong.get(at);
      const spans = cut.out.map(([kind, text]) => (kind ? h("span", { class: kind }, text) : text));
      if (problem) {
        const mark = h(
          "span",
          { class: "line-bad" },
          underline(line, problem.column, cut.out),
          h("span", { class: "lens" }, problem.message),
        );
        out.append(mark, "\n");
      } else out.append(...spans, "\n");
    });
    this.ink.replaceChildren(out);
  }

  async check() {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    const { text } = this;
    let answer;
    try {
      answer = await post("/api/check", { text }, signal);
    } catch (error) {
      if (error.name === "AbortError" || this.closed) return;
      put(this.diagnosis, trouble(error));
      return;
    }
    if (signal.aborted || this.closed) return;
    this.problems = answer.ok ? [] : (answer.problems ?? []);
    this.paint();
    this.markFields();
    if (answer.ok) {
      put(
        this.diagnosis,
        h("span", { class: "ok" }, "✓ "),
        `${plural(answer.hosts, "host")}, ${plural(answer.nodes - answer.hosts, "switch", "switches")}, ${plural(answer.flows, "flow")}.`,
        (answer.notes ?? []).map((text) => h("p", { class: "sub" }, text)),
      );
      this.describe.textContent = answer.describe;
      this.describe.hidden = false;
      this.showFabric(answer.scene);
    } else {
      put(
        this.diagnosis,
        this.problems.map((problem) =>
          h(
            "div",
            { class: "trouble" },
            h(
              "p",
              {},
              problem.line && [
                h(
                  "button",
                  { type: "button", class: "textual", onclick: () => this.toLine(problem.line, problem.column) },
                  `line ${problem.line}`,
                ),
                ": ",
              ],
              h("strong", {}, problem.message),
            ),
            problem.help && h("p", {}, problem.help, this.remedy(problem)),
          ),
        ),
      );
      say(`${this.problems[0]?.line ? `Line ${this.problems[0].line}: ` : ""}${this.problems[0]?.message ?? ""}`);
    }
  }

  // What was probably meant can be written with a press.
  remedy(problem) {
    const { meant } = problem;
    if (!meant || !problem.line || !problem.column) return null;
    return [
      " ",
      h(
        "button",
        {
          type: "button",
          class: "button small",
          onclick: () => {
            const lines = this.text.split("\n");
            const line = lines[problem.line - 1];
            const from = problem.column - 1;
            const old = /^"(?:[^"\\]|\\.)*"|^[\w-]+/.exec(line.slice(from))?.[0];
            if (!old) return;
            lines[problem.line - 1] =
              line.slice(0, from) + (old.startsWith('"') ? JSON.stringify(meant) : meant) + line.slice(from + old.length);
            this.setText(lines.join("\n"));
          },
        },
        `Write ${meant}`,
      ),
    ];
  }

  toLine(line, column) {
    const lines = this.text.split("\n");
    const at = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + Math.max(0, (column ?? 1) - 1);
    this.area.focus();
    this.area.setSelectionRange(at, at);
    this.sheet.scrollTop = Math.max(0, (line - 6) * 20);
  }

  showFabric(scene) {
    this.preview.hidden = !scene?.nodes?.length || scene.nodes.length > 5000;
    if (this.preview.hidden) return;
    this.stage.load({ nodes: scene.nodes, ports: scene.ports, kind: scene.topology.kind }, null);
    this.stage.resize();
    this.stage.draw({});
  }

  // Form.

  buildForm() {
    const doc = toml.parse(this.text);
    const focus = document.activeElement?.closest?.(".form") ? document.activeElement.dataset.path : null;
    const opened = new Map([...this.form.querySelectorAll("details")].map((one) => [one.dataset.section, one.open]));
    const section = (name, key, sub, ...children) =>
      h(
        "details",
        { "data-section": key, open: opened.get(key) ?? ["", "topology", "scheme", "what"].includes(key) },
        h("summary", {}, name, sub && h("span", { class: "sub" }, sub)),
        children,
      );
    const keysOf = (key) => this.schema.filter((row) => row.section === key);
    const kind = toml.shown(toml.find(doc, "topology.kind"));
    const shape = this.topologies.find((one) => one.kind === kind);
    const preset = toml.shown(toml.find(doc, "scheme.preset"));
    const about = this.presets.find((one) => one.name === preset)?.about;
    const tables = doc.tables.filter((table) => table.array && TRAFFIC.includes(table.name));
    const listed = doc.entries.filter((entry) => TRAFFIC.includes(entry.path));
    put(
      this.form,
      section(
        "Run",
        "",
        null,
        h(
          "div",
          { class: "fields" },
          keysOf("").map((row) => this.field(doc, row.key, row)),
        ),
      ),
      section(
        "Fabric",
        "topology",
        shape?.kind,
        h(
          "div",
          { class: "fields" },
          this.field(doc, "topology.kind", {
            key: "kind",
            choices: this.topologies.map((one) => one.kind),
            about: "The shape of the fabric.",
          }),
          shape?.about && h("p", { class: "about" }, shape.about),
          shape?.keys.map((row) => this.field(doc, `topology.${row.key}`, row)),
        ),
      ),
      section(
        "Scheme",
        "scheme",
        preset || null,
        h(
          "div",
          { class: "fields" },
          this.field(doc, "scheme.preset", {
            key: "preset",
            choices: this.presets.map((one) => one.name),
            about: "A set of mechanisms with a name.",
          }),
          about && h("p", { class: "about" }, about),
          this.present(doc, "scheme", ["preset"]),
        ),
        this.adder(
          doc,
          "scheme",
          keysOf("scheme").filter((row) => row.key !== "preset"),
        ),
      ),
      section(
        "What is sent",
        "what",
        plural(tables.length, "table"),
        listed.map((entry) =>
          h(
            "p",
            { class: "about" },
            `${entry.path}: written as a list, ${plural(entry.endLine - entry.line + 1, "line")}; `,
            h("button", { type: "button", class: "textual", onclick: () => this.toLine(entry.line + 1) }, "in the text"),
          ),
        ),
        tables
          .slice(0, 60)
          .map((table) => this.tableSet(doc, table, this.added === table.path || (opened.get(table.path) ?? tables.length <= 3))),
        tables.length > 60 && h("p", { class: "about" }, `and ${tables.length - 60} more in the text`),
        h(
          "div",
          { class: "adders" },
          TRAFFIC.filter((name) => keysOf(name).length).map((name) =>
            h(
              "button",
              {
                type: "button",
                class: "button small",
                onclick: () => {
                  this.added = `${name}.${tables.filter((table) => table.name === name).length}`;
                  this.setText(toml.addTable(this.text, name, BEGIN[name]));
                  this.sheet.scrollTop = this.sheet.scrollHeight;
                  this.added = null;
                },
              },
              `+ ${name}`,
            ),
          ),
        ),
      ),
      OTHERS.map(([key, name]) => {
        const there = doc.entries.filter((entry) => entry.path.startsWith(`${key}.`));
        return section(
          name,
          key,
          there.length ? `${there.length} set` : null,
          h("div", { class: "fields" }, this.present(doc, key)),
          this.adder(doc, key, keysOf(key)),
        );
      }),
    );
    if (focus) this.form.querySelector(`[data-path="${CSS.escape(focus)}"]`)?.focus();
    this.markFields();
  }

  // Fields for what a section has already.
  present(doc, section, leave = []) {
    return doc.entries
      .filter((entry) => entry.path.startsWith(`${section}.`) && !leave.includes(entry.path.slice(section.length + 1)))
      .map((entry) => {
        const key = entry.path.slice(section.length + 1);
        const cut = entry.path.lastIndexOf(".");
        const row = this.schema.find(
          (row) => row.section === entry.path.slice(0, cut) && row.key === entry.path.slice(cut + 1),
        ) ?? { key, unit: "text" };
        return this.field(doc, entry.path, { ...row, key });
      });
  }

  adder(doc, section, rows) {
    const free = rows.filter((row) => !toml.find(doc, `${section}.${row.key}`));
    if (!free.length) return null;
    return h(
      "div",
      { class: "adders" },
      choice(
        { "data-add": section, "aria-label": `Set another key of ${section}` },
        [
          ["", "set another key…"],
          ...free.map((row) => [row.key, row.default === null ? row.key : `${row.key} (${row.default})`]),
        ],
        "",
      ),
    );
  }

  tableSet(doc, table, open) {
    const rows = this.schema.filter((row) => row.section === table.name);
    const there = new Set(table.entries.map((entry) => entry.key));
    return h(
      "details",
      { class: "tableset", "data-section": table.path, open },
      h("summary", {}, `${table.name} ${table.index + 1}`, h("span", { class: "sub" }, gist(table))),
      h(
        "div",
        { class: "fields" },
        table.entries.map((entry) =>
          this.field(doc, entry.path, { ...(rows.find((row) => row.key === entry.key) ?? { unit: "text" }), key: entry.key }),
        ),
      ),
      h(
        "div",
        { class: "adders" },
        choice(
          { "data-add": table.path, "aria-label": `Set another key of ${table.name} ${table.index + 1}` },
          [["", "set another key…"], ...rows.filter((row) => !there.has(row.key)).map((row) => [row.key, row.key])],
          "",
        ),
        h(
          "button",
          {
            type: "button",
            class: "button small",
            "aria-label": `Take ${table.name} ${table.index + 1} away`,
            onclick: () => this.setText(toml.removeTable(this.text, table.path)),
          },
          "take away",
        ),
      ),
    );
  }

  field(doc, path, row) {
    const entry = toml.find(doc, path);
    const id = `f-${path.replaceAll(/[^\w-]/g, "-")}`;
    const now = toml.shown(entry);
    const plain = toml.plain(entry);
    const props = {
      id,
      "data-path": path,
      "data-bare": row.bare ? "yes" : null,
      title: row.about ?? "",
    };
    let control;
    const { choices } = row;
    if (choices && (now === "" || choices.includes(String(plain)))) {
      control = choice(props, [["", (row.default ?? null) === null ? "–" : `default: ${row.default}`], ...choices], now);
    } else {
      // What is more than a plain value is edited in the text.
      const whole = entry?.raw.includes("\n");
      control = h("input", {
        ...props,
        type: "text",
        value: whole ? "" : now,
        disabled: whole,
        placeholder: whole ? "several lines: see the text" : (row.default ?? row.unit ?? ""),
        autocomplete: "off",
        spellcheck: "false",
        list: row.words?.length ? `${id}-words` : null,
      });
    }
    const words =
      row.words?.length &&
      h(
        "datalist",
        { id: `${id}-words` },
        row.words.map((word) => h("option", { value: word })),
      );
    return [h("label", { for: id, title: row.about ?? "" }, row.key), h("div", { class: "field" }, control, words || null)];
  }

  edited(event) {
    const { target } = event;
    let text = this.text;
    if (target.dataset.add) {
      const section = target.dataset.add,
        key = target.value;
      if (!key) return;
      const row = this.schema.find((row) => row.section === section.replace(/\.\d+$/, "") && row.key === key);
      const start = row?.default ?? row?.choices?.[0] ?? "";
      text = toml.set(text, `${section}.${key}`, toml.written(start, row?.bare ?? false));
      queueMicrotask(() => this.form.querySelector(`[data-path="${CSS.escape(`${section}.${key}`)}"]`)?.focus());
    } else if (target.dataset.path) {
      const value = target.value.trim();
      text =
        value === ""
          ? toml.unset(text, target.dataset.path)
          : toml.set(text, target.dataset.path, toml.written(value, target.dataset.bare === "yes"));
    } else return;
    if (text === this.text) return;
    this.text = text;
    this.area.value = text;
    this.changed();
    // After the focus has moved on.
    setTimeout(() => this.closed || this.buildForm(), 0);
  }

  markFields() {
    // Text that is not TOML has a line and no key.
    const doc = this.problems.length ? toml.parse(this.text) : null;
    for (const field of this.form.querySelectorAll("[data-path]")) {
      const { path } = field.dataset;
      const line = doc && toml.find(doc, path)?.line;
      const wrong = this.problems.some((problem) =>
        // A part of an array is at fault in the field of the whole.
        problem.key ? `${problem.key}.`.startsWith(`${path}.`) : problem.line - 1 === line,
      );
      field.classList.toggle("wrong", wrong);
      if (wrong) field.setAttribute("aria-invalid", "true");
      else field.removeAttribute("aria-invalid");
    }
  }

  // Schemes.

  showSchemes() {
    this.picked.textContent = this.schemes.length
      ? `Schemes: ${this.schemes.slice(0, 4).join(", ")}${this.schemes.length > 4 ? ` and ${this.schemes.length - 4} more` : ""}${this.seeds > 1 ? `; ${this.seeds} seeds` : ""}${this.vary ? `; ${this.vary}` : ""} ▾`
      : "Choose schemes to compare ▾";
    this.compareButton.disabled = this.schemes.length + (this.vary ? 2 : 0) + (this.seeds > 1 ? 2 : 0) < 2;
    this.compareButton.title = this.compareButton.disabled ? "Choose two schemes or more" : "";
    this.seedBox.value = this.seeds;
    this.varyBox.value = this.vary;
    this.listSchemes();
  }

  listSchemes() {
    const wanted = this.filter.value.toLowerCase();
    put(
      this.list,
      this.presets
        .filter((one) => `${one.name} ${one.about}`.toLowerCase().includes(wanted))
        .map((one) =>
          h(
            "label",
            {},
            h("input", {
              type: "checkbox",
              value: one.name,
              checked: this.schemes.includes(one.name),
              onchange: (event) => {
                this.schemes = event.target.checked
                  ? [...this.schemes, one.name]
                  : this.schemes.filter((name) => name !== one.name);
                const { scrollTop } = this.list;
                this.showSchemes();
                this.list.scrollTop = scrollTop;
                this.list.querySelector(`[value="${CSS.escape(one.name)}"]`)?.focus();
                this.writeSoon();
              },
            }),
            h("strong", {}, one.name),
            h("span", { class: "sub" }, one.about),
          ),
        ),
    );
  }

  // Running.

  get name() {
    return toml.shown(toml.find(toml.parse(this.text), "name")) || "from the bench";
  }

  asked(request) {
    return this.why.checked ? asking(request) : request;
  }

  async run() {
    this.follow(await jobs.start(this.asked({ kind: "run", name: this.name, text: this.text, record: true })));
  }

  async compare() {
    const request = { kind: "compare", name: this.name, text: this.text, schemes: this.schemes, seeds: this.seeds, record: true };
    if (this.vary) request.vary = this.vary.split(/;\s*/);
    this.follow(await jobs.start(this.asked(request)));
  }

  follow(id) {
    this.out = id;
    this.write();
    this.live?.stop();
    this.outcome.hidden = false;
    this.live = progress(id, (job) => this.ended(job));
    put(this.outcome, h("h2", {}, "Result"), this.live.element);
    this.outcome.scrollIntoView({
      block: "nearest",
      behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth",
    });
  }

  async ended(job) {
    try {
      const whole = await jobWhole(job.id);
      if (this.closed || this.out !== job.id) return;
      const first = whole.runs[0],
        watch = whole.runs.some((run) => run.recording);
      put(
        this.outcome,
        h("h2", {}, whole.job.name ?? "Result"),
        this.live.element,
        problemOf(whole.job),
        whole.comparison ? comparisonTable(whole) : first?.summary && cards(first.summary),
        whole.runs.length > 0 &&
          h(
            "div",
            { class: "actions" },
            watch &&
              h(
                "a",
                {
                  class: "button main",
                  href: `#/fabric?job=${job.id}&run=0${
                    whole.runs.length > 1 && whole.comparison?.rows.length > 1
                      ? `&with=${Math.max(
                          1,
                          whole.runs.findIndex((run) => run.scheme !== first.scheme),
                        )}`
                      : ""
                  }`,
                },
                "Watch it",
              ),
            h("a", { class: "button", href: `#/results?job=${job.id}` }, "All results"),
          ),
      );
    } catch (error) {
      if (!this.closed) put(this.outcome, trouble(error));
    }
  }

  // The whole bench in its address.
  async write() {
    if (this.closed || !location.hash.startsWith("#/bench")) return;
    keep.set("draft", this.text);
    const query = new URLSearchParams();
    const example = this.text === START.text ? "start" : this.examples.find((one) => one.text === this.text)?.name;
    if (example) query.set("example", example);
    else {
      const packed = await pack(this.text).catch(() => "");
      if (packed.length < 16000) query.set("z", packed);
    }
    if (this.schemes.length) query.set("schemes", this.schemes.join(","));
    if (this.seeds > 1) query.set("seeds", this.seeds);
    if (this.vary) query.set("vary", this.vary);
    if (this.out !== null) query.set("out", this.out);
    if (!this.closed && location.hash.startsWith("#/bench")) history.replaceState(null, "", `#/bench?${query}`);
  }

  key() {
    return false;
  }
}

// A table of traffic in a few words.
function gist(table) {
  const of = (key) => {
    const entry = table.entries.find((one) => one.key === key);
    return entry ? toml.shown(entry) : null;
  };
  const name = of("name") && `${of("name")}: `;
  const parts = of("src")
    ? [`${of("src")} → ${of("dst")}`, of("size")]
    : [
        of("sizes"),
        of("load") && `load ${of("load")}`,
        of("degree") && `${of("degree")} to one`,
        of("size_each") ?? of("size"),
        of("to") && `to ${of("to")}`,
      ];
  return (name ?? "") + parts.filter(Boolean).join(", ");
}

// The letters from a column on, up to the end of the word, underlined.
function underline(line, column, cut) {
  if (!column) return cut.map(([kind, text]) => h("span", { class: kind }, text));
  const from = column - 1;
  const word = /^"(?:[^"\\]|\\.)*"?|^[\w.-]+|^\S+/.exec(line.slice(from))?.[0] ?? "";
  const to = from + word.length;
  let at = 0;
  return cut.flatMap(([kind, text]) => {
    const start = at;
    at += text.length;
    const inside = (a, b) => text.slice(Math.max(0, a - start), Math.max(0, b - start));
    return [
      [inside(start, from), ""],
      [inside(Math.max(from, start), Math.min(to, at)), " here"],
      [inside(Math.max(to, start), at), ""],
    ]
      .filter(([part]) => part)
      .map(([part, here]) => h("span", { class: kind + here }, part));
  });
}

async function through(bytes, stream) {
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(stream)).arrayBuffer());
}

async function pack(text) {
  const bytes = await through(new TextEncoder().encode(text), new CompressionStream("deflate-raw"));
  let letters = "";
  for (const byte of bytes) letters += String.fromCharCode(byte);
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

async function unpack(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = await through(
    Uint8Array.from(letters, (letter) => letter.charCodeAt(0)),
    new DecompressionStream("deflate-raw"),
  );
  return new TextDecoder().decode(bytes);
}
