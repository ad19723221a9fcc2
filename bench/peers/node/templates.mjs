// P2: bracket templates the way a small TypeScript project would do it: one regular expression finds the tags, a stack
// makes a tree of them, a function walks it.
import { readFileSync, readdirSync } from "node:fs";
import { data, runShort } from "./race.mjs";

const TAG = /\[(?:if (!?)([a-z]+:[^\]\n]+)|(else)|(endif)|([a-z]+:[^\]\n]+))\]/g;

function parse(source) {
  const root = { then: [], else: null };
  const open = [root];
  let end = 0;
  const add = (node) => {
    const top = open.at(-1);
    (top.else ?? top.then).push(node);
  };
  for (const found of source.matchAll(TAG)) {
    if (found.index > end) add(source.slice(end, found.index));
    end = found.index + found[0].length;
    if (found[2]) {
      const node = { isNot: found[1] === "!", key: found[2], then: [], else: null };
      add(node);
      open.push(node);
    } else if (found[3]) open.at(-1).else = [];
    else if (found[4]) open.pop();
    else add({ key: found[5] });
  }
  if (end < source.length) add(source.slice(end));
  return root.then;
}

function render(nodes, values) {
  let text = "";
  for (const node of nodes) {
    if (typeof node === "string") text += node;
    else if (!node.then) text += values.get(node.key) ?? "";
    else text += render((values.has(node.key) !== node.isNot ? node.then : node.else) ?? [], values);
  }
  return text;
}

const given = JSON.parse(readFileSync(`${data}/templates/values.json`, "utf8"));
const values = new Map(given.map((value, key) => [`k:${key}`, value]));
for (const file of readdirSync(`${data}/templates`).filter((name) => name.endsWith(".bracket"))) {
  const source = readFileSync(`${data}/templates/${file}`, "utf8");
  const expected = readFileSync(`${data}/templates/${file.replace("bracket", "expected")}`, "utf8");
  if (render(parse(source), values) !== expected) throw new Error(`${file}: not the same text as proem's`);
  const kilobytes = Number.parseInt(file, 10) / 1024;
  runShort("P2", `parse and render, ${kilobytes} KB`, "regex in JavaScript", () => render(parse(source), values));
}
