// Templates of a megabyte and thousands of variables stay usable: a key is seen soon after it is pressed.

import assert from "node:assert/strict";
import { bench } from "./bench.mjs";
import { openEditor } from "./editor.mjs";

const { it, server } = bench();
const MIB = 1024 * 1024;
const SOON_MS = 1_500;

async function put(template) {
  const { version } = await server().ask("/system-prompt");
  await server().ask("/system-prompt", { template, expected_version: version ?? 0 }, "PUT");
}

/** Types a word at the beginning, and says how long it took until it was seen. */
async function typed(page, editor, word) {
  await editor.template.focus();
  await page.keyboard.press("Control+Home");
  const begun = performance.now();
  await page.keyboard.type(word);
  await editor.template.getByText(word).waitFor();
  return performance.now() - begun;
}

const line = "Line with [git:branch] and äöü, and some more words to be long enough.\n";
const TEMPLATES = {
  "1 MiB of lines with tags": line.repeat(Math.floor((MIB - 100) / Buffer.byteLength(line))),
  "1 MiB in one line": `start ${"word ".repeat(Math.floor((MIB - 100) / 5))}end`,
};

for (const [name, template] of Object.entries(TEMPLATES)) {
  it(`a template of ${name} is edited, previewed and saved`, async ({ page, server }) => {
    await put(template);
    const editor = await openEditor(page, server);
    await editor.template.getByText(template.slice(0, 5)).first().waitFor();
    const time = await typed(page, editor, "quick ");
    assert.ok(time < SOON_MS, `a word took ${Math.round(time)} ms`);
    await editor.prompt.getByText("quick ").first().waitFor();
    const later = await typed(page, editor, "again ");
    assert.ok(later < SOON_MS, `a word with a preview took ${Math.round(later)} ms`);
    await editor.save();
    assert.equal((await server.ask("/system-prompt")).template, `again quick ${template}`);
  });
}

it("a template over the limit says so, and is kept", { allow: [/400/] }, async ({ page, server }) => {
  await put("short\n");
  const editor = await openEditor(page, server);
  await editor.write("x".repeat(MIB + 1));
  await editor.pane("Template").getByText(/at most 1,048,576/).waitFor();
  await page.reload();
  await page.getByText(/Your unsaved text of .* is back/).waitFor();
  await editor.pane("Template").getByText(/at most 1,048,576/).waitFor();
});

// A server has a few dozen variables of its own: only their number is made up.
it("5,000 variables are searched and inserted", async ({ page, server }) => {
  await put("short\n");
  const { variables, notes } = await server.ask("/preview/variables", {});
  for (let number = 0; variables.length < 5_000; number += 1) {
    variables.push({
      type: `team${number % 50}`, name: `value_${number}`, description: `Number ${number}.`, stability: "project",
      value: `value ${number}`, tokens: 3,
    });
  }
  await page.route("**/preview/variables", (route) => route.fulfill({ json: { variables, notes } }));
  const editor = await openEditor(page, server);
  await editor.openVariables();
  await editor.variables.getByText("5,000").waitFor();
  const rows = await editor.variables.getByRole("listitem").count();
  assert.ok(rows < 200, `${rows} rows are drawn`);
  const begun = performance.now();
  const { use } = await editor.variable("team7:value_4957");
  assert.ok(performance.now() - begun < SOON_MS, "the search took too long");
  const time = await typed(page, editor, "quick ");
  assert.ok(time < SOON_MS, `a word took ${Math.round(time)} ms`);
  await editor.write("");
  await use.click();
  await editor.expectText("[team7:value_4957]");
});
