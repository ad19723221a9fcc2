// The look of CodeMirror everywhere in the page. Colours are the page's variables, so that one theme serves light and dark.

import { Decoration, EditorView, MatchDecorator, ViewPlugin, type ViewUpdate } from "@codemirror/view";
import { STABILITIES } from "./api.ts";
import { isVolatile } from "./stability.ts";

const stabilities = Object.fromEntries(
  STABILITIES.flatMap((stability) => [
    // Stable text has no tint: colour is for what changes by itself.
    ...(isVolatile(stability) ? [[`.cm-stability-${stability}`, { backgroundColor: `var(--${stability}-tint)` }] as const] : []),
    [`.cm-letter-${stability}`, { color: `var(--${stability})` }],
  ]),
);

export const codeTheme = EditorView.theme({
  "&": { color: "var(--text)", backgroundColor: "var(--surface)", fontSize: "0.8125rem" },
  "&.cm-focused": { outline: "none" },
  // Above the gutters, which would hide an outline.
  "&.cm-focused::after": {
    content: '""', position: "absolute", inset: "0", zIndex: "300", pointerEvents: "none",
    border: "1px solid var(--focus)", boxShadow: "inset 0 0 0 1px color-mix(in srgb, var(--focus) 35%, transparent)",
  },
  ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "8px 0", caretColor: "var(--text)" },
  ".cm-line": { padding: "0 12px", unicodeBidi: "plaintext" },
  ".cm-cursor, .cm-dropCursor": { borderLeftColor: "var(--text)", borderLeftWidth: "2px" },
  ".cm-gutters": { backgroundColor: "var(--surface)", color: "var(--muted)", border: "none" },
  ".cm-lineNumbers .cm-gutterElement": { padding: "0 4px 0 12px", minWidth: "32px" },
  ".cm-activeLine": { backgroundColor: "transparent" },
  ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--text)" },
  "& > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: "var(--selection)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": { background: "var(--selection)" },
  ".cm-searchMatch": { backgroundColor: "var(--warning-soft)", outline: "1px solid var(--warning)" },
  ".cm-searchMatch-selected": { backgroundColor: "var(--linked)" },
  ".cm-panels": { backgroundColor: "var(--sunken)", color: "var(--text)", borderColor: "var(--border)" },
  ".cm-panel.cm-search": { fontFamily: "var(--sans)", padding: "8px" },
  ".cm-textfield": { backgroundColor: "var(--surface)", border: "1px solid var(--border-strong)" },
  ".cm-button": { backgroundImage: "none", backgroundColor: "var(--surface)", border: "1px solid var(--border)" },
  ".cm-tooltip": {
    backgroundColor: "var(--surface)", color: "var(--text)", border: "1px solid var(--border)",
    borderRadius: "6px", boxShadow: "var(--shadow)", fontFamily: "var(--sans)", fontSize: "0.75rem",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "0.8125rem", maxHeight: "240px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "3px 10px", lineHeight: "18px" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { color: "var(--muted)", fontStyle: "normal", fontFamily: "var(--sans)" },
  "li[aria-selected] .cm-completionDetail": { color: "inherit" },
  ".cm-tooltip.cm-completionInfo": { padding: "6px 10px", maxWidth: "28rem", overflowWrap: "anywhere" },
  ".cm-hidden-character": {
    display: "inline-block", padding: "0 2px", margin: "0 1px", borderRadius: "3px", fontSize: "0.85em",
    lineHeight: "1.3", color: "var(--danger)", backgroundColor: "var(--danger-soft)", unicodeBidi: "isolate",
  },
  ".cm-linked": { boxShadow: "0 0 0 1px var(--warning)", borderRadius: "2px" },
  // Marks lie in each other in no certain order; this one has to win.
  ".cm-linked, .cm-linked [class*=cm-stability-], .cm-linked [class*=cm-tag]": { backgroundColor: "var(--linked) !important" },
  ".cm-diagnostic": { padding: "6px 10px", fontFamily: "var(--sans)", borderLeftWidth: "3px" },
  ".cm-diagnosticAction": {
    backgroundColor: "var(--accent)", color: "var(--on-accent)", border: "none", borderRadius: "4px",
    padding: "2px 8px", margin: "4px 0 0", cursor: "pointer", display: "block", font: "inherit",
  },
  ".cm-heading": { fontWeight: "700" },
  ".cm-code": { color: "var(--machine)" },
  ...stabilities,
});

// Headings and code stand out a little. This looks at the lines in sight only: a parser of Markdown takes the tags of a
// template for links, and takes seconds per key when there are thousands of them.
const markup = new MatchDecorator({
  regexp: /^#{1,6} .*|`[^`\n]+`/gm,
  decoration: ([text]) => (text!.startsWith("#") ? headingMark : codeMark),
});
const headingMark = Decoration.mark({ class: "cm-heading" });
const codeMark = Decoration.mark({ class: "cm-code" });

export const markdownColours = ViewPlugin.define(
  (view) => ({
    decorations: markup.createDeco(view),
    update(update: ViewUpdate) {
      this.decorations = markup.updateDeco(update, this.decorations);
    },
  }),
  { decorations: (plugin) => plugin.decorations },
);
