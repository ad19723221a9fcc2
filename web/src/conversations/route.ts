// The addresses of this page:
//   #/conversations
//   #/conversations/ID/epochs/N/VIEW      (`/epochs/N` and `/VIEW` may be missing)

import { href } from "../lib/route.svelte.ts";

export const VIEWS = ["prompt", "drift", "differences", "payload", "notes"] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
  conversation: string;
  /** Missing: the epoch in force. */
  epoch?: number;
  view?: View;
}

/** Parses the part of the address after the page's name; nothing means the list. */
export function readPlace([conversation, ...rest]: readonly string[]): Place | undefined {
  if (conversation === undefined) return undefined;
  const place: Place = { conversation };
  if (rest[0] === "epochs") {
    const [, number = ""] = rest.splice(0, 2);
    if (/^[1-9]\d{0,14}$/.test(number)) place.epoch = Number(number);
  }
  place.view = VIEWS.find((view) => view === rest[0]) ?? "prompt";
  return place;
}

export const LIST = href("conversations");

export function addressOf({ conversation, epoch, view = "prompt" }: Place): string {
  const parts = [conversation, ...(epoch === undefined ? [] : ["epochs", epoch]), ...(view === "prompt" ? [] : [view])];
  return href("conversations", ...parts);
}
