// One script and one style sheet, the same bytes on every machine, and the licences of the
// libraries in them: what crates/results/src/report embeds.
import { readFileSync, readdirSync } from "node:fs";
import { defineConfig } from "vite";

/** NOTICE.txt: name, version and licence of every library of which something is in the bundle. */
function notice() {
  return {
    name: "notice",
    generateBundle(_, bundle) {
      const used = new Set();
      for (const chunk of Object.values(bundle)) {
        for (const [id, module] of Object.entries(chunk.modules ?? {})) {
          const name = id.match(/node_modules\/((?:@[^/]+\/)?[^/]+)\//)?.[1];
          if (name && module.renderedLength > 0) used.add(name);
        }
      }
      const terms = [...used].sort().map((name) => {
        const folder = `node_modules/${name}`;
        const { version, license } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
        const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
        if (!file) throw new Error(`${name} has no licence file`);
        const text = readFileSync(`${folder}/${file}`, "utf8").trim().replace(/\r/g, "");
        return `${name} ${version} (${license})\n\n${text}\n`;
      });
      const head = "The page draws with these libraries, which come under the terms below.\n\n";
      this.emitFile({ type: "asset", fileName: "NOTICE.txt", source: head + terms.join(`\n${"=".repeat(72)}\n\n`) });
    },
  };
}

export default defineConfig({
  plugins: [notice()],
  // Nothing is copied beside them.
  publicDir: false,
  build: {
    target: "es2021",
    outDir: process.env.VIEWER_OUT ?? "../crates/results/src/report",
    emptyOutDir: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "xoffReport", cssFileName: "viewer", fileName: () => "viewer.js" },
  },
  // Comments of libraries are in NOTICE.txt.
  esbuild: { legalComments: "none", charset: "ascii" },
});
