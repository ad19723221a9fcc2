// The page of agents.

import assert from "node:assert/strict";
import { accessible, bench, shots } from "./bench.mjs";

const { it } = bench();

it("every agent's files are in the table, with why not", async ({ page, server }) => {
  server.write("AGENTS.md", "Run the tests.\n");
  server.write("CLAUDE.md", "See @docs/style.md\n");
  server.write("docs/style.md", "Four spaces.\n");
  await page.goto(`${server.url}/#/sources`);
  const row = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "CLAUDE.md", exact: true }) });
  await row.waitFor();
  const titles = await page.getByRole("columnheader").allTextContents();
  const words = await row.getByRole("cell").allTextContents();
  const of = (title) => words[titles.indexOf(title) - 1];
  assert.equal(titles.length, 10);
  assert.deepEqual([of("Claude Code"), of("Codex"), of("opencode")], ["yes", "–", "shadowed"]);
  await page.getByText("Rules for 0.169.0, verified by running it").waitFor();
  await accessible(page, "the agents");
  await shots(page, "agents");
});

it("a folder that is not allowed is refused", { allow: [/403/] }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/sources`);
  await page.getByRole("columnheader", { name: "Codex" }).waitFor();
  await page.getByRole("textbox", { name: "Folder" }).fill("/etc");
  await page.getByRole("button", { name: "Check folder" }).click();
  await page.getByText("The folder could not be looked at").waitFor();
});
