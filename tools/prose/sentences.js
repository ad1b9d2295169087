// A rule of textlint: no sentence has more than `max` words.
import { split } from "sentence-splitter";
import { StringSource } from "textlint-util-to-string";

/** Dashes and arrows do not count. */
const words = (sentence) => sentence.split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length;

export default function rule(context, { max }) {
  const { Syntax, RuleError, getSource, report, locator } = context;
  const check = (node) => {
    // A piece of code counts as one word. In tables it does not count: cells list keys.
    const mask = node.type === Syntax.TableCell ? "-" : "x";
    const source = new StringSource(node, {
      replacer: ({ node, maskValue }) => (node.type === Syntax.Code ? maskValue(mask) : undefined),
    });
    // "10 ms." is no title before a name.
    for (const sentence of split(source.toString().replace(/(?<=\d ms)\.(?=\s)/g, "!"))) {
      if (sentence.type !== "Sentence") continue;
      const count = words(sentence.raw);
      if (count <= max) continue;
      const at = source.originalIndexFromIndex(sentence.range[0] + sentence.raw.search(/\S/)) ?? 0;
      const begin = getSource(node).slice(at).replace(/\]\([^)]*\)/g, "").split(/\s+/).slice(0, 8).join(" ");
      report(node, new RuleError(`${count} words in a sentence, of at most ${max}: "${begin} …"`, { padding: locator.at(at) }));
    }
  };
  return { [Syntax.Paragraph]: check, [Syntax.Header]: check, [Syntax.TableCell]: check };
}
