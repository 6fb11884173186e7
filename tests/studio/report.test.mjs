// Reports in a browser: what a reader does with a figure.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";
import { browser, page, until } from "./browser.mjs";

const program = resolve(process.env.TAILWATER ?? "target/debug/tailwater");
const scenario = fileURLToPath(new URL("../../examples/leaf_spine.toml", import.meta.url));
const incast = fileURLToPath(new URL("../../examples/incast.toml", import.meta.url));
let folder, chromium, address, single;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "report-"));
  const arguments_ = ["compare", scenario, "--schemes", "pfc,hpcc", "--seeds", "3", "--out", join(folder, "out"), "--quiet"];
  execFileSync(program, arguments_, { cwd: folder, stdio: "pipe" });
  address = pathToFileURL(join(folder, "out", "report.html")).href;
  execFileSync(program, ["run", incast, "--out", join(folder, "run"), "--quiet"], { cwd: folder, stdio: "pipe" });
  single = pathToFileURL(join(folder, "run", "report.html")).href;
  chromium = await browser();
});
after(async () => {
  await chromium?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The report in a page of its own, and a figure of it. */
async function open(figure, options) {
  const { page: tab, context, errors } = await page(chromium, options);
  const requests = [];
  tab.on("request", (request) => requests.push(request.url()));
  await tab.goto(address);
  const plot = tab.locator(`#${figure} .plot`).first();
  await plot.scrollIntoViewIfNeeded();
  await plot.locator("svg .sheet").waitFor({ state: "attached" });
  const now = () => plot.locator("svg text").allTextContents();
  /** What stands there when nothing is drawn any more: on a busy machine a figure is drawn again a moment after a tap or a change of width. */
  const ticks = async () => {
    for (let before = await now(); ; ) {
      await tab.waitForTimeout(100);
      const after = await now();
      if (after.join() === before.join()) return after;
      before = after;
    }
  };
  const sheet = async () => plot.locator(".sheet").boundingBox();
  await ticks();
  const done = async () => {
    assert.deepEqual(errors, []);
    assert.deepEqual(requests, [address], "nothing else is loaded");
    await context.close();
  };
  return { tab, plot, ticks, sheet, done };
}

/** A place of a point of a series that is drawn. */
const somewhere = (plot) =>
  plot.locator(".sheet").evaluate((sheet) => {
    const box = sheet.getBoundingClientRect();
    const line = sheet.ownerSVGElement.querySelector("path[stroke=currentColor]");
    const { x, y } = line.getPointAtLength(line.getTotalLength() / 3);
    return [box.left + x, box.top + y];
  });

test("hovering shows the name, the value and the place of the nearest point", async () => {
  const { tab, plot, done } = await open("buffers");
  const readout = plot.locator(".readout");
  assert.equal(await readout.isVisible(), false);
  await until(async () => {
    await tab.mouse.move(1, 1);
    await tab.mouse.move(...(await somewhere(plot)));
    assert.match(await readout.innerText(), /^(pfc|hpcc)\s+[\d.]+%\s+at [\d.]+ [KM]?B$/);
  });
  await tab.mouse.move(1, 1);
  await until(async () => assert.equal(await readout.isVisible(), false));
  await done();
});

test("over names all series are shown at once", async () => {
  const { tab, plot, sheet, done } = await open("slowdown-p99");
  await until(async () => {
    const box = await sheet();
    await tab.mouse.move(1, 1);
    await tab.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const text = await plot.locator(".readout").innerText();
    assert.match(text, /pfc/);
    assert.match(text, /hpcc/);
    assert.match(text, / – /, "with their intervals");
  });
  await done();
});

test("a logarithmic axis of less than a decade has ticks between its ends", async () => {
  const { page: tab, context, errors } = await page(chromium);
  await tab.goto(single);
  const plot = tab.locator("#slowdowns .plot");
  await plot.scrollIntoViewIfNeeded();
  await plot.locator("svg .sheet").waitFor({ state: "attached" });
  await until(async () => {
    const texts = await plot.locator("svg text").allTextContents();
    const ticks = texts.filter((text) => /^[\d.]+$/.test(text)).map(Number);
    assert.ok(ticks.length >= 4, `ticks are ${texts}`);
    const steps = ticks.slice(1).map((tick, at) => tick - ticks[at]);
    assert.ok(steps.every((step) => Math.abs(step - steps[0]) < 1e-9), `ticks are ${ticks}`);
  });
  assert.deepEqual(errors, []);
  await context.close();
});

test("pictures are dark on a dark page, and for white paper otherwise", async () => {
  const { page: tab, context } = await page(chromium, { colorScheme: "dark" });
  await tab.goto(single);
  const filter = () => tab.locator(".picture svg").first().evaluate((svg) => getComputedStyle(svg).filter);
  assert.match(await filter(), /invert/);
  await tab.emulateMedia({ media: "print" });
  assert.equal(await filter(), "none");
  await tab.emulateMedia({ media: "screen", colorScheme: "light" });
  assert.equal(await filter(), "none");
  await context.close();
});

test("a drag zooms, ticks follow, a double click goes back", async () => {
  const { tab, plot, ticks, sheet, done } = await open("buffers");
  const all = await ticks(), box = await sheet();
  const drag = async (from, to) => {
    const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
    await tab.mouse.move(...at(from));
    await tab.mouse.down();
    await tab.mouse.move(...at(to), { steps: 4 });
    await tab.mouse.up();
  };
  await drag([0.3, 0.3], [0.5, 0.6]);
  const part = await ticks();
  assert.notDeepEqual(part, all);
  assert.ok(part.length > 4, "there are ticks within the part");
  await plot.locator(".sheet").dblclick();
  assert.deepEqual(await ticks(), all);

  await drag([0.2, 0.5], [0.4, 0.502]);
  const percent = (texts) => texts.filter((text) => text.endsWith("%"));
  assert.deepEqual(percent(await ticks()), percent(all), "a level drag leaves the upright axis as it is");
  await plot.getByRole("button", { name: "Show all" }).click();
  assert.deepEqual(await ticks(), all);
  await done();
});

test("a name is switched off in every figure, and one can be seen alone", async () => {
  const { tab, plot, ticks, done } = await open("buffers");
  const lines = async () => {
    await ticks();
    return plot.locator("path[stroke=currentColor]").count();
  };
  const pressed = (name) => tab.locator(`.chip[data-name="${name}"]`).first().getAttribute("aria-pressed");
  assert.equal(await lines(), 2);
  const chip = tab.locator('#buffers .chip[data-name="pfc"]');
  await chip.click();
  assert.equal(await lines(), 1);
  assert.deepEqual([await pressed("pfc"), await pressed("hpcc")], ["false", "true"]);
  await chip.click();
  await chip.dblclick();
  assert.deepEqual([await pressed("pfc"), await pressed("hpcc")], ["true", "false"]);
  assert.equal(await lines(), 1);
  await done();
});

test("the keys move along a figure and zoom it", async () => {
  const { tab, plot, ticks, done } = await open("buffers");
  const readout = plot.locator(".readout"), all = await ticks();
  await plot.locator("> svg").focus();
  await tab.keyboard.press("ArrowRight");
  const first = await until(async () => {
    const text = await readout.innerText();
    assert.notEqual(text, "");
    return text;
  });
  await tab.keyboard.press("ArrowRight");
  await until(async () => assert.notEqual(await readout.innerText(), first));
  await tab.keyboard.press("ArrowDown");
  await until(async () => assert.notEqual((await readout.innerText()).split("\n")[0], first.split("\n")[0], "the other series"));
  await tab.keyboard.press("Escape");
  await until(async () => assert.equal(await readout.isVisible(), false));
  await tab.keyboard.press("+");
  assert.notDeepEqual(await ticks(), all);
  await tab.keyboard.press("0");
  assert.deepEqual(await ticks(), all);
  await done();
});

test("a telephone has buttons, and nothing is wider than it", async () => {
  const { tab, plot, ticks, done } = await open("buffers", { viewport: { width: 400, height: 800 }, hasTouch: true, isMobile: true });
  const all = await ticks();
  await plot.getByRole("button", { name: "Zoom in" }).tap();
  assert.notDeepEqual(await ticks(), all);
  await plot.getByRole("button", { name: "Show all" }).tap();
  assert.deepEqual(await ticks(), all);
  assert.ok(await tab.evaluate(() => document.documentElement.scrollWidth <= 400));
  await done();
});

test("texts stay within a figure and off each other at every width, light and dark", async () => {
  for (const colorScheme of ["light", "dark"]) {
    const { tab, plot, done } = await open("slowdown-p99", { colorScheme });
    for (const width of [1400, 900, 400]) {
      await tab.setViewportSize({ width, height: 900 });
      await tab.waitForTimeout(100);
      const trouble = await plot.evaluate((plot) => {
        const outer = plot.getBoundingClientRect();
        const boxes = [...plot.querySelectorAll("svg text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
        const out = boxes.filter(([, box]) => box.left < outer.left - 1 || box.right > outer.right + 1 || box.bottom > outer.bottom + 1);
        const on = boxes.filter(([, a], at) => boxes.slice(0, at).some(([, b]) =>
          a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 3 && b.top < a.bottom - 3));
        return [...out, ...on].map(([text]) => text);
      });
      assert.deepEqual(trouble, [], `at ${width}`);
    }
    const ink = await plot.locator("svg text").last().evaluate((text) => getComputedStyle(text).fill);
    assert.equal(ink, colorScheme === "dark" ? "rgb(228, 231, 235)" : "rgb(29, 32, 36)");
    await done();
  }
});

test("on paper there are drawings, and a figure can be saved", async () => {
  const { tab, plot, done } = await open("buffers");
  const drawing = tab.locator("#buffers .paper > svg");
  assert.equal(await drawing.isVisible(), false);
  await tab.emulateMedia({ media: "print" });
  assert.deepEqual([await drawing.isVisible(), await plot.isVisible()], [true, false]);
  await tab.emulateMedia({ media: "screen" });
  for (const [kind, begins] of [["SVG", "<svg"], ["PNG", "\x89PNG"], ["CSV", "panel,series,x,y,low,high,x axis,y axis\n1,pfc,"]]) {
    const [download] = await Promise.all([tab.waitForEvent("download"), tab.locator(`#buffers [data-save=${kind}]`).click()]);
    assert.equal(download.suggestedFilename(), `buffers.${kind.toLowerCase()}`);
    assert.ok(readFileSync(await download.path(), "latin1").startsWith(begins), kind);
  }
  await done();
});
