// Builds the editor into the server's crate: `node build.mjs`, or `node build.mjs --check` to learn whether what lies
// there is what would be built.
//
// Each page is a file of its own that loads when it is first shown; files that several need are named after their content.
// The output has no time stamps and no source map, so that the same sources give the same bytes on every machine.
// `assets.rs` lists the files for the server. `stamp.txt` says which sources it was built from, so that a test without Node can tell that it is old:
// for each file of `web/src` and each of index.html, package.json, package-lock.json, build.mjs and tsconfig.json, in
// byte order of its path relative to `web/` with `/` between the parts, take
//     path + "\0" + lower-case hex SHA-256 of its content + "\n"
// and the stamp is the lower-case hex SHA-256 of all of these, followed by a line break.

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build, transform } from "esbuild";
import { compile, compileModule } from "svelte/compiler";

const web = dirname(fileURLToPath(import.meta.url));
const dist = join(web, "..", "crates", "proem-server", "dist");
const sourceFiles = ["build.mjs", "index.html", "package-lock.json", "package.json", "tsconfig.json"];
/** The most JavaScript that the first look at any page may load, compressed. */
const FIRST_LOAD_MAX = 350 * 1024;

const sha256 = (content) => createHash("sha256").update(content).digest("hex");
const inWeb = (path) => relative(web, path).split(sep).join("/");

async function filesBelow(directory) {
  const entries = await readdir(directory, { withFileTypes: true, recursive: true });
  return entries.filter((entry) => entry.isFile()).map((entry) => inWeb(join(entry.parentPath, entry.name)));
}

async function stamp() {
  const paths = [...sourceFiles, ...(await filesBelow(join(web, "src")))];
  paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  const whole = createHash("sha256");
  for (const path of paths) whole.update(`${path}\0${sha256(await readFile(join(web, path)))}\n`);
  return `${whole.digest("hex")}\n`;
}

// Svelte names style classes after the file: a path relative to `web/` keeps the machine out of the output. The styles of
// all components go into one file, which the page loads at once: a page that is shown later must not jump.
const styles = new Map();
const svelte = {
  name: "svelte",
  setup(hooks) {
    hooks.onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const filename = inWeb(path);
      const { js, css, warnings } = compile(await readFile(path, "utf8"), { filename, css: "external", dev: false });
      if (css?.code) styles.set(filename, css.code);
      return { contents: js.code, loader: "js", resolveDir: dirname(path), warnings: messages(filename, warnings) };
    });
    hooks.onLoad({ filter: /\.svelte\.ts$/ }, async ({ path }) => {
      const filename = inWeb(path);
      const script = await transform(await readFile(path, "utf8"), { loader: "ts", target: "es2022" });
      const { js, warnings } = compileModule(script.code, { filename, dev: false });
      return { contents: js.code, loader: "js", resolveDir: dirname(path), warnings: messages(filename, warnings) };
    });
  },
};

const messages = (file, warnings) =>
  warnings.map(({ message, start }) => ({ text: message, location: { file, line: start?.line, column: start?.column } }));

// CodeMirror puts its styles into a `<style>` element, which the page's content security policy refuses. Ours are
// adopted style sheets; everybody but our module itself gets it instead of the package.
const adoptedStyles = {
  name: "adopted-styles",
  setup(hooks) {
    const ours = join(web, "src", "lib", "adopted-styles.ts");
    hooks.onResolve({ filter: /^style-mod$/ }, ({ importer }) => (importer === ours ? undefined : { path: ours }));
  },
};

const look = {
  minify: true,
  target: ["es2022", "chrome123", "firefox128", "safari17.5"],
  legalComments: "none",
  charset: "utf8",
  logLevel: "warning",
};

async function bundle() {
  const result = await build({
    ...look,
    absWorkingDir: web,
    entryPoints: { app: "src/main.ts" },
    outdir: join(dist, "assets"),
    bundle: true,
    splitting: true,
    chunkNames: "[name]-[hash]",
    metafile: true,
    write: false,
    format: "esm",
    conditions: ["browser", "production", "svelte"],
    define: { "process.env.NODE_ENV": '"production"' },
    plugins: [svelte, adoptedStyles],
  });
  const files = new Map(result.outputFiles.map((file) => [relative(dist, file.path).split(sep).join("/"), file.contents]));
  checkSizes(result.metafile, files);
  files.set("assets/app.css", await styleSheet());
  files.set("assets.rs", Buffer.from(listOf(files)));
  files.set("index.html", await readFile(join(web, "index.html")));
  files.set("stamp.txt", Buffer.from(await stamp()));
  return files;
}

async function styleSheet() {
  const parts = [...styles].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, css]) => css);
  const whole = [await readFile(join(web, "src", "styles.css"), "utf8"), ...parts].join("\n");
  return Buffer.from((await transform(whole, { ...look, loader: "css" })).code);
}

function listOf(files) {
  const names = [...files.keys()].filter((path) => path.startsWith("assets/")).sort();
  const lines = names.map((path) => `    Asset::new("${basename(path)}", include_bytes!("${path}")),\n`);
  return `// The files of the web interface, written by web/build.mjs.\n[\n${lines.join("")}]\n`;
}

/** Fails if the first look at a page loads more JavaScript than it may. */
function checkSizes({ outputs }, files) {
  const load = (path, seen = new Set()) => {
    if (seen.has(path)) return seen;
    seen.add(path);
    for (const { path: next, kind } of outputs[path].imports) if (kind === "import-statement") load(next, seen);
    return seen;
  };
  const sizes = new Map([...files].map(([path, content]) => [path, gzipSync(content, { level: 9 }).length]));
  const named = (path) => relative(dist, join(web, path)).split(sep).join("/");
  const app = Object.keys(outputs).find((path) => outputs[path].entryPoint === "src/main.ts");
  const pages = outputs[app].imports.filter(({ kind }) => kind === "dynamic-import").map(({ path }) => path);
  for (const page of pages) {
    const bytes = [...load(page, load(app))].reduce((sum, path) => sum + sizes.get(named(path)), 0);
    if (bytes > FIRST_LOAD_MAX) throw new Error(`${outputs[page].entryPoint} loads ${bytes} bytes, at most ${FIRST_LOAD_MAX}`);
    console.log(`${outputs[page].entryPoint}: ${bytes} bytes of JavaScript, compressed`);
  }
}

async function differing(files) {
  const present = await readdir(dist, { withFileTypes: true, recursive: true }).catch(() => []);
  const wrong = present
    .filter((entry) => entry.isFile())
    .map((entry) => relative(dist, join(entry.parentPath, entry.name)).split(sep).join("/"))
    .filter((path) => !files.has(path));
  for (const [path, content] of files) {
    const there = await readFile(join(dist, path)).catch(() => null);
    if (there === null || Buffer.compare(there, Buffer.from(content)) !== 0) wrong.push(path);
  }
  return wrong.sort();
}

// `--out FOLDER` writes the page there, for a server that is started with `--web FOLDER`.
const out = process.argv.includes("--out") ? process.argv[process.argv.indexOf("--out") + 1] : dist;
const files = await bundle();
if (process.argv.includes("--check")) {
  const wrong = await differing(files);
  if (wrong.length > 0) {
    console.error(`error: not what web/ builds: ${wrong.join(", ")}\nhint: run \`npm run build\` in web/`);
    process.exit(1);
  }
} else {
  await rm(join(out, "assets"), { recursive: true, force: true });
  for (const [path, content] of files) {
    await mkdir(dirname(join(out, path)), { recursive: true });
    await writeFile(join(out, path), content);
  }
}
