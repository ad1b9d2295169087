// A plugin of textlint that reads xoff's expected messages: tables of wrong scenarios (.toml),
// snapshots (.snap) and plain text (.txt). Lines that xoff wrapped become one paragraph again.

const WIDTH = 100; // xoff wraps there

/** The pieces [begin, end) of a text that are lines from `from` on, wrapped ones joined. */
function paragraphs(text, from, to) {
  const found = [];
  let open = null;
  for (let begin = from; begin < to; ) {
    const newline = text.indexOf("\n", begin);
    const end = newline < 0 || newline > to ? to : newline;
    const line = text.slice(begin, end);
    const first = line.trimStart().split(" ")[0];
    // `name: text` begins a new line of a list; two spaces within a line part the columns of a table.
    const labelled = /^\s+[a-z]+: /.test(line);
    const table = /\S {2,}\S/.test(line);
    const wrapped = open && !table && !labelled && !open.table && first && open.width <= WIDTH && open.width + 1 + first.length > WIDTH;
    if (wrapped) open.end = end;
    else if (first) found.push((open = { begin, end }));
    else open = null;
    if (open) Object.assign(open, { width: line.length, table });
    begin = end + 1;
  }
  return found.map(({ begin, end }) => [begin + text.slice(begin, end).search(/\S/), end]);
}

/** The last line of an error is the whole of it: file, place and key; message; remedy in parentheses. */
function oneLine(text, from, to) {
  const end = from + text.slice(from, to).trimEnd().length;
  const place = /^\S+\.\w+(?::\d+)*: /.exec(text.slice(text.lastIndexOf("\n", end - 1) + 1, end));
  const begin = text.lastIndexOf("\n", end - 1) + 1 + (place ? place[0].length : 0);
  let depth = 0;
  for (let at = end - 1; text[end - 1] === ")" && at > begin; at--) {
    depth += { ")": 1, "(": -1 }[text[at]] ?? 0;
    if (depth === 0) return [[begin, at - 1], [at + 1, end - 1]];
  }
  return [[begin, end]];
}

function pieces(text, path) {
  if (/\.(snap|txt)$/.test(path)) {
    const head = /^---\n[^]*?\n---\n/.exec(text)?.[0].length ?? 0;
    return paragraphs(text, head, text.length);
  }
  return [...text.matchAll(/^(error|description) = '''\n([^]*?)'''$/gm)].flatMap(({ 0: all, 1: key, 2: body, index }) => {
    const from = index + all.indexOf(body, key.length + 7);
    return (key === "error" ? oneLine : paragraphs)(text, from, from + body.length);
  });
}

/** A document of plain paragraphs. */
function parse(text, path) {
  const lines = [0];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines.push(at + 1);
  const place = (at) => {
    const line = lines.findLastIndex((begin) => begin <= at);
    return { line: line + 1, column: at - lines[line] };
  };
  const node = (type, [begin, end], more) => ({
    type, raw: text.slice(begin, end), range: [begin, end], loc: { start: place(begin), end: place(end) }, ...more,
  });
  const paragraph = (range) => node("Paragraph", range, { children: [node("Str", range, { value: text.slice(...range) })] });
  return node("Document", [0, text.length], { children: pieces(text, path).filter(([b, e]) => b < e).map(paragraph) });
}

export class Processor {
  availableExtensions() {
    return [".toml", ".snap", ".txt"];
  }

  processor() {
    return {
      preProcess: parse,
      postProcess: (messages, filePath) => ({ messages, filePath }),
    };
  }
}
