// One sentence for people who hear the page instead of seeing it; App.svelte has the region that speaks it.

export const announcement = $state({ text: "" });

export function announce(text: string): void {
  announcement.text = text;
}
