// True if the screen is too narrow for panes beside each other.

import { MediaQuery } from "svelte/reactivity";

export const narrowScreen = new MediaQuery("width < 900px", false);
