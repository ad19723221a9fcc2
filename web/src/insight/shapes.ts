// The shapes of calls, as the API and `proem report` have them. Missing and null mean the same.

import type { Call } from "../lib/shapes.ts";

export type { Call };
export type CallPlace = NonNullable<Call["where"]>;
export type CallOwner = NonNullable<Call["owner"]>;
