// Paths for people.

/** A path from the folder on; one above it with a step up for each folder, as the command prints it. */
export function shortPath(path: string, folder: string): string {
  const from = folder.split("/").filter(Boolean);
  const to = path.split("/").filter(Boolean);
  let shared = 0;
  while (shared < from.length && shared < to.length - 1 && from[shared] === to[shared]) shared += 1;
  // A path that shares nothing is clearer as a whole.
  if (shared === 0 || from.length - shared > 4) return path;
  return [...from.slice(shared).map(() => ".."), ...to.slice(shared)].join("/");
}
