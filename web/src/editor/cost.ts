// The tokens of a prompt by section, and within a section by how often its parts change.

import type { Preview, SectionStats, Stability, Stats } from "../lib/api.ts";
import { stabilityRank } from "../lib/stability.ts";

export interface Segment {
  section: SectionStats;
  stability: Stability;
  tokens: number;
}

/** Tokens are counted per section; its parts share them by their bytes, and nothing is lost by rounding. */
export function segmentsOf({ stats, sections, spans }: Pick<Preview, "stats" | "sections" | "spans">): Segment[] {
  return stats.sections.flatMap((section) => {
    const place = sections.find(({ id, carrier }) => id === section.id && carrier === section.carrier);
    const bytes = new Map<Stability, number>();
    for (const span of spans) {
      if (!place || span.carrier !== place.carrier || span.end <= place.start || span.start >= place.end) continue;
      const inside = Math.min(span.end, place.end) - Math.max(span.start, place.start);
      bytes.set(span.stability, (bytes.get(span.stability) ?? 0) + inside);
    }
    if (bytes.size === 0) return section.tokens > 0 ? [{ section, stability: section.stability, tokens: section.tokens }] : [];
    return share(section, bytes);
  });
}

function share(section: SectionStats, bytes: Map<Stability, number>): Segment[] {
  const all = [...bytes.values()].reduce((sum, each) => sum + each, 0);
  const ordered = [...bytes].sort(([a], [b]) => stabilityRank(a) - stabilityRank(b));
  let seen = 0;
  let given = 0;
  return ordered.flatMap(([stability, own]) => {
    seen += own;
    const tokens = Math.round((section.tokens * seen) / all) - given;
    given += tokens;
    return tokens > 0 ? [{ section, stability, tokens }] : [];
  });
}

/** True if a model would cache a longer prefix, and caches nothing of this one. A warm turn can still read the history. */
export const isTooShort = ({ min_tokens, prefix_tokens, warm }: Pick<Stats, "min_tokens" | "prefix_tokens" | "warm">): boolean =>
  min_tokens != null && min_tokens > prefix_tokens && (warm?.read ?? 0) === 0;

const CACHED: Record<SectionStats["cached"], string> = {
  yes: "cached",
  as_history: "cached as history",
  no: "not cached",
  too_short: "too short to be cached",
};
export const cachedWords = (cached: SectionStats["cached"]): string => CACHED[cached] ?? cached;
