// Files of the workspace in the palette, searched by the server.

import { api } from "../lib/api.ts";
import type { Entry } from "../lib/palette.svelte.ts";
import { settings } from "../lib/settings.svelte.ts";

export async function fileEntries(text: string, signal: AbortSignal, open: (path: string) => void): Promise<Entry[]> {
  if (text.length < 2 || !settings.cwd) return [];
  const { entries } = await api.searchFiles(text, settings.cwd, signal);
  return entries
    .filter(({ kind, path }) => kind === "file" && path)
    .map(({ name, path }) => ({ label: name, detail: "opens beside the prompt", run: () => open(path!) }));
}
