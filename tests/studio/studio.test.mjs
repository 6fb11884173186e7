// The studio as people use it, in a real browser. TAILWATER names the program; screenshots go to shots/.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import test, { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import { browser as launch, page as open, until } from "./browser.mjs";
import { BINARY, Studio } from "./server.mjs";

const shots = fileURLToPath(new URL("shots/", import.meta.url));
const studio = new Studio();
let browser, pair;

const HOT = `name = "hot spot"
[topology]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 4
spines = 2

[switch]
buffer = "2MB" # little

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

before(async () => {
  mkdirSync(shots, { recursive: true });
  await studio.start();
  browser = await launch();
  pair = await studio.job({ kind: "compare", name: "hot spot", text: HOT, schemes: ["pfc", "bfc"], seeds: 1, record: true });
});

after(async () => {
  await browser?.close();
  await studio.remove();
});

/** A test with a page of its own, whose console must stay silent. */
function on(name, options, f) {
  test(name, async () => {
    const { page, context, errors } = await open(browser, options);
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

const instant = (page) => page.locator(".instant").textContent();
const hash = (page) => page.evaluate(() => location.hash);
const param = async (page, name) => new URLSearchParams((await hash(page)).split("?")[1]).get(name);
/** Goes over a canvas until the pointer is on something of a kind, and stays there. */
async function pointAt(page, canvas, pattern) {
  const box = await canvas.boundingBox();
  for (let y = 0.5; y < 1; y += 0.013) {
    for (let x = 0.03; x < 0.98; x += 0.031) {
      await page.mouse.move(box.x + x * box.width, box.y + y * box.height);
      const tip = page.locator(".tip:visible");
      if ((await tip.count()) && pattern.test(await tip.first().innerText()))
        return [box.x + x * box.width, box.y + y * box.height];
    }
  }
  throw new Error(`nothing like ${pattern} to point at`);
}

on("a newcomer starts here and watches two schemes side by side", {}, async ({ page, go, shot }) => {
  await go("");
  await page.getByRole("heading", { name: "Start here" }).waitFor();
  await page.locator(".claim").first().waitFor();
  await shot("ledger-first");
  await page.getByRole("button", { name: "Run it and watch" }).click();
  await page.locator("canvas.stage").nth(1).waitFor();
  await until(async () => assert.equal(await page.locator("canvas.stage").count(), 2));
  await until(async () => assert.deepEqual(await page.locator(".scheme").allTextContents(), ["pfc", "bfc"]));
  // It plays by itself.
  const before = await instant(page);
  await page.waitForFunction((text) => document.querySelector(".instant").textContent !== text, before);
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.getByRole("button", { name: "deepest queue" }).click();
  const numbers = page.locator(".numbers").first();
  await page.waitForFunction(() => /queued, [1-9]\d* links? paused/.test(document.querySelector(".numbers")?.textContent ?? ""));
  await until(async () => assert.match(await numbers.textContent(), /MB queued/));
  await page.waitForTimeout(300);
  await shot("fabric-pair");
  // It can be put away for good.
  await go("#/ledger");
  await page.getByRole("button", { name: "Do not show this again" }).click();
  await page.reload();
  await page.locator(".claim").first().waitFor();
  await until(async () => assert.equal(await page.getByRole("heading", { name: "Start here" }).count(), 0));
});

on("scrubbing, stepping and playing move both runs, and a link restores it all", {}, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1`);
  await page.locator("canvas.stage").nth(1).waitFor();
  const box = await page.locator(".time-area").boundingBox();
  await page.mouse.click(box.x + box.width * 0.4, box.y + 20);
  await page.waitForFunction(() => Math.abs(document.querySelector(".time-area").getAttribute("aria-valuenow") - 400) < 5);
  const there = await instant(page);
  await page.keyboard.press("ArrowRight");
  await page.waitForFunction((text) => document.querySelector(".instant").textContent !== text, there);
  await page.keyboard.press("Home");
  await page.waitForFunction(() => document.querySelector(".time-area").getAttribute("aria-valuenow") === "0");
  await page.keyboard.press("End");
  await page.waitForFunction(() => document.querySelector(".time-area").getAttribute("aria-valuenow") === "1000");
  await page.keyboard.press("p");
  await page.keyboard.press("]");
  await page.locator(".now-row").first().click();
  await page.locator(".flow-table tbody button").first().click();
  await page.waitForFunction(() => /t=.*port=\d+.*flow=\d+.*speed=2/.test(location.hash));
  const [now, address] = [await instant(page), await hash(page)];
  const cards = await page.locator(".card h2").allTextContents();
  await page.reload();
  await page.locator("canvas.stage").nth(1).waitFor();
  await page.waitForFunction((text) => document.querySelector(".instant").textContent === text, now);
  await until(async () => assert.deepEqual(await page.locator(".card h2").allTextContents(), cards));
  await until(async () => assert.equal(await hash(page), address));
});

on(
  "pointing says what it is, a click on a port shows its time, a click on a flow its path and its life",
  {},
  async ({ page, go, shot }) => {
    await go(`#/fabric?job=${pair}&run=0&with=1&flow=none`);
    const canvas = page.locator("canvas.stage").first();
    await canvas.waitFor();
    await page.keyboard.press("p");
    await page.waitForTimeout(200);
    const [x, y] = await pointAt(page, canvas, /^leaf\d+ → h\d+|^h\d+ → leaf/);
    await until(async () => assert.match(await page.locator(".tip:visible").innerText(), /waiting; .* of 100 Gbps used/));
    await page.mouse.click(x, y);
    await page.locator(".card .chart").first().waitFor();
    const titles = await page.locator(".card .chart-title").allTextContents();
    assert.ok(titles.includes("queue") && titles.includes("link use"), titles.join());
    // The victim waits for others; under BFC it is held by itself, and the page says by whom.
    await page.getByLabel("Filter flows").fill("victim");
    await page.locator(".flow-table tbody button").first().click();
    const card = page.locator(".card").first();
    await card.waitFor();
    await until(async () => assert.match(await card.innerText(), /h4 → h1/));
    await until(async () => assert.match(await card.innerText(), /pfc: received after .*bfc: received after/s));
    await until(async () => assert.match(await card.innerText(), /path: h4 → leaf1 → spine\d → leaf0 → h1/));
    await shot("fabric-port-and-flow");
    await page.keyboard.press("Escape");
    await page.waitForFunction(() => !document.querySelector(".card .chart"));
    // By name, without a pointer.
    await page.getByLabel("Find a port").fill("leaf0->h0");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.querySelector(".card h2")?.textContent.includes("leaf0 → h0"));
  },
);

on("a link that carries on while one of its queues is paused is not said to be paused", {}, async ({ page, go, shot }) => {
  const id = await studio.job({ kind: "compare", name: "queues", text: HOT, schemes: ["pfc", "dvl"], seeds: 1, record: true });
  await go(`#/fabric?job=${id}&run=0&with=1`);
  await page.locator("canvas.stage").nth(1).waitFor();
  await page.keyboard.press("n");
  const numbers = (at) => page.locator(".numbers").nth(at).textContent();
  // Under PFC links stand still; under DVL they do so for a while at the most, and single queues for longer.
  let pfc = 0,
    dvl = 0;
  for (let turn = 0; turn < 40 && !(pfc && dvl); turn++) {
    await page.keyboard.press("Shift+ArrowRight");
    await page.waitForTimeout(60);
    pfc += /[1-9]\d* links? paused/.test(await numbers(0));
    dvl += /links? with a queue paused/.test(await numbers(1));
  }
  assert.ok(pfc && dvl, `${await numbers(0)}; ${await numbers(1)}`);
  await until(async () => assert.match(await page.locator(".legend").innerText(), /link paused.*only a queue paused/s));
  await until(async () => assert.match(await page.locator(".legend").innerText(), /full bar .*buffer 2 MB.*threshold/s));
  await shot("fabric-queue-paused");
  // The tables keep them apart as well, and have held time beside paused time.
  await go(`#/results?job=${id}`);
  await page.locator(".compare").waitFor();
  const heads = await page.locator(".compare th").allTextContents();
  for (const head of ["paused", "paused, a whole class", "flows held"]) assert.ok(heads.includes(head), heads.join());
});

on("two runs open with what differs most between them, and with its worst victim", {}, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1`);
  await page.locator(".verdict-above").waitFor();
  await until(async () => assert.match(await page.locator(".verdict-above").innerText(), /victim: 99th percentile of slowdown .*× under pfc, .*× under bfc; worst h4 → h1/));
  const card = page.locator(".card").first();
  await until(async () => assert.match(await card.innerText(), /h4 → h1/));
  // PFC holds it at its NIC, and the card says who.
  await until(async () => assert.match(await card.innerText(), /pfc: its class paused at its NIC by leaf1, .* of /));
  for (let turn = 0; turn < 60; turn++) {
    if (/now pfc: held at its NIC: leaf1 pauses its class/.test(await card.innerText())) break;
    await page.keyboard.press("Shift+ArrowRight");
    await page.waitForTimeout(60);
  }
  await until(async () => assert.match(await card.innerText(), /now pfc: held at its NIC: leaf1 pauses its class, for .* of this frame/));
  await shot("fabric-verdict");
  // Who closes it is not asked again.
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => /flow=none/.test(location.hash));
  await page.reload();
  await page.locator(".verdict-above").waitFor();
  await until(async () => assert.equal(await page.locator(".card .chart").count(), 0));
});

on("the deepest queue is a port and an instant, and a port is found by part of its name", {}, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&flow=none`);
  await page.locator("canvas.stage").first().waitFor();
  await page.getByRole("button", { name: "deepest queue" }).click();
  await page.locator(".card .chart").first().waitFor();
  // The first of the deepest queues is the one that is selected, and its bar is full.
  const first = await page.locator(".now-row").first();
  const [from, to] = (await page.locator(".card h2").first().innerText()).split(/\s*→\s*|\s*×/);
  assert.ok((await first.innerText()).startsWith(`${from} → ${to}`), `${await first.innerText()}: ${from} → ${to}`);
  await until(async () => assert.equal(await first.locator(".now-bar").evaluate((bar) => bar.style.width), "100%"));
  await page.getByLabel("Find a port").fill("LEAF3->H1");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.querySelector(".card h2")?.textContent.includes("leaf3 → h1"));
  await until(async () => assert.match(await page.getByLabel("Find a port").inputValue(), /^leaf3->h1\d$/));
});

on("a zoom goes both ways and is in the link", {}, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&flow=none`);
  const canvas = page.locator("canvas.stage").first();
  await canvas.waitFor();
  await page.waitForTimeout(200);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.8);
  for (let turn = 0; turn < 3; turn++) await page.mouse.wheel(0, -240);
  await page.waitForFunction(() => /eye=/.test(location.hash));
  const [k, , cy] = (await param(page, "eye")).split(",").map(Number);
  assert.ok(k > 2 && cy > 0.55, `${k} ${cy}`);
  const address = await hash(page);
  // What the picture is like, roughly: a link has no more digits than needed.
  const look = () =>
    canvas.evaluate((element) => {
      const small = Object.assign(document.createElement("canvas"), { width: 40, height: 20 });
      const paint = small.getContext("2d");
      paint.drawImage(element, 0, 0, 40, 20);
      return [...paint.getImageData(0, 0, 40, 20).data];
    });
  const apart = (a, b) => a.reduce((sum, value, at) => sum + Math.abs(value - b[at]), 0) / a.length;
  await page.mouse.move(5, 5);
  await page.waitForTimeout(400);
  const before = await look();
  await page.reload();
  await canvas.waitFor();
  await page.waitForTimeout(600);
  await until(async () => assert.equal(await hash(page), address));
  const again = await look();
  await page.keyboard.press("0");
  await page.waitForFunction(() => !/eye=/.test(location.hash));
  await page.waitForTimeout(300);
  const far = await look();
  assert.ok(apart(before, again) * 4 < apart(before, far), `${apart(before, again)} and ${apart(before, far)}`);
});

on("a flow that was not recorded is said not to be", {}, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&flow=812`);
  await page.locator(".card h2", { hasText: "Flow 812" }).waitFor();
  await until(async () => assert.match(await page.locator(".card").first().innerText(), /It was not recorded\..*the slowest of each group/s));
});

on("a link that leads nowhere says so", {}, async ({ page, go }) => {
  for (const [bad, pattern] of [
    ["#/ledger/%", /damaged/],
    ["#/nowhere", /no page “nowhere”/],
    ["#fabric", /no page “fabric”/],
    ["#/fabric?job=soon", /job is a number/],
  ]) {
    await go(bad);
    await page.reload();
    await page.locator(".empty h1").waitFor();
    await until(async () => assert.match(await page.locator("main").innerText(), pattern));
  }
  await page.getByRole("link", { name: "All jobs" }).click();
  await page.locator("table.jobs").first().waitFor();
});

on("flows can be filtered by how slow they are, and saved with the picture", {}, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&flow=none`);
  await page.locator(".flow-table tbody tr").first().waitFor();
  const all = await page.locator(".flow-table tbody tr").count();
  const slow = Number((await page.locator(".flow-table tbody tr td").nth(2).innerText()).replace("×", ""));
  assert.ok(slow > 1, "the slowest is first");
  await page.getByLabel("Filter flows").fill(`>${slow * 0.8}`);
  const some = await page.locator(".flow-table tbody tr").count();
  assert.ok(some > 0 && some < all, `${some} of ${all}`);
  const saved = async (button) => {
    const [download] = await Promise.all([page.waitForEvent("download"), button.click()]);
    const parts = [];
    for await (const part of await download.createReadStream()) parts.push(part);
    return [download.suggestedFilename(), Buffer.concat(parts)];
  };
  const [name, table] = await saved(page.getByRole("button", { name: "CSV" }));
  assert.equal(name, "hot spot.csv");
  assert.match(table.toString(), /^flow,group,src,dst,size_bytes,start_ps,pfc received_ps,pfc slowdown,pfc held_ps,pfc paused_ps,bfc/);
  assert.equal(table.toString().trim().split("\n").length, some + 1);
  await page.locator(".picker summary", { hasText: "save" }).click();
  const [, picture] = await saved(page.getByRole("button", { name: "picture", exact: true }));
  assert.equal(picture.subarray(1, 4).toString(), "PNG");
  // All flows of a run, with the same filter.
  await go(`#/results?job=${pair}&run=0`);
  await page.locator(".flows tbody tr").first().waitFor();
  const titles = await page.locator("main h2").allTextContents();
  const [figures, flowsAt] = [titles.findIndex((title) => title.startsWith("Figures")), titles.indexOf("Flows")];
  assert.ok(figures >= 0 && figures < flowsAt, titles.join());
  await page.getByLabel("Slower than so many times").fill("2");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => /slower=2/.test(location.hash));
  await page.waitForTimeout(500);
  const [, flows] = await saved(page.getByRole("button", { name: "CSV" }));
  const [head, ...rows] = flows.toString().trim().split("\n").map((line) => line.split(","));
  assert.ok(rows.length > 0 && rows.every((row) => Number(row[head.indexOf("slowdown")]) > 2));
  assert.ok(rows.some((row) => Number(row[head.indexOf("paused_ps")]) > 0));
});

on("on a phone the play button is in sight, and the keyboard reaches it", { viewport: { width: 400, height: 780 } }, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&t=60us`);
  const play = page.locator(".play");
  await play.waitFor();
  await page.waitForTimeout(300);
  await shot("phone-fabric");
  const box = await play.boundingBox();
  assert.ok(box.y >= 0 && box.y + box.height <= 780 && box.width >= 36, JSON.stringify(box));
  const there = await instant(page);
  await play.click();
  await page.waitForFunction((text) => document.querySelector(".instant").textContent !== text, there);
  await page.keyboard.press("k");
  await page.getByRole("button", { name: "Play" }).waitFor();
  await page.getByLabel("Find a port").focus();
  for (let turn = 0; turn < 20; turn++) {
    await page.keyboard.press("Tab");
    if (await play.evaluate((element) => element === document.activeElement)) break;
  }
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Stop" }).waitFor();
  // Wherever the focus is.
  await page.keyboard.press("Tab");
  await page.keyboard.press("k");
  await page.getByRole("button", { name: "Play" }).waitFor();
});

on("a deadlock is named, and its cycle of waits is shown from when it closes", {}, async ({ page, go, shot }) => {
  const { text } = (await studio.api("/api/examples")).find((one) => one.name === "bcube_deadlock");
  const id = await studio.job({ kind: "compare", name: "deadlock", text, schemes: ["pfc", "portfc"], seeds: 1, record: true });
  await go(`#/fabric?job=${id}&run=0&with=1`);
  await page.getByRole("button", { name: /deadlock at/ }).click();
  await page.waitForFunction(() => document.querySelector(".instant").textContent !== "0 us");
  await page.keyboard.press("ArrowRight");
  await page.waitForTimeout(300);
  await shot("fabric-deadlock");
  await until(async () => assert.equal(await page.getByRole("button", { name: /deadlock at/ }).count(), 1));
});

on("zoom and pan keep the fabric in sight", {}, async ({ page, go, shot }) => {
  await go(`#/fabric?job=${pair}&run=0&t=60us`);
  const canvas = page.locator("canvas.stage").first();
  await canvas.waitFor();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.2, box.y + box.height * 0.6);
  for (let turn = 0; turn < 6; turn++) await page.mouse.wheel(0, -240);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.9, box.y + box.height * 0.9, { steps: 6 });
  await page.mouse.up();
  await page.waitForTimeout(200);
  await shot("fabric-near");
  // Something is drawn: not all pixels are the same.
  const colours = await canvas.evaluate(
    (element) =>
      new Set(new Uint32Array(element.getContext("2d").getImageData(0, 0, element.width, element.height).data.buffer)).size,
  );
  assert.ok(colours > 10);
  await page.keyboard.press("0");
});

on("a claim is found, run, and its verdict and figure appear", {}, async ({ page, go, shot }) => {
  await go("#/ledger");
  await page.getByLabel("Search the claims").fill("industry workloads");
  await page.waitForFunction(() => document.querySelectorAll(".claim").length === 1);
  await page.locator(".claim").click();
  await page.getByRole("heading", { name: "Bytes by flow size in three industry workloads" }).waitFor();
  await until(async () => assert.equal(await page.locator(".expect .badge").count(), 0));
  await page.getByRole("button", { name: "Run quick" }).click();
  await page.locator(".expect .badge").first().waitFor();
  assert.ok((await page.locator(".expect .gauge").count()) > 5);
  const image = page.locator(".figure img").first();
  await image.scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector(".figure img")?.naturalWidth > 100);
  await page.evaluate(() => scrollTo(0, 0));
  await shot("ledger-claim");
  // The list knows, and filters by it.
  await page.getByLabel("Search the claims").fill("");
  await page.locator(".chips .chip", { hasText: "holds in part" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".claim").length === 1);
  await page.reload();
  await page.locator(".claim").first().waitFor();
  await until(async () => assert.equal(await page.locator(".claim").count(), 1));
});

on("a long experiment shows its progress and can be cancelled", {}, async ({ page, go, shot }) => {
  await go("#/ledger/bfc/fig5a");
  await page.getByRole("button", { name: "Run quick" }).click();
  await page.waitForFunction(() => /of \d+ runs/.test(document.querySelector(".runs-here .progress-text")?.textContent ?? ""));
  await page.waitForFunction(() => document.querySelector(".runs-here progress")?.value > 0);
  await shot("ledger-progress");
  // The list shows it too, and so do the jobs.
  await until(async () => assert.equal(await page.locator(".claim .sign.live").count(), 1));
  await until(async () => assert.equal(await page.locator("#busy").textContent(), "1"));
  await page.getByRole("button", { name: "Cancel" }).click();
  await page.locator(".runs-here .badge", { hasText: "cancelled" }).waitFor();
  await page.waitForFunction(() => document.getElementById("busy").hidden);
});

on("a mistake is told at its line while typing, and a press mends it", {}, async ({ page, go, shot }) => {
  await go("#/bench?example=leaf_spine");
  const area = page.getByLabel("Scenario text");
  await area.waitFor();
  await page.locator(".verdict-line .ok").waitFor();
  const text = await area.inputValue();
  const line = text.split("\n").findIndex((one) => one.startsWith("kind")) + 1;
  await area.fill(text.replace('kind = "leaf-spine"', 'kind = "leaf-spin"'));
  const bad = page.locator(".ink .line-bad");
  await bad.waitFor();
  await until(async () => assert.match(await bad.textContent(), /kind = "leaf-spin".*there is no topology/));
  await until(async () => assert.equal(await page.locator(".gutter .bad").textContent(), String(line)));
  await until(async () => assert.equal(await page.locator(".ink .here").textContent(), '"leaf-spin"'));
  await page.locator('[data-path="topology.kind"][aria-invalid]').waitFor();
  await page.getByRole("button", { name: `line ${line}` }).click();
  await shot("bench-mistake");
  await page.getByRole("button", { name: "Write leaf-spine" }).click();
  await page.locator(".verdict-line .ok").waitFor();
  await until(async () => assert.equal(await area.inputValue(), text));
  // A wrong unit.
  await area.fill(text.replace('size = "2MB"', 'size = "2MX"'));
  await bad.waitFor();
  await until(async () => assert.match(await bad.textContent(), /unknown unit/));
});

on("form and text say the same, whichever is edited", {}, async ({ page, go, shot }) => {
  await go("#/bench?example=leaf_spine");
  const area = page.getByLabel("Scenario text");
  await area.waitFor();
  const before = await area.inputValue();
  const field = (path) => page.locator(`.form [data-path="${path}"]`);
  await field("topology.leaves").fill("6");
  await field("topology.leaves").press("Tab");
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("leaves = 6"));
  await until(async () => assert.equal(await area.inputValue(), before.replace("leaves = 4", "leaves = 6")));
  // The focus went on to the next field.
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement.dataset.path), "topology.hosts_per_leaf"));
  await field("scheme.preset").selectOption("bfc");
  await page.waitForFunction(() => document.querySelector("textarea").value.includes('preset = "bfc"'));
  await field("seed").fill("");
  await field("seed").press("Tab");
  await page.waitForFunction(() => !/^seed/m.test(document.querySelector("textarea").value));
  await area.fill((await area.inputValue()).replace("spines = 2", "spines = 3"));
  await page.waitForFunction(() => document.querySelector('[data-path="topology.spines"]').value === "3");
  await page.getByRole("button", { name: "+ incast" }).click();
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("[[incast]]\ndegree = 8"));
  await field("incast.0.degree").fill("5");
  await field("incast.0.degree").press("Enter");
  await page.waitForFunction(() => document.querySelector("textarea").value.includes("degree = 5"));
  assert.ok((await area.inputValue()).includes("# Hosts h0 to h3 are on leaf0"));
  await page.locator(".bench-bar summary").click();
  await shot("bench-schemes");
  await page.keyboard.press("Escape");
  // A link holds the text.
  await page.waitForFunction(() => /[?&]z=/.test(location.hash));
  await page.waitForTimeout(700);
  const now = await area.inputValue();
  await page.evaluate(() => localStorage.clear());
  await page.reload();
  await area.waitFor();
  await page.waitForFunction((text) => document.querySelector("textarea").value === text, now);
});

on("a claim's scenario goes to the bench with its schemes", {}, async ({ page, go }) => {
  await go("#/ledger/sfc/fig8");
  await page.getByRole("button", { name: "Its scenario on the bench" }).click();
  await page.locator(".verdict-line .ok").waitFor();
  await until(async () => assert.match(await page.getByLabel("Scenario text").inputValue(), /^name = "sfc\/fig8"[^]*sizes = "rpc"/));
  await until(async () => assert.match(await page.locator(".bench-bar summary").textContent(), /Schemes: .*sfc/));
  await page.getByRole("button", { name: "Compare", exact: true }).isEnabled();
});

on(
  "two schemes are compared from the bench, results appear beneath, and one press watches them",
  {},
  async ({ page, go, shot }) => {
    await go("#/bench?example=hot_spot");
    await page.locator(".verdict-line .ok").waitFor();
    await page.locator(".bench-bar summary").click();
    await page.getByRole("checkbox", { name: /^pfc / }).check();
    await page.getByRole("checkbox", { name: /^dvl / }).check();
    await page.getByRole("button", { name: "done" }).click();
    await page.getByRole("button", { name: "Compare", exact: true }).click();
    await page.locator(".outcome .compare tbody tr").nth(1).waitFor();
    await until(async () => assert.deepEqual(await page.locator(".outcome .compare tbody td:first-child").allTextContents(), ["pfc", "dvl"]));
    await shot("bench-results");
    await page.getByRole("link", { name: "Watch it" }).click();
    await page.locator("canvas.stage").nth(1).waitFor();
    await page.keyboard.press("p");
    await page.waitForTimeout(300);
    await shot("fabric-dumbbell");
    await until(async () => assert.deepEqual(await page.locator(".scheme").allTextContents(), ["pfc", "dvl"]));
  },
);

on("results sort, filter and restore, with figures and files", {}, async ({ page, go, shot }) => {
  await go(`#/results?job=${pair}`);
  await page.locator(".flows tbody tr").first().waitFor();
  await until(async () => assert.equal(await page.locator(".flows tbody tr").count(), 13));
  await page.getByRole("button", { name: "size" }).click();
  await page.waitForFunction(() => document.querySelector('.flows th[aria-sort="descending"]')?.textContent === "size");
  await until(async () => assert.match(await page.locator(".flows tbody tr").first().innerText(), /victim/));
  await page.locator(".flows-bar select").selectOption("incast");
  await page.waitForFunction(() => document.querySelectorAll(".flows tbody tr").length === 12);
  await page.reload();
  await page.waitForFunction(
    () =>
      document.querySelectorAll(".flows tbody tr").length === 12 &&
      document.querySelector('.flows th[aria-sort="descending"]')?.textContent === "size",
  );
  await page.locator(".figure img").first().scrollIntoViewIfNeeded();
  await page.waitForFunction(() => document.querySelector(".figure img").naturalWidth > 100);
  const file = await page.locator('.files a[href*="flows.parquet"]').first().getAttribute("href");
  const answer = await fetch(new URL(file, studio.url));
  assert.equal(answer.status, 200);
  assert.equal(
    Buffer.from(await answer.arrayBuffer())
      .subarray(0, 4)
      .toString(),
    "PAR1",
  );
  await page.evaluate(() => scrollTo(0, 0));
  await shot("results");
  await page.locator(".flows tbody a").first().click();
  await page.locator("canvas.stage").first().waitFor();
  await page.locator(".card h2").first().waitFor();
});

on("jobs can be run again, cancelled while they wait, and deleted", {}, async ({ page, go, shot }) => {
  await go("#/jobs");
  await page.locator(`tr[data-job="${pair}"]`).waitFor();
  const slow = HOT.replace('size_each = "300KB"', 'size_each = "200MB"');
  const first = (await studio.api("/api/jobs", { kind: "run", name: "a long one", text: slow })).id;
  const second = (await studio.api("/api/jobs", { kind: "run", name: "waits", text: slow })).id;
  const row = (id) => page.locator(`tr[data-job="${id}"]`);
  await row(second).locator(".badge", { hasText: "waits" }).waitFor();
  await shot("jobs");
  await row(second).getByRole("button", { name: "Cancel" }).click();
  await row(second).locator(".badge", { hasText: "cancelled" }).waitFor();
  await row(first).getByRole("button", { name: "Cancel" }).click();
  await row(first).locator(".badge", { hasText: "cancelled" }).waitFor();
  const remove = row(second).getByRole("button", { name: "Delete" });
  await remove.click();
  await remove.click();
  await row(second).waitFor({ state: "detached" });
  await row(pair).getByRole("button", { name: "again" }).click();
  await row(second + 1)
    .locator(".badge", { hasText: "done" })
    .waitFor();
});

on("a scenario that fails says why, in words", {}, async ({ page, go }) => {
  await go("#/bench");
  const area = page.getByLabel("Scenario text");
  await area.waitFor();
  await area.fill('[topology]\nkind = "star"\n[[flow]]\nsrc = "h1"\ndst = "h99"\nsize = "1MB"\n');
  await page.locator(".ink .line-bad").waitFor();
  await page.getByRole("button", { name: "Run", exact: true }).click();
  const trouble = page.locator(".outcome .trouble, .note.bad").first();
  await trouble.waitFor();
  await until(async () => assert.match(await trouble.innerText(), /h99/));
});

on("everything can be done with the keyboard", {}, async ({ page, go }) => {
  await go("");
  await page.locator(".claim").first().waitFor();
  await page.keyboard.press("Tab");
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement.className), "skip"));
  // Every stop on the way has a name and can be seen to have the focus.
  const seen = [];
  for (let press = 0; press < 20; press++) {
    await page.keyboard.press("Tab");
    seen.push(
      await page.evaluate(() => {
        const at = document.activeElement;
        const style = getComputedStyle(at);
        return {
          name: (at.getAttribute("aria-label") ?? at.labels?.[0]?.textContent ?? at.textContent ?? "").trim(),
          ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
        };
      }),
    );
  }
  assert.ok(
    seen.every(({ name, ring }) => name && ring),
    JSON.stringify(seen.filter(({ name, ring }) => !name || !ring)),
  );
  await page.keyboard.press("/");
  await until(async () => assert.equal(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), "Search the claims"));
  await page.keyboard.type("portfc/deadlock");
  await page.waitForFunction(() => document.querySelectorAll(".claim").length === 1);
  await page.locator(".claim").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Deadlock on BCube" }).waitFor();
  await page.keyboard.press("?");
  await page.locator("dialog[open]").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector("dialog").open);
  await page.keyboard.press("g");
  await page.keyboard.press("f");
  await page.locator("canvas.stage").first().waitFor();
  await page.keyboard.press(" ");
  await page.getByRole("button", { name: "Stop" }).waitFor();
  await page.keyboard.press(" ");
  await page.getByRole("button", { name: "Play" }).waitFor();
  await page.keyboard.press("p");
  await page.keyboard.press("n");
  // A port by the list of deepest queues, a flow by the list of flows.
  await page.locator(".now-row").first().waitFor();
  await page.locator(".now-row").first().focus();
  await page.keyboard.press("Enter");
  await page.locator(".card .chart").first().waitFor();
  await page.locator(".flow-table tbody button").first().focus();
  await page.keyboard.press("Enter");
  await page.getByText("path:").waitFor();
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => !document.querySelector(".card .chart"));
  await page.locator(".time-area").focus();
  const before = await instant(page);
  await page.keyboard.press("Shift+ArrowLeft");
  await page.waitForFunction((text) => document.querySelector(".instant").textContent !== text, before);
  await page.waitForFunction(() => document.getElementById("instant").textContent.includes("queued"));
});

on(
  "nothing is wider than a phone",
  { viewport: { width: 360, height: 740 }, isMobile: true, hasTouch: true },
  async ({ page, go }) => {
    for (const [name, address, ready] of [
      ["ledger", "", ".claim"],
      ["claim", "#/ledger/bfc/fig4", ".expect"],
      ["bench", "#/bench?example=leaf_spine", ".verdict-line .ok"],
      ["fabric", `#/fabric?job=${pair}&run=0&with=1&t=60us&port=16`, "canvas.stage"],
      ["results", `#/results?job=${pair}`, ".flows tbody tr"],
      ["jobs", "#/jobs", ".jobs tbody tr"],
    ]) {
      await go(address);
      await page.locator(ready).first().waitFor();
      await page.waitForTimeout(300);
      await until(async () => assert.equal(await page.evaluate(() => document.scrollingElement.scrollWidth), 360, name));
      await page.screenshot({ path: `${shots}phone-${name}.png` });
    }
    // A finger on a port.
    await go(`#/fabric?job=${pair}&run=0&t=60us`);
    const canvas = page.locator("canvas.stage").first();
    await canvas.waitFor();
    await page.waitForTimeout(300);
    const box = await canvas.boundingBox();
    await page.touchscreen.tap(box.x + box.width * 0.12, box.y + box.height * 0.62);
    await page.locator(".card .chart").first().waitFor();
  },
);

on("dark and light follow the system, and a choice stays", { colorScheme: "dark" }, async ({ page, go, shot }) => {
  const paper = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  for (const [name, address, ready] of [
    ["ledger", "#/ledger/bfc/fig4", ".expect"],
    ["bench", "#/bench?example=websearch_incast", ".verdict-line .ok"],
    ["fabric", `#/fabric?job=${pair}&run=0&with=1&t=100us&port=40`, "canvas.stage"],
    ["results", `#/results?job=${pair}`, ".flows tbody tr"],
  ]) {
    await go(address);
    await page.locator(ready).first().waitFor();
    await page.waitForTimeout(400);
    await shot(`dark-${name}`);
  }
  await until(async () => assert.equal(await paper(), "rgb(20, 23, 27)"));
  await page.locator("#theme").click();
  await until(async () => assert.equal(await paper(), "rgb(255, 255, 255)"));
  await page.reload();
  await until(async () => assert.equal(await paper(), "rgb(255, 255, 255)"));
});

on("those who want no motion get none by themselves", { reducedMotion: "reduce" }, async ({ page, go }) => {
  await go(`#/fabric?job=${pair}&run=0&with=1&play=1`);
  await page.locator("canvas.stage").first().waitFor();
  await page.waitForTimeout(300);
  await until(async () => assert.equal(await page.getByRole("button", { name: "Play" }).count(), 1));
});

/** Milliseconds between pictures while it plays, and what drawing one costs. */
async function pace(page) {
  await page.getByRole("button", { name: "Play" }).click();
  const gaps = await page.evaluate(
    () =>
      new Promise((resolve, reject) => {
        const gaps = [];
        setTimeout(() => reject(new Error(`waited 120 s in vain: 150 pictures are drawn, but ${gaps.length} are`)), 120_000);
        let last = performance.now();
        const beat = (now) => {
          gaps.push(now - last);
          last = now;
          if (gaps.length < 150) requestAnimationFrame(beat);
          else resolve(gaps.slice(10));
        };
        requestAnimationFrame(beat);
      }),
  );
  gaps.sort((a, b) => a - b);
  return { median: gaps[gaps.length >> 1], p95: gaps[Math.floor(gaps.length * 0.95)] };
}

const crowd = (leaves, per, spines, time) => `name = "${leaves * per} hosts"
[topology]
kind = "leaf-spine"
leaves = ${leaves}
hosts_per_leaf = ${per}
spines = ${spines}
[switch]
buffer = "4MB"
[[load]]
sizes = "hadoop"
load = 0.5
duration = "${time}"
[[incast]]
degree = 64
size_each = "64KB"
every = "50us"
duration = "${time}"
`;

on("128 hosts play smoothly, one run and two", {}, async ({ page, go, shot }) => {
  const id = await studio.job({
    kind: "compare",
    name: "128 hosts",
    text: crowd(8, 16, 8, "200us"),
    schemes: ["pfc", "bfc"],
    seeds: 1,
    record: true,
  });
  for (const address of [`#/fabric?job=${id}&run=0`, `#/fabric?job=${id}&run=0&with=1`]) {
    await go(address);
    await page.locator("canvas.stage").first().waitFor();
    await page.waitForTimeout(300);
    const { median, p95 } = await pace(page);
    console.log(
      `# 128 hosts, ${address.includes("with") ? "two runs" : "one run"}: ${median.toFixed(1)} ms between pictures, 95th ${p95.toFixed(1)} ms`,
    );
    // A busy machine without a graphics card: only what would be a fault is one.
    assert.ok(median < 100, `${median} ms`);
    await page.getByRole("button", { name: "Stop" }).click();
  }
  await page.keyboard.press("p");
  await page.waitForTimeout(300);
  await shot("fabric-128");
});

on("1024 hosts stay usable", {}, async ({ page, go, shot }) => {
  const id = await studio.job({
    kind: "compare",
    name: "1024 hosts",
    text: crowd(64, 16, 16, "40us"),
    schemes: ["bfc"],
    seeds: 1,
    record: true,
  });
  const began = Date.now();
  await go(`#/fabric?job=${id}&run=0&view=picture`);
  await page.locator(".time-area").waitFor();
  console.log(`# 1024 hosts: open after ${Date.now() - began} ms`);
  await page.waitForTimeout(300);
  const { median, p95 } = await pace(page);
  console.log(`# 1024 hosts: ${median.toFixed(1)} ms between pictures, 95th ${p95.toFixed(1)} ms`);
  assert.ok(median < 400, `${median} ms`);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.keyboard.press("p");
  await page.waitForTimeout(300);
  await shot("fabric-1024");
  const canvas = page.locator("canvas.stage").first();
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.7);
  for (let turn = 0; turn < 8; turn++) await page.mouse.wheel(0, -240);
  await page.waitForTimeout(300);
  await shot("fabric-1024-near");
  await pointAt(page, canvas, /→/);
});

on("a fabric of more than 256 hosts opens as a map of its ports, where a click is a port and an instant", {}, async ({ page, go, shot }) => {
  const text = `name = "large"\nstop = "60us"\n[topology]\nkind = "leaf-spine"\nleaves = 18\nhosts_per_leaf = 16\nspines = 4\n[switch]\nbuffer = "1MB"\n[[incast]]\ndegree = 64\nsize_each = "60KB"\nto = "h0"\ncount = 1\n`;
  const id = await studio.job({ kind: "run", name: "large", text, sets: ["scheme.preset=pfc"], record: true });
  await go(`#/fabric?job=${id}&run=0`);
  const map = page.locator("canvas.heat");
  await map.waitFor();
  await page.waitForTimeout(400);
  assert.ok(!(await page.locator("canvas.stage").first().isVisible()));
  const colours = await map.evaluate(
    (element) => new Set(new Uint32Array(element.getContext("2d").getImageData(0, 0, element.width, element.height).data.buffer)).size,
  );
  assert.ok(colours > 6, `${colours} colours`);
  await shot("fabric-map");
  const box = await map.boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + box.height * 0.3);
  await page.locator(".tip:visible").waitFor();
  await until(async () => assert.match(await page.locator(".tip:visible").innerText(), /→.*\n.*us: .* waiting/));
  await page.mouse.click(box.x + box.width * 0.4, box.y + box.height * 0.3);
  await page.waitForFunction(() => /t=.*port=\d+/.test(location.hash));
  await page.getByLabel("View", { exact: true }).selectOption("heat pause");
  await page.waitForFunction(() => /heat=pause/.test(location.hash));
  await page.waitForTimeout(300);
  await shot("fabric-map-pauses");
  await page.getByLabel("View", { exact: true }).selectOption("picture");
  await page.waitForFunction(() => /view=picture/.test(location.hash));
  assert.ok(await page.locator("canvas.stage").first().isVisible());
});

test("what the command line ran is among the results, before anything ran on the bench", async () => {
  const own = new Studio([], {}, "studio");
  writeFileSync(join(own.folder, "hot.toml"), HOT);
  execFileSync(BINARY, ["run", "hot.toml", "--quiet", "--out", "hot"], { cwd: own.folder });
  await own.start();
  const { page, context, errors } = await open(browser, {});
  try {
    await page.goto(new URL("#/results", own.url).href);
    const link = page.locator("[data-folder=hot] a");
    await link.waitFor();
    await until(async () => assert.equal(await link.textContent(), "hot spot"));
    await until(async () => assert.equal(await page.locator("h1").textContent(), "Results"));
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
    await own.remove();
  }
});

test("without its token the studio is said to want it, and not to be away", async () => {
  const guarded = new Studio(["--listen", "0.0.0.0"]);
  await guarded.start();
  const { page, context } = await open(browser);
  try {
    const url = new URL(guarded.url);
    url.search = "";
    await page.goto(new URL("#/jobs", url).href);
    await page.waitForFunction(() => /wants its token/.test(document.getElementById("lost").textContent));
    await page.waitForTimeout(4000);
    const text = await page.locator("body").innerText();
    assert.ok(!/does not answer/.test(text), text);
    assert.match(text, /token is missing or wrong/);
    // With it, a link for others has an address that leads here and the token.
    await page.goto(new URL("#/jobs", guarded.url).href);
    await page.locator("main h1").waitFor();
    const { address } = await page.evaluate(async () => (await import("/api.js")).sharedLink());
    assert.match(address, /^http:\/\/[^/]+\/\?token=[0-9a-f]{48}#\/jobs$/);
  } finally {
    await context.close();
    await guarded.remove();
  }
});

test("with a token everything works, pictures and events too, and the address bar forgets it", async () => {
  const guarded = new Studio(["--listen", "0.0.0.0"]);
  await guarded.start();
  const { page, context, errors } = await open(browser);
  try {
    assert.match(guarded.url, /token=/);
    await page.goto(new URL("#/ledger/bfc/fig4", guarded.url).href);
    await page.getByRole("button", { name: "Run quick" }).click();
    await page.locator(".figure img").first().scrollIntoViewIfNeeded();
    await page.waitForFunction(() => document.querySelector(".figure img")?.naturalWidth > 100);
    assert.ok(!page.url().includes("token"));
    await page.reload();
    await page.locator(".expect .badge").first().waitFor();
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
    await guarded.remove();
  }
});

test("a studio that goes away is said to, and found again", async () => {
  const { page, context } = await open(browser);
  try {
    await page.goto(new URL("#/jobs", studio.url).href);
    await page.locator(`tr[data-job="${pair}"]`).waitFor();
    await studio.stop();
    await page.locator("#lost").waitFor();
    await until(async () => assert.match(await page.locator("#lost").textContent(), /does not answer/));
    await page.screenshot({ path: `${shots}lost.png` });
    await studio.start();
    await page.locator("#lost").waitFor({ state: "hidden" });
    // Everything is there again, and new things arrive.
    const id = await studio.job({ kind: "run", name: "after the break", text: HOT, record: true });
    await page.locator(`tr[data-job="${id}"] .badge`, { hasText: "done" }).waitFor();
  } finally {
    await context.close();
  }
});

test("ten tabs of a browser load and hear of a job, also those that come back", async () => {
  // A browser has six connections to a host. Pages that are left are kept, as people's browsers do.
  const own = await launch({ ignoreDefaultArgs: ["--disable-back-forward-cache"] });
  try {
    const context = await own.newContext();
    context.setDefaultTimeout(120_000);
    const pages = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const page = await context.newPage();
        await page.goto(new URL("#/jobs", studio.url).href);
        await page.locator(`tr[data-job="${pair}"]`).waitFor();
        return page;
      }),
    );
    const left = pages[0];
    await left.evaluate(() => addEventListener("pageshow", (event) => (window.persisted = event.persisted)));
    await left.goto(new URL("/icon.svg", studio.url).href);
    const id = await studio.job({ kind: "run", name: "for all tabs", text: HOT });
    for (const page of pages.slice(1)) await page.locator(`tr[data-job="${id}"] .badge`, { hasText: "done" }).waitFor();
    // A page that was kept is not loaded.
    await left.goBack({ waitUntil: "commit" });
    await left.waitForFunction(() => window.persisted);
    await left.locator(`tr[data-job="${id}"] .badge`, { hasText: "done" }).waitFor();
    const later = await studio.job({ kind: "run", name: "later", text: HOT });
    for (const page of pages) await page.locator(`tr[data-job="${later}"] .badge`, { hasText: "done" }).waitFor();
  } finally {
    await own.close();
  }
});

test("without a shared worker a page that nobody looks at gives its connection up", async () => {
  const { context, errors } = await open(browser);
  try {
    await context.addInitScript(() => {
      delete window.SharedWorker;
      let hidden = false;
      Object.defineProperty(document, "visibilityState", { get: () => (hidden ? "hidden" : "visible") });
      window.look = (now) => {
        hidden = !now;
        document.dispatchEvent(new Event("visibilitychange"));
      };
    });
    const pages = [];
    for (let at = 0; at < 8; at++) {
      const page = await context.newPage();
      await page.goto(new URL("#/jobs", studio.url).href);
      await page.locator(`tr[data-job="${pair}"]`).waitFor();
      await page.evaluate(() => window.look(false));
      pages.push(page);
    }
    const id = await studio.job({ kind: "run", name: "while nobody looks", text: HOT });
    await until(async () => assert.equal(await pages[0].locator(`tr[data-job="${id}"]`).count(), 0));
    await pages[0].evaluate(() => window.look(true));
    await pages[0].locator(`tr[data-job="${id}"] .badge`, { hasText: "done" }).waitFor();
    assert.deepEqual(errors, []);
  } finally {
    await context.close();
  }
});
