/** Using the settings: only with the keyboard, with markup in their texts, with a server that stops and returns. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { openGateway } from "../../../src/gateway.ts";
import { startGateway } from "../../support/gateway.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const MARKUP = `<img src=x onerror="document.title='run'"><script>alert(1)</script>`;
let stage: TestConsole;

beforeAll(async () => {
  stage = await openConsole();
  await stage.gateway.token({ name: MARKUP, person: MARKUP, role: MARKUP, scopes: ["tasks:read"] });
});
afterAll(() => stage.close());

test("markup in a token's texts is shown as text", async () => {
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

test("a token is issued, kept and revoked by keyboard", async () => {
  const { page, close } = await stage.open("/settings");
  await page.getByRole("heading", { name: "Tokens" }).waitFor();
  const { keyboard } = page;
  /** Presses Tab until the element of this name has the focus. */
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
  await reach("I have saved it");
  await keyboard.press("Enter");
  await page.getByRole("button", { name: "Revoke by keys" }).waitFor();
  await reach("Revoke by keys");
  await keyboard.press("Enter");
  await reach("Revoke");
  await keyboard.press("Enter");
  await page.getByRole("button", { name: "Revoke by keys" }).waitFor({ state: "detached" });
  await close();
});

test("without a webhook, and while the server is gone, the page says what to do", async () => {
  const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-settings-"));
  const first = await startGateway({ dataDir });
  const { page, close } = await stage.browser.page();
  await page.goto(`${first.url}/console/settings/notifications`);
  await page.getByLabel("Token", { exact: true }).fill(first.admin);
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("GATEHOUSE_NOTIFY_WEBHOOK").waitFor();
  expect(page.url()).toBe(`${first.url}/console/settings/notifications`);
  await page.getByRole("link", { name: "Limits", exact: true }).click();
  await page.getByLabel("Concurrent tasks").fill("5");
  await first.stop();
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByRole("alert").filter({ hasText: "The server does not answer." }).first().waitFor();
  expect(await page.getByLabel("Concurrent tasks").inputValue()).toBe("5");

  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(first.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: first.admin },
    cwd: dataDir,
  });
  const second = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  await second.start();
  await page.getByText("Live", { exact: true }).waitFor();
  expect(await page.getByLabel("Concurrent tasks").inputValue()).toBe("5");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("The limits have been changed.").waitFor();
  await close();
  await second.stop();
  rmSync(dataDir, { recursive: true, force: true });
});
