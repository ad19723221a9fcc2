// Saving, history, conflicts, and text that must not be lost.

import assert from "node:assert/strict";
import { accessible, bench, shots } from "./bench.mjs";
import { openEditor } from "./editor.mjs";

const { it, server } = bench();
const stored = () => server().ask("/system-prompt");
/** Saves as another client would. */
const put = async (template) => {
  const { version } = await stored();
  return server().ask("/system-prompt", { template, author: "Somebody", expected_version: version ?? 0 }, "PUT");
};

it("a template is saved after a look at the difference, and is there after a reload", async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.state.getByText("Built-in template").waitFor();
  await editor.write("First text.\n");
  await page.getByText("unsaved", { exact: true }).waitFor();
  await page.getByRole("button", { name: "Save…" }).click();
  const dialog = page.getByRole("dialog", { name: "Save the template" });
  await dialog.getByRole("textbox", { name: "Your text" }).getByText("First text.").waitFor();
  await accessible(page, "the dialog before saving");
  await shots(page, "editor-save");
  await dialog.getByLabel("Your name, if you like").fill("Ada");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await editor.state.getByText("Version 1").waitFor();
  assert.equal(await page.getByText("unsaved", { exact: true }).count(), 0);
  assert.deepEqual(await stored(), { template: "First text.\n", version: 1 });
  assert.equal((await server.ask("/system-prompt/versions")).versions[0].author, "Ada");
  await page.reload();
  await editor.ready();
  await editor.expectText("First text.\n");
});

it("undo goes on behind a save", async ({ page, server }) => {
  await put("stored\n");
  const editor = await openEditor(page, server);
  await editor.expectText("stored\n");
  await editor.write("changed\n");
  await editor.save();
  await editor.template.focus();
  await page.keyboard.press("Control+Z");
  await editor.expectText("stored\n");
  await page.getByText("unsaved", { exact: true }).waitFor();
  await page.keyboard.press("Control+Shift+Z");
  await editor.expectText("changed\n");
});

it("unsaved text survives a closed tab", async ({ page, context, server }) => {
  await put("what is stored\n");
  const editor = await openEditor(page, server);
  await editor.write("not saved yet");
  await page.getByText("unsaved", { exact: true }).waitFor();
  await page.close({ runBeforeUnload: true });
  const next = await context.newPage();
  const again = await openEditor(next, server);
  await again.expectText("not saved yet");
  await next.getByText(/Your unsaved text of .* is back/).waitFor();
  await accessible(next, "text that came back");
  assert.equal((await stored()).template, "what is stored\n");
  await next.getByRole("button", { name: "Discard it" }).click();
  await again.expectText("what is stored\n");
  await again.template.focus();
  await next.keyboard.press("Control+Z");
  await again.expectText("not saved yet");
});

it("history compares versions and prompts, and restores one", async ({ page, server }) => {
  await put("on [git:branch], one\n");
  const { version } = await put("on [git:branch], two\n");
  const editor = await openEditor(page, server);
  await editor.write("on [git:branch], three\n");
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "History of the template" });
  await dialog.getByRole("textbox", { name: `Version ${version}` }).getByText("two").waitFor();
  await dialog.getByRole("textbox", { name: "Text in the editor" }).getByText("three").waitFor();
  await dialog.getByRole("radio", { name: `Compare from version ${version - 1}` }).check();
  await dialog.getByRole("textbox", { name: `Version ${version - 1}` }).getByText("one").waitFor();
  await dialog.getByRole("radio", { name: "the prompt it makes here" }).check();
  await dialog.getByRole("textbox", { name: "Text in the editor" }).getByText("on main, three").waitFor();
  await accessible(page, "the history");
  await shots(page, "editor-history");
  await dialog.getByRole("button", { name: `Restore version ${version - 1}` }).click();
  await dialog.getByRole("button", { name: "Restore", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await editor.expectText("on [git:branch], one\n");
  assert.deepEqual(await stored(), { template: "on [git:branch], one\n", version: version + 1 });
  await editor.template.focus();
  await page.keyboard.press("Control+Z");
  await editor.expectText("on [git:branch], three\n");
});

it("a conflict shows both texts, and saving mine keeps theirs in the history", { allow: [/409/] }, async ({ page, server }) => {
  await put("base\n");
  const editor = await openEditor(page, server);
  await editor.write("mine\n");
  const theirs = await put("theirs\n");
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog", { name: "Save the template" }).getByRole("button", { name: "Save", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Somebody saved another version meanwhile" });
  await dialog.getByRole("textbox", { name: `Theirs, version ${theirs.version}` }).getByText("theirs").waitFor();
  const yours = dialog.getByRole("textbox", { name: "Yours, editable" });
  await yours.getByText("mine").waitFor();
  await accessible(page, "a conflict");
  await shots(page, "editor-conflict");
  assert.equal((await stored()).template, "theirs\n");
  await yours.focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("merged, ");
  await dialog.getByRole("button", { name: "Save yours on top" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.deepEqual(await stored(), { template: "merged, mine\n", version: theirs.version + 1 });
  await editor.expectText("merged, mine\n");
  assert.equal((await server.ask(`/system-prompt/versions/${theirs.version}`)).template, "theirs\n");
});

it("a conflict can wait, and taking theirs can be undone", { allow: [/409/] }, async ({ page, server }) => {
  await put("base again\n");
  const editor = await openEditor(page, server);
  await editor.write("mine again\n");
  await put("theirs again\n");
  const dialog = page.getByRole("dialog", { name: "Somebody saved another version meanwhile" });
  const save = async () => {
    await page.getByRole("button", { name: "Save…" }).click();
    await page.getByRole("dialog", { name: "Save the template" }).getByRole("button", { name: "Save", exact: true }).click();
    await dialog.getByRole("textbox", { name: "Yours, editable" }).waitFor();
  };
  await save();
  await dialog.getByRole("button", { name: "Decide later" }).click();
  await editor.expectText("mine again\n");
  await save();
  await dialog.getByRole("button", { name: "Take theirs" }).click();
  await editor.expectText("theirs again\n");
  await editor.template.focus();
  await page.keyboard.press("Control+Z");
  await editor.expectText("mine again\n");
  assert.equal((await stored()).template, "theirs again\n");
});

it("bytes that an editor likes to change come back as they were", async ({ page, server }) => {
  const template = "one\r\ntwo\rthree\ttab \u00a0end\u2028line  \n\n\n";
  await put(template);
  const editor = await openEditor(page, server);
  await editor.template.focus();
  await page.keyboard.press("Control+Home");
  await page.keyboard.type("x");
  await editor.save();
  assert.equal((await stored()).template, `x${template}`);
});
