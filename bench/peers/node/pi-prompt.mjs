// P5: an extension for pi. It prints the system prompt that pi is about to send, and ends the process.
export default function (pi) {
  pi.on("before_agent_start", (event) => {
    process.stdout.write(event.systemPrompt, () => process.exit(0));
  });
}
