// Live updates: the server tells what changed, and the page asks again for what it shows.

import { api } from "../lib/api.ts";

const GATHER_MS = 300;
const RETRY_FIRST_MS = 2_000;
const RETRY_MAX_MS = 30_000;
const KINDS = ["epoch", "call", "template", "removed", "store"];

/**
 * Follows the changes of one conversation, or of the whole store. Several changes at once are one. Returns the way to stop.
 *
 * A browser has six connections to a server, for all its tabs: a page that is hidden follows nothing, and asks again for
 * everything when it is seen.
 */
export function follow(conversation: string | undefined, changed: (kinds: ReadonlySet<string>) => void): () => void {
  let source: EventSource | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let pause = RETRY_FIRST_MS;
  let gathered = new Set<string>();

  function tell() {
    timer = undefined;
    const kinds = gathered;
    gathered = new Set();
    changed(kinds);
  }
  function note(kind: string) {
    gathered.add(kind);
    timer ??= setTimeout(tell, GATHER_MS);
  }
  function open() {
    source = new EventSource(api.eventsAddress(conversation));
    for (const kind of KINDS) source.addEventListener(kind, () => note(kind));
    source.addEventListener("open", () => (pause = RETRY_FIRST_MS));
    // The browser tries again by itself after a broken connection, and not after a refusal, such as that of a missing token.
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      retry = setTimeout(open, pause);
      pause = Math.min(2 * pause, RETRY_MAX_MS);
    });
  }
  function close() {
    clearTimeout(retry);
    source?.close();
    source = undefined;
  }
  function seen() {
    if (document.hidden) return close();
    if (source) return;
    open();
    for (const kind of KINDS) if (kind !== "removed") note(kind);
  }

  if (!document.hidden) open();
  document.addEventListener("visibilitychange", seen);
  return () => {
    document.removeEventListener("visibilitychange", seen);
    clearTimeout(timer);
    close();
  };
}
