// Debian's Chromium, and a page in it that tells of every error.
import { chromium } from "playwright-core";

export async function browser(options = {}) {
  return chromium.launch({
    ...options,
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
      "--no-first-run",
    ],
  });
}

/** A page with its own storage; `errors` collects what the console complains of. */
export async function page(browser, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 860 }, ...options });
  // A slow machine is no fault.
  context.setDefaultTimeout(120_000);
  const page = await context.newPage();
  const errors = [];
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") errors.push(message.text());
  });
  page.on("pageerror", (error) => errors.push(String(error.stack ?? error)));
  return { page, context, errors };
}

/** What `check` returns once it no longer throws: on a busy machine a page is drawn again a moment after a reader did something. */
export async function until(check) {
  for (const end = Date.now() + 60_000; ; ) {
    try {
      return await check();
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((wake) => setTimeout(wake, 100));
    }
  }
}
