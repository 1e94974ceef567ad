/** The vault's page: browsing it by scope, and searching it, as oneself and as an agent. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { becomes, eventually, noSidewaysScroll } from "../../support/browser.ts";
import { remove, write } from "../../support/vault.ts";
import { openConsole, type TestConsole } from "./support.ts";
import { HAS_RUN, IMAGE, SCRIPT } from "./vault-files.ts";

setDefaultTimeout(90_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
  const { gateway } = stage;
  await gateway.agent("clerk", { memory_scope: "support" });
  await write(gateway, {
    title: "Refund approvals",
    scope: "support/policies",
    text: "Refunds of more than 500 euros need the approval of a team lead.",
    source_uri: "https://wiki.example.com/refunds",
    metadata: { lang: "en", year: 2026 },
  });
  await write(gateway, { title: "Severance", scope: "hr", text: "A refund of severance is confidential." });
  await write(gateway, {
    title: `${IMAGE} minutes`,
    scope: "support",
    text: `The markup ${SCRIPT} and ${IMAGE} was a parcel.`,
    source_uri: "javascript:window.hasRun=true",
    metadata: { [SCRIPT]: IMAGE },
  });
});
afterAll(() => stage.close());

const results = (page: Page) => page.getByRole("region", { name: /passages? for/ });
const result = (page: Page, title: string) =>
  results(page)
    .getByRole("listitem")
    .filter({ has: page.getByRole("heading", { name: title, exact: true }) });
const listed = (page: Page, title: string) =>
  page.getByRole("region", { name: "Documents" }).getByRole("link", { name: title, exact: true });

describe("a reader without a right", () => {
  test("signs in first, and then sees the page of this address", async () => {
    const { page } = await stage.browser.page();
    await page.goto(stage.at("/vault?q=approval"));
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await stage.signIn(page);
    await result(page, "Refund approvals").waitFor();
    expect(page.url()).toBe(stage.at("/vault?q=approval"));
  });

  test("to read is told so, and nothing is requested", async () => {
    const secret = await stage.gateway.token({ scopes: ["tasks:read"] });
    const { page, requests } = await stage.open("/vault", { secret });
    await page.getByRole("heading", { name: "You may not read the vault" }).waitFor();
    expect(requests.filter((address) => address.includes("/v1/vault"))).toEqual([]);
  });

  test("to write is offered no action that writes", async () => {
    const secret = await stage.gateway.token({ scopes: ["vault:read"] });
    const { page } = await stage.open("/vault", { secret });
    await listed(page, "Severance").waitFor();
    expect(await page.getByRole("button", { name: /Upload|Paste/ }).count()).toBe(0);
    await listed(page, "Severance").click();
    await page.getByRole("heading", { name: "About it" }).waitFor();
    expect(await page.getByRole("button", { name: /Replace|Delete/ }).count()).toBe(0);
  });

  test("to see more than an agent sees only what that agent does", async () => {
    const secret = await stage.gateway.token({ agent: "clerk", scopes: ["vault:read"] });
    const { page } = await stage.open("/vault?q=refund", { secret });
    await result(page, "Refund approvals").waitFor();
    expect(await result(page, "Severance").count()).toBe(0);
    await page.getByText("Searched as the agent clerk").waitFor();
    expect(await page.getByLabel("Search as agent").count()).toBe(0);
  });
});

test("a chosen scope narrows the list, and is kept in the address", async () => {
  const { page, complaints } = await stage.open("/vault");
  await listed(page, "Severance").waitFor();
  const tree = page.getByRole("navigation", { name: "Scopes" });
  await tree.getByRole("button", { name: "Scopes below support" }).click();
  await tree.getByRole("link", { name: "policies 1 document" }).click();
  await page.getByRole("heading", { name: "Documents in support/policies" }).waitFor();
  await listed(page, "Severance").waitFor({ state: "detached" });
  await listed(page, "Refund approvals").waitFor();
  await page.reload();
  await listed(page, "Refund approvals").waitFor();
  await becomes(tree.getByRole("link", { name: "policies 1 document" }), "[aria-current=true]");
  expect(complaints).toEqual([]);
});

test("documents appear and disappear as they are written and deleted elsewhere", async () => {
  const { page } = await stage.open("/vault?scope=live");
  await page.getByRole("heading", { name: "No documents here" }).waitFor();
  const { id } = await write(stage.gateway, { title: "Just written", scope: "live/deep", text: "new" });
  await listed(page, "Just written").waitFor();
  await page.getByRole("link", { name: "live 1 document" }).waitFor();
  await write(stage.gateway, { id, title: "Written anew", scope: "live/deep", text: "newer" });
  await listed(page, "Written anew").waitFor();
  await remove(stage.gateway, id);
  await page.getByRole("heading", { name: "No documents here" }).waitFor();
  await eventually(async () => (await page.getByRole("link", { name: /^live/ }).count()) === 0);
});

describe("a search", () => {
  test("shows passages with the matching words and the reason for their rank, and links to them", async () => {
    const { page, complaints } = await stage.open("/vault");
    const field = page.getByLabel("Search passages");
    await field.fill("who approves a refnd?");
    await field.press("Enter");
    const found = result(page, "Refund approvals");
    await found.waitFor();
    expect(new URL(page.url()).searchParams.get("q")).toBe("who approves a refnd?");
    expect(await found.locator("p mark").allTextContents()).toEqual(["Refunds", "approval"]);
    await page.getByText("No searched document contains refnd; the search used refund.").waitFor();
    await found.getByText("Why this rank").click();
    const { body } = await stage.gateway.call("POST", "/v1/vault/search", {
      body: { query: "who approves a refnd?", explain: true },
    });
    const { score, explain } = body.results[0];
    expect(body.results[0].title).toBe("Refund approvals");
    await found.getByText(`${score.toFixed(3)}, of words and vectors`).waitFor();
    await found.getByText(`Number 1 by words, score ${explain.keyword.score.toFixed(3)}`).waitFor();
    await found.getByText(`similarity ${explain.vector.score.toFixed(3)}`).waitFor();
    await found.getByRole("link", { name: "Refund approvals", exact: true }).click();
    await page.getByRole("region", { name: "Text of the document" }).locator("mark").waitFor();
    expect(await page.locator(".vault-text mark").textContent()).toContain("Refunds of more than 500 euros");
    await page.goBack();
    await found.waitFor();
    expect(await field.inputValue()).toBe("who approves a refnd?");
    expect(complaints).toEqual([]);
  });

  test("as an agent finds nothing outside its memory scope, and says so", async () => {
    const { page } = await stage.open("/vault?q=refund");
    await result(page, "Severance").waitFor();
    await page.getByLabel("Search as agent").selectOption("clerk");
    await page.getByText("Searched as the agent clerk").waitFor();
    await result(page, "Refund approvals").waitFor();
    expect(await result(page, "Severance").count()).toBe(0);
    await eventually(async () => (await page.getByRole("link", { name: /^hr/ }).count()) === 0);
    await page.getByText("2 documents in 2 scopes").waitFor();
    await page.reload();
    await page.getByText("Searched as the agent clerk").waitFor();
    await page.goto(stage.at("/vault?q=confidential+severance&agent=clerk"));
    await page.getByText("Searched as the agent clerk").waitFor();
    expect(await page.getByText("A refund of severance").count()).toBe(0);
  });

  test("as an agent that does not exist says so", async () => {
    const { page } = await stage.open("/vault?q=refund&agent=nobody");
    await page.getByRole("alert").filter({ hasText: "agent_not_found" }).first().waitFor();
  });

  test("keeps an invalid filter in its field, and applies a valid one", async () => {
    const { page } = await stage.open("/vault?q=refund");
    await result(page, "Severance").waitFor();
    await page.getByText("Search options").click();
    const filter = page.getByLabel("Metadata");
    await filter.fill("year");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByText('"year" does not have the form name=value').waitFor();
    expect(await filter.inputValue()).toBe("year");
    await filter.fill("year=2026");
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await eventually(async () => (await result(page, "Severance").count()) === 0);
    await result(page, "Refund approvals").waitFor();
    await filter.fill('year="2026"');
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await page.getByRole("heading", { name: "Nothing was found" }).waitFor();
    await page.getByRole("link", { name: "Search without the metadata filter" }).click();
    await result(page, "Severance").waitFor();
  });

  test("without vectors does not mention them, and says when documents have changed", async () => {
    const { page } = await stage.open("/vault?q=approval&mode=keyword&scope=support&newer=30d");
    const found = result(page, "Refund approvals");
    await found.getByText("Why this rank").click();
    await found.getByText("of words").waitFor();
    await found.getByText("The score was multiplied by 1.000").waitFor();
    await page.getByText("Limited to support and below.").waitFor();
    await write(stage.gateway, {
      title: "A second approval",
      scope: "support/more",
      text: "Approval, again.",
    });
    await page.getByText("Documents have changed since this search.").waitFor();
    await page.getByRole("button", { name: "Search again" }).click();
    await result(page, "A second approval").waitFor();
  });
});

test("markup in titles, texts, sources and metadata is shown as text, and a script's address is not a link", async () => {
  const { page } = await stage.open(`/vault?q=${encodeURIComponent(`parcel ${SCRIPT}`)}`);
  const found = result(page, `${IMAGE} minutes`);
  await found.waitFor();
  expect(await found.textContent()).toContain(SCRIPT);
  expect(await page.getByRole("link", { name: "javascript:" }).count()).toBe(0);
  await found.getByRole("link", { name: `${IMAGE} minutes` }).click();
  const text = page.getByRole("region", { name: "Text of the document" });
  await text.waitFor();
  expect(await text.textContent()).toBe(`The markup ${SCRIPT} and ${IMAGE} was a parcel.`);
  expect(await page.locator("main img, main script").count()).toBe(0);
  expect(await page.evaluate<boolean>(HAS_RUN)).toBe(false);
});

describe.each(["light", "dark"] as const)("in %s", (scheme) => {
  test.each([1_440, 390])("axe finds nothing serious at %d px", async (width) => {
    const { page, complaints } = await stage.open("/vault", { scheme, width });
    await listed(page, "Severance").waitFor();
    await noSidewaysScroll(page);
    expect(await axe(page)).toEqual([]);
    await page.goto(stage.at("/vault?q=refund&filter=year%3D2026"));
    await result(page, "Refund approvals").getByText("Why this rank").click();
    await noSidewaysScroll(page);
    expect(await axe(page)).toEqual([]);
    expect(complaints).toEqual([]);
  });
});
