// The pages that xoff report writes, in headless Chromium.
//
// XOFF is the binary, PAGES a folder for runs. Every page is opened from disk; each message on
// its console, and each request that is not for the page itself, fails the test. The text of the
// pages stays in PAGES as .txt, for the linter.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
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
  pods: ["leaf-spine", ...set('topology={kind="fat-tree",k=8,link={rate="100Gbps",delay="1us"}}', "run.duration=100us", "flow_control.xoff=20kB", "flow_control.xon=15kB")],
  zeropod: ["zeropod", ...set("run.duration=500us", "run.drain=2ms")],
  ring: ["all-reduce-loop", ...set("flow_control.scheme=pfc")],
  failed: ["hello", ...set("transport.retries=2", 'loss=[{link="H1-S0.0",rate=1.0}]', "measure.explain=true")],
  empty: ["victims", ...set("run.duration=1ns", "run.drain=0ns")],
  pyrrha: ["victims", ...set('flow_control={scheme="pyrrha"}')],
  training: ["training-step", ...set("measure.explain=true", "traffic.0.hidden=128", "traffic.0.parameters=4_000_000", "traffic.0.expert_parameters=8_000_000")],
  trace: ["trace/overlap", ...set("measure.explain=true", "topology.fabric_link.rate=100Gbps")],
  grid: ["victims", ...set("run.duration=100us", "measure.explain=false"), "--vary", "flow_control.scheme=pfc,none", "--vary", "traffic.0.load=0.1,0.2,0.3", "--seeds", "1..2", "--jobs", "1"],
};

/** Pages that are not of one run: name, and the arguments of `xoff report`. */
const OTHERS = {
  pair: () => [resolve(pages, "victims"), resolve(pages, "pyrrha"), "--out", resolve(pages, "pair/report.html")],
  papers: () => [resolve("../experiments"), "--out", resolve(pages, "papers/report.html")],
};

let browser;

before(async () => {
  rmSync(pages, { recursive: true, force: true });
  mkdirSync(pages, { recursive: true });
  for (const [name, [scenario, ...args]] of Object.entries(RUNS)) {
    const out = resolve(pages, name);
    execFileSync(xoff, ["run", example(scenario), "--quiet", "--out", out, ...args], { stdio: ["ignore", "ignore", "pipe"] });
    execFileSync(xoff, ["report", out, ...(name === "grid" ? ["--pages"] : [])], { stdio: ["ignore", "ignore", "pipe"] });
  }
  for (const [name, args] of Object.entries(OTHERS)) {
    mkdirSync(resolve(pages, name));
    execFileSync(xoff, ["report", ...args()], { stdio: ["ignore", "ignore", "pipe"] });
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

for (const name of [...Object.keys(RUNS), ...Object.keys(OTHERS)]) {
  test(`${name}: opens from disk in any size and scheme, and is named throughout`, async () => {
    for (const options of [{}, { colorScheme: "dark" }, { viewport: { width: 400, height: 800 } }]) {
      await open(name, options, async (page) => {
        assert.ok((await page.locator(".headline").innerText()).length > 20);
        // The texts of claims are those of the experiments' files.
        if (Object.keys(options).length === 0 && name !== "papers") keep(name, await page.locator("#page").innerText());
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
    assert.match(await page.locator("#now").innerText(), /The fabric is in deadlock: the numbers show the cycle\./);
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

test("a flow whose sender gave up is named failed", async () => {
  await open("failed", {}, async (page) => {
    assert.match(await page.locator("#flows").innerText(), /failed after 12 ms/);
    await page.locator("#flows").getByRole("button").first().click();
    assert.match(await page.locator("#story").innerText(), /failed: its sender gave up 12 ms after its start/);
    for (const place of ["#flows table", "#story"]) assert.doesNotMatch(await page.locator(place).first().innerText(), /unfinished/);
  });
});

/** The pixels of a lane. */
const pixels = (page, lane) => page.locator(".lane canvas").nth(lane).evaluate((canvas) => canvas.toDataURL());
const clock = (page) => page.locator("#clock").innerText();

test("the first screen has the verdict, and the fabric at that instant", async () => {
  for (const [name, state, words] of [
    ["deadlock", "DEADLOCK", /Deadlock at 2\.151 ms: 8 ports, 84% of 952 flows unfinished\./],
    ["victims", "VICTIMS", /487 victims waited 45% of the time of all flows for congestion off their path/],
    ["large", "VICTIMS", /27 victims waited 9% of the time of all flows/],
    ["ring", "DEADLOCK", /Deadlock at 43\.89 us: 7 ports, 100% of 7 flows unfinished/],
    ["grid", null, null],
  ]) {
    await open(name, { viewport: { width: 1400, height: 900 } }, async (page) => {
      if (state === null) return assert.equal(await page.locator(".banner").count(), 0);
      assert.match(await page.locator(".banner").innerText(), words);
      assert.equal(await page.locator(".banner .state").innerText(), state);
      const box = await page.locator("#fabric-drawing").boundingBox();
      assert.ok(box.y + Math.min(box.height, 600) <= 900, JSON.stringify(box));
      const player = await page.locator("#play").boundingBox();
      assert.ok(player.y < 900, JSON.stringify(player));
    });
  }
  await open("deadlock", {}, async (page) => {
    assert.equal(await clock(page), "2.151 ms");
    assert.match(await page.locator("#now").innerText(), /in deadlock/);
  });
});

test("all charts over time share their window and instant", async () => {
  await open("victims", { viewport: { width: 1400, height: 900 } }, async (page) => {
    const over = page.locator(".lane .u-over");
    const lanes = await over.count();
    assert.ok(lanes >= 4, `${lanes}`);
    const [map, goodput, last] = [0, 1, lanes - 1];
    // A click moves the instant: slider, picture, and the line in every lane.
    let [time, before, fabric] = [await clock(page), await pixels(page, last), await picture(page)];
    await over.nth(goodput).scrollIntoViewIfNeeded();
    const box = await over.nth(goodput).boundingBox();
    await page.mouse.click(box.x + box.width * 0.8, box.y + 20);
    assert.notEqual(await clock(page), time);
    assert.ok(Math.abs(Number(await page.locator("#time").inputValue()) - 160) <= 1);
    assert.notEqual(await pixels(page, last), before);
    assert.notEqual(await picture(page), fabric);
    // A drag zooms in on all, and a double click shows all again.
    const whole = [await pixels(page, map), await pixels(page, last)];
    await page.mouse.move(box.x + box.width * 0.6, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.9, box.y + 20, { steps: 4 });
    await page.mouse.up();
    const part = [await pixels(page, map), await pixels(page, last)];
    assert.ok(part.every((now, i) => now !== whole[i]));
    // Shift and drag moves the window; the wheel after a click zooms.
    await page.keyboard.down("Shift");
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.7, box.y + 20, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    const moved = await pixels(page, last);
    assert.notEqual(moved, part[1]);
    await page.mouse.click(box.x + box.width * 0.5, box.y + 20);
    const clicked = await pixels(page, last);
    await page.mouse.wheel(0, -240);
    await page.waitForTimeout(50);
    assert.notEqual(await pixels(page, last), clicked);
    await page.mouse.dblclick(box.x + box.width * 0.3, box.y + 20);
    await page.mouse.click(box.x + box.width * 0.8, box.y + 20);
    await page.mouse.move(5, 5);
    await page.waitForTimeout(50);
    assert.equal(await pixels(page, map), whole[0]);
    // Values are those under the pointer.
    const value = () => page.locator(".lane .u-legend").first().innerText();
    await page.mouse.move(box.x + box.width * 0.1, box.y + 20);
    const early = await value();
    await page.mouse.move(box.x + box.width * 0.5, box.y + 20);
    assert.notEqual(await value(), early);
    assert.match(await value(), /[GM]bps/);
    // Other values on the axis.
    const linear = await pixels(page, goodput);
    await page.locator("#scale").selectOption("log");
    assert.notEqual(await pixels(page, goodput), linear);
    // A row of the map is a port.
    await over.nth(map).scrollIntoViewIfNeeded();
    const rows = await over.nth(map).boundingBox();
    await page.mouse.click(rows.x + rows.width * 0.5, rows.y + 5);
    assert.match(await page.locator("#story h3").innerText(), /^Port /);
    assert.match(await clock(page), /ms|us/);
  });
});

test("keys play, step, zoom and go to events", async () => {
  await open("deadlock", {}, async (page) => {
    await page.locator("h1").click();
    const time = () => page.locator("#time").inputValue().then(Number);
    await page.getByRole("button", { name: "Start" }).click();
    await page.locator("h1").click();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    assert.equal(await time(), 2);
    await page.keyboard.press("ArrowLeft");
    assert.equal(await time(), 1);
    const events = [];
    for (let i = 0; i < 3; i += 1) {
      await page.keyboard.press(".");
      events.push(await page.locator(".event").innerText());
    }
    assert.ok(events.some((text) => text.startsWith("Deadlock at 2.151 ms")) || events[0] === "pauses begin", events.join("; "));
    const before = await time();
    await page.keyboard.press(",");
    assert.ok((await time()) < before);
    const whole = await pixels(page, 0);
    await page.keyboard.press("+");
    assert.notEqual(await pixels(page, 0), whole);
    await page.keyboard.press("0");
    assert.equal(await pixels(page, 0), whole);
    await page.keyboard.press(" ");
    await page.waitForFunction((from) => Number(document.getElementById("time").value) > from + 3, await time());
    await page.keyboard.press(" ");
    assert.equal(await page.locator("#play").getAttribute("aria-pressed"), "false");
  });
});

test("a flow has its bars, its path is lit, and a link leads to it", async () => {
  await open("victims", {}, async (page) => {
    assert.equal(await page.locator("#lit-path path").count(), 0);
    await page.locator("#story").getByRole("button").first().click();
    const flow = /Flow (\d+)/.exec(await page.locator("#story h3").innerText())[1];
    assert.ok((await page.locator("#lit-path path").count()) >= 4);
    assert.ok((await page.locator("#lit-path .blamed").count()) >= 1);
    assert.equal(await page.locator("#fabric-drawing .node.lit").count(), 2);
    assert.ok((await page.locator(".gantt rect").count()) > 5);
    keep("stories", await page.locator("#story").innerText());
    // The instant is its start.
    const started = /From its start at ([\d.]+ us)/.exec(await page.locator(".gantt").innerText())[1];
    assert.equal(await clock(page), started);
    await page.waitForFunction(() => location.hash.includes("flow="));
    const hash = new URL(page.url()).hash;
    assert.match(hash, new RegExp(`^#flow=${flow}&t=[\\d.]+us$`));
    await page.goto(`${page.url().split("#")[0]}#flow=${flow}&t=700us`);
    await page.reload();
    assert.equal(await page.locator("#story h3").innerText(), `Flow ${flow}`);
    assert.equal(await clock(page), "700 us");
  });
});

test("a job has its steps, its stragglers with their ports, and its hosts over time", async () => {
  await open("training", {}, async (page) => {
    const job = page.locator("#jobs");
    assert.match(await job.locator("h3").innerText(), /^Job "training-step" took [\d.]+ ms$/);
    assert.match(await job.locator(".figures").innerText(), /2 of 2/);
    // A row for each host, in each of which the four activities add up to the time of the job.
    assert.equal(await job.locator(".ranks svg text[text-anchor=end] title").count(), 16);
    const parts = await job.evaluate((section) => {
      const units = { ps: 1, ns: 1e3, us: 1e6, ms: 1e9, s: 1e12 };
      const time = (text) => Number(text.split(" ")[0]) * units[text.split(" ")[1]];
      const whole = time(/took (.*)$/.exec(section.querySelector("h3").textContent)[1]);
      const rows = [...section.querySelectorAll(".ranks tbody tr")];
      return rows.map((row) => [...row.querySelectorAll("td")].reduce((sum, cell) => sum + time(cell.textContent), 0) / whole);
    });
    assert.equal(parts.length, 16);
    assert.ok(parts.every((part) => Math.abs(part - 1) < 0.002), `${parts}`);
    // Each host computed and moved data; what a host sends between stages overlaps its computation.
    assert.ok((await job.locator(".ranks svg path").count()) >= 32);
    assert.equal(await job.locator("table").filter({ hasText: "Collectives" }).locator("tbody tr").count(), 4);
    // A straggler leads to its host, and its port to its story.
    const row = job.getByRole("row", { name: /reduce-scatter/ }).first();
    const links = row.locator("button.link");
    assert.equal(await links.count(), 2);
    const port = await links.nth(1).innerText();
    await links.nth(1).click();
    assert.match(await page.locator("#story h3").innerText(), new RegExp(port.replace(".", "\\.")));
    keep("stories", await job.innerText());
  });
  // Gradients overlap the backward: there is a third colour in each row.
  await open("trace", {}, async (page) => {
    assert.equal(await page.locator("#jobs .ranks svg path").count(), 24);
    assert.match(await page.locator("#jobs .ranks .legend").innerText(), /computing and moving \d+%/);
  });
  // Without jobs there is no section.
  await open("victims", {}, async (page) => assert.equal(await page.locator("#jobs").count(), 0));
});

test("the cycle and the tree of a deadlock can be followed", async () => {
  await open("deadlock", {}, async (page) => {
    assert.equal(await page.locator(".ring rect").count(), 8);
    assert.equal(await page.locator(".ring .wait").count(), 8);
    assert.equal(await page.locator("#deadlock ol li").count(), 8);
    assert.match(await page.locator("#deadlock ol li").first().innerText(), /holds .* of flow \d+.*\. It waits for /);
    const tree = page.locator("#causes .root-of-tree");
    assert.ok((await tree.locator("li").count()) > 3);
    const root = await tree.locator("strong").innerText();
    // Every port of the tree leads to the device of the port above it.
    const wrong = await tree.evaluate((list) => {
      const name = (item) => item.querySelector(":scope > button, :scope > strong").textContent;
      const found = [];
      for (const item of list.querySelectorAll("li li")) {
        const above = item.parentElement.closest("li");
        if (name(item).split(" -> ")[1] !== name(above).split(":")[0]) found.push(`${name(item)} below ${name(above)}`);
      }
      return found;
    });
    assert.ok(wrong.length <= 2, wrong.join("; "));
    keep("stories", await page.locator("#causes").innerText());
    const told = await page.locator("#causes").innerText();
    await page.getByRole("button", { name: "Start", exact: true }).click();
    assert.notEqual(await page.locator("#causes").innerText(), told);
    await page.getByRole("button", { name: "Deadlock", exact: true }).click();
    assert.equal(await tree.locator("strong").innerText(), root);
    await page.locator("#causes p").nth(1).getByRole("button").first().click();
    assert.notEqual(await tree.locator("strong").innerText(), root);
    // A paused port says for which congested port it waits.
    await tree.getByRole("button").last().click();
    assert.match(await page.locator("#story").innerText(), / waits for /);
  });
});

test("hosts of a large fabric are squares below their switches", async () => {
  await open("large", {}, async (page) => {
    assert.equal(await page.locator("#fabric-drawing .node.cell").count(), 160);
    await page.locator("#time").fill("100");
    assert.ok((await page.locator("#fabric-drawing .node.cell > rect[style*=fill]").count()) > 3);
    await page.locator("#fabric-drawing .node.cell").nth(7).click();
    assert.equal(await page.locator("#story h3").innerText(), "Host H7");
  });
});

test("pods are folded, and unfold", async () => {
  await open("pods", {}, async (page) => {
    const pods = page.locator("#fabric-drawing .pod");
    const cells = page.locator("#fabric-drawing .node.cell");
    assert.equal(await pods.count(), 8);
    assert.equal(await cells.count(), 0);
    const counts = async () => (await pods.allTextContents()).join("\n");
    const then = await counts();
    assert.match(then, /\d+ paused/);
    await page.getByRole("button", { name: "Start", exact: true }).click();
    assert.notEqual(await counts(), then);
    await pods.nth(2).dispatchEvent("click");
    assert.equal(await cells.count(), 16);
    await page.locator("#fabric-drawing .pod.open").dispatchEvent("click");
    assert.equal(await cells.count(), 0);
    await page.locator("#pods").selectOption("5");
    assert.equal(await cells.count(), 16);
    await page.locator("#pods").selectOption("5");
    assert.equal(await cells.count(), 0);
    // A chosen flow unfolds the pods of its hosts.
    await page.locator("#flows tbody").getByRole("button").first().click();
    assert.ok((await cells.count()) >= 16);
    assert.equal(await page.locator("#fabric-drawing .node.lit").count(), 2);
    assert.ok((await page.locator("#lit-path path").count()) >= 4);
  });
});

test("a grid compares with a baseline, and by flow size", async () => {
  await open("grid", {}, async (page) => {
    const table = page.locator("#differences tbody");
    assert.equal(await table.locator("tr").count(), 3);
    assert.match(await table.innerText(), /-14\.2%/);
    const before = await table.innerText();
    await page.locator("#baseline").selectOption({ label: "scheme none" });
    assert.notEqual(await table.innerText(), before);
    await page.locator("#difference-of").selectOption({ label: "Mean slowdown" });
    assert.match(await table.innerText(), /2\.\d\d×/);
    assert.equal(await page.locator("#sizes figure > svg").count(), 1);
    assert.equal(await page.locator("#sizes .legend li").count(), 6);
    await page.locator("#size-points").selectOption({ label: "load 0.2" });
    assert.equal(await page.locator("#sizes .legend li").count(), 2);
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

test("a grid begins with its charts, and leads to the pages of its runs", async () => {
  await open("grid", {}, async (page) => {
    const order = await page.locator("section").evaluateAll((all) => all.map((one) => one.id));
    assert.ok(order.indexOf("measures") < order.indexOf("points"), order.join(" "));
    const links = page.locator("#runs tbody a");
    assert.equal(await links.count(), 12);
    const there = await links.evaluateAll((all) => all.map((one) => decodeURIComponent(new URL(one.href).pathname)));
    for (const file of there) assert.ok(existsSync(file), file);
    assert.equal(await page.locator("#points tbody a").count(), 6);
  });
});

test("two runs share one time axis", async () => {
  await open("pair", { viewport: { width: 1400, height: 900 } }, async (page) => {
    assert.equal(await page.locator("h1").innerText(), "victims, pfc beside victims, pyrrha");
    assert.deepEqual(await page.locator(".banner .state").allInnerTexts(), ["VICTIMS", "SLOW"]);
    const drawings = page.locator(".drawing > svg");
    assert.equal(await drawings.count(), 2);
    const pictures = () => drawings.evaluateAll((all) => all.map((svg) => svg.innerHTML));
    const before = await pictures();
    await page.locator("#time").fill("60");
    const after = await pictures();
    assert.ok(after.every((now, i) => now !== before[i]));
    // A flow of both lists: its story in each run.
    await page.locator("#flows tbody").getByRole("button").first().click();
    assert.equal(await page.locator(".story h3").count(), 2);
    const [one, other] = await page.locator(".story h3").allInnerTexts();
    assert.equal(one, other);
    assert.match(await page.locator("#over-time .u-legend").first().innerText(), /victims, pfc: .*victims, pyrrha: /s);
  });
});

test("claims of the papers are found, and lead to their experiments", async () => {
  await open("papers", {}, async (page) => {
    const squares = page.locator(".matrix .square");
    const all = await squares.count();
    // One for each claim of a paper or another source that the results hold; the papers have 322.
    const { counts: held } = JSON.parse(readFileSync("../experiments/results.json", "utf8"));
    const claims = (of) => held.filter(({ own, paper }) => !own && of(paper)).reduce((sum, each) => sum + each.claims, 0);
    assert.equal(claims((paper) => ["bifrost", "portfc", "pyrrha", "roundabout", "zeropod"].includes(paper)), 322);
    assert.equal(all, claims(() => true));
    await page.locator("#claim-verdict").selectOption("contradicted");
    const contradicted = await squares.count();
    // Papers and other sources are counted apart.
    const sums = page.locator("#scoreboard tbody tr", { hasText: /^all / });
    const counts = await sums.evaluateAll((rows) => rows.map((row) => Number(row.querySelectorAll("td")[5].innerText)));
    assert.equal(counts.length, 2);
    assert.equal(contradicted, counts[0] + counts[1]);
    await page.locator("#claim-filter").fill("fig15");
    assert.ok((await squares.count()) < contradicted);
    await page.locator("#claim-own").check();
    await page.locator("#claim-verdict").selectOption("");
    await squares.first().click();
    assert.match(await page.locator("#experiment h3").innerText(), /fig15/);
    assert.ok(await page.locator("#experiment .plot img").first().evaluate((image) => image.decode().then(() => image.naturalWidth > 100)));
    assert.equal(await page.locator("#experiment .claim.chosen").count(), 1);
    assert.match(new URL(page.url()).hash, /^#experiment=\w+\/fig15&claim=fig15/);
    await page.reload();
    assert.equal(await page.locator("#experiment .claim.chosen").count(), 1);
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
