// Text of strangers is shown as text. The bench itself asserts that there is no dialog, no console error, no violation of
// the content security policy and no request to another origin.

import assert from "node:assert/strict";
import { join } from "node:path";
import { bench, fits, SMALLEST } from "./bench.mjs";
import { editorOf, openEditor } from "./editor.mjs";

const SCRIPT = "<script>alert(1)</script>";
const IMAGE = "<img src=x onerror=alert(1)>";
const ESCAPES = "\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u009b1m";
const BIDI = "user\u202e\u2066// admin\u2069\u2066 \u200f\u200e";
const HIDDEN = "zero\u200bwidth\u2060joined\ufeff";
const HOSTILE = [SCRIPT, IMAGE, ESCAPES, BIDI, HIDDEN, "{@html x} {{ 7 * 7 }} [file:", "javascript:alert(1)"].join("\n");
const LONG = `long${"<b>x</b> ".repeat(1024 * 1024 / 9)}end of the line`;
const DIRECTORY = "<img src=x onerror=alert(1)> \u202edir";
const SHOWN = "<img src=x onerror=alert(1)> ‹U+202E›dir";
const LONG_NAME = `${"n".repeat(246)}.md`;

const { it, server } = bench({
  files: {
    "AGENTS.md": `${HOSTILE}\n`, [`${DIRECTORY}/<b>.md`]: "x\n", "odd/a]b.md": "x\n", "odd/line\nbreak.md": "x\n",
    "odd/bell\u0007.md": "x\n", "odd/good.md": "good\n", [`${"d".repeat(250)}/${LONG_NAME}`]: "x\n", "odd/[id]/page.md": "x\n",
  },
});
const turn = (id, body) => server().ask(`/conversations/${id}/turn`, { prompt: "Hello", ...body });

it("a conversation with hostile files, directory and model is text", async ({ page, server }) => {
  await turn("hostile", { cwd: join(server.workspace, DIRECTORY), model: `${IMAGE}${SCRIPT}`, append: HOSTILE });
  await page.goto(`${server.url}/#/conversations`);
  const item = page.getByRole("row").filter({ has: page.getByRole("link", { name: "hostile" }) });
  await item.getByText(`${IMAGE}${SCRIPT}`).waitFor();
  await item.getByText(SHOWN).waitFor();
  await page.getByRole("link", { name: "hostile" }).click();
  const views = page.getByRole("navigation", { name: "Views" });
  await views.getByRole("link", { name: "Prompt" }).click();
  const prompt = page.getByRole("textbox", { name: "Prompt, carrier system" });
  await prompt.getByText(SCRIPT).first().waitFor();
  await prompt.getByText(IMAGE).first().waitFor();
  for (const name of ["U+001B escape", "U+202E right-to-left override", "U+200B zero width space"]) {
    await prompt.getByRole("img", { name }).first().waitFor();
  }
  for (const view of ["Drift", "Compare", "Notices", "What if", "Payload"]) {
    await views.getByRole("link", { name: view }).click();
    await page.getByRole("heading", { level: 2, name: view }).waitFor();
  }
  await page.getByRole("textbox", { name: /^Payload for/ }).getByText(/alert\(1\)/).first().waitFor();
  assert.equal(await page.locator("main script, main img[src], main b:text-is('x')").count(), 0);
});

it("a hostile template, its author and its versions are text", async ({ page, server }) => {
  await server.ask("/system-prompt", { template: `${HOSTILE}\n`, author: `${IMAGE}${BIDI}`, expected_version: 0 }, "PUT");
  const editor = await openEditor(page, server);
  for (const part of [editor.template, editor.prompt]) {
    await part.getByText(SCRIPT).first().waitFor();
    await part.getByText(IMAGE).first().waitFor();
    await part.getByRole("img", { name: "U+202E right-to-left override" }).first().waitFor();
  }
  await editor.template.focus();
  await page.keyboard.press("Control+End");
  await page.keyboard.type(IMAGE);
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "History of the template" });
  await dialog.getByRole("listitem").filter({ hasText: "Version 1" }).getByText(`${IMAGE}user‹U+202E›‹U+2066›// admin‹U+2069›`).waitFor();
  await dialog.getByRole("textbox", { name: "Text in the editor" }).getByText(IMAGE).first().waitFor();
  await page.keyboard.press("Escape");
  await editor.save();
  assert.equal((await server.ask("/system-prompt")).template, `${HOSTILE}\n${IMAGE}`);
});

it("hostile names of files are text, and can be picked", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("");
  await (await editor.variable("file:")).use.click();
  const dialog = page.getByRole("dialog", { name: "Which file?" });
  await dialog.getByRole("button", { name: `${SHOWN}/` }).click();
  await dialog.getByRole("button", { name: "<b>.md" }).click();
  await dialog.getByRole("button", { name: "Insert its text" }).click();
  await editor.prompt.getByText("x", { exact: true }).waitFor();
});

it("a file whose name a tag cannot hold is shown with the reason, and cannot be picked", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("");
  await (await editor.variable("file:")).use.click();
  const dialog = page.getByRole("dialog", { name: "Which file?" });
  await dialog.getByRole("button", { name: "odd/" }).click();
  const entry = (name) => dialog.getByRole("listitem").filter({ hasText: name }).getByRole("button");
  for (const [name, reason] of [["a]b.md", "brackets"], ["line‹U+000A›break.md", "line break"], ["bell‹U+0007›.md", "control"], ["[id]/", "brackets"]]) {
    await entry(name).getByText(reason).waitFor();
    assert.equal(await entry(name).isDisabled(), true, name);
  }
  const path = dialog.getByLabel("Path, from the directory above");
  await path.fill("odd/a]b.md");
  await dialog.getByText("This path cannot be used").waitFor();
  assert.equal(await dialog.getByRole("button", { name: "Insert its text" }).isDisabled(), true);
  await entry("good.md").click();
  await dialog.getByRole("button", { name: "Insert its text" }).click();
  await editor.expectText("[file:odd/good.md]");
  await editor.expectPrompt("good\n");
  await editor.write("");
  await page.keyboard.type("[file:odd/");
  await page.getByRole("option", { name: "good.md" }).waitFor();
  assert.equal(await page.getByRole("option", { name: /bell|a]b|line/ }).count(), 0);
});

it("hidden characters in values of variables are shown by their number", async ({ page, server }) => {
  await page.route("**/preview/variables", async (route) => {
    const response = await route.fetch();
    const answer = await response.json();
    answer.variables.unshift({ type: "git", name: "evil\u202e", description: "d\u200b", stability: "user", value: "x\u202ey\n\u0007" });
    await route.fulfill({ response, json: answer });
  });
  const editor = await openEditor(page, server);
  await editor.openVariables();
  const row = editor.variables.getByRole("listitem").filter({ hasText: "evil‹U+202E›" });
  await row.getByText("x‹U+202E›y ‹U+0007›").waitFor();
  assert.equal(await row.locator(".value").evaluate((element) => getComputedStyle(element).unicodeBidi), "isolate");
});

it("names of 250 characters fit the smallest screen", { viewport: SMALLEST }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  const editor = editorOf(page);
  await editor.ready();
  await page.getByRole("tab", { name: "Variables" }).click();
  await (await editor.variable("file:")).use.click();
  const dialog = page.getByRole("dialog", { name: "Which file?" });
  await dialog.getByRole("button", { name: /^ddd/ }).click();
  const entry = dialog.getByRole("button", { name: /^nnn/ });
  await entry.waitFor();
  await fits(page, "the choice of a file");
  const label = await entry.getByText("2 bytes").boundingBox();
  assert.ok(label.height < 30, `the size takes ${label.height} pixels`);
});

it("the page's policy refuses scripts and styles in the page, and frames around it", async ({ page, server, watch }) => {
  const response = await page.goto(`${server.url}/#/prompt`);
  const policy = response.headers()["content-security-policy"];
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /unsafe|\*|https?:/);
  await page.evaluate(() => {
    document.body.append(Object.assign(document.createElement("script"), { textContent: "window.ran = true" }));
    document.body.insertAdjacentHTML("beforeend", '<img src="x:y" onerror="window.ran = true">');
  });
  await page.waitForFunction(() => document.querySelector("body > img").complete);
  assert.equal(await page.evaluate(() => window.ran), undefined);
  // This also shows that the bench would have noticed them.
  assert.ok(watch.seen.violations.length >= 2, watch.seen.violations.join());
  assert.ok(watch.seen.errors.length >= 2);
  assert.deepEqual(watch.seen.foreign.splice(0), ["x:y"]);
  watch.seen.violations.length = watch.seen.errors.length = 0;
});

it("drift between hostile texts is text", async ({ page, server }) => {
  await turn("shifting");
  server.write("AGENTS.md", `${HOSTILE}\n${SCRIPT.repeat(3)}\n`);
  await page.goto(`${server.url}/#/conversations/shifting/drift`);
  await page.getByRole("textbox", { name: "Now" }).getByText(SCRIPT.repeat(3)).waitFor();
  server.write("AGENTS.md", `${HOSTILE}\n`);
});

it("a line of 1 MiB and a prompt of 8 MiB stay readable", async ({ page, server }) => {
  const lines = Array.from({ length: 20_000 }, (_, at) => `line ${at} äöü ${"x".repeat(30)}`).join("\n");
  await turn("huge", { system: "The very beginning.", append: [LONG, ...Array(7).fill(lines), "the very end"] });
  await page.goto(`${server.url}/#/conversations/huge/prompt`);
  const prompt = page.getByRole("textbox", { name: "Prompt, carrier system" });
  await prompt.waitFor();
  await prompt.focus();
  await page.keyboard.press("Control+End");
  await prompt.getByText("line 19999").last().waitFor();
  await page.keyboard.press("Control+Home");
  await prompt.getByText("The very beginning.").waitFor();
  await page.getByRole("link", { name: "Payload" }).click();
  const payload = page.getByRole("textbox", { name: /^Payload for/ });
  await payload.waitFor();
  await payload.focus();
  await page.keyboard.press("Control+End");
  await page.getByRole("link", { name: "Notices" }).click();
  await page.getByRole("heading", { level: 2, name: "Notices of epoch 1" }).waitFor();
});

it("the difference of two prompts of 8 MiB comes", async ({ page, server }) => {
  const of = (word) => Array.from({ length: 150_000 }, (_, at) => `${word} ${at * 7919 % 1013} ${"y".repeat(30)}`).join("\n");
  const half = (text) => [text.slice(0, text.length / 2), text.slice(text.length / 2)];
  await turn("apart", { append: half(of("first")) });
  await server.ask("/conversations/apart/reload", { append: half(of("second")) });
  await page.goto(`${server.url}/#/conversations/apart/compare`);
  await page.getByRole("textbox", { name: "Epoch 2" }).getByText(/second \d+ yyy/).first().waitFor({ timeout: 30_000 });
  await page.getByRole("link", { name: "Notices" }).click();
  await page.getByRole("heading", { level: 2, name: "Notices of epoch 2" }).waitFor();
});

it("the difference of two lines of 2 MiB comes", async ({ page, server }) => {
  await turn("lines", { append: [LONG, LONG].join("") });
  await server.ask("/conversations/lines/reload", { append: ["other ", LONG, LONG].join("") });
  await page.goto(`${server.url}/#/conversations/lines/compare`);
  await page.getByRole("textbox", { name: "Epoch 2" }).getByText("other", { exact: true }).waitFor();
  await page.getByRole("link", { name: "Notices" }).click();
  await page.getByRole("heading", { level: 2, name: "Notices of epoch 2" }).waitFor();
});
