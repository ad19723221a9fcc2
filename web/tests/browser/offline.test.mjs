// A server that goes away and comes back.

import assert from "node:assert/strict";
import { accessible, bench, shots } from "./bench.mjs";
import { openEditor } from "./editor.mjs";

const { it } = bench();
const allow = [/ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE|Failed to load resource/];
const banner = (page) => page.getByRole("alert").filter({ hasText: "The server does not answer" });

it("writing goes on without the server, and the prompt comes when it is back", { allow }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("before");
  await editor.expectPrompt("before");
  await server.stop();
  await editor.write("written meanwhile");
  await banner(page).waitFor();
  await accessible(page, "the page without its server");
  await shots(page, "offline");
  await editor.expectText("written meanwhile");
  await server.restart();
  // The page may have found the server by itself before the button is reached.
  const tried = banner(page).getByRole("button", { name: "Try now" }).click().catch(() => "gone");
  await Promise.race([tried, banner(page).waitFor({ state: "detached" })]);
  await editor.expectPrompt("written meanwhile");
  await banner(page).waitFor({ state: "detached" });
});

it("the page comes back by itself", { allow }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await server.stop();
  await editor.write("patience");
  await banner(page).waitFor();
  await server.restart();
  await editor.expectPrompt("patience");
  await banner(page).waitFor({ state: "detached" });
});

it("a save without the server says so and loses nothing", { allow }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("to be saved");
  await editor.expectPrompt("to be saved");
  await server.stop();
  await page.getByRole("button", { name: "Save…" }).click();
  const dialog = page.getByRole("dialog", { name: "Save the template" });
  await dialog.getByRole("button", { name: "Save", exact: true }).click();
  await dialog.getByRole("alert").filter({ hasText: "your text is still here" }).waitFor();
  await server.restart();
  await dialog.getByRole("button", { name: "Try again" }).click();
  await dialog.waitFor({ state: "detached" });
  assert.equal((await server.ask("/system-prompt")).template, "to be saved");
});

it("conversations say it too, and load when the server is back", { allow }, async ({ page, server }) => {
  await server.ask("/conversations/c-1/turn", { prompt: "Hello" });
  await page.goto(`${server.url}/#/conversations`);
  await page.getByRole("link", { name: "c-1" }).waitFor();
  await server.stop();
  await page.getByRole("link", { name: "c-1" }).click();
  await banner(page).waitFor();
  await server.restart();
  await page.getByText("No call of this conversation is recorded").waitFor();
  await banner(page).waitFor({ state: "detached" });
});

const busy = (after = 2) => ({
  status: 503, headers: { "retry-after": String(after) },
  json: { code: "store_unavailable", message: "the store is locked by another program", hint: "wait" },
});

it("a busy server is named while the page loads, with the pause, and asked again", { allow }, async ({ page, server }) => {
  let refused = true;
  for (const path of ["**/system-prompt", "**/preview", "**/preview/variables"]) {
    await page.route(path, (route) => (refused ? route.fulfill(busy(300)) : route.continue()));
  }
  await page.goto(`${server.url}/#/prompt`);
  await page.getByText("The template cannot be loaded yet: the store is locked by another program").waitFor();
  await page.getByText(/^Trying again in (300|29\d) s\.$/).first().waitFor();
  await accessible(page, "a busy server");
  refused = false;
  await page.getByRole("button", { name: "Try now" }).first().click();
  await page.getByRole("button", { name: "History" }).and(page.locator(":enabled")).waitFor();
  await page.getByText("the store is locked by another program").waitFor({ state: "detached" });
});

it("a busy server is reported during typing, and nothing looks up to date", { allow }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await editor.write("before it was busy");
  await editor.expectPrompt("before it was busy");
  let asked = 0;
  await page.route("**/preview", (route) => ((asked += 1) <= 2 ? route.fulfill(busy(asked === 1 ? 0 : 300)) : route.continue()));
  await editor.write("while it is busy");
  await editor.pane("Prompt").getByText("The prompt cannot be built yet: the store is locked by another program").waitFor();
  await editor.pane("Prompt").getByText("not up to date").waitFor();
  await editor.cost.getByText("not up to date").waitFor();
  // It asked by itself, and goes on doing so.
  await editor.pane("Prompt").getByText(/^Trying again in (300|29\d) s\.$/).waitFor();
  await editor.pane("Prompt").getByRole("button", { name: "Try now" }).click();
  await editor.expectPrompt("while it is busy");
  assert.equal(asked, 3);
  assert.equal(await page.getByText("not up to date").count(), 0);
});

it("figures of an earlier prompt are marked when the last one failed", { allow }, async ({ page, server }) => {
  const editor = await openEditor(page, server);
  await page.getByRole("combobox", { name: "Model" }).selectOption("claude-opus-5");
  await editor.write("a prompt with figures");
  await editor.expectPrompt("a prompt with figures");
  const clear = editor.cost.getByText("Nothing volatile in the cached part.");
  const colour = () => clear.evaluate((element) => getComputedStyle(element).color);
  await clear.waitFor();
  const good = await colour();
  await page.route("**/preview", (route) => route.fulfill({ status: 500, json: { code: "broken", message: "it broke" } }));
  await editor.write("a prompt that fails");
  await editor.pane("Prompt").getByRole("alert").filter({ hasText: "it broke" }).waitFor();
  await editor.cost.getByText("not up to date").waitFor();
  await editor.cost.getByText("the figures of the last prompt that could be built").waitFor();
  assert.notEqual(await colour(), good);
  assert.equal(await editor.pane("Template").getByText("No problems", { exact: true }).count(), 0);
  await accessible(page, "figures that are not up to date");
  await page.unroute("**/preview");
  await editor.write("a prompt again");
  await editor.expectPrompt("a prompt again");
  assert.equal(await page.getByText("not up to date").count(), 0);
});
