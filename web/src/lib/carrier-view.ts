// One carrier of a prompt, read-only: in its margin the file and the line that each line comes from, and colour only for what
// changes by day or turn. CodeMirror draws only what is in sight, so that a prompt of a megabyte costs no more than a screen
// of it.

import { EditorState, RangeSet, RangeSetBuilder, StateEffect, StateField, type Extension } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, WidgetType, drawSelection, gutter, hoverTooltip, keymap, type DecorationSet } from "@codemirror/view";
import { defaultKeymap } from "@codemirror/commands";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import type { Stability } from "./api.ts";
import { blameOf, type Blame } from "./blame.ts";
import { codeTheme } from "./code-theme.ts";
import { difference } from "./difference.ts";
import { pieceAt, type Piece, type Pointed } from "./pieces.ts";
import { describeSource } from "./source.ts";
import { isVolatile, stabilityWords } from "./stability.ts";
import { visibleName } from "./visible.ts";
import { visibleCharacters } from "./visible-characters.ts";

export interface CarrierContent {
  text: string;
  pieces: readonly Piece[];
  /** UTF-16 offset at which the cached part ends, in the carrier that has it. */
  cacheEnd?: number;
  /** The label of the line there. */
  cacheLabel?: string;
  /** Headings of sections, ascending, above the lines that they begin with. */
  headings?: readonly Heading[];
}

export interface Heading {
  at: number;
  title: string;
  detail?: string;
}

export interface CarrierEvents {
  /** The piece under the pointer or the cursor, or nothing. */
  point(pointed: Pointed | null): void;
  /** Opens the origin of the piece. */
  open(piece: Piece): void;
  /** Opens a file at a line. */
  file(path: string, line: number): void;
}

const setContent = StateEffect.define<CarrierContent>();
export const setLit = StateEffect.define<readonly Piece[]>();

const marks = new Map<Stability, Decoration>();
function markOf(stability: Stability): Decoration {
  let mark = marks.get(stability);
  if (!mark) marks.set(stability, (mark = Decoration.mark({ class: `cm-stability-${stability}` })));
  return mark;
}

class CacheEnd extends WidgetType {
  constructor(readonly whole: boolean, readonly label: string) {
    super();
  }
  override eq(other: CacheEnd) {
    return other.whole === this.whole && other.label === this.label;
  }
  override toDOM() {
    const line = document.createElement(this.whole ? "div" : "span");
    line.className = this.whole ? "cm-cache-end" : "cm-cache-end cm-cache-end-inline";
    line.textContent = this.label;
    return line;
  }
  override get estimatedHeight() {
    return this.whole ? 22 : -1;
  }
}

class SectionHeading extends WidgetType {
  constructor(readonly title: string, readonly detail: string) {
    super();
  }
  override eq(other: SectionHeading) {
    return other.title === this.title && other.detail === this.detail;
  }
  override toDOM() {
    const line = document.createElement("div");
    line.className = "cm-section-heading foreign";
    line.append(Object.assign(document.createElement("b"), { textContent: visibleName(this.title) }), ` ${this.detail}`);
    return line;
  }
  override get estimatedHeight() {
    return 22;
  }
}

function headingMarks(state: EditorState, headings: readonly Heading[]) {
  // A section can begin with the line break that ends the one before it.
  const afterBreaks = (at: number) => {
    let next = at;
    while (state.sliceDoc(next, next + 1) === "\n") next += 1;
    return next;
  };
  return headings
    .map((heading) => ({ ...heading, at: afterBreaks(heading.at) }))
    // In the middle of a line a heading would tear the text apart.
    .filter(({ at }) => at < state.doc.length && state.doc.lineAt(at).from === at)
    .map(({ at, title, detail = "" }) =>
      Decoration.widget({ widget: new SectionHeading(title, detail), block: true, side: -2 }).range(at));
}

function decorate(state: EditorState, { pieces, cacheEnd, cacheLabel = "cached up to here", headings = [] }: CarrierContent): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, span } of pieces) if (to > from && isVolatile(span.stability)) builder.add(from, to, markOf(span.stability));
  const set = builder.finish().update({ add: headingMarks(state, headings), sort: true });
  if (cacheEnd === undefined) return set;
  // A line between lines where that is possible; in the middle of one, a mark in the text.
  const line = state.doc.lineAt(cacheEnd);
  const atStart = cacheEnd === line.from && cacheEnd > 0;
  const whole = atStart || cacheEnd === line.to;
  const widget = Decoration.widget({ widget: new CacheEnd(whole, cacheLabel), block: whole, side: atStart ? -1 : 1 });
  return set.update({ add: [widget.range(cacheEnd)] });
}

const content = StateField.define<CarrierContent>({
  create: () => ({ text: "", pieces: [] }),
  update: (value, transaction) => transaction.effects.find((effect) => effect.is(setContent))?.value ?? value,
});

const decorations = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    const change = transaction.effects.find((effect) => effect.is(setContent));
    return change ? decorate(transaction.state, change.value) : value;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const litMark = Decoration.mark({ class: "cm-linked" });
const lit = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    if (transaction.docChanged) value = Decoration.none;
    for (const effect of transaction.effects) {
      if (effect.is(setLit)) {
        value = RangeSet.of(effect.value.filter(({ from, to }) => to > from).map(({ from, to }) => litMark.range(from, to)), true);
      }
    }
    return value;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const NAME_EVERY = 15;

class BlameMark extends GutterMarker {
  constructor(readonly blame: Blame, readonly isFirst: boolean, readonly isNamed: boolean, readonly stability: Stability) {
    super();
  }
  override eq(other: BlameMark) {
    const { key, line } = this.blame;
    return other.blame.key === key && other.blame.line === line && other.isFirst === this.isFirst && other.stability === this.stability;
  }
  override toDOM() {
    const { name, line, path, key } = this.blame;
    const dom = document.createElement("span");
    dom.className = `cm-blame${this.isFirst ? " cm-blame-first" : ""}${path ? " cm-blame-file" : ""}${isVolatile(this.stability) ? ` cm-letter-${this.stability}` : ""}`;
    const shown = document.createElement("span");
    shown.className = "cm-blame-name";
    shown.textContent = this.isFirst || this.isNamed ? name : "";
    const number = document.createElement("span");
    number.className = "cm-blame-line";
    number.textContent = line ? String(line) : "";
    dom.append(shown, number);
    dom.title = `${visibleName(path ?? key)}${line ? `:${line}` : ""}, ${stabilityWords(this.stability)}${path ? "; click opens the file" : ""}`;
    return dom;
  }
}

function blameAt(state: EditorState, from: number): { blame: Blame; stability: Stability } | null {
  const piece = pieceAt(state.field(content).pieces, from);
  return piece && { blame: blameOf(piece.span.source, breaksBefore(state, piece, from)), stability: piece.span.stability };
}

/** The origin of each line: the name of the file at the first line of a block, and the real line at each. */
const blameRail = ({ file }: CarrierEvents) => gutter({
  class: "cm-blame-rail",
  lineMarker(view, { from }) {
    const here = blameAt(view.state, from);
    if (!here) return null;
    const before = from > 0 ? blameAt(view.state, view.state.doc.lineAt(from - 1).from) : null;
    const follows = before?.blame.key === here.blame.key && (here.blame.line === undefined || before.blame.line === here.blame.line - 1);
    // In a long file the name comes again, so that one of them is in sight.
    return new BlameMark(here.blame, !follows, (here.blame.line ?? 1) % NAME_EVERY === 0, here.stability);
  },
  lineMarkerChange: (update) => update.transactions.some(({ effects }) => effects.some((effect) => effect.is(setContent))),
  domEventHandlers: {
    click(view, { from }) {
      const { path, line = 1 } = blameAt(view.state, from)?.blame ?? {};
      if (path) file(path, line);
      return path !== undefined;
    },
  },
});

/** The line breaks between the start of a piece and a position in it. */
const breaksBefore = ({ doc }: EditorState, piece: Piece, position: number): number =>
  doc.lineAt(position).number - doc.lineAt(piece.from).number;

const sourceTooltip = hoverTooltip((view, position) => {
  const piece = pieceAt(view.state.field(content).pieces, position);
  if (!piece) return null;
  // At the pointer: the beginning of a long piece can be far away, and so can that of a wrapped line.
  return {
    pos: position,
    above: true,
    create() {
      const dom = document.createElement("div");
      dom.className = "cm-source foreign";
      const source = describeSource(piece.span.source, breaksBefore(view.state, piece, position));
      dom.textContent = `${source} · ${stabilityWords(piece.span.stability)}`;
      return { dom };
    },
  };
}, { hoverTime: 350 });

/** Opens the file that the line of the cursor comes from. */
function openFile(view: EditorView, file: CarrierEvents["file"]): boolean {
  const { path, line = 1 } = blameAt(view.state, view.state.selection.main.head)?.blame ?? {};
  if (path) file(path, line);
  return true;
}

function events({ point, open, file }: CarrierEvents): Extension {
  let last: Pointed | null = null;
  const say = (pointed: Pointed | null) => {
    if (pointed?.piece === last?.piece && pointed?.breaks === last?.breaks) return;
    last = pointed;
    point(pointed);
  };
  const at = (view: EditorView, position: number): Pointed | null => {
    const piece = pieceAt(view.state.field(content).pieces, position);
    return piece && { piece, breaks: breaksBefore(view.state, piece, position) };
  };
  const under = (view: EditorView, { clientX: x, clientY: y }: { clientX: number; clientY: number }) => {
    const position = view.posAtCoords({ x, y });
    return position === null ? null : at(view, position);
  };
  const atCursor = (view: EditorView) => at(view, view.state.selection.main.head);
  return [
    EditorView.domEventHandlers({
      mousemove: (event, view) => void say(under(view, event)),
      mouseleave: (_, view) => void say(view.hasFocus ? atCursor(view) : null),
      blur: () => void say(null),
      focus: (_, view) => void say(atCursor(view)),
      dblclick: (event, view) => {
        const pointed = under(view, event);
        if (pointed) open(pointed.piece);
      },
    }),
    EditorView.updateListener.of((update) => {
      if (update.selectionSet && update.view.hasFocus) say(atCursor(update.view));
    }),
    keymap.of([
      { key: "Ctrl-Enter", run: (view) => openFile(view, file) },
      { key: "Enter", run: (view) => { const pointed = atCursor(view); if (pointed) open(pointed.piece); return true; } },
      { key: "Alt-ArrowDown", run: (view) => step(view, 1) },
      { key: "Alt-ArrowUp", run: (view) => step(view, -1) },
    ]),
  ];
}

function step(view: EditorView, direction: 1 | -1): boolean {
  const { pieces } = view.state.field(content);
  const here = pieceAt(pieces, view.state.selection.main.head);
  const next = here ? pieces[pieces.indexOf(here) + direction] : pieces[0];
  if (next) view.dispatch({ selection: { anchor: next.from }, scrollIntoView: true });
  return true;
}

const look = EditorView.theme({
  ".cm-blame-rail .cm-gutterElement": { padding: "0", fontSize: "0.6875rem" },
  ".cm-blame": {
    display: "flex", gap: "6px", width: "9.5rem", height: "100%", padding: "0 6px 0 10px", color: "var(--muted)",
    fontFamily: "var(--sans)", lineHeight: "1.9", borderRight: "1px solid var(--border)",
  },
  ".cm-blame-first": { borderTop: "1px solid var(--border)" },
  ".cm-blame-name": { flex: "1 1 0", minWidth: "0", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap", unicodeBidi: "isolate" },
  ".cm-blame-line": { fontVariantNumeric: "tabular-nums" },
  ".cm-blame-file": { cursor: "pointer" },
  ".cm-blame-file:hover": { color: "var(--accent)", backgroundColor: "var(--hover)" },
  ".cm-section-heading": {
    height: "22px", padding: "0 12px", backgroundColor: "var(--sunken)", borderBlock: "1px solid var(--border)",
    color: "var(--muted)", font: "0.6875rem/20px var(--sans)", overflow: "hidden", textOverflow: "ellipsis", whiteSpace: "nowrap",
  },
  "@media (width < 900px)": { ".cm-blame": { width: "5.5rem", paddingLeft: "4px" } },
  ".cm-cache-end": {
    display: "flex", alignItems: "center", gap: "8px", height: "22px", padding: "0 12px", color: "var(--accent)",
    font: "600 0.6875rem/22px var(--sans)",
  },
  ".cm-cache-end::before": { content: '""', width: "16px", borderTop: "2px dashed var(--accent)" },
  ".cm-cache-end::after": { content: '""', flex: "1", borderTop: "2px dashed var(--accent)" },
  ".cm-cache-end-inline": { display: "inline-flex", height: "auto", lineHeight: "1.4", padding: "0 4px", verticalAlign: "baseline" },
  ".cm-cache-end-inline::after": { flex: "none", width: "16px" },
  ".cm-source": { padding: "4px 8px", maxWidth: "36rem" },
});

export function createCarrierView(parent: HTMLElement, label: string, on: CarrierEvents): EditorView {
  return new EditorView({
    parent,
    state: EditorState.create({
      extensions: [
        // Only LF ends a line: a CR is a character of the prompt and is shown as one.
        EditorState.lineSeparator.of("\n"),
        EditorState.readOnly.of(true),
        EditorView.editable.of(false),
        EditorView.contentAttributes.of({
          "aria-label": label, "aria-readonly": "true", "aria-multiline": "true", role: "textbox", tabindex: "0",
        }),
        EditorView.lineWrapping,
        content, decorations, lit, blameRail(on),
        drawSelection(), visibleCharacters, highlightSelectionMatches(),
        sourceTooltip, events(on),
        keymap.of([...searchKeymap, ...defaultKeymap]),
        codeTheme, look,
      ],
    }),
  });
}

/** Brings a position into sight; at the top with `top`, else only if it is out of sight. */
export function reveal(view: EditorView, at: number, top = false): void {
  view.dispatch({ effects: EditorView.scrollIntoView(Math.min(at, view.state.doc.length), { y: top ? "start" : "nearest", yMargin: 48 }) });
}

/** Replaces only what differs, so that the scroll position stays. */
export function showCarrier(view: EditorView, next: CarrierContent): void {
  const old = view.state.doc.toString();
  const changes = old === next.text ? undefined : difference(old, next.text);
  view.dispatch({ changes, effects: setContent.of(next) });
}
