// An agent loop on proem's HTTP API. Start `proem serve` in a project, then run this file there: with Node 22.18 or later as
// `node agent_loop.mts`, with Node 20 as `npx tsx agent_loop.mts`.
type Message = { role: string; content: unknown };
const url = `${process.env.PROEM_URL ?? "http://127.0.0.1:7717"}/conversations/example-${crypto.randomUUID()}`;

async function post(path: string, body?: object): Promise<any> {
  const headers = { "Content-Type": "application/json" };
  const answer = await fetch(`${url}/${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return answer.json();
}

// Stands in for a provider: call yours here.
const model = (system: string, messages: Message[]) => `An answer to ${messages.length} messages behind ${system.length} characters.`;

let history: Message[] = [];
for (let turn = 0; turn < 6; turn++) {
  const answer = await post("turn", { messages: history, prompt: `Question ${turn}`, provider: "anthropic" });
  console.log(answer.epoch, answer.reason, answer.digest); // The same bytes, whatever happens to files meanwhile.
  const reply = model(answer.system_prompt, answer.payload.messages);
  history = [...answer.history, { role: "assistant", content: reply }]; // What was sent stays as it was sent.
  if (turn !== 2) continue; // Long enough then: the model sums it up, and the next prompt is built from what is there.
  const begun = await post("compaction");
  const summary = model(begun.carriers.system, [...history, { role: "user", content: begun.instructions }]);
  await post(`compaction/${begun.token}/commit`);
  history = [{ role: "user", content: summary }, { role: "assistant", content: "I go on from there." }];
}
