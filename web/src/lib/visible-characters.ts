// Shows what hides: control and escape characters, marks that reorder text, and characters without width. Text in a
// prompt comes from repositories of strangers, and what a model reads must not look like something else to a person.

import { highlightSpecialChars } from "@codemirror/view";
import type { Extension } from "@codemirror/state";

// In addition to CodeMirror's own: further marks of direction, fillers, invisible operators, tags and selectors. A
// joiner inside an emoji is harmless; showing it would split the emoji.
const HIDDEN = new RegExp(
  [
    "[\\u034f\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180e\\u200c\\u2028-\\u202e\\u2060-\\u206f\\u3164\\uffa0]",
    "(?<![\\p{Extended_Pictographic}\\ufe0f\\u{1f3fb}-\\u{1f3ff}])\\u200d",
    "[\\u{e0000}-\\u{e01ef}]",
  ].join("|"),
  "gu",
);

const NAMES: Record<number, string> = {
  0x0d: "carriage return",
  0x1b: "escape",
  0xad: "soft hyphen",
  0x200b: "zero width space",
  0x200c: "zero width non-joiner",
  0x200d: "zero width joiner",
  0x200e: "left-to-right mark",
  0x200f: "right-to-left mark",
  0x202a: "left-to-right embedding",
  0x202b: "right-to-left embedding",
  0x202c: "pop directional formatting",
  0x202d: "left-to-right override",
  0x202e: "right-to-left override",
  0x2066: "left-to-right isolate",
  0x2067: "right-to-left isolate",
  0x2068: "first strong isolate",
  0x2069: "pop directional isolate",
  0xfeff: "byte order mark",
};

export function characterName(code: number): string {
  const hex = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  return NAMES[code] ? `${hex} ${NAMES[code]}` : hex;
}

// Many fonts lack the pictures of control characters that Unicode has; everybody has letters.
const CONTROLS = ("NUL SOH STX ETX EOT ENQ ACK BEL BS HT LF VT FF CR SO SI " +
  "DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN EM SUB ESC FS GS RS US").split(" ");

/** The replacement of a character: the abbreviation of a control character, or its number. */
export function characterSign(code: number): string {
  if (code === 0x7f) return "DEL";
  return CONTROLS[code] ?? code.toString(16).toUpperCase().padStart(4, "0");
}

function sign(code: number): HTMLElement {
  const element = document.createElement("span");
  element.className = "cm-hidden-character";
  element.textContent = characterSign(code);
  element.title = characterName(code);
  element.setAttribute("role", "img");
  element.setAttribute("aria-label", characterName(code));
  return element;
}

export const visibleCharacters: Extension = highlightSpecialChars({ addSpecialChars: HIDDEN, render: sign });
