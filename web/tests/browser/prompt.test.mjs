// The prompt's page: money, blame, trial values, files beside the prompt, and the defects that were there once.

import assert from "node:assert/strict";
import { accessible, bench, NARROW, shots } from "./bench.mjs";
import { editorOf, hoverText, openEditor } from "./editor.mjs";

const many = Object.fromEntries(Array.from({ length: 1_100 }, (_, number) => [`src/many/file-${String(number).padStart(5, "0")}.txt`, "x\n"]));
const rules = Array.from({ length: 40 }, (_, line) => `Rule ${line + 1} of the project.`).join("\n");
const { it, server } = bench({ files: { ...many, "AGENTS.md": `${rules}\n`, "src/AGENTS.md": "Only in src.\n" } });
const CLAUDE = "claude-opus-5";
const model = (page) => page.getByRole("combobox", { name: "Model" });

it("a model is chosen at the start, so that prices are shown", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  assert.match(await model(page).inputValue(), /^claude/);
  await editor.cost.getByText(/new conversation \$0\.\d{6}/).waitFor();
  await editor.cost.getByText(/warm turn \$0\.\d{6}/).waitFor();
});

it("the address has folder, profile and model, and opens what it names", async ({ page, server }) => {
  await openEditor(page, server);
  await model(page).selectOption(CLAUDE);
  await page.waitForFunction((model) => location.hash.includes(`model=${model}`), CLAUDE);
  const hash = await page.evaluate(() => location.hash);
  assert.ok(hash.includes(`folder=${server.workspace}`) && hash.includes("profile=template"), hash);
  await page.goto(`${server.url}/#/prompt?folder=${server.workspace}/src&profile=default&model=none`);
  await page.reload();
  await editorOf(page).ready();
  await page.getByRole("button", { name: "Folder project/src" }).waitFor();
  assert.equal(await model(page).inputValue(), "");
  assert.equal(await page.getByRole("combobox", { name: "Profile" }).inputValue(), "default");
  await editorOf(page).prompt.getByText("Only in src.").waitFor();
});

it("a clock is a price with a fix that saves it, and the fix can be undone", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await model(page).selectOption(CLAUDE);
  const text = `It is [system:time].\n${"You are careful. ".repeat(300)}\n`;
  await editor.write(text);
  const finding = editor.cost.getByRole("list", { name: "Findings" }).getByRole("listitem");
  await finding.getByText(/^Every new conversation re-pays [\d,]+ tokens \(\$0\.0\d+\)\.$/).waitFor();
  await finding.getByText("Inside a conversation it is free: its prompt is frozen.").waitFor();
  await editor.cost.getByText("1 break added").waitFor();
  await accessible(page, "a finding");
  await shots(page, "prompt-finding");
  await finding.getByRole("button", { name: /^Move to the end, saves \$0\.0\d+$/ }).click();
  await editor.cost.getByText(/re-pays [\d,]+ tokens/).filter({ hasNotText: /re-pays \d,\d{3}/ }).waitFor();
  assert.ok((await editor.text()).trimEnd().endsWith("It is [system:time]."));
  await page.getByRole("button", { name: "Undo" }).click();
  await editor.cost.getByText(/re-pays \d,\d{3} tokens/).waitFor();
});

it("findings are sorted by dollars: a turn of many tokens comes before a cheap clock", async ({ page, server }) => {
  server.write("big.txt", "word ".repeat(20_000));
  const editor = await openEditor(page, server, { profile: "default" });
  await model(page).selectOption(CLAUDE);
  const answer = { carrier: "turn", id: "environment", stability: "turn", bytes: 200_000, tokens: 55_590, cached: "as_history" };
  await page.route("**/preview", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    json.stats.sections.push(answer);
    await route.fulfill({ response, json });
  });
  await editor.write("You are here. [system:clock]\nBe brief.\n");
  const first = editor.cost.getByRole("list", { name: "Findings" }).getByRole("listitem").first();
  await first.getByText(/^Every turn sends 55,590 tokens of environment \(\$0\.\d+\)\.$/).waitFor();
});

it("a warm turn that reads its history is not said to pay for all of it", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await model(page).selectOption(CLAUDE);
  await page.route("**/preview", async (route) => {
    const response = await route.fetch();
    const json = await response.json();
    Object.assign(json.stats, { min_tokens: 512, prefix_tokens: 328 });
    json.stats.warm = { input_tokens: 756, read: 743, written: 0, written_1h: 0, uncached: 13, usd: 0.000453 };
    await route.fulfill({ response, json });
  });
  await editor.write("a frozen prompt");
  await editor.openCost();
  await editor.cost.getByRole("row", { name: /warm 756 743/ }).waitFor();
  assert.equal(await editor.cost.getByText("nothing of it is cached").count(), 0);
  await editor.pane("Prompt").getByText("cached up to here", { exact: true }).waitFor();
});

it("the margin has the file and the real line, and a click opens the file there", async ({ page, server }) => {
  const editor = await openEditor(page, server, { profile: "default" });
  await editor.prompt.getByText("Rule 16 of the project.").waitFor();
  const mark = editor.pane("Prompt").locator(".cm-blame-file").filter({ hasText: /^16$/ });
  await mark.waitFor();
  assert.match(await mark.getAttribute("title"), /AGENTS\.md:16, /);
  await hoverText(page, editor.prompt, "Rule 16 of the project.");
  await editor.pane("Prompt").locator(".source").getByText(/AGENTS\.md:16$/).waitFor();
  await mark.click();
  const file = page.getByRole("region", { name: "File", exact: true });
  await file.getByRole("textbox", { name: /^File .*AGENTS\.md$/ }).waitFor();
  assert.equal(await file.locator(".cm-file-line").textContent(), "Rule 16 of the project.");
  assert.equal(await editor.template.isVisible(), false);
  await accessible(page, "a file beside the prompt");
  await shots(page, "prompt-file");
  await file.getByRole("button", { name: "Close the file" }).click();
  await editor.template.waitFor();
});

it("the source of a piece is shown where the pointer is", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  const part = "A long line of text that wraps in the pane, again and again. ".repeat(15);
  await editor.write(`${part}HERE ${part}`);
  await editor.prompt.getByText("A long line").waitFor();
  const pointer = await hoverText(page, editor.prompt, "HERE");
  const tooltip = page.locator(".cm-source");
  await tooltip.waitFor();
  const { y, height } = await tooltip.boundingBox();
  assert.ok(Math.abs(y + height - pointer.y) < 60, `the tooltip is ${Math.abs(y + height - pointer.y)} pixels away`);
});

it("only what changes by itself has a colour", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("Stable text on [git:branch].\nIt is [system:date], [system:clock].");
  await editor.prompt.locator(".cm-stability-day").waitFor();
  await editor.prompt.locator(".cm-stability-turn").waitFor();
  assert.equal(await editor.prompt.locator('[class*="cm-stability-"]').count(), 2);
  const legend = editor.pane("Prompt").getByRole("list", { name: "Colours" });
  assert.deepEqual(await legend.getByRole("listitem").allTextContents(), ["changes every day", "changes with every turn"]);
});

it("sections have headings and an outline with tokens", async ({ page, server }) => {
  const editor = await openEditor(page, server, { profile: "default" });
  const outline = editor.pane("Prompt").getByText(/^\d+ sections$/);
  await outline.click();
  await editor.pane("Prompt").getByRole("list", { name: "Sections" }).getByRole("button", { name: /^context \d/ }).click();
  await editor.prompt.locator(".cm-section-heading").filter({ hasText: /^context \d+ tokens$/ }).waitFor();
});

it("the prompt is copied", { permissions: ["clipboard-read", "clipboard-write"] }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("Copy me.");
  await editor.expectPrompt("Copy me.");
  await editor.pane("Prompt").getByRole("button", { name: "Copy" }).click();
  await page.locator(".toast").getByText("The prompt is copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "Copy me.");
});

it("a pane can take all the room", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.pane("Prompt").getByRole("button", { name: "Show Prompt alone" }).click();
  assert.equal(await editor.template.isVisible(), false);
  const { width } = await editor.pane("Prompt").boundingBox();
  assert.ok(width > 1_400, `it is ${width} wide`);
  await editor.pane("Prompt").getByRole("button", { name: "Show Prompt beside the others" }).click();
  await editor.template.waitFor();
});

it("the first click on a variable inserts at the end when nothing was clicked before", async ({ page, context, server }) => {
  await server.ask("/system-prompt", { template: "You are here.\n" }, "PUT");
  const fresh = await context.newPage();
  const editor = await openEditor(fresh, server);
  const { use } = await editor.variable("git:branch");
  await use.click();
  await editor.expectText("You are here.\n[git:branch]");
});

it("values can be tried, and branches with them", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("[if prompt:language]Answer in [prompt:language].[else]Answer in English.[endif] On [git:branch].");
  await editor.expectPrompt("Answer in English. On main.");
  await editor.openVariables();
  await editor.variables.getByText("used here", { exact: true }).first().waitFor();
  await editor.variables.getByText("used here ×2").waitFor();
  await editor.variables.getByRole("button", { name: /^Try values/ }).click();
  await editor.variables.getByLabel("Language").fill("French");
  await editor.expectPrompt("Answer in French. On main.");
  await editor.variables.getByRole("button", { name: "git:branch", exact: true }).click();
  await editor.variables.getByRole("textbox", { name: "git:branch" }).fill("release");
  await editor.expectPrompt("Answer in French. On release.");
  await editor.variables.getByRole("checkbox", { name: "absent" }).check();
  await editor.expectPrompt("Answer in French. On .");
  await accessible(page, "values to try");
  await shots(page, "prompt-try");
  await editor.variables.getByRole("button", { name: "Clear 2 values" }).click();
  await editor.expectPrompt("Answer in English. On main.");
});

it("a file is found by the server, in any folder", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("");
  await (await editor.variable("file:")).use.click();
  const dialog = page.getByRole("dialog", { name: "Which file?" });
  await dialog.getByRole("searchbox", { name: "Search below this folder" }).fill("01099");
  await dialog.getByRole("button", { name: /src\/many\/file-01099\.txt/ }).click();
  await dialog.getByRole("button", { name: "Insert its text" }).click();
  await editor.expectText("[file:src/many/file-01099.txt]");
});

it("a profile with a prompt of its own says so, and the template is not edited for it", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("edited before");
  await page.getByRole("combobox", { name: "Profile" }).selectOption("codex");
  await editor.pane("Template").getByText(/The profile codex has a prompt of its own and does not use this template/).waitFor();
  assert.equal(await page.getByRole("button", { name: "Save…" }).isEnabled(), false);
  await editor.template.click();
  await page.keyboard.type("x");
  await editor.expectText("edited before");
  await page.getByRole("combobox", { name: "Profile" }).selectOption("template");
  await editor.template.click();
  await page.keyboard.press("End");
  await page.keyboard.type("!");
  await editor.expectText("edited before!");
});

it("the tooltip of a problem goes with Escape and with the focus", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("[if git:branch]open");
  await editor.template.locator(".cm-lintRange").first().waitFor();
  const tooltip = page.locator(".cm-tooltip-lint");
  await editor.template.focus();
  await page.keyboard.press("F8");
  await tooltip.waitFor();
  await page.keyboard.press("Escape");
  await tooltip.waitFor({ state: "detached" });
  await page.keyboard.press("Control+Home");
  await page.keyboard.press("F8");
  await tooltip.waitFor();
  await page.keyboard.press("Control+S");
  await page.getByRole("dialog", { name: "Save the template" }).waitFor();
  await tooltip.waitFor({ state: "detached" });
});

it("a variable in a branch that does not apply can be read", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("[if file:missing.md]On [git:branch].[else]always[endif]");
  await editor.expectPrompt("always");
  await accessible(page, "a dimmed variable");
});

it("Save has the price of the edit, a message and a label; the toast says what it does", async ({ page, server }) => {
  await server.ask("/system-prompt", { template: "Short.\n" }, "PUT");
  const editor = await openEditor(page, server);
  await model(page).selectOption(CLAUDE);
  await editor.write(`${"You are careful. ".repeat(300)}[system:clock]\nmore text behind it\n`);
  await editor.cost.getByText("1 break added").waitFor();
  await page.getByRole("button", { name: "Save…" }).click();
  const dialog = page.getByRole("dialog", { name: "Save the template" });
  await dialog.getByText(/^\+\$0\.0\d+$/).first().waitFor();
  await dialog.getByText("1 break added").waitFor();
  await dialog.getByText("not affected: they keep their frozen prompt").waitFor();
  await dialog.getByLabel("What changes (optional)").fill("Be careful");
  await dialog.getByRole("checkbox", { name: /^Draft/ }).check();
  await accessible(page, "the dialog before saving");
  await shots(page, "prompt-save");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await page.locator(".toast").getByText(/^Saved as version \d+\. It is a draft: new conversations do not use it\.$/).waitFor();
  const [newest] = (await server.ask("/system-prompt/versions?text=false")).versions;
  assert.deepEqual([newest.message, newest.label], ["Be careful", "draft"]);
});

it("the palette finds files, and opens them beside the prompt", async ({ page, server }) => {
  await openEditor(page, server);
  await page.keyboard.press("Control+K");
  await page.keyboard.type("src/AGENTS");
  await page.getByRole("option", { name: /src\/AGENTS\.md/ }).click();
  const file = page.getByRole("region", { name: "File", exact: true });
  await file.getByText("Only in src.").waitFor();
});

it("the glossary explains the words", async ({ page, server }) => {
  await openEditor(page, server);
  await page.getByRole("button", { name: "Glossary" }).click();
  const dialog = page.getByRole("dialog", { name: "Words and what they mean" });
  await dialog.getByText("epoch", { exact: true }).waitFor();
  await accessible(page, "the glossary");
});

it("a message has code as code, and no backticks", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("[if git:branch]open");
  await editor.pane("Template").getByText(/^\d problem/).click();
  await editor.pane("Template").locator("code").getByText("[if git:branch]").waitFor();
  assert.equal(await editor.pane("Template").locator(".notes").getByText("`").count(), 0);
});

it("two authors' changes are merged where they do not share a line", { allow: [/409/] }, async ({ page }) => {
  const put = (template, version) =>
    server().ask("/system-prompt", { template, author: "Miguel", ...(version ? { expected_version: version } : {}) }, "PUT");
  const { version } = await put("one\ntwo\nthree\n");
  const editor = await openEditor(page, server());
  await editor.expectText("one\ntwo\nthree\n");
  await editor.write("one\ntwo\nTHREE\n");
  await put("ONE\ntwo\nthree\n", version);
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog", { name: "Save the template" }).getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: `Miguel saved version ${version + 1} while you were editing` });
  await dialog.getByRole("radio", { name: "What they changed" }).check();
  await dialog.getByRole("textbox", { name: /which both began from/ }).waitFor();
  await accessible(page, "a conflict");
  await shots(page, "prompt-conflict");
  await dialog.getByRole("button", { name: "Merge both" }).click();
  await dialog.getByRole("button", { name: "Save yours on top" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await server().ask("/system-prompt")).template, "ONE\ntwo\nTHREE\n");
});

it("the page has its pictures", async ({ page, server }) => {
  await server.ask("/system-prompt", { template: "You work in [prompt:cwd].\n\n[if git:branch]The branch is [git:branch].[endif]\nToday is [system:date].\n" }, "PUT");
  const editor = await openEditor(page, server, { profile: "default" });
  await model(page).selectOption(CLAUDE);
  await editor.prompt.getByText("Rule 16 of the project.").waitFor();
  await page.getByRole("button", { name: "Got it" }).click();
  await accessible(page, "the prompt");
  await shots(page, "prompt");
  await editor.openVariables();
  await accessible(page, "the variables");
  await shots(page, "prompt-variables");
  await editor.openCost();
  await accessible(page, "the figures");
  await shots(page, "prompt-cost");
  await page.keyboard.press("Control+K");
  await page.getByRole("dialog", { name: "Go to" }).waitFor();
  await page.getByRole("option", { name: "Versions" }).waitFor();
  await accessible(page, "the palette");
  await shots(page, "palette");
});

it("the menu of a phone has the pages and what they are shown for", { viewport: NARROW }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  await editorOf(page).ready();
  await page.getByRole("button", { name: "Menu" }).click();
  await model(page).selectOption(CLAUDE);
  await accessible(page, "the menu");
  await shots(page, "menu");
  await page.setViewportSize(NARROW);
  await page.getByRole("link", { name: "Versions" }).click();
  await page.getByRole("heading", { name: "Versions" }).waitFor();
  assert.equal(await page.getByRole("navigation", { name: "Pages" }).isVisible(), false);
});
