// Times as people say them.

const STEPS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["minute", 60_000],
  ["hour", 3_600_000],
  ["day", 86_400_000],
];
const relative = new Intl.RelativeTimeFormat("en", { numeric: "auto" });
const day = new Intl.DateTimeFormat("en", { year: "numeric", month: "long", day: "numeric" });

/** "5 minutes ago" within a week, the day before that. */
export function said(time: number, now: number): string {
  const past = now - time;
  if (Math.abs(past) < 60_000) return "just now";
  if (Math.abs(past) >= 7 * 86_400_000) return day.format(time);
  const [unit, length] = STEPS.findLast(([, step]) => Math.abs(past) >= step) ?? ["minute", 60_000];
  return relative.format(-Math.trunc(past / length), unit);
}

/** The moment itself, without a doubt about the zone. */
export function exact(time: number): string {
  const date = new Date(time);
  return Number.isNaN(date.valueOf()) ? String(time) : date.toISOString().replace("T", " ").replace("Z", " UTC");
}

/** A time as the API writes it, RFC 3339 or milliseconds since 1970, in milliseconds. */
export function momentOf(time: string | number | null | undefined): number | undefined {
  if (time === null || time === undefined) return undefined;
  const moment = typeof time === "number" ? time : Date.parse(time);
  return Number.isNaN(moment) ? undefined : moment;
}
