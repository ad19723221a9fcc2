// Figures of traffic for people: money, tokens and shares, always in the same form.

const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });
const whole = new Intl.NumberFormat("en-US");

/** A sum of money: cents where they matter, more places below a cent, and never a rounded-away zero. */
export function dollars(usd: number | null | undefined): string {
  if (usd === null || usd === undefined || !Number.isFinite(usd)) return "no price";
  const sign = usd < 0 ? "−" : "";
  const amount = Math.abs(usd);
  if (amount === 0) return "$0";
  if (amount >= 100) return `${sign}$${whole.format(Math.round(amount))}`;
  if (amount >= 0.995) return `${sign}$${amount.toFixed(2)}`;
  if (amount >= 0.00995) return `${sign}$${amount.toFixed(3)}`;
  if (amount >= 0.00005) return `${sign}$${amount.toFixed(4)}`;
  return `${sign}<$0.0001`;
}

/** A number of tokens: exact below ten thousand, then short. */
export const tokens = (count: number | null | undefined): string =>
  count === null || count === undefined ? "unknown" : count < 10_000 ? whole.format(count) : compact.format(count);

/** A share in percent, rounded down, so that 99.9 % is not called all of it. */
export function percent(part: number, all: number): string {
  if (all <= 0) return "–";
  const share = (100 * part) / all;
  return share > 0 && share < 1 ? "<1 %" : `${Math.floor(share)} %`;
}

/** The largest value of an axis with round steps: at least `most`, and the step between its lines. */
export function axis(most: number, lines = 4): { top: number; step: number } {
  if (!(most > 0)) return { top: 1, step: 1 };
  const rough = most / lines;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((step) => step >= rough) ?? 10 * power;
  return { top: Math.ceil(most / step - 1e-9) * step, step };
}

export const ticks = ({ top, step }: { top: number; step: number }): number[] =>
  Array.from({ length: Math.round(top / step) + 1 }, (_, index) => index * step);
