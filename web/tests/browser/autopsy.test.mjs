// The autopsy of a call: ten different misses, each with its verdict, its byte, its owner and its price.

import assert from "node:assert/strict";
import { accessible, bench, shots } from "./bench.mjs";

const { it } = bench();
const MODEL = "claude-opus-5";
// USD for a token of this model that is written to the cache instead of read from it.
const LOSS = (6.25 - 0.5) / 1e6;
const LEFT = 5_000;
const RULES = "Read each file before you change it, and run its tests afterwards.\n".repeat(60);
const marked = { cache_control: { type: "ephemeral" } };
const tool = (name, description = `Runs ${name}`) => ({ name, description, input_schema: { type: "object" } });
const says = (text, more = {}) => ({ role: "user", content: [{ type: "text", text, ...more }] });

/** A request to Anthropic with its parts. */
const request = ({ system = RULES, tools = [tool("read"), tool("search")], messages = [says("Why?", marked)], model = MODEL, mark = marked } = {}) =>
  ({ model, max_tokens: 10, tools, system: [{ type: "text", text: system, ...mark }], messages });
const answer = (read, written) =>
  ({ usage: { input_tokens: 10, cache_read_input_tokens: read, cache_creation_input_tokens: written, output_tokens: 5 } });

/** Changes between two requests, and the words that the page must show: the place with both sides, the owner, and the advice. */
const MISSES = [
  { name: "tools-added", after: { tools: [tool("read"), tool("search"), tool("fetch")] }, verdict: "tools added", part: /tools\[2\]/, owner: /Tool\s*fetch/ },
  { name: "tools-removed", after: { tools: [tool("read")] }, verdict: "tools removed", part: /tools\[1\]/ },
  { name: "tools-reordered", after: { tools: [tool("search"), tool("read")] }, verdict: "tools reordered", part: /tools\[0\]/ },
  { name: "tools-redefined", after: { tools: [tool("read", "Runs it"), tool("search")] }, verdict: "tools redefined", part: /tools\[0\]/, owner: /Tool\s*read/ },
  { name: "clock", before: { system: `It is 13:59. ${RULES}` }, after: { system: `It is 14:07. ${RULES}` }, verdict: "system prompt changed", part: /system\[0\]/, byte: 7, sides: ["3:59", "4:07"], owner: /Clock/ },
  { name: "message-edited", before: { messages: [says("Count to ten", marked)] }, after: { messages: [says("Count to six", marked)] }, verdict: "message edited", part: /messages\[0\]\.content\[0\]/, byte: 9, sides: ["ten", "six"], owner: /User/ },
  { name: "marker-missing", after: { mark: {}, messages: [says("Why?")] }, verdict: "cache marker missing" },
  { name: "provider", after: {}, verdict: "provider's miss", owner: /Provider/ },
  { name: "model-changed", after: { model: "claude-haiku-4-5" }, verdict: "model changed", quiet: true },
  { name: "expired", after: {}, later: 7_200, verdict: "expired", quiet: true },
];

async function call(server, id, at, body, response) {
  return server.ask(`/conversations/${id}/calls`, { at, request: body, response: { model: body.model, ...response } });
}

it("ten different misses show the right place, owner and price", async ({ page, server }) => {
  const at = Math.floor(Date.now() / 1_000) - 10_000;
  for (const { name, before = {}, after, later = 60 } of MISSES) {
    await server.ask(`/conversations/${name}/turn`, { prompt: "Hello", model: MODEL });
    await call(server, name, at, request(before), answer(0, LEFT));
    await call(server, name, at + later, request({ ...before, ...after }), answer(0, LEFT + 100));
  }
  for (const { name, verdict, part, byte, sides, owner, quiet } of MISSES) {
    await page.goto(`${server.url}/#/conversations/${name}/calls/2`);
    const autopsy = page.getByRole("region", { name: /^Call 2/ });
    await autopsy.waitFor();
    const text = async () => (await autopsy.innerText()).replace(/\s+/g, " ");
    assert.equal(await autopsy.locator(".verdict .chip").textContent(), verdict, name);
    if (part) assert.match(await text(), part, name);
    if (byte !== undefined) assert.match(await text(), new RegExp(`byte ${byte}, line 1, column ${byte + 1}`), name);
    if (sides) {
      assert.equal(await autopsy.locator("del").textContent(), sides[0], name);
      assert.equal(await autopsy.locator("ins").textContent(), sides[1], name);
    }
    if (owner) assert.match(await autopsy.locator(".owner").innerText(), owner, name);
    if (!quiet) assert.match(await text(), /Advice/, name);
    const price = `$${(LEFT * LOSS).toFixed(3)}`;
    if (!quiet) assert.equal(await autopsy.getByRole("heading").first().textContent(), `Call 2 lost ${LEFT.toLocaleString("en-US")} tokens, ${price}.`, name);
    if (name === "clock") {
      await accessible(page, "an autopsy");
      await shots(page, "autopsy");
    }
  }
});

it("a changed instruction file is named with its line", async ({ page, server }) => {
  const id = "edited";
  const at = Math.floor(Date.now() / 1_000) - 10_000;
  const body = async () => {
    const { payload } = await server.ask(`/conversations/${id}/turn`, { prompt: "Hello", messages: [], model: MODEL, provider: "anthropic" });
    return { model: MODEL, ...payload };
  };
  server.write("AGENTS.md", `${RULES}\nUse spaces.\n`);
  await call(server, id, at, await body(), answer(0, LEFT));
  server.write("AGENTS.md", `${RULES}\nUse tabs.\n`);
  await server.ask(`/conversations/${id}/reload`, undefined, "POST");
  await call(server, id, at + 60, await body(), answer(0, LEFT));
  await page.goto(`${server.url}/#/conversations/${id}/calls/2`);
  const autopsy = page.getByRole("region", { name: /^Call 2/ });
  await autopsy.waitFor();
  assert.equal(await autopsy.locator(".verdict .chip").textContent(), "system prompt changed");
  assert.deepEqual([await autopsy.locator("del").textContent(), await autopsy.locator("ins").textContent()], ["space", "tab"]);
  await autopsy.getByRole("link", { name: /AGENTS\.md:62/ }).click();
  await page.getByRole("heading", { name: "Sources" }).waitFor();
  await page.getByRole("rowheader", { name: /AGENTS\.md/ }).waitFor();
  await page.goBack();
  await autopsy.getByText(/Payload of epoch 2/).click();
  const payload = autopsy.getByRole("textbox", { name: "Payload for anthropic" });
  await payload.focus();
  await page.keyboard.press("Control+End");
  await payload.getByTitle("Cache marker").first().waitFor();
  await page.getByRole("group", { name: /^Calls by epoch/ }).getByText(/AGENTS\.md/).waitFor();
  await accessible(page, "a timeline with two epochs");
});

it("a call that is recorded meanwhile appears by itself", async ({ page, server }) => {
  const at = Math.floor(Date.now() / 1_000) - 1_000;
  await server.ask("/conversations/live/turn", { prompt: "Hello", model: MODEL });
  await page.goto(`${server.url}/#/conversations/live`);
  await page.getByText("No call of this conversation is recorded").waitFor();
  await call(server, "live", at, request(), answer(0, LEFT));
  await page.getByText("Table of 1 call, the newest first").waitFor();
  await call(server, "live", at + 60, request(), answer(LEFT, 100));
  await page.getByText("Table of 2 calls, the newest first").waitFor();
});

it("a change is simulated: model, template and layout", async ({ page, server }) => {
  const template = `It is [system:time]. ${RULES}`;
  await server.ask("/conversations/what/turn", { prompt: "Hello", model: MODEL, profile: "template", template });
  await page.goto(`${server.url}/#/conversations/what/what-if`);
  await page.getByText(/20 calls as they are: \$/).waitFor();
  await page.getByLabel("Layout").selectOption("every_turn");
  await page.getByText(/\$[\d.]+ more/).waitFor();
  await page.getByLabel("Layout").selectOption("");
  await page.getByLabel("Model").last().selectOption("claude-haiku-4-5");
  await page.getByText(/\$[\d.]+ less/).waitFor();
  await page.getByText(/not a measurement: no call is recorded/).waitFor();
  await accessible(page, "a simulation");
  await shots(page, "what-if");
});
