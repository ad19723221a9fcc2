// The parts of the prompt's page that need no browser: merging, moves, blame, addresses, money.

import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

globalThis.location ??= { hash: "" };
globalThis.addEventListener ??= () => {};

const { merge } = await load("editor/merge.ts");
const { blameOf } = await load("lib/blame.ts");
const { moveToEnd, moved } = await load("editor/findings.ts");
const { change, dollars, sentence, sizeOver } = await load("lib/format.ts");
const { href, parse, withQuery } = await load("lib/route.svelte.ts");
const { readPair, pairWords } = await load("versions/compared.ts");
const { shortPath } = await load("lib/paths.ts");
const { isTooShort } = await load("editor/cost.ts");

test("changes of two authors are merged where they do not share a line", () => {
  const base = "one\ntwo\nthree\nfour\n";
  assert.equal(merge(base, "ONE\ntwo\nthree\nfour\n", "one\ntwo\nthree\nFOUR\n"), "ONE\ntwo\nthree\nFOUR\n");
  assert.equal(merge(base, "one\n2\nthree\nfour\n", "one\ntwo!\nthree\nfour\n"), null);
  assert.equal(merge(base, base, "one\n"), "one\n");
  assert.equal(merge(base, "one\n2\nthree\nfour\n", "one\n2\nthree\nfour\n"), "one\n2\nthree\nfour\n");
});

test("the margin names the file and the real line", () => {
  const file = { kind: "file", path: "/w/sub/AGENTS.md", line: 1, column: 1 };
  assert.deepEqual(blameOf(file, 15), { key: "/w/sub/AGENTS.md", name: "AGENTS.md", path: "/w/sub/AGENTS.md", line: 16 });
  assert.equal(blameOf({ kind: "file", path: "/w/.proem/skills/deploy/SKILL.md", line: 3 }, 0).name, "deploy/SKILL.md");
  assert.deepEqual(blameOf({ kind: "variable", key: "git:branch" }, 0), { key: "git:branch", name: "[git:branch]" });
  assert.equal(blameOf({ kind: "request", field: "template", line: 2, column: 1 }, 1).line, 3);
});

/** The part of CodeMirror's text that a move reads. */
function docOf(text) {
  return {
    length: text.length,
    sliceString: (from, to) => text.slice(from, to),
    lineAt(at) {
      const from = text.lastIndexOf("\n", at - 1) + 1;
      const end = text.indexOf("\n", at);
      const to = end < 0 ? text.length : end;
      return { from, to, text: text.slice(from, to) };
    },
  };
}

test("a sentence with a clock moves to the end, and nothing else does", () => {
  const move = (text, tag, blocks = []) => {
    const from = text.indexOf(tag);
    const doc = docOf(text);
    const found = moveToEnd(doc, { from, to: from + tag.length }, blocks);
    return found && moved(doc, found);
  };
  const clock = "[system:time]";
  assert.equal(move(`It is ${clock}. You are careful.\nBe brief.\n`, clock), `You are careful.\nBe brief.\nIt is ${clock}.\n`);
  assert.equal(move(`It is ${clock}\nBe brief.\n`, clock), `Be brief.\nIt is ${clock}\n`);
  assert.equal(move(`Be brief. It is ${clock}. Be kind.`, clock), `Be brief. Be kind.\nIt is ${clock}.\n`);
  assert.equal(move(`Be brief.\nIt is ${clock}.\n`, clock), null);
  assert.equal(move(`[if a:b]${clock}[endif] more`, clock, [{ start: 0, end: 28 }]), null);
});

test("money has two figures that count, and a sign where it is a difference", () => {
  assert.deepEqual([0.005871, 0.3756, 2.174, 12.4, 0, 0.0000012].map(dollars), ["$0.0059", "$0.38", "$2.17", "$12.40", "$0", "$0.0000012"]);
  assert.deepEqual([change(0.0001), change(-0.3), change(0)], ["+$0.00010", "−$0.30", "±0"]);
});

test("a hint is a sentence, and a size over its limit differs from it", () => {
  assert.equal(sentence("create it or choose another"), "Create it or choose another.");
  assert.equal(sentence("docs/request.md describes the fields"), "docs/request.md describes the fields.");
  assert.equal(sizeOver(1_048_600, 1_048_576), "1,048,600 bytes: at most 1,048,576");
  assert.equal(sizeOver(3_145_728, 1_048_576), "3.0 MiB: at most 1.0 MiB");
});

test("addresses hold a page, parts and values", () => {
  assert.equal(href("overview"), "#/");
  assert.equal(withQuery(href("prompt"), { folder: "/a/b c", model: "x", profile: "" }), "#/prompt?folder=/a/b+c&model=x");
  assert.deepEqual(parse("#/prompt?folder=/a/b+c&model=x"), { page: "prompt", rest: [], query: { folder: "/a/b c", model: "x" } });
  assert.deepEqual(parse("#/conversations/a%2Fb?call=12"), { page: "conversations", rest: ["a/b"], query: { call: "12" } });
  assert.equal(parse("").page, "overview");
  assert.equal(parse("#/editor").page, "prompt");
  assert.equal(parse("#/agents").page, "sources");
  assert.equal(withQuery("#/x?a=1&b=2", { a: undefined }), "#/x?b=2");
});

test("two versions are an address", () => {
  assert.deepEqual(readPair("4..6"), { from: 4, to: 6 });
  assert.deepEqual(readPair("6"), { from: 5, to: 6 });
  assert.deepEqual(readPair("built-in..1"), { from: 0, to: 1 });
  assert.deepEqual([readPair("x"), readPair(undefined), readPair("0")], [null, null, null]);
  assert.equal(pairWords({ from: 0, to: 3 }), "built-in..3");
});

test("paths are relative to the folder, also above it", () => {
  assert.equal(shortPath("/w/p/src/a.md", "/w/p/src"), "a.md");
  assert.equal(shortPath("/w/p/AGENTS.md", "/w/p/src/deep"), "../../AGENTS.md");
  assert.equal(shortPath("/etc/x", "/w/p"), "/etc/x");
});

test("a prefix below the minimum is not too short for a turn that reads its history from the cache", () => {
  const warm = (read) => ({ input_tokens: 756, read, written: 0, written_1h: 0, uncached: 13 });
  assert.equal(isTooShort({ min_tokens: 512, prefix_tokens: 328, warm: warm(743) }), false);
  assert.equal(isTooShort({ min_tokens: 512, prefix_tokens: 328, warm: warm(0) }), true);
  assert.equal(isTooShort({ min_tokens: 512, prefix_tokens: 600, warm: warm(0) }), false);
});
