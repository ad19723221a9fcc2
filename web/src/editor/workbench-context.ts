// The workbench for every part of the editor, without handing it down by hand.

import { createContext } from "svelte";
import type { Workbench } from "./workbench.svelte.ts";

export const [theWorkbench, shareWorkbench] = createContext<Workbench>();
