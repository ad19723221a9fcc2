// The pieces of one carrier in the order of its text, in UTF-16 offsets.

import type { Span } from "./api.ts";
import { rangesToUnits } from "./bytes.ts";

export interface Piece {
  from: number;
  to: number;
  span: Span;
}

/** A place in a piece. */
export interface Pointed {
  piece: Piece;
  /** The line breaks of the piece before it. */
  breaks: number;
}

export function piecesOf(text: string, spans: readonly Span[], carrier: string): Piece[] {
  const own = spans.filter((span) => span.carrier === carrier);
  const units = rangesToUnits(text, own.map(({ start, end }) => ({ start, end })));
  return own
    .map((span, index) => ({ from: units[index]!.start, to: units[index]!.end, span }))
    .sort((a, b) => a.from - b.from || a.to - b.to);
}

/** The piece that holds the character after `position`; at the end of the text the last piece. */
export function pieceAt(pieces: readonly Piece[], position: number): Piece | null {
  const index = firstEndingBehind(pieces, position);
  const found = pieces[index];
  if (found) return found.from <= position ? found : null;
  const last = pieces[pieces.length - 1];
  return last && last.to === position ? last : null;
}

/** The pieces that share a character with `from..to`. */
export function piecesIn(pieces: readonly Piece[], from: number, to: number): Piece[] {
  const found = [];
  for (let index = firstEndingBehind(pieces, from); index < pieces.length; index += 1) {
    const piece = pieces[index]!;
    if (piece.from >= Math.max(to, from + 1)) break;
    found.push(piece);
  }
  return found;
}

// Pieces do not overlap, so that their ends ascend as their beginnings do.
function firstEndingBehind(pieces: readonly Piece[], position: number): number {
  let low = 0;
  let high = pieces.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (pieces[middle]!.to > position) high = middle;
    else low = middle + 1;
  }
  return low;
}
