// The entries of the palette that every page offers: pages, conversations, versions, colours.

import { api } from "../lib/api.ts";
import { time } from "../lib/format.ts";
import { matching, type Entry, type EntrySource } from "../lib/palette.svelte.ts";
import { href, PAGES, route, type Page } from "../lib/route.svelte.ts";
import { theme, type Theme } from "../lib/theme.svelte.ts";

const TITLES: Record<Page, string> = {
  overview: "Overview", prompt: "Prompt", versions: "Versions", conversations: "Conversations", sources: "Sources", health: "Health",
};
const pages: readonly Entry[] = PAGES.map((page) => ({ label: TITLES[page], run: () => route.go(href(page)) }));
const colours: readonly Entry[] = (["light", "dark", "auto"] as Theme[]).map((choice) => ({
  label: choice === "auto" ? "Colours: as the system" : `Colours: ${choice}`,
  run: () => (theme.current = choice),
}));

async function conversations(text: string, signal: AbortSignal): Promise<Entry[]> {
  const page = await api.conversations({ search: text, limit: 8 }, signal);
  return page.conversations.map(({ conversation, cwd, model }) => ({
    label: conversation,
    detail: [model, cwd].filter(Boolean).join(", "),
    run: () => route.go(href("conversations", conversation)),
  }));
}

async function versions(text: string, signal: AbortSignal): Promise<Entry[]> {
  const { versions } = await api.versions({ limit: 100, text: false }, signal);
  return matching(versions.map(({ version, author, written_at }) => ({
    label: `Version ${version}`,
    detail: [author, time(written_at)].filter(Boolean).join(", "),
    run: () => route.go(href("versions", version)),
  })), text);
}

export const pageEntries: readonly EntrySource[] = [
  { group: "Pages", find: (text) => matching(pages, text) },
  { group: "Conversations", find: conversations },
  { group: "Versions", find: (text, signal) => (text === "" ? [] : versions(text, signal)) },
  { group: "Commands", find: (text) => (text === "" ? [] : matching(colours, text)) },
];
