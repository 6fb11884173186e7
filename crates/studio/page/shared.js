// The worker that all pages of a browser share. A browser has six connections to a host, and each stream of events keeps one: with
// a stream for each page, the seventh page would never load.

import { listen } from "./stream.js";

/** How often pages hear that the worker is there; they give it up after several times this. */
const PULSE_MS = 5000;

const pages = new Set();
let stream = null;
let open = false;

const tell = (message) => pages.forEach((page) => page.postMessage(message));

function come(page, address) {
  pages.add(page);
  if (stream) page.postMessage({ kind: open ? "open" : "pulse" });
  stream ??= listen(address, (kind, data) => {
    if (kind === "open" || kind === "lost") open = kind === "open";
    tell({ kind, data });
  });
}

function leave(page) {
  pages.delete(page);
  if (pages.size) return;
  stream?.close();
  stream = null;
  open = false;
}

self.addEventListener("connect", ({ ports: [page] }) => {
  page.addEventListener("message", ({ data }) => {
    if (data.kind === "come") come(page, data.address);
    else if (data.kind === "leave") leave(page);
    else if (data.kind === "again") stream?.again();
  });
  page.start();
});
setInterval(() => tell({ kind: "pulse" }), PULSE_MS);
