// Two excerpts around a change, cut into what is equal before, what differs, and what is equal after.

export interface Sides {
  head: string;
  before: string;
  after: string;
  /** The rest of each: the excerpts are cut, so that one may show more than the other. */
  tailBefore: string;
  tailAfter: string;
}

/** The number of equal characters after a change that is not a coincidence. */
const RUN_LEAST = 4;

/** Splits two texts at their first different character, and where they are the same again up to the end of one. */
export function sides(before: string, after: string): Sides {
  const [a, b] = [Array.from(before), Array.from(after)];
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  const [x, y] = again(a.slice(start), b.slice(start));
  const piece = (text: string[], from: number, to?: number) => text.slice(from, to).join("");
  return {
    head: piece(a, 0, start),
    before: piece(a, start, start + x),
    after: piece(b, start, start + y),
    tailBefore: piece(a, start + x),
    tailAfter: piece(b, start + y),
  };
}

/** The fewest characters of both to leave out, so that the rests are the same up to the end of the shorter one. */
function again(a: readonly string[], b: readonly string[]): [number, number] {
  for (let sum = 0; sum < a.length + b.length; sum += 1) {
    for (let x = Math.max(0, sum - b.length); x <= Math.min(sum, a.length); x += 1) {
      const y = sum - x;
      const run = Math.min(a.length - x, b.length - y);
      const isEnd = a.length - x === b.length - y;
      if (run < RUN_LEAST && !isEnd) continue;
      let same = 0;
      while (same < run && a[x + same] === b[y + same]) same += 1;
      if (same === run) return [x, y];
    }
  }
  return [a.length, b.length];
}
