// Obstacles between the page and the server: a missing token, and a server that does not answer.

import { ApiError, api } from "./api.ts";

const PAUSE_FIRST_MS = 1_000;
const PAUSE_MAX_MS = 30_000;
const ASKED_PAUSE_MAX_MS = 300_000;

class Connection {
  /** True if the token must be entered before anything else works. */
  needsToken = $state(false);
  /** The server did not answer the last call. */
  offline = $state(false);
  #signedIn: (() => void)[] = [];
  #wake: (() => void)[] = [];
  #probing = false;

  /** Trades the token for a cookie and lets every waiting call go on. */
  async signIn(token: string): Promise<void> {
    await api.session(token);
    this.needsToken = false;
    for (const go of this.#signedIn.splice(0)) go();
  }

  /** Asks again now instead of at the end of the pause. */
  retryNow(): void {
    if (this.#wake.length === 0) this.probe();
    for (const wake of this.#wake.splice(0)) wake();
  }

  /** Asks until the server answers, so that the page learns of it when nothing else asks. */
  probe(): void {
    if (this.#probing) return;
    this.#probing = true;
    patiently(() => api.editor()).catch(() => {}).finally(() => (this.#probing = false));
  }

  token(): Promise<void> {
    this.needsToken = true;
    return new Promise((resolve) => this.#signedIn.push(resolve));
  }

  pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = () => {
        this.#wake = this.#wake.filter((each) => each !== go);
        resolve();
      };
      this.#wake.push(go);
      setTimeout(go, milliseconds);
      signal?.addEventListener("abort", go);
    });
  }
}

/** The waiting state of one part of the page while the server is busy. */
export class Wait {
  /** The server's message, and the time of the retry; it stays until the server answers something else. */
  current = $state.raw<{ message: string; until: number } | null>(null);
}

export const connection = new Connection();
if (typeof addEventListener === "function") addEventListener("online", () => connection.retryNow());

/**
 * Makes a call that only reads, and makes it again when that can help: after the token was given, and while the server
 * does not answer or is busy. Other failures are the caller's.
 */
export async function patiently<T>(call: () => Promise<T>, signal?: AbortSignal, wait?: Wait): Promise<T> {
  // An aborted call was replaced by another one, which reports its own waiting state.
  const say = (next: Wait["current"]) => {
    if (wait && !signal?.aborted) wait.current = next;
  };
  try {
    for (let pause = PAUSE_FIRST_MS; ; pause = Math.min(pause * 2, PAUSE_MAX_MS)) {
      try {
        return await attempt(call, signal);
      } catch (error) {
        if (!(error instanceof ApiError) || (error.status !== 0 && error.status !== 503)) throw error;
        // The pause that the server requests, and a longer one after each failure.
        const asked = Math.min((error.retryAfter ?? 0) * 1_000, ASKED_PAUSE_MAX_MS);
        const milliseconds = Math.max(pause, asked);
        say(error.status === 503 ? { message: error.message, until: Date.now() + milliseconds } : null);
        await connection.pause(milliseconds, signal);
        signal?.throwIfAborted();
      }
    }
  } finally {
    say(null);
  }
}

/** Makes a call that changes something: waits for the token, and never makes it twice for another reason. */
export async function once<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await attempt(call);
  } catch (error) {
    if (error instanceof ApiError && error.status === 0) connection.probe();
    throw error;
  }
}

async function attempt<T>(call: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (;;) {
    try {
      const answer = await call();
      connection.offline = false;
      return answer;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      connection.offline = error.status === 0;
      if (error.status !== 401) throw error;
      await connection.token();
      signal?.throwIfAborted();
    }
  }
}
