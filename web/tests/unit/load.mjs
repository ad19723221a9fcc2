// Node runs no TypeScript here, so that the module under test is bundled first, as the page's is.

import { build } from "esbuild";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/** Imports a module of `src/`. One with runes has them as plain values: nothing reacts, and nothing has to. */
export async function load(path) {
  const folder = mkdtempSync(join(tmpdir(), "proem-web-unit-"));
  const outfile = join(folder, `${basename(path)}.mjs`);
  try {
    const entry = fileURLToPath(new URL(`../../src/${path}`, import.meta.url));
    await build({ entryPoints: [entry], bundle: true, format: "esm", outfile, logLevel: "warning" });
    return await import(pathToFileURL(outfile));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

globalThis.$state = globalThis.$derived = (value) => value;
