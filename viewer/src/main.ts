// Draws the page from the document that is in it.

import "./style.css";
import type { PageDocument } from "./document";
import { grid } from "./grid";
import { run } from "./run";

const source = document.getElementById("document");
const page = document.getElementById("page");
if (source && page) {
  const data = JSON.parse(source.textContent ?? "") as PageDocument;
  page.append(...(data.kind === "grid" ? grid(data) : run(data)));
  // Paper shows the parts that a screen folds, except long tables.
  window.addEventListener("beforeprint", () => {
    for (const details of page.querySelectorAll<HTMLDetailsElement>("details[data-print]")) details.open = true;
  });
}
