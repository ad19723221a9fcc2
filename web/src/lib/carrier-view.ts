// One carrier of a prompt, read-only, with its pieces coloured by stability. CodeMirror draws only what is in sight, so
// that a prompt of a megabyte costs no more than a screen of it.

import { EditorState, RangeSet, RangeSetBuilder, StateEffect, StateField, type Extension } from "@codemirror/state";
import { Decoration, EditorView, GutterMarker, WidgetType, drawSelection, gutter, hoverTooltip, keymap, type DecorationSet } from "@codemirror/view";
import { defaultKeymap } from "@codemirror/commands";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import type { Span, Stability } from "./api.ts";
import { codeTheme } from "./code-theme.ts";
import { difference } from "./difference.ts";
import { pieceAt, piecesIn, type Piece, type Pointed } from "./pieces.ts";
import { describeSource } from "./source.ts";
import { stabilityLetter, stabilityRank, stabilityWords } from "./stability.ts";
import { visibleCharacters } from "./visible-characters.ts";

export interface CarrierContent {
  text: string;
  pieces: readonly Piece[];
  /** UTF-16 offset at which the cached part ends, in the carrier that has it. */
  cacheEnd?: number;
  /** The label of the line there. */
  cacheLabel?: string;
}

export interface CarrierEvents {
  /** The piece under the pointer or the cursor, or nothing. */
  point(pointed: Pointed | null): void;
  /** Opens the origin of the piece. */
  open(piece: Piece): void;
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

function decorate(state: EditorState, { pieces, cacheEnd, cacheLabel = "cached up to here" }: CarrierContent): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const { from, to, span } of pieces) if (to > from) builder.add(from, to, markOf(span.stability));
  const set = builder.finish();
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

class Letter extends GutterMarker {
  constructor(readonly stability: Stability) {
    super();
  }
  override eq(other: Letter) {
    return other.stability === this.stability;
  }
  override toDOM() {
    const letter = document.createElement("span");
    letter.className = `cm-letter-${this.stability}`;
    letter.textContent = stabilityLetter(this.stability);
    letter.title = stabilityWords(this.stability);
    return letter;
  }
}

// The least stable piece of a line decides how long the line can stay cached.
const letters = gutter({
  class: "cm-letters",
  lineMarker(view, line) {
    const inLine = piecesIn(view.state.field(content).pieces, line.from, line.to);
    const worst = inLine.reduce<Span | null>((found, { span }) =>
      !found || stabilityRank(span.stability) > stabilityRank(found.stability) ? span : found, null);
    return worst && new Letter(worst.stability);
  },
});

/** The line breaks between the start of a piece and a position in it. */
const breaksBefore = ({ doc }: EditorState, piece: Piece, position: number): number =>
  doc.lineAt(position).number - doc.lineAt(piece.from).number;

const sourceTooltip = hoverTooltip((view, position) => {
  const piece = pieceAt(view.state.field(content).pieces, position);
  if (!piece) return null;
  const line = view.state.doc.lineAt(position);
  return {
    pos: Math.max(piece.from, line.from),
    end: Math.min(piece.to, line.to),
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

function events({ point, open }: CarrierEvents): Extension {
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
  ".cm-letters .cm-gutterElement": { padding: "0 4px 0 8px", fontWeight: "700", fontSize: "0.6875rem", cursor: "default" },
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
        content, decorations, lit, letters,
        drawSelection(), visibleCharacters, highlightSelectionMatches(),
        sourceTooltip, events(on),
        keymap.of([...searchKeymap, ...defaultKeymap]),
        codeTheme, look,
      ],
    }),
  });
}

/** Replaces only what differs, so that the scroll position stays. */
export function showCarrier(view: EditorView, next: CarrierContent): void {
  const old = view.state.doc.toString();
  const changes = old === next.text ? undefined : difference(old, next.text);
  view.dispatch({ changes, effects: setContent.of(next) });
}
