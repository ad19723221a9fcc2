// The server counts UTF-8 bytes, the browser UTF-16 units. All conversions are here, each in one pass over the text.

import type { Range } from "./shapes.ts";

/**
 * Converts ascending byte offsets into UTF-16 offsets.
 *
 * An offset inside a character becomes the character's beginning, one after the end becomes the end.
 */
export function toUnits(text: string, bytes: readonly number[]): number[] {
  if (isAscii(text)) return bytes.map((byte) => within(byte, text.length));
  return walk(text, bytes, (at) => at.byte, (at) => at.unit);
}

/** Converts ascending UTF-16 offsets into byte offsets, with the same rules. */
export function toBytes(text: string, units: readonly number[]): number[] {
  if (isAscii(text)) return units.map((unit) => within(unit, text.length));
  return walk(text, units, (at) => at.unit, (at) => at.byte);
}

/** Copies ranges in any order with their byte offsets converted into UTF-16 offsets. */
export function rangesToUnits<T extends Range>(text: string, ranges: readonly T[]): T[] {
  return convertRanges(text, ranges, toUnits);
}

/** Copies ranges in any order with their UTF-16 offsets converted into byte offsets. */
export function rangesToBytes<T extends Range>(text: string, ranges: readonly T[]): T[] {
  return convertRanges(text, ranges, toBytes);
}

/** The length in UTF-8. */
export function byteLength(text: string): number {
  return toBytes(text, [text.length])[0] as number;
}

/** The UTF-16 offset of a line and a column, both from 1; columns are code points. Clamped to the line and the text. */
export function offsetAt(text: string, line: number, column: number): number {
  let start = 0;
  for (let number = 1; number < line; number += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  for (let number = 1; number < column && start < text.length && text[start] !== "\n"; number += 1) {
    start += unitsAt(text, start);
  }
  return start;
}

/** The line and the column of a UTF-16 offset, both from 1; columns are code points. */
export function placeAt(text: string, offset: number): { line: number; column: number } {
  const end = within(offset, text.length);
  let line = 1;
  let start = 0;
  for (let next = text.indexOf("\n"); next >= 0 && next < end; next = text.indexOf("\n", start)) {
    line += 1;
    start = next + 1;
  }
  let column = 1;
  for (let at = start + unitsAt(text, start); at <= end && start < end; at += unitsAt(text, at)) column += 1;
  return { line, column };
}

// A regular expression runs over a flat one-byte string much faster than a loop does.
function isAscii(text: string): boolean {
  return /^[\x00-\x7f]*$/.test(text);
}

function within(offset: number, end: number): number {
  return Math.max(0, Math.min(offset, end));
}

interface Place {
  unit: number;
  byte: number;
}

function walk(text: string, wanted: readonly number[], from: (at: Place) => number, to: (at: Place) => number) {
  const at: Place = { unit: 0, byte: 0 };
  const next: Place = { unit: 0, byte: 0 };
  return wanted.map((offset) => {
    for (;;) {
      if (at.unit >= text.length) break;
      next.unit = at.unit + unitsAt(text, at.unit);
      next.byte = at.byte + bytesAt(text, at.unit);
      if (from(next) > offset) break;
      at.unit = next.unit;
      at.byte = next.byte;
    }
    return to(at);
  });
}

function unitsAt(text: string, unit: number): 1 | 2 {
  return (text.codePointAt(unit) ?? 0) > 0xffff ? 2 : 1;
}

// Half a surrogate pair counts as the replacement character, three bytes, as it would be sent.
function bytesAt(text: string, unit: number): number {
  const point = text.codePointAt(unit) ?? 0;
  return point < 0x80 ? 1 : point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
}

function convertRanges<T extends Range>(text: string, ranges: readonly T[], convert: typeof toUnits): T[] {
  const ends = ranges.flatMap(({ start, end }) => [start, end]);
  const sorted = [...new Set(ends)].sort((a, b) => a - b);
  const converted = convert(text, sorted);
  const table = new Map(sorted.map((offset, index) => [offset, converted[index] as number]));
  return ranges.map((range) => ({
    ...range,
    start: table.get(range.start) as number,
    end: table.get(range.end) as number,
  }));
}
