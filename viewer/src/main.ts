// Draws the page from the document that is in it.

import "./style.css";
import type { PageDocument } from "./document";
import { grid } from "./grid";
import { pair } from "./pair";
import { papers } from "./papers";
import { run } from "./run";

function draw(data: PageDocument): Node[] {
  switch (data.kind) {
    case "run":
      return run(data);
    case "pair":
      return pair(data);
    case "grid":
      return grid(data);
    case "papers":
      return papers(data);
  }
}

const source = document.getElementById("document");
const page = document.getElementById("page");
if (source && page) {
  const data = JSON.parse(source.textContent ?? "") as PageDocument;
  const headline = page.querySelector(".headline");
  page.append(...draw(data));
  // The banner is first; all sentences are with all results.
  const results = document.getElementById("what-title");
  if (headline && results) results.after(headline);
}
