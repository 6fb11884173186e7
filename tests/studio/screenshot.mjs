// The README's picture of the studio, docs/studio.png: the first example under PFC and BFC, with the worst victim and why it waits.
//   cargo build --release && TAILWATER=target/release/tailwater node tests/studio/screenshot.mjs
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { crc32, deflateSync } from "node:zlib";
import { browser as launch, page as open } from "./browser.mjs";
import { Studio } from "./server.mjs";

const target = process.argv[2] ?? fileURLToPath(new URL("../../docs/studio.png", import.meta.url));
const studio = await new Studio().start();
const browser = await launch();
let picture, pixels;
try {
  const { page } = await open(browser, { viewport: { width: 1400, height: 860 }, colorScheme: "light" });
  await page.goto(studio.url);
  await page.getByRole("button", { name: "Run it and watch" }).click();
  await page.locator("canvas.stage").nth(1).waitFor();
  await page.getByRole("button", { name: "Stop", exact: true }).click();
  await page.keyboard.press("Home");
  await page.getByRole("button", { name: /^One of its stops/ }).first().click();
  await page.evaluate(() => document.activeElement.blur());
  await page.mouse.move(600, 20);
  await page.waitForTimeout(500);
  picture = await page.screenshot();
  pixels = await page.evaluate(async (text) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))]));
    const paint = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    paint.drawImage(bitmap, 0, 0);
    const { data } = paint.getImageData(0, 0, bitmap.width, bitmap.height);
    let letters = "";
    for (let at = 0; at < data.length; at += 8192) letters += String.fromCharCode(...data.subarray(at, at + 8192));
    return { width: bitmap.width, height: bitmap.height, data: btoa(letters) };
  }, picture.toString("base64"));
} finally {
  await browser.close();
  await studio.remove();
}

// 256 colours are enough for lines on paper, and a third of the bytes.
const { width, height } = pixels;
const data = Buffer.from(pixels.data, "base64");
const counts = new Map();
for (let at = 0; at < data.length; at += 4) {
  const colour = data.readUIntBE(at, 3);
  counts.set(colour, (counts.get(colour) ?? 0) + 1);
}
const parts = (colour) => [colour >> 16, (colour >> 8) & 255, colour & 255];
// Median cut: the box that is longest, weighed by how much of the picture it has, is halved until there are 256.
let boxes = [[...counts].map(([colour, count]) => ({ colour, rgb: parts(colour), count }))];
const measure = (box) => {
  const spans = [0, 1, 2].map(
    (channel) => Math.max(...box.map(({ rgb }) => rgb[channel])) - Math.min(...box.map(({ rgb }) => rgb[channel])),
  );
  const long = Math.max(...spans);
  return {
    box,
    channel: spans.indexOf(long),
    weight: long * Math.sqrt(box.reduce((sum, { count }) => sum + Math.sqrt(count), 0)),
  };
};
boxes = boxes.map(measure);
while (boxes.length < 256) {
  const widest = boxes.reduce((a, b) => (b.weight > a.weight ? b : a));
  if (widest.weight === 0) break;
  const { box, channel } = widest;
  box.sort((a, b) => a.rgb[channel] - b.rgb[channel] || a.colour - b.colour);
  const middle = (box[0].rgb[channel] + box.at(-1).rgb[channel]) / 2;
  const cut = Math.max(
    1,
    box.findIndex(({ rgb }) => rgb[channel] > middle),
  );
  boxes.splice(boxes.indexOf(widest), 1, measure(box.slice(0, cut)), measure(box.slice(cut)));
}
// A box has the colour that is most of it.
const known = boxes.map(({ box }) => box.reduce((a, b) => (b.count > a.count ? b : a)).rgb);
const place = new Map(boxes.flatMap(({ box }, at) => box.map(({ colour }) => [colour, at])));
const find = (colour) => place.get(colour);
const rows = Buffer.alloc(height * (width + 1));
for (let y = 0; y < height; y++)
  for (let x = 0; x < width; x++) rows[y * (width + 1) + x + 1] = find(data.readUIntBE((y * width + x) * 4, 3));
const chunk = (name, body) => {
  const whole = Buffer.concat([Buffer.alloc(4), Buffer.from(name), body, Buffer.alloc(4)]);
  whole.writeUInt32BE(body.length, 0);
  whole.writeUInt32BE(crc32(whole.subarray(4, -4)), whole.length - 4);
  return whole;
};
const head = Buffer.alloc(13);
head.writeUInt32BE(width, 0);
head.writeUInt32BE(height, 4);
head.set([8, 3, 0, 0, 0], 8);
const png = Buffer.concat([
  Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]),
  chunk("IHDR", head),
  chunk("PLTE", Buffer.from(known.flat())),
  chunk("IDAT", deflateSync(rows, { level: 9 })),
  chunk("IEND", Buffer.alloc(0)),
]);
writeFileSync(target, png);
console.log(`${target}: ${Math.round(png.length / 1000)} KB`);
if (png.length > 300_000) throw new Error("larger than 300 KB");
