// Values that a request would bring, given by hand to see what the template makes of them. They are never saved.

import type { PromptRequest } from "../lib/api.ts";

export class Trial {
  /** Values by key; null makes a variable absent. */
  variables = $state<Record<string, string | null>>({});
  language = $state("");
  /** Names, separated by commas. */
  servers = $state("");

  readonly request: PromptRequest = $derived({
    ...(Object.keys(this.variables).length > 0 ? { variables: { ...this.variables } } : {}),
    ...(this.language.trim() ? { language: this.language.trim() } : {}),
    ...(this.names.length > 0 ? { mcp_servers: this.names } : {}),
  });

  get names(): string[] {
    return this.servers.split(",").map((name) => name.trim()).filter(Boolean);
  }

  get count(): number {
    return Object.keys(this.variables).length + Number(this.language.trim() !== "") + Number(this.names.length > 0);
  }

  set(key: string, value: string | null): void {
    this.variables = { ...this.variables, [key]: value };
  }

  drop(key: string): void {
    const { [key]: _, ...rest } = this.variables;
    this.variables = rest;
  }

  clear(): void {
    this.variables = {};
    this.language = this.servers = "";
  }
}
