// The cards beside the picture: a port's whole time, a flow's life, and why each waited.

import { h } from "./dom.js";
import { captureButton } from "./closer.js";
import { grown } from "./stage.js";
import { took } from "./panels.js";
import { bytes, count, number, plural, rate, share, time } from "./format.js";
import { waterfall } from "./waterfall.js";
import { notAsked, whyPart } from "./why.js";

// A flow that is asked for and was not recorded.
export function missingCard(view) {
  return view.card(
    h("span", {}, `Flow ${view.missing}`),
    () => view.pickFlow(null),
    h(
      "p",
      { class: "facts" },
      "It was not recorded. Of a run with very many flows, 256 are: the slowest of each group, and of the others some of all sizes. Groups that ",
      h("code", {}, "measure.flows"),
      " names come before all others. What it took is in the ",
      h("a", { href: `#/results?job=${view.job.id}&run=${view.state.run}` }, "results"),
      ".",
    ),
    whyOf(view, () => ({ flow: view.missing })),
  );
}

// Why a port or a flow waited, run by run, and under a flow where its time went. `what` gives what to ask of a side, or nothing.
function whyOf(view, what) {
  const sides = (view.same ? view.sides : view.sides.slice(0, 1)).filter((side) => what(side));
  const asked = sides.filter((side) => side.why.known);
  if (!asked.length) return sides.length ? notAsked(view) : null;
  const falls = h("div", {});
  const parts = new Map();
  const list = asked.map((side) => {
    const question = what(side);
    if (question.flow !== undefined)
      question.parts = (of) => {
        parts.set(side, of);
        if (parts.size === asked.length)
          falls.replaceChildren(waterfall(asked.map((one) => ({ name: asked.length > 1 ? one.name : "its time", parts: parts.get(one) }))));
      };
    return whyPart(view, side, question, sides.length > 1);
  });
  view.whyNow.push(...list.map(({ at }) => at));
  return [list.map(({ element }) => element), falls];
}

// The same series of both runs: the first filled, the second a dashed line. Shares of time have means.
function linesOf(view, series, colour, kind = "area", mean = false) {
  const sides = view.same ? view.sides : view.sides.slice(0, 1);
  return sides.map((side, at) => ({
    values: series(side.recording),
    first: side.recording.first,
    every: side.recording.every,
    colour: at ? "--ink" : colour,
    kind: at ? "line" : kind,
    mean,
    dash: at ? [4, 3] : undefined,
    name: sides.length > 1 ? side.name : undefined,
  }));
}

export function portCard(view) {
  const { port } = view.state;
  const main = view.sides[0].recording;
  const { rate_bps, delay_ps, peer } = main.ports[port];
  const per = (name, by) => (recording) => {
    const values = recording.series(name, port);
    return values && by ? Float64Array.from(values, (value) => by(value, recording)) : values;
  };
  const any = (name) =>
    view.sides.some(({ recording }) => recording.ports[port] && recording.series(name, port)?.some((value) => value > 0));
  const charts = [
    {
      title: "queue",
      format: (value) => bytes(value),
      lines: linesOf(view, per("queued"), "--queue"),
      marks: main.ports[port].mark ? [{ at: main.ports[port].mark, colour: "--soft", text: `marks above ${bytes(main.ports[port].mark, 2)}` }] : [],
    },
    {
      title: "link use",
      format: (value) => share(value, 2),
      top: 1,
      lines: linesOf(
          view,
        per("sent", (value, recording) => Math.min(1, value / recording.capacity(port))),
        "--use-2",
        "area",
        true,
      ),
    },
  ];
  // Each kind of pause without those that stop more.
  const parts = [
    ["paused by its neighbour", "paused_port", null],
    ["a class paused by its neighbour", "paused_class", "paused_port"],
    ["only a queue paused by its neighbour", "paused", "paused_class"],
  ];
  const early = main.header.version < 2;
  for (const [title, name, less] of early ? [[parts[0][0], "paused", null]] : parts) {
    const series = (recording) => {
      const values = recording.series(name, port),
        inner = less && recording.series(less, port);
      return values && Float64Array.from(values, (value, at) => Math.min(1, (value - (inner ? inner[at] : 0)) / recording.every));
    };
    if (view.sides.some(({ recording }) => recording.ports[port] && series(recording)?.some((value) => value > 0)))
      charts.push({
        title,
        format: (value) => share(value, 2),
        top: 1,
        height: 34,
        lines: linesOf(view, series, "--pause", "bars", true),
      });
  }
  if (any("held_queues"))
    charts.push({
      title: "queues held",
      format: (value) => count(value),
      height: 40,
      lines: linesOf(view, per("held_queues"), "--held"),
    });
  if (any("held_flows"))
    charts.push({
      title: "flows held at this NIC",
      format: (value) => count(value),
      height: 40,
      lines: linesOf(view, per("held_flows"), "--held"),
    });
  if (any("pause_frames"))
    charts.push({
      title: "control frames to its neighbour",
      format: (value) => count(value),
      height: 34,
      lines: linesOf(view, per("pause_frames"), "--control", "bars"),
    });
  if (any("signals"))
    charts.push({
      title: "signals to hosts sent here",
      format: (value) => count(value),
      height: 34,
      lines: linesOf(view, per("signals"), "--control", "bars"),
    });
  if (any("marked"))
    charts.push({
      title: "packets marked",
      format: (value) => count(value),
      height: 34,
      lines: linesOf(view, per("marked"), "--soft", "bars"),
    });
  if (any("dropped"))
    charts.push({
      title: "packets dropped",
      format: (value) => count(value),
      height: 34,
      lines: linesOf(view, per("dropped"), "--bad", "bars"),
    });
  const through = main.flows.map((flow, at) => [flow, at]).filter(([flow]) => flow.path.includes(port));
  return view.card(
    h(
      "span",
      {},
      main.nodeName(main.ports[port].node),
      h("span", { class: "arrow" }, " → "),
      main.nodeName(main.ports[peer].node),
    ),
    () => view.pick(null),
    h(
      "p",
      { class: "facts" },
      `port ${port}, ${rate(rate_bps)}, ${time(delay_ps)} long `,
      h("button", { type: "button", class: "textual", onclick: () => view.pick(peer) }, "the other direction"),
    ),
    view.sides.length > 1 &&
      view.same &&
      h("p", { class: "facts" }, "filled: ", view.sides[0].name, "; dashed: ", view.sides[1].name),
    whyOf(view, () => ({ port, link: main.portName(port) })),
    charts.map((spec) => view.chart(spec)),
    captureButton(view, port),
    through.length > 0 &&
      h(
        "details",
        { class: "through", open: through.length < 7 },
        h("summary", {}, `${plural(through.length, "recorded flow")} ${through.length === 1 ? "takes" : "take"} this link`),
        h(
          "div",
          { class: "flow-buttons" },
          through
            .slice(0, 60)
            .map(([flow, at]) =>
              h(
                "button",
                { type: "button", class: "textual", onclick: () => view.pickFlow(at) },
                `${main.nodeName(flow.src)} → ${main.nodeName(flow.dst)}, ${bytes(flow.size)}`,
              ),
            ),
        ),
      ),
  );
}

export function flowCard(view) {
  const main = view.sides[0].recording;
  const flow = main.flows[view.flow];
  const name = (node) => main.nodeName(node);
  const ended = (recording, at) => {
    const one = recording.flows[at];
    return one?.received_ps === null || one?.received_ps === undefined
      ? "not received to the end"
      : `received after ${time(took(one))}${recording.slowdown(one) === null ? "" : `, ${number(recording.slowdown(one), 3)}× as long as alone`}`;
  };
  const sides = view.same ? view.sides : view.sides.slice(0, 1);
  const held = h("p", { class: "facts live" });
  view.flowNow = (ps) => {
    const lines = sides
      .map((side) => {
        const at = view.flowIn(side);
        if (at === null) return null;
        const { recording } = side;
        const frame = recording.frameAt(ps),
          one = recording.flows[at];
        const by = recording.value("flow.by", at, frame);
        const stood = grown(recording, "flow.paused", at, frame),
          nic = recording.nicOf(one);
        const what =
          one.start_ps === null || ps < one.start_ps
            ? "has not begun"
            : recording.value("flow.acknowledged", at, frame) >= one.size
              ? "done"
              : by > 0
                ? `held by ${recording.nodeName(by - 1)}`
                : stood > 0
                  ? `held at its NIC: ${nic === null ? "its neighbour" : recording.neighbour(nic)} pauses its class, for ${share(Math.min(1, stood / recording.every), 2)} of this frame`
                : frame > 0 && recording.value("flow.held", at, frame) > recording.value("flow.held", at, frame - 1)
                  ? "held"
                  : "under way";
        return (sides.length > 1 ? `${side.name}: ` : "") + what;
      })
      .filter(Boolean);
    held.textContent = `now ${lines.join("; ")}`;
  };
  const life = sides.flatMap((side) => {
    const at = view.flowIn(side);
    if (at === null) return [];
    const { recording } = side;
    const tag = sides.length > 1 ? `${side.name}: ` : "";
    const line = (column, colour, dash, kind = "line") => ({
      values: recording.series(`flow.${column}`, at),
      first: recording.first,
      every: recording.every,
      colour,
      dash,
      kind,
    });
    const one = recording.flows[at],
      nic = recording.nicOf(one),
      lasted = took(one) ?? recording.end - (one.start_ps ?? recording.end);
    const stands = [
      ["held by flow control", "flow.held", "--held"],
      [`its class paused at its NIC by ${nic === null ? "its neighbour" : recording.neighbour(nic)}`, "flow.paused", "--pause"],
    ].map(([what, column, colour]) => {
      const series = recording.series(column, at);
      const total = series ? series[series.length - 1] : 0;
      if (!total) return null;
      const values = Float64Array.from(series, (value, frame) =>
        Math.min(1, (value - (frame ? series[frame - 1] : 0)) / recording.every),
      );
      return view.chart({
        title: `${tag}${what}, ${time(total, 3)}${lasted > 0 ? ` of ${time(lasted, 3)}` : ""}`,
        height: 26,
        top: 1,
        format: (value) => share(value, 2),
        lines: [{ values, first: recording.first, every: recording.every, colour, kind: "bars", mean: true }],
      });
    });
    return [
      view.chart({
        title: [
          tag,
          h("span", { class: "w-sent" }, "sent"),
          ", ",
          h("span", { class: "w-received" }, "received"),
          ", ",
          h("span", { class: "w-acknowledged" }, "acknowledged"),
        ],
        height: 64,
        top: flow.size,
        format: bytes,
        lines: [
          { ...line("sent", "--use-1"), readout: () => "" },
          { ...line("received", "--use-3"), readout: (ps) => bytes(recording.value("flow.received", at, recording.frameAt(ps))) },
          { ...line("acknowledged", "--control", [3, 3]), readout: () => "" },
        ],
      }),
      ...stands,
    ];
  });
  return view.card(
    h("span", {}, name(flow.src), h("span", { class: "arrow" }, " → "), name(flow.dst)),
    () => view.pickFlow(null),
    h(
      "p",
      { class: "facts" },
      `flow ${flow.flow}, ${main.groups[flow.group] ?? "flows"}, ${bytes(flow.size)}, ${flow.start_ps === null ? "never started" : `starts at ${time(flow.start_ps)}`}`,
    ),
    sides.map((side) =>
      h(
        "p",
        { class: "facts" },
        sides.length > 1 && h("strong", {}, `${side.name}: `),
        view.flowIn(side) === null ? "not recorded there" : ended(side.recording, view.flowIn(side)),
      ),
    ),
    held,
    whyOf(view, (side) => (view.flowIn(side) === null ? null : { flow: flow.flow })),
    life.filter(Boolean),
    flow.path.length === 0
      ? h("p", { class: "facts" }, "Its packets take many paths.")
      : h(
          "p",
          { class: "path" },
          "path: ",
          flow.path.map((port, at) => [
            at > 0 && " → ",
            h(
              "button",
              { type: "button", class: "textual", title: "This port", onclick: () => view.pick(port) },
              name(main.ports[port].node),
            ),
          ]),
          ` → ${name(flow.dst)}`,
        ),
  );
}

