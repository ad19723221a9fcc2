// Paths as a tag names them: relative where they lie below the directory, else whole.

/** What of `path` stands below `dir`; nothing when it lies elsewhere. */
export function below(dir: string, path: string): string | null {
  const root = dir.endsWith("/") ? dir : `${dir}/`;
  if (path === dir) return "";
  return path.startsWith(root) ? path.slice(root.length) : null;
}

export function fileKey(cwd: string, path: string): string {
  return `file:${below(cwd, path) ?? path}`;
}
