// The files of a table of agents.

import type { Agent } from "../lib/api.ts";

/** All files that any agent looked at, by path. */
export function filesOf(agents: readonly Agent[]): string[] {
  return [...new Set(agents.flatMap(({ files }) => files.map(({ path }) => path)))].toSorted();
}
