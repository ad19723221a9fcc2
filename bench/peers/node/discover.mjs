// P6 and P11: pi's own functions, and a plain reader with the package `yaml`.
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { data, runLong, runShort, wants } from "./race.mjs";

const require = createRequire(join(process.cwd(), "package.json"));
// By path: the package does not export everything that builds a prompt.
const pi = join(process.cwd(), "node_modules/@earendil-works/pi-coding-agent");
const own = (path) => import(pathToFileURL(join(pi, "dist", path)));
const { loadSkillsFromDir, DefaultResourceLoader } = await own("index.js");
const { buildSystemPrompt } = await own("core/system-prompt.js");
const YAML = require("yaml");

const folders = (prefix) => readdirSync(data).filter((name) => name.startsWith(prefix));
const number = (name) => Number(name.split("-").at(-1));

function plain(dir) {
  const skills = [];
  for (const entry of readdirSync(dir, { withFileTypes: true })) {
    const text = readFileSync(join(dir, entry.name, "SKILL.md"), "utf8");
    const matter = /^---\n([\s\S]*?)\n---\n/.exec(text);
    skills.push(YAML.parse(matter[1]));
  }
  return skills;
}

if (wants("P6")) {
  for (const name of folders("skills-")) {
    const [dir, count] = [join(data, name, "tree/.agents/skills"), number(name)];
    const scan = () => loadSkillsFromDir({ dir, source: "project" }).skills;
    if (scan().length !== count || plain(dir).length !== count) throw new Error(`${name}: not every skill is found`);
    const [label, most] = [`scan ${count} skills`, Math.ceil(20_000 / count)];
    runShort("P6", label, "pi", scan, most, { growth: "scan skills", size: count });
    runShort("P6", label, "node, yaml", () => plain(dir), most, { growth: "scan skills", size: count });
  }
}

const deep = (root) => Array.from({ length: 12 }, (_, level) => `level-${level}`).reduce((at, name) => join(at, name), join(root, "tree"));

if (wants("P11")) {
  for (const name of folders("build-")) {
    const [root, count] = [join(data, name), number(name)];
    const [cwd, agentDir] = [deep(root), join(root, "home")];
    const work = async () => {
      const loader = new DefaultResourceLoader({ cwd, agentDir });
      await loader.reload();
      const [{ agentsFiles: contextFiles }, { skills }] = [loader.getAgentsFiles(), loader.getSkills()];
      return buildSystemPrompt({ cwd, contextFiles, skills });
    };
    const listed = (await work()).split("<skill>").length - 1;
    if (!existsSync(cwd) || listed !== count) throw new Error(`${name}: pi lists ${listed} skills`);
    await runLong("P11", `build a prompt with ${count} skills`, "pi", work, Math.ceil(5_000 / count), { growth: "build", size: count });
  }
}
