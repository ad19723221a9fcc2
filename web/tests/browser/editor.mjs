// The editor as a person finds it: by roles and names.

import assert from "node:assert/strict";

/** Opens the editor with a profile that adds nothing to the template, and waits for the first prompt. */
export async function openEditor(page, server, { profile = "template" } = {}) {
  await page.goto(`${server.url}/#/prompt`);
  const editor = editorOf(page);
  await editor.ready(profile);
  return editor;
}

export function editorOf(page) {
  const template = page.getByRole("textbox", { name: "Template" });
  const pane = (name) => page.getByRole("region", { name, exact: true });
  const prompt = pane("Prompt").getByRole("textbox", { name: "Prompt, carrier system" });
  const variables = pane("Variables");
  const editor = {
    template, prompt, variables, pane,
    cost: pane("Cost"),
    /** Shows the figures below the findings. */
    async openCost() {
      const button = pane("Cost").getByRole("button", { name: "Details" });
      if ((await button.getAttribute("aria-expanded")) !== "true") await button.click();
    },
    state: page.getByRole("status").filter({ hasText: /Built-in template|Version \d/ }),

    async ready(profile) {
      const button = page.getByRole("button", { name: "History" });
      await button.and(page.locator(":enabled")).waitFor();
      const choice = page.getByRole("combobox", { name: "Profile" });
      if (profile && (await choice.isVisible())) await choice.selectOption(profile);
    },

    /** The text in the editor; only for texts that fit the screen. */
    text: async () => (await template.locator(".cm-line").allTextContents()).join("\n"),

    async expectText(text) {
      await page.waitForFunction(
        ([label, text]) => {
          const lines = document.querySelectorAll(`[aria-label="${label}"] .cm-line`);
          return [...lines].map((line) => line.textContent).join("\n") === text;
        },
        ["Template", text],
      ).catch(async () => assert.equal(await editor.text(), text));
    },

    /** Replaces the whole text, as from another program. */
    async write(text) {
      await template.focus();
      await page.keyboard.press("Control+A");
      if (text === "") return page.keyboard.press("Delete");
      await paste(template, text);
    },

    /** Waits until the prompt is exactly this. */
    async expectPrompt(text) {
      await page.waitForFunction(
        (text) => {
          const lines = document.querySelectorAll('[aria-label="Prompt, carrier system"] .cm-line');
          return [...lines].map((line) => line.textContent.replace("cached up to here", "")).join("\n") === text;
        },
        text,
      ).catch(async () => assert.equal((await prompt.locator(".cm-line").allTextContents()).join("\n"), text));
    },

    /** Opens the drawer of variables, where it is closed. */
    async openVariables() {
      const button = page.getByRole("button", { name: /^Variables/ });
      if (!(await variables.isVisible()) && (await button.isVisible())) await button.click();
    },

    async variable(key) {
      await editor.openVariables();
      await page.getByRole("searchbox", { name: "Search variables" }).fill(key);
      const row = variables.getByRole("listitem").filter({ has: page.getByRole("button", { name: `More for ${key}`, exact: true }) });
      await row.waitFor();
      return { row, use: row.getByRole("button").first(), more: row.getByRole("button", { name: `More for ${key}`, exact: true }) };
    },

    async save() {
      await page.getByRole("button", { name: "Save…" }).click();
      const dialog = page.getByRole("dialog", { name: "Save the template" });
      await dialog.getByRole("button", { name: "Save", exact: true }).click();
      await dialog.waitFor({ state: "detached" });
    },
  };
  return editor;
}

/** Gives the element a text from the clipboard, without the one of the machine. */
async function paste(locator, text) {
  await locator.evaluate((element, text) => {
    const clipboardData = new DataTransfer();
    clipboardData.setData("text/plain", text);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
  }, text);
}

/** Points at a text in an element: stable text of a prompt is in no element of its own. */
export async function hoverText(page, locator, text) {
  const place = await locator.evaluate((element, text) => {
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const at = node.data.indexOf(text);
      if (at < 0) continue;
      node.parentElement.scrollIntoView({ block: "center" });
      const range = document.createRange();
      range.setStart(node, at);
      range.setEnd(node, at + text.length);
      const { x, y, width, height } = range.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    }
    return null;
  }, text);
  assert.ok(place, `${text} is not in sight`);
  await page.mouse.move(place.x, place.y);
  return place;
}

/** Presses Tab until the element has the focus. */
export async function tabTo(page, locator) {
  for (let presses = 0; presses < 100; presses += 1) {
    if (await locator.evaluate((element) => element === document.activeElement)) return;
    await page.keyboard.press("Tab");
  }
  assert.fail(`Tab does not reach ${locator}`);
}
