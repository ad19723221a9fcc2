// The bars of a timeline: groups of epochs, lanes of threads, and the place of each call. Pure, so that it can be tested.

import type { Epoch } from "../lib/api.ts";
import type { Call } from "./shapes.ts";

export const BAR = 12;
export const GAP = 4;
const STEP = BAR + GAP;
/** The width that the name of an epoch needs. */
export const GROUP_LEAST = 132;
const GROUP_GAP = 12;

export interface Segments {
  read: number;
  written: number;
  uncached: number;
  /** The part of what was written or paid in full that should have been read. */
  lost: number;
}

export interface Bar {
  call: Call;
  /** Its number among the calls of the conversation, from 1. */
  number: number;
  x: number;
  lane: number;
  segments: Segments;
  total: number;
}

export interface Group {
  /** The epochs with the same bytes, in order; empty for calls whose epoch is not known. */
  epochs: Epoch[];
  x: number;
  width: number;
  bars: Bar[];
  lost: number;
  lostUsd: number | null;
}

/** The calls of one thread: the main one, a sub-agent's, or a fork's. */
export interface Lane {
  /** Empty for the main thread. */
  thread: string;
  /** The lane that it comes from, and the number of steps to the main one. */
  parent: number;
  depth: number;
  /** The call after which it began, and its first one. */
  from?: Bar;
  first?: Bar;
}

export interface Layout {
  groups: Group[];
  lanes: Lane[];
  bars: Bar[];
  width: number;
  most: number;
}

/** The tokens of a call by what happened to them; what was lost is taken from the dearer kinds. */
export function segments(call: Call): Segments {
  const read = call.read ?? 0;
  let [written, uncached] = [call.written ?? 0, call.uncached ?? 0];
  const lost = Math.min(call.verdict === "hit" ? 0 : call.lost_tokens, written + uncached);
  const ofWritten = Math.min(written, lost);
  written -= ofWritten;
  uncached -= lost - ofWritten;
  return { read, written, uncached, lost };
}

export const totalOf = ({ read, written, uncached, lost }: Segments): number => read + written + uncached + lost;

/** Folds epochs that have the same bytes as the one before: a timeline shows what changed. */
export function folded(epochs: readonly Epoch[]): Epoch[][] {
  const groups: Epoch[][] = [];
  for (const epoch of epochs) {
    const last = groups.at(-1);
    if (last?.at(-1)?.fingerprint === epoch.fingerprint) last.push(epoch);
    else groups.push([epoch]);
  }
  return groups;
}

/** The threads of calls as a tree, each below the one that it comes from; children in the order of their first calls. */
export function lanesOf(calls: readonly Call[]): Lane[] {
  const parents = new Map<string, string>();
  for (const { thread, parent } of calls) {
    if (thread && !parents.has(thread)) parents.set(thread, parent && parent !== thread ? parent : "");
  }
  const lanes: Lane[] = [{ thread: "", parent: -1, depth: 0 }];
  const seen = new Set<string>([""]);
  const add = (thread: string, parent: number, depth: number) => {
    seen.add(thread);
    const lane = lanes.push({ thread, parent, depth }) - 1;
    place(thread, lane, depth + 1);
  };
  function place(of: string, lane: number, depth: number) {
    for (const [thread, parent] of parents) {
      // A parent outside of the threads of this conversation is the conversation itself, or another one.
      const isChild = of === "" ? parent === "" || !parents.has(parent) : parent === of;
      if (!isChild || seen.has(thread)) continue;
      add(thread, lane, depth);
    }
  }
  place("", 0, 1);
  // Parents in a circle would be left out.
  for (const thread of parents.keys()) if (!seen.has(thread)) add(thread, 0, 1);
  return lanes;
}

/** Places calls, in the order of time, below the epochs that they were made with. */
export function layout(calls: readonly Call[], epochs: readonly Epoch[]): Layout {
  const lanes = lanesOf(calls);
  const laneOf = new Map(lanes.map(({ thread }, index) => [thread, index]));
  const last: (Bar | undefined)[] = [];
  const groupsOf = folded(epochs);
  const groupOf = new Map(groupsOf.flatMap((group, index) => group.map(({ epoch }) => [epoch, index] as const)));
  const groups: Group[] = [];
  const bars: Bar[] = [];
  let [x, most, before] = [0, 0, -2];
  const open = (epochs: Epoch[]): Group => {
    const last = groups.at(-1);
    if (last) x = last.x + last.width + GROUP_GAP;
    const group: Group = { epochs, x, width: GROUP_LEAST, bars: [], lost: 0, lostUsd: null };
    groups.push(group);
    return group;
  };
  const opened = new Set<number>();
  calls.forEach((call, index) => {
    const wanted = call.epoch ? (groupOf.get(call.epoch) ?? -1) : groups.length === 0 ? -1 : before;
    if (wanted !== before || groups.length === 0) {
      // Epochs without a call stand before the next one with a call.
      for (let number = 0; number < wanted; number += 1) {
        if (opened.has(number) || number < before) continue;
        opened.add(number);
        open(groupsOf[number]!);
      }
      if (wanted >= 0) opened.add(wanted);
      open(wanted >= 0 ? groupsOf[wanted]! : []);
      before = wanted;
    }
    const group = groups.at(-1)!;
    const parts = segments(call);
    const bar: Bar = {
      call, number: index + 1, x: group.x + group.bars.length * STEP,
      lane: laneOf.get(call.thread ?? "") ?? 0, segments: parts, total: totalOf(parts),
    };
    const lane = lanes[bar.lane]!;
    if (!lane.first) [lane.first, lane.from] = [bar, last[lane.parent]];
    last[bar.lane] = bar;
    group.bars.push(bar);
    bars.push(bar);
    group.width = Math.max(group.width, group.bars.length * STEP);
    group.lost += parts.lost;
    if (call.lost_usd && call.verdict !== "hit") group.lostUsd = (group.lostUsd ?? 0) + call.lost_usd;
    most = Math.max(most, bar.total);
  });
  groupsOf.forEach((epochs, number) => {
    if (!opened.has(number) && number > before) open(epochs);
  });
  const end = groups.at(-1);
  return { groups, lanes, bars, width: end ? end.x + end.width : 0, most };
}

/** The bars between two places, found by halving: a long conversation draws only what is in sight. */
export function inSight(bars: readonly Bar[], from: number, to: number): Bar[] {
  const first = (x: number) => {
    let [low, high] = [0, bars.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (bars[middle]!.x < x) low = middle + 1;
      else high = middle;
    }
    return low;
  };
  return bars.slice(Math.max(0, first(from - STEP)), first(to + STEP));
}
