// Writing a template: variables, conditions, live preview, problems.

import assert from "node:assert/strict";
import { accessible, bench, fits, NARROW, shots, SMALLEST } from "./bench.mjs";
import { editorOf, hoverText, openEditor, tabTo } from "./editor.mjs";

const { it } = bench();

it("a condition is written and its prompt is shown", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("Hello.\n[if git:branch]You are on [git:branch].[endif]");
  await editor.expectPrompt("Hello.\nYou are on main.");
  await editor.write("Hello.\n[if !git:branch]No branch.[else]A branch.[endif]");
  await editor.expectPrompt("Hello.\nA branch.");
});

it("a bracket offers variables, and one of them is taken", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("");
  await page.keyboard.type("On [bran");
  await page.getByRole("option", { name: /git:branch/ }).click();
  await editor.expectText("On [git:branch]");
  await editor.expectPrompt("On main");
});

it("a button inserts its variable at the cursor", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("before  after");
  await editor.template.focus();
  await page.keyboard.press("Home");
  for (let step = 0; step < "before ".length; step += 1) await page.keyboard.press("ArrowRight");
  const { use, row } = await editor.variable("git:branch");
  await row.getByText("main").waitFor();
  await use.click();
  await editor.expectText("before [git:branch] after");
  await editor.expectPrompt("before main after");
});

it("a variable without a value says why", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  const { row } = await editor.variable("prompt:language");
  await row.getByText("absent: not given in the request").waitFor();
});

it("the selection is wrapped in a condition, and in its opposite", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  for (const [item, tag] of [["Selection only if it exists", "if git:branch"], ["Selection only if it is absent", "if !git:branch"]]) {
    await editor.write("words");
    await page.keyboard.press("Control+A");
    const { more } = await editor.variable("git:branch");
    await more.click();
    await page.getByRole("menuitem", { name: item }).click();
    await editor.expectText(`[${tag}]words[endif]`);
  }
  await editor.write("again");
  await page.keyboard.press("Control+A");
  const { use } = await editor.variable("git:branch");
  await use.click({ modifiers: ["Shift"] });
  await editor.expectText("[if git:branch]again[endif]");
});

it("a file is picked below the directory", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("");
  const { use } = await editor.variable("file:");
  await use.click();
  const dialog = page.getByRole("dialog", { name: "Which file?" });
  await dialog.getByRole("button", { name: "src/" }).click();
  await dialog.getByRole("button", { name: "↑ parent folder" }).click();
  await dialog.getByRole("button", { name: /TODO\.md/ }).click();
  await accessible(page, "the choice of a file");
  await shots(page, "editor-file");
  await dialog.getByRole("button", { name: "Insert its text" }).click();
  await editor.expectText("[file:TODO.md]");
  await editor.expectPrompt("- write the editor\n");
});

it("the branch that does not apply is dimmed", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("[if file:missing.md]never[else]always[endif]");
  await editor.expectPrompt("always");
  const dimmed = editor.template.locator(".cm-unused");
  assert.deepEqual(await dimmed.allTextContents(), ["never"]);
  const colour = (locator) => locator.first().evaluate((element) => getComputedStyle(element).color);
  assert.notEqual(await colour(dimmed), await colour(editor.template.locator(".cm-line")));
  await editor.write("[if file:TODO.md]now[else]not now[endif]");
  await editor.expectPrompt("now");
  assert.deepEqual(await dimmed.allTextContents(), ["not now"]);
});

it("a problem is underlined, and its fix is applied and undone", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("[if git:branch]open");
  await editor.template.locator(".cm-lintRange-warning").getByText("[if git:branch]").waitFor();
  await editor.pane("Template").getByText(/^\d problem/).click();
  await editor.pane("Template").getByText("[if git:branch] is never closed and stays as text").waitFor();
  await accessible(page, "a problem");
  await editor.pane("Template").getByRole("button", { name: "add [endif] at the end" }).click();
  await editor.expectText("[if git:branch]open[endif]");
  await editor.expectPrompt("open");
  assert.equal(await editor.template.locator(".cm-lintRange-warning").count(), 0);
  await editor.template.focus();
  await page.keyboard.press("Control+Z");
  await editor.expectText("[if git:branch]open");
});

it("a piece of the prompt and its tag show each other", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("You are on [git:branch] now.");
  await editor.expectPrompt("You are on main now.");
  await hoverText(page, editor.prompt, "main");
  await editor.template.locator(".cm-linked").getByText("[git:branch]").waitFor();
  await editor.pane("Prompt").getByText("[git:branch]").first().waitFor();
  await editor.template.getByText("[git:branch]").hover();
  await editor.prompt.locator(".cm-linked").getByText("main").waitFor();
  await editor.template.click({ position: { x: 5, y: 5 } });
});

it("the cost names the tag that breaks the cache, and goes to it", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await page.getByRole("combobox", { name: "Model" }).selectOption("claude-opus-5");
  await editor.write(`It is [system:time].\n${"You are careful. ".repeat(300)}`);
  await editor.openCost();
  await editor.cost.getByText(/Every new conversation re-pays [\d,]+ tokens \(\$0\.0\d+\)\./).waitFor();
  await editor.cost.getByRole("row", { name: /cold/ }).waitFor();
  await editor.cost.getByRole("row", { name: /warm/ }).waitFor();
  await accessible(page, "the cost");
  await editor.cost.getByRole("button", { name: /Every new conversation re-pays/ }).click();
  assert.equal(await page.evaluate(() => document.getSelection().toString()), "[system:time]");
  await page.getByRole("combobox", { name: "Model" }).selectOption("");
});

it("the whole page is accessible and has its pictures", async ({ page, server }) => {
  const editor = await openEditor(page, server, { profile: "default" });
  await page.getByRole("combobox", { name: "Model" }).selectOption("claude-opus-5");
  await editor.write([
    "You are a careful engineer. It is [system:clock].", "",
    "[if git:branch]You work on [git:branch].[else]There is no repository.[endif]",
    "[if file:TODO.md]What is open:", "[file:TODO.md][endif]", "[git:brnch]", "",
  ].join("\n"));
  await editor.prompt.getByText("You work on").waitFor();
  await accessible(page, "the editor");
  await shots(page, "editor-first");
  await page.getByRole("button", { name: "Got it" }).click();
  await accessible(page, "the editor without first steps");
  await shots(page, "editor");
  await page.getByRole("button", { name: "Help and keys" }).click();
  await page.getByRole("dialog", { name: "Help" }).waitFor();
  await accessible(page, "the help");
  await shots(page, "editor-help");
});

it("a narrow screen has tabs, one pane at a time", { viewport: NARROW }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  const editor = editorOf(page);
  const tab = (name) => page.getByRole("tab", { name });
  await editor.ready();
  await editor.write("On [git:branch].");
  assert.equal(await editor.pane("Prompt").isVisible(), false);
  await tab("Prompt").click();
  await editor.prompt.getByText("main").first().waitFor();
  assert.equal(await editor.template.isVisible(), false);
  await accessible(page, "the prompt on a narrow screen");
  await page.keyboard.press("ArrowRight");
  await editor.cost.waitFor();
  await accessible(page, "the cost on a narrow screen");
  await tab("Variables").click();
  const { use } = await editor.variable("system:os");
  await accessible(page, "the variables on a narrow screen");
  await use.click();
  await editor.expectText("On [git:branch].[system:os]");
  await accessible(page, "the template on a narrow screen");
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(width <= NARROW.width, `the page is ${width} wide`);
});

it("nothing is wider than the smallest screen", { viewport: SMALLEST }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  const editor = editorOf(page);
  await editor.ready();
  const menu = page.getByRole("button", { name: "Menu" });
  await menu.click();
  await page.getByRole("combobox", { name: "Model" }).selectOption("claude-opus-5");
  await fits(page, "what the prompt is shown for");
  await menu.click();
  await editor.write("[system:time] short\n[if git:branch]x");
  for (const tab of ["Template", "Prompt", "Cost", "Variables"]) {
    await page.getByRole("tab", { name: tab }).click();
    if (tab === "Cost") await editor.cost.getByText("Tokens by section").click();
    if (tab === "Cost") await editor.cost.getByRole("row", { name: /warm/ }).waitFor();
    await fits(page, tab);
  }
  for (const button of ["Save…", "History", "Help and keys"]) {
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("dialog").waitFor();
    await fits(page, button);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
});

it("a warm turn that costs more is explained", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await page.getByRole("combobox", { name: "Model" }).selectOption("claude-opus-5");
  await editor.openCost();
  await editor.write("short");
  await editor.cost.getByText(/The frozen part is shorter than the [\d,]+ tokens from which on claude-opus-5 caches/).waitFor();
  await editor.write("You are careful. ".repeat(1_000));
  await editor.cost.getByText("The frozen part is shorter").waitFor({ state: "detached" });
});

it("the cost has lines and letters where the system takes colours away", { forcedColors: "active" }, async ({ page, server }) => {
  const editor = await openEditor(page, server, { profile: "default" });
  await editor.openCost();
  const part = editor.cost.locator(".part").first();
  await part.waitFor();
  assert.match(await part.textContent(), /[A-Z]/);
  const border = await editor.cost.locator(".parts").first().evaluate((element) => getComputedStyle(element).borderTopStyle);
  assert.equal(border, "solid");
});

it("a hint is shown as it is", { allow: [/400/] }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  const hints = [["docs/request.md describes the fields", "docs/request.md describes the fields."], ["is this still proem?", "Is this still proem?"]];
  for (const [hint, shown] of hints) {
    await page.route("**/preview", (route) => route.fulfill({ status: 400, json: { code: "bad", message: "no", hint } }));
    await editor.write(hint);
    await editor.pane("Prompt").getByRole("alert").getByText(shown, { exact: true }).waitFor();
  }
});

it("the keyboard alone writes, inserts, wraps, saves", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await tabTo(page, editor.template);
  await page.keyboard.press("Control+A");
  await page.keyboard.type("Say ");
  await page.keyboard.press("Control+K");
  await page.keyboard.type("git:branch");
  await page.getByRole("option", { name: "git:branch main" }).and(page.locator("[aria-selected=true]")).waitFor();
  await accessible(page, "the palette");
  await page.keyboard.press("Enter");
  await editor.expectText("Say [git:branch]");
  await page.keyboard.press("Control+A");
  await page.keyboard.press("Control+Alt+V");
  await page.keyboard.type("git:branch");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Shift+Enter");
  await editor.expectText("[if git:branch]Say [git:branch][endif]");
  await page.keyboard.press("F6");
  await page.keyboard.press("Alt+ArrowDown");
  await page.keyboard.press("Control+S");
  await page.getByRole("dialog", { name: "Save the template" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal((await server.ask("/system-prompt")).template, "[if git:branch]Say [git:branch][endif]");
});
