/** The ledger's list, its filters and its exports, as a person uses them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { becomes } from "../../support/browser.ts";
import { run } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const MARKUP = "<img src=x onerror=alert(1)>";
let stage: TestConsole;

beforeAll(async () => {
  stage = await openConsole();
  const { gateway, model } = stage;
  await gateway.agent("clerk");
  await gateway.agent("porter");
  model.script("small", { chunks: ["done"], usage: { prompt_tokens: 1_000, completion_tokens: 1_000 } });
  await run(gateway, { agent: "clerk", tier: 1 });
  await gateway.call("POST", "/v1/tasks", { body: { agent: MARKUP, prompt: "hi" } });
  // More entries than the page reads at once.
  for (let read = 0; read < 150; read++) await gateway.call("GET", "/v1/agents");
});
afterAll(() => stage.close());

const rows = (page: Page) => page.getByRole("region", { name: "Entries, newest first" });
const row = (page: Page, text: string) => rows(page).getByRole("listitem").filter({ hasText: text });
/** Waits for any entry, since which entries are newest depends on earlier reads. */
const listed = (page: Page) => rows(page).getByRole("link").first().waitFor();
const field = (page: Page, name: string) => page.getByRole("search").getByLabel(name, { exact: true });
const apply = (page: Page) => page.getByRole("button", { name: "Apply", exact: true }).click();

async function newest(): Promise<number> {
  return (await stage.gateway.call("GET", "/v1/ledger?order=desc&limit=1")).body.data[0].seq;
}

describe("without access", () => {
  test("a signed-out reader signs in, and is then at the requested address", async () => {
    const { page } = await stage.browser.page();
    await page.goto(stage.at("/ledger?agent=clerk"));
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await stage.signIn(page);
    await row(page, "task.dispatch").first().waitFor();
    expect(page.url()).toBe(stage.at("/ledger?agent=clerk"));
    expect(await field(page, "Agent").inputValue()).toBe("clerk");
  });

  test("a token that may not read the ledger is told so, and nothing is requested that would be refused", async () => {
    const secret = await stage.gateway.token({ name: "clerk's", scopes: ["tasks:read"] });
    const { page, requests, complaints } = await stage.open("/ledger", { secret });
    await page.getByRole("heading", { name: "You may not read the ledger" }).waitFor();
    await page.goto(stage.at("/ledger/1"));
    await page.getByRole("heading", { name: "You may not read the ledger" }).waitFor();
    expect(requests.filter((address) => address.includes("/v1/ledger"))).toEqual([]);
    expect(complaints).toEqual([]);
  });

  test("a refusal by the server is shown at its field, and the input is kept", async () => {
    const { page } = await stage.open("/ledger");
    await field(page, "Tier").fill("0");
    await field(page, "Agent").fill("clerk");
    await apply(page);
    await page.getByText("must be >= 1").waitFor();
    await becomes(field(page, "Tier"), "[aria-invalid=true]");
    expect(await field(page, "Agent").inputValue()).toBe("clerk");
    await field(page, "Tier").fill("1");
    await apply(page);
    await row(page, "model.call").first().waitFor();
    await becomes(field(page, "Tier"), ":not([aria-invalid])");
  });
});

describe("the list", () => {
  test("is read page by page, newest first, down to the first entry", async () => {
    const { page, complaints } = await stage.open("/ledger");
    await listed(page);
    const links = rows(page).getByRole("link");
    expect(
      Number(
        await links
          .first()
          .textContent()
          .then((text) => text?.replace(/\D/g, "")),
      ),
    ).toBeGreaterThan(150);
    await rows(page).focus();
    await page.getByText("100 entries loaded.").waitFor();
    // Each End goes to the end of what has been loaded, which may load more.
    const isWhole = page.getByText(/entries in all\./);
    while (!(await isWhole.isVisible())) await page.keyboard.press("End");
    await page.keyboard.press("End");
    await rows(page).getByRole("link", { name: "Entry 1", exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });

  test("shows each entry's actor, action, subject and credits", async () => {
    const { page } = await stage.open("/ledger?action=model.call");
    const outcome = row(page, "succeeded").first();
    await outcome.waitFor();
    const text = await outcome.textContent();
    for (const part of ["model.call", "outcome of", "clerk", "up/small", "tier 1", "0.5"])
      expect(text).toContain(part);
  });

  test("applies filters when asked to, keeps them in the address, and survives a reload", async () => {
    const { page, requests } = await stage.open("/ledger");
    await listed(page);
    const reads = () => requests.filter((url) => url.includes("/v1/ledger")).length;
    const before = reads();
    await field(page, "Action").fill("task.dispatch");
    await field(page, "Agent").fill("clerk");
    expect(reads()).toBe(before);
    await page.keyboard.press("Enter");
    await row(page, "task.dispatch").first().waitFor();
    expect(await row(page, "session.read").count()).toBe(0);
    expect(page.url()).toBe(stage.at("/ledger?agent=clerk&action=task.dispatch"));
    await page.reload();
    await row(page, "task.dispatch").first().waitFor();
    expect(await field(page, "Agent").inputValue()).toBe("clerk");
    await page.getByRole("button", { name: "Clear" }).click();
    await row(page, "session.read").first().waitFor();
    expect(page.url()).toBe(stage.at("/ledger"));
  });

  test("takes times in the reader's time zone, and sends them in UTC", async () => {
    const { page, requests } = await stage.open("/ledger", { zone: "Asia/Kolkata" });
    await page
      .getByText("Times are in your zone, Asia/Kolkata.")
      .or(page.getByText("Asia/Calcutta"))
      .waitFor();
    await field(page, "From").fill("2026-01-31T08:00");
    await apply(page);
    await page.waitForURL(/from=/);
    expect(new URL(page.url()).searchParams.get("from")).toBe("2026-01-31T02:30:00.000Z");
    await listed(page);
    const asked = requests.filter((address) => address.includes("/v1/ledger?")).at(-1) ?? "";
    expect(new URL(asked).searchParams.get("from")).toBe("2026-01-31T02:30:00.000Z");
    await page.reload();
    expect(await field(page, "From").inputValue()).toBe("2026-01-31T08:00");
  });

  test("explains how names are compared if nothing matches, and leads back", async () => {
    const { page } = await stage.open("/ledger?agent=nobody");
    await page.getByRole("heading", { name: "No entry matches" }).waitFor();
    await page.getByRole("link", { name: "Show all entries" }).click();
    await listed(page);
  });

  test("shows markup in a field and in an address as text", async () => {
    const { page, complaints } = await stage.open(
      `/ledger?agent=${encodeURIComponent("<script>alert(1)</script>")}`,
    );
    await page.getByRole("heading", { name: "No entry matches" }).waitFor();
    for (const name of ["Agent", "Actor", "Action", "Task"]) {
      await field(page, name).fill(MARKUP);
      await apply(page);
      await page.getByRole("heading", { name: "No entry matches" }).waitFor();
    }
    await page.goto(stage.at("/ledger?action=task.dispatch"));
    await row(page, "agent_not_found").first().waitFor();
    expect(await page.locator("main img, main script").count()).toBe(0);
    expect(complaints).toEqual([]);
  });
});

describe("while it is open, the page", () => {
  test("counts new entries without drawing them until asked, and ignores its own reads", async () => {
    // Wait until the stream is open, because opening it is recorded as an entry too.
    const { page, requests } = await stage.open("/ledger?tab=export");
    await page.getByText("signature good").waitFor();
    await page.getByRole("link", { name: "Entries", exact: true }).click();
    await listed(page);
    const top = await rows(page).getByRole("link").first().textContent();
    await stage.gateway.agent("late");
    const bar = page.getByText("1 new entry", { exact: true });
    await bar.waitFor();
    expect(await rows(page).getByRole("link").first().textContent()).toBe(top);
    expect(requests.filter((address) => address.includes("/v1/ledger?")).length).toBe(1);
    await page.getByRole("button", { name: "Show them" }).click();
    await row(page, "agent.create").first().waitFor();
    await bar.waitFor({ state: "detached" });
  });

  test("updates the ledger's size without a request", async () => {
    const { page, requests } = await stage.open("/ledger?tab=export");
    await page.getByText("signature good").waitFor();
    const asked = requests.length;
    // Two entries come after the newest: this request for it and the next call.
    const size = (await newest()) + 2;
    await stage.gateway.call("GET", "/v1/agents");
    const text = size.toLocaleString("en-GB");
    await page.locator(".ledger-size").filter({ hasText: text }).waitFor();
    expect(requests.length).toBe(asked);
  });
});

describe("the export", () => {
  test("takes the filtered entries as a file, in each format; a bundle leaves out the task filter", async () => {
    const { page } = await stage.open("/ledger?agent=clerk&task=task_x");
    await page.getByRole("link", { name: "Export", exact: true }).click();
    await page.getByRole("heading", { name: "Article 14 bundle" }).waitFor();
    expect(await page.getByLabel("Agent", { exact: true }).inputValue()).toBe("clerk");
    await page.getByText("A bundle cannot be limited to one task").waitFor();
    await page.getByLabel("Task", { exact: true }).fill("");
    for (const [title, extension, begins] of [
      ["CSV", "csv", "seq,"],
      ["NDJSON", "ndjson", '{"seq":'],
      ["Article 14 bundle", "zip", "PK"],
    ] as const) {
      const waiting = page.waitForEvent("download");
      await page.getByRole("link", { name: `Download ${title}` }).click();
      const download = await waiting;
      expect(download.suggestedFilename()).toEndWith(`.${extension}`);
      const text = await Bun.file(await download.path()).text();
      expect(text).toStartWith(begins);
      if (extension === "ndjson") expect(text).not.toContain("agent.list");
    }
  });

  test("does not offer a time range that ends before it begins", async () => {
    const { page } = await stage.open("/ledger?tab=export");
    await page.getByLabel("From").fill("2026-02-01T00:00");
    await page.getByLabel("To (before)").fill("2026-01-01T00:00");
    await page.getByText("It must be later than the start.").waitFor();
    expect(await page.getByRole("link", { name: /^Download/ }).count()).toBe(0);
  });
});
