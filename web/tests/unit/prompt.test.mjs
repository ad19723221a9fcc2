import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { difference } = await load("lib/difference.ts");
const { pieceAt, piecesIn, piecesOf } = await load("lib/pieces.ts");
const { describeSource } = await load("lib/source.ts");
const { characterName, characterSign } = await load("lib/visible-characters.ts");

for (const [old, text] of [["", ""], ["", "a"], ["a", ""], ["abc", "axc"], ["aa", "aaa"], ["abab", "ab"], ["same", "same"]]) {
  test(`one change makes ${JSON.stringify(text)} of ${JSON.stringify(old)}`, () => {
    const { from, to, insert } = difference(old, text);
    assert.equal(old.slice(0, from) + insert + old.slice(to), text);
    assert.ok(from <= to);
  });
}

test("pieces are found by position and by range", () => {
  const span = (start, end, carrier = "system") => ({ carrier, start, end });
  const pieces = piecesOf("éabc", [span(2, 3), span(0, 2), span(0, 9, "turn"), span(3, 5)], "system");
  assert.deepEqual(pieces.map(({ from, to }) => [from, to]), [[0, 1], [1, 2], [2, 4]]);
  assert.equal(pieceAt(pieces, 0), pieces[0]);
  assert.equal(pieceAt(pieces, 1), pieces[1]);
  assert.equal(pieceAt(pieces, 4), pieces[2]);
  assert.equal(pieceAt([], 0), null);
  assert.deepEqual(piecesIn(pieces, 1, 3), [pieces[1], pieces[2]]);
  assert.deepEqual(piecesIn(pieces, 1, 1), [pieces[1]]);
});

test("sources are described as the command line does", () => {
  assert.equal(describeSource({ kind: "file", path: "/a", line: 2 }), "/a:2");
  assert.equal(describeSource({ kind: "file", path: "/a", line: 2, column: 5 }, 0), "/a:2:5");
  assert.equal(describeSource({ kind: "file", path: "/a", line: 2, column: 5 }, 3), "/a:5");
  assert.equal(describeSource({ kind: "file", path: "/a" }, 3), "/a");
  assert.equal(describeSource({ kind: "file", path: "/a\u202edm.b\u001b", line: 2 }), "/a‹U+202E›dm.b‹U+001B›:2");
  assert.equal(describeSource({ kind: "pack", path: "/\u200bp", key: "n\n" }), "pack /‹U+200B›p, n‹U+000A›");
  assert.equal(describeSource({ kind: "variable", key: "file:A", path: "/a/A", line: 1 }), "[file:A] from /a/A:1");
  assert.equal(describeSource({ kind: "request", field: "template", line: 1, column: 5 }), "the template:1:5");
});

test("hidden characters have a sign and a name", () => {
  assert.deepEqual([0x1b, 0x7f, 0x202e, 0xe0041].map(characterSign), ["ESC", "DEL", "202E", "E0041"]);
  assert.equal(characterName(0x202e), "U+202E right-to-left override");
  assert.equal(characterName(1), "U+0001");
});
