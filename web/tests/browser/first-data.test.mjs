// The overview before there is any data, and its demo.

import assert from "node:assert/strict";
import { accessible, bench, shots } from "./bench.mjs";

const { it } = bench();

it("without calls the overview names three ways to get some", async ({ page, server }) => {
  await page.goto(`${server.url}/`);
  await page.getByRole("heading", { name: "No call was recorded in the last 7 days" }).waitFor();
  await page.getByText("proem run -- claude").waitFor();
  await page.getByText(`curl ${server.url}/conversations/c-1/calls`).waitFor();
  await page.getByText("proem report", { exact: true }).waitFor();
  await accessible(page, "the empty overview");
  await shots(page, "overview-empty");
});

it("the demo is marked as such, and asks nothing of the server", async ({ page, server }) => {
  await page.goto(`${server.url}/`);
  await page.getByRole("heading", { name: /^No call was recorded/ }).waitFor();
  const asked = [];
  page.on("request", (request) => asked.push(new URL(request.url()).pathname));
  await page.getByRole("link", { name: "Show demo data" }).click();
  await page.getByText("Demo data.", { exact: true }).waitFor();
  await page.getByText("src/AGENTS.md:10").waitFor();
  assert.equal(await page.getByRole("link", { name: /billing-refactor/ }).count(), 0, "nothing of it leads anywhere");
  assert.deepEqual(asked.filter((path) => !path.startsWith("/assets/")), []);
  await accessible(page, "the demo");
  await shots(page, "overview-demo");
  await page.getByRole("link", { name: "Leave the demo" }).click();
  await page.getByRole("heading", { name: /^No call was recorded/ }).waitFor();
});
