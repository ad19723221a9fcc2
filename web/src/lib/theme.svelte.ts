// Light, dark, or the system's choice. The choice is the only setting that the browser keeps.

export type Theme = "auto" | "light" | "dark";
const KEY = "proem.theme";

class ThemeChoice {
  #choice = $state<Theme>(stored());

  constructor() {
    this.#apply();
  }

  get current(): Theme {
    return this.#choice;
  }

  set current(theme: Theme) {
    this.#choice = theme;
    this.#apply();
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // A browser that keeps nothing still shows the right colours until it is closed.
    }
  }

  #apply() {
    if (this.#choice === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.#choice;
  }
}

function stored(): Theme {
  try {
    const theme = localStorage.getItem(KEY);
    return theme === "light" || theme === "dark" ? theme : "auto";
  } catch {
    return "auto";
  }
}

export const theme = new ThemeChoice();
