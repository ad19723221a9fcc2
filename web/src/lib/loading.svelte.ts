// One answer that a part of the page waits for. A newer question gives up the older one; a server that is away or wants
// its token is waited for, and the page's header shows that.

import { untrack } from "svelte";
import { isAbort } from "./api.ts";
import { patiently, Wait } from "./connection.svelte.ts";

export class Loading<T> {
  value = $state.raw<T>();
  error = $state.raw<unknown>();
  busy = $state(false);
  readonly wait = new Wait();
  #control?: AbortController;

  /** Asks. What was there stays until the answer comes, so that nothing flickers. */
  async ask(question: (signal: AbortSignal) => Promise<T>): Promise<void> {
    const control = new AbortController();
    untrack(() => {
      this.#control?.abort();
      this.#control = control;
      this.busy = true;
    });
    try {
      const value = await patiently(() => question(control.signal), control.signal, this.wait);
      if (control !== this.#control) return;
      this.value = value;
      this.error = undefined;
    } catch (error) {
      if (control === this.#control && !isAbort(error)) this.error = error;
    } finally {
      if (control === this.#control) this.busy = false;
    }
  }

  /** Gives up, and forgets what was there. */
  stop(): void {
    this.#control?.abort();
    this.#control = undefined;
    this.value = undefined;
    this.error = undefined;
    this.busy = false;
    this.wait.current = null;
  }
}
