// A `proem serve` of a test's own: a home, a store, a workspace that is a git repository, a free port.

import { execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { constants, copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

const scratch = process.env.PROEM_WEB_SCRATCH ?? tmpdir();
const running = new Set();
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));

export const FILES = {
  "AGENTS.md": "Run the tests before you say that something works.\n",
  "TODO.md": "- write the editor\n",
  "src/main.rs": "fn main() {}\n",
};

/** Starts a server. `files` lie in its workspace beside FILES; `seeded`: its store has 10,000 conversations and 200,000 calls. */
export async function serve({ token, files = {}, args = [], seeded = false } = {}) {
  const root = mkdtempSync(join(scratch, "bench-"));
  const [home, workspace] = [join(root, "home"), join(root, "project")];
  mkdirSync(home);
  for (const [path, text] of Object.entries({ ...FILES, ...files })) write(workspace, path, text);
  repository(workspace, home);
  const server = { root, home, workspace, token, port: 0, url: "", args };
  if (seeded) copyFileSync(await seed(home, workspace), join(root, "store.db"), constants.COPYFILE_FICLONE);
  await start(server);
  return Object.assign(server, {
    write: (path, text) => write(workspace, path, text),
    stop: () => stop(server),
    restart: () => start(server),
    close: async () => {
      await stop(server);
      rmSync(root, { recursive: true, force: true });
    },
    ask: (path, body, method) => ask(server, path, body, method),
  });
}

/** Returns a store with many calls. It is made once a day, because the calls are those of the last 30 days. */
async function seed(home, workspace) {
  const script = fileURLToPath(new URL("../seed.py", import.meta.url));
  const folder = resolve(fileURLToPath(new URL("../../../target/web-seed", import.meta.url)));
  const binary = createHash("sha256").update(readFileSync(process.env.PROEM)).update(readFileSync(script)).digest("hex").slice(0, 16);
  const file = join(folder, `${new Date().toISOString().slice(0, 10)}-${binary}.db`);
  if (existsSync(file)) return file;
  mkdirSync(folder, { recursive: true });
  for (const old of readdirSync(folder)) rmSync(join(folder, old), { recursive: true, force: true });
  const root = mkdtempSync(join(folder, "new-"));
  // The server makes the tables.
  const maker = { root, home, workspace, port: 0, url: "", args: [] };
  await start(maker);
  await stop(maker, "SIGTERM");
  execFileSync("python3", [script, join(root, "store.db")], { stdio: "inherit" });
  renameSync(join(root, "store.db"), file);
  rmSync(root, { recursive: true, force: true });
  return file;
}

function write(workspace, path, text) {
  const file = join(workspace, path);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function repository(workspace, home) {
  const env = { PATH: process.env.PATH, HOME: home, GIT_CONFIG_NOSYSTEM: "1" };
  const git = (...args) => execFileSync("git", ["-C", workspace, ...args], { env, stdio: "pipe" });
  git("init", "--quiet", "--initial-branch=main");
  git("add", ".");
  git("-c", "user.name=A", "-c", "user.email=a@example.org", "commit", "--quiet", "--message=first");
}

/** Starts it, the first time on a free port and then on the same one, and waits until it listens. */
function start(server) {
  const { home, workspace, root, token, port, args } = server;
  const env = { PATH: process.env.PATH, HOME: home, TZ: "UTC", LANG: "C.UTF-8" };
  if (token) env.PROEM_TOKEN = token;
  // A folder in place of the files in the binary, so that a change of the page needs no build of the server.
  const page = process.env.PROEM_WEB ? ["--web", process.env.PROEM_WEB] : [];
  const flags = ["serve", "--listen", `127.0.0.1:${port}`, "--store", join(root, "store.db"), ...page, ...args];
  const child = spawn(process.env.PROEM, flags, { cwd: workspace, env, stdio: ["ignore", "pipe", "pipe"] });
  const pid = join(scratch, "pids", String(child.pid));
  if (process.env.PROEM_WEB_SCRATCH) writeFileSync(pid, "");
  running.add(child);
  server.child = child;
  let log = "";
  return new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", (code) => {
      running.delete(child);
      rmSync(pid, { force: true });
      reject(new Error(`the server ended with ${code}: ${log}`));
    });
    const read = (line) => {
      log += `${line}\n`;
      const found = /listening on (http:\/\/127\.0\.0\.1:(\d+))/.exec(line);
      if (!found) return;
      [server.url, server.port] = [found[1], Number(found[2])];
      resolve();
    };
    createInterface(child.stdout).on("line", read);
    createInterface(child.stderr).on("line", read);
  });
}

async function stop({ child }, signal = "SIGKILL") {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = new Promise((resolve) => child.once("exit", resolve));
  child.kill(signal);
  await ended;
}

/** Asks the server as another client would; the answer's JSON, or an error with its status. */
async function ask(server, path, body, method = body === undefined ? "GET" : "POST") {
  const headers = { "content-type": "application/json" };
  if (server.token) headers.authorization = `Bearer ${server.token}`;
  const response = await fetch(server.url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}
