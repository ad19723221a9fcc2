// Completion after `[`. It reads only the few characters before the cursor: the server parses tags.

import { startCompletion, type Completion, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import type { EditorView } from "@codemirror/view";
import type { Files, Variable } from "../lib/api.ts";
import { stabilityWords } from "../lib/stability.ts";
import { visibleLine, visibleName } from "../lib/visible.ts";
import { unfit } from "./paths.ts";
import { keyOf } from "./variable-rows.ts";

const LOOK_BACK = 300;
const VALUE_SHOWN = 300;

export interface CompletionSources {
  variables(): readonly Variable[];
  /** The entries of a directory below the chosen one. */
  files(path: string, signal: AbortSignal): Promise<Files>;
}

/** The text between the last open bracket and the cursor, split after the keyword of a condition. */
export function openTag(before: string): { condition: string; typed: string } | null {
  const match = /\[\s*(if\s+!?)?([^[\]\n]*)$/.exec(before);
  return match && { condition: match[1] ?? "", typed: match[2] ?? "" };
}

export function templateCompletion(sources: CompletionSources) {
  return async (context: CompletionContext): Promise<CompletionResult | null> => {
    const line = context.state.doc.lineAt(context.pos);
    const from = Math.max(line.from, context.pos - LOOK_BACK);
    const open = openTag(context.state.sliceDoc(from, context.pos));
    if (!open) return null;
    const { condition, typed } = open;
    const asks = condition !== "";
    const start = context.pos - typed.length;
    if (typed.startsWith("file:")) return completePaths(context, sources, typed.slice("file:".length), asks);
    const options = sources.variables().map((variable) => optionOf(variable, asks));
    return { from: start, options: asks ? options : [...words, ...options], validFor: /^[^[\]\n:]*(?::[^[\]\n]*)?$/ };
  };
}

const words: Completion[] = [
  { label: "if", detail: "a text only when a value exists", apply: again("if "), boost: 2, type: "keyword" },
  { label: "else", detail: "otherwise", apply: closing("else", false), type: "keyword" },
  { label: "endif", detail: "the end of the block", apply: closing("endif", false), type: "keyword" },
];

function optionOf(variable: Variable, asks: boolean): Completion {
  const key = keyOf(variable);
  return {
    label: key,
    displayLabel: visibleName(key),
    detail: variable.dynamic ? visibleName(variable.name) : variable.absent ? "absent" : visibleLine(variable.value ?? "", 32),
    info: () => infoOf(variable),
    apply: variable.dynamic ? again(key) : closing(key, asks),
    boost: variable.absent ? -1 : 0,
    type: "variable",
  };
}

async function completePaths(context: CompletionContext, { files }: CompletionSources, typed: string, asks: boolean) {
  const slash = typed.lastIndexOf("/") + 1;
  const abort = new AbortController();
  context.addEventListener("abort", () => abort.abort());
  // A missing directory has no entries, and the preview reports it already.
  const listed = await files(typed.slice(0, slash), abort.signal).catch(() => null);
  if (!listed) return null;
  const options = listed.entries.filter(({ name, kind }) => !unfit(kind === "directory" ? `${name}/` : name)).map(({ name, kind }): Completion => kind === "directory"
    ? { label: `${name}/`, displayLabel: visibleName(`${name}/`), apply: again(`${name}/`), type: "folder" }
    : { label: name, displayLabel: visibleName(name), apply: closing(name, asks), type: "file" });
  return { from: context.pos - typed.length + slash, options, validFor: /^[^/[\]\n]*$/ };
}

/** Inserts a text that something has to follow, and offers that. */
function again(text: string) {
  return (view: EditorView, _completion: Completion, from: number, to: number) => {
    view.dispatch({ changes: { from, to, insert: text }, selection: { anchor: from + text.length }, userEvent: "input.complete" });
    startCompletion(view);
  };
}

/** Inserts the rest of a tag with its bracket; a condition gets its end too, because without one it would stay as text. */
function closing(text: string, asks: boolean) {
  return (view: EditorView, _completion: Completion, from: number, to: number) => {
    const closed = view.state.sliceDoc(to, to + 1) === "]";
    const insert = `${text}]${asks && !closed ? "[endif]" : ""}`;
    view.dispatch({
      changes: { from, to: closed ? to + 1 : to, insert },
      selection: { anchor: from + text.length + 1 },
      userEvent: "input.complete",
    });
  };
}

function infoOf(variable: Variable): HTMLElement {
  const element = document.createElement("div");
  element.className = "foreign";
  const value = variable.absent ? `absent: ${variable.absent}` : visibleLine(variable.value ?? "", VALUE_SHOWN);
  for (const text of [variable.description, value, stabilityWords(variable.stability)]) {
    if (text) element.append(Object.assign(document.createElement("p"), { textContent: visibleName(text) }));
  }
  return element;
}
