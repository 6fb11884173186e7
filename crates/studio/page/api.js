// The server: requests, errors in words, and the stream of events.

import { listen } from "./stream.js";

const given = new URLSearchParams(location.search).get("token");
if (given) {
  try {
    sessionStorage.setItem("studio.token", given);
  } catch {
    /* kept for this page only */
  }
  history.replaceState(null, "", location.pathname + location.hash);
}
const token =
  given ??
  (() => {
    try {
      return sessionStorage.getItem("studio.token");
    } catch {
      return null;
    }
  })();

/** What went wrong, as people may read it. */
export class Trouble extends Error {
  constructor(problem, status) {
    super(problem.message ?? "Something went wrong.");
    Object.assign(this, { help: problem.help, line: problem.line, column: problem.column, status });
  }
}

/** An address that the browser itself opens: an image, a download. */
export function link(path) {
  return token ? `${path}${path.includes("?") ? "&" : "?"}token=${encodeURIComponent(token)}` : path;
}

/** This very page for others: at an address that they can reach, where there is one, and with the token if one is needed. */
export async function sharedLink() {
  const { address } = await fixed("/api/about").catch(() => ({}));
  const here = /^(127\.|localhost$|\[?::1\]?$)/.test(location.hostname);
  const base = here && address ? address : `${location.origin}${location.pathname}`;
  return {
    address: `${base}${token ? `?token=${encodeURIComponent(token)}` : ""}${location.hash}`,
    others: !here || Boolean(address),
  };
}

async function ask(method, path, body, signal) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (method !== "GET") headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, signal, body: method === "GET" ? undefined : JSON.stringify(body ?? {}) });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    lost();
    throw new Trouble(
      { message: "The studio does not answer.", help: "Is `tailwater studio` still running? This page tries again by itself." },
      0,
    );
  }
  if (answer.ok) return answer;
  let problem = null;
  try {
    problem = (await answer.json()).error;
  } catch {
    /* not ours */
  }
  if (answer.status === 401) become("refused");
  if (answer.status === 401 || answer.status === 403)
    problem ??= { message: "The studio refused this.", help: "Open the address it printed, with its token." };
  throw new Trouble(problem ?? { message: `The studio answered ${answer.status} ${answer.statusText}.` }, answer.status);
}

const read = async (answer) => {
  const text = await answer.text();
  return text ? JSON.parse(text) : null;
};
export const get = async (path, signal) => read(await ask("GET", path, null, signal));
export const getText = async (path, signal) => (await ask("GET", path, null, signal)).text();
export const getBytes = async (path, signal) => (await ask("GET", path, null, signal)).arrayBuffer();
export const post = async (path, body, signal) => read(await ask("POST", path, body, signal));
export const remove = async (path) => read(await ask("DELETE", path, null));

const once = new Map();
/** Something that does not change while the page is open. */
export function fixed(path) {
  if (!once.has(path))
    once.set(
      path,
      get(path).catch((error) => {
        once.delete(path);
        throw error;
      }),
    );
  return once.get(path);
}

// Jobs, kept up to date by events.

const known = new Map();
const listeners = new Set();
/** By job, how many events there had been when it was last heard of. */
const heard = new Map();
let events = 0;
let list = null;

export const jobs = {
  /** All of them, newest first; asks the server only the first time. */
  async all() {
    await (list ??= refresh());
    return [...known.values()].sort((a, b) => b.id - a.id);
  },
  get: (id) => known.get(id),
  running: () => [...known.values()].filter((job) => job.state === "running" || job.state === "queued"),
  /** Calls `f(job, gone)` at every change, until what it returns is called. */
  watch(f) {
    listeners.add(f);
    return () => listeners.delete(f);
  },
  async start(request) {
    const answer = await post("/api/jobs", request);
    const { id } = answer;
    const before = events;
    let job = { id, state: "queued", kind: request.kind, name: request.name ?? request.id, progress: null };
    try {
      job = await get(`/api/jobs/${id}`);
    } catch {
      /* the event will report it */
    }
    // A short job may be over, and known to be, before the answer is here.
    if (!heardSince(id, before)) changed(job, false);
    return id;
  },
  cancel: (id) => post(`/api/jobs/${id}/cancel`),
  again: (id) => post(`/api/jobs/${id}/again`),
  async remove(id) {
    await remove(`/api/jobs/${id}`);
    if (known.delete(id)) changed({ id }, true);
  },
};

function changed(job, gone) {
  if (!gone) known.set(job.id, { ...known.get(job.id), ...job });
  for (const f of [...listeners]) f(gone ? job : known.get(job.id), gone);
}

/** Whether an event reported a job after there had been so many: an answer that was asked for before it is older. */
const heardSince = (id, before) => (heard.get(id) ?? 0) > before;

async function refresh() {
  const before = events;
  const now = await get("/api/jobs");
  const there = new Set(now.map((job) => job.id));
  for (const id of [...known.keys()])
    if (!there.has(id) && !heardSince(id, before)) {
      known.delete(id);
      changed({ id }, true);
    }
  for (const job of now) if (!heardSince(job.id, before)) changed(job, false);
}

export const over = (job) => job && job.state !== "queued" && job.state !== "running";

// The connection: a stream of events that this page shares with the other pages of the browser, where the browser can.

let source = null;
let state = "opening";
const watchers = new Set();

/** Calls `f("open" | "lost" | "refused")` when the connection changes. Refused: the studio is there, and wants another token. */
export function onConnection(f) {
  watchers.add(f);
  f(state);
}

function become(next) {
  // A stream that is refused looks like one that is lost; the answer to a request says which.
  if (state === next || (state === "refused" && next === "lost")) return;
  state = next;
  for (const f of watchers) f(state);
}

function lost() {
  become("lost");
  source?.again();
}

let wondering = false;
function hear(kind, data) {
  if (kind === "open") {
    const back = state === "lost";
    become("open");
    // What happened while the connection was lost.
    if (list || back)
      list = refresh().catch(() => {
        list = null;
      });
  } else if (kind === "lost") {
    become("lost");
    // Why it was lost: an answer that refuses says so, and no answer is what is said already.
    if (state === "lost" && !wondering) {
      wondering = true;
      get("/api/about")
        .catch(() => {})
        .finally(() => {
          wondering = false;
        });
    }
  } else if (kind === "job") {
    const job = JSON.parse(data);
    heard.set(job.id, ++events);
    changed(job, false);
  } else if (kind === "gone") {
    const { id } = JSON.parse(data);
    heard.set(id, ++events);
    if (known.delete(id)) changed({ id }, true);
  }
}

/** The worker is given up if it says nothing for so long. */
const SILENCE_MS = 20_000;
let shares = "SharedWorker" in globalThis;

/** The stream of all pages of this browser. */
function share(address) {
  // Pages with another token have another worker.
  const worker = new SharedWorker("/shared.js", { type: "module", name: `studio ${token ?? ""}` });
  const { port } = worker;
  let said = true;
  const fail = () => {
    stop();
    shares = false;
    become("lost");
    connect();
  };
  // Silent for a whole turn, while this page was awake: the worker is gone.
  const turn = setInterval(() => {
    if (!said) fail();
    said = false;
  }, SILENCE_MS);
  const stop = () => {
    clearInterval(turn);
    port.close();
  };
  worker.addEventListener("error", fail);
  port.addEventListener("message", ({ data }) => {
    said = true;
    hear(data.kind, data.data);
  });
  port.start();
  port.postMessage({ kind: "come", address });
  return {
    again: () => port.postMessage({ kind: "again" }),
    close() {
      port.postMessage({ kind: "leave" });
      stop();
    },
  };
}

/** A stream of this page alone. It is closed while nobody looks, so that other pages have a connection. */
function own(address) {
  let stream = null;
  const look = () => {
    if (document.visibilityState === "hidden") {
      stream?.close();
      stream = null;
    } else stream ??= listen(address, hear);
  };
  document.addEventListener("visibilitychange", look);
  look();
  return {
    again: () => stream?.again(),
    close() {
      document.removeEventListener("visibilitychange", look);
      stream?.close();
    },
  };
}

export function connect() {
  disconnect();
  const address = link("/api/events");
  try {
    if (shares) source = share(address);
  } catch {
    shares = false;
  }
  source ??= own(address);
}

export function disconnect() {
  source?.close();
  source = null;
}
