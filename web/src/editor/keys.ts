// The keys that work in the whole editor. HelpDialog.svelte lists them.

import { flushSync } from "svelte";

export const PANES = ["variables", "template", "rendered", "cost"] as const;
export type Pane = (typeof PANES)[number];

export interface PaneActions {
  page(): HTMLElement;
  save(): void;
  help(): void;
  history(): void;
  /** True if the pane is on the screen, or has a tab. */
  shown(pane: Pane): boolean;
  /** Brings a pane into sight where only one has room. */
  show(pane: Pane): void;
}

export function panesKeys({ page, save, help, history, shown, show }: PaneActions) {
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
    else if (event.key === "F6") action = () => go(next(page(), event.shiftKey ? -1 : 1, shown));
    else if (event.key === "?" && !isTyping(event.target)) action = help;
    if (!action) return;
    event.preventDefault();
    action();
  };
}

function next(page: HTMLElement, step: 1 | -1, shown: PaneActions["shown"]): Pane {
  const panes = PANES.filter(shown);
  const here = document.activeElement?.closest<HTMLElement>("[data-pane]")?.dataset.pane as Pane | undefined;
  const index = here && page.contains(document.activeElement) ? panes.indexOf(here) : -1;
  return panes[(index + step + panes.length) % panes.length] ?? "template";
}

function focusOf(page: HTMLElement, pane: Pane): HTMLElement | null {
  const element = page.querySelector<HTMLElement>(`[data-pane="${pane}"]`);
  const first = ["[data-first]", ".cm-content", "button, summary"].map((each) => element?.querySelector<HTMLElement>(each));
  return first.find((found) => found != null) ?? element;
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement
    && (target.isContentEditable || target.closest("input, select, textarea, [contenteditable=true]") !== null);
}
