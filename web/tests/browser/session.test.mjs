// A server that wants its token.

import assert from "node:assert/strict";
import { accessible, bench, shots } from "./bench.mjs";
import { editorOf } from "./editor.mjs";

const TOKEN = "correct-horse-battery-staple-42";
const { it } = bench({ token: TOKEN });
const allow = [/401/];

async function signIn(page) {
  const dialog = page.getByRole("dialog", { name: "This server asks for its token" });
  await dialog.getByLabel("Token", { exact: true }).fill(TOKEN);
  await dialog.getByRole("button", { name: "Continue" }).click();
  await dialog.waitFor({ state: "detached" });
}

it("a wrong token is refused, the right one opens the editor", { allow }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  const dialog = page.getByRole("dialog", { name: "This server asks for its token" });
  await dialog.waitFor();
  await accessible(page, "the question for the token");
  await shots(page, "token");
  await dialog.getByLabel("Token", { exact: true }).fill("wrong-token-of-some-length");
  await page.keyboard.press("Enter");
  await dialog.getByRole("alert").getByText("This is not the server's token.").waitFor();
  await signIn(page);
  await editorOf(page).ready("template");
});

it("the session outlives a reload, and its cookie is out of reach", { allow }, async ({ page, context, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  await signIn(page);
  await editorOf(page).ready();
  const cookies = await context.cookies(server.url);
  assert.equal(cookies.length, 1);
  assert.equal(cookies[0].httpOnly, true);
  assert.equal(cookies[0].sameSite, "Strict");
  assert.ok(!cookies[0].value.includes(TOKEN), "the cookie is the token itself");
  const seen = await page.evaluate(async () => JSON.stringify([
    { ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.documentElement.outerHTML,
    await indexedDB.databases(),
  ]));
  assert.ok(!seen.includes(TOKEN), "the page keeps the token");
  await page.reload();
  await editorOf(page).ready();
  assert.equal(await page.getByRole("dialog").count(), 0);
});

it("conversations wait for the token too", { allow }, async ({ page, server }) => {
  await server.ask("/conversations/c-1/turn", { prompt: "Hello" });
  await page.goto(`${server.url}/#/conversations`);
  await signIn(page);
  await page.getByRole("link", { name: "c-1" }).waitFor();
});

it("text that was written meanwhile is still there when a session ended", { allow }, async ({ page, context, server }) => {
  await page.goto(`${server.url}/#/prompt`);
  await signIn(page);
  const editor = editorOf(page);
  await editor.ready("template");
  await editor.write("written before");
  await editor.expectPrompt("written before");
  await context.clearCookies();
  await editor.write("written without a session");
  await signIn(page);
  await editor.expectPrompt("written without a session");
  await editor.expectText("written without a session");
});
