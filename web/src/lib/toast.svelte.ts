// Short notices of what was done, which go by themselves. They are also announced, so nothing is only seen.

import { announce } from "./announce.svelte.ts";

const SHOWN_MS = 6_000;

export interface Toast {
  id: number;
  text: string;
  /** The action that it offers. */
  action?: { label: string; run(): void };
}

let last = 0;
export const toasts = $state<{ shown: Toast[] }>({ shown: [] });

export function toast(text: string, action?: Toast["action"]): void {
  last += 1;
  const id = last;
  toasts.shown = [...toasts.shown.slice(-2), { id, text, action }];
  announce(text);
  setTimeout(() => dismiss(id), SHOWN_MS);
}

export function dismiss(id: number): void {
  toasts.shown = toasts.shown.filter((toast) => toast.id !== id);
}
