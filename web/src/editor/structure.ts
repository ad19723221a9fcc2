// The structure of the template in the editor. It is the server's, never parsed here: each answer brings the places of
// tags and dead branches, and edits carry them along until the next answer comes.

import { ChangeSet, RangeSetBuilder, StateEffect, StateField, type ChangeDesc, type EditorState } from "@codemirror/state";
import { Decoration, EditorView, type DecorationSet } from "@codemirror/view";
import type { Range } from "../lib/api.ts";
import type { Answer, PlacedTag } from "./answer.ts";

/** The text was sent as it is now. */
export const sent = StateEffect.define<null>();
/** The answer to the text that was sent last. */
export const answered = StateEffect.define<Answer>();
/** A part of the template, in the places of the last answer, to set off. */
export const linked = StateEffect.define<Range | null>();

interface Structure {
  answer: Answer | null;
  /** Edits since the text was sent that the answer is about. */
  sinceAnswer: ChangeDesc;
  sinceSent: ChangeDesc;
  tags: DecorationSet;
  unused: DecorationSet;
}

export const structure = StateField.define<Structure>({
  create: (state) => ({
    answer: null,
    sinceAnswer: ChangeSet.empty(state.doc.length),
    sinceSent: ChangeSet.empty(state.doc.length),
    tags: Decoration.none,
    unused: Decoration.none,
  }),
  update(old, { docChanged, changes, effects, state }) {
    let next = old;
    if (docChanged) {
      next = {
        ...old,
        sinceAnswer: old.sinceAnswer.composeDesc(changes),
        sinceSent: old.sinceSent.composeDesc(changes),
        tags: old.tags.map(changes),
        unused: old.unused.map(changes),
      };
    }
    for (const effect of effects) {
      if (effect.is(sent)) next = { ...next, sinceSent: ChangeSet.empty(state.doc.length) };
      if (effect.is(answered)) next = settle(next, effect.value);
    }
    return next;
  },
  provide: (field) => [
    EditorView.decorations.from(field, ({ unused }) => unused),
    EditorView.decorations.from(field, ({ tags }) => tags),
  ],
});

function settle(old: Structure, answer: Answer): Structure {
  const { sinceSent } = old;
  return {
    answer,
    sinceAnswer: sinceSent,
    sinceSent,
    tags: marks(answer.tags, tagMark).map(sinceSent),
    unused: marks(answer.unused, () => unusedMark).map(sinceSent),
  };
}

const unusedMark = Decoration.mark({ class: "cm-unused" });

function tagMark(tag: PlacedTag): Decoration {
  const stability = tag.kind === "variable" && tag.stability ? ` cm-stability-${tag.stability}` : "";
  const state = tag.problem ? " cm-tag-problem" : "";
  return Decoration.mark({ class: `cm-tag cm-tag-${tag.kind}${stability}${state}`, tag });
}

function marks<T extends Range>(ranges: readonly T[], mark: (range: T) => Decoration): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  for (const range of ranges) if (range.end > range.start) builder.add(range.start, range.end, mark(range));
  return builder.finish();
}

/** The tag that touches `position`, as the last answer has it. */
export function tagAt(state: EditorState, position: number): PlacedTag | null {
  let found: PlacedTag | null = null;
  state.field(structure).tags.between(position, position, (_from, _to, mark) => {
    found = mark.spec.tag;
    return false;
  });
  return found;
}

/** The present position of a range of the last answer. */
export function placeNow(state: EditorState, range: Range): { from: number; to: number } {
  const { sinceAnswer } = state.field(structure);
  const from = sinceAnswer.mapPos(Math.min(range.start, sinceAnswer.length), 1);
  const to = sinceAnswer.mapPos(Math.min(range.end, sinceAnswer.length), -1);
  return { from, to: Math.max(from, to) };
}

// The tags that belong to the one at the cursor.
const partnerMark = Decoration.mark({ class: "cm-tag-partner" });
const partners = EditorView.decorations.compute([structure, "selection"], (state) => {
  const group = tagAt(state, state.selection.main.head)?.group;
  return group == null ? Decoration.none : marked(state, group);
});

function marked(state: EditorState, group: number): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  state.field(structure).tags.between(0, state.doc.length, (from, to, mark) => {
    if (mark.spec.tag.group === group) builder.add(from, to, partnerMark);
  });
  return builder.finish();
}

const linkedMark = Decoration.mark({ class: "cm-linked" });
const linkedField = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(value, transaction) {
    value = value.map(transaction.changes);
    for (const effect of transaction.effects) {
      if (effect.is(answered)) value = Decoration.none;
      if (!effect.is(linked)) continue;
      const place = effect.value && placeNow(transaction.state, effect.value);
      value = place && place.to > place.from ? Decoration.set(linkedMark.range(place.from, place.to)) : Decoration.none;
    }
    return value;
  },
  provide: (field) => EditorView.decorations.from(field),
});

const look = EditorView.theme({
  ".cm-tag": { borderRadius: "3px", padding: "1px 0", fontWeight: "600" },
  ".cm-tag-variable": { color: "var(--accent)" },
  ".cm-tag-variable:not([class*=cm-stability-])": { backgroundColor: "var(--accent-soft)" },
  ".cm-tag-if, .cm-tag-else, .cm-tag-endif": { color: "var(--keyword)" },
  ".cm-tag-problem": { color: "var(--danger)", fontWeight: "400" },
  ".cm-tag-partner": { boxShadow: "0 0 0 1.5px var(--keyword)", backgroundColor: "var(--keyword-soft)" },
  // Marks lie in each other in no certain order.
  ".cm-unused, .cm-unused .cm-tag, .cm-tag .cm-unused": { color: "var(--muted)", fontStyle: "italic" },
  ".cm-unused .cm-tag-variable, .cm-tag-variable:has(.cm-unused)": { backgroundColor: "transparent !important" },
});

export const templateStructure = [structure, partners, linkedField, look];
