// The page of conversations.

import assert from "node:assert/strict";
import { accessible, bench, fits, NARROW, shots, SMALLEST } from "./bench.mjs";
import { hoverText, tabTo } from "./editor.mjs";

const { it, server } = bench();
const CONVERSATIONS = 120;
const turn = (id, body = {}) => server().ask(`/conversations/${id}/turn`, { prompt: "Hello", ...body });
const page1 = (page) => page.getByRole("region", { name: "Conversations" }).getByRole("rowheader").getByRole("link");

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
  await page.getByText("120 conversations, 50 shown").waitFor();
  await page.getByRole("button", { name: "Show 50 more" }).click();
  await page.getByText("120 conversations, 100 shown").waitFor();
  await page.getByRole("button", { name: "Show 20 more" }).click();
  await page.getByText("120 conversations", { exact: true }).waitFor();
  assert.equal(await page.getByRole("button", { name: /^Show \d+ more/ }).count(), 0);
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
  await page.getByText("No conversation fits “no such thing” in its name or directory.").waitFor();
  await box.fill("");
  await page.getByText("120 conversations, 50 shown").waitFor();
  await accessible(page, "the list");
  await shots(page, "conversations");
});

it("times are said, and their exact moment is the title", async ({ page, server }) => {
  await turn("timed");
  await page.goto(`${server.url}/#/conversations`);
  const item = page.getByRole("row").filter({ has: page.getByRole("link", { name: "timed" }) });
  const time = item.getByRole("time").first();
  assert.equal(await time.textContent(), "just now");
  assert.match(await time.getAttribute("title"), /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$/);
});

it("the frozen prompt stays when a file changes, with its sources", async ({ page, server }) => {
  await turn("frozen");
  server.write("AGENTS.md", "Run the linter before you say that something works.\n");
  await page.goto(`${server.url}/#/conversations/frozen/prompt`);
  const prompt = page.getByRole("textbox", { name: "Prompt, carrier system" });
  await prompt.getByText("Run the tests").waitFor();
  assert.equal(await prompt.getByText("Run the linter").count(), 0);
  await page.getByText("cached up to here").waitFor();
  await hoverText(page, prompt, "Run the tests");
  await page.getByText(/AGENTS\.md:1/).first().waitFor();
  await accessible(page, "a frozen prompt");
  await shots(page, "conversation");
});

it("drift names causes, sections and lost tokens, and a reload takes it over", async ({ page, server }) => {
  server.write("AGENTS.md", "Run the tests before you say that something works.\n");
  await turn("drifting");
  await page.goto(`${server.url}/#/conversations/drifting/drift`);
  await page.getByText("Sources have not changed since epoch 1.").waitFor();
  server.write("AGENTS.md", "Run the linter before you say that something works.\n");
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByText("context changed, on the carrier system").waitFor();
  await page.getByText(/about [\d,]+ tokens of the prefix/).waitFor();
  await page.getByRole("region", { name: "Causes" }).getByText(/AGENTS\.md was edited/).waitFor();
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
  await page.waitForURL(/epochs\/2$/);
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
  await page.goto(`${server.url}/#/conversations/epochs/compare`);
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
  await accessible(page, "two epochs compared");
  await shots(page, "conversation-compare");
  await page.waitForURL(/compare\/1\.\.3$/);
  await page.reload();
  await region.getByRole("textbox", { name: "Epoch 1" }).getByText("Say one").waitFor();
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Prompt" }).click();
  await page.getByLabel("Epoch", { exact: true }).selectOption("1");
  await page.getByRole("textbox", { name: "Prompt, carrier system" }).getByText("Say one").waitFor();
});

it("epochs say why they were opened, and those with the same bytes are one", async ({ page, server }) => {
  server.write("AGENTS.md", "Say one.\n");
  await turn("reasons");
  await server.ask("/conversations/reasons/compaction?commit=true", undefined, "POST");
  server.write("AGENTS.md", "Say two.\n");
  await server.ask("/conversations/reasons/reload", undefined, "POST");
  await page.goto(`${server.url}/#/conversations/reasons`);
  const epochs = page.getByRole("list", { name: "Epochs" });
  await epochs.getByRole("link", { name: "Epochs 1–2" }).waitFor();
  await epochs.getByText("first turn").waitFor();
  await epochs.getByText(/AGENTS\.md was edited/).waitFor();
  await page.getByText("No call of this conversation is recorded").waitFor();
  await accessible(page, "a conversation without calls");
  await shots(page, "conversation-without-calls");
});

it("the payload of a chosen provider is shown and copied", { permissions: ["clipboard-read", "clipboard-write"] },
  async ({ page, server }) => {
    await turn("paid", { model: "claude-opus-5" });
    await page.goto(`${server.url}/#/conversations/paid`);
    await page.getByRole("link", { name: "Payload" }).click();
    const text = page.getByRole("textbox", { name: "Payload for anthropic" });
    await text.getByTitle("Cache marker").first().waitFor();
    await accessible(page, "a payload");
    await shots(page, "conversation-payload");
    await page.getByRole("button", { name: "Copy" }).click();
    await page.getByText("Copied.").waitFor();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    const epoch = await server.ask("/conversations/paid/epochs/1?provider=anthropic");
    assert.deepEqual(copied, epoch.payload);
  });

it("notices of a frozen prompt are listed", async ({ page, server }) => {
  await turn("noted", { recalled: "x", residents: false, packs: [] });
  const { notes } = await server.ask("/conversations/noted/epochs/1");
  assert.ok(notes.length > 0, "the request leaves a note");
  await page.goto(`${server.url}/#/conversations/noted`);
  await page.getByRole("link", { name: "Notices" }).click();
  await page.getByText(notes[0].message).waitFor();
  await accessible(page, "notices");
  await shots(page, "conversation-notices");
});

it("a conversation is deleted only after a question", async ({ page, server }) => {
  await turn("doomed");
  await page.goto(`${server.url}/#/conversations/doomed`);
  assert.equal(await page.getByRole("button", { name: "Delete…" }).count(), 0);
  await page.getByRole("button", { name: "More for this conversation" }).click();
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
  await page.getByText("No call of this conversation is recorded").waitFor();
});

it("an address that is nonsense shows something", { allow: [/40\d/] }, async ({ page, server }) => {
  await page.goto(`${server.url}/#/conversations/%zz/epochs/-1/what`);
  await page.getByRole("alert").filter({ hasText: "invalid conversation id" }).waitFor();
});

it("the keyboard alone goes from the list to an epoch's payload", async ({ page, server }) => {
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
  await page.getByRole("heading", { name: "keys" }).waitFor();
  await tabTo(page, page.getByRole("link", { name: "Payload" }));
  await page.keyboard.press("Enter");
  const epoch = page.getByLabel("Epoch", { exact: true });
  await tabTo(page, epoch);
  await page.keyboard.press("ArrowDown");
  await page.waitForURL(/epochs\/1\/payload$/);
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
  await page.getByText("Sources changed since epoch 1").waitFor();
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
  await page.getByRole("link", { name: "Notices" }).click();
  await page.getByRole("heading", { level: 2, name: "Notices of epoch 1" }).waitFor();
});

it("nothing is wider than a narrow screen", { viewport: NARROW }, async ({ page, server }) => {
  await turn(`${"long".repeat(25)}`);
  await page.setViewportSize(SMALLEST);
  for (const rest of ["", `/${"long".repeat(25)}`, "/keys/prompt", "/keys/drift", "/keys/compare", "/keys/payload", "/keys/notices", "/keys/what-if"]) {
    await page.goto(`${server.url}/#/conversations${rest}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    await fits(page, rest || "the list");
  }
  await page.setViewportSize(NARROW);
  for (const rest of ["", "/keys", "/keys/prompt", "/keys/drift", "/keys/compare", "/keys/payload", "/keys/notices", "/keys/what-if"]) {
    await page.goto(`${server.url}/#/conversations${rest}`);
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    const width = await page.evaluate(() => document.querySelector("main:not(.away)").scrollWidth);
    assert.ok(width <= NARROW.width, `${rest || "the list"} is ${width} wide`);
  }
});

it("a change of tools is a cause with its place and price, and its definition is shown", async ({ page, server }) => {
  await turn("tooled", { model: "claude-opus-5", tools: [{ name: "read", description: "Reads a file." }] });
  await server.ask("/conversations/tooled/tools", { tools: [{ name: "read", description: "Reads a file." }, { name: "fetch", description: "Fetches a page." }] }, "PUT");
  await page.goto(`${server.url}/#/conversations/tooled/compare/1..2`);
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
  await page.getByRole("textbox", { name: "Prompt, carrier system" }).getByText("One.", { exact: true }).waitFor();
  await page.getByRole("navigation", { name: "Views" }).getByRole("link", { name: "Drift" }).click();
  await page.getByText("Sources have not changed since epoch 2.").waitFor();
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
