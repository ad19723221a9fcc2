import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { visibleLine, visibleName, visibleText } = await load("lib/visible.ts");
const { sentence } = await load("lib/format.ts");

test("what hides or reorders is shown by its number", () => {
  assert.equal(visibleName("a\u202eb\u0000\u001b[1m\u009b\u00ad\u200b\ufeff"), "a‹U+202E›b‹U+0000›‹U+001B›[1m‹U+009B›‹U+00AD›‹U+200B›‹U+FEFF›");
  assert.equal(visibleName("\u061c\u2066\u2069\u{e0041}\ud800x\n"), "‹U+061C›‹U+2066›‹U+2069›‹U+E0041›‹U+D800›x‹U+000A›");
  assert.equal(visibleName("x\ufe00y\ufff0\u{13430}\u{1bca0}\u{e0fff}"), "x‹U+FE00›y‹U+FFF0›‹U+13430›‹U+1BCA0›‹U+E0FFF›");
  assert.equal(visibleName(undefined), "");
});

test("what can be read stays as it is", () => {
  for (const text of ["plain name.md", "äöü 日本 עברית عربى", "👩‍👩‍👧 ❤️ 👍🏽 1️⃣", "<b>&amp;"]) assert.equal(visibleName(text), text);
});

test("a message keeps its tabs and line breaks, a line has none", () => {
  assert.equal(visibleText("a\n\tb\r"), "a\n\tb‹U+000D›");
  assert.equal(visibleLine("a\r\n  b\u2028c", 20), "a b‹U+2028›c");
  assert.equal(visibleLine("abc😀def", 5), "abc…");
});

test("a hint gets a full stop only where one is missing, and a capital where it begins with a word", () => {
  assert.equal(sentence("docs/request.md describes it"), "docs/request.md describes it.");
  assert.equal(sentence("is this still proem?"), "Is this still proem?");
  assert.equal(sentence("run `npm ci`"), "Run `npm ci`");
  assert.equal(sentence("done."), "done.");
});
