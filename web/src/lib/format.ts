// Figures and times for people. Always in the same form, whatever the browser's language: the tool speaks English.

const whole = new Intl.NumberFormat("en-US");
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const count = (number: number): string => whole.format(number);
export const plural = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
/** Six places, as in the command line: a warm turn costs a fraction of a cent. */
export const money = (usd: number | null | undefined): string => (usd == null ? "no price" : `$${usd.toFixed(6)}`);
/** Two figures that count, for sentences: `$0.0059`, `$0.38`, `$12.40`. */
export function dollars(usd: number): string {
  const size = Math.abs(usd);
  if (size >= 1) return `${usd < 0 ? "−" : ""}$${size.toFixed(2)}`;
  if (size === 0) return "$0";
  const places = Math.min(9, Math.max(2, 1 - Math.floor(Math.log10(size))));
  return `${usd < 0 ? "−" : ""}$${size.toFixed(places)}`;
}
/** A difference with its sign; `±0` where there is none. */
export function change(value: number, words: (size: number) => string = dollars): string {
  if (Math.abs(value) < 1e-9) return "±0";
  return `${value > 0 ? "+" : "−"}${words(Math.abs(value))}`;
}
export const time = (milliseconds: number): string => moment.format(new Date(milliseconds));

export function size(bytes: number): string {
  if (bytes < 1_024) return plural(bytes, "byte");
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)} KiB`;
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}

/** A size and its limit, in a unit in which they differ. */
export function sizeOver(bytes: number, most: number): string {
  return size(bytes) === size(most) ? `${plural(bytes, "byte")}: at most ${count(most)}` : `${size(bytes)}: at most ${size(most)}`;
}

/** A hint as a sentence: with a capital where it begins with a word, and a full stop where it ends like a sentence. */
export function sentence(text: string): string {
  const begun = /^[a-z]+[ ,:']/.test(text) ? text.charAt(0).toUpperCase() + text.slice(1) : text;
  return /[\p{L}\p{N}]$/u.test(begun) ? `${begun}.` : begun;
}
