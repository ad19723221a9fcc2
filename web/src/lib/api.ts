// The client of `proem serve`. Every failure is an ApiError, so that pages have one thing to show.

import type {
  Agent, CallsPage, CallsQuery, Change, Conversation, ConversationsPage, ConversationsQuery, Diff, Editor, Files, FrozenEpoch, Health,
  Label, Note, Preview, PromptRequest, Sources, Template, Usage, WhatIf, WhatIfChange,
  Variable, Version,
} from "./shapes.ts";

export type * from "./shapes.ts";
export { STABILITIES } from "./shapes.ts";

export class ApiError extends Error {
  /** 0 when the server did not answer at all. */
  readonly status: number;
  /** A stable word, such as `conflict`; `offline` when the server did not answer. */
  readonly code: string;
  readonly hint?: string;
  /** Seconds until a retry, if the server sets them. */
  readonly retryAfter?: number;

  constructor(status: number, code: string, message: string, hint?: string, retryAfter?: number) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.code = code;
    this.hint = hint;
    this.retryAfter = retryAfter;
  }
}

/** True if a call was aborted by its caller: that is not reported. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

interface Call {
  method?: "GET" | "POST" | "PUT" | "DELETE";
  query?: Record<string, string | number | boolean | null | undefined>;
  body?: unknown;
  bearer?: string;
  signal?: AbortSignal;
}

async function call<T>(path: string, { method = "GET", query = {}, body, bearer, signal }: Call = {}): Promise<T> {
  const headers: Record<string, string> = { accept: "application/json" };
  if (method === "POST" || method === "PUT") headers["content-type"] = "application/json";
  if (bearer !== undefined) headers.authorization = `Bearer ${bearer}`;
  let response: Response;
  let text: string;
  try {
    response = await fetch(address(path, query), {
      method, headers, signal,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
    });
    // Inside, because a connection can also break after the head of a response.
    text = await response.text();
  } catch (error) {
    if (isAbort(error)) throw error;
    throw new ApiError(0, "offline", "the server does not answer", "start `proem serve` again, or check the network");
  }
  if (!response.ok) throw failure(response, text);
  if (text === "") return undefined as T;
  try {
    return JSON.parse(text) as T;
  } catch {
    throw new ApiError(response.status, "bad_answer", "the server's answer is not JSON", "is this still proem?");
  }
}

function address(path: string, query: NonNullable<Call["query"]>): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return search === "" ? path : `${path}?${search}`;
}

function failure(response: Response, text: string): ApiError {
  const seconds = Number.parseInt(response.headers.get("retry-after") ?? "", 10);
  const retryAfter = Number.isNaN(seconds) ? undefined : seconds;
  try {
    const { code, message, hint } = JSON.parse(text) as { code: string; message: string; hint?: string | null };
    if (typeof code === "string" && typeof message === "string") {
      return new ApiError(response.status, code, message, hint ?? undefined, retryAfter);
    }
  } catch {
    // A proxy in between answers in HTML: its status is still useful.
  }
  return new ApiError(response.status, "bad_answer", `the server answered ${response.status}`, undefined, retryAfter);
}

// The URL parser takes `.` and `..` for steps, even when they are percent-encoded; no escape can name such an id.
const at = (id: string) => `/conversations/${encodeURIComponent(id)}`;

export const api = {
  editor: (signal?: AbortSignal) => call<Editor>("/editor", { signal }),

  template: (signal?: AbortSignal) => call<Template>("/system-prompt", { signal }),
  /** `expected_version: 0` means that nothing is stored yet. */
  saveTemplate: (body: { template: string; author?: string; message?: string; label?: Label; expected_version?: number }) =>
    call<Template>("/system-prompt", { method: "PUT", body }),
  versions: (query: { before?: number; limit?: number; text?: boolean } = {}, signal?: AbortSignal) =>
    call<{ versions: Version[] }>("/system-prompt/versions", { query, signal }),
  version: (n: number, signal?: AbortSignal) =>
    call<Version & { template: string }>(`/system-prompt/versions/${n}`, { signal }),
  label: (n: number, label: Label) => call<Version>(`/system-prompt/versions/${n}/label`, { method: "PUT", body: { label } }),
  restore: (n: number) => call<Template>(`/system-prompt/versions/${n}/restore`, { method: "POST" }),

  preview: (request: PromptRequest, signal?: AbortSignal) =>
    call<Preview>("/preview", { method: "POST", body: request, signal }),
  variables: (request: PromptRequest, signal?: AbortSignal) =>
    call<{ variables: Variable[]; notes: Note[] }>("/preview/variables", { method: "POST", body: request, signal }),
  compat: (cwd: string, signal?: AbortSignal) => call<{ agents: Agent[] }>("/compat", { query: { cwd }, signal }),
  files: (dir: string, signal?: AbortSignal) => call<Files>("/files", { query: { dir }, signal }),
  /** The files and folders below `dir`, or in all workspaces, whose path has every word of the search. */
  searchFiles: (search: string, dir?: string, signal?: AbortSignal) => call<Files>("/files", { query: { search, dir }, signal }),

  /** Trades the token for a cookie that scripts cannot read. Do not keep the token. */
  session: (token: string) => call<void>("/session", { method: "POST", bearer: token }),
  endSession: () => call<void>("/session", { method: "DELETE" }),

  conversations: (query: ConversationsQuery = {}, signal?: AbortSignal) =>
    call<ConversationsPage>("/conversations", { query: { ...query }, signal }),
  conversation: (id: string, signal?: AbortSignal) => call<Conversation>(at(id), { signal }),
  epoch: (id: string, n: number, provider?: string, signal?: AbortSignal) =>
    call<FrozenEpoch>(`${at(id)}/epochs/${n}`, { query: { provider }, signal }),
  drift: (id: string, signal?: AbortSignal) => call<Change>(`${at(id)}/drift`, { signal }),
  diff: (id: string, from: number, to: number, signal?: AbortSignal) =>
    call<Diff>(`${at(id)}/diff`, { query: { from, to }, signal }),
  /** With `plan` nothing is changed: the answer lists the changes. No body, so that the stored request stays. */
  reload: (id: string, plan: boolean) =>
    call<Change>(`${at(id)}/reload`, { method: "POST", query: { plan: plan || undefined } }),
  removeConversation: (id: string) => call<void>(at(id), { method: "DELETE" }),
  /** The conversation as it is beside the same one with a change. Nothing is stored. */
  simulate: (id: string, change: WhatIfChange, signal?: AbortSignal) =>
    call<WhatIf>(`${at(id)}/simulate`, { method: "POST", body: change, signal }),

  calls: (query: CallsQuery, signal?: AbortSignal) => call<CallsPage>("/calls", { query: { ...query }, signal }),
  usage: (query: { since?: string; until?: string; by?: string }, signal?: AbortSignal) =>
    call<Usage>("/usage", { query, signal }),
  sources: (query: { cwd?: string; profile?: string; model?: string }, signal?: AbortSignal) =>
    call<Sources>("/sources", { query: given(query), signal }),
  health: (signal?: AbortSignal) => call<Health>("/health", { signal }),
  /** The address of a stream of events, for an EventSource. */
  eventsAddress: (conversation?: string): string => address("/events", { conversation }),
};

/** A query without empty values. */
const given = (query: Record<string, string | undefined>) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== ""));
