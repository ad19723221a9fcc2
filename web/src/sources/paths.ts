// Names of sources as people read them.

const KINDS: Record<string, string> = {
  instruction_file: "Instruction file", skill: "Skill", hook: "Hook", tool: "Tool", template: "Template",
  variable: "Value", request: "Request", other: "Other",
};
export const kindSaid = (kind: string): string => KINDS[kind] ?? kind;

/** The reason for an agent's outcome as a colour: it gets the text, a part of it, or nothing. */
export function outcomeTone(outcome: string, word: string): "used" | "cut" | "not" {
  if (word === "cut" || word === "at times" || word === "conditionally") return "cut";
  return outcome === "used" ? "used" : "not";
}
