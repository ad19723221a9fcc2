// The origin of a piece of a prompt, as text.

import type { Source } from "./api.ts";
import { visibleName } from "./visible.ts";

/** Describes a source, at the line that is `breaks` line breaks after its place. Invisible characters of a path or a name are
    shown in the result. */
export const describeSource = (source: Source, breaks = 0): string => visibleName(describe(later(source, breaks)));

/** The k-th line of a span is k lines after the place of its source. */
function later(source: Source, breaks: number): Source {
  if (breaks === 0 || !("line" in source) || !source.line) return source;
  return { ...source, line: source.line + breaks, ...("column" in source ? { column: null } : {}) };
}

function describe(source: Source): string {
  const place = at(source);
  switch (source.kind) {
    case "built_in": return `built in: ${source.name}${place}`;
    case "file": return `${source.path}${place}`;
    case "variable": return source.path ? `[${source.key}] from ${source.path}${place}` : `[${source.key}]`;
    case "request": return source.field === "template" ? `the template${place}` : `the request's ${source.field}`;
    case "pack": return `pack ${source.path}, ${source.key}${place}`;
    case "profile": return `profile ${source.profile}, ${source.key}`;
    case "hook": return `hook ${source.name}`;
    default: return String((source as Source).kind);
  }
}

function at(source: Source): string {
  if (!("line" in source) || !source.line) return "";
  return "column" in source && source.column ? `:${source.line}:${source.column}` : `:${source.line}`;
}
