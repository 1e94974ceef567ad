/** Actions on an agent's page that ask for confirmation first: stop, resume, archive. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);

let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const status = async (name: string) => (await stage.gateway.call("GET", `/v1/agents/${name}`)).body.status;

test("an agent is stopped and resumed after a confirmation, and nothing happens if it is declined", async () => {
  const { gateway } = stage;
  await gateway.agent("brakes");
  const { page } = await stage.open("/agents/brakes");
  await button(page, "Stop").click();
  await button(page, "Cancel").click();
  expect(await status("brakes")).toBe("active");
  await button(page, "Stop").click();
  await button(page, "Stop the agent").click();
  await button(page, "Resume").waitFor();
  expect(await status("brakes")).toBe("stopped");
  expect(await page.getByRole("link", { name: "Run a task" }).count()).toBe(0);
  await button(page, "Resume").click();
  await button(page, "Resume the agent").click();
  await button(page, "Stop").waitFor();
  expect(await status("brakes")).toBe("active");
});

test("an agent is archived by keyboard once its name is typed, and its open pages say so", async () => {
  const { gateway } = stage;
  await gateway.agent("doomed");
  const watcher = await stage.open("/agents/doomed");
  await watcher.page.getByRole("heading", { name: "Facts" }).waitFor();
  const { page } = await stage.open("/agents/doomed");
  await button(page, "Archive …").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await page.keyboard.press("Tab");
  const field = page.getByLabel("Type doomed to archive it");
  await field.focus();
  await page.keyboard.type("domed");
  await page.keyboard.press("Enter");
  expect(await button(page, "Archive the agent").isDisabled()).toBe(true);
  expect(await status("doomed")).toBe("active");
  await field.focus();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("doomed");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
  expect((await gateway.call("GET", "/v1/agents/doomed")).status).toBe(404);
  await watcher.page.getByText("This agent has been archived.").waitFor();
  expect(await button(watcher.page, "Stop").count()).toBe(0);
});
