/**
 * An entry's page: its contents, its counterpart (intent or outcome), and its proof, which shows what does not match.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { noSidewaysScroll } from "../../support/browser.ts";
import { run } from "../../tasks/support.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(90_000);
const MARKUP = "<img src=x onerror=alert(1)>";
let stage: TestConsole;
let entries: readonly Entry[];

interface Entry {
  readonly seq: number;
  readonly action: string;
  readonly phase: string;
  readonly ref: number | null;
  readonly leaf: string;
}

beforeAll(async () => {
  stage = await openConsole();
  const { gateway, model } = stage;
  await gateway.agent("clerk");
  model.script("small", { chunks: ["done"], usage: { prompt_tokens: 1_000, completion_tokens: 1_000 } });
  await run(gateway, { agent: "clerk", tier: 1 });
  const ada = await gateway.token({ name: "ada", scopes: ["admin"], person: `Ada ${MARKUP}`, role: "Head" });
  await gateway.call("POST", "/v1/agents/clerk/stop", { token: ada });
  await gateway.call("POST", "/v1/agents/clerk/resume", { token: ada });
  entries = (await gateway.call("GET", "/v1/ledger")).body.data;
});
afterAll(() => stage.close());

function entryOf(action: string, phase = "single"): Entry {
  const found = entries.find((entry) => entry.action === action && entry.phase === phase);
  if (!found) throw new Error(`there is no ${phase} of ${action}`);
  return found;
}

const fits = (page: Page) => page.locator('.proof-checks [data-good="true"]').count();
const ticks = (page: Page) => page.locator(".proof-tick").count();
const open = (seq: number) => stage.open(`/ledger/${seq}`);
const holds = (page: Page) => page.getByText("holds", { exact: true }).waitFor();
const broken = (page: Page) => page.getByText("broken", { exact: true }).waitFor();

describe("a tampered answer is shown as broken if the change is", () => {
  const seq = 5;

  /** The page of an entry. Answers whose path begins with `path` are changed on their way to it. */
  // biome-ignore lint/suspicious/noExplicitAny: whatever is answered may be changed.
  async function tampered(path: string, change: (body: any) => void): Promise<Page> {
    const { page } = await stage.open("/ledger?tab=export");
    await page.route(`**${path}`, async (route) => {
      const answer = await route.fetch();
      const body = await answer.json();
      change(body);
      await route.fulfill({ response: answer, json: body });
    });
    await page.goto(stage.at(`/ledger/${seq}`));
    await broken(page);
    return page;
  }
  const entry = `/v1/ledger/${seq}`;
  const proof = `${entry}/proof`;
  const other = (base64: string) => {
    const bytes = Buffer.from(base64, "base64");
    bytes[0] = (bytes[0] ?? 0) ^ 1;
    return bytes.toString("base64");
  };

  test("in the bytes", async () => {
    const page = await tampered(entry, (body) => {
      const text = Buffer.from(body.bytes, "base64")
        .toString()
        .replace('"outcome":"succeeded"', '"outcome":"denied"');
      body.bytes = Buffer.from(text).toString("base64");
      body.outcome = "denied";
    });
    await page.getByText("The bytes do not match the leaf hash in the entry").waitFor();
    expect(await ticks(page)).toBe(0);
    expect(await fits(page)).toBe(1);
  });

  test("in a field next to the bytes", async () => {
    const page = await tampered(entry, (body) => {
      body.actor = "token:tok_other";
    });
    await page.getByText("The field actor differs from the value that was hashed.").waitFor();
  });

  test("in a hash of the path: none of the computed nodes is ticked", async () => {
    const page = await tampered(proof, (body) => {
      body.inclusion[1] = other(body.inclusion[1]);
    });
    await page.getByText("The hashes lead to a different root from the checkpoint's.").waitFor();
    await page.getByText("The checkpoint has a different root").waitFor();
    expect(await ticks(page)).toBe(0);
    expect(await page.locator(".proof-cross").count()).toBe(1);
    expect(await page.locator(".proof-node-own").count()).toBeGreaterThan(3);
  });

  test("in the number of hashes", async () => {
    const page = await tampered(proof, (body) => body.inclusion.pop());
    await page.getByText("The proof has too many or too few hashes for its position in the tree").waitFor();
    await page.getByText("there is nothing to draw").waitFor();
  });

  test("in the checkpoint's size, which is signed", async () => {
    const page = await tampered(proof, (body) => {
      const lines = body.checkpoint.split("\n");
      lines[1] = String(Number(lines[1]) + 1);
      body.checkpoint = lines.join("\n");
    });
    await page
      .getByText(/The signature of .* is invalid\./)
      .first()
      .waitFor();
  });

  test("in the key", async () => {
    const page = await tampered("/v1/ledger/key", (body) => {
      body.vkey = body.vkey.replace(/.{6}$/, (end: string) => (end === "AAAAAA" ? "BBBBBB" : "AAAAAA"));
    });
    await page.getByText("The verifier key's id does not match its key.").first().waitFor();
  });
});

describe("an entry", () => {
  test("is proven: each step is computed, drawn and ticked, and listed in the table", async () => {
    const { seq, leaf } = entryOf("agent.create");
    const { page, complaints } = await open(seq);
    await holds(page);
    expect(await fits(page)).toBe(3);
    const { body } = await stage.gateway.call("GET", `/v1/ledger/${seq}/proof`);
    const own = await page.locator(".proof-node-own").count();
    expect(await ticks(page)).toBe(own);
    const table = page.getByRole("table", { name: "The path from the leaf to the root" });
    expect(await table.textContent()).toContain(leaf);
    expect(await page.locator(".proof-node title").first().textContent()).toContain(leaf);
    // The tree has grown since then, perhaps by a level.
    expect(own - 1).toBeGreaterThanOrEqual(body.inclusion.length - 1);
    await page.getByRole("region", { name: "The checkpoint, a signed note" }).waitFor();
    expect(complaints).toEqual([]);
  });

  test("shows exactly the bytes that were hashed", async () => {
    const { seq } = entryOf("agent.create");
    const { body } = await stage.gateway.call("GET", `/v1/ledger/${seq}`);
    const { page } = await open(seq);
    const bytes = page.getByRole("region", { name: "The entry's exact bytes" });
    expect(await bytes.textContent()).toBe(Buffer.from(body.bytes, "base64").toString());
  });

  test("links its intent to its outcome, and back", async () => {
    const intent = entryOf("model.call", "intent");
    const outcome = entries.find(({ ref }) => ref === intent.seq)?.seq;
    const { page } = await open(intent.seq);
    await page.getByRole("link", { name: `Outcome: entry ${outcome}` }).click();
    await page.waitForURL(stage.at(`/ledger/${outcome}`));
    await page.getByRole("link", { name: `Intent: entry ${intent.seq}` }).waitFor();
    expect(await page.getByRole("link", { name: "clerk" }).getAttribute("href")).toBe(
      "/console/agents/clerk",
    );
  });

  test("names a person's decision, and shows markup in it as text", async () => {
    const { page, complaints } = await open(entryOf("oversight.stop").seq);
    await holds(page);
    await page.getByText(`Ada ${MARKUP}`, { exact: true }).waitFor();
    expect(await page.locator("main img").count()).toBe(0);
    expect(complaints).toEqual([]);
  });

  test("that does not exist is reported as missing", async () => {
    for (const seq of ["999999", "0", "%3Cscript%3E"]) {
      const { page, close } = await stage.open(`/ledger/${seq}`);
      await page.getByRole("heading", { name: "There is no such entry" }).waitFor();
      await close();
    }
  });
});

describe.each(["light", "dark"] as const)("%s", (scheme) => {
  test.each([1_440, 390])("%d px: axe finds nothing serious, and nothing scrolls sideways", async (width) => {
    const { page, complaints } = await stage.open("/ledger", { scheme, width });
    for (const [path, sign] of [
      ["/ledger", "signature good"],
      ["/ledger?agent=nobody", "No entry matches"],
      ["/ledger?tab=verify", "What this shows, and what it cannot show"],
      ["/ledger?tab=export", "CSV"],
      [`/ledger/${entryOf("model.call", "intent").seq}`, "All hashes"],
    ] as const) {
      await page.goto(stage.at(path));
      await page.getByText(sign, { exact: true }).first().waitFor();
      expect(await axe(page)).toEqual([]);
      await noSidewaysScroll(page);
    }
    expect(complaints).toEqual([]);
  });
});
