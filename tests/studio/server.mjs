// A studio of its own for a test, in a folder that goes away with it.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const BINARY = process.env.TAILWATER ?? fileURLToPath(new URL("../../target/debug/tailwater", import.meta.url));

export class Studio {
  constructor(options = []) {
    this.options = options;
    this.folder = mkdtempSync(join(tmpdir(), "studio-"));
    this.port = 0;
  }

  /** Starts it, at the same port as before if there was one. */
  async start() {
    // PAGE: a folder with the page, for those who work on it.
    const page = process.env.PAGE ? ["--page", process.env.PAGE] : [];
    this.process = spawn(BINARY, ["studio", join(this.folder, "work"), "--port", String(this.port), ...this.options, ...page], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    this.url = await new Promise((resolve, reject) => {
      let text = "";
      this.process.stdout.on("data", (data) => {
        text += data;
        const found = /studio at (http:\S+)/.exec(text);
        if (found) resolve(found[1]);
      });
      this.process.on("exit", (code) => reject(new Error(`the studio ended with ${code}: ${text}`)));
      this.process.on("error", reject);
    });
    this.port = Number(new URL(this.url).port);
    return this;
  }

  async stop() {
    const ended = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGTERM");
    await ended;
  }

  async remove() {
    await this.stop();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }

  async api(path, body, method = body ? "POST" : "GET") {
    const answer = await fetch(new URL(path, this.url), {
      method,
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
    for (;;) {
      const job = await this.api(`/api/jobs/${id}`);
      if (job.state !== "queued" && job.state !== "running") {
        if (job.state !== "done") throw new Error(`job ${id}: ${job.state} ${JSON.stringify(job.problem)}`);
        return id;
      }
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
}
