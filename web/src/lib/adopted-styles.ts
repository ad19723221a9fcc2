// CodeMirror's styles as adopted style sheets. The package puts them into a `<style>` element, and the page's content
// security policy (`style-src 'self'`) refuses those; build.mjs hands this module to CodeMirror instead.

import { StyleModule as PackageStyleModule } from "style-mod";

const sheets = new Map<PackageStyleModule, CSSStyleSheet>();
const mounted: PackageStyleModule[] = [];

function sheetOf(module: PackageStyleModule): CSSStyleSheet {
  let sheet = sheets.get(module);
  if (!sheet) {
    sheet = new CSSStyleSheet();
    sheet.replaceSync(module.getRules());
    sheets.set(module, sheet);
  }
  return sheet;
}

export class StyleModule extends PackageStyleModule {
  // Later modules win over earlier ones, in each list and across calls: what is known keeps its place unless the new
  // list wants it further back.
  static override mount(root: Document | ShadowRoot, modules: PackageStyleModule | readonly PackageStyleModule[]): void {
    let place = 0;
    for (const module of Array.isArray(modules) ? modules : [modules]) {
      let at = mounted.indexOf(module);
      if (at >= 0 && at < place) {
        mounted.splice(at, 1);
        place -= 1;
        at = -1;
      }
      if (at < 0) mounted.splice(place, 0, module);
      place = (at < 0 ? place : at) + 1;
    }
    const wanted = mounted.map(sheetOf);
    const present = root.adoptedStyleSheets;
    if (wanted.length !== present.length || wanted.some((sheet, index) => sheet !== present[index])) {
      root.adoptedStyleSheets = wanted;
    }
  }
}
