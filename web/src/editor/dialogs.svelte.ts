// The open dialog; at most one.

import type { Gesture } from "./insertion.ts";

export type OpenDialog =
  | { kind: "save" }
  | { kind: "conflict" }
  | { kind: "history" }
  | { kind: "help" }
  | { kind: "glossary" }
  | { kind: "file"; gesture: Gesture };

const state = $state<{ open: OpenDialog | null }>({ open: null });

export const currentDialog = (): OpenDialog | null => state.open;
export function openDialog(dialog: OpenDialog): void {
  state.open = dialog;
}
export function closeDialog(): void {
  state.open = null;
}
