// The effects of the variables' buttons on the template.

import { EditorSelection } from "@codemirror/state";
import type { EditorView } from "@codemirror/view";

export type Gesture = "insert" | "if" | "if-not";

/** Puts `[key]` in the place of the selection, or the selection into a block that asks for `key`. */
export function applyGesture(view: EditorView, gesture: Gesture, key: string): void {
  if (gesture === "insert") insertTag(view, key);
  else wrap(view, `[if ${gesture === "if-not" ? "!" : ""}${key}]`);
  view.focus();
}

// A tag whose name is still missing gets the cursor where the name goes.
function insertTag(view: EditorView, key: string): void {
  const tag = `[${key}]`;
  const cursor = key.endsWith(":") ? tag.length - 1 : tag.length;
  const spec = view.state.changeByRange(({ from, to }) => ({
    changes: { from, to, insert: tag },
    range: EditorSelection.cursor(from + cursor),
  }));
  view.dispatch(spec, { userEvent: "input.variable", scrollIntoView: true });
}

function wrap(view: EditorView, open: string): void {
  const spec = view.state.changeByRange(({ from, to }) => ({
    changes: [{ from, insert: open }, { from: to, insert: "[endif]" }],
    range: EditorSelection.range(from + open.length, to + open.length),
  }));
  view.dispatch(spec, { userEvent: "input.condition", scrollIntoView: true });
}
