/** What tests of pages rely on: faults of a page are detected, and a page without faults passes. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { axe } from "../support/axe.ts";
import {
  type BrowserPage,
  eventually,
  noSidewaysScroll,
  startBrowser,
  type TestBrowser,
} from "../support/browser.ts";

setDefaultTimeout(90_000);
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'";
const FAULTLESS = "<h1>All is well</h1><p>A paragraph.</p><button>Send</button>";
const STYLE = `p.faint { color: #bbb; background: #fff } p.wide { width: 600px } section { overflow-x: auto }
@media (prefers-color-scheme: dark) { body { color: rgb(1, 2, 3) } }`;
const SCRIPTS: Readonly<Record<string, string>> = {
  "/throws.js": `throw new Error("nobody catches this")`,
  "/rejects.js": `Promise.reject(new Error("nobody awaits this"))`,
  "/warns.js": `console.warn("a warning"); console.log("a word"); console.info("news")`,
  "/errs.js": `console.error("an error")`,
  "/gives-up.js": `const control = new AbortController();
fetch("/hang", { signal: control.signal }).catch(() => document.title = "given up");
control.abort();`,
};

let browser: TestBrowser;
let url: string;
let stop: () => Promise<void>;
beforeAll(async () => {
  browser = await startBrowser();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) => answer(new URL(request.url)),
  });
  url = server.url.href;
  stop = () => server.stop(true);
});
afterAll(async () => {
  await browser.close();
  await stop();
});

/** Answers a page with `body` in its main part. */
function answer({ pathname, searchParams }: URL): Response | Promise<Response> {
  if (pathname === "/hang") return new Promise(() => {});
  if (pathname === "/style.css") return new Response(STYLE, { headers: { "content-type": "text/css" } });
  const script = SCRIPTS[pathname];
  if (script !== undefined) return new Response(script, { headers: { "content-type": "text/javascript" } });
  if (pathname !== "/") return new Response("There is nothing here.", { status: 404 });
  const html = `<!doctype html><html lang="en"><head><title>A page</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="/style.css"></head><body><main>${searchParams.get("body")}</main></body></html>`;
  return new Response(html, {
    headers: { "content-type": "text/html", "content-security-policy": `${POLICY}; img-src 'self' data:` },
  });
}

async function open(body: string, options = {}): Promise<BrowserPage> {
  const opened = await browser.page(options);
  await opened.page.goto(`${url}?body=${encodeURIComponent(body)}`);
  return opened;
}

describe("axe-core under the strictest policy", () => {
  test.each([
    ["a button without a name", "<button></button>", "button-name", "critical", "button:nth-child(4)"],
    ["a field without a label", "<input>", "label", "critical", "input"],
    ["text with too little contrast", '<p class="faint">faint</p>', "color-contrast", "serious", ".faint"],
  ])("finds %s, and names it", async (_, body, rule, impact, target) => {
    const { page, complaints } = await open(FAULTLESS + body);
    expect(await axe(page)).toEqual([
      { rule, impact, help: expect.any(String), targets: [target], summary: expect.any(String) },
    ] as never);
    expect(complaints).toEqual([]);
  });

  test("finds nothing serious in a good page, even a second time, and leaves nothing in it", async () => {
    const { page, complaints } = await open(FAULTLESS);
    expect(await axe(page)).toEqual([]);
    expect(await axe(page)).toEqual([]);
    expect(await page.evaluate<string>("typeof axe")).toBe("undefined");
    expect(complaints).toEqual([]);
  });
});

describe("the browser's complaints", () => {
  test.each([
    ["a script in the page that the policy forbids", "<script>document.title = 'run'</script>", /script-src/],
    ["a handler in the markup", `<img alt="" src="/none" onerror="document.title = 'run'">`, /script-src/],
    ["an image from elsewhere", '<img alt="" src="http://127.0.0.2:9/x.png">', /img-src/],
    ["an exception", '<script src="/throws.js"></script>', /exception: nobody catches this/],
    ["a rejection", '<script src="/rejects.js"></script>', /exception: nobody awaits this/],
    ["an error in the console", '<script src="/errs.js"></script>', /error: an error/],
    ["a request that is answered 404", '<script src="/none.js"></script>', /404/],
  ])("report %s", async (_, body, words) => {
    const { page, complaints } = await open(FAULTLESS + body);
    await eventually(() => complaints.some((complaint) => words.test(complaint)));
    expect(await page.title()).toBe("A page");
  });

  test("report an unreachable server", async () => {
    const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    const { href } = server.url;
    await server.stop(true);
    const { page, complaints } = await browser.page();
    await expect(page.goto(href)).rejects.toThrow("ERR_CONNECTION_REFUSED");
    await eventually(() => complaints.includes(`failed: GET ${href}: net::ERR_CONNECTION_REFUSED`));
  });

  test("report a warning, but no other log message", async () => {
    const { complaints } = await open(`${FAULTLESS}<script src="/warns.js"></script>`);
    await eventually(() => complaints.length > 0);
    expect(complaints).toEqual(["warning: a warning"]);
  });

  test("do not include a request that the page itself cancelled", async () => {
    const { page, complaints, requests } = await open(`${FAULTLESS}<script src="/gives-up.js"></script>`);
    await eventually(async () => (await page.title()) === "given up");
    expect(requests).toContain(`${url}hang`);
    expect(complaints).toEqual([]);
  });
});

test("the recorded requests are all requests, in order", async () => {
  const { page, requests } = await open(FAULTLESS);
  expect(requests).toEqual([page.url(), `${url}style.css`]);
});

describe("a page", () => {
  test("that is wider than its window is detected, with the element that is too wide", async () => {
    const { page } = await open('<p class="wide">wide</p>', { width: 390 });
    await expect(noSidewaysScroll(page)).rejects.toThrow(/in a window of 390: p\.wide$/);
    await page.setViewportSize({ width: 1_440, height: 900 });
    await noSidewaysScroll(page);
  });

  test("in which an element scrolls by itself is not reported as too wide", async () => {
    const { page } = await open('<section><p class="wide">wide</p></section>', { width: 390 });
    await noSidewaysScroll(page);
  });

  test("is drawn in the requested colour scheme, in UTC", async () => {
    const colour = `getComputedStyle(document.body).color`;
    const zone = "Intl.DateTimeFormat().resolvedOptions().timeZone";
    const light = (await open(FAULTLESS)).page;
    const dark = (await open(FAULTLESS, { scheme: "dark", zone: "Asia/Tokyo" })).page;
    expect([await light.evaluate<string>(colour), await dark.evaluate<string>(colour)]).toEqual([
      "rgb(0, 0, 0)",
      "rgb(1, 2, 3)",
    ]);
    expect([await light.evaluate<string>(zone), await dark.evaluate<string>(zone)]).toEqual([
      "UTC",
      "Asia/Tokyo",
    ]);
  });

  test("shares no cookie with another page", async () => {
    const one = await open(FAULTLESS);
    await one.page.evaluate("void (document.cookie = 'who=one')");
    expect(await one.page.evaluate<string>("document.cookie")).toBe("who=one");
    const other = await open(FAULTLESS);
    expect(await other.page.evaluate<string>("document.cookie")).toBe("");
  });

  test("without a network reaches no server", async () => {
    const { page } = await browser.page({ offline: true });
    await expect(page.goto(url)).rejects.toThrow("ERR_INTERNET_DISCONNECTED");
  });
});
