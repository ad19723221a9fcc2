// The notes of a preview as underlines in the template, with what would put them right as an action.

import type { Action, Diagnostic } from "@codemirror/lint";
import type { EditorState } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";
import { visibleText } from "../lib/visible.ts";
import type { PlacedNote } from "./answer.ts";
import { placeNow } from "./structure.ts";

export function problemsOf(state: EditorState, notes: readonly PlacedNote[]): Diagnostic[] {
  return notes.filter((note) => note.place).map((note) => ({
    ...placeNow(state, note.place!),
    severity: note.severity,
    message: visibleText(note.hint ? `${note.message}\n${note.hint}` : note.message),
    actions: note.fix ? [fixAction(note)] : undefined,
  }));
}

function fixAction(note: PlacedNote): Action {
  return { name: visibleText(note.fix!.label), apply: (view) => applyFix(view, note) };
}

/** Puts right what the note is about, where it lies by now. */
export function applyFix(view: EditorView, note: PlacedNote): void {
  if (!note.fix || !note.replacement) return;
  const { from, to } = placeNow(view.state, note.replacement);
  view.dispatch({ changes: { from, to, insert: note.fix.insert }, userEvent: "input.fix", scrollIntoView: true });
}
