// The page of a reproduction: the claims of all papers as a matrix of verdicts, and what is behind each.

import type { PaperClaim, PaperExperiment, PapersDocument } from "./document";
import { h, more, section, table, type Cell } from "./dom";
import * as format from "./format";
import { contents } from "./run";

/** The letter and the class of a verdict; each can be told without its colour. */
const MARKS: Record<string, [string, string]> = {
  reproduced: ["✓", "good"],
  "same direction": ["~", "near"],
  undecided: ["?", "open"],
  contradicted: ["✗", "bad"],
  "by analysis": ["A", "read"],
  "not simulated": ["–", "none"],
  "not yet": ["…", "none"],
};

export function papers(doc: PapersDocument): Node[] {
  const { site } = doc;
  const place = h("div", { id: "experiment", tabindex: "-1", "aria-live": "polite" });
  const all: [PaperExperiment | null, PaperClaim][] = [
    ...site.experiments.flatMap((one) => one.claims.map((claim): [PaperExperiment, PaperClaim] => [one, claim])),
    ...site.others.map((claim): [null, PaperClaim] => [null, claim]),
  ];
  const open = (one: PaperExperiment, claim?: PaperClaim) => {
    place.replaceChildren(...experiment(one, claim));
    history.replaceState(null, "", `#experiment=${one.paper}/${one.id}${claim ? `&claim=${claim.id}` : ""}`);
    place.focus({ preventScroll: true });
    place.scrollIntoView({ block: "start" });
  };
  const sections = [
    section("scoreboard", "Scoreboard", counts(doc, all)),
    section("claims", "All claims", matrix(doc, all, open)),
    section("details", "The experiment", place),
    section("papers", "The papers", ...site.papers.flatMap((paper) => [h("h3", {}, `${paper.name}: ${paper.title}`), prose(paper.summary)])),
  ];
  place.append(h("p", { class: "none" }, "Choose a claim above."));
  const follow = () => {
    const link = new Map(decodeURIComponent(location.hash.slice(1)).split("&").map((part) => part.split("=") as [string, string]));
    const one = site.experiments.find((it) => `${it.paper}/${it.id}` === link.get("experiment"));
    if (one) open(one, one.claims.find((claim) => claim.id === link.get("claim")));
  };
  queueMicrotask(follow);
  window.addEventListener("hashchange", follow);
  return [contents(sections), ...sections];
}

function mark(verdict: string): HTMLElement {
  const [letter, kind] = MARKS[verdict] ?? ["?", "none"];
  return h("span", { class: `mark ${kind}` }, letter);
}

/** Numbers of claims by paper and verdict: the papers' own, strictly counted. */
function counts(doc: PapersDocument, all: [PaperExperiment | null, PaperClaim][]): HTMLElement {
  const { verdicts, papers: list } = doc.site;
  const theirs = all.map(([, claim]) => claim).filter((claim) => !claim.own);
  const row = (name: string, claims: PaperClaim[]): Cell[] => [
    name,
    String(claims.length),
    String(claims.filter((claim) => claim.as_printed).length),
    ...verdicts.map((verdict) => String(claims.filter((claim) => claim.verdict === verdict).length)),
  ];
  const apart = (name: string, other: boolean): Cell[][] => {
    const its = list.filter((paper) => paper.other_source === other).map((paper) => [paper.name, theirs.filter((claim) => claim.paper === paper.name)] as const);
    return its.length === 0 ? [] : [...its.map(([paper, claims]) => row(paper, claims)), row(name, its.flatMap(([, claims]) => claims))];
  };
  const rows = [...apart("all papers", false), ...apart("all other sources", true)];
  const legend = h("ul", { class: "legend" }, ...verdicts.map((verdict) => h("li", {}, mark(verdict), ` ${verdict}`)));
  return h("div", {}, legend, table("The papers' claims. As printed: reproduced without a wider range.", ["paper", "claims", "as printed", ...verdicts], rows));
}

/** A square for each claim, by paper and experiment, with a filter. */
function matrix(doc: PapersDocument, all: [PaperExperiment | null, PaperClaim][], open: (one: PaperExperiment, claim?: PaperClaim) => void): HTMLElement {
  const { site } = doc;
  const filter = h("input", { id: "claim-filter", type: "search", placeholder: "words of a claim, or a figure" });
  const paper = h("select", { id: "claim-paper" }, h("option", { value: "" }, "all papers"), ...site.papers.map((one) => h("option", { value: one.name }, one.name)));
  const verdict = h("select", { id: "claim-verdict" }, h("option", { value: "" }, "all verdicts"), ...site.verdicts.map((one) => h("option", { value: one }, one)));
  const own = h("input", { id: "claim-own", type: "checkbox" });
  const told = h("p", { role: "status" });
  const place = h("div", { class: "matrix" });
  const list = h("div", {});
  const fill = () => {
    const words = filter.value.trim().toLowerCase();
    const fits = ([, claim]: [PaperExperiment | null, PaperClaim]) =>
      (paper.value === "" || claim.paper === paper.value) &&
      (verdict.value === "" || claim.verdict === verdict.value) &&
      (own.checked || !claim.own) &&
      (words === "" || `${claim.id} ${claim.statement}`.toLowerCase().includes(words));
    const found = all.filter(fits);
    told.textContent = `${format.counted(found.length, "claim")} of ${format.count(all.length)} shown. A click on a square opens its experiment.`;
    place.replaceChildren(
      ...site.papers.flatMap((one) => {
        const its = found.filter(([, claim]) => claim.paper === one.name);
        if (its.length === 0) return [];
        const experiments = new Map<string, [PaperExperiment | null, PaperClaim][]>();
        for (const entry of its) {
          const id = entry[0]?.id ?? "without an experiment";
          experiments.set(id, [...(experiments.get(id) ?? []), entry]);
        }
        const squares = [...experiments].map(([id, claims]) =>
          h(
            "li",
            {},
            h("span", { class: "label" }, id),
            ...claims.map(([of, claim]) => {
              const square = h("button", { type: "button", class: `square ${MARKS[claim.verdict]?.[1] ?? ""}`, title: `${claim.id}: ${claim.verdict}. ${claim.statement}`, "aria-label": `${claim.id}: ${claim.verdict}` }, MARKS[claim.verdict]?.[0] ?? "?");
              if (of) square.addEventListener("click", () => open(of, claim));
              else square.disabled = true;
              return square;
            }),
          ),
        );
        return [h("h3", {}, one.name), h("ul", {}, ...squares)];
      }),
    );
    // Few enough to be read.
    const rows = found.slice(0, 60).map(([of, claim]): Cell[] => {
      const name = h("button", { type: "button", class: "link" }, claim.id);
      if (of) name.addEventListener("click", () => open(of, claim));
      return [of ? name : claim.id, claim.paper, claim.statement, h("span", {}, mark(claim.verdict), ` ${claim.verdict}`)];
    });
    list.replaceChildren(more(`These claims in words${found.length > 60 ? " (the first 60)" : ""}`, table("Claims", ["claim", "paper", "statement", "verdict"], rows, [1, 2, 3])));
  };
  for (const control of [filter, paper, verdict, own]) control.addEventListener("input", fill);
  fill();
  const controls = h("div", { class: "controls" }, h("label", {}, "Filter ", filter), h("label", {}, "Paper ", paper), h("label", {}, "Verdict ", verdict), h("label", {}, own, " with claims of our own"));
  return h("div", {}, controls, told, place, list);
}

/** Text in which `…` is code. */
function prose(text: string): HTMLElement {
  return h("p", {}, ...text.split("`").map((part, i): Node | string => (i % 2 === 1 ? h("code", {}, part) : part)));
}

/** A folded list of points with their reasons; nothing if there are none. */
function reasons(title: string, all: [string, string][]): HTMLElement | string {
  return all.length === 0 ? "" : more(title, h("ul", {}, ...all.map(([what, why]) => h("li", {}, h("code", {}, what), ` ${why}`))));
}

/** An experiment: figures with the paper's numbers, claims, and what decides those that fail. */
function experiment(one: PaperExperiment, chosen?: PaperClaim): Node[] {
  const seconds = one.seconds === null ? "" : `, ${format.time(one.seconds * 1e12)} on one core`;
  const runs = `${format.counted(one.runs, "run")}${one.done < one.runs ? ` (${one.done} done)` : ""}, ${format.counted(one.seeds, "seed")}${seconds}.`;
  const folder = one.folder === null ? h("p", { class: "hint" }, "The directory of the runs is not beside this page.") : h("p", {}, "Runs: ", h("a", { href: `${one.folder}/` }, one.folder), ". For the page of a run: xoff report DIRECTORY");
  const figures = one.figures.map(([name, svg]) => {
    // As a picture no script in it can run.
    const picture = h("img", { src: `data:image/svg+xml;base64,${btoa(unescape(encodeURIComponent(svg)))}`, alt: `${one.id}: ${name}` });
    return h("figure", { class: "plot" }, h("figcaption", {}, h("strong", {}, name)), picture);
  });
  const claims = one.claims.flatMap((claim) => {
    const is = claim === chosen;
    const rows = claim.measures.map((measure): Cell[] => [measure.which, measure.paper, measure.measured, h("span", {}, mark(measure.verdict), ` ${measure.verdict}`)]);
    return [
      h(
        "div",
        { class: `claim${is ? " chosen" : ""}` },
        h("h4", {}, mark(claim.verdict), ` ${claim.verdict}: `, h("code", {}, claim.id), claim.own ? " (our own claim)" : "", claim.as_printed ? ", as printed" : ""),
        h("p", {}, claim.statement),
        rows.length > 0 ? table("The paper's numbers and the measured ones", ["measure", "paper", "measured", "verdict"], rows, [1, 2, 3]) : null,
        ...claim.remarks.map(prose),
      ),
    ];
  });
  return [
    h("h3", {}, `${one.paper}, ${one.id}: ${one.title}`),
    h("p", {}, `Section ${one.section}. ${runs}`),
    prose(one.note),
    folder,
    ...figures,
    ...claims,
    reasons("Choices where the paper gives no value", one.chosen),
    reasons("Points that have no other value", one.fixed),
  ].map((part) => (typeof part === "string" ? document.createTextNode(part) : part));
}
