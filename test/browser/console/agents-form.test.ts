/** Creating and changing an agent in the console, with every field, checked over REST afterwards. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { silentLog } from "../../../src/base/log.ts";
import { loadConfig } from "../../../src/config/load.ts";
import { openGateway } from "../../../src/gateway.ts";
import { becomes } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
const dataDir = mkdtempSync(join(tmpdir(), "gatehouse-agents-form-"));
let stage: TestConsole;
/** The stage's own gateway, or its replacement; null while no gateway runs. */
let serving: { stop(): Promise<unknown> } | null = null;
beforeAll(async () => {
  stage = await openConsole({ dataDir });
  serving = stage.gateway;
});
afterAll(async () => {
  await stage.browser.close();
  await serving?.stop();
  await stage.model.close();
  rmSync(dataDir, { recursive: true, force: true });
});

const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });
const read = async (name: string) => (await stage.gateway.call("GET", `/v1/agents/${name}`)).body;
/** The cell of the matrix in a model's row and a tier's column. */
const cell = (page: Page, model: string, tier: number) =>
  page
    .getByRole("row")
    .filter({ hasText: model })
    .getByRole("cell")
    .nth(tier - 1);

/** Collects the bodies that the page sends with this method from now on. */
function bodies(page: Page, method: string): unknown[] {
  const sent: unknown[] = [];
  page.on("request", (request) => {
    if (request.method() === method && request.url().includes("/v1/")) sent.push(request.postDataJSON());
  });
  return sent;
}

test("a refusal by the server is shown at its field, and the input is kept", async () => {
  const { page } = await stage.open("/agents/-/new");
  await field(page, "Name").fill("Not A Name");
  await field(page, "Owner").fill("Ada");
  await field(page, "Memory scope").fill("legal\n/Legal/");
  await field(page, "Credits a day").fill("0.00000001");
  await button(page, "Create the agent").click();
  await page.getByText("must be lower-case letters").waitFor();
  await page.getByText("/Legal/ is not a path").waitFor();
  await becomes(field(page, "Name"), "[aria-invalid=true]");
  await becomes(field(page, "Name"), ":focus");
  await field(page, "Name").fill("a-name");
  await field(page, "Memory scope").fill("legal");
  await button(page, "Create the agent").click();
  await page.getByText("exact to a millionth", { exact: false }).last().waitFor();
  await becomes(field(page, "Credits a day"), "[aria-invalid=true]");
  await field(page, "Credits a day").fill("1");
  await field(page, "Name").fill("gth_a1a1a1a1a1a1a1a1a1a1a1a1");
  await button(page, "Create the agent").click();
  await page.getByText("must not look like a token", { exact: false }).last().waitFor();
  await becomes(field(page, "Name"), "[aria-invalid=true]");
  await stage.gateway.agent("taken");
  await field(page, "Name").fill("taken");
  await button(page, "Create the agent").click();
  await page.getByText("agent_exists").waitFor();
  expect(await field(page, "Owner").inputValue()).toBe("Ada");
  expect((await stage.gateway.call("GET", "/v1/agents/a-name")).status).toBe(404);
});

test("an agent is created by keyboard with only the three required fields, and nothing else is sent", async () => {
  const { page } = await stage.open("/agents");
  await page.getByRole("link", { name: "Create an agent" }).first().focus();
  await page.keyboard.press("Enter");
  await field(page, "Name").focus();
  await page.keyboard.type("by-keyboard");
  await page.keyboard.press("Tab");
  await page.keyboard.type("Ada");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("support");
  const sent = bodies(page, "POST");
  await field(page, "Owner").focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "by-keyboard" }).waitFor();
  expect(page.url()).toBe(stage.at("/agents/by-keyboard"));
  expect(sent).toEqual([{ name: "by-keyboard", owner: "Ada", memory_scope: ["support"] }]);
  expect(await read("by-keyboard")).toMatchObject({
    tier_policy: { tiers: [1, 2], models: { allow: ["*"], deny: [] } },
    tools: ["*"],
    approvals: null,
    max_steps: 20,
  });
});

test("an agent is created with every field, while the matrix and the tools follow the input", async () => {
  const { page } = await stage.open("/agents/-/new");
  await field(page, "Name").fill("whole");
  await field(page, "Owner").fill("Claims team");
  await field(page, "Description").fill("Reads claims.");
  await field(page, "Instructions").fill("Be careful.\nQuote.");
  await field(page, "Memory scope").fill("claims\n\n legal/contracts ");
  await cell(page, "up/large", 2).getByText("allowed").waitFor();
  await cell(page, "up/large", 1).getByText("not in this tier").waitFor();
  await field(page, "Denied models").fill("*/spare");
  await cell(page, "up/spare", 1).getByText("denied by pattern").waitFor();
  await field(page, "Allowed models").fill("up/*");
  await page.getByLabel("Tier 2").uncheck();
  await cell(page, "up/large", 2).getByText("denied by tier").waitFor();
  await cell(page, "up/small", 1).getByText("allowed").waitFor();
  await page.getByText("4 of 4 tools allowed").waitFor();
  await field(page, "Tools").fill("vault.*\nvalt.*");
  await page.getByText("3 of 4 tools allowed").waitFor();
  await page.getByText("No tool of the workspace matches valt.*").waitFor();
  await page.getByLabel("Tools that match these patterns").check();
  await field(page, "Tools that need approval").fill("vault.write");
  await page.getByText("1 needs approval").waitFor();
  await page.getByRole("listitem").filter({ hasText: "vault.write" }).getByText("needs approval").waitFor();
  await field(page, "Approvals required").selectOption("2");
  await field(page, "Steps of a task").fill("7");
  await field(page, "Credits a day").fill("12.5");
  await button(page, "Create the agent").click();
  await page.getByRole("heading", { level: 1, name: "whole" }).waitFor();
  expect(await read("whole")).toMatchObject({
    owner: "Claims team",
    description: "Reads claims.",
    instructions: "Be careful.\nQuote.",
    memory_scope: ["claims", "legal/contracts"],
    tier_policy: { tiers: [1], models: { allow: ["up/*"], deny: ["*/spare"] } },
    tools: ["vault.*", "valt.*"],
    approvals: ["vault.write"],
    approvals_required: 2,
    max_steps: 7,
    budget: { credits_per_day: 12.5 },
    version: 1,
  });
});

test("saving sends only what was changed", async () => {
  await stage.gateway.agent("edited", {
    description: "old",
    instructions: "keep",
    tools: ["vault.*"],
    approvals: ["vault.write"],
    budget: { credits_per_day: 5 },
    tier_policy: { models: { deny: ["up/spare"] } },
  });
  const { page } = await stage.open("/agents/edited?tab=edit");
  const sent = bodies(page, "PATCH");
  await field(page, "Owner").fill("Grace");
  expect(await button(page, "Save changes").isEnabled()).toBe(true);
  await field(page, "Owner").fill("tests");
  expect(await button(page, "Save changes").isDisabled()).toBe(true);
  await field(page, "Description").fill("");
  await page.getByLabel("Tools that their connector marks as destructive").check();
  await page.getByLabel("Tier 2").uncheck();
  await field(page, "Allowed models").fill("up/*\n");
  await field(page, "Credits a day").fill("");
  await button(page, "Save changes").click();
  await page.getByText("Version 2, with nothing to save.").waitFor();
  expect(sent).toEqual([
    {
      description: null,
      approvals: null,
      tier_policy: { tiers: [1], models: { allow: ["up/*"] } },
      budget: { credits_per_day: null },
    },
  ]);
  expect(await read("edited")).toMatchObject({
    description: null,
    instructions: "keep",
    approvals: null,
    tier_policy: { tiers: [1], models: { allow: ["up/*"], deny: ["up/spare"] } },
    budget: { credits_per_day: null },
    version: 2,
  });
});

test("a link, the browser's back button and a reload ask before discarding input", async () => {
  await stage.gateway.agent("guarded");
  const { page } = await stage.open("/agents");
  await page.getByRole("link", { name: "guarded", exact: true }).click();
  await page.getByRole("link", { name: "Edit", exact: true }).click();
  await field(page, "Owner").fill("Grace");
  await page.getByRole("link", { name: "Ledger", exact: true }).click();
  await button(page, "Keep editing").click();
  expect(page.url()).toBe(stage.at("/agents/guarded?tab=edit"));
  await page.evaluate<null>("(history.back(), null)");
  await button(page, "Keep editing").click();
  expect(page.url()).toBe(stage.at("/agents/guarded?tab=edit"));
  expect(await field(page, "Owner").inputValue()).toBe("Grace");
  const asked = new Promise<string>((resolve) => {
    page.once("dialog", async (dialog) => {
      resolve(dialog.type());
      await dialog.dismiss();
    });
  });
  await page.evaluate<null>("(setTimeout(() => location.reload()), null)");
  expect(await asked).toBe("beforeunload");
  expect(await field(page, "Owner").inputValue()).toBe("Grace");
  await page.evaluate<null>("(history.back(), null)");
  await button(page, "Leave without saving").click();
  await page.getByRole("heading", { name: "Facts" }).waitFor();
  expect(page.url()).toBe(stage.at("/agents/guarded"));
  await page.getByRole("link", { name: "Edit", exact: true }).click();
  await field(page, "Owner").fill("Linus");
  await button(page, "Discard").click();
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Agents" }).click();
  await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
  expect((await read("guarded")).owner).toBe("tests");
});

test("a change from elsewhere is shown at once, or announced while there is unsaved input", async () => {
  const { gateway } = stage;
  await gateway.agent("shared");
  const { page } = await stage.open("/agents/shared?tab=edit");
  const elsewhere = (body: object) => gateway.call("PATCH", "/v1/agents/shared", { body });
  await field(page, "Owner").waitFor();
  await elsewhere({ owner: "Grace" });
  await page.getByText("Version 2, with nothing to save.").waitFor();
  expect(await field(page, "Owner").inputValue()).toBe("Grace");

  await field(page, "Description").fill("mine");
  await field(page, "Owner").fill("mine as well");
  await elsewhere({ max_steps: 9, owner: "Linus" });
  await page.getByText("Somebody else has changed this agent.").waitFor();
  await page.getByText("Also changed here, and overwritten when you save: owner.").waitFor();
  await button(page, "Load it, keep my changes").click();
  expect(await field(page, "Steps of a task").inputValue()).toBe("9");
  expect(await field(page, "Description").inputValue()).toBe("mine");
  expect(await field(page, "Owner").inputValue()).toBe("mine as well");

  await elsewhere({ max_steps: 11 });
  await button(page, "Load version 4, discard my changes").click();
  await page.getByText("Version 4, with nothing to save.").waitFor();
  expect(await field(page, "Steps of a task").inputValue()).toBe("11");
  expect(await field(page, "Description").inputValue()).toBe("");
  expect(await field(page, "Owner").inputValue()).toBe("Linus");
});

test("input survives a lost server, and is saved once the server is back", async () => {
  const { gateway } = stage;
  await gateway.agent("patient");
  const { page } = await stage.open("/agents/patient?tab=edit");
  await field(page, "Owner").fill("Grace");
  await gateway.stop();
  serving = null;
  await button(page, "Save changes").click();
  await page.getByText("The server does not answer.").first().waitFor();
  const { config } = loadConfig({
    flags: { data: dataDir, listen: new URL(gateway.url).host },
    env: { GATEHOUSE_ADMIN_TOKEN: gateway.admin },
    cwd: dataDir,
  });
  const second = await openGateway(config, { log: silentLog, handOverAdmin: () => {} });
  serving = second;
  await second.start();
  await page.getByText("Live", { exact: true }).waitFor();
  expect(await field(page, "Owner").inputValue()).toBe("Grace");
  await button(page, "Save changes").click();
  await page.getByText("Version 2, with nothing to save.").waitFor();
  expect((await read("patient")).owner).toBe("Grace");
});
