/** An object of JSON, such as a message, a tool or an answer. Its keys are those of the HTTP API. */
export type Json = { [key: string]: any }

/** An answer in the shape of the HTTP API; `json` is its text, in which numbers keep their spelling. */
export type Answer = Json & { readonly json: string }

/** Messages: a list of objects, or JSON text whose spelling is kept. */
export type Messages = string | ReadonlyArray<string | object>

/** A tool that the model may call. */
export interface Tool {
  name: string
  snippet?: string
  guidelines?: readonly string[]
  description?: string
  input_schema?: object
}

/** Changes of the caller for one prompt, after those of hooks. */
export interface PerPrompt {
  system_prompt?: string | null
  messages?: readonly object[] | null
}

/** The fields of a request. In a later turn `null` removes a field. Names with `_` may also be written in camel case. */
export interface RequestFields {
  profile?: string | null
  cwd?: string | null
  workspace?: object | string | null
  conversation?: string | null
  workspace_id?: string | null
  workspaceId?: string | null
  model?: string | null
  language?: string | null
  tools?: readonly Tool[] | null
  scope?: object | null
  packs?: readonly string[] | null
  backend?: string | null
  mcp_servers?: readonly string[] | null
  mcpServers?: readonly string[] | null
  system?: string | null
  append?: string | readonly string[] | null
  template?: string | null
  instruction?: string | null
  residents?: boolean | null
  project?: boolean | null
  recalled?: string | null
  first_user_text?: string | null
  firstUserText?: string | null
  prompt?: string | null
  touched?: readonly string[] | null
  images?: readonly object[] | null
  messages?: Messages | null
  per_prompt?: PerPrompt | null
  perPrompt?: PerPrompt | null
  provider?: string | null
  ttl?: '5m' | '1h' | null
  cached_content?: string | null
  cachedContent?: string | null
  variables?: { [key: string]: string | null }
  host?: object
}

/** The fields of a call to a provider, beside those that the prompt was built with. */
export type DeliveryFields = Pick<
  RequestFields,
  'messages' | 'prompt' | 'images' | 'tools' | 'model' | 'ttl' | 'cached_content' | 'cachedContent'
>

/** Paths of skills, packs and asset folders. */
export interface ResourcePaths {
  skill_paths?: readonly string[]
  skillPaths?: readonly string[]
  prompt_paths?: readonly string[]
  promptPaths?: readonly string[]
  asset_paths?: readonly string[]
  assetPaths?: readonly string[]
}

/** The event of `before_agent_start`. */
export interface BeforeAgentStart {
  prompt: string
  images: Json[]
  system_prompt: string
  cwd: string
  model: string | null
}

/** The answer to `before_agent_start`. */
export interface AgentStart {
  system_prompt?: string
  message?: string | { content: unknown }
}

/** The event of `context`. */
export interface ContextEvent {
  messages: Json[]
  cwd: string
}

/** The event of `resources_discover`. */
export interface ResourcesDiscover {
  cwd: string
  reason: 'startup' | 'reload'
}

/** A hook: a function of an event, or one that returns a promise. */
export type Hook<Event, Answer> = (event: Event) => Answer | null | undefined | void | Promise<Answer | null | undefined | void>

/** An error of proem: `code` is a stable word, `hint` tells how to fix it, `place` where the problem is. */
export class ProemError extends Error {
  code: string
  hint: string | null
  place: { path?: string; field?: string; line?: number; column?: number } | null
  kind: string | null
}
/** The request is invalid. */
export class RequestError extends ProemError {}
/** The request is valid, and its prompt cannot be built; `kind` is the reason. */
export class BuildError extends ProemError {}
/** There is no such conversation, epoch, compaction or workspace. */
export class NotFoundError extends ProemError {}
/** The conversation does not allow the change, or another writer was first. */
export class ConflictError extends ProemError {}
/** The store cannot be used. */
export class StoreError extends ProemError {}

/** A prompt that was built for a request. */
export class Prompt {
  private constructor()
  /** The system prompt; `null` if it is empty. */
  readonly system: string | null
  /** The part of the system prompt that must not change. */
  readonly prefix: string
  /** The separator between the prefix and the rest. */
  readonly boundary: string
  /** The part of the system prompt that belongs to this turn alone. */
  readonly suffix: string
  /** The SHA-256 of the prefix, in hexadecimal. */
  readonly digest: string
  /** The profile that it was built by. */
  readonly profile: string
  /** The text of each carrier; a carrier without text is missing. */
  readonly carriers: { [carrier: string]: string }
  /** Everything that was cut, skipped or defaulted, and other findings. */
  readonly notes: Json[]
  /** The whole prompt as JSON text: that of `proem build --format json`. */
  readonly json: string
  /** The whole prompt as an object. */
  toJSON(): Json
  /** Returns sections, files, notes and the source of every byte. */
  explain(): Answer
  /** Finds the source of a text; if the prompt does not have it, the files that do and why they were not used. */
  why(text: string): Answer
  /** Returns the fields of a provider's request body. */
  payload(provider: string, call?: DeliveryFields): any
  /** Returns the fields of a provider's request body as JSON text, with the spelling of the messages. */
  payloadJson(provider: string, call?: DeliveryFields): string
  /** Returns the messages to keep for the next call, as they are sent. */
  history(provider: string, call?: DeliveryFields): Json[]
  /** Returns the messages to keep for the next call as JSON text, in their spelling. */
  historyJson(provider: string, call?: DeliveryFields): string
}

/** Everything that the model sees in one turn. */
export class Turn {
  private constructor()
  /** The answer as JSON text: that of `POST /conversations/{id}/turn`. */
  readonly json: string
  /** The answer as an object. */
  toJSON(): Json
  /** The version of this shape. */
  readonly version: number
  /** The id of the conversation. */
  readonly conversation: string
  /** The profile that the prompt was built by. */
  readonly profile: string
  /** The number of the epoch in force, from 1. */
  readonly epoch: number
  /** The reason for which the epoch was opened. */
  readonly reason: string
  /** True if the stored prompt was used, false if this turn built it. */
  readonly reused: boolean
  /** The frozen text of each carrier. */
  readonly carriers: { [carrier: string]: string }
  /** The frozen text of the system carrier, before the boundary. */
  readonly prefix: string | null
  /** The line between the prefix and the part of this turn. */
  readonly boundary: string | null
  /** The text of this turn after the boundary, on the system carrier. */
  readonly suffix: string | null
  /** The text of this turn on the `turn` carrier. */
  readonly turn: string | null
  /** The SHA-256 of the prefix, in hexadecimal. */
  readonly digest: string
  /** The digest of the prefix and the tools, on which a provider's cache depends. */
  readonly fingerprint: string
  /** The properties that decide whether a running session may be used for this turn. */
  readonly signature: Json
  /** The system prompt that the model reads in this turn: after hooks. */
  readonly systemPrompt: string | null
  /** The messages of this call, in a neutral shape. */
  readonly messages: Json[]
  /** The messages of this call as JSON text, in their spelling. */
  readonly messagesJson: string
  /** The definitions of the active tools. */
  readonly tools: Json[]
  /** The messages to keep and send with the next turn: in the provider's shape if one was named. */
  readonly history: Json[]
  /** The messages to keep as JSON text, in their spelling: the value of `messages` for the next turn. */
  readonly historyJson: string
  /** The fields of the provider's request body; `null` if no provider was named. */
  readonly payload: any
  /** The fields of the provider's request body as JSON text, with the spelling of the messages. */
  readonly payloadJson: string | null
  /** The changes that wait for the next epoch. */
  readonly pending: Json[]
  /** The changes of each hook in the frozen prompt, in order. */
  readonly changes: Json[]
  /** The reason for an expected cache miss of the prefix in this turn. */
  readonly expectedMiss: string | null
  /** Notes for the reader. */
  readonly notes: Json[]
}

/** A store of conversations: a file of SQLite, a database of PostgreSQL, or memory. */
export class Store {
  private constructor()
  /** The name of the store, without a password. */
  readonly name: string
  /** Returns a conversation. The fields of the request go with the first turn that is made with it. */
  conversation(id: string, request?: RequestFields): Conversation
  /** Returns a page of conversations, the one with the newest epoch first. */
  conversations(options?: { search?: string; after?: string; limit?: number }): Promise<Answer>
  /** Returns the stored template with its version; `null` if there is none. */
  template(): Promise<Json | null>
  /** Stores a new version of the template. */
  putTemplate(template: string, options?: { author?: string; expectedVersion?: number }): Promise<Answer>
  /** Forgets a conversation; tells whether there was one. */
  remove(id: string): Promise<boolean>
  /** Closes the store: later operations fail. */
  close(): Promise<void>
}

/** A conversation of a store. It exists from its first turn on. */
export class Conversation {
  private constructor()
  /** The id. */
  readonly id: string
  /** Registers a function that may change the system prompt or add a message, once for each prompt of the user. */
  beforeAgentStart<H extends Hook<BeforeAgentStart, AgentStart>>(hook: H): H
  /** Registers a function that may rewrite the messages before each call of the model. */
  context<H extends Hook<ContextEvent, Json[] | { messages: Json[] }>>(hook: H): H
  /** Registers a function that may add skills, packs and assets before files are searched for. */
  resourcesDiscover<H extends Hook<ResourcesDiscover, ResourcePaths>>(hook: H): H
  /** Answers one turn: the frozen prompt, and everything else that the model sees. */
  turn(prompt?: string | null, call?: RequestFields): Promise<Turn>
  turn(call: RequestFields): Promise<Turn>
  /** Answers one turn for the JSON text of a request. */
  turnJson(request: string): Promise<Turn>
  /** Builds the prompt again from the files as they are now. */
  reload(call?: RequestFields): Promise<Answer>
  /** Searches for skills again; other files stay as they were read. */
  reloadSkills(): Promise<Answer>
  /** Replaces all tools. Active ones stay active while they exist, and new ones become active. */
  setToolRegistry(tools: readonly Tool[]): Promise<Answer>
  /** Sets the active tools, by name. */
  setActiveTools(names: readonly string[]): Promise<Answer>
  /** Adds skills, packs and asset folders after the present ones. */
  addResources(paths: ResourcePaths): Promise<Answer>
  /** Goes on with another profile. */
  switchProfile(profile: string): Promise<Answer>
  /** Begins a compaction. The epoch in force stays in force until it is committed. */
  beginCompaction(call?: RequestFields): Promise<Answer>
  /** Opens the epoch after a compaction. */
  commitCompaction(token: string): Promise<Answer>
  /** Ends a compaction without an epoch. */
  abortCompaction(token: string): Promise<void>
  /** Shows the changes that a reload would make. Nothing is changed. */
  plan(call?: RequestFields): Promise<Answer>
  /** Shows the changes that other tools would make. Nothing is changed. */
  planTools(tools: readonly Tool[]): Promise<Answer>
  /** Compares the frozen prompt with one that is built now. Nothing is changed. */
  drift(): Promise<Answer>
  /** Compares two epochs. */
  diff(before: number, after: number): Promise<Answer>
  /** Returns the frozen prompt and all epochs. */
  history(): Promise<Answer>
  /** Returns one epoch with the source of every byte, and the payload for a provider if one is named. */
  epoch(number: number, options?: { provider?: string }): Promise<Answer>
  /** Begins a conversation with the prompt of this one. */
  fork(id: string, options?: { role?: string }): Promise<Answer>
  /** Begins a conversation with a prompt of its own, from this one. */
  spawn(id: string, request?: RequestFields): Promise<Answer>
  /** Returns the changes that wait for the next epoch. */
  pending(): Promise<Json[]>
  /** Forgets the conversation; tells whether there was one. */
  remove(): Promise<boolean>
}

/** Builds the prompt for a request, on another thread. */
export function build(request?: RequestFields): Promise<Prompt>
/** Builds the prompt for a request, on this thread. */
export function buildSync(request?: RequestFields): Prompt
/** Opens a store: `sqlite:PATH`, `memory:` or `postgres://…`. */
export function open(name: string): Promise<Store>
/** Compares two prompts: each a `Prompt`, or the JSON text of one. */
export function diff(a: Prompt | string, b: Prompt | string, options?: { model?: string; provider?: string }): Promise<Answer>
/** Finds what wastes tokens, misleads the model or leaks secrets in the prompt of a request. */
export function check(
  request?: RequestFields & { strict?: boolean; determinism?: boolean; agents?: string | readonly string[]; all?: boolean },
): Promise<Answer>
/** Shows the instruction files and skills that each agent reads in a directory. */
export function compat(request?: RequestFields & { agents?: string | readonly string[] }): Promise<Answer>
/** Tells why recorded calls missed the provider's cache, and what that cost. */
export function report(
  path?: string,
  options?: { source?: string; since?: string; conversation?: string; provider?: string },
): Promise<Answer>
/** The version of the package. */
export const version: string
