// What a view of the fabric does before there is something to see: it finds its job and its recordings, waits for them, and looks for more.

import { jobs, over } from "./api.js";
import { h, put } from "./dom.js";
import { plural } from "./format.js";
import { forgetRecordings, jobWhole, recordingOf } from "./jobdata.js";
import { action, problemOf, progress, trouble } from "./parts.js";
import { START, startHere } from "./start.js";

/** How often there may be more of a run that goes on. */
const RENEW_MS = 2500;

export class Opening {
  nothing() {
    put(
      this.root,
      h(
        "section",
        { class: "empty" },
        h("h1", {}, "Nothing to watch yet"),
        h(
          "p",
          {},
          "A run that is recorded can be watched here: queues as they fill, links as they are paused, flows in flight.",
        ),
        h("p", {}, action("Start here: an incast under two schemes", startHere, { class: "button main" })),
        h("p", {}, "Or write a scenario of your own on the ", h("a", { href: "#/bench" }, "bench"), "."),
      ),
    );
  }

  async load() {
    this.abort?.abort();
    this.abort = new AbortController();
    const { signal } = this.abort;
    this.waiting?.stop();
    this.sides = [];
    this.playing = false;
    put(this.root, h("p", { class: "loading", role: "status" }, "Loading the recording…"));
    try {
      await jobs.all();
      const { job, runs } = await jobWhole(this.state.job, signal);
      if (signal.aborted) return;
      // A run that goes on can be watched as far as it is, and of a comparison under way what is done.
      this.live = !over(job) && Boolean(job.results?.live);
      if (this.live) {
        forgetRecordings(job.id);
        runs.push({ index: 0, label: job.name ?? `job ${job.id}`, labels: [], recording: true });
      }
      if (!this.ready(job, runs)) {
        this.wait(job);
        return;
      }
      this.job = job;
      this.runs = runs.filter((run) => run.recording).map((run) => ({ ...run, job }));
      if (this.state.also !== null) {
        const also = await jobWhole(this.state.also, signal);
        if (signal.aborted) return;
        if (!over(also.job)) {
          this.wait(also.job);
          return;
        }
        // Numbers of its runs come after those of the first.
        const next = Math.max(0, ...this.runs.map((run) => run.index)) + 1;
        const more = also.runs.filter((run) => run.recording);
        this.runs.push(...more.map((run) => ({ ...run, job: also.job, number: next + run.index })));
        if (more.length) this.state.with ??= next + more[0].index;
      }
      for (const run of this.runs) run.number ??= run.index;
      if (job.state === "failed" || job.state === "cancelled") {
        if (!this.runs.length) {
          put(
            this.root,
            h(
              "section",
              { class: "empty" },
              h("h1", {}, job.state === "failed" ? "This job failed" : "This job was cancelled"),
              problemOf(job),
              h("p", {}, h("a", { href: "#/jobs" }, "All jobs")),
            ),
          );
          return;
        }
      }
      if (!this.runs.length) {
        put(
          this.root,
          h(
            "section",
            { class: "empty" },
            h("h1", {}, "Nothing was recorded"),
            h(
              "p",
              {},
              "This job ran without a recording, so there is nothing to watch. Its numbers are in the ",
              h("a", { href: `#/results?job=${job.id}` }, "results"),
              ".",
            ),
          ),
        );
        return;
      }
      const first = this.runs.find((run) => run.number === this.state.run) ?? this.runs[0];
      const second = this.runs.find((run) => run.number === this.state.with && run !== first) ?? null;
      this.state.run = first.number;
      this.state.with = second?.number ?? null;
      const chosen = [first, second].filter(Boolean);
      const recordings = await Promise.all(chosen.map((run) => recordingOf(run.job.id, run.index)));
      await this.findCauses(chosen, signal);
      if (signal.aborted) return;
      this.build(chosen, recordings);
      this.chosen = chosen;
      if (this.live) this.renewSoon();
    } catch (error) {
      if (error.name !== "AbortError" && !this.closed)
        put(this.root, h("section", { class: "empty" }, trouble(error), h("p", {}, h("a", { href: "#/jobs" }, "All jobs"))));
    }
  }

  // Where the causes of each run are kept: with it, or with the run that a closer look is of, which is the same and goes on to its end.
  async findCauses(chosen, signal) {
    const of = (this.state.of ?? "").split(",").map((text) => text.split(".").map(Number));
    for (const [at, run] of chosen.entries()) {
      run.causes = { job: run.job.id, index: run.index, why: run.why };
      const [job, index] = of[at] ?? [];
      if (!Number.isInteger(job) || !Number.isInteger(index)) continue;
      try {
        const { runs } = await jobWhole(job, signal);
        if (runs.find((one) => one.index === index)?.why) run.causes = { job, index, why: true };
      } catch (error) {
        if (error.name === "AbortError") throw error;
        // That job is gone; the closer look has its own.
      }
    }
  }

  // Whether there is something to show of a job. Who asked for two runs waits for both.
  ready(job, runs) {
    const there = (number) => runs.some((run) => run.recording && run.index === number);
    const { with: beside, also } = this.state;
    return over(job) || Boolean(job.results?.live) || (runs.some((run) => run.recording) && (beside === null || also !== null || there(beside)));
  }

  // Of a run that goes on there is more after a while. Who watches its end goes on with it.
  renewSoon() {
    clearTimeout(this.renewal);
    this.renewal = setTimeout(() => this.renew(), RENEW_MS);
  }

  async renew() {
    const { job, run } = this.sides[0] ?? {};
    if (this.closed || !this.live || !job || job.id !== this.state.job) return;
    // Once it is over, all of it is loaded.
    if (over(jobs.get(job.id))) return;
    try {
      if (!this.playing && document.visibilityState === "visible") {
        forgetRecordings(job.id);
        const recording = await recordingOf(job.id, run.index);
        if (this.closed || this.playing || this.sides[0]?.job !== job) return;
        if (recording.end > this.span.to) {
          const last = this.state.t >= this.span.to;
          if (last) this.state.t = recording.end;
          this.state.win = this.address().win ?? null;
          this.build(this.chosen, [recording]);
        }
      }
    } catch {
      // It has just ended: the whole of it is loaded.
    }
    this.renewSoon();
  }

  wait(job) {
    // It may have something to show before it is over.
    const look = async () => {
      const now = await jobWhole(job.id, this.abort.signal).catch(() => null);
      if (this.closed || this.sides.length || !this.root.querySelector(".waiting") || !now || over(now.job)) return;
      if (job.id === this.state.job && this.ready(now.job, now.runs)) this.load();
      else this.renewal = setTimeout(look, RENEW_MS);
    };
    clearTimeout(this.renewal);
    this.renewal = setTimeout(look, RENEW_MS);
    this.waiting?.stop();
    this.waiting = progress(job.id, () => {
      forgetRecordings(job.id);
      this.load();
    });
    put(
      this.root,
      h(
        "section",
        { class: "empty waiting" },
        h("h1", {}, job.name ?? `Job ${job.id}`),
        h(
          "p",
          {},
          job.name === START.name
            ? "Twenty-four hosts answer one at once, while others only pass by. First under PFC, which stops whole links; then under BFC, which stops single flows. The two will stand side by side."
            : "It can be watched as soon as there is something to see.",
        ),
        this.waiting.element,
      ),
    );
  }

  // A comparison of which some runs are not done yet: what there is can be watched, and more comes.
  goesOn() {
    if (over(this.job)) return null;
    this.waiting?.stop();
    this.waiting = progress(this.job.id, () => {
      forgetRecordings(this.job.id);
      this.load();
    });
    const words = this.live ? "The run goes on; this is what there is so far." : `${plural(this.runs.length, "run")} can be watched already.`;
    return h("div", { class: "goes-on" }, words, this.waiting.element);
  }
}
