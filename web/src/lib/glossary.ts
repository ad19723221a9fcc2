// The words that a reader of these pages may not know. One sentence each.

export const GLOSSARY: readonly (readonly [string, string])[] = [
  ["carrier", "The part of a request that holds a text: the system message, the developer message, or the newest turn."],
  ["live section", "The text on the turn carrier: it is built for every turn, after everything that is cached."],
  ["frozen", "Stored with the conversation at its first turn, and sent with the same bytes ever after."],
  ["prefix", "The frozen bytes at the beginning of a request, which the provider can read from its cache."],
  ["epoch", "The life of one frozen prompt in a conversation. A reload, a compaction or other tools begin the next one."],
  ["cold and warm turn", "A cold turn writes the cache, a warm one reads it."],
  ["cache break", "A value in the prefix that changes by itself: each new conversation pays for everything behind it."],
  ["drift", "The sources have changed since the prompt was frozen."],
  ["digest", "The SHA-256 of the prefix: equal digests are equal bytes."],
  ["section", "A part of a prompt with one purpose, such as the base, the instruction files or the skills."],
];
