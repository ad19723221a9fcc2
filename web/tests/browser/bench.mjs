// A browser whose pages are watched: nothing may leave the origin, and nothing may go wrong unseen.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { serve } from "./server.mjs";

const ARGS = [
  "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
  "--disable-sync", "--no-first-run",
];
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const WIDE = { width: 1440, height: 900 };
export const NARROW = { width: 420, height: 800 };
export const SMALLEST = { width: 320, height: 640 };

/**
 * Defines tests that share a browser and a server: `it(name, async ({ page, server, watch }) => …)`, each with a fresh
 * browser profile. `allow` lists console errors that a test provokes.
 */
export function bench(serverOptions = {}) {
  let browser, server;
  before(async () => {
    [browser, server] = await Promise.all([
      chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ARGS }),
      serve(serverOptions),
    ]);
  });
  after(async () => {
    await browser?.close();
    await server?.close();
  });
  const it = (name, options, work) =>
    test(name, { timeout: 120_000 }, async () => {
      const { allow = [], ...contextOptions } = typeof options === "function" ? {} : options;
      const context = await browser.newContext({ viewport: WIDE, ...contextOptions });
      try {
        const watch = await watched(context, () => server.url);
        const page = await context.newPage();
        page.setDefaultTimeout(15_000);
        await (work ?? options)({ page, context, server, watch });
        watch.check(allow);
      } finally {
        // A route that is still answered must not outlive its test.
        await Promise.all(context.pages().map((page) => page.unrouteAll({ behavior: "ignoreErrors" })));
        await context.unrouteAll({ behavior: "ignoreErrors" });
        await context.close();
      }
    });
  return { it, server: () => server };
}

/** Notes what no page may do. */
async function watched(context, origin) {
  const seen = { foreign: [], errors: [], dialogs: [], violations: [] };
  const isOwn = (url) => url.startsWith(`${origin()}/`) || url.startsWith("data:") || url.startsWith("blob:");
  context.on("request", (request) => isOwn(request.url()) || seen.foreign.push(request.url()));
  context.on("weberror", (error) => seen.errors.push(String(error.error())));
  context.on("console", (message) => message.type() === "error" && seen.errors.push(message.text()));
  context.on("dialog", (dialog) => {
    // A page that asks before it is left is not an attack.
    if (dialog.type() !== "beforeunload") seen.dialogs.push(dialog.message());
    void dialog.dismiss();
  });
  await context.exposeBinding("proemViolation", (_, text) => seen.violations.push(text));
  await context.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => {
      window.proemViolation(`${event.violatedDirective}: ${event.blockedURI}`);
    });
  });
  return {
    seen,
    check(allow) {
      const errors = seen.errors.filter((text) => !allow.some((pattern) => pattern.test(text)));
      assert.deepEqual({ ...seen, errors }, { foreign: [], errors: [], dialogs: [], violations: [] });
    },
  };
}

/** Asserts that axe finds nothing serious in the page as it is, in both themes. */
export async function accessible(page, what) {
  for (const colorScheme of ["light", "dark"]) {
    await theme(page, colorScheme);
    // The handle runs in the page whatever its policy says about scripts.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run({ resultTypes: ["violations"] }));
    const serious = violations
      .filter(({ impact }) => impact === "serious" || impact === "critical")
      .map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 200)).join(" | ")}`);
    assert.deepEqual(serious, [], `${what}, ${colorScheme}`);
  }
}

/** Changes the system's theme, and waits until the page is drawn in it. */
async function theme(page, colorScheme) {
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  await page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  await page.waitForFunction(() => !document.getAnimations().some((animation) => animation instanceof CSSTransition));
}

/**
 * Asserts that nothing in sight is wider than the window, and nothing but code scrolls sideways, also with wider
 * letters: what fonts a machine has is not ours to say.
 */
export async function fits(page, what) {
  assert.deepEqual(await tooWide(page), [], what);
  await page.evaluate(() => document.documentElement.style.setProperty("letter-spacing", "0.08em"));
  assert.deepEqual(await tooWide(page), [], `${what}, with wider letters`);
  await page.evaluate(() => document.documentElement.style.removeProperty("letter-spacing"));
}

function tooWide(page) {
  return page.evaluate(() =>
    [...document.querySelectorAll("html, body *")].filter((element) => {
      if (!element.checkVisibility() || element.closest(".cm-editor, .visually-hidden")) return false;
      const { left, right, width } = element.getBoundingClientRect();
      const scrolls = /auto|scroll/.test(getComputedStyle(element).overflowX) && element.scrollWidth > element.clientWidth + 1;
      return width > 0 && (left < -1 || right > innerWidth + 1 || scrolls);
    }).map((element) => element.outerHTML.slice(0, 120)));
}

/** Takes the page's picture at both widths in both themes, if `PROEM_WEB_SHOTS` names a directory. */
export async function shots(page, name) {
  const directory = process.env.PROEM_WEB_SHOTS;
  if (!directory) return;
  for (const [size, viewport] of [["wide", WIDE], ["narrow", NARROW]]) {
    for (const colorScheme of ["light", "dark"]) {
      await page.setViewportSize(viewport);
      await theme(page, colorScheme);
      await page.screenshot({ path: join(directory, `${name}-${size}-${colorScheme}.png`) });
    }
  }
  await page.setViewportSize(WIDE);
}
