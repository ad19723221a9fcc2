import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

const { placeAnswer, reachOf, spansFrom } = await load("editor/answer.ts");
const { segmentsOf } = await load("editor/cost.ts");
const { DraftKeeper } = await load("editor/draft.ts");
const { openTag } = await load("editor/completion.ts");
const { asides, setAside } = await load("editor/set-aside.ts");
const { below, fileKey, unfit } = await load("editor/paths.ts");
const { rowsBetween, rowsOf } = await load("editor/variable-rows.ts");

class MemoryStorage extends Map {
  getItem = (key) => this.get(key) ?? null;
  setItem = (key, value) => void this.set(key, value);
  removeItem = (key) => void this.delete(key);
  key = (index) => [...this.keys()][index] ?? null;
  get length() {
    return this.size;
  }
}

/** Locks that are held until `close`, as those of a tab are. */
function tabLocks(held) {
  const own = [];
  return {
    request(name, _options, use) {
      if (held.has(name)) return Promise.reject(new Error("timed out"));
      held.add(name);
      own.push(name);
      return use({ name });
    },
    close: () => own.forEach((name) => held.delete(name)),
  };
}

const preview = (parts) => ({ carriers: {}, sections: [], spans: [], tags: [], unused: [], breaks: [], notes: [], stats: {}, ...parts });

test("places of an answer are UTF-16 offsets of the sent text", () => {
  const span = { carrier: "system", start: 0, end: 4, stability: "session", source: { kind: "variable" }, tag: { start: 3, end: 8 } };
  const answer = placeAnswer("é [a:b]", preview({
    tags: [{ start: 3, end: 8, kind: "variable", key: "a:b" }],
    spans: [span],
    notes: [{ code: "x", severity: "info", message: "m", range: { start: 3, end: 8 } }, { code: "y", severity: "info", message: "n" }],
    breaks: [{ tag: { start: 3, end: 8 } }, {}],
  }));
  assert.deepEqual(answer.tags, [{ start: 2, end: 7, kind: "variable", key: "a:b", stability: "session" }]);
  assert.deepEqual(answer.origins.get(span), { start: 2, end: 7 });
  assert.deepEqual(answer.notes.map(({ place }) => place), [{ start: 2, end: 7 }, undefined]);
  assert.deepEqual(answer.breaks, [{ start: 2, end: 7 }, undefined]);
});

test("a tag of a block reaches from its if to its endif", () => {
  const answer = placeAnswer("[if a:b]x[else]y[endif]", preview({
    tags: [
      { start: 0, end: 8, kind: "if", group: 0 },
      { start: 9, end: 15, kind: "else", group: 0 },
      { start: 16, end: 23, kind: "endif", group: 0 },
    ],
    spans: [{ carrier: "system", start: 0, end: 1, stability: "user", source: {}, tag: { start: 8, end: 9 } }],
  }));
  const reach = reachOf(answer, answer.tags[1]);
  assert.deepEqual([reach.start, reach.end], [0, 23]);
  assert.equal(spansFrom(answer, reach).size, 1);
  assert.equal(spansFrom(answer, { start: 15, end: 23 }).size, 0);
});

test("the parts of a section share its tokens and lose none", () => {
  const section = { id: "base", carrier: "system", stability: "turn", bytes: 30, tokens: 10, cached: "yes" };
  const span = (start, end, stability) => ({ carrier: "system", start, end, stability });
  const segments = segmentsOf({
    stats: { sections: [section] },
    sections: [{ id: "base", carrier: "system", start: 0, end: 30 }],
    spans: [span(0, 10, "turn"), span(10, 20, "user"), span(20, 40, "session")],
  });
  assert.deepEqual(segments.map(({ stability, tokens }) => [stability, tokens]), [["user", 3], ["session", 4], ["turn", 3]]);
});

test("a draft comes back after a reload, and in a new tab when the old one is closed", async () => {
  const storage = new MemoryStorage();
  const session = new MemoryStorage();
  const held = new Set();
  const draft = { template: "mine", baseVersion: 3, writtenAt: 7 };
  const first = tabLocks(held);
  (await DraftKeeper.open(storage, session, first)).write(draft);
  assert.equal((await DraftKeeper.open(storage, new MemoryStorage(), tabLocks(held))).read(), null);
  first.close();
  const reloaded = tabLocks(held);
  assert.deepEqual((await DraftKeeper.open(storage, session, reloaded)).read(), draft);
  reloaded.close();
  assert.deepEqual((await DraftKeeper.open(storage, new MemoryStorage(), tabLocks(held))).read(), draft);
  assert.equal(storage.size, 1);
});

test("a duplicated tab does not write over the first one's draft", async () => {
  const storage = new MemoryStorage();
  const held = new Set();
  const session = new MemoryStorage();
  const first = await DraftKeeper.open(storage, session, tabLocks(held));
  const copy = new MemoryStorage(session);
  const second = await DraftKeeper.open(storage, copy, tabLocks(held));
  first.write({ template: "one", baseVersion: 0, writtenAt: 1 });
  second.write({ template: "two", baseVersion: 0, writtenAt: 2 });
  assert.equal(first.read().template, "one");
});

test("storage that refuses is reported, and invalid content in it is not a draft", async () => {
  const storage = new MemoryStorage([["proem.draft.x", "{"], ["proem.draft.y", "5"]]);
  const keeper = await DraftKeeper.open(storage, new MemoryStorage());
  assert.equal(keeper.read(), null);
  storage.setItem = () => {
    throw new Error("full");
  };
  assert.equal(keeper.write({ template: "", baseVersion: 0, writtenAt: 0 }), false);
});

for (const [before, expected] of [
  ["text", null],
  ["[", { condition: "", typed: "" }],
  ["a [git:br", { condition: "", typed: "git:br" }],
  ["[ if !file:A b", { condition: "if !", typed: "file:A b" }],
  ["[git:branch] x", null],
  ["[a\nb", null],
]) {
  test(`what is open in ${JSON.stringify(before)}`, () => assert.deepEqual(openTag(before), expected));
}

test("paths are relative below the directory and whole elsewhere", () => {
  assert.equal(fileKey("/w", "/w/a/b"), "file:a/b");
  assert.equal(fileKey("/w", "/wide/b"), "file:/wide/b");
  assert.equal(fileKey("/w", "a"), "file:a");
  assert.equal(below("/", "/a"), "a");
  assert.equal(below("/w", "/w"), "");
});

test("variables are grouped by type, and every word of a search must be there", () => {
  const variable = (type, name, value) => ({ type, name, description: "", stability: "user", value });
  const all = [variable("git", "branch", "main"), variable("file", "x"), variable("git", "status", " M")];
  assert.deepEqual(rowsOf(all, "").map((row) => row.key ?? row.type), ["file", "file:x", "git", "git:branch", "git:status"]);
  assert.deepEqual(rowsOf(all, "git MAIN").map((row) => row.key ?? row.type), ["git", "git:branch"]);
  const used = new Map([["git:status", 2]]);
  assert.deepEqual(rowsOf(all, "git", used).map((row) => row.key ?? row.type), ["git", "git:status", "git:branch"]);
  const many = rowsOf(Array.from({ length: 5000 }, (_, index) => variable("t", `v${index}`)), "");
  assert.deepEqual(rowsBetween(many, 32 + 44 * 100, 32 + 44 * 102).map(({ key }) => key), ["t:v100", "t:v101"]);
});

test("the last five texts that were set aside are kept, the newest first, and a text once", () => {
  const storage = new MemoryStorage([["proem.aside.x", "{"], ["proem.draft.y", "{}"]]);
  for (let at = 1; at <= 7; at += 1) assert.ok(setAside(storage, `text ${at}`, "why", at));
  assert.deepEqual(asides(storage).map(({ at }) => at), [7, 6, 5, 4, 3]);
  assert.ok(setAside(storage, "text 5", "again", 8));
  assert.deepEqual(asides(storage).map(({ template }) => template), ["text 5", "text 7", "text 6", "text 4", "text 3"]);
  assert.ok(setAside(storage, "at once", "why", 8));
  assert.equal(asides(storage).length, 5);
  assert.equal(setAside(storage, "ä".repeat(600_000), "too long", 9), false);
  assert.equal(asides(storage)[0].template, "at once");
});

test("a full storage drops older texts for a newer one, and says when that does not help", () => {
  const storage = new MemoryStorage();
  for (let at = 1; at <= 3; at += 1) setAside(storage, `text ${at}`, "why", at);
  const { setItem } = storage;
  storage.setItem = (key, value) => {
    if (storage.size > 1) throw new Error("full");
    setItem(key, value);
  };
  assert.ok(setAside(storage, "newest", "why", 4));
  assert.deepEqual(asides(storage).map(({ template }) => template), ["newest", "text 3"]);
  storage.setItem = (key, value) => {
    if (value.includes("never")) throw new Error("full");
    setItem(key, value);
  };
  assert.equal(setAside(storage, "never", "why", 5), false);
  assert.deepEqual(asides(storage).map(({ template }) => template), ["newest", "text 3"]);
});

test("a tag names a path unless it has brackets, breaks, controls or white space at its end", () => {
  for (const path of ["file:a b.md", "file:ü/日本.md", "file:.env", "file:dir /x", "file:\u202e"]) assert.equal(unfit(path), undefined);
  for (const path of ["file:a]b", "file:[id]/x", "file:a\nb", "file:a\u2028b", "file:\u0007", "file:a\u009b", "file:a ", "file:a\u00a0"]) {
    assert.equal(typeof unfit(path), "string", JSON.stringify(path));
  }
});
