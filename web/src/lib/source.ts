// The origin of a piece of a prompt, as text.

import type { Source } from "./api.ts";
import { visibleName } from "./visible.ts";

/** Describes a source, at the line that is `breaks` line breaks after its place. Invisible characters of a path or a name are
    shown in the result. */
export const describeSource = (source: Source, breaks = 0): string => visibleName(describe(later(source, breaks)));

/** The k-th line of a span is k lines after the place of its source. */
function later(source: Source, breaks: number): Source {
  if (!source.line || breaks === 0) return source;
  const { column: _, ...rest } = source;
  return { ...rest, line: source.line + breaks } as Source;
}

function describe(source: Source): string {
  const place = at(source);
  switch (source.kind) {
    case "built_in": return `built in: ${source.name ?? ""}${place}`;
    case "file": return `${source.path ?? "a file"}${place}`;
    case "variable": return source.path ? `[${source.key}] from ${source.path}${place}` : `[${source.key}]`;
    case "request": return source.field === "template" ? `the template${place}` : `the request's ${source.field}`;
    case "pack": return `pack ${[source.name, source.path].filter(Boolean).join(", ")}${place}`;
    case "profile": return `profile ${source.profile}, ${source.key ?? ""}${place}`;
    case "hook": return `hook ${source.name ?? source.path ?? ""}`;
    default: return String((source as Source).kind);
  }
}

function at({ line, column }: Source): string {
  if (!line) return "";
  return column ? `:${line}:${column}` : `:${line}`;
}
