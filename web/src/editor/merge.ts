// Two texts that began from one: both changes together, where they do not share a line.

import { diff } from "@codemirror/merge";

interface Edit {
  from: number;
  to: number;
  insert: string;
  side: "theirs" | "mine";
}

const edits = (base: string, text: string, side: Edit["side"]): Edit[] =>
  diff(base, text).map(({ fromA, toA, fromB, toB }) => ({ from: fromA, to: toA, insert: text.slice(fromB, toB), side }));

/** The base with the changes of both; nothing where both changed a line. */
export function merge(base: string, theirs: string, mine: string): string | null {
  const lineStart = (at: number) => base.lastIndexOf("\n", at - 1) + 1;
  const lineEnd = (at: number) => {
    const end = base.indexOf("\n", at);
    return end < 0 ? base.length : end;
  };
  const all = [...edits(base, theirs, "theirs"), ...edits(base, mine, "mine")].sort((a, b) => a.from - b.from || a.to - b.to);
  let text = "";
  let at = 0;
  let last: Edit | null = null;
  for (const edit of all) {
    if (last && edit.from === last.from && edit.to === last.to && edit.insert === last.insert) continue;
    if (last && edit.side !== last.side && lineStart(edit.from) <= lineEnd(last.to)) return null;
    text += base.slice(at, edit.from) + edit.insert;
    at = edit.to;
    last = edit;
  }
  return text + base.slice(at);
}
