// Paths as a tag names them: relative where they lie below the directory, else whole.

import { below } from "../lib/settings.svelte.ts";

export { below };

export function fileKey(cwd: string, path: string): string {
  return `file:${below(cwd, path) ?? path}`;
}

/** The reason why a tag cannot name this path, if any; docs/templates.md has the rules. */
export function unfit(path: string): string | undefined {
  if (/[\n\r\u2028\u2029]/.test(path)) return "a tag ends with its line, and this name has a line break";
  if (/[[\]]/.test(path)) return "a tag cannot hold the brackets of this name";
  if (/\p{Cc}/u.test(path)) return "this name has a control character";
  if (/\s$/.test(path)) return "a tag drops the white space that this name ends with";
  return undefined;
}
