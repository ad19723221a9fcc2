// Builds the editor into the server's crate: `node build.mjs`, or `node build.mjs --check` to learn whether what lies
// there is what would be built.
//
// The output has fixed names, no time stamps and no source map, so that the same sources give the same bytes on every
// machine. `stamp.txt` says which sources it was built from, so that a test without Node can tell that it is old:
// for each file of `web/src` and each of index.html, package.json, package-lock.json, build.mjs and tsconfig.json, in
// byte order of its path relative to `web/` with `/` between the parts, take
//     path + "\0" + lower-case hex SHA-256 of its content + "\n"
// and the stamp is the lower-case hex SHA-256 of all of these, followed by a line break.

import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { build, transform } from "esbuild";
import { compile, compileModule } from "svelte/compiler";

const web = dirname(fileURLToPath(import.meta.url));
const dist = join(web, "..", "crates", "proem-server", "dist");
const sourceFiles = ["build.mjs", "index.html", "package-lock.json", "package.json", "tsconfig.json"];

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

// Svelte names style classes after the file: a path relative to `web/` keeps the machine out of the output.
const svelte = {
  name: "svelte",
  setup(hooks) {
    const styles = new Map();
    hooks.onLoad({ filter: /\.svelte$/ }, async ({ path }) => {
      const filename = inWeb(path);
      const { js, css, warnings } = compile(await readFile(path, "utf8"), { filename, css: "external", dev: false });
      if (css?.code) styles.set(path, css.code);
      const style = css?.code ? `import ${JSON.stringify(`${path}?style`)};\n` : "";
      return { contents: style + js.code, loader: "js", resolveDir: dirname(path), warnings: messages(filename, warnings) };
    });
    hooks.onLoad({ filter: /\.svelte\.ts$/ }, async ({ path }) => {
      const filename = inWeb(path);
      const script = await transform(await readFile(path, "utf8"), { loader: "ts", target: "es2022" });
      const { js, warnings } = compileModule(script.code, { filename, dev: false });
      return { contents: js.code, loader: "js", resolveDir: dirname(path), warnings: messages(filename, warnings) };
    });
    hooks.onResolve({ filter: /\.svelte\?style$/ }, ({ path }) => ({ path, namespace: "svelte-style" }));
    hooks.onLoad({ filter: /.*/, namespace: "svelte-style" }, ({ path }) => ({
      contents: styles.get(path.slice(0, -"?style".length)),
      loader: "css",
    }));
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

async function bundle() {
  const result = await build({
    absWorkingDir: web,
    entryPoints: { app: "src/main.ts" },
    outdir: join(dist, "assets"),
    bundle: true,
    minify: true,
    write: false,
    format: "esm",
    target: ["es2022", "chrome123", "firefox128", "safari17.5"],
    conditions: ["browser", "production", "svelte"],
    define: { "process.env.NODE_ENV": '"production"' },
    legalComments: "none",
    charset: "utf8",
    logLevel: "warning",
    plugins: [svelte, adoptedStyles],
  });
  const files = new Map(result.outputFiles.map((file) => [relative(dist, file.path).split(sep).join("/"), file.contents]));
  files.set("index.html", await readFile(join(web, "index.html")));
  files.set("stamp.txt", Buffer.from(await stamp()));
  return files;
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

const files = await bundle();
if (process.argv.includes("--check")) {
  const wrong = await differing(files);
  if (wrong.length > 0) {
    console.error(`error: not what web/ builds: ${wrong.join(", ")}\nhint: run \`npm run build\` in web/`);
    process.exit(1);
  }
} else {
  for (const [path, content] of files) {
    await mkdir(dirname(join(dist, path)), { recursive: true });
    await writeFile(join(dist, path), content);
  }
  for (const [path, content] of files) console.log(`${path}  ${content.length} bytes`);
}
