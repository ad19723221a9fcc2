// The texts that can be compared: the text in the editor, every stored version, the built-in template, and texts set aside.

import { time } from "../lib/format.ts";
import type { Aside } from "./set-aside.ts";

export const CURRENT = "current";
export const BUILT_IN = "built-in";
/** A number is a stored version, another text the key of one that was set aside. */
export type VersionChoice = number | string;

export const asideWords = ({ at, why }: Aside): string => `Set aside, ${time(at)}: ${why}`;

export function choiceWords(choice: VersionChoice, asides: readonly Aside[] = []): string {
  if (choice === CURRENT) return "Text in the editor";
  if (choice === BUILT_IN) return "Built-in template";
  if (typeof choice === "number") return `Version ${choice}`;
  const aside = asides.find(({ key }) => key === choice);
  return aside ? asideWords(aside) : "Set aside";
}
