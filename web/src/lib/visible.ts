// Short untrusted texts, such as names of files: characters that hide or reorder text are shown by their numbers.

// Control characters, marks of direction, characters without width, fillers, tags, and halves of characters: the characters
// that the command escapes (`proem_core::text_safety::escape`). A joiner or a selector inside an emoji is harmless.
const HIDDEN = new RegExp(
  [
    "[\\p{Cc}\\p{Cs}\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b\\u200c\\u200e\\u200f]",
    "[\\u2028-\\u202e\\u2060-\\u206f\\u2800\\u3164\\ufeff\\uffa0\\ufff0-\\ufffb]",
    "[\\u{13430}-\\u{1343f}\\u{1bca0}-\\u{1bca3}\\u{1d173}-\\u{1d17a}\\u{e0000}-\\u{e0fff}]",
    "(?<!\\p{Emoji})[\\ufe00-\\ufe0f]",
    "(?<![\\p{Extended_Pictographic}\\ufe0f\\u{1f3fb}-\\u{1f3ff}])\\u200d",
  ].join("|"),
  "gu",
);

const named = (character: string) =>
  `‹U+${character.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}›`;

/** A name, a path or a value on one line, as it can be read without a doubt. */
export function visibleName(text: string | null | undefined): string {
  return (text ?? "").replace(HIDDEN, named);
}

/** The same for a message, whose tabs and line breaks are its own. */
export function visibleText(text: string | null | undefined): string {
  return (text ?? "").replace(HIDDEN, (character) => (character === "\n" || character === "\t" ? character : named(character)));
}

/** The beginning of a text, on one line of about `most` characters. */
export function visibleLine(text: string, most: number): string {
  const flat = text.slice(0, most + 1).replace(/[ \t\r\n]+/g, " ");
  // Not between the halves of a character.
  return visibleName(flat.length > most ? `${flat.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…` : flat);
}
