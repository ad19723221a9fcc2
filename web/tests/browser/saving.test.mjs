// Saving, history, conflicts, and text that must not be lost.

import assert from "node:assert/strict";
import { accessible, bench, NARROW, shots, SMALLEST } from "./bench.mjs";
import { editorOf, openEditor } from "./editor.mjs";

const { it, server } = bench();
const stored = () => server().ask("/system-prompt");
/** The editor of a page that is there already. */
const openEditorHere = async (page) => {
  const editor = editorOf(page);
  await editor.ready("template");
  return editor;
};
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
  await dialog.getByLabel("Your name (optional)").fill("Ada");
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await editor.state.getByText("Version 1").waitFor();
  assert.equal(await page.getByText("unsaved", { exact: true }).count(), 0);
  assert.deepEqual(await stored(), { template: "First text.\n", version: 1, used: true });
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
  await dialog.getByRole("radio", { name: "Rendered prompt, this folder" }).check();
  await dialog.getByRole("textbox", { name: "Text in the editor" }).getByText("on main, three").waitFor();
  await accessible(page, "the history");
  await shots(page, "editor-history");
  await dialog.getByRole("button", { name: `Restore version ${version - 1}` }).click();
  await dialog.getByRole("button", { name: "Restore", exact: true }).click();
  await dialog.waitFor({ state: "detached" });
  await editor.expectText("on [git:branch], one\n");
  assert.deepEqual(await stored(), { template: "on [git:branch], one\n", version: version + 1, used: true });
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
  const dialog = page.getByRole("dialog", { name: / saved version \d+ while you were editing$/ });
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
  assert.deepEqual(await stored(), { template: "merged, mine\n", version: theirs.version + 1, used: true });
  await editor.expectText("merged, mine\n");
  assert.equal((await server.ask(`/system-prompt/versions/${theirs.version}`)).template, "theirs\n");
});

it("a conflict can wait, and taking theirs can be undone", { allow: [/409/] }, async ({ page, server }) => {
  await put("base again\n");
  const editor = await openEditor(page, server);
  await editor.write("mine again\n");
  await put("theirs again\n");
  const dialog = page.getByRole("dialog", { name: / saved version \d+ while you were editing$/ });
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

it("going back with a dialog open closes it, and keeps the text", async ({ page, server }) => {
  await page.goto(`${server.url}/#/conversations`);
  await page.getByRole("link", { name: "Prompt" }).click();
  const editor = await openEditorHere(page);
  await editor.write("written before going back");
  for (const button of ["Save…", "History", "Help and keys", /^Folder/, "Go to…"]) {
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("dialog").waitFor();
    await page.goBack();
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await page.getByRole("searchbox", { name: "Search by name or directory" }).click();
    await page.goForward();
    await editor.expectText("written before going back");
    await editor.template.click();
  }
});

it("the focus comes back from each dialog", async ({ page, server }) => {
  await put("focus\n");
  const editor = await openEditor(page, server);
  const focused = (locator) => page.waitForFunction((element) => element === document.activeElement, locator);
  for (const [name, button] of [["History", "History"], ["Help", "Help and keys"], ["Choose a folder", /^Folder/], ["Go to", "Go to…"]]) {
    await page.getByRole("button", { name: button }).click();
    await page.getByRole("dialog", { name }).waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    await focused(await page.getByRole("button", { name: button }).elementHandle());
  }
  await editor.write("one two");
  await page.keyboard.press("Home");
  await page.keyboard.press("Control+S");
  await page.getByRole("dialog", { name: "Save the template" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.type("a ");
  await page.keyboard.press("Control+S");
  await page.getByRole("dialog", { name: "Save the template" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.keyboard.type("b ");
  await editor.expectText("a b one two");
  // The button of the mouse is disabled once all is saved: then the template has the focus.
  await editor.save();
  await focused(await editor.template.elementHandle());
});

it("text that theirs took the place of is in the history after a reload", { allow: [/409/] }, async ({ page, server }) => {
  await put("base of a conflict\n");
  const editor = await openEditor(page, server);
  await editor.write("mine, hours of work\n");
  const theirs = await put("theirs, in a conflict\n");
  await page.getByRole("button", { name: "Save…" }).click();
  await page.getByRole("dialog", { name: "Save the template" }).getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("button", { name: "Take theirs" }).click();
  await editor.expectText("theirs, in a conflict\n");
  await page.reload();
  await editor.ready();
  await editor.expectText("theirs, in a conflict\n");
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "History of the template" });
  const aside = new RegExp(`^Set aside, .*: version ${theirs.version} was taken instead`);
  await dialog.getByRole("listitem").getByText(aside).first().waitFor();
  await dialog.getByRole("radio", { name: /^Compare from Set aside/ }).check();
  await dialog.getByRole("textbox", { name: aside }).getByText("mine, hours of work").waitFor();
  await accessible(page, "the history with a text set aside");
  await dialog.getByRole("button", { name: /^Bring back: Set aside/ }).click();
  await editor.expectText("mine, hours of work\n");
});

it("unsaved text is set aside when a version is restored, another text is loaded, or it is discarded", async ({ page, server }) => {
  const older = await put("older\n");
  await put("newer\n");
  const editor = await openEditor(page, server);
  await editor.write("not saved, then restored over\n");
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "History of the template" });
  await dialog.getByRole("button", { name: `Restore version ${older.version}` }).click();
  await dialog.getByRole("button", { name: "Restore", exact: true }).click();
  await editor.expectText("older\n");
  await editor.write("not saved, then loaded over\n");
  await page.getByRole("button", { name: "History" }).click();
  await dialog.getByRole("button", { name: /^Bring back: .*was restored/ }).click();
  await editor.expectText("not saved, then restored over\n");
  await page.getByText("unsaved", { exact: true }).waitFor();
  await page.reload();
  await page.getByRole("button", { name: "Discard it" }).click();
  await editor.expectText("older\n");
  await page.reload();
  await editor.ready();
  await page.getByRole("button", { name: "History" }).click();
  await dialog.getByRole("button", { name: /^Bring back: .*another text was loaded/ }).waitFor();
  await dialog.getByRole("button", { name: /^Bring back: .*it was discarded/ }).click();
  await editor.expectText("not saved, then restored over\n");
});

it("a text that cannot be stored is discarded only after confirmation", async ({ page, server }) => {
  const older = await put("an older one\n");
  await put("a newer one\n");
  await page.addInitScript(() => {
    const { setItem } = Storage.prototype;
    Storage.prototype.setItem = function (key, value) {
      if (key.startsWith("proem.aside.")) throw new DOMException("full", "QuotaExceededError");
      setItem.call(this, key, value);
    };
  });
  const editor = await openEditor(page, server);
  await editor.write("too much for this browser\n");
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "History of the template" });
  await dialog.getByRole("button", { name: `Restore version ${older.version}` }).click();
  await dialog.getByRole("button", { name: "Restore", exact: true }).click();
  await dialog.getByRole("alert").getByText("The browser cannot keep the text in the editor").waitFor();
  assert.equal((await stored()).template, "a newer one\n");
  await dialog.getByRole("button", { name: "Go on without it" }).click();
  await editor.expectText("an older one\n");
});

it("the built-in template is compared and loaded", async ({ page, server }) => {
  await page.route("**/editor", async (route) => {
    const response = await route.fetch();
    await route.fulfill({ response, json: { ...(await response.json()), built_in: "You are built in.\n" } });
  });
  await put("stored instead\n");
  const editor = await openEditor(page, server);
  await page.getByRole("button", { name: "History" }).click();
  const dialog = page.getByRole("dialog", { name: "History of the template" });
  await dialog.getByRole("radio", { name: "Compare from the built-in template" }).check();
  await dialog.getByRole("textbox", { name: "Built-in template" }).getByText("You are built in.").waitFor();
  await dialog.getByRole("button", { name: "Load the built-in template into the editor" }).click();
  await editor.expectText("You are built in.\n");
  await page.getByText("unsaved", { exact: true }).waitFor();
  assert.equal((await stored()).template, "stored instead\n");
});

for (const viewport of [NARROW, SMALLEST]) {
  it(`the buttons of the dialog before saving are in sight at ${viewport.width} pixels`, { viewport }, async ({ page, server }) => {
    await put("short\n");
    await page.goto(`${server.url}/#/prompt`);
    const editor = await openEditorHere(page);
    await editor.write(Array.from({ length: 200 }, (_, line) => `[line:${line}] of a long text`).join("\n"));
    await page.getByRole("button", { name: "Save…" }).click();
    const dialog = page.getByRole("dialog", { name: "Save the template" });
    for (const name of ["Save", "Keep editing", "Close"]) {
      const button = dialog.getByRole("button", { name, exact: true });
      const { x, y, width, height } = await button.boundingBox();
      assert.ok(x >= 0 && y >= 0 && x + width <= viewport.width && y + height <= viewport.height, `${name} is out of sight`);
      // The middle of the button is the button, and not something above it.
      const hit = await button.evaluate((element) => {
        const { left, top, width, height } = element.getBoundingClientRect();
        return element.contains(document.elementFromPoint(left + width / 2, top + height / 2));
      });
      assert.ok(hit, `${name} is covered`);
    }
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await dialog.waitFor({ state: "detached" });
  });
}
