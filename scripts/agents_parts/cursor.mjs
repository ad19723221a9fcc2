// Starts one turn of Cursor's agent in the working directory. The first argument is the folder of the SDK.
import { createRequire } from "node:module";

const { Agent } = createRequire(`${process.argv[2]}/package.json`)("@cursor/sdk");
const agent = await Agent.create({
  apiKey: "none",
  model: { id: "stub-model" },
  local: { cwd: process.cwd(), settingSources: ["project", "user"] },
});
const run = await agent.send("hello");
await run.wait?.();
