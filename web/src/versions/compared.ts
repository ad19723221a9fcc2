// The two sides of a comparison in an address: `#/versions/4..6`. A version is its number, the built-in template `built-in`.

export const BUILT_IN = 0;

export interface Pair {
  from: number;
  to: number;
}

/** Parses `4..6` or `6`, which is compared with the version before it. */
export function readPair(part: string | undefined): Pair | null {
  const found = /^(?:(built-in|\d{1,15})\.\.)?(\d{1,15})$/.exec(part ?? "");
  if (!found) return null;
  const to = Number(found[2]);
  if (to === BUILT_IN) return null;
  const from = found[1] === undefined ? Math.max(to - 1, BUILT_IN) : found[1] === "built-in" ? BUILT_IN : Number(found[1]);
  return { from, to };
}

export const pairWords = ({ from, to }: Pair): string => `${from === BUILT_IN ? "built-in" : from}..${to}`;
export const versionWords = (version: number): string => (version === BUILT_IN ? "Built-in template" : `Version ${version}`);
