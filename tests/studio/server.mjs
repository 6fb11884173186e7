// A studio of its own for a test, in a folder that goes away with it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** Far longer than anything takes on a slow and busy machine. */
const PATIENCE_MS = 300_000;

/** A promise that is given up after a while, with a message that says what it was to bring. */
function within(what, promise) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited ${PATIENCE_MS / 1000} s in vain: ${what}`)), PATIENCE_MS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

export const BINARY = process.env.TAILWATER ?? fileURLToPath(new URL("../../target/debug/tailwater", import.meta.url));

export class Studio {
  constructor(options = [], env = {}, workspace = "work") {
    this.options = options;
    this.workspace = workspace;
    this.env = env;
    this.folder = mkdtempSync(join(tmpdir(), "studio-"));
    this.port = 0;
  }

  /** Starts it, at the same port as before if there was one. */
  async start() {
    // PAGE: a folder with the page, for those who work on it.
    const page = process.env.PAGE ? ["--page", process.env.PAGE] : [];
    this.process = spawn(BINARY, ["studio", join(this.folder, this.workspace), "--port", String(this.port), ...this.options, ...page], {
      stdio: ["ignore", "pipe", "inherit"],
      env: { ...process.env, ...this.env },
    });
    const said = new Promise((resolve, reject) => {
      let text = "";
      this.process.stdout.on("data", (data) => {
        text += data;
        const found = /studio at (http:\S+)/.exec(text);
        if (found) resolve(found[1]);
      });
      this.process.on("exit", (code) => reject(new Error(`the studio ended with ${code}: ${text}`)));
      this.process.on("error", reject);
    });
    this.url = await within("the studio says where it is", said);
    this.port = Number(new URL(this.url).port);
    return this;
  }

  /** Ends it without a chance to do anything. */
  async kill() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await within("the studio is killed", ended);
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    try {
      await within("the studio ends when it is told to", ended);
    } catch (error) {
      this.process.kill("SIGKILL");
      throw error;
    }
  }

  async remove() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async api(path, body, method = body ? "POST" : "GET") {
    const answer = await fetch(new URL(path, this.url), {
      method,
      signal: AbortSignal.timeout(PATIENCE_MS),
      headers: body ? { "content-type": "application/json" } : {},
      body: body && JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
    const text = await answer.text();
    return text ? JSON.parse(text) : null;
  }

  /** Runs a job to its end and gives its number. */
  async job(request) {
    const { id } = await this.api("/api/jobs", request);
    const end = Date.now() + PATIENCE_MS;
    for (;;) {
      const job = await this.api(`/api/jobs/${id}`);
      if (job.state !== "queued" && job.state !== "running") {
        if (job.state !== "done") throw new Error(`job ${id}: ${job.state} ${JSON.stringify(job.problem)}`);
        return id;
      }
      if (Date.now() > end) throw new Error(`waited ${PATIENCE_MS / 1000} s in vain: job ${id} is over, but it is ${job.state}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
