// The entries of the command palette. Each page offers its own while it is shown.

import { untrack } from "svelte";

export interface Entry {
  label: string;
  /** The difference to others of the same name, such as a path or a value. */
  detail?: string;
  /** The keys that do the same. */
  keys?: string;
  run(): void;
}

export interface EntrySource {
  /** The heading above its entries. */
  group: string;
  /** Finds entries for what was typed; an empty text asks for a few to begin with. */
  find(text: string, signal: AbortSignal): readonly Entry[] | Promise<readonly Entry[]>;
}

class Palette {
  open = $state(false);
  sources = $state.raw<readonly EntrySource[]>([]);

  /** Adds entries until the returned function is called: the return value of an effect. */
  offer(...sources: EntrySource[]): () => void {
    // In an effect, what is read here must not run it again.
    untrack(() => (this.sources = [...this.sources, ...sources]));
    return () => {
      this.sources = this.sources.filter((source) => !sources.includes(source));
    };
  }
}

export const palette = new Palette();

/** The entries whose label or detail has every word of the text. */
export function matching(entries: readonly Entry[], text: string): Entry[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return entries.filter(({ label, detail = "" }) => {
    const whole = `${label} ${detail}`.toLowerCase();
    return words.every((word) => whole.includes(word));
  });
}
