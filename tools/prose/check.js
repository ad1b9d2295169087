// Checks what xoff says: pages of Markdown, and the messages that tests expect.
//
//   node tools/prose/check.js [--warnings] [FILE…]
//
// Errors end it with status 1. Warnings are listed on demand only.
import { readFileSync, readdirSync } from "node:fs";
import { dirname, extname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { TextlintKernel } from "@textlint/kernel";
import markdown from "@textlint/textlint-plugin-markdown";
import prh from "textlint-rule-prh";
import writeGood from "textlint-rule-write-good";
import * as messages from "./messages.js";
import sentences from "./sentences.js";

const HERE = dirname(fileURLToPath(import.meta.url));
const ROOT = resolve(HERE, "../..");

/** "error", "warning" or "off", for each rule: in pages, in messages, and in the guide, which
 * quotes bad examples. */
const SEVERITY = {
  terms: { pages: "error", messages: "error", guide: "off" },
  sentences: { pages: "error", messages: "error", guide: "error" },
  suspects: { pages: "warning", messages: "warning", guide: "off" },
  passive: { pages: "warning", messages: "warning", guide: "warning" },
};
const GUIDE = "docs/WRITING.md";
const MAX_WORDS = 35;

/** What is checked. Programs write REFERENCE.md, REPRODUCTION.md and the pages of its papers. */
const PAGES = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", ...below("docs", ".md"), ...below("examples", ".md")]
  .filter((page) => !/REFERENCE|REPRODUCTION|docs\/reproduction/.test(page));
const MESSAGES = ["crates/plan/tests/examples.toml", "crates/cli/tests/help.txt", ...below("crates/plan/tests/wrong", ".toml"), ...below("crates", ".snap")]
  .filter((file) => !/fragments\.toml$|\/files\/|_json\.snap$/.test(file));

/** The files below a folder with this ending, in order, by their path from the root. */
function below(folder, ending) {
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => !["target", "node_modules"].includes(entry.name))
    .flatMap((entry) => {
      const path = `${folder}/${entry.name}`;
      return entry.isDirectory() ? below(path, ending) : path.endsWith(ending) ? [path] : [];
    })
    .sort();
}

/** A finding on one line: a phrase that was wrapped, and the note of its term. */
const oneLine = (message) => message.replace(/\s*\n\s*/g, (_, at) => (message.includes(" => ", at) ? " " : "; "));
const module = (imported) => imported.default ?? imported;
const words = (file) => ({ ruleContents: [readFileSync(join(HERE, file), "utf8")], checkLink: true, checkEmphasis: true, checkBlockQuote: true });
const only = (...on) => Object.fromEntries(
  ["passive", "illusion", "so", "thereIs", "weasel", "adverb", "tooWordy", "cliches", "eprime"].map((check) => [check, on.includes(check)]));
const RULES = [
  { ruleId: "terms", rule: module(prh), options: words("terms.yml") },
  { ruleId: "suspects", rule: module(prh), options: words("suspects.yml") },
  { ruleId: "sentences", rule: sentences, options: { max: MAX_WORDS } },
  { ruleId: "passive", rule: module(writeGood), options: only("passive") },
];
const PLUGINS = [
  { pluginId: "markdown", plugin: module(markdown) },
  { pluginId: "messages", plugin: messages },
];

async function main() {
  const options = process.argv.slice(2).filter((arg) => arg.startsWith("--"));
  const named = process.argv.slice(2).filter((arg) => !arg.startsWith("--"));
  const unknown = options.find((option) => option !== "--warnings");
  if (unknown) throw new Error(`unknown option ${unknown}`);
  const files = named.length ? named.map((file) => relative(ROOT, resolve(file))) : [...PAGES, ...MESSAGES];
  const kernel = new TextlintKernel({ quiet: false });
  const counts = {};
  for (const path of files) {
    const kind = path === GUIDE ? "guide" : extname(path) === ".md" ? "pages" : "messages";
    const rules = RULES.filter(({ ruleId }) => SEVERITY[ruleId][kind] !== "off");
    const { messages: found } = await kernel.lintText(readFileSync(join(ROOT, path), "utf8"), {
      ext: extname(path), filePath: join(ROOT, path), rules, plugins: PLUGINS,
    });
    for (const { ruleId, message, line, column } of found) {
      const severity = SEVERITY[ruleId]?.[kind] ?? "error";
      const of = (counts[severity] ??= {});
      of[ruleId] = (of[ruleId] ?? 0) + 1;
      if (severity === "error" || options.includes("--warnings")) {
        console.log(`${path}:${line}:${column}: ${severity}: ${oneLine(message)} (${ruleId})`);
      }
    }
  }
  const sum = (severity) => Object.values(counts[severity] ?? {}).reduce((a, b) => a + b, 0);
  const list = (severity) => Object.entries(counts[severity] ?? {}).map(([rule, count]) => `${rule} ${count}`).sort().join(", ");
  const said = (severity) => `${sum(severity)} ${severity}s${sum(severity) ? ` (${list(severity)})` : ""}`;
  console.log(`prose: ${said("error")}, ${said("warning")} in ${files.length} files`);
  process.exitCode = sum("error") ? 1 : 0;
}

await main();
