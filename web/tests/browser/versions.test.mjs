// The page of versions.

import assert from "node:assert/strict";
import { accessible, bench, shots, SMALLEST } from "./bench.mjs";

const { it, server } = bench();
const save = (body) => server().ask("/system-prompt", body, "PUT");
const CLAUDE = "claude-opus-5";
const long = "You are careful. ".repeat(200);

it("without a version the page says how one is made", async ({ page, server }) => {
  await page.goto(`${server.url}/#/versions`);
  await page.getByText("Nothing was saved yet: new conversations use the built-in template.").waitFor();
  await accessible(page, "no versions");
});

it("a version has message, author, label, prices and its conversations", async ({ page, server }) => {
  await save({ template: "Be calm.\n", author: "Ada", message: "Begin" });
  await server.ask("/conversations/one/turn", { profile: "default", prompt: "Hello" });
  await save({ template: `Be calm.\n${long}\n`, author: "Miguel", message: "Say it often" });
  await save({ template: `It is [system:time].\nBe calm.\n${long}\n`, author: "Miguel", message: "Tell the time", label: "draft" });
  await page.goto(`${server.url}/#/versions?model=${CLAUDE}&profile=template`);
  const row = (version) => page.getByRole("row").filter({ has: page.getByRole("link", { name: version, exact: true }) });
  await row("3").getByText("draft", { exact: true }).waitFor();
  await row("2").getByText("live", { exact: true }).waitFor();
  await row("2").getByText("Say it often").waitFor();
  await row("2").getByText("Miguel").waitFor();
  const cells = await row("1").getByRole("cell").allTextContents();
  assert.equal(cells.at(-2), "1", `conversations of version 1: ${cells}`);
  await row("2").getByText(/^\+\$0\.0\d+$/).first().waitFor();
  await row("2").getByText(/^\+1,\d{3}$/).waitFor();
  await accessible(page, "the versions");
  await shots(page, "versions");
  await row("3").getByRole("button", { name: "Make live" }).click();
  await row("3").getByText("live", { exact: true }).waitFor();
});

it("two versions are compared as templates, prompts and cost, each by an address", async ({ page, server }) => {
  await page.goto(`${server.url}/#/versions/1..2?model=${CLAUDE}&profile=template`);
  const comparison = page.getByRole("region", { name: "Comparison" });
  await comparison.getByRole("heading", { name: "Version 1 → Version 2" }).waitFor();
  await comparison.getByRole("textbox", { name: "Version 2" }).getByText("You are careful.").first().waitFor();
  await page.getByRole("radio", { name: "Compare to version 3" }).check();
  await comparison.getByRole("heading", { name: "Version 1 → Version 3" }).waitFor();
  assert.match(await page.evaluate(() => location.hash), /^#\/versions\/1\.\.3\?/);
  await comparison.getByRole("link", { name: "Rendered prompt, this folder" }).click();
  await comparison.getByRole("textbox", { name: "Version 3" }).getByText(/It is \d{4}-/).waitFor();
  await comparison.getByRole("link", { name: "Cost" }).click();
  await comparison.getByRole("row", { name: /^New conversation \$0\.\d{6} \$0\.\d{6} \+\$0\.0\d+$/ }).waitFor();
  await accessible(page, "the cost of two versions");
  await shots(page, "versions-cost");
  const hash = await page.evaluate(() => location.hash);
  assert.match(hash, /comparison=cost/);
  await page.reload();
  await comparison.getByRole("row", { name: /^New conversation/ }).waitFor();
});

it("an earlier version is restored as the newest", async ({ page, server }) => {
  await page.goto(`${server.url}/#/versions`);
  await page.getByRole("button", { name: "Restore version 1" }).click();
  await page.getByRole("button", { name: "Restore", exact: true }).click();
  await page.locator(".toast").getByText("Version 1 was restored as version 4.").waitFor();
  await page.getByText("Restored version 1").waitFor();
  assert.equal((await server.ask("/system-prompt")).template, "Be calm.\n");
});

it("nothing is wider than the smallest screen", { viewport: SMALLEST }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/versions/1..2`);
  await page.getByRole("region", { name: "Comparison" }).getByRole("heading").waitFor();
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= SMALLEST.width, `the page is ${width} wide`);
});
