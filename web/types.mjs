// Writes the types of the API, src/lib/openapi.ts, from its description: `node types.mjs`, or `node types.mjs --check` to
// learn whether the file there is what would be written.

import { readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";

const description = fileURLToPath(new URL("../docs/schema/openapi.json", import.meta.url));
const target = fileURLToPath(new URL("./src/lib/openapi.ts", import.meta.url));

const isName = (text) => /^[A-Za-z_$][\w$]*$/.test(text);
const key = (text) => (isName(text) ? text : JSON.stringify(text));
const once = (texts) => [...new Set(texts)];

/** The type of a JSON schema. */
function typeOf(schema, indent) {
  if (schema === true || schema === undefined) return "unknown";
  if (schema.$ref) return schema.$ref.split("/").at(-1);
  if ("const" in schema) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  const choices = schema.oneOf ?? schema.anyOf;
  if (choices) {
    const union = once(choices.map((choice) => typeOf(choice, indent))).join(" | ");
    return schema.properties ? `(${union}) & ${objectOf(schema, indent)}` : union;
  }
  if (schema.allOf) return schema.allOf.map((part) => typeOf(part, indent)).join(" & ");
  if (Array.isArray(schema.type)) {
    return once(schema.type.map((type) => typeOf({ ...schema, type }, indent))).join(" | ");
  }
  switch (schema.type) {
    case "string": return "string";
    case "integer": case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": return schema.prefixItems ? `[${schema.prefixItems.map((item) => typeOf(item, indent)).join(", ")}]` : arrayOf(schema, indent);
    case "object": return objectOf(schema, indent);
    default: return schema.properties ? objectOf(schema, indent) : "unknown";
  }
}

function arrayOf({ items }, indent) {
  const item = typeOf(items, indent);
  return / [|&] /.test(item) ? `(${item})[]` : `${item}[]`;
}

function objectOf({ properties = {}, required = [], additionalProperties, patternProperties }, indent) {
  const names = Object.keys(properties);
  const others = patternProperties ? Object.values(patternProperties)[0] : additionalProperties;
  if (names.length === 0) return `Record<string, ${others ? typeOf(others, indent) : "unknown"}>`;
  const inner = `${indent}  `;
  const lines = names.flatMap((name) => {
    const optional = required.includes(name) ? "" : "?";
    return [...comment(properties[name].description, inner), `${inner}${key(name)}${optional}: ${typeOf(properties[name], inner)};`];
  });
  return `{\n${lines.join("\n")}\n${indent}}`;
}

const comment = (text, indent) => (text ? [`${indent}/** ${text.replace(/\s+/g, " ").replaceAll("*/", "* /")} */`] : []);

async function types() {
  const { components } = JSON.parse(await readFile(description, "utf8"));
  const shapes = Object.keys(components.schemas).sort().map((name) => {
    const schema = components.schemas[name];
    return [...comment(schema.description, ""), `export type ${name} = ${typeOf(schema, "")};`].join("\n");
  });
  const head = "// The shapes of the API, written by web/types.mjs from docs/schema/openapi.json. Do not edit.";
  return `${head}\n\n${shapes.join("\n\n")}\n`;
}

const text = await types();
if (process.argv.includes("--check")) {
  if ((await readFile(target, "utf8").catch(() => "")) !== text) {
    console.error("error: web/src/lib/openapi.ts is not what docs/schema/openapi.json says\nhint: run `npm run types` in web/");
    process.exit(1);
  }
} else {
  await writeFile(target, text);
}
