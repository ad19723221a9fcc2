// The current place in the page, kept after the `#`: the paths of the server belong to its API.

export type Page = "editor" | "conversations" | "agents";

function parse(hash: string): { page: Page; rest: string[] } {
  const [first = "", ...rest] = hash.replace(/^#?\/?/, "").split("/").filter(Boolean).map(decode);
  return { page: first === "conversations" || first === "agents" ? first : "editor", rest };
}

// A person can type anything into the address bar.
function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
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

  /** The rest of the address after the page, such as the name of a conversation. */
  get rest(): readonly string[] {
    return this.#parsed.rest;
  }
}

export const route = new Route();

export function href(page: Page, ...rest: (string | number)[]): string {
  return `#/${[page, ...rest.map((part) => encodeURIComponent(part))].join("/")}`;
}
