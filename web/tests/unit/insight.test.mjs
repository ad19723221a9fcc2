import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./load.mjs";

globalThis.location = { hash: "" };
globalThis.addEventListener = () => {};
const { axis, dollars, percent, ticks, tokens } = await load("insight/figures.ts");
const { folded, inSight, layout, segments } = await load("insight/bars.ts");
const { sides } = await load("insight/excerpt.ts");
const { everyDay } = await load("insight/days.ts");
const { causesOf } = await load("overview/causes.ts");
const { demo } = await load("overview/demo.ts");
const { shortPath } = await load("lib/paths.ts");

test("money keeps its first digits and never becomes nothing", () => {
  const cases = [
    [null, "no price"], [0, "$0"], [0.00001, "<$0.0001"], [0.00044, "$0.0004"], [0.0095, "$0.0095"], [0.106, "$0.106"],
    [1.239, "$1.24"], [99.999, "$100.00"], [1234.5, "$1,235"], [-0.5, "−$0.500"],
  ];
  for (const [usd, text] of cases) assert.equal(dollars(usd), text, String(usd));
});

test("shares are rounded down, and a small one is not nothing", () => {
  const cases = [[0, 0, "–"], [0, 9, "0 %"], [1, 1000, "<1 %"], [999, 1000, "99 %"], [1000, 1000, "100 %"]];
  for (const [part, all, text] of cases) assert.equal(percent(part, all), text);
  assert.deepEqual([tokens(undefined), tokens(9999), tokens(12_345), tokens(2_500_000)], ["unknown", "9,999", "12.3K", "2.5M"]);
});

test("an axis ends at a round number above the most", () => {
  for (const most of [1, 7, 99, 100, 101, 12_345, 2e6]) {
    const { top, step } = axis(most);
    assert.ok(top >= most && top < most + step, `${most}: ${top}`);
    assert.equal(ticks({ top, step }).at(-1), top);
  }
  assert.deepEqual(axis(0), { top: 1, step: 1 });
});

const epoch = (number, fingerprint) => ({ epoch: number, fingerprint, reason: "reload", digest: fingerprint, opened_at: number });
const call = (fields) => ({ id: String(Math.random()), conversation: "c", provider: "anthropic", verdict: "hit", alarming: false, lost_tokens: 0, read: 100, written: 10, uncached: 5, ...fields });

test("what was lost is a part of what was written or paid in full", () => {
  assert.deepEqual(segments(call({})), { read: 100, written: 10, uncached: 5, lost: 0 });
  assert.deepEqual(segments(call({ verdict: "provider", lost_tokens: 12 })), { read: 100, written: 0, uncached: 3, lost: 12 });
  assert.deepEqual(segments(call({ verdict: "expired", lost_tokens: 999 })), { read: 100, written: 0, uncached: 0, lost: 15 });
});

test("epochs with the same bytes are one group, and 500 of them are few", () => {
  const epochs = Array.from({ length: 500 }, (_, index) => epoch(index + 1, String(Math.floor(index / 100))));
  assert.deepEqual(folded(epochs).map((group) => [group[0].epoch, group.length]), [[1, 100], [101, 100], [201, 100], [301, 100], [401, 100]]);
  assert.equal(layout([call({ epoch: 250 })], epochs).groups.length, 5);
});

test("calls stand below their epochs in the order of time, and sub-agents have lanes", () => {
  const epochs = [epoch(1, "a"), epoch(2, "b"), epoch(3, "c")];
  const calls = [call({ epoch: 1 }), call({ epoch: 1, thread: "explore" }), call({ epoch: 3, verdict: "system_changed", alarming: true, lost_tokens: 9, lost_usd: 0.5 })];
  const { groups, lanes, bars, width } = layout(calls, epochs);
  assert.deepEqual(groups.map(({ epochs, bars, lost, lostUsd }) => [epochs[0].epoch, bars.length, lost, lostUsd]), [[1, 2, 0, null], [2, 0, 0, null], [3, 1, 9, 0.5]]);
  assert.deepEqual(lanes.map(({ thread, from, first }) => [thread, from?.number, first?.number]), [["", undefined, 1], ["explore", 1, 2]]);
  assert.deepEqual(bars.map(({ lane }) => lane), [0, 1, 0]);
  assert.ok(bars.every(({ x }, index) => index === 0 || x > bars[index - 1].x));
  assert.ok(bars.at(-1).x < width);
});

test("threads are a tree: each stands below the one that it comes from", () => {
  const threads = [["b", "a"], ["a", undefined], ["c", "other-conversation"], ["d", "b"], ["x", "y"], ["y", "x"]];
  const { lanes } = layout([call({}), ...threads.map(([thread, parent]) => call({ thread, parent }))], []);
  assert.deepEqual(lanes.map(({ thread, parent, depth }) => [thread, parent, depth]), [
    ["", -1, 0], ["a", 0, 1], ["b", 1, 2], ["d", 2, 3], ["c", 0, 1], ["x", 0, 1], ["y", 5, 2],
  ]);
});

test("calls without an epoch are shown, too", () => {
  const { groups, bars } = layout([call({}), call({})], []);
  assert.deepEqual([groups.length, bars.length], [1, 2]);
});

test("of ten thousand bars only those in sight are drawn, and none of these is left out", () => {
  const { bars } = layout(Array.from({ length: 10_000 }, () => call({})), []);
  for (const [from, to] of [[0, 1000], [80_000, 81_000], [bars.at(-1).x, bars.at(-1).x + 1000], [-50, 5]]) {
    const drawn = new Set(inSight(bars, from, to));
    const wanted = bars.filter(({ x }) => x + 12 >= from && x <= to);
    assert.ok(wanted.every((bar) => drawn.has(bar)) && drawn.size <= wanted.length + 3, `${from}: ${drawn.size} of ${wanted.length}`);
  }
});

test("two excerpts are cut where they differ, and where they are the same again", () => {
  const cases = [
    [["It is 13:59 now", "It is 14:07 now"], ["It is 1", "3:59", "4:07", " now", " now"]],
    [["aa", "aaa"], ["aa", "", "a", "", ""]],
    [["x😀y", "x😁y"], ["x", "😀", "😁", "y", "y"]],
    [["same", "same"], ["same", "", "", "", ""]],
    [["Use spaces.\nThen stop, an", "Use tabs.\nThen stop, and "], ["Use ", "space", "tab", "s.\nThen stop, an", "s.\nThen stop, and "]],
    [["abc", "xyz"], ["", "abc", "xyz", "", ""]],
  ];
  for (const [[before, after], [head, one, other, tailBefore, tailAfter]] of cases) {
    assert.deepEqual(sides(before, after), { head, before: one, after: other, tailBefore, tailAfter }, before);
  }
});

test("a day without a call is a day, too", () => {
  const now = Date.UTC(2026, 10, 3, 1);
  const days = everyDay([{ day: "2026-11-02", calls: 1, read: 2, written: 3, uncached: 4, usd: 5, lost_usd: 6 }], 4, now);
  assert.deepEqual(days.map(({ day, calls }) => [day, calls]), [["2026-10-31", 0], ["2026-11-01", 0], ["2026-11-02", 1], ["2026-11-03", 0]]);
});

test("misses of one culprit are one cause, and the dearest is first", () => {
  const file = { kind: "instruction_file", path: "/w/AGENTS.md", line: 3 };
  const causes = causesOf([
    call({ verdict: "system_changed", owner: file, lost_usd: 1, lost_tokens: 10, conversation: "new" }),
    call({ verdict: "provider", owner: { kind: "provider" }, lost_usd: 1.5, lost_tokens: 20 }),
    call({ verdict: "system_changed", owner: { ...file, line: 9 }, lost_usd: 2, lost_tokens: 30, conversation: "old" }),
    call({ verdict: "message_edited", owner: { kind: "unknown" }, lost_tokens: 5 }),
  ]);
  assert.deepEqual(causes.map(({ name, usd, calls, conversation }) => [name, usd, calls, conversation]), [
    ["/w/AGENTS.md:3", 3, 2, "new"], ["", 1.5, 1, "c"], ["", 0, 1, "c"],
  ]);
});

test("the demo is the same at every visit", () => {
  const now = Date.UTC(2026, 10, 17, 12);
  assert.deepEqual(demo(30, now), demo(30, now));
  assert.equal(demo(7, now).days.length, 7);
});

test("paths are shown from the folder, and the whole path where that is shorter", () => {
  const cases = [
    ["/w/p/AGENTS.md", "/w/p", "AGENTS.md"], ["/w/AGENTS.md", "/w/p", "../AGENTS.md"], ["/etc/x", "/w/p", "/etc/x"],
    ["/w/p/a/b.md", "/w/p/", "a/b.md"], ["tool", "/w/p", "tool"],
  ];
  for (const [path, folder, shown] of cases) assert.equal(shortPath(path, folder), shown, path);
});
