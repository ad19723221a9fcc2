// Misses gathered by what caused them: one row for a file, a tool, a server or a clock, however many calls it broke.

import { momentOf } from "../conversations/time.ts";
import type { Call, CallOwner } from "../insight/shapes.ts";

export interface Cause {
  key: string;
  verdict: string;
  owner?: CallOwner | null;
  /** The file with its line, or the name. */
  name: string;
  usd: number;
  tokens: number;
  calls: number;
  /** The newest call that it broke. */
  conversation: string;
  /** Its id. */
  call: string;
  at?: number;
  cwd?: string | null;
}

/** Gathers misses, the dearest cause first. The calls come in the order of time, the newest first. */
export function causesOf(calls: readonly Call[]): Cause[] {
  const found = new Map<string, Cause>();
  for (const call of calls) {
    const owner = call.owner?.kind === "unknown" ? null : call.owner;
    const name = owner?.path ? `${owner.path}${owner.line ? `:${owner.line}` : ""}` : (owner?.name ?? "");
    const key = [owner ? owner.kind : call.verdict, owner?.path ?? owner?.name ?? "", owner?.by ?? ""].join("\u0000");
    const known = found.get(key);
    if (known) {
      known.usd += call.lost_usd ?? 0;
      known.tokens += call.lost_tokens;
      known.calls += 1;
      continue;
    }
    found.set(key, {
      key, verdict: call.verdict, owner, name, usd: call.lost_usd ?? 0, tokens: call.lost_tokens, calls: 1,
      conversation: call.conversation, call: call.id, at: momentOf(call.at), cwd: call.cwd,
    });
  }
  return [...found.values()].sort((a, b) => b.usd - a.usd || b.tokens - a.tokens || b.calls - a.calls);
}
