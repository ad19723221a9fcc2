// The preview of the template that was sent, with all positions in UTF-16 offsets of that text.

import type { Note, Preview, Range, Span, Stability, Tag } from "../lib/api.ts";
import { rangesToUnits } from "../lib/bytes.ts";

export interface PlacedTag extends Tag {
  /** The stability of the inserted text, if the tag inserted any. */
  stability?: Stability;
}

export interface PlacedNote extends Note {
  place?: Range;
  replacement?: Range;
}

export interface Answer {
  preview: Preview;
  tags: PlacedTag[];
  unused: Range[];
  notes: PlacedNote[];
  /** The tag that made each span, for spans that the template made. */
  origins: Map<Span, Range>;
  /** The position of each break's tag, in the order of the breaks. */
  breaks: (Range | undefined)[];
}

export function placeAnswer(text: string, preview: Preview): Answer {
  // One table for all offsets: converting is a walk over the whole text.
  const ranges: Range[] = [];
  const place = (range: Range | null | undefined) => (range ? ranges.push({ start: range.start, end: range.end }) - 1 : -1);
  const tags = (preview.tags ?? []).map((tag) => [tag, place(tag)] as const);
  const unused = (preview.unused ?? []).map(place);
  const notes = preview.notes.map((note) => [note, place(note.range), place(note.fix)] as const);
  const spans = preview.spans.filter((span) => span.tag).map((span) => [span, place(span.tag)] as const);
  const breaks = (preview.breaks ?? []).map((each) => place(each.tag));
  const placed = rangesToUnits(text, ranges);
  const stabilities = new Map(spans.map(([span, index]) => [placed[index]!.start, span.stability]));

  return {
    preview,
    tags: tags
      .map(([tag, index]) => ({ ...tag, ...placed[index]!, stability: stabilities.get(placed[index]!.start) }))
      .sort((a, b) => a.start - b.start),
    unused: unused.map((index) => placed[index]!).sort((a, b) => a.start - b.start),
    notes: notes.map(([note, range, fix]) => ({ ...note, place: placed[range], replacement: placed[fix] })),
    origins: new Map(spans.map(([span, index]) => [span, placed[index]!])),
    breaks: breaks.map((index) => placed[index]),
  };
}

/** The spans that `range` of the template made. */
export function spansFrom(answer: Answer, range: Range): Set<Span> {
  const made = new Set<Span>();
  for (const [span, origin] of answer.origins) {
    if (origin.start >= range.start && origin.end <= range.end) made.add(span);
  }
  return made;
}

/** The part of the template that belongs to a tag: the tag itself, or the whole block that it opens, parts or ends. */
export function reachOf(answer: Answer, tag: Tag): Range {
  if (tag.group == null) return tag;
  const block = answer.tags.filter(({ group }) => group === tag.group);
  return { start: block[0]!.start, end: block[block.length - 1]!.end };
}
