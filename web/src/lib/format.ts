// Figures and times for people. Always in the same form, whatever the browser's language: the tool speaks English.

const whole = new Intl.NumberFormat("en-US");
const moment = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });

export const count = (number: number): string => whole.format(number);
export const plural = (number: number, word: string): string => `${count(number)} ${word}${number === 1 ? "" : "s"}`;
/** Six places, as in the command line: a warm turn costs a fraction of a cent. */
export const money = (usd: number | null | undefined): string => (usd == null ? "no price" : `$${usd.toFixed(6)}`);
export const time = (milliseconds: number): string => moment.format(new Date(milliseconds));

export function size(bytes: number): string {
  if (bytes < 1_024) return plural(bytes, "byte");
  if (bytes < 1_048_576) return `${(bytes / 1_024).toFixed(1)} KiB`;
  return `${(bytes / 1_048_576).toFixed(1)} MiB`;
}

/** A hint as it is, with its full stop where it ends like a sentence without one. */
export const sentence = (text: string): string => (/[\p{L}\p{N}]$/u.test(text) ? `${text}.` : text);
