// The state shared by the panes of the editor: the template and the version it began from, its preview, the variables, and
// the part of one that is pointed at in the other.

import { Text, Transaction } from "@codemirror/state";
import { EditorView } from "@codemirror/view";
import { api, isAbort, type Editor, type Preview, type PromptRequest, type Range, type Span, type Template, type Variable } from "../lib/api.ts";
import { toast } from "../lib/toast.svelte.ts";
import { once, patiently, Wait } from "../lib/connection.svelte.ts";
import { settings } from "../lib/settings.svelte.ts";
import { setup } from "../lib/setup.svelte.ts";
import { spansFrom } from "./answer.ts";
import { DraftKeeper, type Draft } from "./draft.ts";
import { applyGesture, type Gesture } from "./insertion.ts";
import { LivePreview } from "./live-preview.svelte.ts";
import { asides, setAside, type Aside } from "./set-aside.ts";
import { linked, placeNow } from "./structure.ts";
import { createTemplateView, replaceText } from "./template-view.ts";
import { Trial } from "./trial.svelte.ts";
import { keyOf } from "./variable-rows.ts";

const DRAFT_QUIET_MS = 400;
const textOf = (text: string) => Text.of(text.split("\n"));

export class Workbench {
  readonly settings = settings;
  readonly trial = new Trial();
  readonly view: EditorView;
  readonly preview: LivePreview;

  /** The template is in the editor. */
  begun = $state(false);
  loadError = $state.raw<unknown>(null);
  variables = $state.raw<readonly Variable[] | null>(null);
  variablesError = $state.raw<unknown>(null);
  readonly loadWait = new Wait();
  readonly variablesWait = new Wait();

  /** The version that the text in the editor began from; 0 for the built-in one. */
  baseVersion = $state(0);
  /** The version that the server had when the page last looked. */
  storedVersion = $state(0);
  dirty = $state(false);
  /** A draft that was put into the editor at the start. */
  restored = $state.raw<Draft | null>(null);
  draftSafe = $state(true);
  /** The spans that belong to what is pointed at in the template. */
  lit = $state.raw<ReadonlySet<Span>>(new Set());
  /** The span that the template's cursor made, to be kept in sight. */
  cursorSpan = $state.raw<Span | null>(null);
  /** The file that is shown in the template's place. */
  file = $state.raw<{ path: string; line: number } | null>(null);
  /** The preview of the stored template in the same folder, to compare prices with. */
  baseline = $state.raw<Preview | null>(null);

  /** The template had the focus: its cursor is where the user left it. */
  #visited = false;
  #drafts: DraftKeeper | undefined;
  #stored = textOf("");
  #draftTimer: ReturnType<typeof setTimeout> | undefined;
  #variablesAbort: AbortController | undefined;
  #baselineAbort: AbortController | undefined;

  constructor() {
    this.view = createTemplateView("", {
      variables: () => this.variables ?? [],
      files: (path, signal) => api.files(this.absolute(path), signal),
    }, {
      changed: () => this.#changed(),
      point: (range) => this.#pointTemplate(range),
      cursor: (position) => this.#showCursor(position),
    });
    this.view.contentDOM.addEventListener("focus", () => (this.#visited = true), { once: true });
    this.preview = new LivePreview(this.view, (template) => this.request(template));
  }

  /** The request for a template, with the values to try. */
  request(template?: string): PromptRequest {
    return { ...this.settings.request(template), ...this.trial.request };
  }

  /** The profile does not use the stored template: nothing can be edited for it. */
  get locked(): boolean {
    const profile = this.setup?.profiles.find(({ name }) => name === this.settings.profile);
    return profile !== undefined && !profile.stored_template;
  }

  /** The number of times that the template uses each variable. */
  get uses(): ReadonlyMap<string, number> {
    const uses = new Map<string, number>();
    for (const { key, kind } of this.preview.answer?.tags ?? []) {
      if (key && (kind === "variable" || kind === "if")) uses.set(key, (uses.get(key) ?? 0) + 1);
    }
    return uses;
  }

  /** The value of a variable in the folder; null if it is absent. */
  valueOf(key: string): string | null {
    const variable = this.variables?.find((each) => !each.dynamic && keyOf(each) === key);
    return variable === undefined ? "" : variable.absent ? null : (variable.value ?? "");
  }

  /** Forgets the prices of the stored template: the folder, the model or the stored version is another one. */
  dropBaseline(): void {
    this.#baselineAbort?.abort();
    this.#baselineAbort = undefined;
    this.baseline = null;
  }

  /** Sees to it that the prices of the stored template are known. While nothing is edited, they are those of the prompt. */
  fillBaseline(shown: Preview): void {
    if (!this.dirty) {
      this.baseline = shown;
      return;
    }
    if (this.baseline || this.#baselineAbort) return;
    const { signal } = (this.#baselineAbort = new AbortController());
    patiently(() => api.preview(this.request(this.storedText), signal), signal).then(
      (preview) => {
        if (!signal.aborted) this.baseline = preview;
      },
      // Without an answer the price of the edit is not shown.
      () => {},
    );
  }

  goToLine(number: number): void {
    const { doc } = this.view.state;
    if (!Number.isInteger(number) || number < 1 || number > doc.lines) return;
    const { from } = doc.line(number);
    this.view.dispatch({ selection: { anchor: from }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
  }

  /** The choices of the server, once the template is here too. */
  get setup(): Editor | null {
    return this.begun ? setup.value : null;
  }

  get text(): string {
    return this.view.state.doc.toString();
  }

  /** The text that is stored as the base version. */
  get storedText(): string {
    return this.#stored.toString();
  }

  absolute(path: string): string {
    return path.startsWith("/") ? path : `${this.settings.cwd.replace(/\/+$/, "")}/${path}`;
  }

  async load(): Promise<void> {
    this.loadError = null;
    try {
      this.#drafts ??= await this.#openDrafts();
      this.#begin(await patiently(() => api.template(), undefined, this.loadWait));
      this.begun = true;
    } catch (error) {
      this.loadError = error;
    }
  }

  async #openDrafts(): Promise<DraftKeeper | undefined> {
    try {
      return await DraftKeeper.open(localStorage, sessionStorage, navigator.locks);
    } catch {
      // A browser that forbids storage still edits; it only has to say that it keeps nothing.
      this.draftSafe = false;
      return undefined;
    }
  }

  #begin(template: Template): void {
    // Not a step of the history: undo must not lead to an empty editor.
    this.view.dispatch({
      changes: { from: 0, to: this.view.state.doc.length, insert: textOf(template.template) },
      annotations: Transaction.addToHistory.of(false),
    });
    this.adopt(template);
    const draft = this.#drafts?.read();
    if (!draft || draft.template === template.template) return;
    replaceText(this.view, draft.template);
    this.baseVersion = draft.baseVersion;
    this.restored = draft;
  }

  /** Takes a stored version as the one that the text is compared with. The text itself stays. */
  adopt({ template, version }: Pick<Template, "template" | "version">): void {
    this.#stored = textOf(template);
    this.baseVersion = this.storedVersion = version ?? 0;
    this.restored = null;
    this.#changed();
  }

  #changed(): void {
    this.dirty = !this.view.state.doc.eq(this.#stored);
    this.preview.schedule();
    clearTimeout(this.#draftTimer);
    this.#draftTimer = setTimeout(() => this.keepDraft(), DRAFT_QUIET_MS);
  }

  keepDraft(): void {
    clearTimeout(this.#draftTimer);
    if (!this.begun || !this.#drafts) return;
    if (!this.dirty) this.#drafts.forget();
    else {
      const draft = { template: this.text, baseVersion: this.baseVersion, writtenAt: Date.now() };
      this.draftSafe = this.#drafts.write(draft);
    }
  }

  /** Keeps text that is not saved, before another takes its place. Returns whether it is safe. */
  setAside(why: string): boolean {
    if (!this.dirty) return true;
    try {
      return setAside(localStorage, this.text, why);
    } catch {
      return false;
    }
  }

  get asides(): Aside[] {
    try {
      return asides(localStorage);
    } catch {
      return [];
    }
  }

  /** Puts the stored text into the editor; undo brings the other one back, and so does the history. */
  discard(): void {
    this.setAside("it was discarded");
    replaceText(this.view, this.storedText);
    this.restored = null;
    void once(() => api.template()).then((template) => {
      if (!this.dirty) {
        replaceText(this.view, template.template);
        this.adopt(template);
      }
    }, () => {});
  }

  async save({ author, message, draft }: { author: string; message: string; draft: boolean }): Promise<void> {
    const template = this.text;
    const saved = await once(() => api.saveTemplate({
      template,
      expected_version: this.baseVersion,
      ...(author ? { author } : {}),
      ...(message ? { message } : {}),
      ...(draft ? { label: "draft" as const } : {}),
    }));
    this.adopt({ template, version: saved.version });
    const effect = draft ? "It is a draft: new conversations do not use it." : "New conversations use it; running ones keep their frozen prompt.";
    toast(`Saved as version ${saved.version}. ${effect}`);
  }

  replace(text: string): void {
    replaceText(this.view, text);
  }

  async loadVariables(): Promise<void> {
    this.#variablesAbort?.abort();
    const { signal } = (this.#variablesAbort = new AbortController());
    try {
      const { variables } = await patiently(() => api.variables(this.request(), signal), signal, this.variablesWait);
      if (signal.aborted) return;
      this.variables = variables;
      this.variablesError = null;
    } catch (error) {
      if (!signal.aborted && !isAbort(error)) this.variablesError = error;
    }
  }

  /** Looks at the directory again. */
  refresh(): void {
    this.preview.schedule();
    void this.loadVariables();
  }

  use(gesture: Gesture, key: string): void {
    if (this.locked) return;
    // Where the user never put the cursor, the end is the place that breaks the least of the cache.
    if (!this.#visited && this.view.state.selection.main.empty && this.view.state.selection.main.head === 0) {
      this.view.dispatch({ selection: { anchor: this.view.state.doc.length } });
    }
    applyGesture(this.view, gesture, key);
  }

  /** Goes to a part of the template, in the places of the last answer. */
  jump(range: Range): void {
    const { from, to } = placeNow(this.view.state, range);
    this.view.dispatch({ selection: { anchor: from, head: to }, effects: EditorView.scrollIntoView(from, { y: "center" }) });
    this.view.focus();
  }

  #pointTemplate(range: Range | null): void {
    const { answer } = this.preview;
    this.lit = range && answer ? spansFrom(answer, range) : new Set();
  }

  /** Keeps in sight what the text at the cursor becomes. */
  #showCursor(position: number): void {
    const { answer } = this.preview;
    if (!answer || this.preview.behind) return;
    for (const [span, origin] of answer.origins) {
      if (origin.start <= position && position < origin.end) {
        this.cursorSpan = span;
        return;
      }
    }
  }

  /** Highlights the origin of the part of the prompt under the pointer. */
  pointPrompt(span: Span | null): void {
    const origin = span ? this.preview.answer?.origins.get(span) : undefined;
    this.view.dispatch({ effects: linked.of(origin ?? null) });
  }

  openOrigin(span: Span): void {
    const origin = this.preview.answer?.origins.get(span);
    if (origin) this.jump(origin);
  }

  stop(): void {
    this.keepDraft();
    this.preview.stop();
    this.view.destroy();
  }
}
