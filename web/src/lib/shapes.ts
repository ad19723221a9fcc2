// The server's responses. Offsets are UTF-8 bytes, times are milliseconds since 1970.
// A field that is missing and one that is null mean the same.

export type Stability = "release" | "machine" | "user" | "project" | "session" | "day" | "turn";
export const STABILITIES: readonly Stability[] = ["release", "machine", "user", "project", "session", "day", "turn"];

export interface Range {
  start: number;
  end: number;
}

export interface Source {
  kind: "built_in" | "file" | "variable" | "request" | "pack" | "profile" | "hook";
  name?: string;
  path?: string | null;
  key?: string;
  field?: string;
  profile?: string;
  line?: number | null;
  column?: number | null;
}

export interface Section extends Range {
  id: string;
  carrier: string;
  stability: Stability;
  source: Source;
}

export interface Span extends Range {
  carrier: string;
  stability: Stability;
  source: Source;
  template?: Source | null;
  included_from?: Source[];
  tag?: Range | null;
}

export interface Note {
  code: string;
  severity: "info" | "warning" | "error";
  message: string;
  hint?: string | null;
  source?: Source | null;
  range?: Range | null;
  fix?: (Range & { label: string; insert: string }) | null;
}

export interface Tag extends Range {
  kind: "variable" | "if" | "else" | "endif";
  key?: string | null;
  negated?: boolean | null;
  group?: number | null;
  problem?: string | boolean | null;
}

export type Carriers = Record<string, string>;

export interface SectionStats {
  id: string;
  carrier: string;
  stability: Stability;
  bytes: number;
  tokens: number;
  cached: "yes" | "as_history" | "no" | "too_short";
}

export interface Figures {
  input_tokens: number;
  read: number;
  written: number;
  written_1h: number;
  uncached: number;
  usd?: number | null;
}

export interface Stats {
  model?: string | null;
  provider?: string | null;
  as_of: string;
  counted: string;
  exact: boolean;
  sections: SectionStats[];
  carriers: { carrier: string; bytes: number; tokens: number }[];
  tools: { count: number; bytes: number; tokens: number };
  prices_of?: string;
  prefix_tokens: number;
  min_tokens?: number | null;
  cold?: Figures | null;
  warm?: Figures | null;
}

export interface Break {
  key: string;
  stability: Stability;
  carrier: string;
  byte: number;
  token: number;
  lost_tokens: number;
  usd?: number | null;
  tag?: Range | null;
  message: string;
}

export interface Preview {
  carriers: Carriers;
  prefix_bytes: number;
  digest: string;
  sections: Section[];
  spans: Span[];
  tags: Tag[];
  unused: Range[];
  stats: Stats;
  breaks: Break[];
  notes: Note[];
}

/** The input of a prompt; docs/request.md has all fields. */
export interface PromptRequest {
  template?: string;
  profile?: string;
  model?: string;
  cwd?: string;
  variables?: Record<string, string | null>;
  [field: string]: unknown;
}

export interface Variable {
  type: string;
  name: string;
  description: string;
  dynamic?: boolean;
  stability: Stability;
  value?: string | null;
  absent?: string | null;
  tokens?: number | null;
  /** The full length of a value that was cut. */
  bytes?: number | null;
}

export interface Editor {
  workspaces: string[];
  profiles: { name: string; description?: string | null; syntax: "bracket" | "jinja" | "slots" }[];
  /** The one that is taken when a request names none. */
  profile?: string | null;
  models: { as_of: string; models: { name: string; vendor: string }[] };
  providers: string[];
  engine: string;
  limits: { template_bytes: number };
  /** The text of the built-in template. */
  built_in?: string | null;
}

export interface Template {
  template: string;
  /** Missing for the built-in template. */
  version?: number | null;
}

export interface Version {
  version: number;
  template?: string;
  author?: string | null;
  written_at: number;
  bytes: number;
}

export interface Files {
  dir: string;
  entries: { name: string; kind: "file" | "directory"; bytes?: number | null }[];
  more: boolean;
}

export interface ConversationItem {
  conversation: string;
  epoch: number;
  reason: string;
  profile: string;
  cwd: string;
  model?: string | null;
  began_at: number;
  opened_at: number;
}

export interface Epoch {
  epoch: number;
  reason: string;
  digest: string;
  fingerprint: string;
  profile: string;
  engine: string;
  cwd: string;
  model?: string | null;
  opened_at: number;
}

export interface Conversation {
  conversation: string;
  epoch: number;
  carriers: Carriers;
  epochs: Epoch[];
  notes: Note[];
}

export interface FrozenEpoch {
  conversation: string;
  epoch: Epoch;
  carriers: Carriers;
  prefix_bytes: number;
  sections: Section[];
  spans: Span[];
  notes: Note[];
  payload?: unknown;
}

export interface CarrierDiff {
  carrier: string;
  first_byte: number;
  before: string;
  after: string;
}

export interface Plan {
  allowed: boolean;
  changed: boolean;
  tools_changed: boolean;
  sections: { id: string; carrier: string; kind: "changed" | "added" | "removed" }[];
  first_byte?: number | null;
  lost_tokens_estimate?: number | null;
  carriers?: CarrierDiff[];
}

export interface Change {
  epoch: number;
  opened: boolean;
  plan?: Plan | null;
}

export interface Diff {
  from: number;
  to: number;
  carriers: CarrierDiff[];
}

/** The files that one agent would read in a folder. */
export interface Agent {
  profile: string;
  title: string;
  version: string;
  as_of: string;
  known_by: string;
  carriers: { carrier: string; bytes: number; tokens: number }[];
  files: AgentFile[];
  /** Names that cannot be looked up for a remote client. */
  out_of_reach: number;
  notes: string[];
}

/** The outcome of a file. */
export interface AgentFile {
  path: string;
  outcome: string;
  word: string;
  why?: string;
  bytes: number;
  cut: boolean;
  carriers: string[];
}
