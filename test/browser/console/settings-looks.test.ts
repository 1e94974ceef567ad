/** How the settings look and are used: both schemes, two widths, the keyboard, markup as text, a server that goes and comes. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { openGateway } from "../../../src/gateway.ts";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { startGateway } from "../../support/gateway.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const MARKUP = `<img src=x onerror="document.title='run'"><script>alert(1)</script>`;
let stage: TestConsole;

beforeAll(async () => {
  stage = await openConsole();
  const { gateway } = stage;
  await gateway.agent("a-name-that-is-as-long-as-the-name-of-an-agent-may-be-at-all-01");
  await gateway.token({
    name: `${MARKUP} ${"long ".repeat(25)}`,
    person: MARKUP,
    role: MARKUP,
    agent: "a-name-that-is-as-long-as-the-name-of-an-agent-may-be-at-all-01",
    scopes: [
      "agents:read",
      "tasks:read",
      "tasks:write",
      "vault:read",
      "vault:write",
      `tools:${"x".repeat(190)}.*`,
    ],
    expires_in: "2d",
  });
  for (let count = 0; count < 12; count++) {
    await gateway.token({ name: `service ${count}`, scopes: ["admin"], person: "Grace Hopper" });
  }
  // One of these is over the limit: a notice.
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 1 } } });
  for (let count = 0; count < 3; count++) await gateway.call("GET", "/v1/session");
  await gateway.call("PATCH", "/v1/workspace", { body: { limits: { requests_per_minute: 1_000_000 } } });
});
afterAll(() => stage.close());

const SECTIONS = ["developers", "limits", "notifications", "models", "sessions", "about"] as const;
const settled = (page: Page) => page.locator("main h2").first().waitFor();

async function isWell(page: Page): Promise<void> {
  expect(await axe(page)).toEqual([]);
  await noSidewaysScroll(page);
}

for (const scheme of ["light", "dark"] as const) {
  for (const width of [390, 1_440]) {
    test(`everybody can use each section, ${scheme}, ${width} px`, async () => {
      const { page, complaints, close } = await stage.open("/settings", { scheme, width });
      for (const section of SECTIONS) {
        await page.goto(stage.at(`/settings/${section}`));
        await settled(page);
        if (section === "developers") await page.getByRole("button", { name: "Rotate admin" }).waitFor();
        if (section === "notifications") await page.getByText("More requests than the limit").waitFor();
        await isWell(page);
      }
      await page.goto(stage.at("/settings/developers?issue=1"));
      await page.getByLabel("Name", { exact: true }).fill(`${scheme} ${width}`);
      await page.getByLabel("tasks:write").check();
      await isWell(page);
      await page.getByRole("button", { name: "Issue token", exact: true }).click();
      await page.getByRole("region", { name: "Secret", exact: true }).waitFor();
      await isWell(page);
      await page.getByRole("button", { name: "Done" }).click();
      await page.getByRole("button", { name: "I have kept it" }).click();
      await page.getByRole("button", { name: "Revoke admin" }).click();
      await page.getByText("You are signed in by this token.").waitFor();
      await isWell(page);
      expect(complaints).toEqual([]);
      await close();
    });
  }
}

test("markup in a token's texts is text", async () => {
  const { page, complaints, close } = await stage.open("/settings/developers");
  await page.getByRole("heading", { name: MARKUP }).waitFor();
  expect(await page.locator("main img, main script").count()).toBe(0);
  await page.getByRole("button", { name: "Rotate <img" }).click();
  await page.getByRole("heading", { name: `Give ${MARKUP}` }).waitFor();
  await page.getByRole("button", { name: "Rotate", exact: true }).click();
  await page.getByRole("heading", { name: `Secret of ${MARKUP}` }).waitFor();
  expect(await page.locator("dialog img, dialog script").count()).toBe(0);
  expect(await page.title()).toBe("Settings · Gatehouse");
  expect(complaints).toEqual([]);
  await close();
});

test("a token is issued, kept and revoked by the keyboard alone", async () => {
  const { page, close } = await stage.open("/settings");
  await page.getByRole("heading", { name: "Tokens" }).waitFor();
  const { keyboard } = page;
  /** Tabs on until what has the focus is called so. */
  async function reach(name: string): Promise<void> {
    for (let steps = 0; steps < 150; steps++) {
      const words = await page.evaluate<string>(
        "(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()",
      );
      if (words === name) return;
      await keyboard.press("Tab");
    }
    throw new Error(`the keyboard does not lead to ${name}`);
  }
  await reach("Issue token");
  await keyboard.press("Enter");
  await page.getByRole("heading", { name: "Issue a token" }).waitFor();
  await reach("Name");
  await keyboard.type("by keys");
  await reach("tasks:read");
  await keyboard.press("Space");
  await reach("Role (optional)");
  await keyboard.press("Enter");
  await page.getByRole("heading", { name: "Secret of by keys" }).waitFor();
  await reach("MCP client");
  await keyboard.press("Enter");
  await page.getByRole("region", { name: "MCP client example" }).waitFor();
  await reach("Done");
  await keyboard.press("Enter");
  await reach("I have kept it");
  await keyboard.press("Enter");
  await page.getByRole("button", { name: "Revoke by keys" }).waitFor();
  await reach("Revoke by keys");
  await keyboard.press("Enter");
  await reach("Revoke");
  await keyboard.press("Enter");
  await page.getByRole("button", { name: "Revoke by keys" }).waitFor({ state: "detached" });
  await close();
});

test("without webhook, and with a server that goes and comes back, the page says what to do", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-settings-"));
  const first = await startGateway({ dataDir });
  const { page, close } = await stage.browser.page();
  await page.goto(`${first.url}/console/settings/notifications`);
  await page.getByLabel("Token", { exact: true }).fill(first.admin);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("GATEHOUSE_NOTIFY_WEBHOOK").waitFor();
  expect(page.url()).toBe(`${first.url}/console/settings/notifications`);
  await page.getByRole("link", { name: "Limits", exact: true }).click();
  await page.getByLabel("Tasks at the same time").fill("5");
  await first.stop();
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("alert").filter({ hasText: "The server does not answer." }).first().waitFor();
  expect(await page.getByLabel("Tasks at the same time").inputValue()).toBe("5");

  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(first.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: first.admin },
    cwd: dataDir,
  });
  const second = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  await second.start();
  await page.getByText("Live", { exact: true }).waitFor();
  expect(await page.getByLabel("Tasks at the same time").inputValue()).toBe("5");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("The limits are changed.").waitFor();
  await close();
  await second.stop();
  rmSync(dataDir, { recursive: true, force: true });
});
