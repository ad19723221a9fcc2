// Invented figures for the demo of the overview. The same ones at every visit: a small generator with a fixed seed.

import { everyDay, dayOf, type Day } from "../insight/days.ts";
import type { Call } from "../insight/shapes.ts";
import { causesOf } from "./causes.ts";
import type { Summary } from "./data.ts";

const DAY_MS = 86_400_000;

function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

type Miss = Pick<Call, "conversation" | "verdict" | "owner" | "lost_tokens" | "lost_usd">;

const MISSES: readonly Miss[] = [
  { conversation: "billing-refactor", verdict: "system_changed", owner: { kind: "instruction_file", path: "src/AGENTS.md", line: 10 }, lost_tokens: 96_400, lost_usd: 0.433 },
  { conversation: "search-latency", verdict: "tools_reordered", owner: { kind: "mcp_server", name: "github" }, lost_tokens: 71_250, lost_usd: 0.321 },
  { conversation: "release-notes", verdict: "system_changed", owner: { kind: "clock" }, lost_tokens: 38_900, lost_usd: 0.175 },
  { conversation: "onboarding-docs", verdict: "provider", owner: { kind: "provider" }, lost_tokens: 30_110, lost_usd: 0.135 },
  { conversation: "billing-refactor", verdict: "tools_added", owner: { kind: "tool", name: "fetch" }, lost_tokens: 21_220, lost_usd: 0.095 },
  { conversation: "search-latency", verdict: "system_changed", owner: { kind: "agent_version", by: "claude-code", name: "2.1.326" }, lost_tokens: 12_600, lost_usd: 0.057 },
];

export function demo(span: number, now: number): Summary {
  const random = generator(7);
  const days: Day[] = Array.from({ length: 30 }, (_, index) => {
    const day = dayOf(now - (29 - index) * DAY_MS);
    const isFree = [0, 6].includes(new Date(`${day}T00:00:00Z`).getUTCDay());
    const input = (isFree ? 0.3 : 2.2) * 1e6 * (0.6 + random());
    const share = Math.min(0.97, 0.78 + 0.2 * random());
    const [read, rest] = [Math.round(input * share), input * (1 - share)];
    const [written, uncached] = [Math.round(rest * 0.8), Math.round(rest * 0.2)];
    const usd = (read * 0.5 + written * 6.25 + uncached * 5) / 1e6;
    return { day, calls: Math.round(input / 45_000), read, written, uncached, usd, lost_usd: usd * 0.08 * random() };
  });
  const shown = everyDay(days, span, now);
  const sum = (figure: (day: Day) => number) => shown.reduce((total, day) => total + figure(day), 0);
  const total = {
    calls: sum(({ calls }) => calls), read: sum(({ read }) => read), written: sum(({ written }) => written),
    uncached: sum(({ uncached }) => uncached), usd: sum(({ usd }) => usd),
  };
  const misses: Call[] = MISSES.map((miss, index) => ({
    ...miss, id: `demo-${index}`, provider: "anthropic", alarming: true, purpose: "main", why: "", has_request: true,
    at: new Date(now - (index + 1) * 7 * 3_600_000).toISOString(),
  }));
  const conversation = (name: string, usd: number, share: number, lost: number, hours: number) => ({
    conversation: name, usd, read: share, input: 1, lost_usd: lost, active_at: now - hours * 3_600_000,
  });
  return {
    days: shown,
    marks: [{ day: dayOf(now - 2 * DAY_MS), label: "version 5", address: "#/versions" }],
    total,
    saved: (total.read * 4.5) / 1e6,
    lost: { ours: 0.849, provider: 0.135, agent: 0.232, user: 0, unknown: 0 },
    unpriced: 0,
    isListPrice: false,
    causes: causesOf(misses),
    isCut: false,
    conversations: [
      conversation("billing-refactor", 4.12, 0.91, 0.528, 3), conversation("search-latency", 3.38, 0.88, 0.378, 9),
      conversation("onboarding-docs", 1.21, 0.95, 0.135, 30), conversation("release-notes", 0.64, 0.74, 0.175, 52),
    ],
    pricesAsOf: "the demo",
  };
}
