// What can be compared: the text in the editor, and every stored version.

export const CURRENT = "current";
export type VersionChoice = number | typeof CURRENT;

export const choiceWords = (choice: VersionChoice): string => (choice === CURRENT ? "Text in the editor" : `Version ${choice}`);
