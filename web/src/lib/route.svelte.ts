// The current place, kept after the `#`: the paths of the server belong to its API. An address is a page, further parts,
// and a query: `#/conversations/ID?call=12`.

export const PAGES = ["overview", "prompt", "versions", "conversations", "sources", "health"] as const;
export type Page = (typeof PAGES)[number];
/** The values of an address after `?`. Pages name their own, in plain words: `folder`, `version`, `search`, `call`. */
export type Query = Readonly<Record<string, string>>;
/** Values to set in an address; an empty one removes the name. */
export type QueryChange = Readonly<Record<string, string | number | null | undefined>>;

interface Place {
  page: Page;
  rest: string[];
  query: Query;
}

// Addresses of earlier versions.
const FORMER: Record<string, Page> = { editor: "prompt", agents: "sources" };

export function parse(hash: string): Place {
  const [path = "", search = ""] = split(hash.replace(/^#?\/?/, ""));
  const [first = "", ...rest] = path.split("/").filter(Boolean).map(decode);
  const page = PAGES.find((page) => page === first) ?? FORMER[first] ?? "overview";
  return { page, rest, query: Object.fromEntries(new URLSearchParams(search)) };
}

function split(hash: string): [string, string] {
  const at = hash.indexOf("?");
  return at < 0 ? [hash, ""] : [hash.slice(0, at), hash.slice(at + 1)];
}

// A person can type anything into the address bar.
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The address of a page: its further parts, and its query. */
export function href(page: Page, ...rest: (string | number)[]): string {
  const parts = page === "overview" && rest.length === 0 ? [] : [page, ...rest];
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}`;
}

/** An address with values in its query. Slashes of paths stay readable. */
export function withQuery(address: string, change: QueryChange): string {
  const [path, search] = split(address);
  const values = new URLSearchParams(search);
  for (const [name, value] of Object.entries(change)) {
    if (value === undefined || value === null || value === "") values.delete(name);
    else values.set(name, String(value));
  }
  const text = values.toString().replaceAll("%2F", "/").replaceAll("%3A", ":");
  return text === "" ? path : `${path}?${text}`;
}

class Route {
  #hash = $state(location.hash);
  #parsed = $derived(parse(this.#hash));

  constructor() {
    addEventListener("hashchange", () => (this.#hash = location.hash));
  }

  get page(): Page {
    return this.#parsed.page;
  }

  /** The parts of the address after the page, such as the name of a conversation. */
  get rest(): readonly string[] {
    return this.#parsed.rest;
  }

  get query(): Query {
    return this.#parsed.query;
  }

  /** The present address with other values in its query, for links. */
  with(change: QueryChange): string {
    return withQuery(this.#hash || "#/", change);
  }

  /** Goes to an address; the browser's Back returns. */
  go(address: string): void {
    location.hash = address;
  }

  /** Changes the query in place: typed and chosen values do not become steps of the browser's history. */
  set(change: QueryChange): void {
    const next = this.with(change);
    if (next === this.#hash) return;
    history.replaceState(history.state, "", next);
    this.#hash = next;
  }
}

export const route = new Route();
