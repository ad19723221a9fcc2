// The words for verdicts and owners, and where an owner leads.

import { href, withQuery } from "../lib/route.svelte.ts";
import type { Call, CallOwner } from "./shapes.ts";

const VERDICTS: Record<string, string> = {
  hit: "hit",
  cold_start: "first call",
  expired: "expired",
  below_minimum: "too short to cache",
  model_changed: "model changed",
  parameter_changed: "parameter changed",
  tools_added: "tools added",
  tools_removed: "tools removed",
  tools_reordered: "tools reordered",
  tools_redefined: "tools redefined",
  system_changed: "system prompt changed",
  message_edited: "message edited",
  message_removed: "message removed",
  message_reformed: "message rewritten in another form",
  marker_moved: "cache marker moved",
  marker_missing: "cache marker missing",
  lookback_exceeded: "marker too far away",
  compaction: "compacted",
  fork: "fork",
  routing: "other account, region or key",
  provider: "provider's miss",
  unknown: "unknown",
};

const OWNERS: Record<string, string> = {
  instruction_file: "Instruction file",
  skill: "Skill",
  mcp_server: "MCP server",
  tool: "Tool",
  plugin: "Plugin",
  hook: "Hook",
  clock: "Clock",
  date: "Date",
  git_status: "Git status",
  counter: "Counter",
  random_id: "Random id",
  agent: "Agent",
  agent_version: "Agent version",
  user: "User",
  provider: "Provider",
  time: "Time",
  unknown: "Unknown",
};

/** A word from a newer server stays as it is. */
export const verdictSaid = (verdict: string): string => VERDICTS[verdict] ?? verdict.replaceAll("_", " ");
export const ownerKind = (kind: string): string => OWNERS[kind] ?? kind.replaceAll("_", " ");

/** The owner in words: its kind, and its file with the line, or its name. */
export function ownerSaid(owner: CallOwner | null | undefined): string {
  if (!owner) return "Unknown";
  const line = owner.line ? `:${owner.line}` : "";
  const name = owner.path ? `${owner.path}${line}` : owner.name;
  return [ownerKind(owner.kind), name, owner.by && `by ${owner.by}`].filter(Boolean).join(" ");
}

/** The page that shows an owner: files, skills, hooks and tools are sources of a folder. */
export function ownerAddress(owner: CallOwner | null | undefined, cwd?: string | null): string | undefined {
  const name = owner?.path ?? owner?.name;
  if (!owner || !name || !["instruction_file", "skill", "hook", "tool", "mcp_server"].includes(owner.kind)) return undefined;
  return withQuery(href("sources"), { folder: cwd ?? undefined, search: name });
}

/** The emphasis of a call: a hit is quiet, an expected miss is a remark, an alarming one is a loss. */
export function tone(call: Pick<Call, "verdict" | "alarming">): "hit" | "expected" | "lost" {
  if (call.verdict === "hit") return "hit";
  return call.alarming ? "lost" : "expected";
}

/** The side that a loss is counted for, as people say it. */
export const SIDES: Record<string, string> = {
  ours: "our changes", user: "the user", agent: "the agent", provider: "the provider", unknown: "unknown",
};
