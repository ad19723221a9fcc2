// The reasons for opening epochs, as text.

const REASONS: Record<string, string> = {
  startup: "first turn",
  reload: "reload",
  compaction: "compacted",
  tools: "tools changed",
  cwd: "working directory changed",
  resources: "resources changed",
  profile: "profile changed",
};

/** A word from a newer server stays as it is. */
export function reasonSaid(reason: string): string {
  return REASONS[reason] ?? reason;
}
