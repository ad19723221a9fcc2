// Two texts side by side or one above the other, with what differs set off.

import { EditorState, Text, type Extension } from "@codemirror/state";
import { EditorView, drawSelection, keymap, lineNumbers } from "@codemirror/view";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { codeTheme } from "./code-theme.ts";
import { visibleCharacters } from "./visible-characters.ts";

export interface DiffTexts {
  before: string;
  after: string;
  beforeLabel: string;
  afterLabel: string;
}

export interface DiffOptions {
  layout: "beside" | "unified";
  /** Called with each new text when the second one may be edited. */
  onedit?: (text: string) => void;
}

export interface DiffView {
  destroy(): void;
}

// A comparison in every detail can take long on texts that have nothing in common; a rough one is good enough then.
const diffConfig = { scanLimit: 5_000, timeout: 500 };
const LONG_LINE = /[^\n]{50000}/;
const collapse = { margin: 3, minSize: 6 };

function readOnly(label: string): Extension {
  return [
    EditorState.readOnly.of(true),
    EditorView.editable.of(false),
    EditorView.contentAttributes.of({
      "aria-label": label, "aria-readonly": "true", "aria-multiline": "true", role: "textbox", tabindex: "0",
    }),
  ];
}

function editable(label: string, onedit: (text: string) => void): Extension {
  return [
    EditorView.contentAttributes.of({ "aria-label": label, tabindex: "0" }),
    history(),
    keymap.of(historyKeymap),
    EditorView.updateListener.of((update) => {
      if (update.docChanged) onedit(update.state.doc.toString());
    }),
  ];
}

const look = EditorView.theme({
  ".cm-changedLine": { backgroundColor: "var(--warning-soft) !important" },
  "&.cm-merge-a .cm-changedLine, .cm-deletedChunk": { backgroundColor: "var(--danger-soft) !important" },
  "&.cm-merge-b .cm-changedLine, .cm-insertedLine": { backgroundColor: "var(--good-soft) !important" },
  "&.cm-merge-a .cm-changedText, .cm-deletedChunk .cm-deletedText": {
    background: "color-mix(in srgb, var(--danger) 26%, transparent) !important", textDecoration: "none",
  },
  "&.cm-merge-b .cm-changedText, .cm-insertedLine .cm-changedText": {
    background: "color-mix(in srgb, var(--good) 26%, transparent) !important", textDecoration: "none",
  },
  ".cm-collapsedLines::before, .cm-collapsedLines::after": { content: '""' },
  ".cm-chunkButtons": { insetInlineEnd: "8px", zIndex: "5" },
  ".cm-chunkButtons button": {
    minHeight: "24px", margin: "0 2px", padding: "0 8px", border: "1px solid var(--border)", background: "var(--surface)",
    color: "var(--text)", font: "0.75rem/22px var(--sans)",
  },
  ".cm-collapsedLines": {
    background: "var(--sunken) !important", color: "var(--muted)", fontFamily: "var(--sans)", padding: "2px 12px",
  },
});

const common: Extension = [
  EditorState.lineSeparator.of("\n"),
  lineNumbers(),
  drawSelection(),
  visibleCharacters,
  keymap.of(defaultKeymap),
  codeTheme,
  look,
];

function control(text: string, label: string): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = text;
  button.ariaLabel = button.title = label;
  return button;
}

// The package listens to the mouse only. A click that no pointer made comes from a key or from a screen reader.
function revertControl(): HTMLElement {
  const button = control("→", "Take this part over");
  button.onclick = (event) => {
    if (event.detail === 0) button.dispatchEvent(new MouseEvent("mousedown", { bubbles: true }));
  };
  return button;
}

export function createDiff(parent: HTMLElement, texts: DiffTexts, { layout, onedit }: DiffOptions): DiffView {
  // A view that begins with a very long line lays all of it out to wrap it, which takes seconds and more.
  const long = LONG_LINE.test(texts.before) || LONG_LINE.test(texts.after);
  const shape: Extension = long ? common : [common, EditorView.lineWrapping];
  const second = onedit ? editable(texts.afterLabel, onedit) : readOnly(texts.afterLabel);
  if (layout === "beside") {
    return new MergeView({
      parent,
      a: { doc: texts.before, extensions: [shape, readOnly(texts.beforeLabel)] },
      b: { doc: texts.after, extensions: [shape, second] },
      diffConfig,
      gutter: true,
      collapseUnchanged: collapse,
      revertControls: onedit ? "a-to-b" : undefined,
      renderRevertControl: revertControl,
    });
  }
  return new EditorView({
    parent,
    doc: texts.after,
    extensions: [
      shape,
      second,
      unifiedMergeView({
        original: Text.of(texts.before.split("\n")),
        diffConfig,
        mergeControls: onedit ? (type, action) => {
          const words = type === "accept" ? "Keep yours" : "Take theirs";
          const button = control(words, `${words} here`);
          button.onclick = action;
          return button;
        } : false,
        collapseUnchanged: collapse,
      }),
    ],
  });
}
