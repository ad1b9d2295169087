// Elements in one expression.

type Child = Node | string | null;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Record<string, string> = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function s<K extends keyof SVGElementTagNameMap>(
  tag: K,
  attributes: Record<string, string | number> = {},
  ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children.filter((child) => child !== null));
  return element;
}

export type Cell = string | Node;

/** A table whose first column names its rows; columns of numbers are flush right. */
export function table(caption: string, heads: string[], rows: Cell[][], left: number[] = []): HTMLElement {
  const align = (column: number) => (column === 0 || left.includes(column) ? {} : { class: "number" });
  const head = h("tr", {}, ...heads.map((text, i) => h("th", { scope: "col", ...align(i) }, text)));
  const body = rows.map((cells) =>
    h("tr", {}, ...cells.map((cell, i) => (i === 0 ? h("th", { scope: "row" }, cell) : h("td", align(i), cell)))),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {}, h("caption", {}, caption), h("thead", {}, head), h("tbody", {}, ...body)),
  );
}

/** A section of the page with its heading. */
export function section(id: string, title: string, ...children: Child[]): HTMLElement {
  return h("section", { id, "aria-labelledby": `${id}-title` }, h("h2", { id: `${id}-title` }, title), ...children);
}

/** What is there for those who want it. */
export function more(summary: string, ...children: Child[]): HTMLElement {
  return h("details", {}, h("summary", {}, summary), ...children);
}
