// For whom the prompt is shown: the directory, the profile and the model. The browser remembers them.

import type { Editor, PromptRequest } from "../lib/api.ts";

const KEY = "proem.view";

export class Settings {
  workspace = $state("");
  /** Below the workspace, as typed. */
  folder = $state("");
  profile = $state("");
  model = $state("");

  readonly cwd = $derived(joined(this.workspace, this.folder));

  constructor() {
    const kept = stored();
    for (const field of ["workspace", "folder", "profile", "model"] as const) {
      if (typeof kept[field] === "string") this[field] = kept[field];
    }
  }

  /** Drops what this server does not offer, and chooses where nothing is chosen. */
  fit({ workspaces, profiles, profile, models }: Editor): void {
    if (!workspaces.includes(this.workspace)) {
      this.workspace = workspaces[0] ?? "";
      this.folder = "";
    }
    if (!profiles.some(({ name }) => name === this.profile)) {
      this.profile = profile ?? profiles[0]?.name ?? "";
    }
    if (this.model && !models.models.some(({ name }) => name === this.model)) this.model = "";
  }

  keep(): void {
    const { workspace, folder, profile, model } = this;
    try {
      localStorage.setItem(KEY, JSON.stringify({ workspace, folder, profile, model }));
    } catch {
      // The settings are then chosen again next time.
    }
  }

  /** The request for a template, without fields that say nothing. */
  request(template?: string): PromptRequest {
    return {
      ...(template === undefined ? {} : { template }),
      ...(this.cwd ? { cwd: this.cwd } : {}),
      ...(this.profile ? { profile: this.profile } : {}),
      ...(this.model ? { model: this.model } : {}),
    };
  }
}

export function joined(workspace: string, folder: string): string {
  const below = folder.trim().replace(/^\/+|\/+$/g, "");
  return below === "" ? workspace : `${workspace.replace(/\/+$/, "")}/${below}`;
}

function stored(): Record<string, unknown> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
