// P16: js-tiktoken.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { data, runShort } from "./race.mjs";

const require = createRequire(join(process.cwd(), "package.json"));
const { Tiktoken } = require("js-tiktoken/lite");
const encoding = new Tiktoken(require("js-tiktoken/ranks/o200k_base"));
for (const file of readdirSync(`${data}/prose`)) {
  const text = readFileSync(`${data}/prose/${file}`, "utf8");
  const size = Number.parseInt(file, 10);
  const work = () => encoding.encode(text, [], []).length;
  runShort("P16", `count the tokens of ${size / 1000} KB`, "js-tiktoken", work, 5, { growth: "count tokens", size });
}
