// What stands around the pictures of the fabric view: the bar above, the buttons and the strip of time below.

import { choice, h, put } from "./dom.js";
import { lookCloser } from "./closer.js";
import { savers } from "./export.js";
import { HEATS } from "./heat.js";
import { icon, legend, Timeline } from "./panels.js";
import { action } from "./parts.js";

export const SPEEDS = [0.125, 0.25, 0.5, 1, 2, 4, 8];
const SPEED_NAMES = ["⅛", "¼", "½", "1", "2", "4", "8"];

/** Puts everything into the page of a view; `chosen` are its runs. */
export function buildFrame(view, chosen, recordings) {
  const options = view.runs.map((run) => [run.number, run.label]);
  const go = (changes) => {
    Object.assign(view.state, changes);
    view.write();
    view.load();
  };
  const first = choice(
    {
      "aria-label": "Run",
      onchange: (event) =>
        go({ run: Number(event.target.value), with: view.state.with === Number(event.target.value) ? null : view.state.with }),
    },
    options,
    view.state.run,
  );
  const beside = choice(
    {
      "aria-label": "Beside it",
      onchange: (event) => go({ with: event.target.value === "" ? null : Number(event.target.value) }),
    },
    [["", "alone"], ...options.filter(([index]) => index !== view.state.run)],
    view.state.with ?? "",
  );
  view.found = h("datalist", { id: "ports" });
  const finder = h("input", {
    type: "search",
    list: "ports",
    placeholder: "find a port: h0",
    "aria-label": "Find a port",
    "data-search": true,
    autocomplete: "off",
    size: "20",
    oninput: (event) => view.find(event.target),
    onkeydown: (event) => {
      if (event.key === "Enter") view.find(event.target, true);
    },
  });
  view.stages = h(
    "div",
    { class: `stages n${view.sides.length}` },
    view.sides.map((side) => side.element),
  );
  view.verdictLine =
    view.verdict &&
    h(
      "p",
      { class: "verdict-above" },
      h("strong", {}, view.verdict.group),
      `: ${view.verdict.text}`,
      view.verdict.worst !== undefined && [
        "; worst ",
        h("button", { type: "button", class: "textual", onclick: () => view.pickNumber(view.verdict.worst) }, view.verdict.who),
      ],
    );
  view.views = choice(
    {
      "aria-label": "View",
      onchange: (event) => {
        const [shown, heat] = event.target.value.split(" ");
        Object.assign(view.state, { view: shown, heat: heat ?? view.state.heat });
        view.chooseView();
        view.remember();
      },
    },
    [
      ["picture", "picture"],
      ["stops", "timeline of stops"],
      ...Object.entries(HEATS).map(([key, { name }]) => [`heat ${key}`, `map of ${name}`]),
    ],
    view.shown === "heat" ? `heat ${view.state.heat}` : view.shown,
  );
  view.play = h("button", { type: "button", class: "play", onclick: () => view.toggle() });
  view.readout = h("output", { class: "instant" });
  const step = (text, name, f) =>
    h("button", { type: "button", class: "step", "aria-label": name, title: name, onclick: f }, text);
  view.speedBox = choice(
    {
      "aria-label": "Speed",
      onchange: (event) => {
        view.state.speed = Number(event.target.value);
        view.remember();
        view.showPace();
      },
    },
    SPEEDS.map((speed, at) => [speed, `${SPEED_NAMES[at]}×`]),
    view.state.speed,
  );
  view.pace = h("span", { class: "pace" });
  view.mapKey = h("span", { class: "key map-key" });
  view.timeline = new Timeline(view);
  const zoom = (text, name, factor) =>
    h("button", { type: "button", class: "step", "aria-label": name, title: name, onclick: () => view.zoom(factor) }, text);
  const zooms = h(
    "div",
    { class: "zoom", role: "group", "aria-label": "Zoom" },
    zoom("−", "Farther", 1 / 1.6),
    zoom("+", "Closer", 1.6),
    zoom("⤢", "All of it", 0),
  );
  view.aside = h("aside", { class: "side", "aria-label": "What is selected" });
  const bars = h(
    "label",
    { class: "check" },
    h("input", {
      type: "checkbox",
      checked: view.state.root,
      onchange: (event) => {
        view.state.root = event.target.checked;
        view.remember();
        view.redraw();
      },
    }),
    "lift small queues",
  );
  put(
    view.root,
    h("h1", { class: "unseen" }, `Fabric: ${view.job.name ?? ""}`),
    h(
      "div",
      { class: "fabric-bar" },
      h("span", { class: "fabric-name" }, view.job.name ?? `Job ${view.job.id}`),
      h("label", {}, "run ", first),
      view.runs.length > 1 && h("label", {}, "beside ", beside),
      h("span", { class: "grow" }),
      finder,
      view.found,
      h("label", {}, "show ", view.views),
      bars,
      savers(view),
      h("button", { type: "button", class: "button small", onclick: () => view.share() }, "copy link"),
      h("a", { class: "quiet", href: `#/results?job=${view.job.id}&run=${chosen[0].index}` }, "results"),
      view.state.back && h("a", { class: "quiet", href: `#/fabric?${view.state.back}` }, "back to the whole run"),
    ),
    view.goesOn(),
    h(
      "div",
      { class: "fabric-body" },
      h(
        "div",
        { class: "fabric-left" },
        view.verdictLine,
        view.stages,
        h(
          "div",
          { class: "transport" },
          h(
            "div",
            { class: "buttons" },
            view.play,
            step(icon("begin"), "To the beginning", () => view.seek(view.span.from)),
            step(icon("back"), "One frame back", () => view.step(-1)),
            step(icon("on"), "One frame on", () => view.step(1)),
            view.readout,
            h("label", { class: "speed" }, view.speedBox, view.pace),
            h("span", { class: "grow" }),
            h("button", { type: "button", class: "button small", title: "Key p", onclick: () => view.peak() }, "deepest queue"),
            h(
              "button",
              { type: "button", class: "button small", title: "Key n", onclick: () => view.nextPause() },
              "next pause",
            ),
            action("look closer", () => lookCloser(view), {
              class: "button small",
              title: "Runs some microseconds around this instant again, in frames of 100 ns",
            }),
            zooms,
          ),
          view.timeline.element,
        ),
        legend(recordings, view.mapKey),
      ),
      view.aside,
    ),
  );
}
