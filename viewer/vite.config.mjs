// One script and one style sheet, the same bytes on every machine: what
// crates/results/src/report embeds.
import { defineConfig } from "vite";

export default defineConfig({
  // Nothing is copied beside them.
  publicDir: false,
  build: {
    target: "es2021",
    outDir: process.env.VIEWER_OUT ?? "../crates/results/src/report",
    emptyOutDir: false,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: false,
    lib: { entry: "src/main.ts", formats: ["iife"], name: "xoffReport", cssFileName: "viewer", fileName: () => "viewer.js" },
  },
  // Of the page's text: a tag that ends the script must not be in it.
  esbuild: { legalComments: "none", charset: "ascii" },
});
