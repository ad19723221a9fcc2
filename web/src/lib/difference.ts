// The smallest single change that makes one text of another.

export interface Change {
  from: number;
  to: number;
  insert: string;
}

export function difference(old: string, text: string): Change {
  const shorter = Math.min(old.length, text.length);
  let head = 0;
  while (head < shorter && old.charCodeAt(head) === text.charCodeAt(head)) head += 1;
  let tail = 0;
  while (tail < shorter - head && old.charCodeAt(old.length - 1 - tail) === text.charCodeAt(text.length - 1 - tail)) tail += 1;
  return { from: head, to: old.length - tail, insert: text.slice(head, text.length - tail) };
}
