// The editor of the template. Plain text is the document; everything else is drawn over it.

import { autocompletion, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { lintKeymap } from "@codemirror/lint";
import { highlightSelectionMatches, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView, closeHoverTooltips, drawSelection, hasHoverTooltips, highlightActiveLineGutter, keymap, lineNumbers, placeholder, rectangularSelection } from "@codemirror/view";
import type { Range } from "../lib/api.ts";
import { codeTheme, markdownColours } from "../lib/code-theme.ts";
import { difference } from "../lib/difference.ts";
import { visibleCharacters } from "../lib/visible-characters.ts";
import { templateCompletion, type CompletionSources } from "./completion.ts";
import { reachOf } from "./answer.ts";
import { answered, structure, tagAt, templateStructure } from "./structure.ts";

const HINT = "Write the prompt here. Type [ for a value or a condition, or pick a variable.";

export interface TemplateEvents {
  changed(): void;
  /** The part of the template that belongs to the tag under the pointer or at the cursor, in offsets of the last answer. */
  point(range: Range | null): void;
  /** The cursor was moved by the user, or the text at it changed. */
  cursor(position: number): void;
}

// Clipboards of some systems end lines with CR LF. That would put invisible bytes into the prompt, unless the template
// is written so.
const pastedLines = EditorView.clipboardInputFilter.of((text, state) =>
  state.doc.lines > 1 && state.doc.line(1).text.endsWith("\r") ? text : text.replace(/\r\n?/g, "\n"));

// When typed text replaces a selection, Chromium would keep the look of what was there with inline styles. The page's
// content security policy refuses them and complains, so that the change is made here.
const typedOverSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || !event.data || view.composing || view.state.selection.main.empty) return false;
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: "input.type", scrollIntoView: true });
    event.preventDefault();
    return true;
  },
});

// The tooltip of a problem, which F8 opens, goes with Escape and when the template is left: it must not lie under a dialog.
const closedTooltips = [
  keymap.of([{
    key: "Escape",
    run: (view) => {
      if (!hasHoverTooltips(view.state)) return false;
      view.dispatch({ effects: closeHoverTooltips });
      return true;
    },
  }]),
  EditorView.domEventHandlers({
    blur: (_, view) => {
      if (hasHoverTooltips(view.state)) view.dispatch({ effects: closeHoverTooltips });
    },
  }),
];

function pointing({ point, cursor }: TemplateEvents) {
  let last: Range | null = null;
  const say = (view: EditorView, position: number | null) => {
    const tag = position === null ? null : tagAt(view.state, position);
    const { answer } = view.state.field(structure);
    const range = tag && answer ? reachOf(answer, tag) : null;
    if (range?.start === last?.start && range?.end === last?.end) return;
    point((last = range));
  };
  const atCursor = (view: EditorView) => (view.hasFocus ? view.state.selection.main.head : null);
  return [
    EditorView.domEventHandlers({
      mousemove: (event, view) => void say(view, view.posAtCoords({ x: event.clientX, y: event.clientY }) ?? atCursor(view)),
      mouseleave: (_, view) => void say(view, atCursor(view)),
      blur: (_, view) => void say(view, null),
    }),
    EditorView.updateListener.of((update) => {
      if (update.selectionSet || update.focusChanged) say(update.view, atCursor(update.view));
      const isAnswered = update.transactions.some(({ effects }) => effects.some((effect) => effect.is(answered)));
      // After this update: what listens may change other views.
      if (update.view.hasFocus && (update.selectionSet || isAnswered)) queueMicrotask(() => cursor(update.view.state.selection.main.head));
    }),
  ];
}

const editing = new Compartment();

/** Allows edits, or forbids them. */
export function setEditing(view: EditorView, allowed: boolean): void {
  view.dispatch({ effects: editing.reconfigure(EditorState.readOnly.of(!allowed)) });
}

export function createTemplateView(doc: string, sources: CompletionSources, on: TemplateEvents): EditorView {
  return new EditorView({
    state: EditorState.create({
      doc,
      extensions: [
        // Only LF ends a line: a CR is a byte of the template that has to come back as it was.
        EditorState.lineSeparator.of("\n"),
        EditorView.contentAttributes.of({ "aria-label": "Template", tabindex: "0", spellcheck: "false", autocapitalize: "off", "data-home": "" }),
        EditorView.lineWrapping,
        editing.of(EditorState.readOnly.of(false)),
        lineNumbers(), highlightActiveLineGutter(), drawSelection(), rectangularSelection(),
        history(), search({ top: true }), highlightSelectionMatches(), placeholder(HINT),
        markdownColours,
        closedTooltips, visibleCharacters, pastedLines, typedOverSelection, templateStructure,
        autocompletion({ override: [templateCompletion(sources)], icons: false, activateOnTyping: true }),
        keymap.of([...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.updateListener.of((update) => update.docChanged && on.changed()),
        pointing(on),
        codeTheme,
        EditorView.theme({ "&": { height: "100%" }, ".cm-placeholder": { color: "var(--muted)" } }),
      ],
    }),
  });
}

/** Makes the document `text` by replacing only what differs, as one step that can be undone. */
export function replaceText(view: EditorView, text: string): void {
  const old = view.state.doc.toString();
  if (old === text) return;
  view.dispatch({ changes: difference(old, text), userEvent: "input.replace" });
}
