// The margin of a prompt: for each line the file and its real line, or what else the line comes from.

import type { Source } from "./api.ts";
import { visibleName } from "./visible.ts";

export interface Blame {
  /** Equal for lines that follow each other in one source. */
  key: string;
  /** The words at the first line of a block. */
  name: string;
  /** The line in the file or the template, from 1. */
  line?: number;
  /** The whole path of a file. */
  path?: string;
}

/** The origin of a line that lies `breaks` line breaks after the beginning of its source. */
export function blameOf(source: Source, breaks: number): Blame {
  const line = "line" in source && source.line ? source.line + breaks : undefined;
  switch (source.kind) {
    case "file": return { key: source.path, name: shortName(source.path), path: source.path, line };
    case "variable":
      return source.path
        ? { key: `${source.key} ${source.path}`, name: shortName(source.path), path: source.path, line }
        : { key: source.key, name: `[${visibleName(source.key)}]` };
    case "request": return { key: source.field, name: source.field === "template" ? "template" : `request: ${visibleName(source.field)}`, line };
    case "built_in": return { key: source.name, name: "built in", line };
    case "pack": return { key: `${source.path} ${source.key}`, name: shortName(source.path), path: source.path, line };
    case "profile": return { key: `${source.profile} ${source.key}`, name: `profile ${visibleName(source.profile)}` };
    case "hook": return { key: source.name, name: `hook ${visibleName(source.name)}` };
    default: return { key: String((source as Source).kind), name: String((source as Source).kind) };
  }
}

/** The last part of a path; of a skill the folder too, because all of them have files of one name. */
function shortName(path: string): string {
  const parts = path.split("/").filter(Boolean);
  return visibleName(parts.slice(parts.at(-1) === "SKILL.md" ? -2 : -1).join("/"));
}
