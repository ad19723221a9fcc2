// The stability of a piece of the prompt: its label and its letter. The letter is there because not everyone can
// distinguish colours.

import { STABILITIES, type Stability } from "./api.ts";

const WORDS: Record<Stability, string> = {
  release: "changes with a release of proem",
  machine: "changes with the machine",
  user: "changes when you change your files",
  project: "changes with the project",
  session: "changes with the conversation",
  day: "changes every day",
  turn: "changes with every turn",
};

/** True if it changes by itself, without an edit: with the day, or with every turn. */
export const isVolatile = (stability: Stability): boolean => stability === "day" || stability === "turn";

export const stabilityWords = (stability: Stability): string => WORDS[stability] ?? stability;
export const stabilityLetter = (stability: Stability): string => stability.charAt(0).toUpperCase();
export const stabilityRank = (stability: Stability): number => STABILITIES.indexOf(stability);
