// The folder, the profile and the model that pages are shown for: one choice for all of them, in the top bar. The browser
// remembers it, and the addresses of pages that depend on it have it.

import type { Editor, PromptRequest } from "./api.ts";
import type { Query } from "./route.svelte.ts";

const KEY = "proem.view";

export class Settings {
  workspace = $state("");
  /** Below the workspace. */
  folder = $state("");
  profile = $state("");
  model = $state("");

  readonly cwd = $derived(joined(this.workspace, this.folder));

  /** The model was chosen once, even if the choice was none. */
  hasModel = false;

  constructor() {
    const kept = stored();
    this.hasModel = typeof kept.model === "string";
    for (const field of ["workspace", "folder", "profile", "model"] as const) {
      if (typeof kept[field] === "string") this[field] = kept[field];
    }
  }

  /** Takes over what an address names, where the server offers it. */
  adopt({ folder, profile, model }: Query, { workspaces, profiles, models }: Editor): void {
    if (folder !== undefined) this.choose(folder, workspaces);
    if (profiles.some(({ name }) => name === profile)) this.profile = profile!;
    if (model === "none") this.model = "";
    else if (models.models.some(({ name }) => name === model)) this.model = model!;
  }

  /** Chooses a folder by its whole path. */
  choose(path: string, workspaces: readonly string[]): boolean {
    const plain = path.trim().replace(/(?<=.)\/+$/, "");
    const fitting = workspaces
      .map((workspace) => ({ workspace, inside: below(workspace, plain) }))
      .filter(({ inside }) => inside !== null)
      .sort((a, b) => b.workspace.length - a.workspace.length)[0];
    if (!fitting) return false;
    this.workspace = fitting.workspace;
    this.folder = fitting.inside ?? "";
    return true;
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

  /** Begins with a model, where none was chosen: without one no price is shown. */
  begin(model: string | null | undefined, { models: { models } }: Editor): void {
    if (this.hasModel) return;
    const known = models.find(({ name }) => name === model) ?? models.find(({ vendor }) => vendor === "anthropic") ?? models[0];
    this.model = known?.name ?? "";
    this.hasModel = true;
  }

  /** The values for an address. */
  get query(): { folder: string; profile: string; model: string } {
    return { folder: this.cwd, profile: this.profile, model: this.model || "none" };
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

export const settings = new Settings();

export function joined(workspace: string, folder: string): string {
  const below = folder.trim().replace(/^\/+|\/+$/g, "");
  return below === "" ? workspace : `${workspace.replace(/\/+$/, "")}/${below}`;
}

/** The part of `path` below `dir`; nothing when it lies elsewhere. */
export function below(dir: string, path: string): string | null {
  const root = dir.endsWith("/") ? dir : `${dir}/`;
  if (path === dir) return "";
  return path.startsWith(root) ? path.slice(root.length) : null;
}

function stored(): Record<string, unknown> {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof kept === "object" && kept !== null ? (kept as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
