// JSON for readers. A prompt is one string, and so one line of megabytes that is unreadable and that no browser can lay out.

const LINE_LONG = 120;
const PIECE_MOST = 4_000;

/** Breaks the long lines of a JSON text: after `\n` escapes, and wherever a line is still too long. */
export function readable(json: string): string {
  return json.split("\n").flatMap((line) => (line.length > LINE_LONG ? pieces(line) : [line])).join("\n");
}

function pieces(line: string): string[] {
  const found: string[] = [];
  let start = 0;
  for (let at = line.indexOf("\\"); at >= 0; at = line.indexOf("\\", at + 2)) {
    if (line[at + 1] !== "n") continue;
    cut(line.slice(start, at + 2), found);
    start = at + 2;
  }
  cut(line.slice(start), found);
  return found;
}

function cut(piece: string, found: string[]): void {
  for (let start = 0; start < piece.length; ) {
    let end = start + PIECE_MOST;
    // Not between the halves of a character.
    if (end < piece.length && (piece.codePointAt(end - 1) ?? 0) > 0xffff) end -= 1;
    found.push(piece.slice(start, end));
    start = end;
  }
}
