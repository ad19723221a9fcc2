// What costs money and could be different, the dearest first. All figures are the server's; a fix is a change of the template
// that can be undone, and its saving comes from a preview of the changed text.

import type { Text } from "@codemirror/state";
import type { Range, Span } from "../lib/api.ts";
import { blameOf } from "../lib/blame.ts";
import { count, dollars } from "../lib/format.ts";
import type { Answer } from "./answer.ts";

/** A section that adds fewer tokens to each turn is not worth a word. */
const TURN_TOKENS_LEAST = 200;

export interface Finding {
  kind: "break" | "turn" | "short";
  title: string;
  detail: string;
  tokens: number;
  usd: number | null;
  /** The tag in the template, in the places of the answer. */
  place?: Range;
}

export function findingsOf({ preview, breaks }: Answer): Finding[] {
  const { stats, prices } = preview;
  const perToken = prices?.input == null ? null : prices.input / 1e6;
  const found: Finding[] = preview.breaks.map((each, index) => ({
    kind: "break",
    title: `${each.stability === "day" ? "The first new conversation of each day" : "Every new conversation"} re-pays ${count(each.lost_tokens)} tokens${each.usd == null ? "" : ` (${dollars(each.usd)})`}.`,
    detail: `\`[${each.key}]\` ${each.stability === "day" ? "changes every day" : "changes with every turn"} and stands at token ${count(each.token)}. Inside a conversation it is free: its prompt is frozen.`,
    tokens: each.lost_tokens,
    usd: each.usd ?? null,
    place: breaks[index],
  }));
  for (const section of stats.sections) {
    if (section.carrier !== "turn" || section.tokens < TURN_TOKENS_LEAST) continue;
    const usd = perToken === null ? null : section.tokens * perToken;
    const largest = largestIn(preview.spans, preview.sections.find(({ id, carrier }) => id === section.id && carrier === section.carrier));
    found.push({
      kind: "turn",
      title: `Every turn sends ${count(section.tokens)} tokens of \`${section.id}\`${usd === null ? "" : ` (${dollars(usd)})`}.`,
      detail: largest ? `Most of it is ${name(largest)}. It is sent again with each turn, and stays in the history.` : "It is sent again with each turn, and stays in the history.",
      tokens: section.tokens,
      usd,
    });
  }
  return found.sort((a, b) => (b.usd ?? 0) - (a.usd ?? 0) || b.tokens - a.tokens);
}

const name = ({ source }: Span): string => {
  const blame = blameOf(source, 0);
  return `\`${blame.path ?? blame.name}\``;
};

function largestIn(spans: readonly Span[], place: (Range & { carrier: string }) | undefined): Span | undefined {
  if (!place) return undefined;
  return spans
    .filter(({ carrier, start, end }) => carrier === place.carrier && start >= place.start && end <= place.end)
    .sort((a, b) => b.end - b.start - (a.end - a.start))[0];
}

export interface Move {
  /** The part that moves. */
  from: number;
  to: number;
  /** The text for the end of the template. */
  text: string;
}

/** Moves the sentence with a tag to the end of the template; nothing for a tag in a block, or one that is there already. */
export function moveToEnd(doc: Text, place: { from: number; to: number }, blocks: readonly Range[]): Move | null {
  if (blocks.some(({ start, end }) => start <= place.from && end >= place.to)) return null;
  const line = doc.lineAt(place.from);
  if (place.to > line.to) return null;
  const before = line.text.slice(0, place.from - line.from);
  const behind = line.text.slice(place.to - line.from);
  const start = line.from + Math.max(...[". ", "! ", "? ", ": "].map((end) => before.lastIndexOf(end) + 1).map((at) => (at > 0 ? at + 1 : 0)));
  const stop = /[.!?](?=\s|$)/.exec(behind);
  const end = stop ? place.to + stop.index + 1 : line.to;
  const isWholeLine = start === line.from && end === line.to;
  // A sentence takes the space behind it along, a line its end.
  const to = isWholeLine && line.to < doc.length ? line.to + 1 : doc.sliceString(end, end + 1) === " " ? end + 1 : end;
  if (doc.sliceString(to).trim() === "") return null;
  return { from: start, to, text: doc.sliceString(start, end).trim() };
}

/** The template after a move. */
export function moved(doc: Text, { from, to, text }: Move): string {
  const rest = doc.sliceString(0, from) + doc.sliceString(to);
  return `${rest}${rest.endsWith("\n") || rest === "" ? "" : "\n"}${text}\n`;
}

/** The blocks of conditions, each from its first tag to its last. */
export function blocksOf({ tags }: Answer): Range[] {
  const blocks = new Map<number, Range>();
  for (const { group, start, end } of tags) {
    if (group == null) continue;
    const known = blocks.get(group);
    blocks.set(group, { start: Math.min(known?.start ?? start, start), end: Math.max(known?.end ?? end, end) });
  }
  return [...blocks.values()];
}
