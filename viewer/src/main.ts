// Draws the page from the document that is in it.

import "./style.css";
import type { PageDocument } from "./document";
import { grid } from "./grid";
import { pair } from "./pair";
import { run } from "./run";

const source = document.getElementById("document");
const page = document.getElementById("page");
if (source && page) {
  const data = JSON.parse(source.textContent ?? "") as PageDocument;
  const headline = page.querySelector(".headline");
  page.append(...(data.kind === "grid" ? grid(data) : data.kind === "pair" ? pair(data) : run(data)));
  // The banner is first; all sentences are with all results.
  const results = document.getElementById("what-title");
  if (headline && results) results.after(headline);
  // Paper shows the parts that a screen folds, except long tables.
  window.addEventListener("beforeprint", () => {
    for (const details of page.querySelectorAll<HTMLDetailsElement>("details[data-print]")) details.open = true;
  });
}
