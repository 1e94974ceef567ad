/** Usage over time as charts and as tables: it matches REST, and the whole page looks right in each form. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { systemClock } from "../../../src/base/clock.ts";
import { axe } from "../../support/axe.ts";
import { becomes, noSidewaysScroll } from "../../support/browser.ts";
import { dispatch, run, until } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
const HOUR_MS = 3_600_000;
const LONG = "support-triage-of-the-whole-european-market-and-some-more";

let stage: TestConsole;
/** How far the server's clock is behind the machine's, in milliseconds: hours when the first tasks ran. */
let behind = 30 * HOUR_MS;
beforeAll(async () => {
  stage = await openConsole({ clock: { ...systemClock, now: () => Date.now() - behind } });
  const { gateway, model } = stage;
  for (const name of ["claims", LONG, "billing"]) await gateway.agent(name, { approvals: [] });
  await gateway.agent("asker", { approvals: ["*"] });
  for (const hours of [30, 20, 6, 6, 1, 0]) {
    behind = hours * HOUR_MS;
    for (const [name, tokens] of [
      ["small", 400 + hours],
      ["large", 900],
    ] as const) {
      model.script(name, { chunks: ["ok"], usage: { prompt_tokens: tokens, completion_tokens: 100 } });
    }
    for (const agent of ["claims", LONG]) await run(gateway, { agent, prompt: `${agent} ${MARKUP}` });
    await run(gateway, { agent: "billing", tier: 2, prompt: "An invoice.\nIn two lines." });
  }
  for (const name of ["small", "spare"]) model.script(name, { status: 503 });
  await run(gateway, { agent: "claims" });
  model.script("small", { toolCalls: [{ name: "time__now", arguments: {} }] });
  await dispatch(gateway, { agent: "asker", tools: ["time.now"] });
  await until(async () => (await gateway.call("GET", "/v1/approvals")).body.data.length === 1);
  await gateway.call("POST", "/v1/agents/billing/stop");
});
afterAll(() => stage.close());

const chart = (page: Page, title: string) => page.getByRole("figure", { name: title, exact: true });

/** The rows of a chart's table, newest first, each with its slot's time and its texts. */
async function table(page: Page, title: string): Promise<{ time: string; values: string[] }[]> {
  await chart(page, title).getByText("As a table").click();
  const rows = chart(page, title).locator("tbody tr");
  await rows.first().waitFor();
  const figure = JSON.stringify(`figure[aria-label="${title}"] tbody tr`);
  return page.evaluate<
    { time: string; values: string[] }[]
  >(`[...document.querySelectorAll(${figure})].map((row) => ({
    time: row.querySelector("time").dateTime,
    values: [...row.querySelectorAll("td")].map((cell) => cell.textContent),
  }))`);
}

test("the tables show what REST returns, slot by slot, and the legend their totals", async () => {
  const { page, complaints } = await stage.open();
  const days = await stage.gateway.call("GET", "/v1/usage?step=1h");
  const tasks = await table(page, "Tasks by outcome");
  const usage = days.body;
  const newest = (values: readonly number[]) => values.slice(-24).map(String).reverse();
  expect(tasks.map(({ time }) => time)).toEqual(usage.slots.slice(-24).reverse());
  expect(tasks.map(({ values }) => values[0])).toEqual(newest(usage.tasks.succeeded));
  expect(tasks.map(({ values }) => values[1])).toEqual(newest(usage.tasks.failed));
  const credits = await table(page, "Credits by agent");
  const inAll = credits.map(({ values }) => values.reduce((sum, value) => sum + Number(value), 0));
  const total = usage.credits.total.slice(-24).reverse();
  expect(inAll.map((sum) => sum.toFixed(6))).toEqual(total.map((sum: number) => sum.toFixed(6)));
  await chart(page, "Credits by agent").getByText(LONG, { exact: true }).first().waitFor();
  const failed = await table(page, "Errors");
  expect(failed[0]?.values).toEqual(["1", "2", "0"]);
  // A task that failed because its model failed is not counted as two failures.
  await page.getByText("1 task, 2 model calls, 0 tool calls", { exact: true }).waitFor();
  expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
});

test("the range is kept in the address, is chosen by keyboard, and survives a reload", async () => {
  const { page, requests } = await stage.open();
  const month = page.getByRole("link", { name: "30 days" });
  await month.focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(stage.at("?range=30d"));
  const rows = await table(page, "Tasks by outcome");
  expect(rows.length).toBe(30);
  expect(rows.reduce((sum, { values }) => sum + Number(values[0]), 0)).toBe(18);
  await page.reload();
  await chart(page, "Tasks by outcome").waitFor();
  await becomes(month, "[aria-current=page]");
  expect(requests.filter((address) => address.includes("/v1/usage?step=1d")).length).toBe(2);
  await page.goto(stage.at("?range=__proto__"));
  await chart(page, "Tasks by outcome").waitFor();
  await becomes(page.getByRole("link", { name: "24 hours" }), "[aria-current=page]");
});

test("the legend shows the values of the slot under the pointer", async () => {
  const { page } = await stage.open();
  const tasks = chart(page, "Tasks by outcome");
  await tasks.getByText("Total").waitFor();
  const over = tasks.locator(".u-over");
  const { width, height } = (await over.boundingBox()) ?? { width: 0, height: 0 };
  await over.hover({ position: { x: width - 2, y: height / 2 } });
  await tasks.getByText("Total").waitFor({ state: "detached" });
  const key = async () => (await tasks.locator(".chart-key").textContent()) ?? "";
  const last = (await table(page, "Tasks by outcome"))[0]?.values ?? [];
  await over.hover({ position: { x: width - 3, y: height / 2 } });
  await until(async () => (await key()) === `Succeeded${last[0]}Failed${last[1]}Cancelled${last[2]}`);
});

for (const scheme of ["light", "dark"] as const) {
  for (const width of [390, 1_440]) {
    test(`${scheme}, ${width} pixels wide: axe finds nothing, nothing overflows, and the browser reports no error`, async () => {
      const { page, complaints } = await stage.open("", { scheme, width });
      await chart(page, "Tool calls").or(page.getByText("Nothing in this time.")).last().waitFor();
      await page.getByRole("link", { name: "1 call waits for a person" }).waitFor();
      await chart(page, "Credits by agent").getByText("As a table").click();
      await chart(page, "Credits by agent").locator("tbody").waitFor();
      expect(await axe(page)).toEqual([]);
      await noSidewaysScroll(page);
      expect(await page.locator("main img, main script").count()).toBe(0);
      expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
    });
  }
}
