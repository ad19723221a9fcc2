// The author's name for saving, remembered so that it is typed once.

const KEY = "proem.author";

class Author {
  name = $state(stored());

  keep(): void {
    try {
      localStorage.setItem(KEY, this.name.trim());
    } catch {
      // Then it is typed again.
    }
  }
}

function stored(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

export const author = new Author();
