/** A task's page during a fast stream, a long stream, and a restart of the server. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Gateway, openGateway } from "../../../src/gateway.ts";
import { eventually } from "../../support/browser.ts";
import { dispatch, ended, held } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
/** Milliseconds between two words: 200 words a second. */
const APART_MS = 5;
const WORDS = Array.from({ length: 800 }, (_, index) => `word${index}${index % 12 === 11 ? "\n" : " "}`);
/** Longer than a block of the page, in lines, with one line that is longer than any block. */
const MILLION = `${"A line of some sixty characters, as they stand in most texts.\n".repeat(14_000)}${"😀x".repeat(30_000)}`;
const PROBE = `(() => {
  const seen = { frames: 0, longest: 0, long: 0 };
  let last = performance.now();
  const frame = (now) => {
    seen.frames += 1;
    seen.longest = Math.max(seen.longest, now - last);
    last = now;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  new PerformanceObserver((list) => { seen.long += list.getEntries().length; }).observe({ type: "longtask" });
  window.seen = seen;
})()`;

const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-tasks-"));
let stage: TestConsole;
let second: Gateway | undefined;
beforeAll(async () => {
  stage = await openConsole({ dataDir });
  await stage.gateway.agent("helper");
});
afterAll(async () => {
  await stage.browser.close();
  await (second ?? stage.gateway).stop();
  await stage.model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const activity = (page: Page) => page.getByRole("region", { name: "What happens" });
const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const lastText = async (page: Page) => (await page.locator(".live-text").last().textContent()) ?? "";
const scroll = (page: Page, top: string) =>
  page.evaluate<number>(`(() => {
    const frame = document.querySelector(".activity");
    frame.scrollTop = ${top};
    return frame.scrollTop;
  })()`);
/** Polls from here, because the page's content security policy forbids turning text into code. */
const holds = (page: Page, condition: string) => eventually(() => page.evaluate<boolean>(condition));
const fromEnd = `(() => {
  const { scrollTop, scrollHeight, clientHeight } = document.querySelector(".activity");
  return scrollHeight - scrollTop - clientHeight;
})()`;

test("two hundred words a second all arrive, and the page stays responsive", async () => {
  const { gateway, model } = stage;
  model.script("small", { chunks: WORDS, delayMs: APART_MS });
  const id = await dispatch(gateway, { agent: "helper", prompt: "be quick" });
  const { page, close } = await stage.open(`/tasks/${id}`);
  await page.evaluate(PROBE);
  await activity(page).getByText("word1").first().waitFor();
  await button(page, "Cancel …").click();
  await button(page, "Cancel").click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.getByText("succeeded", { exact: true }).first().waitFor();
  expect(await lastText(page)).toBe(WORDS.join(""));
  console.log("frames while 200 words/s came:", await page.evaluate("window.seen"));
  await close();
});

test("a reader at the end of the text stays there, and one who has scrolled up is not moved", async () => {
  const { gateway, model } = stage;
  const [first, more] = [WORDS.slice(0, 600), held({ chunks: WORDS })];
  model.script("small", (request, index) => {
    const script = typeof more.script === "function" ? more.script(request, index) : more.script;
    return { ...script, delayMs: APART_MS };
  });
  const id = await dispatch(gateway, { agent: "helper", prompt: "scroll" });
  const { page, close } = await stage.open(`/tasks/${id}`);
  await holds(page, `document.querySelector(".live-text")?.textContent.length > ${first.length}`);
  await holds(page, `${fromEnd} < 24 && document.querySelector(".activity").scrollTop > 100`);
  const before = await scroll(page, "0");
  const length = (await lastText(page)).length;
  await holds(
    page,
    `document.querySelector(".live-text").textContent.length > ${Math.min(length + 500, WORDS.join("").length - 1)}`,
  );
  expect(await page.evaluate<number>(`document.querySelector(".activity").scrollTop`)).toBe(before);
  await scroll(page, "1e9");
  more.open();
  await ended(gateway, id);
  await page.getByText("succeeded", { exact: true }).first().waitFor();
  await holds(page, `${fromEnd} < 24`);
  await close();
});

test("a million characters are shown to the last one, and the page stays responsive", async () => {
  const { gateway, model } = stage;
  const chunks = MILLION.match(/[\s\S]{1,4000}/gu) ?? [];
  model.script("small", { chunks });
  const id = await dispatch(gateway, { agent: "helper", prompt: "be long" });
  const task = await ended(gateway, id);
  expect(task.status).toBe("succeeded");
  const { page, close } = await stage.open(`/tasks/${id}`);
  await page.evaluate(PROBE);
  await holds(page, `document.querySelector(".live-text")?.textContent.length === ${MILLION.length}`);
  expect((await lastText(page)) === task.output).toBe(true);
  await button(page, "Override …").click();
  await page.getByRole("dialog").waitFor();
  expect(await page.locator(".text-block").count()).toBeGreaterThan(100);
  console.log("frames while a million characters came:", await page.evaluate("window.seen"));
  await close();
});

test("a server that is lost in the middle of a stream and comes back leaves the whole text, once", async () => {
  const { gateway, model } = stage;
  const work = held({ chunks: WORDS.slice(0, 100) });
  model.script("small", (request, index) => {
    if (index > 0) return { chunks: WORDS };
    return typeof work.script === "function" ? work.script(request, index) : work.script;
  });
  const id = await dispatch(gateway, { agent: "helper", prompt: "hold on" });
  const plain = await stage.open(`/tasks/${id}`);
  // Like a proxy that drops the browser's Last-Event-ID: the stream starts over from the beginning.
  const again = await stage.open("/tasks");
  await again.page.route("**/v1/tasks/*/events", (route) =>
    route.continue({ url: `${route.request().url()}?after=0` }),
  );
  await again.page.goto(stage.at(`/tasks/${id}`));
  const pages = [plain.page, again.page];
  for (const page of pages) await activity(page).getByText("word99").waitFor();
  await gateway.stop();
  for (const page of pages) await page.getByText("The connection was lost.").waitFor();
  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(gateway.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: gateway.admin },
    cwd: dataDir,
  });
  second = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  await second.start();
  for (const page of pages) {
    // The feed may report the end before the browser has reopened the task's own stream.
    await page.getByText("succeeded", { exact: true }).first().waitFor();
    await page.getByText("The connection was lost.").waitFor({ state: "detached" });
    await activity(page).getByText("word799").waitFor();
    expect(await page.locator(".live-text").allTextContents()).toEqual([WORDS.join("")]);
    expect(await activity(page).getByText("Started with").count()).toBe(2);
  }
  work.open();
  await plain.close();
  await again.close();
});
