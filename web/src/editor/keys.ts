// The keys that work in the whole editor. HelpDialog.svelte lists them.

import { flushSync } from "svelte";

export const PANES = ["variables", "template", "rendered", "cost"] as const;
export type Pane = (typeof PANES)[number];

export interface PaneActions {
  page(): HTMLElement;
  save(): void;
  help(): void;
  history(): void;
  /** Brings a pane into sight where only one has room. */
  show(pane: Pane): void;
}

export function panesKeys({ page, save, help, history, show }: PaneActions) {
  const go = (pane: Pane) => {
    show(pane);
    // A hidden pane takes no focus, and what is typed next must not land in the old one.
    flushSync();
    focusOf(page(), pane)?.focus();
  };
  return (event: KeyboardEvent) => {
    if (document.querySelector("dialog[open]") || !page().checkVisibility()) return;
    const command = event.ctrlKey || event.metaKey;
    const key = event.key.toLowerCase();
    let action: (() => void) | undefined;
    if (command && !event.altKey && !event.shiftKey && key === "s") action = save;
    else if (command && event.altKey && event.code === "KeyV") action = () => go("variables");
    else if (command && event.altKey && event.code === "KeyH") action = history;
    else if (event.key === "F6") action = () => go(next(page(), event.shiftKey ? -1 : 1));
    else if (event.key === "?" && !isTyping(event.target)) action = help;
    if (!action) return;
    event.preventDefault();
    action();
  };
}

function next(page: HTMLElement, step: 1 | -1): Pane {
  const here = document.activeElement?.closest<HTMLElement>("[data-pane]")?.dataset.pane as Pane | undefined;
  const index = here && page.contains(document.activeElement) ? PANES.indexOf(here) : -1;
  return PANES[(index + step + PANES.length) % PANES.length] ?? "template";
}

function focusOf(page: HTMLElement, pane: Pane): HTMLElement | null {
  const element = page.querySelector<HTMLElement>(`[data-pane="${pane}"]`);
  return element?.querySelector<HTMLElement>("[data-first], .cm-content, button, summary") ?? element;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement
    && (target.isContentEditable || target.closest("input, select, textarea, [contenteditable=true]") !== null);
}
