/** What a real browser sends from pages of this origin, and from another origin on the same site as its cookies. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, chromium, type Page } from "playwright-core";
import { findChromium } from "../support/chromium.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

setDefaultTimeout(120_000);

/** Over plain HTTP, browsers send no Sec-Fetch-Site to a host that is not this machine. */
const LAN_NAME = "gate.test";
const clock = new FakeClock();
let gateway: TestGateway;
let browser: Browser;
let elsewhere: Bun.Server<undefined>;

beforeAll(async () => {
  gateway = await startGateway({ clock });
  browser = await chromium.launch({
    executablePath: findChromium() ?? "chromium",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-dev-shm-usage",
      `--host-resolver-rules=MAP ${LAN_NAME} 127.0.0.1`,
    ],
    timeout: 60_000,
  });
  elsewhere = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => new Response("<!doctype html><p>win a prize", { headers: { "content-type": "text/html" } }),
  });
});
afterAll(async () => {
  await browser.close();
  await elsewhere.stop(true);
  await gateway.stop();
});

/** A page of this origin, signed in like the console, whose policy sends no referrer. */
async function signedIn(base: string): Promise<Page> {
  const page = await (await browser.newContext()).newPage();
  await page.goto(`${base}/livez`);
  const headers = JSON.stringify({ authorization: `Bearer ${gateway.admin}` });
  const status = await page.evaluate<number>(
    `fetch("/v1/session", { method: "POST", referrerPolicy: "no-referrer", headers: ${headers} }).then((response) => response.status)`,
  );
  expect(status).toBe(201);
  return page;
}

const send = (page: Page, method: string, url: string, body?: string): Promise<number | string> =>
  page.evaluate(`fetch(${JSON.stringify(url)}, {
    method: ${JSON.stringify(method)}, credentials: "include", referrerPolicy: "no-referrer",
    ${body === undefined ? "" : `body: ${JSON.stringify(body)}, headers: { "content-type": "application/json" },`}
  }).then((response) => response.status, (error) => error.name)`);

const agents = async (): Promise<string[]> =>
  (await gateway.call("GET", "/v1/agents")).body.data.map(({ name }: { name: string }) => name);
const isActive = async () => (await gateway.call("GET", "/v1/workspace")).body.status === "active";
const refusals = async () =>
  (await gateway.call("GET", "/v1/ledger?action=auth.refused&limit=200")).body.data.filter(
    ({ code }: { code: string }) => code === "origin_forbidden",
  ).length;

describe.each([
  ["this machine's own address", "127.0.0.1"],
  ["a name on the network", LAN_NAME],
])("a browser at %s", (_, host) => {
  const at = (url: string) => url.replace("127.0.0.1", host);

  test("lets the console's own page read and write by the cookie, which no script can read", async () => {
    const page = await signedIn(at(gateway.url));
    const name = `made-at-${host.replaceAll(".", "-")}`;
    const body = JSON.stringify({ name, owner: "ada", memory_scope: "/" });
    expect(await send(page, "POST", "/v1/agents", body)).toBe(201);
    expect(await send(page, "GET", "/v1/session")).toBe(200);
    expect(await agents()).toContain(name);
    expect(await page.evaluate<string>("document.cookie")).toBe("");
    expect(await send(page, "DELETE", "/v1/session")).toBe(204);
    expect(await send(page, "GET", "/v1/session")).toBe(401);
    await page.context().close();
  });

  test("lets a page on another port change nothing, although the cookie is attached to its requests", async () => {
    const own = await signedIn(at(gateway.url));
    const before = await refusals();
    // Refusals are recorded once a minute.
    clock.advance(120_000);
    const evil = await own.context().newPage();
    await evil.goto(at(elsewhere.url.href));
    const target = `${at(gateway.url)}/v1/workspace/stop`;
    await evil.evaluate(
      `fetch(${JSON.stringify(target)}, { method: "POST", mode: "no-cors", credentials: "include" })`,
    );
    expect(await refusals()).toBe(before + 1);
    expect(await send(evil, "POST", target)).toBe("TypeError");
    expect(await send(evil, "DELETE", `${at(gateway.url)}/v1/session`)).toBe("TypeError");
    expect(await send(evil, "GET", `${at(gateway.url)}/v1/session`)).toBe("TypeError");
    const [answer] = await Promise.all([
      evil.waitForNavigation(),
      evil.evaluate(`(() => {
        const form = document.createElement("form");
        form.method = "post";
        form.action = ${JSON.stringify(target)};
        document.body.append(form);
        form.submit();
      })()`),
    ]);
    expect(answer?.status()).toBe(403);
    expect(await isActive()).toBe(true);
    expect(await send(own, "GET", "/v1/session")).toBe(200);
    await own.context().close();
  });
});
