import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type BundleBench, openBench, story, WORKSPACE } from "../ledger/article14/support.ts";
import { Forger, Unpacked } from "../ledger/verify/bundle/support.ts";
import { type BrowserPage, startBrowser, type TestBrowser } from "../support/browser.ts";
import { tempDir } from "../support/process.ts";

setDefaultTimeout(60_000);

/** The page inside a bundle, in a real browser, opened from a file with no network. */
const folder = tempDir();
let bench: BundleBench;
let browser: TestBrowser;
let bundle: Unpacked;
let key: string;

beforeAll(async () => {
  bench = await openBench();
  await story(bench, 14);
  bundle = await Unpacked.of(await bench.zip());
  key = bench.keys.verifierKeys(WORKSPACE.name).current;
  await Bun.write(join(folder.path, "verify.html"), bundle.text("verify.html"));
  await Bun.write(join(folder.path, "report.html"), bundle.text("report.html"));
  browser = await startBrowser();
});
afterAll(async () => {
  await browser.close();
  await bench.close();
  folder.remove();
});

async function open(name: string): Promise<BrowserPage> {
  const opened = await browser.page({ offline: true });
  await opened.page.goto(pathToFileURL(join(folder.path, name)).href);
  return opened;
}

interface Shown {
  readonly verdict: string;
  readonly title: string;
  readonly findings: readonly string[];
  readonly facts: string;
}

/** The page's result once verification is done. */
const RESULT = `new Promise((resolve) => {
  const result = document.getElementById("result");
  const look = () => {
    if (!/holds|tampered|undecided/.test(result.className)) return false;
    resolve({
      verdict: result.className.split(" ")[1],
      title: result.querySelector("h2").textContent,
      findings: [...result.querySelectorAll(".findings code")].map((code) => code.textContent),
      facts: result.querySelector("dl")?.textContent ?? result.textContent,
    });
    return true;
  };
  if (!look()) new MutationObserver((_, observer) => look() && observer.disconnect())
    .observe(result, { attributes: true, childList: true });
})`;

async function check(
  name: string,
  archive: Blob | Unpacked,
  given: { readonly key?: string; readonly checkpoint?: string } = {},
): Promise<BrowserPage & { readonly shown: Shown }> {
  const path = join(folder.path, `${name}.zip`);
  await Bun.write(path, archive instanceof Unpacked ? archive.pack() : archive);
  const opened = await open("verify.html");
  const { page } = opened;
  if (Object.keys(given).length > 0) await page.locator("summary").click();
  for (const [id, value] of Object.entries(given)) await page.locator(`#${id}`).fill(value);
  await page.locator("#file").setInputFiles(path);
  return { ...opened, shown: await page.evaluate<Shown>(RESULT) };
}

describe("verify.html, opened from a file with no network", () => {
  test("verifies a bundle, and sends no request", async () => {
    const { requests, complaints, shown } = await check("good", await bench.zip());
    expect(shown).toMatchObject({ verdict: "holds", title: "Holds", findings: [] });
    expect(shown.facts).toContain("taken from the bundle itself");
    expect(shown.facts).toContain(bundle.text("manifest.json").match(/"root": "(\w+)"/)?.[1] ?? "no root");
    expect(requests).toEqual([pathToFileURL(join(folder.path, "verify.html")).href]);
    expect(complaints).toEqual([]);
  });

  test("takes the key and a checkpoint that the reader has", async () => {
    const given = { key, checkpoint: `\r\n${bundle.text("checkpoint.txt").replaceAll("\n", "\r\n")}` };
    const { shown } = await check("given", bundle, given);
    expect(shown).toMatchObject({ verdict: "holds", findings: [] });
    expect(shown.facts).toContain("the one that you supplied");
    expect(shown.facts).toContain("1 agree");
  });

  test.each<[string, (bundle: Unpacked) => Unpacked, string]>([
    ["a line removed", (b) => b.lines("entries.ndjson", (lines) => lines.toSpliced(40, 1)), "entry_missing"],
    [
      "a line changed",
      (b) => b.edit("entries.ndjson", (text) => text.replace("tok_bot", "tok_cat")),
      "entry_changed",
    ],
    ["another report", (b) => b.write("report.html", "<p>all is well"), "file_changed"],
    [
      "another manifest",
      (b) => b.manifest((manifest) => Object.assign(manifest, { workspace: "w9" })),
      "manifest_changed",
    ],
  ])("names %s", async (name, change, code) => {
    const { complaints, shown } = await check(name.replaceAll(" ", "-"), change(bundle.copy()));
    expect(shown).toMatchObject({ verdict: "tampered", title: "Tampered with" });
    expect(shown.findings).toContain(code);
    expect(complaints).toEqual([]);
  });

  test("detects a bundle signed by somebody else, by the key that the reader has", async () => {
    const { shown } = await check("forged", new Forger().takeOver(bundle.copy()), { key });
    expect(shown).toMatchObject({ verdict: "tampered" });
    expect(shown.findings).toContain("other_key");
  });

  test("reports that half a bundle cannot be decided", async () => {
    const bytes = await bundle.pack().bytes();
    const { shown } = await check("half", new Blob([bytes.slice(0, bytes.length / 2)]));
    expect(shown).toMatchObject({ verdict: "undecided", findings: ["not_an_archive"] });
  });

  test("explains what is wrong with an invalid key", async () => {
    const { shown } = await check("no-key", bundle, { key: "my key" });
    expect(shown).toMatchObject({ verdict: "undecided", title: "Not checked" });
    expect(shown.facts).toContain("The key: ");
  });

  test("shows everything in a bundle as text", async () => {
    const hostile = `<img src=x onerror="document.title='gone'">`;
    const named = bundle
      .copy()
      .manifest((manifest) =>
        Object.assign(manifest, { created_by: { actor: "user:ada", person: hostile } }),
      );
    const { page, complaints, shown } = await check(
      "hostile",
      named.resign((bytes) => bench.keys.signBytes(bytes)),
    );
    expect(shown.facts).toContain(hostile);
    expect(await page.title()).toBe("Check a bundle of evidence");
    expect(complaints).toEqual([]);
  });

  test("warns that the page is only as trustworthy as its source, and names the independent way", async () => {
    const { page } = await open("verify.html");
    for (const words of ["as trustworthy as whoever gave it to you", "gatehouse ledger verify --bundle"]) {
      await page.getByText(words).waitFor();
    }
  });
});

test("report.html runs and loads nothing, and its own style is allowed", async () => {
  const { page, requests, complaints } = await open("report.html");
  expect(await page.evaluate<string>("getComputedStyle(document.querySelector('h1')).color")).toBe(
    "rgb(18, 57, 91)",
  );
  expect(requests).toEqual([pathToFileURL(join(folder.path, "report.html")).href]);
  expect(complaints).toEqual([]);
});
