// Unsaved text, kept by the browser so that it survives a closed tab: one draft per tab and server, because storage is
// per origin. A new tab takes over the draft of a closed one, never that of one which is still open.

export interface Draft {
  template: string;
  /** The version that the text was made from; 0 for the built-in one. */
  baseVersion: number;
  writtenAt: number;
}

const PREFIX = "proem.draft.";
const TAB = "proem.tab";
const HANDOVER_MS = 300;

export class DraftKeeper {
  readonly #storage: Storage;
  readonly #key: string;

  private constructor(storage: Storage, tab: string) {
    this.#storage = storage;
    this.#key = PREFIX + tab;
  }

  /** `session` names the tab across reloads; `locks` tell whether another tab lives, where the browser has them. */
  static async open(storage: Storage, session: Storage, locks?: LockManager): Promise<DraftKeeper> {
    const keeper = new DraftKeeper(storage, await nameTab(session, locks));
    if (!keeper.read()) await keeper.#inherit(locks);
    return keeper;
  }

  read(): Draft | null {
    return readKey(this.#storage, this.#key);
  }

  /** Returns whether the text is safe now: storage can be full, or forbidden. */
  write(draft: Draft): boolean {
    try {
      this.#storage.setItem(this.#key, JSON.stringify(draft));
      return true;
    } catch {
      return false;
    }
  }

  forget(): void {
    try {
      this.#storage.removeItem(this.#key);
    } catch {
      // Without storage there is nothing to remove.
    }
  }

  async #inherit(locks?: LockManager): Promise<void> {
    for (const { key, draft } of draftsIn(this.#storage)) {
      if (!(await claim(key.slice(PREFIX.length), locks))) continue;
      if (this.write(draft)) this.#storage.removeItem(key);
      return;
    }
  }
}

// A duplicated tab brings the name of the first one along; the lock tells them apart.
async function nameTab(session: Storage, locks?: LockManager): Promise<string> {
  const known = session.getItem(TAB);
  if (known && (await claim(known, locks))) return known;
  const name = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  await claim(name, locks);
  session.setItem(TAB, name);
  return name;
}

/**
 * Holds the tab's name until the page is gone; returns false when another page holds it. Waits a moment, because a page
 * that is loaded again can begin before the browser has let go of its former self.
 */
function claim(tab: string, locks?: LockManager): Promise<boolean> {
  if (!locks) return Promise.resolve(true);
  return new Promise((resolve) => {
    const held = locks.request(PREFIX + tab, { signal: AbortSignal.timeout(HANDOVER_MS) }, () => {
      resolve(true);
      return new Promise(() => {});
    });
    held.catch(() => resolve(false));
  });
}

function draftsIn(storage: Storage): { key: string; draft: Draft }[] {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");
  return keys
    .filter((key) => key.startsWith(PREFIX))
    .flatMap((key) => {
      const draft = readKey(storage, key);
      return draft ? [{ key, draft }] : [];
    })
    .sort((a, b) => b.draft.writtenAt - a.draft.writtenAt);
}

function readKey(storage: Storage, key: string): Draft | null {
  try {
    const draft: unknown = JSON.parse(storage.getItem(key) ?? "null");
    return isDraft(draft) ? draft : null;
  } catch {
    return null;
  }
}

function isDraft(draft: unknown): draft is Draft {
  if (typeof draft !== "object" || draft === null) return false;
  const { template, baseVersion, writtenAt } = draft as Partial<Draft>;
  return typeof template === "string" && typeof baseVersion === "number" && typeof writtenAt === "number";
}
