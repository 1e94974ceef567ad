/** Ten thousand tasks in the console's list. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../../support/browser.ts";
import { dispatch } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(120_000);
const TASKS = 10_000;
const AT_ONCE = 50;
const ROWS = `document.querySelectorAll(".task-table .rows-item").length`;

let stage: TestConsole;
beforeAll(async () => {
  // They all wait behind one task that never ends; the list shows them the same way.
  stage = await openConsole({ limits: { concurrent_tasks: 1, enforcement: "enforced" } });
  await stage.gateway.agent("helper");
  stage.model.script("small", { hang: true });
  let made = 0;
  const next = async (): Promise<void> => {
    while (made < TASKS) {
      made += 1;
      await dispatch(stage.gateway, { agent: "helper", prompt: `task number ${made}` });
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, next));
});
afterAll(() => stage.close());

test("ten thousand tasks scroll to the last, are drawn a few at a time, and stay live", async () => {
  const { page, complaints } = await stage.open("/tasks");
  const list = page.getByRole("region", { name: "Tasks, newest first" });
  await list.getByRole("listitem").first().waitFor();
  const size = async (): Promise<number> =>
    Number(await list.getByRole("listitem").first().getAttribute("aria-setsize"));
  let most = 0;
  await eventually(async () => {
    await page.evaluate(
      `void (document.querySelector(".rows").scrollTop = document.querySelector(".rows").scrollHeight)`,
    );
    most = Math.max(most, await page.evaluate<number>(ROWS));
    return (
      (await size()) === TASKS &&
      (await list.getByRole("link", { name: "task number 1", exact: true }).count()) === 1
    );
  });
  expect(most).toBeLessThan(100);
  await page.evaluate(`void (document.querySelector(".rows").scrollTop = 0)`);
  await stage.gateway.call("POST", "/v1/agents/helper/stop");
  await list.getByText("cancelled", { exact: true }).first().waitFor();
  await stage.gateway.agent("other");
  await dispatch(stage.gateway, { agent: "other", prompt: "the newest" });
  await list.getByRole("link", { name: "the newest", exact: true }).waitFor();
  expect(await page.evaluate<number>(ROWS)).toBeLessThan(100);
  expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
});
