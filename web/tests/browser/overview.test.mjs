// The overview, the list and a timeline of a large store: 10,000 conversations, 200,000 calls.

import assert from "node:assert/strict";
import { accessible, bench, fits, NARROW, shots, SMALLEST } from "./bench.mjs";

const { it, server } = bench({ seeded: true });

it("the overview says what was spent, saved and lost, and to whom", async ({ page, server }) => {
  await page.goto(`${server.url}/#/`);
  await page.getByRole("heading", { name: "Why the cache missed" }).waitFor();
  const usage = await server.ask(`/usage?since=${new Date(Date.now() - 6 * 86_400_000).toISOString().slice(0, 10)}T00:00:00Z&by=day`);
  const tile = (name) => page.locator("dl.tiles > *").filter({ hasText: name }).locator("dd > span").first();
  const dollars = async (name) => Number((await tile(name).textContent()).replace(/[$,]/g, ""));
  assert.ok(Math.abs((await dollars("Spent")) - usage.totals.usd) <= 0.51, "the sum of the server");
  assert.ok(Math.abs((await dollars("Lost to our changes")) - usage.totals.lost_usd.ours) <= 0.51);
  await page.getByText("Instruction file").first().waitFor();
  await page.getByRole("link", { name: /src\/AGENTS\.md:10/ }).waitFor();
  await page.getByText("Table", { exact: true }).click();
  const days = page.getByRole("table").filter({ has: page.getByRole("columnheader", { name: "Day" }) }).getByRole("rowheader");
  assert.equal(await days.count(), 7);
  await page.getByText("Table", { exact: true }).click();
  await accessible(page, "the overview");
  await shots(page, "overview");
  await page.getByRole("link", { name: "30 days" }).click();
  await page.waitForURL(/days=30/);
  await page.waitForFunction(() => document.querySelectorAll("figure svg circle").length > 20);
});

it("a saved template is a mark in the chart", async ({ page, server }) => {
  await server.ask("/system-prompt", { template: "Be brief." }, "PUT");
  await page.goto(`${server.url}/#/`);
  await page.getByText("Template saved:").waitFor();
  await page.getByRole("link", { name: "version 1" }).waitFor();
});

it("ten thousand conversations are listed by what they lost, and only a page of them is loaded", async ({ page, server }) => {
  const asked = [];
  page.on("request", (request) => request.url().includes("sort=lost_usd") && request.url().includes("/conversations?") && asked.push(request.url()));
  await page.goto(`${server.url}/#/conversations?sort=lost_usd`);
  await page.getByText("10,000 conversations, 50 shown").waitFor();
  const rows = page.getByRole("region", { name: "Conversations" }).getByRole("rowheader");
  assert.equal(await rows.count(), 50);
  assert.equal(asked.length, 1);
  const lost = await page.getByRole("cell").filter({ hasText: /^\$/ }).count();
  assert.ok(lost >= 50, "each has a price");
  await page.getByLabel("Kind").selectOption("observed");
  await page.getByRole("searchbox").fill("session-0004");
  await page.getByText(/^10 conversations$/).waitFor();
  await page.waitForURL(/search=session-0004/);
  await page.getByRole("columnheader", { name: "Calls" }).getByRole("link").click();
  await page.waitForURL(/sort=calls/);
  await page.reload();
  await page.getByText(/^10 conversations$/).waitFor();
  assert.equal(await page.getByRole("searchbox").inputValue(), "session-0004");
  await page.goto(`${server.url}/#/conversations`);
  await page.getByText("10,000 conversations, 50 shown").waitFor();
  await accessible(page, "the list of conversations");
  await shots(page, "conversations");
});

// The server has calls of an observed conversation, and no prompt: it answers 404 to the question for one.
it("an observed conversation has a timeline that the arrow keys walk", { allow: [/404/] }, async ({ page, server }) => {
  const { calls } = await server.ask("/calls?alarming=true&limit=1");
  const id = encodeURIComponent(calls[0].conversation);
  await page.goto(`${server.url}/#/conversations/${id}/calls/${calls[0].id}`);
  const autopsy = page.getByRole("heading", { name: /^Call \d+ lost/ });
  await autopsy.waitFor();
  const number = Number(/\d+/.exec(await autopsy.textContent())[0]);
  const strip = page.getByRole("group", { name: /^Calls by epoch/ });
  await strip.focus();
  await page.keyboard.press("Home");
  await page.getByText("Call 1: first call.").waitFor();
  await page.waitForURL(/calls\/1$/);
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/calls\/2$/);
  await page.goto(`${server.url}/#/conversations/${id}/calls/${number}`);
  await autopsy.waitFor();
  await page.getByText(/^Table of \d+ calls/).click();
  assert.ok((await page.getByRole("table").getByRole("rowheader").count()) >= 20);
  await page.getByText(/^Table of \d+ calls/).click();
  await accessible(page, "a timeline");
  await shots(page, "timeline");
  await page.getByRole("link", { name: "Close" }).click();
  await page.getByText("Most expensive misses").waitFor();
  await accessible(page, "the most expensive misses");
});

it("health shows prices with their day, store and work", async ({ page, server }) => {
  await page.goto(`${server.url}/#/health`);
  await page.getByRole("rowheader", { name: "claude-opus-5", exact: true }).waitFor();
  await page.getByText(/as of \d{4}-\d\d-\d\d; rules/).waitFor();
  await page.getByText("answers", { exact: true }).waitFor();
  await accessible(page, "health");
  await shots(page, "health");
});

it("no page is wider than a narrow screen", { viewport: NARROW, allow: [/404/] }, async ({ page }) => {
  const { calls } = await server().ask("/calls?alarming=true&limit=1");
  const one = `/conversations/${encodeURIComponent(calls[0].conversation)}`;
  await page.setViewportSize(SMALLEST);
  for (const [rest, wanted] of [["", "Why the cache missed"], ["/conversations", "conversations, 50 shown"], [one, "Most expensive misses"], [`${one}/calls/${calls[0].id}`, "Expected against read"], ["/health", "Models and prices"]]) {
    await page.goto(`${server().url}/#${rest || "/"}`);
    await page.getByText(wanted).first().waitFor();
    const width = await page.evaluate(() => document.querySelector("main:not(.away)").scrollWidth);
    assert.ok(width <= SMALLEST.width, `${rest || "the overview"} is ${width} wide`);
  }
  await page.goto(`${server().url}/#/conversations`);
  await page.getByText("conversations, 50 shown").waitFor();
  await fits(page, "the list of conversations");
});
