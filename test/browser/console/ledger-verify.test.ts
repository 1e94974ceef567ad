/**
 * A browser verifies the ledger by itself, and detects whether the ledger still extends what this browser saw before.
 */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { type Gateway, openGateway } from "../../../src/gateway.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const root = mkdtempSync(join(tmpdir(), "gatehouse-ledger-verify-"));
const dataDir = join(root, "data");
const copy = join(root, "copy");
let stage: TestConsole;
let gateway: Gateway;
/** A signed note of the ledger that somebody kept elsewhere. */
let kept: string;

beforeAll(async () => {
  mkdirSync(dataDir);
  stage = await openConsole({ dataDir });
  gateway = stage.gateway.gateway;
  for (const name of ["clerk", "porter"]) await stage.gateway.agent(name);
  kept = (await stage.gateway.call("GET", "/v1/ledger/checkpoint")).body;
});
afterAll(async () => {
  await stage.browser.close();
  await gateway.stop();
  await stage.model.close();
  rmSync(root, { recursive: true, force: true });
});

/** Starts another gateway in place of the stopped one: same address, and the same data unless `data` is given. */
async function start(data = dataDir): Promise<void> {
  const { config } = loadConfig({
    flags: { data, listen: new URL(stage.gateway.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: stage.gateway.admin },
    cwd: data,
  });
  gateway = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  await gateway.start();
}

test("pasted text that is not a checkpoint is reported at its field, and nothing can be checked with it", async () => {
  const { page } = await stage.open("/ledger?tab=verify");
  await page.getByText("What you know from elsewhere").click();
  await page.getByLabel("Checkpoints, one after another").fill("<script>alert(1)</script>");
  await page.getByText(/^It could not be read: /).waitFor();
  expect(await page.getByRole("button", { name: "Verify", exact: true }).isDisabled()).toBe(true);
});

test("a pasted checkpoint that contradicts the ledger is shown as tampering", async () => {
  const { page } = await stage.open("/ledger?tab=verify");
  await page.getByText("What you know from elsewhere").click();
  const lines = kept.split("\n");
  lines[2] = Buffer.alloc(32, 7).toString("base64");
  await page.getByLabel("Checkpoints, one after another").fill(lines.join("\n"));
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.getByText("tampered with", { exact: true }).waitFor();
  await page.getByText("checkpoint_contradicts").waitFor();
});

test("a bundle that was changed in transit fails verification", async () => {
  const { page } = await stage.open("/ledger?tab=verify");
  await page.route("**/v1/ledger?format=article14*", async (route) => {
    const answer = await route.fetch();
    const body = await answer.body();
    body[200] = (body[200] ?? 0) ^ 255;
    await route.fulfill({ response: answer, body });
  });
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.getByText("tampered with", { exact: true }).waitFor();
});

test("the whole ledger is verified by keyboard against a kept checkpoint", async () => {
  const { page, complaints } = await stage.open("/ledger?tab=verify");
  await page.getByText("What you know from elsewhere").focus();
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.insertText(kept);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  const result = page.getByRole("heading", { name: "Result" });
  await result.waitFor();
  await page.getByText("holds", { exact: true }).waitFor();
  expect(await page.locator(".ledger-verdict").textContent()).toMatch(
    /1 agree, the last of \d+ entries, 0 contradict/,
  );
  expect(complaints).toEqual([]);
});

test("the ledger is followed across visits and a lost server, and a rollback is shown", async () => {
  const { page } = await stage.open("/ledger");
  await page.getByText("This browser sees the ledger for the first time.").waitFor();
  await page.reload();
  await page.getByText("nothing rewritten", { exact: true }).waitFor();
  await gateway.stop();
  cpSync(dataDir, copy, { recursive: true });
  await page.getByText("No connection. Trying again …").first().waitFor();
  await start();
  await page.getByText("Live", { exact: true }).waitFor();
  await page.getByText("nothing rewritten", { exact: true }).waitFor();
  expect(
    await page.getByRole("region", { name: "Entries, newest first" }).getByRole("link").count(),
  ).toBeGreaterThan(5);

  // The browser sees more entries. Then the server runs on the older copy and records other entries in their place.
  const write = (count: number) =>
    Promise.all(Array.from({ length: count }, () => stage.gateway.call("GET", "/v1/tasks")));
  await write(20);
  await page.reload();
  await page.getByText("nothing rewritten", { exact: true }).waitFor();
  await gateway.stop();
  await start(copy);
  await page.reload();
  await page.getByText("The ledger has fewer entries now").waitFor();
  await write(60);
  await page.reload();
  await page.getByText("Today’s ledger does not begin with them").waitFor();
  await page.getByRole("link", { name: "Verify in this browser" }).click();
  await page.getByRole("button", { name: "Verify", exact: true }).click();
  await page.getByText("checkpoint_contradicts").first().waitFor();
  // The warning stays until the reader chooses to forget.
  await page.reload();
  await page.getByText("Today’s ledger does not begin with them").waitFor();
  await page.getByRole("button", { name: "Forget earlier visits …" }).click();
  await page.getByRole("button", { name: "Forget it", exact: true }).click();
  await page.getByText("This browser sees the ledger for the first time.").waitFor();
});
