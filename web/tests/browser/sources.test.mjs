// The page of sources: everything that takes part in the prompts of a folder, and the files that agents read in it.

import assert from "node:assert/strict";
import { accessible, bench, fits, NARROW, shots, SMALLEST } from "./bench.mjs";

const { it } = bench();
const SKILL = "---\nname: deploy\ndescription: Deploys the service\n---\nRun `make deploy`.\n";

it("sources have a price, findings, readers and the conversations that hold an older text", async ({ page, server }) => {
  server.write("AGENTS.md", "Run the tests.\n");
  server.write("CLAUDE.md", "See @docs/style.md\n");
  server.write(".proem/skills/deploy/SKILL.md", SKILL);
  await server.ask("/conversations/old/turn", { prompt: "Hello" });
  server.write("AGENTS.md", "Run the linter.\n");
  await page.goto(`${server.url}/#/sources?model=claude-opus-5`);
  const row = (name) => page.getByRole("row").filter({ has: page.getByRole("rowheader", { name }) });
  const file = row(/^AGENTS\.md/);
  await file.waitFor();
  const titles = await page.getByRole("columnheader").allTextContents();
  const cells = await file.getByRole("cell").allTextContents();
  const of = (title) => cells[titles.indexOf(title) - 1].trim();
  assert.equal(of("Changes"), "project");
  assert.match(of("Older text in"), /^1\s*conversation$/);
  assert.match(of("New"), /^\$0\.000\d$/);
  assert.match(of("Read by"), /^\d of 9$/);
  await row(/deploy.*Skill/).waitFor();
  await file.getByRole("button").click();
  const details = page.getByRole("region", { name: "Conversations with an older text" });
  await details.getByRole("link", { name: "old" }).waitFor();
  await page.getByRole("region", { name: "Agents" }).getByText("shadowed").waitFor();
  await accessible(page, "the sources");
  await shots(page, "sources");
});

it("kind, search and the open row are in the address", async ({ page, server }) => {
  await page.goto(`${server.url}/#/sources?kind=variable&search=date`);
  await page.getByRole("rowheader", { name: /system:local_date/ }).waitFor();
  assert.equal(await page.getByRole("rowheader").count(), 1);
  await page.getByLabel("Kind").selectOption("");
  await page.getByRole("searchbox", { name: "Search" }).fill("nothing like this");
  await page.getByText("Nothing fits the search.").waitFor();
});

it("every agent's files are in the table, with why not", async ({ page, server }) => {
  server.write("AGENTS.md", "Run the tests.\n");
  server.write("CLAUDE.md", "See @docs/style.md\n");
  server.write("docs/style.md", "Four spaces.\n");
  await page.goto(`${server.url}/#/sources?view=agents`);
  const row = page.getByRole("row").filter({ has: page.getByRole("rowheader", { name: "CLAUDE.md", exact: true }) });
  await row.waitFor();
  const titles = await page.getByRole("columnheader").allTextContents();
  const words = (await row.getByRole("cell").allTextContents()).map((word) => word.trim());
  const of = (title) => words[titles.indexOf(title) - 1];
  assert.equal(titles.length, 10);
  assert.deepEqual([of("Claude Code"), of("Codex"), of("opencode")], ["yes", "–", "shadowed"]);
  await row.getByRole("button", { name: "shadowed" }).first().click();
  await page.locator(".reason").filter({ hasText: "CLAUDE.md" }).filter({ hasText: "shadowed" }).waitFor();
  await page.getByText(/Rules for 0\.\d+\.\d+, verified by running it/).first().waitFor();
  await accessible(page, "the agents");
  await shots(page, "agents");
});

it("sources fit a narrow screen", { viewport: NARROW }, async ({ page, server }) => {
  await page.setViewportSize(SMALLEST);
  await page.goto(`${server.url}/#/sources`);
  await page.getByRole("rowheader", { name: /AGENTS\.md/ }).waitFor();
  await page.getByRole("button", { name: /AGENTS\.md/ }).click();
  await fits(page, "the sources");
});
