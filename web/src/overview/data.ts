// The figures of the overview, from the API.

import { api } from "../lib/api.ts";
import { href } from "../lib/route.svelte.ts";
import { dayOf, everyDay, type Day, type Mark } from "../insight/days.ts";
import type { Call } from "../insight/shapes.ts";
import { causesOf, type Cause } from "./causes.ts";

export type { Cause };

export interface Dear {
  conversation: string;
  usd: number;
  lost_usd: number;
  read: number;
  input: number;
  active_at?: number | null;
}

export interface Summary {
  days: Day[];
  marks: Mark[];
  total: Omit<Day, "day" | "lost_usd">;
  saved: number;
  lost: { ours: number; user: number; agent: number; provider: number; unknown: number };
  /** Calls without a price. */
  unpriced: number;
  isListPrice: boolean;
  causes: Cause[];
  /** True if there are more misses than causes were gathered from. */
  isCut: boolean;
  conversations: Dear[];
  pricesAsOf?: string | null;
}

const DAY_MS = 86_400_000;
const PAGE = 200;
const MISSES_MOST = 1_000;
const DEAR = 6;
const VERSIONS = 50;

/** Reads the figures of the last days, whole days in UTC. */
export async function load(days: number, now: number, signal: AbortSignal): Promise<Summary> {
  const since = `${dayOf(now - (days - 1) * DAY_MS)}T00:00:00Z`;
  const [usage, misses, dear, { versions }] = await Promise.all([
    api.usage({ since, by: "day" }, signal),
    missesSince(since, signal),
    api.conversations({ sort: "usd", since, limit: DEAR }, signal),
    api.versions({ limit: VERSIONS, text: false }, signal),
  ]);
  const { totals } = usage;
  return {
    days: everyDay(
      usage.groups.map((group) => ({
        day: group.key, calls: group.calls, read: group.read, written: group.written, uncached: group.uncached, usd: group.usd,
        lost_usd: Object.values(group.lost_usd).reduce((sum, usd) => sum + usd, 0),
      })),
      days, now,
    ),
    marks: versions
      .filter(({ written_at }) => written_at >= Date.parse(since))
      .map(({ version, written_at }) => ({ day: dayOf(written_at), label: `version ${version}`, address: href("versions", version) }))
      .reverse(),
    total: totals,
    saved: totals.saved_usd ?? 0,
    lost: totals.lost_usd,
    unpriced: totals.unpriced,
    isListPrice: totals.is_list_price,
    causes: causesOf(misses.calls),
    isCut: misses.isCut,
    conversations: dear.conversations.map((item) => ({
      conversation: item.conversation, usd: item.usd ?? 0, lost_usd: item.lost_usd ?? 0, read: item.read ?? 0, input: item.input ?? 0, active_at: item.active_at,
    })),
  };
}

/** The misses that a report shows unasked, the newest first. */
async function missesSince(since: string, signal: AbortSignal): Promise<{ calls: Call[]; isCut: boolean }> {
  const calls: Call[] = [];
  let after: string | undefined;
  do {
    const page = await api.calls({ alarming: true, since, after, limit: PAGE }, signal);
    calls.push(...page.calls);
    after = page.next ?? undefined;
  } while (after !== undefined && calls.length < MISSES_MOST);
  return { calls, isCut: after !== undefined };
}
