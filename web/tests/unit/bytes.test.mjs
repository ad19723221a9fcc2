import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { byteLength, offsetAt, placeAt, rangesToBytes, rangesToUnits, toBytes, toUnits } = await load("lib/bytes.ts");

const TEXTS = ["", "plain", "aé€😀z", "😀😀", "\u202e\u0000\n\r\n", "e\u0301\ud83d\udc69\u200d\ud83d\udcbb"];

/** Offsets of all characters, the slow way: encode each prefix. */
function table(text) {
  const places = [{ unit: 0, byte: 0 }];
  for (const character of text) {
    const last = places.at(-1);
    places.push({ unit: last.unit + character.length, byte: last.byte + new TextEncoder().encode(character).length });
  }
  return places;
}

for (const text of TEXTS) {
  test(`offsets of ${JSON.stringify(text)} are those of the encoder`, () => {
    const places = table(text);
    const units = places.map(({ unit }) => unit);
    const bytes = places.map(({ byte }) => byte);
    assert.deepEqual(toUnits(text, bytes), units);
    assert.deepEqual(toBytes(text, units), bytes);
    assert.equal(byteLength(text), bytes.at(-1));
  });
}

test("an offset inside a character becomes its beginning", () => {
  assert.deepEqual(toUnits("a😀z", [0, 1, 2, 3, 4, 5, 6]), [0, 1, 1, 1, 1, 3, 4]);
  assert.deepEqual(toBytes("a😀z", [0, 1, 2, 3, 4]), [0, 1, 1, 5, 6]);
});

test("offsets outside become the ends", () => {
  for (const text of ["abc", "äbc"]) {
    assert.deepEqual(toUnits(text, [-1, 99]), [0, 3]);
    assert.deepEqual(toBytes(text, [-1, 99]), [0, new TextEncoder().encode(text).length]);
  }
});

test("half a surrogate pair counts as three bytes", () => {
  assert.deepEqual(toBytes("\ud83dx", [0, 1, 2]), [0, 3, 4]);
});

test("ranges may overlap and stand in any order, and keep their other fields", () => {
  const ranges = [{ start: 3, end: 6, name: "euro" }, { start: 0, end: 6, name: "all" }, { start: 1, end: 3, name: "é" }];
  const units = rangesToUnits("aé€", ranges);
  assert.deepEqual(units, [
    { start: 2, end: 3, name: "euro" }, { start: 0, end: 3, name: "all" }, { start: 1, end: 2, name: "é" },
  ]);
  assert.deepEqual(rangesToBytes("aé€", units), ranges);
});

test("lines and columns count from 1, columns in code points", () => {
  const text = "one\n😀é x\n\nend";
  for (const [line, column, offset] of [[1, 1, 0], [1, 4, 3], [2, 1, 4], [2, 2, 6], [2, 4, 8], [3, 1, 10], [4, 3, 13]]) {
    assert.equal(offsetAt(text, line, column), offset, `${line}:${column}`);
    assert.deepEqual(placeAt(text, offset), { line, column });
  }
});

test("a place outside is clamped to its line, or to the end", () => {
  assert.equal(offsetAt("ab\ncd", 1, 9), 2);
  assert.equal(offsetAt("ab\ncd", 9, 1), 5);
  assert.deepEqual(placeAt("ab\ncd", 99), { line: 2, column: 3 });
  assert.deepEqual(placeAt("", 0), { line: 1, column: 1 });
});

test("8 MiB and ten thousand offsets take one pass", () => {
  const text = "äöü 😀 text\n".repeat(500_000);
  const wanted = Array.from({ length: 10_000 }, (_, index) => index * 800);
  const begun = performance.now();
  const units = toUnits(text, wanted);
  assert.ok(performance.now() - begun < 2000, "it took longer than two seconds");
  assert.deepEqual(toBytes(text, units).length, wanted.length);
});
