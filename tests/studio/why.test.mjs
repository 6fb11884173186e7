// What the studio says of causes, in a real browser: chains to the root, waterfalls, the timeline of stops, closer looks, what can be saved.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { browser as launch, page as open, until } from "./browser.mjs";
import { Studio } from "./server.mjs";

const shots = fileURLToPath(new URL("shots/", import.meta.url));
const studio = new Studio();
let browser, pair;

// Twelve hosts send to h0; h4 sends to h1 and only shares links with them.
const HOT = `name = "hot spot"
[topology]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 4
spines = 2

[switch]
buffer = "2MB"

[[incast]]
name = "incast"
degree = 12
size_each = "300KB"
from = ["leaf1", "leaf2", "leaf3"]
to = "h0"
count = 1

[[flow]]
name = "victim"
src = "h4"
dst = "h1"
size = "1MB"
`;
const asked = (more) => ({ kind: "compare", text: HOT, schemes: ["pfc", "bfc"], seeds: 1, record: true, sets: ["measure.why=true"], ...more });

before(async () => {
  mkdirSync(shots, { recursive: true });
  await studio.start();
  browser = await launch();
  pair = await studio.job(asked({ name: "why" }));
});

after(async () => {
  await browser?.close();
  await studio.remove();
});

/** A test with a page of its own, whose console must stay silent. */
function on(name, options, f) {
  test(name, async () => {
    const { page, context, errors } = await open(browser, { viewport: { width: 1400, height: 900 }, ...options });
    const go = async (hash) => {
      await page.goto(new URL(hash, studio.url).href);
    };
    const shot = (file) => page.screenshot({ path: `${shots}${file}.png` });
    try {
      await f({ page, go, shot });
      assert.deepEqual(errors, []);
    } catch (error) {
      await shot(`failed ${name.replaceAll(/[^\w]+/g, "-").slice(0, 60)}`).catch(() => {});
      throw error;
    } finally {
      await context.close();
    }
  });
}

const param = (page, name) => page.evaluate((key) => new URLSearchParams(location.hash.split("?")[1]).get(key), name);
/** How many pixels of a canvas have a colour of the page. */
const painted = (page, selector, at, colour) =>
  page.evaluate(
    ([selector, at, colour]) => {
      const canvas = document.querySelectorAll(selector)[at];
      const text = getComputedStyle(canvas).getPropertyValue(colour).trim();
      const [r, g, b] = [1, 3, 5].map((from) => parseInt(text.slice(from, from + 2), 16));
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255) count++;
      return count;
    },
    [selector, at, colour],
  );
const view = (page) => page.getByLabel("View", { exact: true });

on("a paused link is followed to its root, which is named, with its victims", {}, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&t=50us&flow=none`);
  await page.locator("canvas.stage").nth(1).waitFor();
  await page.waitForTimeout(300);
  await until(async () => assert.equal(await painted(page, "canvas.stage", 0, "--bad"), 0));
  await page.getByLabel("Find a port").fill("h4->leaf1");
  await page.keyboard.press("Enter");
  const card = page.locator(".card").first();
  await card.locator(".chain").first().waitFor();
  await page.waitForFunction(() => /Why it waits now/.test(document.querySelector(".why-now").textContent));
  const steps = await card.locator(".chain").first().locator("li").allInnerTexts();
  assert.match(steps[0], /^h4 → leaf1 had class 0 stopped for .* by order of leaf1, because of leaf1 → spine\d with \d+ KB/);
  assert.match(steps.at(-1), /The root:\s+the link \S+ → \S+ is saturated by \d+ flows\./);
  await page.waitForFunction(() => /is saturated by 12 flows/.test(document.querySelector(".why-whole").textContent));
  await page.locator(".victims").first().waitFor();
  await until(async () => assert.match(await card.innerText(), /1 victim, .* of waiting in all\s+h4 → h1, flow 0, victim: /));
  // The chain is on the picture, too.
  await page.waitForTimeout(300);
  assert.ok((await painted(page, "canvas.stage", 0, "--bad")) > 150);
  await shot("why-port");
  // A step leads to its port, a victim to its flow.
  await page.locator(".victims .textual").first().click();
  await page.waitForFunction(() => document.querySelector(".card h2").textContent.startsWith("h4 → h1"));
  await page.getByRole("button", { name: "Close" }).nth(1).click();
  await page.waitForFunction(() => document.querySelectorAll(".card .chain").length > 0);
  const first = page.locator(".chain .textual").nth(1);
  const name = await first.innerText();
  await first.click();
  await page.waitForFunction((name) => [...document.querySelectorAll(".card h2")].some((one) => one.textContent.includes(name)), name);
});

on("where the time of a flow went is shown for both runs, and adds up", {}, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1`);
  await page.locator(".waterfall figure").nth(1).waitFor();
  const whole = await page.locator(".waterfall figcaption").allInnerTexts();
  assert.deepEqual(whole.map((text) => text.split(/\s+/)[0]), ["pfc", "bfc"]);
  const facts = await page.locator(".card").first().innerText();
  for (const text of whole) assert.ok(facts.includes(`received after ${text.replace(/^\S+\s+/, "")}`), `${text} in ${facts}`);
  const names = await page.locator(".waterfall figure").first().locator(".fall-name").allInnerTexts();
  assert.ok(names.includes("pause at h4") && names.includes("serialisation at h4"), names.join());
  const held = await page.locator(".waterfall figure").nth(1).locator(".fall-name").allInnerTexts();
  assert.ok(held.includes("hold at h4"), held.join());
  // Bars come one after the other on one scale.
  const bars = await page.locator(".waterfall figure").first().locator("rect").evaluateAll((all) => all.map((one) => [one.x.baseVal.value, one.width.baseVal.value]));
  for (let at = 1; at < bars.length; at++) assert.ok(bars[at][0] >= bars[at - 1][0] + bars[at - 1][1] - 2, JSON.stringify(bars));
  await until(async () => assert.match(await page.locator(".why-whole").first().innerText(), /because the link leaf0 → h0 is saturated by 12 flows, through which it does not pass/));
  await page.locator(".waterfall").scrollIntoViewIfNeeded();
  await shot("why-waterfall");
});

on("what was dropped for want of room is told with its root, at the flow and at the link that took the room", {}, async ({ page, go, shot }) => {
  const drops = await studio.job(asked({ name: "drops", kind: "run", schemes: undefined, seeds: undefined, sets: ["measure.why=true", "scheme.preset=lossy", "nic.timeout=100us"] }));
  await go(`#/fabric?job=${drops}&run=0&flow=1`);
  await page.locator(".lost-packets").first().waitFor();
  const told = await page.locator(".lost-packets").first().innerText();
  assert.match(told, /because there was no room for \d+ packets? at \S+ → \S+, as the link \S+ → \S+ is saturated by \d+ flows?/);
  await shot("why-drops");
  await page.getByLabel("Find a port").fill("leaf0->h0");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() =>
    [...document.querySelectorAll(".why-whole")].some((card) => /It is a root itself\..*dropped for want of room because of it.*What filled it then was/s.test(card.textContent)),
  );
});

on("a run that was not asked why says how to, and does it on request", {}, async ({ page, go }) => {
  const plain = await studio.job(asked({ name: "plain", sets: [] }));
  await go(`#/fabric?job=${plain}&run=0&with=1&t=50us&flow=0`);
  assert.equal((await studio.api(`/api/jobs/${plain}`)).results.runs[0].why, false);
  await page.getByText("this run was not asked").waitFor();
  await until(async () => assert.equal(await page.locator(".chain").count(), 0));
  await view(page).selectOption("stops");
  await page.locator(".tracks-message").first().waitFor();
  await until(async () => assert.match(await page.locator(".tracks-message").first().innerText(), /not asked why/));
  await view(page).selectOption("picture");
  await page.getByRole("button", { name: "Run it again, asked why" }).click();
  await page.locator(".chain").first().waitFor();
  await until(async () => assert.equal(await param(page, "t"), "50us"));
  await until(async () => assert.notEqual(await param(page, "job"), String(plain)));
});

on("the timeline of stops is nested by cause, zooms, is searched, and a click leads to a stop", {}, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&flow=none`);
  await page.locator("canvas.stage").first().waitFor();
  await view(page).selectOption("stops");
  await page.waitForFunction(() => /view=stops/.test(location.hash));
  await page.waitForFunction(() => document.querySelector(".tracks-spacer")?.style.height);
  await page.waitForTimeout(300);
  const all = await page.evaluate(() => parseInt(document.querySelector(".tracks-spacer").style.height, 10));
  assert.ok((await painted(page, ".tracks-canvas", 0, "--pause")) > 2000);
  assert.ok((await painted(page, ".tracks-canvas", 1, "--held")) > 2000);
  await shot("why-timeline");
  // The row of the third port, below its root and its cause.
  const canvas = page.locator(".tracks-canvas").first();
  const box = await canvas.boundingBox();
  const tip = page.locator(".tip:visible");
  let found = null;
  for (let x = 0.25; x < 0.9 && !found; x += 0.01) {
    await page.mouse.move(box.x + box.width * x, box.y + 20 + 15 * 3.5);
    if ((await tip.count()) && /by order of .*\n.*in the end because/s.test(await tip.first().innerText())) found = x;
  }
  assert.ok(found, "a bar to point at");
  await page.mouse.click(box.x + box.width * found, box.y + 20 + 15 * 3.5);
  await page.locator(".chain").first().waitFor();
  await page.waitForFunction(() => /Why it waits now/.test(document.querySelector(".why-now").textContent));
  await page.waitForFunction(() => /port=\d+/.test(location.hash));
  // Nearer with the keys, along, and all of it again; a link has the window.
  await until(async () => assert.equal(await param(page, "win"), null));
  for (const key of ["w", "w", "w", "d"]) await page.keyboard.press(key);
  await page.waitForFunction(() => /win=/.test(location.hash));
  const win = await param(page, "win");
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -300);
  await page.keyboard.up("Control");
  await page.waitForFunction((win) => new URLSearchParams(location.hash.split("?")[1]).get("win") !== win, win);
  await shot("why-timeline-near");
  const near = await param(page, "win");
  await page.reload();
  await page.locator(".tracks").first().waitFor();
  await page.waitForTimeout(500);
  await until(async () => assert.equal(await param(page, "win"), near));
  await page.getByRole("button", { name: "All of it" }).click();
  await page.waitForFunction(() => !/win=/.test(location.hash));
  // Who is sought brings along its causes only.
  await page.getByLabel("Find a port").fill("h15");
  await page.waitForFunction((all) => parseInt(document.querySelector(".tracks-spacer").style.height, 10) < all / 2, all);
});

on("a thousand hosts: only rows in sight are drawn, and scrolling and zooming stay quick", {}, async ({ page, go, shot }) => {
  const text = `name = "thousand"
[topology]
kind = "leaf-spine"
leaves = 32
hosts_per_leaf = 32
spines = 16
[switch]
buffer = "2MB"
[[incast]]
name = "incast"
degree = 400
size_each = "40KB"
to = "h0"
count = 1
[[load]]
name = "others"
sizes = "uniform 20KB..100KB"
load = 0.2
duration = "30us"
`;
  const sets = ["measure.why=true", "scheme.preset=pfc"];
  const id = await studio.job({ kind: "run", name: "thousand", text, sets, record: true });
  await go(`#/fabric?job=${id}&run=0&view=stops&t=40us`);
  await page.waitForFunction(() => parseInt(document.querySelector(".tracks-spacer")?.style.height ?? "0", 10) > 5000);
  const slowest = await page.evaluate(async () => {
    const box = document.querySelector(".tracks");
    let worst = 0;
    for (let at = 0; at < 40; at++) {
      box.scrollTop = at * 137;
      const from = performance.now();
      await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
      worst = Math.max(worst, performance.now() - from);
    }
    return worst;
  });
  // A frame on a busy machine; drawing all rows would take many of them.
  assert.ok(slowest < 1500, `${slowest} ms`);
  for (const key of ["w", "w", "w", "a"]) await page.keyboard.press(key);
  await page.waitForFunction(() => /win=/.test(location.hash));
  assert.ok((await painted(page, ".tracks-canvas", 0, "--pause")) > 500);
  await shot("why-thousand");
});

on("a closer look has frames of 100 ns and control frames where they are, and leads back", {}, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&t=80us&flow=0`);
  await page.locator(".chain").first().waitFor();
  await page.getByRole("button", { name: "look closer" }).click();
  await page.waitForFunction(() => /also=\d+/.test(location.hash));
  await page.locator("canvas.stage").nth(1).waitFor();
  await until(async () => assert.deepEqual(await page.locator(".scheme").allTextContents(), ["pfc", "bfc"]));
  const id = Number(await param(page, "job"));
  const bytes = new Uint8Array(await (await fetch(new URL(`/api/jobs/${id}/recording/0`, studio.url))).arrayBuffer());
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(12, 12 + new DataView(bytes.buffer).getUint32(8, true))));
  assert.deepEqual([header.first_ps, header.every_ps, header.frames], [70_000_000, 100_000, 200]);
  // Causes are those of the whole run.
  await page.locator(".chain").first().waitFor();
  await until(async () => assert.match(await page.locator(".why-whole").first().innerText(), /of its 3\d\d us/));
  let green = 0;
  for (let turn = 0; turn < 30 && !green; turn++) {
    await page.keyboard.press("ArrowRight");
    await page.waitForTimeout(80);
    green = await painted(page, "canvas.stage", 0, "--control");
  }
  assert.ok(green > 20, "a control frame on its way");
  await shot("why-closer");
  await page.getByRole("link", { name: "back to the whole run" }).click();
  await page.waitForFunction((job) => location.hash.includes(`job=${job}&`), pair);
  await page.waitForFunction(() => /t=80us/.test(location.hash));
});

on("a claim can be watched, two of its runs side by side", {}, async ({ page, go, shot }) => {
  await go("#/ledger/portfc/holb");
  await page.getByRole("button", { name: "Watch a run of it" }).click();
  await page.waitForFunction(() => location.hash.startsWith("#/fabric"));
  await page.locator("canvas.stage").nth(1).waitFor();
  await until(async () => assert.deepEqual(await page.locator(".scheme").allTextContents(), ["pfc", "portfc"]));
  await page.locator(".waterfall figure").nth(1).waitFor();
  await shot("why-claim");
});

on("of a comparison under way what is done can be watched", {}, async ({ page, go }) => {
  const text = 'name = "long"\n[topology]\nkind = "star"\nhosts = 2\n[scheme]\npreset = "pfc"\n[[flow]]\nsrc = "h1"\ndst = "h0"\nsize = "10KB"\n';
  const { id } = await studio.api("/api/jobs", { kind: "compare", name: "long", text, vary: ["flow.0.size=10KB,900GB"], record: true });
  try {
    await go(`#/fabric?job=${id}&run=0`);
    await page.locator("canvas.stage").first().waitFor();
    await until(async () => assert.match(await page.locator(".goes-on").innerText(), /1 run can be watched already/));
    await page.locator(".goes-on").getByRole("button", { name: "Cancel" }).click();
    await page.waitForFunction(() => !document.querySelector(".goes-on"));
    await page.locator("canvas.stage").first().waitFor();
  } finally {
    await studio.api(`/api/jobs/${id}/cancel`, {}).catch(() => {});
  }
});

on("a run is watched while it goes on, and its end moves on with it", {}, async ({ page, go, shot }) => {
  const text = 'name = "goes on"\n[topology]\nkind = "star"\nhosts = 3\n[scheme]\npreset = "pfc"\n[[flow]]\nsrc = "h1"\ndst = "h0"\nsize = "900GB"\n';
  const { id } = await studio.api("/api/jobs", { kind: "run", name: "goes on", text, record: true });
  try {
    await go(`#/fabric?job=${id}`);
    await page.locator("canvas.stage").waitFor();
    await until(async () => assert.match(await page.locator(".goes-on").innerText(), /The run goes on/));
    await page.keyboard.press("End");
    await page.waitForTimeout(200);
    const before = await page.locator(".instant").textContent();
    await page.waitForFunction((text) => document.querySelector(".instant") && document.querySelector(".instant").textContent !== text, before);
    await shot("why-live");
    await page.locator(".goes-on").getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("heading", { name: "This job was cancelled" }).waitFor();
  } finally {
    await studio.api(`/api/jobs/${id}/cancel`, {}).catch(() => {});
  }
});

on("a port is captured from its card", {}, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&port=16&flow=none`);
  await page.getByRole("button", { name: "capture this port under pfc" }).click();
  const saved = page.getByRole("link", { name: "save capture.pcapng" });
  await saved.waitFor();
  const answer = await fetch(new URL(await saved.getAttribute("href"), studio.url));
  const head = new Uint8Array(await answer.arrayBuffer()).subarray(0, 4);
  assert.deepEqual([...head], [0x0a, 0x0d, 0x0d, 0x0a]);
  // It is still there when other cards have come and gone.
  await page.locator(".flow-table tbody button").first().click();
  await saved.waitFor();
});

on("picture, drawing and animation are saved", { acceptDownloads: true }, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&t=50us&flow=0`);
  await page.locator(".chain").first().waitFor();
  const save = async (name, end = async () => {}) => {
    await page.locator(".picker summary", { hasText: "save" }).click();
    const coming = page.waitForEvent("download");
    await page.getByRole("button", { name, exact: true }).click();
    await end();
    const download = await coming;
    return [download.suggestedFilename(), readFileSync(await download.path())];
  };
  const [png, picture] = await save("picture");
  assert.equal(png, "why 50us.png");
  assert.deepEqual([...picture.subarray(1, 4)], [..."PNG"].map((letter) => letter.charCodeAt(0)));
  const [svg, drawing] = await save("drawing");
  assert.equal(svg, "why 50us.svg");
  const drawn = await page.evaluate((text) => {
    const parsed = new DOMParser().parseFromString(text, "image/svg+xml");
    return [parsed.querySelector("parsererror")?.textContent ?? null, parsed.querySelectorAll("path").length, parsed.documentElement.textContent];
  }, drawing.toString());
  assert.equal(drawn[0], null);
  assert.ok(drawn[1] > 20 && /pfc, 50 us.*spine0.*root/s.test(drawn[2]), drawn[2]);
  const [webm, animation] = await save("animation", async () => {
    await page.waitForTimeout(1500);
    await page.keyboard.press("k");
  });
  assert.equal(webm, "why 50us.webm");
  assert.deepEqual([...animation.subarray(0, 4)], [0x1a, 0x45, 0xdf, 0xa3]);
  assert.ok(animation.length > 5000, `${animation.length} bytes`);
});

on("the bench asks why unless it is told not to", {}, async ({ page, go }) => {
  const last = async () => (await studio.api("/api/jobs"))[0].id;
  await go("#/bench?example=incast");
  const box = page.getByLabel("ask why");
  await box.waitFor();
  assert.ok(await box.isChecked());
  const before = await last();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.getByRole("link", { name: "Watch it" }).waitFor();
  const id = await last();
  assert.ok(id > before);
  assert.equal((await studio.api(`/api/jobs/${id}`)).results.runs[0].why, true);
  await box.uncheck();
  await page.reload();
  await box.waitFor();
  assert.ok(!(await box.isChecked()));
});

for (const [width, colorScheme] of [
  [1400, "light"],
  [1400, "dark"],
  [900, "light"],
  [900, "dark"],
  [400, "light"],
  [400, "dark"],
])
  on(`at ${width} pixels, ${colorScheme}, nothing is wider than the page`, { viewport: { width, height: 900 }, colorScheme }, async ({ page, go, shot }) => {
    await go(`#/fabric?job=${pair}&run=0&with=1&t=60us&flow=0`);
    await page.locator(".waterfall figure").nth(1).waitFor();
    await page.waitForTimeout(300);
    for (const shown of ["picture", "stops"]) {
      await view(page).selectOption(shown);
      await page.waitForTimeout(300);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
      await shot(`why-${shown}-${width}-${colorScheme}`);
    }
  });
