// The choices that the server offers, read once for all pages: workspaces, profiles, models, limits.

import { api, type Editor } from "./api.ts";
import { patiently, Wait } from "./connection.svelte.ts";
import { route } from "./route.svelte.ts";
import { settings } from "./settings.svelte.ts";

/** The pages whose content depends on folder, profile and model; their addresses have the three. */
const SHOWN_FOR: readonly string[] = ["prompt", "versions", "sources"];

class Setup {
  value = $state.raw<Editor | null>(null);
  error = $state.raw<unknown>(null);
  readonly wait = new Wait();

  async load(): Promise<void> {
    this.error = null;
    try {
      const [value, newest] = await Promise.all([
        patiently(() => api.editor(), undefined, this.wait),
        settings.hasModel ? null : patiently(() => api.conversations({ limit: 1 })).catch(() => null),
      ]);
      settings.fit(value);
      settings.begin(newest?.conversations[0]?.model, value);
      if (isShownFor()) settings.adopt(route.query, value);
      this.value = value;
    } catch (error) {
      this.error = error;
    }
  }
}

export const setup = new Setup();
export const isShownFor = (): boolean => SHOWN_FOR.includes(route.page);
