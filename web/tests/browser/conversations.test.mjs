// The page of conversations.

import assert from "node:assert/strict";
import { accessible, bench, fits, NARROW, shots, SMALLEST } from "./bench.mjs";
import { hoverText, tabTo } from "./editor.mjs";

const { it, server } = bench();
const CONVERSATIONS = 120;
const turn = (id, body = {}) => server().ask(`/conversations/${id}/turn`, { prompt: "Hello", ...body });
const page1 = (page) => page.getByRole("list", { name: "Conversations" }).getByRole("link");

it("an empty list says how to make a conversation", async ({ page, server }) => {
  await page.goto(`${server.url}/#/conversations`);
  await page.getByText("There is no conversation yet.").waitFor();
  await page.getByText(`curl -s ${server.url}/conversations/c-1/turn`).waitFor();
  await accessible(page, "the empty list");
  await shots(page, "conversations-empty");
  await turn("c-1");
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByRole("link", { name: "c-1" }).waitFor();
});

it("the list pages through 120 conversations, each once", async ({ page, server }) => {
  for (let number = 1; number <= CONVERSATIONS; number += 1) await turn(`c-${number}`);
  await page.goto(`${server.url}/#/conversations`);
  await page.getByText("50 conversations; there are more").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText("100 conversations; there are more").waitFor();
  await page.getByRole("button", { name: "Show more" }).click();
  await page.getByText("120 conversations", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: "Show more" }).count(), 0);
  const names = await page1(page).allTextContents();
  assert.deepEqual(names.toSorted(), Array.from({ length: CONVERSATIONS }, (_, at) => `c-${at + 1}`).toSorted());
});

it("a search narrows the list, is kept on the way back, and may find nothing", async ({ page, server }) => {
  await page.goto(`${server.url}/#/conversations`);
  const box = page.getByRole("searchbox", { name: "Search by name or directory" });
  await box.fill("c-11");
  await page.getByText("11 conversations", { exact: true }).waitFor();
  await page.getByRole("link", { name: "c-117" }).click();
  await page.getByRole("heading", { name: "c-117" }).waitFor();
  await page.goBack();
  await page.getByText("11 conversations", { exact: true }).waitFor();
  assert.equal(await box.inputValue(), "c-11");
  await box.fill("no such thing");
  await page.getByText("No conversation has “no such thing” in its name or directory.").waitFor();
  await box.fill("");
  await page.getByText("50 conversations; there are more").waitFor();
  await accessible(page, "the list");
  await shots(page, "conversations");
});

it("times are said, and their exact moment is the title", async ({ page, server }) => {
  await turn("timed");
  await page.goto(`${server.url}/#/conversations`);
  const item = page.getByRole("listitem").filter({ has: page.getByRole("link", { name: "timed" }) });
  const time = item.getByRole("time").first();
  assert.equal(await time.textContent(), "just now");
  assert.match(await time.getAttribute("title"), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$/);
});

it("the frozen prompt stays when a file changes, with its sources", async ({ page, server }) => {
  await turn("frozen");
  server.write("AGENTS.md", "Run the linter before you say that something works.\n");
  await page.goto(`${server.url}/#/conversations/frozen`);
  const prompt = page.getByRole("textbox", { name: "Prompt, carrier system" });
  await prompt.getByText("Run the tests").waitFor();
  assert.equal(await prompt.getByText("Run the linter").count(), 0);
  await page.getByText("cached up to here").waitFor();
  await hoverText(page, prompt, "Run the tests");
  await page.getByText(/AGENTS\.md:1/).first().waitFor();
  await accessible(page, "a frozen prompt");
  await shots(page, "conversation");
});

it("drift names sections, the first byte and lost tokens, and a reload takes it over", async ({ page, server }) => {
  server.write("AGENTS.md", "Run the tests before you say that something works.\n");
  await turn("drifting");
  await page.goto(`${server.url}/#/conversations/drifting/drift`);
  await page.getByText("Sources have not changed since epoch 1.").waitFor();
  server.write("AGENTS.md", "Run the linter before you say that something works.\n");
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("context changed, on the carrier system").waitFor();
  await page.getByRole("region", { name: "Causes" }).getByText(/AGENTS\.md was edited/).waitFor();
  await page.getByText(/about [\d,]+ tokens of the prefix/).waitFor();
  const difference = page.getByRole("region", { name: "Difference on the carrier system" });
  await difference.getByRole("textbox", { name: "Epoch 1" }).getByText("Run the tests").waitFor();
  await difference.getByRole("textbox", { name: "Now" }).getByText("linter").waitFor();
  await accessible(page, "drift");
  await shots(page, "conversation-drift");
  await page.getByRole("button", { name: "Reload…" }).click();
  const dialog = page.getByRole("dialog", { name: "Reload the prompt of drifting?" });
  await dialog.getByText("context changed, on the carrier system").waitFor();
  await accessible(page, "the question before a reload");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  assert.equal((await server.ask("/conversations/drifting")).epoch, 1);
  await page.getByRole("button", { name: "Reload…" }).click();
  await dialog.getByRole("button", { name: "Reload now" }).click();
  await page.getByRole("link", { name: "Epoch 2" }).and(page.locator("[aria-current=page]")).waitFor();
  await page.getByRole("textbox", { name: "Prompt, carrier system" }).getByText("Run the linter").waitFor();
  assert.equal((await server.ask("/conversations/drifting")).epoch, 2);
});

it("any two epochs are compared", async ({ page, server }) => {
  const words = ["one", "two", "three"];
  server.write("AGENTS.md", "Say one.\n");
  await turn("epochs");
  for (const word of words.slice(1)) {
    server.write("AGENTS.md", `Say ${word}.\n`);
    await server.ask("/conversations/epochs/reload", undefined, "POST");
  }
  await page.goto(`${server.url}/#/conversations/epochs/differences`);
  const region = page.getByRole("region", { name: "Difference on the carrier system" });
  await region.getByRole("textbox", { name: "Epoch 2" }).getByText("Say two").waitFor();
  await region.getByRole("textbox", { name: "Epoch 3" }).getByText("Say three").waitFor();
  await page.getByLabel("From epoch").selectOption("1");
  await region.getByRole("textbox", { name: "Epoch 1" }).getByText("Say one").waitFor();
  assert.equal(await region.getByRole("textbox").first().getAttribute("aria-label"), "Epoch 1");
  await page.getByLabel("to epoch", { exact: true }).selectOption("1");
  await page.getByText("Choose two different epochs.").waitFor();
  await page.getByLabel("to epoch", { exact: true }).selectOption("3");
  await region.waitFor();
  await accessible(page, "differences");
  await shots(page, "conversation-differences");
  await page.getByRole("navigation", { name: "Epochs" }).getByRole("link", { name: "Epoch 1" }).click();
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Prompt" }).click();
  await page.getByRole("textbox", { name: "Prompt, carrier system" }).getByText("Say one").waitFor();
});

it("epochs say why they were opened, and which have the same bytes", async ({ page, server }) => {
  await turn("reasons");
  await server.ask("/conversations/reasons/compaction?commit=true", undefined, "POST");
  await page.goto(`${server.url}/#/conversations/reasons`);
  const epochs = page.getByRole("navigation", { name: "Epochs" });
  await epochs.getByText("first turn").waitFor();
  await epochs.getByText("compacted").waitFor();
  await epochs.getByText("the same bytes as before").waitFor();
});

it("the payload of a chosen provider is shown and copied", { permissions: ["clipboard-read", "clipboard-write"] },
  async ({ page, server }) => {
    await turn("paid", { model: "claude-opus-5" });
    await page.goto(`${server.url}/#/conversations/paid`);
    await page.getByRole("link", { name: "Payload" }).click();
    const { providers } = await server.ask("/editor");
    await page.getByRole("textbox", { name: `Payload for ${providers[0]}` }).waitFor();
    await page.getByLabel("Provider").selectOption("anthropic");
    const text = page.getByRole("textbox", { name: "Payload for anthropic" });
    await text.getByText("cache_control").first().waitFor();
    await accessible(page, "a payload");
    await shots(page, "conversation-payload");
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByText("Copied.").waitFor();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    const epoch = await server.ask("/conversations/paid/epochs/1?provider=anthropic");
    assert.deepEqual(copied, epoch.payload);
  });

it("notes of a frozen prompt are listed", async ({ page, server }) => {
  await turn("noted", { recalled: "x", residents: false, packs: [] });
  const { notes } = await server.ask("/conversations/noted/epochs/1");
  assert.ok(notes.length > 0, "the request leaves a note");
  await page.goto(`${server.url}/#/conversations/noted`);
  await page.getByRole("link", { name: `Notes (${notes.length})` }).click();
  await page.getByText(notes[0].message).waitFor();
  await accessible(page, "notes");
  await shots(page, "conversation-notes");
});

it("a conversation is deleted only after a question", async ({ page, server }) => {
  await turn("doomed");
  await page.goto(`${server.url}/#/conversations/doomed`);
  await page.getByRole("button", { name: "Delete…" }).click();
  const dialog = page.getByRole("dialog", { name: "Delete doomed?" });
  await accessible(page, "the question before a deletion");
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  assert.equal((await server.ask("/conversations/doomed")).conversation, "doomed");
  await page.getByRole("button", { name: "Delete…" }).click();
  await dialog.getByRole("button", { name: "Delete permanently" }).click();
  await page.getByRole("heading", { name: "Conversations" }).waitFor();
  await page.getByText("Conversation doomed is deleted.").waitFor();
  await assert.rejects(server.ask("/conversations/doomed"), /404/);
});

it("a conversation that is not there says so", { allow: [/404/] }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/conversations/nobody`);
  const alert = page.getByRole("alert").filter({ hasText: "there is no conversation nobody" });
  await alert.waitFor();
  await turn("nobody");
  await alert.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("textbox", { name: "Prompt, carrier system" }).waitFor();
});

it("an address that is nonsense shows something", { allow: [/40\d/] }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/conversations/%zz/epochs/-1/what`);
  await page.getByRole("alert").filter({ hasText: "invalid conversation id" }).waitFor();
});

it("the keyboard alone goes from the list to another epoch's payload", async ({ page, server }) => {
  await turn("keys");
  await server.ask("/conversations/keys/compaction?commit=true", undefined, "POST");
  await page.goto(`${server.url}/#/conversations`);
  const box = page.getByRole("searchbox", { name: "Search by name or directory" });
  await tabTo(page, box);
  await page.keyboard.type("keys");
  const link = page.getByRole("link", { name: "keys" });
  await page.getByText("1 conversation", { exact: true }).waitFor();
  await tabTo(page, link);
  await page.keyboard.press("Enter");
  const epoch = page.getByRole("link", { name: "Epoch 1" });
  await epoch.waitFor();
  await tabTo(page, epoch);
  await page.keyboard.press("Enter");
  await epoch.and(page.locator("[aria-current=page]")).waitFor();
  await tabTo(page, page.getByRole("link", { name: "Payload" }));
  await page.keyboard.press("Enter");
  const text = page.getByRole("textbox", { name: /^Payload for/ });
  await text.waitFor();
  await tabTo(page, text);
});

it("the address names the conversation in the title", async ({ page, server }) => {
  await turn("titled");
  await page.goto(`${server.url}/#/conversations/titled/drift`);
  await page.waitForFunction(() => document.title === "titled – Conversations – proem");
  await page.getByRole("link", { name: "All conversations" }).click();
  await page.waitForFunction(() => document.title === "Conversations – proem");
});

it("going back closes the question before a reload, and Escape gives the focus back", async ({ page, server }) => {
  server.write("AGENTS.md", "Say one.\n");
  await turn("asked");
  server.write("AGENTS.md", "Say two.\n");
  await page.goto(`${server.url}/#/conversations/asked`);
  await page.getByRole("link", { name: "Drift" }).click();
  const button = page.getByRole("button", { name: "Reload…" });
  const dialog = page.getByRole("dialog", { name: "Reload the prompt of asked?" });
  await button.click();
  await dialog.waitFor();
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });
  await page.waitForFunction((element) => element === document.activeElement, await button.elementHandle());
  await button.click();
  await dialog.waitFor();
  await page.goBack();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("link", { name: "Notes" }).click();
  await page.getByRole("heading", { level: 2, name: "Notes of epoch 1" }).waitFor();
});

it("nothing is wider than a narrow screen", { viewport: NARROW }, async ({ page, server }) => {
  await turn(`${"long".repeat(25)}`);
  await page.setViewportSize(SMALLEST);
  for (const rest of ["", `/${"long".repeat(25)}`, "/keys/drift", "/keys/differences", "/keys/payload", "/keys/notes"]) {
    await page.goto(`${server.url}/#/conversations${rest}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await fits(page, rest || "the list");
  }
  await page.setViewportSize(NARROW);
  for (const rest of ["", "/keys", "/keys/drift", "/keys/differences", "/keys/payload", "/keys/notes"]) {
    await page.goto(`${server.url}/#/conversations${rest}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    const width = await page.evaluate(() => document.querySelector("main:not(.away)").scrollWidth);
    assert.ok(width <= NARROW.width, `${rest || "the list"} is ${width} wide`);
  }
});

it("a change of tools is a cause with its place and price, and its definition is shown", async ({ page, server }) => {
  await turn("tooled", { model: "claude-opus-5", tools: [{ name: "read", description: "Reads a file." }] });
  await server.ask("/conversations/tooled/tools", { tools: [{ name: "read", description: "Reads a file." }, { name: "fetch", description: "Fetches a page." }] }, "PUT");
  await page.goto(`${server.url}/#/conversations/tooled/epochs/2/differences`);
  const causes = page.getByRole("region", { name: "Causes" });
  await causes.getByText("the tool fetch was added").waitFor();
  await causes.getByText(/tool definitions, from byte/).waitFor();
  await causes.getByText(/^[\d,]+ tokens? not read from the cache, \$0\.\d{6} with claude-opus-5$/).waitFor();
  const tool = page.getByRole("region", { name: "Difference of the tool fetch" });
  await tool.getByText("Fetches a page.").waitFor();
  await accessible(page, "the causes of a difference");
});

it("drift is about the current epoch, whichever was looked at", async ({ page, server }) => {
  server.write("AGENTS.md", "One.\n");
  await turn("current");
  server.write("AGENTS.md", "Two.\n");
  await server.ask("/conversations/current/reload", undefined, "POST");
  await page.goto(`${server.url}/#/conversations/current/epochs/1`);
  await page.getByRole("link", { name: "Epoch 1" }).and(page.locator("[aria-current=page]")).waitFor();
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Drift" }).click();
  await page.getByText("Sources have not changed since epoch 2.").waitFor();
  await page.getByRole("link", { name: "Epoch 2" }).and(page.locator("[aria-current=page]")).waitFor();
  assert.equal(await page.evaluate(() => location.hash), "#/conversations/current/drift");
});

it("the payload is that of the model's own provider", async ({ page, server }) => {
  await turn("vendor", { model: "deepseek-v4-pro" });
  await page.goto(`${server.url}/#/conversations/vendor/payload`);
  await page.getByRole("textbox", { name: "Payload for deepseek" }).waitFor();
  assert.equal(await page.getByRole("combobox", { name: "Provider" }).inputValue(), "deepseek");
});

it("a clock alone does not ask for a reload", async ({ page, server }) => {
  await turn("clock", { profile: "template", template: "It is [system:time]." });
  await page.goto(`${server.url}/#/conversations/clock/drift`);
  await page.getByText("Only volatile values moved since epoch 1, such as a clock.").waitFor();
  assert.equal(await page.locator("button.primary").count(), 0);
});

it("drift names the versions of the template and the author", async ({ page, server }) => {
  const { version } = await server.ask("/system-prompt", { template: "Be calm.\n" }, "PUT");
  await turn("versioned", { profile: "template" });
  await server.ask("/system-prompt", { template: "Be quick.\n", author: "Miguel" }, "PUT");
  await page.goto(`${server.url}/#/conversations/versioned/drift`);
  await page.getByText("Sources changed since epoch 1.").waitFor();
  await page.getByText(`template version ${version} → ${version + 1}, saved by Miguel`).waitFor();
});
