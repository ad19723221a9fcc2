// The shapes of the API, written by web/types.mjs from docs/schema/openapi.json. Do not edit.

/** The view of one agent. */
export type AgentShape = {
  /** The day on which they were verified. */
  as_of: string;
  /** The carriers that have text. */
  carriers: CarrierSize[];
  /** The outcome of each file. */
  files: FileShape[];
  /** The way they were verified: `run`, `code` or `documentation`. */
  known_by: string;
  /** Notes about files that were cut, left out, or not imported. */
  notes: string[];
  /** The number of names that could not be looked up for a remote caller: the user's own files, and those above the workspace. */
  out_of_reach: number;
  /** The profile that imitates it. */
  profile: string;
  /** The part of the way to the model that was seen: `prompt`, or `client`, the message to the vendor's server. */
  seen: string;
  /** The agent's name. */
  title: string;
  /** The version whose rules are imitated. */
  version: string;
};

/** An error answer. */
export type ApiError = {
  /** The kind of error, as a stable word. */
  code: string;
  /** The column of the problem in its line, from 1. */
  column?: number | null;
  /** The field of the request, or the key of the pack, with the problem. */
  field?: string | null;
  /** A way to fix it. */
  hint?: string | null;
  /** The reason why the prompt cannot be built, as a stable word: `asset_missing`, `template_syntax`, `template_undefined`, `template_render`, `pack`, `profile`, `workflow`, `instructions`, `configuration`, `refused` or `limit`. Only with the code `build_failed`. */
  kind?: string;
  /** The line of the problem, from 1. */
  line?: number | null;
  /** The problem, in words. */
  message: string;
  /** The file with the problem. */
  path?: string | null;
};

/** The side that caused a miss. */
export type Blame = "ours" | "provider" | "unknown";

/** The way in which a conversation began from another one. */
export type BranchKind = "fork" | "spawn";

/** A conversation that began from another one, as it is printed. */
export type BranchShape = {
  /** Its id. */
  conversation: string;
  /** The SHA-256 of its prefix, in hexadecimal. */
  digest: string;
  /** The number of its epoch. */
  epoch: number;
  /** Notes for the reader. */
  notes: OwnedNoteShape[];
  /** The id of the conversation from which it began. */
  parent: string;
  /** True for the first child with this prompt: send one request with it, wait for its first token, then send the others. */
  prime: boolean;
  /** The profile. */
  profile: string;
};

/** A value that changes more often than the prefix may. */
export type BreakShape = {
  /** Its position in the carrier's text, in bytes. */
  byte: number;
  /** The carrier. */
  carrier: string;
  /** Its source, in words. */
  key: string;
  /** The number of tokens from there to the end of the carrier. */
  lost_tokens: number;
  /** A message for the author. */
  message: string;
  /** The time for which it stays the same. */
  stability: string;
  /** The tag that inserted it. */
  tag?: RangeShape | null;
  /** Its position in the carrier's text, in tokens. */
  token: number;
  /** The additional price of these tokens if they are not read from the cache, in US dollars. */
  usd?: number | null;
};

/** The facts of git about a bundle. One that is not given is absent. */
export type BundleGit = {
  /** The branch. */
  branch?: string | null;
  /** The output of `git diff --stat`. */
  diff?: string | null;
  /** The output of `git status --short`. */
  status?: string | null;
};

/** The part of the cache in delivering a text. */
export type CacheUse = "yes" | "as_history" | "no" | "too_short";

/** The result of a call for the cache. */
export type CacheVerdict = "hit" | "cold_start" | "expired" | "below_minimum" | "model_changed" | "parameter_changed" | "tools_added" | "tools_removed" | "tools_reordered" | "tools_redefined" | "system_changed" | "message_edited" | "message_removed" | "message_reformed" | "marker_moved" | "marker_missing" | "lookback_exceeded" | "compaction" | "fork" | "routing" | "provider" | "unknown";

/** The calls of a conversation. */
export type CallsAnswer = {
  /** The calls, oldest first. */
  calls: JudgedCall[];
};

/** A page of calls, the newest first. */
export type CallsPage = {
  /** The calls. */
  calls: RecordedCall[];
  /** The value of `after` for the next page; missing on the last page. */
  next?: string | null;
  /** The version of this shape. */
  version: number;
};

/** A carrier that differs. */
export type CarrierDiff = {
  /** The later text. */
  after: string;
  /** The earlier text. */
  before: string;
  /** The carrier. */
  carrier: string;
  /** The first byte that differs. */
  first_byte: number;
};

/** The size of a carrier's text. */
export type CarrierSize = {
  /** In bytes. */
  bytes: number;
  /** The carrier. */
  carrier: string;
  /** In tokens, estimated. */
  tokens: number;
};

/** One carrier. */
export type CarrierStats = {
  /** The length of its text in bytes. */
  bytes: number;
  /** The carrier. */
  carrier: string;
  /** The length of its text in tokens. */
  tokens: number;
};

/** The result of a rebuild, or the plan of one. */
export type ChangeAnswer = {
  /** The first byte that would differ, with its source, the cause of the change and its cost. */
  comparison?: ComparisonShape | null;
  /** The SHA-256 of its prefix, in hexadecimal. */
  digest: string;
  /** The number of the epoch in force. */
  epoch: number;
  /** Notes for the reader. */
  notes: OwnedNoteShape[];
  /** The notice that the next turn would append, and its price; `null` if there is nothing to announce. */
  notice?: NoticePrice | null;
  /** True if this change opened it. */
  opened: boolean;
  /** The changes that wait for the next epoch. */
  pending: PendingField[];
  /** The changes that a rebuild would make. */
  plan?: PlanShape | null;
  /** The reason for which the epoch in force was opened. */
  reason: string;
  /** The price of the rebuild; `null` if it would change nothing. */
  rebuild?: RebuildPrice | null;
};

/** The owner of a change. */
export type ChangeOwner = {
  /** The agent, where the owner is the agent. */
  by?: string | null;
  /** The kind. */
  kind: OwnerKind;
  /** The line of the file, from 1. */
  line?: number | null;
  /** The name: a tool, a server, a skill, a hook, a version. */
  name?: string | null;
  /** The file. */
  path?: string | null;
};

/** The place of a change. */
export type ChangePlace = {
  /** The text around it in this request, secrets masked. */
  after?: string | null;
  /** The text around it in the earlier request, secrets masked. */
  before?: string | null;
  /** The first different byte, from 0, in the decoded text of the block. */
  byte?: number | null;
  /** Its column in characters, from 1. */
  column?: number | null;
  /** Its line, from 1. */
  line?: number | null;
  /** The part of this request; absent if it was removed. */
  part_after?: string | null;
  /** The part of the earlier request; absent if it was inserted. */
  part_before?: string | null;
};

/** A hook's change in the frozen prompt. */
export type ChangeShape = {
  /** The first byte that differs. */
  first_byte: number;
  /** The hook's name; `per_prompt` for a change of the caller's own. */
  hook: string;
  /** The number of bytes of the frozen prompt that the cache loses. */
  lost_bytes: number;
  /** About how many dollars these tokens cost more than from the cache; `null` if the model has no known prices. */
  lost_dollars_estimate?: number | null;
  /** About how many tokens that is: an estimate, at 2.7 bytes each. */
  lost_tokens_estimate: number;
};

/** The unit in which a notice and a rebuild are compared. */
export type CheaperAfter = "dollars" | "tokens";

/** A conversation that began from another one. */
export type Child = {
  /** Its id. It may have been removed since. */
  conversation: string;
  /** The SHA-256 of the prefix that it began with, in hexadecimal. */
  digest: string;
  /** The way in which it began. */
  kind: BranchKind;
};

/** The shared beginning of two prompts. */
export type CommonShape = {
  /** In bytes. */
  bytes: number;
  /** In tokens. */
  tokens: number;
};

/** The summarising call of a compaction. */
export type CompactionShape = {
  /** The text of each carrier in the call that summarises. */
  carriers: Record<string, string>;
  /** The current epoch; the new one if the compaction was committed at once. */
  epoch: number;
  /** The instructions to the model. */
  instructions: string;
  /** The messages of the call that summarises, in a neutral shape. */
  messages: Record<string, unknown>[];
  /** Notes for the reader. */
  notes: OwnedNoteShape[];
  /** The fields of the provider's request body for that call, if a provider was named. */
  payload?: unknown;
  /** `append`: the instructions are at the end of the system carrier. `aligned`: send them as the last message of the user. */
  policy: string;
  /** The token with which the compaction is committed or aborted. */
  token: string;
};

/** Two prompts against each other. */
export type ComparisonShape = {
  /** The name of the first prompt. */
  a: string;
  /** The name of the second prompt. */
  b: string;
  /** The shared beginning of the cached prefix. */
  common_prefix: CommonShape;
  /** The way tokens are counted; for an estimate with the bounds of its error. */
  counted: string;
  /** The first difference; missing when the bytes are the same. */
  first_difference?: DifferenceShape | null;
  /** The other differences, in order. */
  further: DifferenceShape[];
  /** The loss of one call. */
  lost: LossShape;
};

/** The views of agents, for programs. */
export type CompatShape = {
  /** The agents. */
  agents: AgentShape[];
};

/** A conversation: its frozen prompt and its epochs. */
export type ConversationAnswer = {
  /** The frozen text of each carrier. */
  carriers: Record<string, string>;
  /** The conversations that began from it, the oldest first. */
  children: Child[];
  /** The id of the conversation. */
  conversation: string;
  /** The number of the current epoch. */
  epoch: number;
  /** All epochs, oldest first. */
  epochs: EpochShape[];
  /** Notes about the frozen prompt. */
  notes: OwnedNoteShape[];
  /** The conversations from which it began, the nearest one first. */
  parents: Parent[];
};

/** A conversation in a list. */
export type ConversationShape = {
  /** The time of the last epoch or call, in milliseconds since 1970. */
  active_at: number;
  /** The agent that made the calls, if it is known. */
  agent?: string | null;
  /** The time of the first turn or call, in milliseconds since 1970. */
  began_at: number;
  /** The number of its calls. */
  calls: number;
  /** The id of the conversation. */
  conversation: string;
  /** The working directory. */
  cwd: string;
  /** The number of its current epoch; 0 for an observed conversation. */
  epoch: number;
  /** All input tokens. */
  input: number;
  /** `proem`, or `observed` if only its calls are known. */
  kind: string;
  /** The last miss. */
  last_miss?: MissShape | null;
  /** The price of what was lost. */
  lost_usd: number;
  /** The model of the last call, or the one that was named. */
  model?: string | null;
  /** The time at which the current epoch was opened, in milliseconds since 1970; that of the last call of an observed conversation. */
  opened_at: number;
  /** The profile. */
  profile: string;
  /** Tokens read from the cache. */
  read: number;
  /** The share of the input that was read from the cache, from 0 to 1; missing without input. */
  read_ratio?: number | null;
  /** The reason for which the epoch was opened; empty for an observed conversation. */
  reason: string;
  /** The price of its calls. */
  usd: number;
};

/** A page of conversations; without another order, the one with the newest epoch is first. */
export type ConversationsAnswer = {
  /** The conversations. */
  conversations: ConversationShape[];
  /** The value of `after` for the next page; missing on the last page. */
  next?: string | null;
  /** The number of conversations on all pages. */
  total: number;
};

/** The difference between two epochs. */
export type DiffAnswer = {
  /** The carriers that differ. */
  carriers: CarrierDiff[];
  /** The first byte that differs, with its source, the cause of the change and its cost. */
  comparison: ComparisonShape;
  /** The number of the earlier epoch. */
  from: number;
  /** The number of the later epoch. */
  to: number;
  /** The tools that differ. */
  tools: ToolDiff[];
};

/** Something that differs. */
export type DifferenceShape = {
  /** The owner of the bytes in the first prompt. */
  a?: OwnerShape | null;
  /** The owner of the bytes in the second prompt. */
  b?: OwnerShape | null;
  /** The first byte there that differs. */
  byte: number;
  /** The cause, as a stable word. */
  cause: string;
  /** The time at which the file was written, if known. */
  edited_at?: string | null;
  /** `changed`, `added`, `removed` or `moved`. */
  kind: string;
  /** The cause, in a sentence. */
  message: string;
  /** The carrier, or `tools`. */
  place: string;
  /** The provider's word for it. */
  reason: string;
};

/** The choices that the editor offers. */
export type EditorAnswer = {
  /** The base of that profile, which is used while no template is stored. */
  built_in: string;
  /** The version of proem. */
  engine: string;
  /** True if the server asks for a token. */
  has_token: boolean;
  /** The limits on input. */
  limits: LimitsShape;
  /** The models with known cache rules and prices. */
  models: ModelsShape;
  /** The profile of a request that names none. */
  profile: string;
  /** The profiles that requests may name. */
  profiles: ProfileShape[];
  /** The providers for which payloads can be built. */
  providers: string[];
  /** The directories that requests may work in. */
  workspaces: string[];
};

/** A file or a directory. */
export type EntryShape = {
  /** The length of a file, in bytes. */
  bytes?: number | null;
  /** `file` or `directory`. */
  kind: string;
  /** The name. */
  name: string;
  /** The whole path, in the answer to a search; `name` is then the path below the directory. */
  path?: string | null;
};

/** One epoch, with the source of every byte. */
export type EpochAnswer = {
  /** The frozen text of each carrier. */
  carriers: Record<string, string>;
  /** The id of the conversation. */
  conversation: string;
  /** The epoch. */
  epoch: EpochShape;
  /** Notes about the prompt and its payload. */
  notes: NoteShape[];
  /** The fields of a provider's request body, without messages, if a provider was named. */
  payload?: unknown;
  /** The length of the prefix: the bytes of the system carrier that must not change. */
  prefix_bytes: number;
  /** The sections, in order. */
  sections: SectionShape[];
  /** The spans of all carriers, with the source of each. */
  spans: SpanShape[];
};

/** An epoch. */
export type EpochShape = {
  /** The working directory. */
  cwd: string;
  /** The SHA-256 of the prefix, in hexadecimal. */
  digest: string;
  /** The version of proem that built it. */
  engine: string;
  /** The number, from 1. */
  epoch: number;
  /** The digest of the prefix and the tools, on which a provider's cache depends. */
  fingerprint: string;
  /** The model, if one was named. */
  model?: string | null;
  /** The time of its opening, in milliseconds since 1970. */
  opened_at: number;
  /** The profile. */
  profile: string;
  /** The reason for which it was opened. */
  reason: string;
  /** The version of the stored template that it begins with, if it does. */
  template_version?: number | null;
};

/** Tokens by price class. */
export type Figures = {
  /** All tokens of the request. */
  input_tokens: number;
  /** Read from the cache. */
  read: number;
  /** Neither. */
  uncached: number;
  /** The cost of the input in USD, if prices are known. */
  usd?: number | null;
  /** Written to the cache. */
  written: number;
  /** Written to the cache for an hour. */
  written_1h: number;
};

/** The outcome of a file. */
export type FileShape = {
  /** The number of its bytes in the prompt. */
  bytes: number;
  /** The carriers that they ride on. */
  carriers: string[];
  /** True if only a part of it is in the prompt. */
  cut: boolean;
  /** The outcome. */
  outcome: string;
  /** The path. */
  path: string;
  /** The reason. */
  why?: string | null;
  /** The same in a word for a table. */
  word: string;
};

/** The entries of a directory. */
export type FilesAnswer = {
  /** The directory. */
  dir: string;
  /** Directories first, then files, each sorted by name. */
  entries: EntryShape[];
  /** True if entries are left out. */
  more: boolean;
};

/** A change of the template. */
export type FixShape = {
  /** The byte after the last one. */
  end: number;
  /** The text that replaces those bytes. */
  insert: string;
  /** The effect of the change, in words. */
  label: string;
  /** The first byte. */
  start: number;
};

/** The state of the server. */
export type HealthAnswer = {
  /** The time of answered requests of this process. */
  latency: LatencyShape;
  /** The models with their prices, in USD for a million tokens. */
  models: ModelPrice[];
  /** The day of the prices and cache rules. */
  prices_as_of: string;
  /** Answered requests of this process, by class of status: `2xx`, `4xx`, … */
  requests: Record<string, number>;
  /** The day of the facts about agents and providers. */
  rules_as_of: string;
  /** The store. */
  store: StoreHealth;
  /** The seconds since the start of the process. */
  uptime_seconds: number;
  /** The version of proem. */
  version: string;
  /** Work in progress. */
  work: WorkHealth;
  /** The directories that requests may work in. */
  workspaces: string[];
};

/** Facts about the host that replace observed ones. `null` means that there is none. */
export type HostPins = {
  /** proem's configuration directory. */
  config_dir?: string | null;
  /** The environment. */
  env?: Record<string, string> | null;
  /** The home directory. */
  home?: string | null;
  /** The machine's name. */
  hostname?: string | null;
  /** The moment of the build, in RFC 3339. */
  now?: string | null;
  /** The platform word. */
  os?: string | null;
  /** The system's full name. */
  os_name?: string | null;
  /** The kernel release. */
  os_version?: string | null;
  /** The user's shell. */
  shell?: string | null;
  /** The time zone, as an IANA name. */
  timezone?: string | null;
};

/** A call, and the part that should have been read. */
export type JudgedCall = {
  /** The advice. */
  advice?: string | null;
  /** The time of the call, in milliseconds since 1970. */
  at?: number | null;
  /** The side that caused it, if less was read. */
  blame?: Blame | null;
  /** Its number among the calls of its conversation, from 1. */
  call: number;
  /** The epoch, where it is known. */
  epoch?: number | null;
  /** The tokens that the call before left in the cache. */
  expected: number;
  /** The id of the call. */
  id?: string | null;
  /** All input tokens. */
  input: number;
  /** Tokens that were expected and not read. */
  lost_tokens: number;
  /** Their price, less that of reading them. */
  lost_usd?: number | null;
  /** The owner of the change. */
  owner?: ChangeOwner | null;
  /** The reason, in the providers' terms if they have one. */
  reason?: string | null;
  /** The tokens that were read. */
  reported: number;
  /** The price of the call. */
  usd?: number | null;
  /** The verdict of the analysis. */
  verdict: CacheVerdict;
  /** The place of the change. */
  where?: ChangePlace | null;
  /** The reason, in a sentence. */
  why?: string | null;
};

/** The use of a version of the template. */
export type Label = "live" | "draft";

/** A label for a version of the template. */
export type LabelBody = {
  /** The label. */
  label: Label;
};

/** The time of answered requests, from the buckets of a histogram: each figure is the upper bound of its bucket. */
export type LatencyShape = {
  /** The number of requests. */
  count: number;
  /** The mean in milliseconds. */
  mean_ms?: number | null;
  /** Half of the requests took at most this many milliseconds; missing without requests. */
  p50_ms?: number | null;
  /** The same for 95 of 100; missing also if the largest bucket has no bound. */
  p95_ms?: number | null;
  /** The same for 99 of 100. */
  p99_ms?: number | null;
};

/** The limits on input. */
export type LimitsShape = {
  /** The maximum length of a template, in bytes. */
  template_bytes: number;
};

/** The loss of one call. */
export type LossShape = {
  /** The least and the most that they can be, where they are estimated. */
  bounds?: TokenBounds | null;
  /** `true` when the tools are not among them: a saved build of an older version has only their digest. */
  lacks_tools?: boolean | null;
  /** The model, if one is named. */
  model?: string | null;
  /** The day of the prices. */
  prices_as_of: string;
  /** The provider whose cache is simulated; missing for one that keeps every beginning. */
  provider?: string | null;
  /** Tokens that are not read from the cache. */
  tokens: number;
  /** The additional cost in dollars. */
  usd?: number | null;
};

/** The last miss of a conversation. */
export type MissShape = {
  /** The time, in RFC 3339. */
  at: string;
  /** The id of the call. */
  id: string;
  /** The price of what was lost. */
  lost_usd: number;
  /** The kind of the owner. */
  owner?: string | null;
  /** The verdict. */
  verdict: string;
};

/** The prices of a model, in USD for a million tokens. */
export type ModelPrice = {
  /** Tokens read from the cache. */
  cache_read?: number | null;
  /** Tokens written to the cache. */
  cache_write?: number | null;
  /** Tokens written to the cache for an hour. */
  cache_write_1h?: number | null;
  /** Tokens that are not cached. */
  input?: number | null;
  /** The smallest prefix that is cached, in tokens. */
  min_tokens?: number | null;
  /** The name. */
  name: string;
  /** Tokens of answers. */
  output?: number | null;
  /** The company that makes it. */
  vendor: string;
};

/** The prices of a model, in US dollars for a million tokens. */
export type ModelPricesShape = {
  /** Input read from the cache. */
  cache_read?: number | null;
  /** Input written to the cache. */
  cache_write?: number | null;
  /** Input that is not cached. */
  input?: number | null;
};

/** A model. */
export type ModelShape = {
  /** The name. */
  name: string;
  /** The company that makes it. */
  vendor: string;
};

/** The models. */
export type ModelsShape = {
  /** The date of the rules and prices. */
  as_of: string;
  /** The models. */
  models: ModelShape[];
};

/** A note. */
export type NoteShape = {
  /** The subject, as a stable word. */
  code: string;
  /** The suggested fix. */
  hint?: string | null;
  /** The description of the event. */
  message: string;
  /** `info`, `warning` or `error`. */
  severity: string;
  /** The place of the event. */
  source?: SourceShape | null;
};

/** A message that was appended to a conversation: what changed since the prompt was frozen, or the role of a fork. */
export type Notice = {
  /** The name of its tag, behind `notice-`. It occurs nowhere else in the text. */
  id: string;
  /** Its number in the epoch, from 1. */
  number: number;
  /** The sections whose sources changed, in the order of the prompt; empty for a role. */
  sections?: string[];
  /** The text, with its tags. */
  text: string;
};

/** The notice that the next turn would append, and its price. */
export type NoticePrice = {
  /** The dollars of the turn that appends it; `null` if the model has no known prices. */
  dollars?: number | null;
  /** The dollars of every later turn. */
  dollars_per_turn?: number | null;
  /** True if the tokens are counted with the vocabulary of the model; otherwise they are estimated. */
  exact: boolean;
  /** The sections whose sources changed, in the order of the prompt. */
  sections: string[];
  /** Its text. */
  text: string;
  /** Its tokens, which are sent once as new ones, and read from the cache in every later turn. */
  tokens: number;
};

/** One text or several. */
export type OneOrMany = string | string[];

/** A note that is kept without the prompt that it is about. */
export type OwnedNoteShape = {
  /** Its subject, as a stable word. */
  code: string;
  /** A way to fix it. */
  hint?: string | null;
  /** The event or problem, in words. */
  message: string;
  /** `info`, `warning` or `error`. */
  severity: string;
};

/** The kind of an owner: the thing or person that caused a change. */
export type OwnerKind = "instruction_file" | "skill" | "mcp_server" | "tool" | "plugin" | "hook" | "clock" | "date" | "git_status" | "counter" | "random_id" | "agent" | "agent_version" | "user" | "provider" | "time" | "unknown";

/** The owner of bytes. */
export type OwnerShape = {
  /** `true` if the byte is the first one after the source: the other prompt continues where this source ends. */
  end?: boolean | null;
  /** Its line, from 1. */
  line?: number | null;
  /** The section. */
  section?: string | null;
  /** The source. */
  source: SourceShape;
};

/** A conversation from which another one began. */
export type Parent = {
  /** Its id. It may have been removed since. */
  conversation: string;
  /** The number of its epoch at that time. */
  epoch: number;
  /** The way in which the next one began from it. */
  kind: BranchKind;
};

/** A change that waits for the next epoch. */
export type PendingField = {
  /** The field of the request, `resources`, or `files` for a reload. */
  field: string;
  /** The reason that a profile's policy must name to apply it at once; missing if only the next epoch applies it. */
  reason?: string | null;
};

/** Changes of one prompt, applied after the hooks of the configuration. A conversation does not remember them. */
export type PerPrompt = {
  /** Messages after the user's and those of hooks; they stay in the history. */
  messages?: Record<string, unknown>[] | null;
  /** Another system prompt. */
  system_prompt?: string | null;
};

/** The access that a scope rule permits. */
export type Permission = "read" | "write";

/** A section that would change. */
export type PlanSection = {
  /** The carrier. */
  carrier: string;
  /** The section's name in the profile. */
  id: string;
  /** `changed`, `added` or `removed`. */
  kind: string;
};

/** The changes that a rebuild would make. */
export type PlanShape = {
  /** True if the profile allows the rebuild. */
  allowed: boolean;
  /** The carriers that would change, with both texts. */
  carriers: CarrierDiff[];
  /** True if the prompt would change. */
  changed: boolean;
  /** The first byte of the prefix that would differ. */
  first_byte?: number | null;
  /** The estimated number of tokens of the prefix that the cache loses, at 2.7 bytes per token. */
  lost_tokens_estimate?: number | null;
  /** The sections that would change. */
  sections: PlanSection[];
  /** The tools that would change, with both definitions. */
  tools: ToolDiff[];
  /** True if the tools would change. */
  tools_changed: boolean;
  /** True if only values would change that change by themselves, as clocks do: nothing was edited. */
  volatile_only: boolean;
};

/** A prompt that was built and not stored. */
export type PreviewAnswer = {
  /** The values that change more often than the prefix may. */
  breaks: BreakShape[];
  /** The text of each carrier. */
  carriers: Record<string, string>;
  /** The SHA-256 of the prefix, in hexadecimal. */
  digest: string;
  /** Notes about the prompt and its figures. */
  notes: TracedNote[];
  /** The length of the prefix: the bytes of the system carrier that must not change. */
  prefix_bytes: number;
  /** The prices of the model, where they are known. */
  prices?: ModelPricesShape | null;
  /** The sections, in order. */
  sections: SectionShape[];
  /** The spans of all carriers, with the source of each. */
  spans: TracedSpan[];
  /** Token counts and prices. */
  stats: Stats;
  /** The tags of the request's bracket template, in order. */
  tags: TagShape[];
  /** The bytes of that template in branches that are not rendered. */
  unused: RangeShape[];
};

/** A profile. */
export type ProfileShape = {
  /** Its purpose. */
  description?: string | null;
  /** The name. */
  name: string;
  /** True if the stored template is the base of its new conversations. */
  stored_template: boolean;
  /** The syntax of its template; missing if it has no template. */
  syntax?: string | null;
};

/** The provider's own word for a miss. */
export type ProviderReason = {
  /** The word, as the provider writes it. */
  reason: string;
  /** The tokens that were lost, if it says so. */
  tokens?: number | null;
};

/** The purpose of a call. */
export type Purpose = "main" | "sub_agent" | "title" | "compaction" | "probe";

/** A range of bytes in the request's template. */
export type RangeShape = {
  /** The byte after the last one. */
  end: number;
  /** The first byte. */
  start: number;
};

/** The price of a rebuild of the prompt. The messages after it are read again, too; their tokens are not known here. */
export type RebuildPrice = {
  /** The number of turns after which the rebuild is cheaper than the notice: 0 if it is at once, `null` if it never is or without a notice. */
  cheaper_after_turns?: number | null;
  /** The unit of that comparison. */
  compared_by: CheaperAfter;
  /** The dollars that they cost more than from the cache; `null` if the model has no known prices. */
  dollars?: number | null;
  /** True if the tokens are counted with the vocabulary of the model; otherwise they are estimated. */
  exact: boolean;
  /** The tokens of the prompt that are read again, once. */
  tokens: number;
};

/** Calls that were sent, with their verdicts. */
export type RecordedAnswer = {
  /** The number of calls that the store did not have. */
  added: number;
  /** The calls, in the order in which they were sent. */
  calls: RecordedCall[];
  /** Everything that was left out. */
  notes: ReportNote[];
  /** The version of this shape. */
  version: number;
};

/** A stored call: its verdict, and where it belongs. */
export type RecordedCall = {
  /** The advice. */
  advice?: string | null;
  /** The agent that made it. */
  agent?: string | null;
  /** The version of the agent. */
  agent_version?: string | null;
  /** False for hits and for misses that are expected. */
  alarming: boolean;
  /** The time of sending, in RFC 3339. */
  at?: string | null;
  /** The conversation; `#1`, `#2`, … where the source names none. */
  conversation: string;
  /** The working directory. */
  cwd?: string | null;
  /** True if the provider's reason contradicts the verdict. */
  disagrees?: boolean;
  /** The epoch, for conversations of proem. */
  epoch?: number | null;
  /** Tokens that should have been read. */
  expected_read?: number | null;
  /** True if the request was known when it was judged. */
  has_request?: boolean;
  /** The id of the call. */
  id: string;
  /** True if a subscription paid, so that the money is list price. */
  is_list_price?: boolean;
  /** Tokens that were expected and not read. */
  lost_tokens: number;
  /** Their price, less that of reading them. */
  lost_usd?: number | null;
  /** The model. */
  model?: string | null;
  /** Tokens of the answer. */
  output?: number | null;
  /** The owner of the change. */
  owner?: ChangeOwner | null;
  /** The thread or conversation that this one comes from. */
  parent?: string | null;
  /** The id of the call that it is compared with. */
  predecessor?: string | null;
  /** The profile. */
  profile?: string | null;
  /** The rules of the cache. */
  provider: string;
  /** The reason that the provider gave. */
  provider_reason?: ProviderReason | null;
  /** The purpose. */
  purpose: Purpose;
  /** Tokens read from the cache. */
  read?: number | null;
  /** The price of the same call without a cache, less its price. */
  saved_usd?: number | null;
  /** The version of the template. */
  template_version?: number | null;
  /** The thread; absent for the main thread. */
  thread?: string | null;
  /** Tokens neither read nor written. */
  uncached?: number | null;
  /** The price of the call. */
  usd?: number | null;
  /** The verdict. */
  verdict: CacheVerdict;
  /** The place of the change. */
  where?: ChangePlace | null;
  /** The verdict's details in one sentence. */
  why: string;
  /** Tokens written to the cache. */
  written?: number | null;
  /** The part of `written` that is kept for an hour. */
  written_1h?: number | null;
};

/** The calls of one day. */
export type ReportDay = {
  /** The number of calls. */
  calls: number;
  /** All input tokens. */
  input: number;
  /** The price of what was lost. */
  lost_usd: number;
  /** Tokens read from the cache. */
  read: number;
  /** The price. */
  usd: number;
};

/** Losses by the side that caused them, in USD. */
export type ReportLoss = {
  /** The agent. */
  agent: number;
  /** Files, skills, servers, plugins and hooks that the user configured. */
  ours: number;
  /** The provider. */
  provider: number;
  /** Not known. */
  unknown: number;
  /** The user. */
  user: number;
};

/** A note of a report. */
export type ReportNote = {
  /** The subject, as a stable word. */
  code: string;
  /** The finding. */
  message: string;
  /** `info`, `warning` or `error`. */
  severity: string;
};

/** The misses of one verdict or owner. */
export type ReportSum = {
  /** The number of calls. */
  calls: number;
  /** Tokens that were expected and not read. */
  lost_tokens: number;
  /** Their price. */
  lost_usd: number;
};

/** The sums of a report. */
export type ReportTotals = {
  /** The price of what was lost by alarming misses. */
  alarming_usd: number;
  /** The calls by day, in UTC. */
  by_day?: Record<string, ReportDay>;
  /** The misses by kind of owner. */
  by_owner: Record<string, ReportSum>;
  /** The calls by verdict. */
  by_verdict: Record<string, ReportSum>;
  /** The number of calls. */
  calls: number;
  /** True if some of the money is list price, because a subscription paid. */
  is_list_price: boolean;
  /** The price of what was lost, by side. */
  lost_usd: ReportLoss;
  /** Tokens of answers. */
  output: number;
  /** Tokens read from the cache. */
  read: number;
  /** The price of the same calls without a cache, less that. */
  saved_usd?: number;
  /** Tokens neither read nor written. */
  uncached: number;
  /** The calls whose model has no price, or whose tokens are not known. */
  unpriced: number;
  /** The price of all calls whose model has one. */
  usd: number;
  /** Tokens written to it. */
  written: number;
};

/** A request for a prompt. */
export type Request = {
  /** Text, or texts, added after the base. */
  append?: OneOrMany | null;
  /** The backend that runs the agent. */
  backend?: string | null;
  /** For a turn with a provider: the name of content that the provider keeps for the frozen part. */
  cached_content?: string | null;
  /** The conversation's id. */
  conversation?: string | null;
  /** The working directory; the process's own when not given. */
  cwd?: string | null;
  /** The first user message, if the profile needs it. */
  first_user_text?: string | null;
  /** Facts about the host that replace observed ones. */
  host?: HostPins;
  /** For a turn: images beside the prompt, as blocks in the provider's format. */
  images?: unknown[] | null;
  /** A reference to an asset for the base. */
  instruction?: string | null;
  /** The language in which to answer. */
  language?: string | null;
  /** Names of the connected MCP servers. */
  mcp_servers?: string[] | null;
  /** For a turn: the conversation so far, each message an object with a `role`. */
  messages?: Record<string, unknown>[] | null;
  /** The model. */
  model?: string | null;
  /** Paths of packs that replace wording, later ones win. */
  packs?: string[] | null;
  /** For a turn: changes of the caller for this prompt, after those of hooks. */
  per_prompt?: PerPrompt | null;
  /** The profile's name; the configuration's when not given. */
  profile?: string | null;
  /** True to include the parts that the profile takes from the workspace. */
  project?: boolean | null;
  /** For a turn: the message of the user; without it the turn continues by itself. */
  prompt?: string | null;
  /** For a turn: the provider whose request body the answer contains. */
  provider?: string | null;
  /** Remembered text for this turn. */
  recalled?: string | null;
  /** True to include resident knowledge and workflows. */
  residents?: boolean | null;
  /** The paths that the agent may read and write. */
  scope?: Scope | null;
  /** Text that replaces the base; `""` is an empty base. */
  system?: string | null;
  /** An unsaved template for the base, in the profile's syntax. */
  template?: string | null;
  /** The active tools. */
  tools?: Tool[] | null;
  /** For a turn: the paths that the agent has touched, relative to the working directory. Instruction files that apply to them are announced. */
  touched?: string[] | null;
  /** For a turn with a provider: the time for which the provider caches the frozen part. */
  ttl?: Ttl | null;
  /** Values that give or override facts; `null` means absent. */
  variables?: Record<string, string | null>;
  /** The workspace itself in the place of `cwd`: its files, facts of git and a working directory, or the digest of one that was sent before. */
  workspace?: WorkspaceShape | null;
  /** The workspace's id. */
  workspace_id?: string | null;
};

/** Paths that a handler adds after the existing ones: relative to the working directory, or starting with `~`. */
export type ResourcePaths = {
  /** Folders of assets, for `$user/…` references that the user's own library lacks. */
  asset_paths?: string[];
  /** Packs that replace wording. */
  prompt_paths?: string[];
  /** Directories of skills, or single skill files. */
  skill_paths?: string[];
};

/** The paths that the agent may read and write. */
export type Scope = {
  /** The allowed paths, in order. */
  allow: ScopeRule[];
  /** The forbidden paths, in order. */
  deny?: ScopeRule[];
};

/** One rule of a scope. */
export type ScopeRule = {
  /** The permission; `read` when not given. */
  permission?: Permission | null;
  /** True if the rule applies to everything below the path; true when not given. */
  recursive?: boolean | null;
  /** The absolute path. */
  target: string;
};

/** A section at its place in a carrier. */
export type SectionShape = {
  /** The carrier. */
  carrier: string;
  /** The end, exclusive. */
  end: number;
  /** The section's name in the profile. */
  id: string;
  /** The origin of its content as a whole. */
  source: SourceShape;
  /** The stability of its least stable byte. */
  stability: string;
  /** The first byte in the carrier's text. */
  start: number;
};

/** One section. */
export type SectionStats = {
  /** Its length in bytes. */
  bytes: number;
  /** The part that the cache plays in the next turn. */
  cached: CacheUse;
  /** The carrier. */
  carrier: string;
  /** The section's name in the profile. */
  id: string;
  /** The stability of its least stable byte. */
  stability: string;
  /** Its length in tokens. */
  tokens: number;
};

/** The properties that a session was started with. Two requests may share a session only if all of them are equal; text carried by `first_user` and `turn` is not included. */
export type Signature = {
  /** The backend, if one is named. */
  backend?: string | null;
  /** The SHA-256 of backend, settings, tools and servers in canonical form. */
  configuration: string;
  /** The working directory. */
  cwd: string;
  /** The SHA-256 of the developer carrier's text. */
  developer: string;
  /** The SHA-256 of the system carrier's frozen text, as it is delivered. */
  system: string;
};

/** The result for one request. */
export type SimulatedRequest = {
  /** All tokens of the request. */
  input_tokens: number;
  /** The reason for not reading the bytes that the previous request left in the cache, in the providers' terms. */
  miss?: string | null;
  /** Read from the cache. */
  read: number;
  /** The number of the request, from 1. */
  turn: number;
  /** Neither. */
  uncached: number;
  /** The cost of the input in USD, if prices are known. */
  usd?: number | null;
  /** Written to the cache. */
  written: number;
  /** Written to the cache for an hour. */
  written_1h: number;
};

/** An agent. */
export type SourceAgent = {
  /** The day on which they were verified. */
  as_of: string;
  /** The way they were verified: `run`, `code` or `documentation`. */
  known_by: string;
  /** Notes about files that were cut, left out, or not imported. */
  notes: string[];
  /** The number of names outside the workspaces that were not looked up. */
  out_of_reach: number;
  /** The profile that imitates it. */
  profile: string;
  /** Its name. */
  title: string;
  /** The estimated tokens of its prompt from these files. */
  tokens: number;
  /** The version whose rules are imitated. */
  version: string;
};

/** A finding of `check`. */
export type SourceFinding = {
  /** The code. */
  code: string;
  /** The fix. */
  hint?: string | null;
  /** The line in the file, from 1. */
  line?: number | null;
  /** The finding. */
  message: string;
  /** `info`, `warning` or `error`. */
  severity: string;
};

/** The outcome of a source for an agent. */
export type SourceReader = {
  /** The outcome. */
  outcome: string;
  /** The profile of the agent. */
  profile: string;
  /** The reason. */
  why?: string | null;
  /** The same in a word for a table. */
  word: string;
};

/** One source. */
export type SourceRow = {
  /** The outcome for each agent that looked at it. */
  agents: SourceReader[];
  /** Its bytes in the prompt. */
  bytes: number;
  /** The carriers that it rides on. */
  carriers: string[];
  /** The time of the last change of the file, in milliseconds since 1970. */
  changed_at?: number | null;
  /** Findings of `check` in it. */
  findings: SourceFinding[];
  /** `instruction_file`, `skill`, `hook`, `tool`, `template`, `variable`, `request` or `other`. */
  kind: string;
  /** The name: a path, a tool, a hook, the key of a variable. */
  name: string;
  /** The number of those conversations. */
  older: number;
  /** The conversations that hold an older text of it, at most twenty. */
  older_in: string[];
  /** The outcome for proem's own prompt: `used`, `shadowed`, …; missing for a file that only agents read. */
  outcome?: string | null;
  /** The file, if it is one. */
  path?: string | null;
  /** The stability of its least stable byte. */
  stability?: string | null;
  /** Its tokens in the prompt. */
  tokens: number;
  /** The price in a new conversation, in USD. */
  usd_new?: number | null;
  /** The price in each further turn, read from the cache. */
  usd_turn?: number | null;
  /** The reason for not using it. */
  why?: string | null;
};

/** The origin of bytes. */
export type SourceShape = {
  /** The column in characters, from 1. */
  column?: number | null;
  kind: "built_in";
  /** The line, from 1. */
  line?: number | null;
  /** The asset's name. */
  name: string;
} | {
  /** The column in characters, from 1. */
  column?: number | null;
  kind: "file";
  /** The line, from 1. */
  line?: number | null;
  /** The path. */
  path: string;
} | {
  /** The key. */
  key: string;
  kind: "variable";
  /** The file's line that the value begins with. */
  line?: number | null;
  /** The file that the value was read from, whole. */
  path?: string | null;
} | {
  /** The column in characters, from 1. */
  column?: number | null;
  /** The field. */
  field: string;
  kind: "request";
  /** The line, from 1. */
  line?: number | null;
} | {
  /** The column in characters, from 1. */
  column?: number | null;
  /** The key of the catalog. */
  key: string;
  kind: "pack";
  /** The line in the wording, from 1. */
  line?: number | null;
  /** The pack's file. */
  path: string;
} | {
  /** The key that holds the text. */
  key: string;
  kind: "profile";
  /** The profile. */
  profile: string;
} | {
  kind: "hook";
  /** Its name. */
  name: string;
};

/** Everything that takes part in the prompts of a folder. */
export type SourcesAnswer = {
  /** The agents whose view of the files is known. */
  agents: SourceAgent[];
  /** The conversations of this folder that were compared, the newest ones. */
  conversations: number;
  /** The way tokens were counted. */
  counted: string;
  /** The folder. */
  cwd: string;
  /** Findings of `check` that belong to no source of the list. */
  findings: SourceFinding[];
  /** The model whose prices are taken. */
  model?: string | null;
  /** The day of the prices. */
  prices_as_of: string;
  /** The profile of the prompt. */
  profile: string;
  /** The sources, the most expensive first. */
  sources: SourceRow[];
};

/** A run of bytes with one origin. */
export type SpanShape = {
  /** The carrier. */
  carrier: string;
  /** The end, exclusive. */
  end: number;
  /** The places that include that template, the nearest first. */
  included_from?: SourceShape[];
  /** Their origin. */
  source: SourceShape;
  /** The stability of these bytes. */
  stability: string;
  /** The first byte in the carrier's text. */
  start: number;
  /** The place in the template that put them here, when that is not the source itself. */
  template?: SourceShape | null;
};

/** The figures of a prompt. */
export type Stats = {
  /** The day of rules and prices. */
  as_of: string;
  /** The carriers that have text. */
  carriers: CarrierStats[];
  /** The first turn. */
  cold?: Figures | null;
  /** The way tokens were counted. */
  counted: string;
  /** True if the counts are exact. */
  exact: boolean;
  /** The smallest prefix that the model caches, where that is known. */
  min_tokens?: number | null;
  /** The model, if one is named. */
  model?: string | null;
  /** The least and the most tokens that the prefix can have, where they are estimated. */
  prefix_bounds?: TokenBounds | null;
  /** Tools and everything that is frozen, on every carrier: the part that a cache must hold to be of use. */
  prefix_tokens: number;
  /** The model and the vendor whose prices are taken, where the provider is not that vendor's own. */
  prices_of?: string | null;
  /** The provider whose rules apply. */
  provider?: string | null;
  /** The sections, in order. */
  sections: SectionStats[];
  /** The definitions of the tools. */
  tools: ToolStats;
  /** The turn after it. */
  warm?: Figures | null;
};

/** The store. */
export type StoreHealth = {
  /** True if it answers. */
  answers: boolean;
  /** Its kind and place, without a password. */
  place: string;
  /** The reason for which it does not. */
  problem?: string | null;
};

/** A tag of the template. */
export type TagShape = {
  /** The byte after the last one. */
  end: number;
  /** The number of its block; tags of one block share it. */
  group?: number | null;
  /** The key of the variable in the tag. */
  key?: string | null;
  /** `variable`, `if`, `else` or `endif`. */
  kind: string;
  /** True if the condition is negated: the value must be absent. */
  negated?: boolean;
  /** True if it looks like a tag of a block, but is not part of one and stays in the text. */
  problem?: boolean;
  /** The first byte. */
  start: number;
};

/** The template and its version. */
export type TemplateAnswer = {
  /** `draft` for a draft; missing otherwise. */
  label?: Label | null;
  /** The text. */
  template: string;
  /** True if new conversations of the server's profile begin with it; false for a draft, and for a stored template that the profile does not take. */
  used: boolean;
  /** The version; missing for the base of the server's profile, which is used while none is stored. */
  version?: number | null;
};

/** A new version of the template. */
export type TemplateBody = {
  /** The author's name. */
  author?: string | null;
  /** The version that it replaces. If the current version is another one, the request is refused. */
  expected_version?: number | null;
  /** `draft` for a version that new conversations do not begin with; `live`, the default, for one that they do. */
  label?: Label | null;
  /** The author's words about the change. */
  message?: string | null;
  /** The text. */
  template: string;
};

/** The least and the most tokens that a text can have. */
export type TokenBounds = {
  /** The most. */
  max: number;
  /** The least. */
  min: number;
};

/** A tool that the model may call. */
export type Tool = {
  /** The description that the provider gets. */
  description?: string | null;
  /** Guidelines for the prompt, while the tool is active. */
  guidelines?: string[];
  /** The JSON schema of the input. */
  input_schema?: unknown;
  /** The name. */
  name: string;
  /** One line for the prompt. */
  snippet?: string | null;
};

/** A tool that differs. */
export type ToolDiff = {
  /** The later definition; missing for a tool that is gone. */
  after?: string | null;
  /** The earlier definition, as JSON on several lines; missing for a new tool. */
  before?: string | null;
  /** `added`, `removed` or `changed`. */
  kind: string;
  /** The name of the tool. */
  name: string;
};

/** A tool as providers get it. */
export type ToolShape = {
  /** The description for the model. */
  description?: string | null;
  /** The JSON schema of the input. */
  input_schema?: unknown;
  /** The name. */
  name: string;
};

/** The definitions of the tools. */
export type ToolStats = {
  /** Their length in bytes, in canonical form. */
  bytes: number;
  /** The number of tools. */
  count: number;
  /** Their length in tokens. */
  tokens: number;
};

/** A note, with the bytes of the template to which it refers. */
export type TracedNote = {
  /** The subject, as a stable word. */
  code: string;
  /** A change of the template that fixes the problem. */
  fix?: FixShape | null;
  /** The suggested fix. */
  hint?: string | null;
  /** The description of the event. */
  message: string;
  /** The bytes of the request's template. */
  range?: RangeShape | null;
  /** `info`, `warning` or `error`. */
  severity: string;
  /** The place of the event. */
  source?: SourceShape | null;
};

/** A span of a carrier with one source. */
export type TracedSpan = {
  /** The carrier. */
  carrier: string;
  /** The end, exclusive. */
  end: number;
  /** The places that include that template, the nearest first. */
  included_from?: SourceShape[];
  /** Their origin. */
  source: SourceShape;
  /** The stability of these bytes. */
  stability: string;
  /** The first byte in the carrier's text. */
  start: number;
  /** The bytes of the request's template that inserted it. */
  tag?: RangeShape | null;
  /** The place in the template that put them here, when that is not the source itself. */
  template?: SourceShape | null;
};

/** The time for which a provider caches the frozen part. */
export type Ttl = "5m" | "1h";

/** Everything that the model sees in one turn. Every key is always there: `null` or an empty list where there is nothing. */
export type TurnShape = {
  /** The line between the prefix and the part of this turn. */
  boundary?: string | null;
  /** The frozen text of each carrier; a carrier without text is missing. */
  carriers: Record<string, string>;
  /** The changes of each hook in the frozen prompt, in order. */
  changes: ChangeShape[];
  /** The id of the conversation. */
  conversation: string;
  /** The SHA-256 of the prefix, in hexadecimal. */
  digest: string;
  /** The number of the epoch in force, from 1. */
  epoch: number;
  /** The reason for an expected cache miss of the prefix in this turn. */
  expected_miss?: string | null;
  /** The digest of the prefix and the tools, on which a provider's cache depends. */
  fingerprint: string;
  /** The messages to store and send with the next turn: in the provider's shape if one was named. */
  history: Record<string, unknown>[];
  /** The messages of this call, in a neutral shape. */
  messages: Record<string, unknown>[];
  /** Notes for the reader. */
  notes: NoteShape[];
  /** The notices that this turn delivers, in order: they are in its messages. */
  notices: Notice[];
  /** The fields of the provider's request body, if a provider was named. */
  payload?: unknown;
  /** The changes that wait for the next epoch. */
  pending: PendingField[];
  /** The frozen text of the system carrier, before the boundary. */
  prefix?: string | null;
  /** The profile that the prompt was built by. */
  profile: string;
  /** The reason for which the epoch was opened. */
  reason: string;
  /** True if the stored prompt was used, false if this turn built it. */
  reused: boolean;
  /** The properties that decide whether a running session may be used for this turn. */
  signature: Signature;
  /** The text of this turn after the boundary, on the system carrier. */
  suffix?: string | null;
  /** The system prompt that the model reads in this turn: after hooks. */
  system_prompt?: string | null;
  /** The definitions of the active tools. */
  tools: ToolShape[];
  /** The text of this turn on the `turn` carrier, which goes with the newest message of the user. */
  turn?: string | null;
  /** The version of this shape. */
  version: number;
};

/** The sums of one group. */
export type UsageGroup = {
  /** The price of what was lost by alarming misses. */
  alarming_usd: number;
  /** The calls by day, in UTC. */
  by_day?: Record<string, ReportDay>;
  /** The misses by kind of owner. */
  by_owner: Record<string, ReportSum>;
  /** The calls by verdict. */
  by_verdict: Record<string, ReportSum>;
  /** The number of calls. */
  calls: number;
  /** True if some of the money is list price, because a subscription paid. */
  is_list_price: boolean;
  /** The day, model, directory, profile, version or kind of owner; empty if it is not known. */
  key: string;
  /** The price of what was lost, by side. */
  lost_usd: ReportLoss;
  /** Tokens of answers. */
  output: number;
  /** Tokens read from the cache. */
  read: number;
  /** The price of the same calls without a cache, less that. */
  saved_usd?: number;
  /** Tokens neither read nor written. */
  uncached: number;
  /** The calls whose model has no price, or whose tokens are not known. */
  unpriced: number;
  /** The price of all calls whose model has one. */
  usd: number;
  /** Tokens written to it. */
  written: number;
};

/** The sums of calls over a time, as the API returns them. */
export type UsageReport = {
  /** The property by which `groups` are formed: `day`, `model`, `cwd`, `profile`, `version` or `owner`. */
  by: string;
  /** The sums by group, the most expensive first; days in their order. */
  groups: UsageGroup[];
  /** The time from which calls count, in RFC 3339. */
  since: string;
  /** The sums of all calls. */
  totals: ReportTotals;
  /** The time before which calls count, in RFC 3339; absent if all later ones count. */
  until?: string | null;
  /** The version of this shape. */
  version: number;
};

/** A variable, with its value in a working directory. */
export type ValueShape = {
  /** The reason for which it has no value. */
  absent?: string | null;
  /** The length of the whole value in bytes. */
  bytes?: number | null;
  /** A description of its value. */
  description: string;
  /** True if any name is valid. */
  dynamic?: boolean;
  /** The part of its key after the colon. */
  name: string;
  /** The time for which its value stays the same. */
  stability: string;
  /** The length of the whole value in tokens. */
  tokens?: number | null;
  /** The part of its key before the colon. */
  type: string;
  /** The first 4,096 bytes of its value. */
  value?: string | null;
};

/** The variables, with their values in a working directory. */
export type ValuesAnswer = {
  /** Notes about the values. */
  notes: OwnedNoteShape[];
  /** The variables. */
  variables: ValueShape[];
};

/** A variable. */
export type VariableShape = {
  /** A description of its value. */
  description: string;
  /** True if any name is valid. */
  dynamic?: boolean;
  /** The part of its key after the colon. */
  name: string;
  /** The time for which its value stays the same. */
  stability: string;
  /** The part of its key before the colon. */
  type: string;
};

/** The variables that templates may use. */
export type VariablesAnswer = {
  /** The variables. */
  variables: VariableShape[];
};

/** One version of the template. */
export type VersionShape = {
  /** The author's name, as the client sent it. */
  author?: string | null;
  /** The length of the text in bytes. */
  bytes: number;
  /** The number of conversations with an epoch that begins with this version. */
  conversations: number;
  /** `live` for the version that new conversations begin with, `draft` for a draft; missing for an earlier version. */
  label?: Label | null;
  /** The author's words about the change. */
  message?: string | null;
  /** The text; missing with `text=false`. */
  template?: string | null;
  /** The version, from 1. */
  version: number;
  /** The time of writing, in milliseconds since 1970. */
  written_at: number;
};

/** Versions of the template, newest first. */
export type VersionsAnswer = {
  /** The versions. */
  versions: VersionShape[];
};

/** The result of a simulation with something changed. */
export type WhatIfAnswer = {
  /** Assumptions of the simulation, in words. */
  assumptions: string[];
  /** The number of simulated calls. */
  calls: number;
  /** The difference in USD; negative if the change saves money. Missing without prices. */
  difference_usd?: number | null;
  /** The conversation as it is. */
  now: WhatIfSide;
  /** True if the times and sizes of the calls are those that were recorded; false if typical ones are assumed. */
  recorded: boolean;
  /** The same with the change. */
  then: WhatIfSide;
};

/** A simulation of a conversation with something changed. Without a field, nothing changes. */
export type WhatIfBody = {
  /** Another layout. */
  layout?: WhatIfLayout | null;
  /** Another model, for its prices, tokens and cache rules. */
  model?: string | null;
  /** The provider, if it is not the model's own. */
  provider?: string | null;
  /** A version of the template; both sides are then built from the files of now. */
  version?: number | null;
};

/** The prompts of the calls. */
export type WhatIfLayout = "one_epoch" | "every_turn";

/** One side of a simulation. */
export type WhatIfSide = {
  /** The day of rules and prices. */
  as_of: string;
  /** The cache whose rules are simulated. */
  cache: string;
  /** The way tokens were counted. */
  counted: string;
  /** The model. */
  model?: string | null;
  /** All calls together. */
  total: Figures;
  /** Each call. */
  turns: SimulatedRequest[];
};

/** Work in progress. */
export type WorkHealth = {
  /** Builds and reads that run. */
  running: number;
  /** The most that run at once. */
  running_max: number;
  /** Streams of events. */
  streams: number;
  /** The most streams of events. */
  streams_max: number;
  /** Requests that wait for a worker. */
  waiting: number;
  /** The most that wait. */
  waiting_max: number;
};

/** A workspace that was sent. */
export type WorkspaceAnswer = {
  /** The bytes of its files. */
  bytes: number;
  /** The digest, for the field `workspace` of requests. */
  digest: string;
  /** The number of its files. */
  files: number;
};

/** The forms of a workspace in a request, for the schema. */
export type WorkspaceShape = string | {
  /** The working directory below `/workspace`. */
  cwd?: string | null;
  /** The digest of a workspace that was sent before. */
  digest: string;
} | {
  /** The working directory below `/workspace`. */
  cwd?: string | null;
  /** The files by relative path. */
  files: Record<string, string>;
  /** The facts of git; without them the workspace is not a repository. */
  git?: BundleGit | null;
};
