// Where a piece of a prompt comes from, in words.

import type { Source } from "./api.ts";
import { visibleName } from "./visible.ts";

/** A path or a name may hide characters: what comes back shows them. */
export const describeSource = (source: Source): string => visibleName(describe(source));

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
