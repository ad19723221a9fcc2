// Days of a chart, without gaps: a day without a call is a day, too.

export interface Day {
  day: string;
  calls: number;
  read: number;
  written: number;
  uncached: number;
  usd: number;
  lost_usd: number;
}

/** A mark at a day, such as a saved version. */
export interface Mark {
  day: string;
  label: string;
  address: string;
}

const DAY_MS = 86_400_000;
export const dayOf = (time: number): string => new Date(time).toISOString().slice(0, 10);

/** All days up to now, in UTC, with what is known of each. */
export function everyDay(known: readonly Day[], count: number, now: number): Day[] {
  const found = new Map(known.map((day) => [day.day, day]));
  return Array.from({ length: count }, (_, index) => {
    const day = dayOf(now - (count - 1 - index) * DAY_MS);
    return found.get(day) ?? { day, calls: 0, read: 0, written: 0, uncached: 0, usd: 0, lost_usd: 0 };
  });
}
