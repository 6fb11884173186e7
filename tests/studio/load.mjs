// The studio under load: many pages, a long queue, clients that are slow or silent, a clock that jumps, and kills in between.
//   TAILWATER=target/debug/tailwater node load.mjs [--long] [--seed N]
// Every job that was accepted ends and is found, every page shows how, and the server's memory and files stay within bounds.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import http from "node:http";
import net from "node:net";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { browser as launch } from "./browser.mjs";
import { BINARY, Studio } from "./server.mjs";

const { values: given } = parseArgs({ options: { long: { type: "boolean" }, seed: { type: "string", default: "1" } } });
const SIZE = given.long
  ? { tabs: 14, alone: 6, jobs: 200, idle: 500, slow: 40, deaf: 40, kills: 3, pause: 100 }
  : { tabs: 8, alone: 1, jobs: 24, idle: 450, slow: 8, deaf: 8, kills: 1, pause: 450 };

// What the server allows itself (limits.rs), and what follows from it.
const CONNECTIONS = 400;
const SEND_MS = 15_000;
const STALLED_MS = 60_000;
/** A connection is one file, and one more while it is sent a file. The rest: pipes of jobs and helpers, the runtime, the workspace. */
const MOST_FILES = CONNECTIONS + SIZE.deaf + 64;
/** The program and its tables, about 40 MB in a debug build; 100 KB for each connection; what lagging listeners are to be sent. */
const MOST_MEMORY = 128 << 20;
/** In the end there may be so much more than in the beginning: what the allocator keeps of the load, and the jobs. */
const LEFT_MEMORY = 48 << 20;
/** A busy machine is slow; a server that waits for its slow clients would take far longer. */
const ANSWER_MS = 12_000;
/** Far longer than anything takes. */
const PATIENCE_MS = 600_000;

let state = Number(given.seed) >>> 0;
/** A number below `n`, the same for the same seed. */
function draw(n) {
  state = (state + 0x6d2b79f5) >>> 0;
  let x = Math.imul(state ^ (state >>> 15), state | 1);
  x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
  return ((x ^ (x >>> 14)) >>> 0) % n;
}
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
async function until(what, test, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  let found;
  while (!(found = await test())) {
    if (Date.now() > end) throw new Error(`waited ${patience / 1000} s in vain: ${what}`);
    await sleep(100);
  }
  return found;
}
const begin = performance.now();
const seconds = () => ((performance.now() - begin) / 1000).toFixed(1);
const say = (text) => console.log(`${seconds().padStart(6)} s  ${text}`);

const tiny = (seed) => `name = "tiny ${seed}"
seed = ${seed}
[topology]
kind = "star"
hosts = 3
[scheme]
preset = "pfc"
[[flow]]
src = "h1"
dst = "h0"
size = "10KB"
[[flow]]
src = "h2"
dst = "h0"
size = "20KB"
`;
const ENDLESS = tiny(1).replace('"10KB"', '"900GB"');
// The clock: jumps of a year and more, forth and back, for the studio and its jobs. What runs on, as a clock must, is not touched.
const library = ["x86_64", "aarch64"].map((cpu) => `/usr/lib/${cpu}-linux-gnu/faketime/libfaketime.so.1`).find(existsSync);
const studio = new Studio(["--jobs", "2"]);
const clock = join(studio.folder, "clock");
const jump = (offset) => writeFileSync(clock, `${offset}\n`);
if (library) {
  jump("+0");
  studio.env = {
    LD_PRELOAD: library,
    FAKETIME_TIMESTAMP_FILE: clock,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    NO_FAKE_STAT: "1",
  };
} else console.log("no libfaketime here (Debian: faketime): the clock does not jump while jobs run, only files are dated elsewhere");

// What the server uses.
const files = () => {
  try {
    return readdirSync(`/proc/${studio.process.pid}/fd`).length;
  } catch {
    return 0;
  }
};
const memory = () => {
  try {
    return Number(/VmRSS:\s*(\d+)/.exec(readFileSync(`/proc/${studio.process.pid}/status`, "utf8"))?.[1] ?? 0) * 1024;
  } catch {
    return 0;
  }
};
const most = { files: 0, memory: 0, answer: 0 };
let watching = true;
/** Whether the server is meant to be there. */
let up = false;
async function watch() {
  while (watching) {
    most.files = Math.max(most.files, files());
    most.memory = Math.max(most.memory, memory());
    await sleep(50);
  }
}
/** Asks on a new connection: an idle one may be closed to make room just when it is used again. */
function get(path) {
  return new Promise((resolve, reject) => {
    const request = http.get(new URL(path, studio.url), { agent: false, timeout: PATIENCE_MS }, (answer) => {
      let text = "";
      answer.on("data", (data) => (text += data));
      answer.on("end", () => (answer.statusCode === 200 ? resolve(JSON.parse(text)) : reject(new Error(`${path}: ${text}`))));
      answer.on("error", reject);
    });
    request.on("error", reject);
    request.on("timeout", () => request.destroy(new Error(`${path}: no answer`)));
  });
}
/** Somebody who asks a short question all the time. */
async function ask() {
  while (watching) {
    const whose = studio.process.pid;
    const start = performance.now();
    try {
      await get("/api/about");
      if (whose === studio.process.pid) most.answer = Math.max(most.answer, performance.now() - start);
    } catch (error) {
      // Only where it was killed.
      if (up && watching && whose === studio.process.pid) throw error;
    }
    await sleep(200);
  }
}

// Clients that are slow, silent or gone.
const sockets = new Set();
/** A connection of which it is known when and how it ended. */
function connect() {
  const socket = net.connect(studio.port, "127.0.0.1");
  socket.begun = performance.now();
  socket.whose = studio.process.pid;
  socket.text = "";
  socket.over = new Promise((resolve) => {
    socket.on("close", () => {
      socket.took = performance.now() - socket.begun;
      sockets.delete(socket);
      resolve(socket);
    });
  });
  socket.on("error", () => {});
  sockets.add(socket);
  return socket;
}
const hears = (socket) => socket.on("data", (data) => (socket.text += data.toString("latin1").slice(0, 2000)));
const head = (method, path, more = "") => `${method} ${path} HTTP/1.1\r\nHost: 127.0.0.1:${studio.port}\r\n${more}\r\n`;
const JSON_HEAD = "Content-Type: application/json\r\nContent-Length: 500\r\n";

/** Opens a connection and says nothing. */
function silent() {
  const socket = hears(connect());
  // Where the system's queue is shorter than so many at once it drops some before the server hears of them, and they learn that only
  // from what they send. One that the server has kept for too long is not closed by this: a byte is no request.
  const timer = setTimeout(() => socket.write("G"), SEND_MS + ANSWER_MS / 2);
  socket.on("close", () => clearTimeout(timer));
  return socket;
}
/** Sends a request a byte a second. */
function slow(text, before = "") {
  const socket = hears(connect());
  let at = 0;
  socket.write(before);
  const timer = setInterval(() => socket.write(text[at++ % text.length]), 1000);
  socket.on("close", () => clearInterval(timer));
  return socket;
}
/** Sends half a body and goes away, in good order or not. */
function vanishes() {
  const socket = hears(connect());
  socket.write(`${head("POST", "/api/jobs", JSON_HEAD)}{"kind": "run", "name": "half`, () =>
    setTimeout(() => (draw(2) ? socket.resetAndDestroy() : socket.destroy()), draw(500)),
  );
}
/** Asks for much and takes a byte a second. */
function deaf(path, more) {
  const socket = connect();
  socket.write(head("GET", path, more));
  const timer = setInterval(() => (socket.text += socket.read(1)?.toString("latin1") ?? ""), 1000);
  // Paused, it is not seen to be closed until it is written to.
  const poke = setInterval(() => socket.write("\r\n"), 5000);
  socket.on("close", () => [timer, poke].forEach(clearInterval));
  return socket;
}

// Jobs.
const accepted = new Map();
const counts = { refused: 0, cancels: 0, unanswered: 0 };
async function post(path, body, raw) {
  for (;;) {
    try {
      const answer = await fetch(new URL(path, studio.url), {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: raw ?? JSON.stringify(body ?? {}),
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      return { status: answer.status, ...JSON.parse(await answer.text()) };
    } catch {
      // The server was killed: what it had not answered is asked again.
      counts.unanswered++;
      await sleep(200);
    }
  }
}
async function add(request, ends) {
  const { status, id, error } = await post("/api/jobs", request);
  assert.equal(status, 201, JSON.stringify(error));
  assert.ok(!accepted.has(id), `job ${id} is there twice`);
  accepted.set(id, ends);
  return id;
}
async function cancel(id) {
  const { status } = await post(`/api/jobs/${id}/cancel`);
  // It may be over already.
  assert.ok([200, 422].includes(status), `cancel: ${status}`);
  counts.cancels++;
}
const KINDS = [
  (n) => add({ kind: "run", name: `run ${n}`, text: tiny(n), record: n % 2 === 0 }, ["done"]),
  (n) => add({ kind: "run", name: `run ${n}`, text: tiny(n), record: false }, ["done"]),
  (n) =>
    add({ kind: "compare", name: `pair ${n}`, text: tiny(1), schemes: ["pfc", "hpcc"], seeds: 1 + (n % 2), record: false }, ["done"]),
  (n) => add({ kind: "run", name: `wrong ${n}`, text: `${tiny(n)}colour = "red"\n` }, ["failed"]),
  async (n) => cancel(await add({ kind: "run", name: `dropped ${n}`, text: tiny(n) }, ["cancelled", "done"])),
  async (n) => {
    const id = await add({ kind: "run", name: `endless ${n}`, text: ENDLESS }, ["cancelled"]);
    return { id, cancel: true };
  },
];
const BAD = [
  { raw: "{", status: 400 },
  { raw: '{"kind": "dance"}', status: 400 },
  { body: { kind: "compare", name: "x", text: tiny(1), schemes: ["nothing"] }, status: 422 },
  { body: { kind: "run", name: "n".repeat(1000), text: tiny(1) }, status: 422 },
  { raw: " ".repeat((1 << 20) + 1), status: 413 },
];
const end = (job) => job.state !== "queued" && job.state !== "running";
const list = async () => {
  const whose = studio.process.pid;
  try {
    return await get("/api/jobs");
  } catch (error) {
    if (up && whose === studio.process.pid) throw error;
    return [];
  }
};

async function queue() {
  const endless = new Set();
  const adding = (async () => {
    for (let n = 1; n <= SIZE.jobs; n++) {
      await sleep(draw(2 * SIZE.pause));
      const made = await KINDS[n % 10 === 0 ? 5 : draw(5)](n);
      if (made?.cancel) endless.add(made.id);
      if (draw(3) === 0) {
        const bad = BAD[draw(BAD.length)];
        const { status } = await post("/api/jobs", bad.body, bad.raw);
        assert.equal(status, bad.status);
        counts.refused++;
      }
    }
  })();
  let added = false;
  adding.then(
    () => (added = true),
    () => {},
  );
  // Those that would never end are cancelled as soon as they run.
  const cancelling = (async () => {
    while (!added || endless.size) {
      for (const job of await list()) {
        if (!endless.has(job.id) || job.state === "queued") continue;
        // A cancel that a kill has swallowed is asked for again.
        if (job.state === "running") await cancel(job.id);
        else endless.delete(job.id);
      }
      await sleep(300);
    }
  })();
  await Promise.all([adding, cancelling]);
}

/** What pages show: the state of each job. */
const shown = (page) =>
  page.evaluate(() =>
    Object.fromEntries([...document.querySelectorAll("tr[data-job]")].map((row) => [row.dataset.job, row.querySelector(".badge").lastChild.textContent])),
  );

async function main() {
  await studio.start();
  up = true;
  const browser = await launch();
  const background = [watch(), ask()];
  const failed = new Promise((_, reject) => background.forEach((work) => work.catch(reject)));
  try {
    await Promise.race([failed, load(browser)]);
  } finally {
    watching = false;
    sockets.forEach((socket) => socket.destroy());
    await browser.close();
    await studio.remove();
  }
}

async function load(browser) {
  const recorded = await studio.job({ kind: "run", name: "recorded", text: tiny(1000), record: true });
  accepted.set(recorded, ["done"]);
  const before = { files: files(), memory: memory() };
  // A recording that fits into no buffer of the system, and cannot be packed.
  writeFileSync(join(studio.folder, `work/jobs/${recorded}/out/recording.bin`), randomBytes(40e6));
  say(`the studio uses ${(before.memory / 1e6).toFixed(0)} MB and ${before.files} files`);

  // Pages: most are tabs of one browser, which has six connections to a host.
  const tabs = await browser.newContext();
  const contexts = [...Array(SIZE.tabs).fill(tabs)];
  for (let at = 0; at < SIZE.alone; at++) contexts.push(await browser.newContext());
  const open = async (context, at) => {
    context.setDefaultTimeout(PATIENCE_MS);
    const page = await context.newPage();
    await page.goto(new URL(["#/jobs", "#/jobs", "#/ledger", "#/bench"][at % 4], studio.url).href);
    return page;
  };
  const opening = Promise.all(contexts.map(open));

  // Connections that bring nothing, more than the server takes.
  const idle = Array.from({ length: SIZE.idle }, silent);
  const heads = Array.from({ length: SIZE.slow }, () => slow(head("GET", "/api/about")));
  const bodies = Array.from({ length: SIZE.slow }, () => slow("{", head("POST", "/api/jobs", JSON_HEAD)));
  Array.from({ length: SIZE.slow }, vanishes);
  const read = () =>
    Array.from({ length: SIZE.deaf }, (_, at) => deaf(`/api/jobs/${recorded}/recording/0`, at % 2 ? "Accept-Encoding: gzip\r\n" : ""));
  let readers = read();
  Array.from({ length: SIZE.deaf }, () => deaf("/api/events"));
  const working = queue();
  working.catch(() => {});
  const pages = await opening;
  say(`${pages.length} pages are open, ${sockets.size} other connections are left, ${accepted.size} jobs are accepted`);

  // Nobody keeps a place for longer than there is time to send a request.
  const late = (socket) => socket.took > SEND_MS + ANSWER_MS && socket.whose === studio.process.pid;
  for (const [what, all] of Object.entries({ idle, heads, bodies })) {
    const ended = await Promise.all(all.map((socket) => socket.over));
    const latest = Math.max(...ended.map((socket) => socket.took)) / 1000;
    assert.ok(!ended.some(late), `${what}: one was kept for ${latest} s`);
    const told = ended.filter((socket) => socket.text.startsWith("HTTP/1.1 408")).length;
    say(`${what}: ${ended.length} closed within ${latest.toFixed(1)} s, ${told} with a word`);
  }

  const offsets = ["+400d", "-400d", "+36500d", "-0d"];
  const over = async () => (await list()).filter(end).length;
  for (let kill = 1; kill <= SIZE.kills; kill++) {
    const share = kill / (SIZE.kills + 1);
    await until(`${(share * 100).toFixed(0)} % of the jobs are over`, async () => {
      if (library) jump(offsets[draw(offsets.length)]);
      return (await over()) >= share * SIZE.jobs;
    });
    up = false;
    await studio.kill();
    // What is found on the disk is dated in the future and in the past.
    const jobs = join(studio.folder, "work/jobs");
    for (const id of readdirSync(jobs)) {
      const path = join(jobs, id, "job.json");
      if (draw(3) || !existsSync(path)) continue;
      const job = JSON.parse(readFileSync(path, "utf8"));
      job.created += (draw(2) ? 1 : -1) * 1e11;
      writeFileSync(path, JSON.stringify(job));
      const year = Date.now() / 1000 + (draw(2) ? 1 : -1) * 4e7;
      [path, join(jobs, id), jobs].forEach((name) => utimesSync(name, year, year));
    }
    if (library) jump(offsets[draw(offsets.length)]);
    await studio.start();
    up = true;
    say(`killed and started again, ${accepted.size} jobs are accepted`);
  }
  if (given.long) readers = read();
  await working;
  say(`all ${accepted.size} jobs are accepted`);
  await until("all jobs are over", async () => {
    if (library) jump(offsets[draw(offsets.length)]);
    return (await list()).every(end);
  });

  // Every job is there, and ended as it should.
  const found = new Map((await list()).map((job) => [String(job.id), job.state]));
  const ends = {};
  for (const [id, good] of accepted) {
    const is = found.get(String(id));
    assert.ok(good.includes(is), `job ${id} is ${is}, not ${good.join(" or ")}`);
    ends[is] = (ends[is] ?? 0) + 1;
    if (is !== "done") continue;
    const { results } = await get(`/api/jobs/${id}`);
    for (const run of results.runs) assert.equal(run.summary.finished, run.summary.flows, `job ${id}`);
    assert.ok(results.runs.length > 0, `job ${id} has no run`);
  }
  // One that was not answered may be there all the same.
  assert.ok(found.size >= accepted.size && found.size <= accepted.size + counts.unanswered, `${found.size} jobs`);
  if (existsSync(join(studio.folder, "work/runs"))) execFileSync(BINARY, ["store", "verify", join(studio.folder, "work/runs")]);
  say(`every job is over: ${Object.entries(ends).map(([name, count]) => `${count} ${name}`).join(", ")}; ${counts.refused} bad requests were refused`);

  // Every page shows that.
  const truth = Object.fromEntries(found);
  for (const [at, page] of pages.entries()) {
    await page.evaluate(() => (location.hash = "#/jobs"));
    let now;
    try {
      await until("", async () => {
        now = await shown(page);
        return JSON.stringify(now) === JSON.stringify(truth);
      }, 30_000);
    } catch {
      assert.deepEqual(now, truth, `page ${at}`);
    }
    // It hears of the jobs by asking, and of the studio's return when its stream of events is there again.
    await until(`page ${at} no longer says that the studio is gone`, async () => !(await page.locator("#lost").isVisible()), 30_000);
  }
  say(`all ${pages.length} pages show it`);

  // Those who take nothing are let go.
  if (given.long) {
    const ended = await Promise.all(readers.map((socket) => Promise.race([socket.over, sleep(2 * STALLED_MS)])));
    assert.ok(ended.every(Boolean), `${ended.filter((one) => !one).length} readers that take nothing are still there`);
    const latest = Math.max(...ended.map((socket) => socket.took)) / 1000;
    say(`readers: ${ended.length} that take a byte a second closed within ${latest.toFixed(1)} s`);
  }
  sockets.forEach((socket) => socket.destroy());
  for (const context of new Set(contexts)) await context.close();
  await until("the server closes what it has opened", () => files() <= before.files + 2, 30_000);
  const after = { files: files(), memory: memory() };
  const left = readdirSync("/proc").filter((id) => {
    try {
      return /^\d+$/.test(id) && Number(readFileSync(`/proc/${id}/stat`, "utf8").split(") ").at(-1).split(" ")[1]) === studio.process.pid;
    } catch {
      return false;
    }
  });
  assert.deepEqual(left, [], "processes are left");
  const mb = (bytes) => `${(bytes / 1e6).toFixed(0)} MB`;
  say(`memory: ${mb(before.memory)} at first, ${mb(most.memory)} at most, ${mb(after.memory)} in the end`);
  say(`files: ${before.files} at first, ${most.files} at most, ${after.files} in the end`);
  say(`the longest wait for an answer: ${(most.answer / 1000).toFixed(2)} s`);
  assert.ok(most.files <= MOST_FILES, `${most.files} files were open; ${MOST_FILES} is the most`);
  assert.ok(most.memory <= MOST_MEMORY, `${mb(most.memory)} were used; ${mb(MOST_MEMORY)} is the most`);
  assert.ok(after.memory <= before.memory + LEFT_MEMORY, `${mb(after.memory)} are still used`);
  assert.ok(most.answer <= ANSWER_MS, `an answer took ${most.answer} ms; ${ANSWER_MS} is the most`);
}

await main();
