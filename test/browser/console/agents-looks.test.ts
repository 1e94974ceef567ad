/** How the pages of agents look: with markup in every text, in both colour schemes, narrow and wide. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const MARKUP = `<img src=x onerror="alert(1)"><script>alert(2)</script>`;

let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.agent("markup", {
    owner: MARKUP,
    description: MARKUP,
    instructions: `${MARKUP}\n`.repeat(30),
    memory_scope: ["a".repeat(200), "b", "c", "d/e"],
    tools: ["*", "x".repeat(200)],
    approvals: ["vault.*"],
    tier_policy: { tiers: [1, 9], models: { allow: ["*"], deny: ["up/spare", "y".repeat(200)] } },
  });
});
afterAll(() => stage.close());

/** All text of the page, and the values of its fields. */
const TEXTS = `document.body.textContent +
  [...document.querySelectorAll("input, textarea")].map((field) => field.value)`;
const PATHS = [
  ["/agents", "markup"],
  ["/agents/markup", "Instructions"],
  ["/agents/markup?tab=edit", "Limits"],
  ["/agents/-/new", "Limits"],
] as const;
const FORMS = [
  { scheme: "light", width: 1_440 },
  { scheme: "light", width: 390 },
  { scheme: "dark", width: 1_440 },
  { scheme: "dark", width: 390 },
] as const;

test.each(FORMS)(
  "markup is shown as text, the pages fit, and axe finds nothing serious: %o",
  async (options) => {
    const { page, complaints, close } = await stage.open("/agents", options);
    for (const [path, landmark] of PATHS) {
      await page.goto(stage.at(path));
      await page.getByText(landmark, { exact: true }).first().waitFor();
      if (path !== "/agents") await page.getByText("Tier 1 tries").waitFor();
      if (path.includes("markup")) expect(await page.evaluate<string>(TEXTS)).toContain(MARKUP);
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
