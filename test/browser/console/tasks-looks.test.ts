/** How the pages of tasks look: with markup and long words in every text, in both colour schemes, narrow and wide. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { dispatch, ended } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;
const LONG = "W".repeat(300);
const FORMS = [
  { scheme: "light", width: 1_440 },
  { scheme: "light", width: 390 },
  { scheme: "dark", width: 1_440 },
  { scheme: "dark", width: 390 },
] as const;

let stage: TestConsole;
let pages: readonly (readonly [path: string, landmark: string])[];
beforeAll(async () => {
  stage = await openConsole();
  const { gateway, model } = stage;
  await gateway.agent("a".repeat(63));
  model.script("small", (_, index) =>
    index === 0
      ? { chunks: [MARKUP], toolCalls: [{ name: "time__now", arguments: { zone: MARKUP, [LONG]: LONG } }] }
      : { chunks: [MARKUP, LONG] },
  );
  model.script("large", { status: 500 });
  const agent = "a".repeat(63);
  const metadata = { [MARKUP]: MARKUP, long: LONG };
  const whole = await dispatch(gateway, { agent, prompt: MARKUP + LONG, tools: ["time.now"], metadata });
  const failed = await dispatch(gateway, { agent, prompt: MARKUP, tier: 2 });
  for (const id of [whole, failed]) await ended(gateway, id);
  pages = [
    ["/tasks", "failed"],
    [`/tasks?new=${agent}`, "vault.write"],
    [`/tasks?new&from=${whole}`, "vault.write"],
    [`/tasks/${whole}`, "In the queue"],
    [`/tasks/${failed}`, "In the queue"],
    ["/tasks?status=running", "No task matches"],
  ];
});
afterAll(() => stage.close());

test.each(FORMS)(
  "markup is shown as text, the pages fit, and axe finds nothing serious: %o",
  async (options) => {
    const { page, complaints, close } = await stage.open("/tasks", options);
    for (const [path, landmark] of pages) {
      await page.goto(stage.at(path));
      await page.locator("main").getByText(landmark).filter({ visible: true }).first().waitFor();
      await page.getByText("Live", { exact: true }).waitFor({ state: "attached" });
      if (path.startsWith("/tasks/")) expect(await page.locator("main").textContent()).toContain(MARKUP);
      expect(await page.evaluate<number>("document.querySelectorAll('main img, main script').length")).toBe(
        0,
      );
      expect(await axe(page)).toEqual([]);
      await noSidewaysScroll(page);
    }
    expect(complaints.filter((complaint) => !complaint.includes("401"))).toEqual([]);
    await close();
  },
);
