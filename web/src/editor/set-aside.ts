// Texts that something else took the place of in the editor, kept by the browser so that no click can lose one: the last
// few, each under a key of its own, because other tabs of this server set texts aside too.

export interface Aside {
  key: string;
  template: string;
  /** The event that set it aside, such as “theirs was taken”. */
  why: string;
  at: number;
}

const PREFIX = "proem.aside.";
const MOST = 5;
const BYTES_MOST = 1_048_576;

/** Returns whether the text is safe now: it can be too long, and storage can be full or forbidden. */
export function setAside(storage: Storage, template: string, why: string, at = Date.now()): boolean {
  if (new TextEncoder().encode(template).length > BYTES_MOST) return false;
  try {
    const kept = asides(storage);
    // Of two in the same moment both have to stay.
    const taken = new Set(kept.map(({ key }) => key));
    let key = `${PREFIX}${at}`;
    for (let copy = 1; taken.has(key); copy += 1) key = `${PREFIX}${at}.${copy}`;
    const left = makeRoom(storage, kept, () => storage.setItem(key, JSON.stringify({ template, why, at })));
    if (!left) return false;
    const others = left.filter((aside) => aside.template !== template);
    for (const old of left) if (!others.slice(0, MOST - 1).includes(old)) storage.removeItem(old.key);
    return true;
  } catch {
    return false;
  }
}

/** Writes, and where storage is full drops the oldest texts for it. Returns what is left; if nothing helped, all is. */
function makeRoom(storage: Storage, kept: readonly Aside[], write: () => void): Aside[] | null {
  const left = [...kept];
  for (;;) {
    try {
      write();
      return left;
    } catch {
      const oldest = left.pop();
      if (!oldest) break;
      storage.removeItem(oldest.key);
    }
  }
  for (const { key, ...aside } of kept) storage.setItem(key, JSON.stringify(aside));
  return null;
}

/** The newest first. */
export function asides(storage: Storage): Aside[] {
  const keys = Array.from({ length: storage.length }, (_, index) => storage.key(index) ?? "");
  return keys
    .filter((key) => key.startsWith(PREFIX))
    .flatMap((key) => read(storage, key) ?? [])
    .sort((a, b) => b.at - a.at || (a.key < b.key ? 1 : -1));
}

function read(storage: Storage, key: string): Aside | null {
  try {
    const { template, why, at } = JSON.parse(storage.getItem(key) ?? "{}") as Partial<Aside>;
    if (typeof template !== "string" || typeof why !== "string" || typeof at !== "number") return null;
    return { key, template, why, at };
  } catch {
    return null;
  }
}
