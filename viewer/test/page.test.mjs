// The pages that xoff report writes, in headless Chromium.
//
// XOFF is the binary, PAGES a folder for runs. Every page is opened from disk; each message on
// its console, and each request that is not for the page itself, fails the test. The text of the
// pages stays in PAGES as .txt, for the linter.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { after, before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

const xoff = resolve(process.env.XOFF ?? "../target/debug/xoff");
const pages = resolve(process.env.PAGES ?? "../target/viewer-pages");
const example = (name) => resolve("../examples", `${name}.toml`);
const set = (...keys) => keys.flatMap((key) => ["--set", key]);

const RUNS = {
  deadlock: ["bcube-deadlock", ...set("measure.explain=true", "measure.blocking=true")],
  plain: ["bcube-deadlock"],
  victims: ["victims", ...set("measure.blocking=true", 'measure.ports="all"')],
  large: ["leaf-spine", ...set("run.duration=200us", "flow_control.xoff=20kB", "flow_control.xon=15kB", "measure.explain=true", "measure.blocking=true")],
  zeropod: ["zeropod", ...set("run.duration=500us", "run.drain=2ms")],
  ring: ["all-reduce-loop", ...set("flow_control.scheme=pfc")],
  empty: ["victims", ...set("run.duration=1ns", "run.drain=0ns")],
  grid: ["victims", ...set("run.duration=100us", "measure.explain=false"), "--vary", "flow_control.scheme=pfc,none", "--vary", "traffic.0.load=0.1,0.2,0.3", "--seeds", "1..2", "--jobs", "1"],
};

let browser;

before(async () => {
  rmSync(pages, { recursive: true, force: true });
  mkdirSync(pages, { recursive: true });
  for (const [name, [scenario, ...args]] of Object.entries(RUNS)) {
    const out = resolve(pages, name);
    execFileSync(xoff, ["run", example(scenario), "--quiet", "--out", out, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    execFileSync(xoff, ["report", out], { stdio: ["ignore", "ignore", "pipe"] });
  }
  const executablePath = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find((path) => path && existsSync(path));
  assert.ok(executablePath, "Chromium is needed: apt-get install chromium, or name it in CHROMIUM");
  const quiet = ["--no-first-run", "--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update", "--disable-sync"];
  // As root, as in containers, Chromium runs without its sandbox only.
  browser = await chromium.launch({ executablePath, args: process.getuid?.() === 0 ? ["--no-sandbox", ...quiet] : quiet });
});

after(() => browser?.close());

/** Opens a page, lets `look` at it, and sees that nothing went wrong. */
async function open(name, options, look) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const url = pathToFileURL(resolve(pages, name, "report.html")).href;
  const wrong = [];
  page.on("console", (message) => wrong.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => wrong.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== url && !request.url().startsWith("data:")) wrong.push(`request: ${request.url()}`);
  });
  await page.goto(url);
  await look(page);
  assert.deepEqual(wrong, [], name);
  await context.close();
}

/** Keeps text of a page for the linter. */
const keep = (name, text) => appendFileSync(resolve(pages, `${name}.txt`), `${text}\n`);

const picture = (page) => page.locator("#fabric-drawing").evaluate((svg) => svg.innerHTML);

for (const name of Object.keys(RUNS)) {
  test(`${name}: opens from disk in any size and scheme, and is named throughout`, async () => {
    for (const options of [{}, { colorScheme: "dark" }, { viewport: { width: 400, height: 800 } }]) {
      await open(name, options, async (page) => {
        assert.ok((await page.locator(".headline").innerText()).length > 20);
        if (Object.keys(options).length === 0) keep(name, await page.locator("#page").innerText());
        const found = await page.evaluate(() => {
          const ids = [...document.querySelectorAll("[id]")].map((element) => element.id);
          const nameless = [...document.querySelectorAll("button, select, input, svg[role], [role=region]")].filter(
            (element) => !(element.textContent?.trim() || element.getAttribute("aria-label") || element.closest("label")),
          );
          return {
            twice: ids.filter((id, i) => ids.indexOf(id) !== i),
            nameless: nameless.map((element) => element.outerHTML.slice(0, 80)),
            wide: document.documentElement.scrollWidth - window.innerWidth,
            untold: [...document.querySelectorAll("figure > svg")].filter((svg) => !svg.parentElement.querySelector("table")).length,
            odd: /\b(undefined|NaN|Infinity|null)\b/.exec(document.getElementById("page").innerText)?.[0] ?? null,
          };
        });
        assert.deepEqual(found, { twice: [], nameless: [], wide: Math.min(found.wide, 0), untold: 0, odd: null });
      });
    }
  });
}

test("the slider moves, and the picture with it", async () => {
  await open("deadlock", {}, async (page) => {
    const before = await picture(page);
    const clock = await page.locator("#clock").innerText();
    await page.locator("#time").fill("20");
    assert.notEqual(await picture(page), before);
    assert.notEqual(await page.locator("#clock").innerText(), clock);
    assert.match(await page.locator("#now").innerText(), /1 ms to 1.05 ms: \d+ of 64 ports are paused\. Congested: /);
    // Before it closes there is no deadlock, then its eight ports are numbered.
    const cycle = page.locator("#fabric-drawing .cycle text");
    assert.equal(await cycle.first().isVisible(), false);
    await page.getByRole("button", { name: "Deadlock" }).click();
    assert.equal(await cycle.first().isVisible(), true);
    assert.equal(await cycle.count(), 8);
    assert.match(await page.locator("#now").innerText(), /The fabric is in deadlock/);
    keep("stories", await page.locator("#now").innerText());
  });
});

test("it plays to the end, and stops when one says so", async () => {
  await open("victims", {}, async (page) => {
    await page.getByRole("button", { name: "Start" }).click();
    const time = () => page.locator("#time").inputValue().then(Number);
    await page.locator("#play").click();
    await page.waitForFunction(() => Number(document.getElementById("time").value) > 5);
    await page.locator("#play").click();
    const stopped = await time();
    await page.waitForTimeout(300);
    assert.equal(await time(), stopped);
    await page.locator("#time").fill("197");
    await page.locator("#play").click();
    await page.waitForFunction(() => document.getElementById("play").getAttribute("aria-pressed") === "false");
    assert.equal(await time(), 199);
  });
});

test("a click on a port, a device or a flow opens its story", async () => {
  await open("deadlock", {}, async (page) => {
    const port = page.locator("#fabric-drawing [aria-label='S0.0:3 -> H3']");
    await port.dispatchEvent("click");
    keep("stories", await page.locator("#story").innerText());
    assert.equal(await page.locator("#story h3").innerText(), "Port S0.0:3 -> H3");
    assert.match(await page.locator("#story").innerText(), /blocked 712 victims/);
    assert.match(await page.locator("#story").innerText(), /number 8 of 8: it holds 235 kB and waits for H3:1/);
    // Where one sees it, not only by its name in the document.
    await page.locator("#fabric-drawing .host circle").first().click();
    assert.equal(await page.locator("#story h3").innerText(), "Host H0");
    const { x, y } = await port.evaluate((path) => {
      const middle = path.getPointAtLength(path.getTotalLength() * 0.8).matrixTransform(path.getScreenCTM());
      return { x: middle.x, y: middle.y };
    });
    await page.mouse.click(x, y);
    assert.equal(await page.locator("#story h3").innerText(), "Port S0.0:3 -> H3");
    await page.locator("#worst").getByRole("button", { name: /^27 H0 -> H4/ }).first().click();
    assert.equal(await page.locator("#story h3").innerText(), "Flow 27");
    keep("stories", await page.locator("#story").innerText());
    assert.match(await page.locator("#story").innerText(), /in queues that were paused because of/);
  });
  // Without measure.explain the row alone is told, and how to know more.
  await open("plain", {}, async (page) => {
    await page.locator("#flows").getByRole("button").first().click();
    assert.match(await page.locator("#story").innerText(), /slowdown[\s\S]*measure\.explain = true/);
  });
});

test("the tree of one congested port stands out", async () => {
  await open("deadlock", {}, async (page) => {
    const all = await page.locator("#fabric-drawing .root").count();
    await page.locator("#tree").selectOption({ label: "pauses caused by S0.0:3 -> H3" });
    assert.ok(all > 1);
    assert.equal(await page.locator("#fabric-drawing .root").count(), 1);
    const dimmed = await page.locator("#fabric-drawing .port").evaluateAll((ports) => ports.filter((port) => port.style.opacity !== "").length);
    assert.equal(dimmed, 64 - 21);
  });
});

test("the keyboard alone does all of it", async () => {
  await open("deadlock", {}, async (page) => {
    const focused = () => page.evaluate(() => document.activeElement?.id ?? "");
    const reach = async (id) => {
      for (let i = 0; i < 200 && (await focused()) !== id; i += 1) await page.keyboard.press("Tab");
      assert.equal(await focused(), id);
    };
    await reach("play");
    assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), "none");
    await reach("time");
    const before = await picture(page);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await picture(page), before);
    await reach("fabric-drawing");
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const chosen = await page.locator("#fabric-drawing .chosen").getAttribute("aria-label");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator("#story h3").innerText(), `Port ${chosen}`);
    // From a row of a table to its story, and back.
    const row = page.locator("#worst button").first();
    const isRow = () => row.evaluate((button) => button === document.activeElement);
    for (let i = 0; i < 200 && !(await isRow()); i += 1) await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    assert.equal(await focused(), "story");
    assert.match(await page.locator("#story h3").innerText(), /^Flow 27/);
    await page.getByRole("button", { name: "Back to the previous place" }).focus();
    await page.keyboard.press("Enter");
    assert.ok(await isRow());
  });
});

test("flows are found and ordered", async () => {
  await open("victims", {}, async (page) => {
    const rows = page.locator("#flows tbody tr");
    assert.equal(await rows.count(), 50);
    await page.locator("#flow-filter").fill("31");
    assert.equal(await rows.count(), 1);
    assert.match(await rows.first().innerText(), /^31 H0 -> H4 \(mice\)/);
    await page.locator("#flow-filter").fill("incast");
    await page.locator("#flow-order").selectOption("id");
    assert.equal(await rows.count(), 36);
    await page.locator("#flow-filter").fill("nobody");
    assert.equal(await rows.count(), 0);
  });
});

test("a grid has its points, and charts along each axis", async () => {
  await open("grid", {}, async (page) => {
    assert.equal(await page.locator("#points tbody tr").count(), 6);
    assert.equal(await page.locator("#runs tbody tr").count(), 12);
    const charts = page.locator("#measures figure > svg");
    assert.ok((await charts.count()) >= 5);
    assert.equal(await page.locator("#measures .legend").first().locator("li").count(), 2);
    await page.locator("#along").selectOption({ label: "flow_control.scheme" });
    assert.equal(await page.locator("#measures .legend").first().locator("li").count(), 3);
  });
});

test("on paper there are no controls, and all of the drawing", async () => {
  await open("large", {}, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.locator("#play").isVisible(), false);
    assert.equal(await page.locator("#fabric-drawing").isVisible(), true);
    const pdf = await page.pdf({ format: "A4" });
    assert.ok(pdf.length > 20_000);
  });
});

test("without scripts the first sentences are there", async () => {
  await open("deadlock", { javaScriptEnabled: false }, async (page) => {
    assert.match(await page.locator("#page").innerText(), /DEADLOCK: at 2\.151 ms/);
    assert.match(await page.locator("#page").innerText(), /need JavaScript/);
  });
});
