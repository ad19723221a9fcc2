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
  await banner(page).getByRole("button", { name: "Try now" }).click();
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
  await page.getByRole("textbox", { name: "Prompt, carrier system" }).waitFor();
  await banner(page).waitFor({ state: "detached" });
});
