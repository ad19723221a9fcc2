import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

globalThis.location = { hash: "" };
globalThis.addEventListener = () => {};
const { addressOf, compareAddress, readPlace } = await load("conversations/route.ts");
const { readable } = await load("conversations/readable.ts");
const { exact, said } = await load("conversations/time.ts");

const PLACES = [
  [{ conversation: "c-1", view: "timeline" }, "#/conversations/c-1"],
  [{ conversation: "c-1", view: "drift" }, "#/conversations/c-1/drift"],
  [{ conversation: "c-1", view: "what-if" }, "#/conversations/c-1/what-if"],
  [{ conversation: "c-1", view: "timeline", call: "12" }, "#/conversations/c-1/calls/12"],
  [{ conversation: "a:b", epoch: 3, view: "prompt" }, "#/conversations/a%3Ab/epochs/3"],
  [{ conversation: "epochs", epoch: 12, view: "payload" }, "#/conversations/epochs/epochs/12/payload"],
];

test("an address leads back to its place", () => {
  for (const [place, address] of PLACES) {
    assert.equal(addressOf(place), address);
    const read = readPlace(address.split("/").slice(2).map(decodeURIComponent));
    assert.deepEqual(JSON.parse(JSON.stringify(read)), place);
  }
  assert.deepEqual(readPlace(["c", "compare", "3..4"]), { conversation: "c", view: "compare", from: 3, to: 4 });
  assert.equal(compareAddress("a:b", 3, 4), "#/conversations/a%3Ab/compare/3..4");
});

test("addresses of earlier versions lead to the same things", () => {
  assert.equal(readPlace(["c", "differences"]).view, "compare");
  assert.equal(readPlace(["c", "epochs", "2", "notes"]).view, "notices");
});

test("nonsense in an address is left out", () => {
  assert.equal(readPlace([]), undefined);
  for (const rest of [["epochs"], ["epochs", "0"], ["epochs", "-1"], ["epochs", "1e9"]]) {
    assert.deepEqual(readPlace(["c", ...rest]), { conversation: "c", view: "prompt", epoch: undefined }, rest.join("/"));
  }
  assert.deepEqual(readPlace(["c", "what"]), { conversation: "c", view: "timeline" });
  assert.deepEqual(readPlace(["c", "compare", "4"]), { conversation: "c", view: "compare", from: undefined, to: undefined });
});

const NOW = Date.UTC(2026, 10, 15, 12);
test("times are said as people say them", () => {
  const cases = [
    [0, "just now"], [59_999, "just now"], [60_000, "1 minute ago"], [3_599_999, "59 minutes ago"], [3_600_000, "1 hour ago"],
    [86_400_000, "yesterday"], [3 * 86_400_000, "3 days ago"], [7 * 86_400_000, "November 8, 2026"], [-120_000, "in 2 minutes"],
  ];
  for (const [past, words] of cases) assert.equal(said(NOW - past, NOW), words, String(past));
});

test("the exact time names its zone, and nonsense stays nonsense", () => {
  assert.equal(exact(NOW), "2026-11-15 12:00:00.000 UTC");
  assert.equal(exact(Number.MAX_VALUE), String(Number.MAX_VALUE));
});

test("long strings of JSON are broken behind line breaks, and nothing is lost", () => {
  const text = `${"word ".repeat(30)}\nnext\\n not a break\n${"😀".repeat(5_000)}`;
  const json = JSON.stringify({ short: "a\nb", text }, null, 2);
  const lines = readable(json).split("\n");
  assert.equal(lines.join("").length, json.replaceAll("\n", "").length);
  assert.ok(lines.includes('  "short": "a\\nb",'));
  assert.ok(lines.includes("next\\\\n not a break\\n"));
  assert.ok(lines.every((line) => line.length <= 4_000));
  assert.ok(lines.every((line) => line.isWellFormed?.() ?? !/[\ud800-\udbff]$/.test(line)));
});
