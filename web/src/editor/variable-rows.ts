// The variables as a flat list of rows, headings included, each with its place: a list of thousands is drawn in part.

import type { Variable } from "../lib/api.ts";

export type Row =
  | { kind: "heading"; type: string; count: number; top: number; height: number }
  | { kind: "variable"; variable: Variable; key: string; top: number; height: number };

export const HEADING_HEIGHT = 32;
export const VARIABLE_HEIGHT = 44;

/** The content of the tag: a variable with a free name ends with its colon. */
export const keyOf = ({ type, name, dynamic }: Variable): string => (dynamic ? `${type}:` : `${type}:${name}`);

/** The groups that are of most use, first: what stands in a prompt because of the project, then the rest in its order. */
const FIRST = ["file", "git", "project", "prompt"];

/** Variables whose key, description or value holds every word of the search, grouped by type; those that the template uses
    come first in their group. */
export function rowsOf(variables: readonly Variable[], search: string, uses: ReadonlyMap<string, number> = new Map()): Row[] {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const groups = new Map<string, Variable[]>();
  for (const variable of variables) {
    if (!matches(variable, words)) continue;
    const group = groups.get(variable.type);
    if (group) group.push(variable);
    else groups.set(variable.type, [variable]);
  }
  const rows: Row[] = [];
  let top = 0;
  const rank = (type: string) => (FIRST.indexOf(type) + FIRST.length + 1) % (FIRST.length + 1);
  const ordered = [...groups].sort(([a], [b]) => rank(a) - rank(b));
  for (const [type, unsorted] of ordered) {
    const isUsed = (variable: Variable) => Number((uses.get(keyOf(variable)) ?? 0) > 0);
    const group = unsorted.toSorted((a, b) => isUsed(b) - isUsed(a));
    rows.push({ kind: "heading", type, count: group.length, top, height: HEADING_HEIGHT });
    top += HEADING_HEIGHT;
    for (const variable of group) {
      rows.push({ kind: "variable", variable, key: keyOf(variable), top, height: VARIABLE_HEIGHT });
      top += VARIABLE_HEIGHT;
    }
  }
  return rows;
}

function matches({ type, name, description, value }: Variable, words: readonly string[]): boolean {
  const text = `${type}:${name} ${description} ${value ?? ""}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** The rows that touch `top..bottom`. */
export function rowsBetween(rows: readonly Row[], top: number, bottom: number): Row[] {
  let low = 0;
  let high = rows.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rows[middle]!.top + rows[middle]!.height > top) high = middle;
    else low = middle + 1;
  }
  let end = low;
  while (end < rows.length && rows[end]!.top < bottom) end += 1;
  return rows.slice(low, end);
}
