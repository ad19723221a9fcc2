// The reasons for opening epochs, as text.

const REASONS: Record<string, string> = {
  startup: "first turn",
  reload: "reload",
  compaction: "history compacted",
  tools: "other tools",
  cwd: "other working directory",
  resources: "other resources",
  profile: "other profile",
};

/** A word from a newer server stays as it is. */
export function reasonSaid(reason: string): string {
  return REASONS[reason] ?? reason;
}
