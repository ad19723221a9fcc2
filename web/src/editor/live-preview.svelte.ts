// Keeps the prompt in step with the template: asks a moment after the last change, gives up older questions, and shows
// the last good answer while there is no newer one.

import { setDiagnostics } from "@codemirror/lint";
import type { EditorView } from "@codemirror/view";
import { api, isAbort, type PromptRequest } from "../lib/api.ts";
import { byteLength } from "../lib/bytes.ts";
import { connection, patiently, Wait } from "../lib/connection.svelte.ts";
import { placeAnswer, type Answer } from "./answer.ts";
import { problemsOf } from "./problems.ts";
import { answered, sent } from "./structure.ts";

const QUIET_MS = 150;

export class LivePreview {
  answer = $state.raw<Answer | null>(null);
  error = $state.raw<unknown>(null);
  /** Something changed that the shown answer does not know of. */
  behind = $state(false);
  /** The length of the text that was sent last. */
  bytes = $state(0);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #abort: AbortController | undefined;
  readonly wait = new Wait();
  readonly #view: EditorView;
  readonly #request: (template: string) => PromptRequest;

  constructor(view: EditorView, request: (template: string) => PromptRequest) {
    this.#view = view;
    this.#request = request;
  }

  /** The shown answer is of another text, and no newer one is about to come. */
  get stale(): boolean {
    return this.answer !== null && (this.error !== null || (this.behind && (this.wait.current !== null || connection.offline)));
  }

  /** Asks soon. */
  schedule(): void {
    this.behind = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.ask(), QUIET_MS);
  }

  async ask(): Promise<void> {
    clearTimeout(this.#timer);
    this.#abort?.abort();
    const { signal } = (this.#abort = new AbortController());
    const template = this.#view.state.doc.toString();
    this.#view.dispatch({ effects: sent.of(null) });
    this.behind = true;
    this.bytes = byteLength(template);
    try {
      const preview = await patiently(() => api.preview(this.#request(template), signal), signal, this.wait);
      if (signal.aborted) return;
      this.#show(placeAnswer(template, preview));
    } catch (error) {
      if (signal.aborted || isAbort(error)) return;
      this.error = error;
    }
  }

  #show(answer: Answer): void {
    this.#view.dispatch({ effects: answered.of(answer) });
    this.#view.dispatch(setDiagnostics(this.#view.state, problemsOf(this.#view.state, answer.notes)));
    this.answer = answer;
    this.error = null;
    this.behind = false;
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }
}
