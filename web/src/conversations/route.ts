// The addresses of this page:
//   #/conversations
//   #/conversations/ID                      its calls over time
//   #/conversations/ID/calls/12             one call
//   #/conversations/ID/epochs/N/VIEW        the prompt (without VIEW), the payload or the notices of an epoch
//   #/conversations/ID/compare/3..4         two epochs
//   #/conversations/ID/drift                the frozen prompt against the present sources
//   #/conversations/ID/what-if              a simulation

import { href } from "../lib/route.svelte.ts";

export const VIEWS = ["timeline", "prompt", "compare", "drift", "payload", "notices", "what-if"] as const;
export type View = (typeof VIEWS)[number];

export interface Place {
  conversation: string;
  view: View;
  /** Missing: the current epoch. */
  epoch?: number;
  /** The number of a call, or its id. */
  call?: string;
  /** The epochs to compare. */
  from?: number;
  to?: number;
}

const number = (text: string | undefined): number | undefined => (/^[1-9]\d{0,14}$/.test(text ?? "") ? Number(text) : undefined);

/** Parses the part of the address after the page's name; nothing means the list. */
export function readPlace([conversation, first, second, third]: readonly string[]): Place | undefined {
  if (conversation === undefined) return undefined;
  switch (first) {
    case "calls":
      return { conversation, view: "timeline", call: second };
    case "epochs": {
      const view = VIEWS.find((view) => view === third) ?? (third === "notes" ? "notices" : "prompt");
      return { conversation, view, epoch: number(second) };
    }
    case "compare": {
      const [, from, to] = /^(\d+)\.\.(\d+)$/.exec(second ?? "") ?? [];
      return { conversation, view: "compare", from: number(from), to: number(to) };
    }
    // Addresses of earlier versions.
    case "differences":
      return { conversation, view: "compare" };
    case "notes":
      return { conversation, view: "notices" };
    default:
      return { conversation, view: VIEWS.find((view) => view === first) ?? "timeline" };
  }
}

export const LIST = href("conversations");

export function addressOf(
  { conversation, epoch, call, view = "timeline" }: Omit<Place, "view" | "call"> & { view?: View; call?: number | string },
): string {
  if (call !== undefined) return href("conversations", conversation, "calls", call);
  if (epoch !== undefined && (view === "prompt" || view === "payload" || view === "notices")) {
    return href("conversations", conversation, "epochs", epoch, ...(view === "prompt" ? [] : [view]));
  }
  return href("conversations", conversation, ...(view === "timeline" ? [] : [view]));
}

export const compareAddress = (conversation: string, from: number, to: number): string =>
  href("conversations", conversation, "compare", `${from}..${to}`);
