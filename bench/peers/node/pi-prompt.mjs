// P5: an extension for pi. It prints the system prompt that pi is about to send, and ends the process.
import { writeSync } from "node:fs";

export default function (pi) {
  pi.on("before_agent_start", (event) => {
    // pi turns its own standard output into standard error.
    writeSync(1, event.systemPrompt);
    process.exit(0);
  });
}
