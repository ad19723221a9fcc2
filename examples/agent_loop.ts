// An agent loop on proem's HTTP API. Start `proem serve` in this directory, then run this file with `node`.
import { strict as assert } from "node:assert";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";

type Message = { role: string; content: unknown };
const url = process.env.PROEM_URL ?? "http://127.0.0.1:7717";
const name = `example-${crypto.randomUUID()}`;

async function post(path: string, body?: object): Promise<any> {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(`${url}/conversations/${name}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// Stands in for a provider: call yours here.
function model(system: string, messages: Message[]): string {
  return `This answers ${messages.length} messages and a system prompt of ${system.length} characters.`;
}

const cwd = resolve(mkdtempSync("example-"));
const instruct = (text: string) => writeFileSync(`${cwd}/AGENTS.md`, text);
try {
  instruct("Answer in English.\n");
  let history: Message[] = [];
  const digests: string[] = [];
  for (let turn = 0; turn < 6; turn++) {
    // The first turn builds the prompt and freezes it; later ones get the same bytes.
    const answer = await post("turn", { cwd, messages: history, prompt: `Question ${turn}`, provider: "anthropic" });
    digests.push(answer.digest);
    const reply = model(answer.carriers.system, answer.payload.messages);
    history = [...answer.messages, { role: "assistant", content: reply }]; // What was sent stays as it was sent.
    instruct("Answer in German.\n"); // Somebody edits a file: it waits until the cache is lost anyway.
    if (turn === 2) {
      // The history is long enough: let the model sum it up, then begin again with the summary.
      const begun = await post("compaction");
      const summary = model(begun.carriers.system, [...history, { role: "user", content: begun.instructions }]);
      await post(`compaction/${begun.token}/commit`);
      history = [{ role: "user", content: summary }, { role: "assistant", content: "I go on from there." }];
    }
  }
  const [first, second] = [new Set(digests.slice(0, 3)), new Set(digests.slice(3))];
  assert.equal(first.size + second.size, 2, "the prompt changed between turns");
  assert.notEqual(digests[2], digests[3], "the compaction did not pick up the edited file");
  console.log(`6 turns, 2 epochs: ${digests[0].slice(0, 12)} three times, then ${digests[3].slice(0, 12)} three times`);
} finally {
  rmSync(cwd, { recursive: true });
}
