// Runs the tests of the editor: `node tests/run.mjs [--unit] [--shots DIR] [FILE…]`.
//
// PROEM names the binary; without it a build of this repository is taken. PROEM_WEB names a folder with the built page, to
// serve it instead of the one in the binary. `--unit` runs only what needs neither the binary nor a browser, `--shots`
// writes a picture of each page, FILE chooses tests by a part of their file's name.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

const here = fileURLToPath(new URL(".", import.meta.url));
const { values, positionals } = parseArgs({
  options: { unit: { type: "boolean" }, shots: { type: "string" } },
  allowPositionals: true,
});

function testsIn(folder) {
  const files = readdirSync(join(here, folder)).filter((name) => name.endsWith(".test.mjs")).sort();
  const chosen = files.filter((name) => positionals.length === 0 || positionals.some((part) => name.includes(part)));
  return chosen.map((name) => join(here, folder, name));
}

function binary() {
  const target = resolve(here, "../../target");
  const found = [process.env.PROEM, join(target, "release/proem"), join(target, "debug/proem")];
  const path = found.find((path) => path && existsSync(path));
  if (path) return resolve(path);
  console.error("error: there is no binary to test\nhint: `cargo build`, or name one with PROEM=PATH");
  process.exit(2);
}

/** Ends servers whose test was killed before it could end them itself. */
function sweep(scratch) {
  for (const name of readdirSync(join(scratch, "pids"))) {
    try {
      process.kill(Number(name), "SIGKILL");
    } catch {
      // Gone already.
    }
  }
}

const env = { ...process.env };
const files = testsIn("unit");
if (!values.unit) {
  env.PROEM = binary();
  if (values.shots) env.PROEM_WEB_SHOTS = resolve(values.shots);
  if (values.shots) mkdirSync(env.PROEM_WEB_SHOTS, { recursive: true });
  files.push(...testsIn("browser"));
}
if (files.length === 0) {
  console.error("error: no test has such a name");
  process.exit(2);
}
const scratch = mkdtempSync(join(tmpdir(), "proem-web-"));
mkdirSync(join(scratch, "pids"));
env.PROEM_WEB_SCRATCH = scratch;
// Each has a browser and a server: too many at once, and what is measured is the machine.
const concurrency = Math.max(1, Math.floor(availableParallelism() / 2));
const options = ["--test", "--test-reporter=spec", `--test-concurrency=${concurrency}`];
const child = spawn(process.execPath, [...options, ...files], { stdio: "inherit", env });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.once("exit", (status) => {
  sweep(scratch);
  rmSync(scratch, { recursive: true, force: true });
  process.exit(status ?? 1);
});
