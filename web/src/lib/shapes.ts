// The names under which the pages use the shapes of the API. Their fields come from openapi.ts, which is generated.
// Offsets are UTF-8 bytes, times are milliseconds since 1970. A field that is missing and one that is null mean the same.

import type * as Api from "./openapi.ts";

/** A shape with some of its fields known more exactly than the description says. */
type Exact<Shape, Fields> = Omit<Shape, keyof Fields> & Fields;

export type Stability = "release" | "machine" | "user" | "project" | "session" | "day" | "turn";
export const STABILITIES: readonly Stability[] = ["release", "machine", "user", "project", "session", "day", "turn"];
interface Stable {
  stability: Stability;
}
interface Severe {
  severity: "info" | "warning" | "error";
}

export type Carriers = Record<string, string>;
export type Range = Api.RangeShape;
export type Source = Api.SourceShape;
export type Section = Exact<Api.SectionShape, Stable>;
export type Span = Exact<Api.TracedSpan, Stable>;
export type Tag = Exact<Api.TagShape, { kind: "variable" | "if" | "else" | "endif" }>;
export type Note = Exact<Api.TracedNote, Severe>;

export type SectionStats = Exact<Api.SectionStats, Stable>;
export type Stats = Exact<Api.Stats, { sections: SectionStats[] }>;
export type Figures = Api.Figures;
export type Break = Exact<Api.BreakShape, Stable>;
export type Preview = Exact<Api.PreviewAnswer, {
  sections: Section[]; spans: Span[]; tags: Tag[]; stats: Stats; breaks: Break[]; notes: Note[];
}>;

/** The input of a prompt; docs/request.md has all fields. */
export type PromptRequest = Partial<Api.Request>;

export type Variable = Exact<Api.ValueShape, Stable>;
export type Editor = Api.EditorAnswer;
export type Template = Api.TemplateAnswer;
export type Version = Api.VersionShape;
export type Label = Api.Label;
export type Files = Exact<Api.FilesAnswer, { entries: Exact<Api.EntryShape, { kind: "file" | "directory" }>[] }>;

export type ConversationItem = Api.ConversationShape;
export type Epoch = Api.EpochShape;
export type Conversation = Exact<Api.ConversationAnswer, { notes: Note[] }>;
export type FrozenEpoch = Exact<Api.EpochAnswer, { sections: Section[]; spans: Span[]; notes: Note[] }>;
export type CarrierDiff = Api.CarrierDiff;
export type ToolDiff = Api.ToolDiff;
export type Plan = Api.PlanShape;
export type Change = Api.ChangeAnswer;
export type Diff = Api.DiffAnswer;
export type Comparison = Api.ComparisonShape;
export type Difference = Api.DifferenceShape;
export type Owner = Api.OwnerShape;
export type JudgedCall = Api.JudgedCall;

/** The files that one agent would read in a folder. */
export type Agent = Api.AgentShape;
/** The outcome of a file. */
export type AgentFile = Api.FileShape;

export type Health = Api.HealthAnswer;
export type Sources = Api.SourcesAnswer;
export type SourceRow = Api.SourceRow;
export type SourceAgent = Api.SourceAgent;
export type SourceFinding = Api.SourceFinding;
export type WhatIf = Api.WhatIfAnswer;
export type WhatIfChange = Api.WhatIfBody;

/** The query of the list of conversations. */
export interface ConversationsQuery {
  search?: string;
  kind?: string;
  model?: string;
  since?: string;
  misses?: boolean;
  sort?: string;
  order?: string;
  after?: string;
  limit?: number;
}
export type Call = Api.RecordedCall;
export type CallsPage = Api.CallsPage;
export type ConversationsPage = Api.ConversationsAnswer;
export type Usage = Api.UsageReport;

/** The query of the list of calls. */
export interface CallsQuery {
  conversation?: string;
  since?: string;
  alarming?: boolean;
  after?: string;
  limit?: number;
}

/** A conversation from which another one began, or that began from it. */
export interface Relative {
  conversation: string;
  kind: string;
  epoch?: number;
}
/** The relatives of a conversation; a server without forks has none. */
export interface Relatives {
  parents?: Relative[];
  children?: Relative[];
}
/** The prices of announcing a change, and of a rebuild; a server without notices has none. */
export interface DriftPrices {
  notice?: { sections: string[]; tokens: number; dollars?: number | null; dollars_per_turn?: number | null; text: string } | null;
  rebuild?: { tokens: number; dollars?: number | null; cheaper_after_turns?: number | null } | null;
}
