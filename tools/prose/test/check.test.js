// The linter finds what it should, where it is, and nothing else.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const HERE = fileURLToPath(new URL(".", import.meta.url));

/** Status and findings of the check of a file: place, severity and rule of each. */
function check(file, ...options) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["../check.js", ...options, file], { cwd: HERE, encoding: "utf8" });
  assert.equal(stderr, "");
  const lines = stdout.trimEnd().split("\n").map((line) => line.replace("tools/prose/test/", ""));
  assert.match(lines.pop(), /^prose: \d+ errors?/);
  return { status, found: lines };
}

test("a page", () => {
  const { status, found } = check("bad.md");
  assert.equal(status, 1);
  assert.deepEqual(found, [
    "bad.md:3:4: error: innocent => victim (terms)",
    "bad.md:3:41: error: its way => its path (terms)",
    "bad.md:3:65: error: circle => cycle (terms)",
    "bad.md:7:17: error: send it again => retransmit (terms)",
    'bad.md:9:3: error: 38 words in a sentence, of at most 35: "This sentence is much longer than a sentence …" (sentences)',
  ]);
});

test("code, and a plain page", () => {
  assert.deepEqual(check("good.md"), { status: 0, found: [] });
});

test("the one-line form of an error", () => {
  const { status, found } = check("bad.toml");
  assert.equal(status, 1);
  assert.deepEqual(found, [
    'bad.toml:11:36: error: is not known here => is unknown; Begin with "unknown", and name the alternatives. (terms)',
    "bad.toml:11:64: error: are the most => is the maximum (terms)",
  ]);
});

test("a phrase that xoff wrapped", () => {
  const { status, found } = check("bad.snap");
  assert.equal(status, 1);
  assert.deepEqual(found, [
    "bad.snap:5:28: error: for good => permanently (terms)",
    "bad.snap:7:52: error: lead through => cross (terms)",
    "bad.snap:7:85: error: had too little time => was still running when the simulation ended (terms)",
  ]);
});

test("warnings do not fail, and are listed on demand", () => {
  const { status, found } = check("good.md", "--warnings");
  assert.equal(status, 0);
  assert.deepEqual(found, []);
  assert.ok(check("bad.md", "--warnings").found.some((line) => line.endsWith("(passive)")));
});
