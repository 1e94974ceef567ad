/** One document's page: its text and a passage of it, its metadata, replacing and deleting it. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { eventually, noSidewaysScroll } from "../../support/browser.ts";
import { remove, write } from "../../support/vault.ts";
import { openConsole, type TestConsole } from "./support.ts";
import { file, pdf } from "./vault-files.ts";

setDefaultTimeout(90_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

const text = (page: Page) => page.getByRole("region", { name: "Text of the document" });
const dialog = (page: Page) => page.getByRole("dialog");
const read = async (id: string) => stage.gateway.call("GET", `/v1/vault/documents/${id}`);

test("a missing document is reported, and one that is deleted elsewhere is reported at once", async () => {
  const { id } = await write(stage.gateway, { text: "Soon gone." });
  const { page } = await stage.open("/vault/documents/doc_none");
  await page.getByRole("heading", { name: "There is no such document" }).waitFor();
  await page.goto(stage.at(`/vault/documents/${id}`));
  await text(page).getByText("Soon gone.").waitFor();
  const { title } = (await read(id)).body;
  await page.getByRole("heading", { level: 1, name: title, exact: true }).waitFor();
  await remove(stage.gateway, id);
  await page.getByRole("heading", { name: "There is no such document" }).waitFor();
  expect(await page.getByRole("heading", { level: 1 }).textContent()).toBe("Document");
  expect(await page.title()).toBe("Document · Gatehouse");
});

test("a document's properties are shown, with links to its scope and its source", async () => {
  const { id } = await write(stage.gateway, {
    title: "Facts",
    scope: "facts/deep",
    text: "A few words.",
    source_uri: "https://example.com/facts?a=1&b=2",
    metadata: { lang: "en", year: 2026 },
  });
  const { page, complaints } = await stage.open(`/vault/documents/${id}`);
  const facts = page.locator(".card").filter({ hasText: "About it" });
  for (const known of ["facts/deep", "text", "12", "ready", "lang=en", "year=2026", id]) {
    await facts.getByText(known, { exact: true }).first().waitFor();
  }
  const source = facts.getByRole("link", { name: "https://example.com/facts?a=1&b=2" });
  expect(await source.getAttribute("href")).toBe("https://example.com/facts?a=1&b=2");
  expect(await source.getAttribute("rel")).toContain("noreferrer");
  await facts.getByRole("link", { name: "facts/deep" }).click();
  await page.getByRole("heading", { name: "Documents in facts/deep" }).waitFor();
  expect(complaints).toEqual([]);
});

test("a passage far down a long text is marked and in view, and survives a reload", async () => {
  const before = "A line that comes before the one that is meant.\n".repeat(60_000);
  const passage = "This is what was meant, on one line\nand on another.";
  const { id } = await write(stage.gateway, {
    title: "Long",
    text: `${before}${passage}\n${"After it.\n".repeat(50_000)}`,
  });
  const [start, end] = [before.length, before.length + passage.length];
  const { page } = await stage.open(`/vault/documents/${id}?start=${start}&end=${end}`);
  const marked = text(page).locator("mark");
  const inSight = () =>
    page.evaluate<boolean>(`(() => {
      const mark = document.querySelector(".vault-text mark")?.getBoundingClientRect();
      const frame = document.querySelector(".vault-text").getBoundingClientRect();
      return mark !== undefined && mark.height > 0 && mark.top >= frame.top && mark.bottom <= frame.bottom;
    })()`);
  for (const _ of ["opened", "loaded again"]) {
    await marked.waitFor();
    await eventually(inSight);
    expect(await marked.textContent()).toBe(passage);
    await page.reload();
  }
  await page.goto(stage.at(`/vault/documents/${id}?start=9000000&end=9000001`));
  await page.getByText("The text ends before this passage:").waitFor();
  expect(await marked.count()).toBe(0);
});

test("a refused replacement keeps the input; an accepted one replaces the text under the same id", async () => {
  const { id } = await write(stage.gateway, { title: "Before", text: "The old text.", metadata: { n: 1 } });
  const { page } = await stage.open(`/vault/documents/${id}`);
  await text(page).getByText("The old text.").waitFor();
  await page.getByRole("button", { name: "Replace" }).click();
  const field = dialog(page).getByLabel("Text", { exact: true });
  expect(await field.inputValue()).toBe("The old text.");
  await field.fill("The new text.");
  await dialog(page)
    .getByLabel("Source (optional)")
    .fill(`https://example.com/${"a".repeat(2_000)}`);
  await dialog(page).getByRole("button", { name: "Replace the document" }).click();
  await dialog(page).locator(".field", { hasText: "Source" }).locator(".error").waitFor();
  expect(await field.inputValue()).toBe("The new text.");
  await dialog(page).getByLabel("Source (optional)").fill("");
  await dialog(page).getByLabel("Title").fill("After");
  await dialog(page).getByRole("button", { name: "Replace the document" }).click();
  await text(page).getByText("The new text.").waitFor();
  await page.getByRole("heading", { level: 1, name: "After" }).waitFor();
  expect((await read(id)).body).toMatchObject({ title: "After", text: "The new text.", metadata: { n: 1 } });
});

test("a half-typed replacement is discarded only after confirmation", async () => {
  const { id } = await write(stage.gateway, { title: "Kept", text: "The old text." });
  const { page } = await stage.open(`/vault/documents/${id}`);
  await page.getByRole("button", { name: "Replace" }).click();
  const form = page.getByRole("dialog", { name: "Replace the document" });
  await form.getByLabel("Text", { exact: true }).fill("Half of the new");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Keep editing" }).click();
  expect(await form.getByLabel("Text", { exact: true }).inputValue()).toBe("Half of the new");
  await form.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Discard" }).click();
  await form.waitFor({ state: "detached" });
  expect((await read(id)).body.text).toBe("The old text.");
});

test("a file replaces a document, and an unreadable file does not", async () => {
  const { id } = await write(stage.gateway, { title: "Kept", text: "The old text." });
  const { page } = await stage.open(`/vault/documents/${id}`);
  await page.getByRole("button", { name: "Replace" }).click();
  await dialog(page).getByLabel("From a file").check();
  await dialog(page)
    .getByLabel("File", { exact: true })
    .setInputFiles([file("broken.pdf", "none")]);
  await dialog(page).getByRole("button", { name: "Replace the document" }).click();
  await dialog(page).locator(".field .error", { hasText: "not a PDF file" }).waitFor();
  expect((await read(id)).body.text).toBe("The old text.");
  await dialog(page)
    .getByLabel("File", { exact: true })
    .setInputFiles([file("new.pdf", pdf("Printed anew"))]);
  await dialog(page).getByRole("button", { name: "Replace the document" }).click();
  await text(page).getByText("Printed anew").waitFor();
  expect((await read(id)).body).toMatchObject({ title: "Kept", content_type: "application/pdf" });
});

test("deleting is not offered without the right to erase; with it, a document is deleted with its quotes", async () => {
  const { id } = await write(stage.gateway, { title: "To be deleted", scope: "bin", text: "Old." });
  const secret = await stage.gateway.token({ scopes: ["vault:read", "vault:write"] });
  const writer = await stage.open(`/vault/documents/${id}`, { secret });
  await writer.page.getByRole("button", { name: "Delete" }).click();
  await dialog(writer.page).getByText("settings:write").waitFor();
  expect(await dialog(writer.page).getByRole("checkbox").count()).toBe(0);
  await dialog(writer.page).getByRole("button", { name: "Cancel" }).click();
  expect((await read(id)).status).toBe(200);

  const { page, requests } = await stage.open(`/vault/documents/${id}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByLabel("Also erase what tasks have quoted from it").check();
  await dialog(page).getByRole("button", { name: "Delete the document" }).click();
  await page.getByRole("heading", { name: "No documents here" }).waitFor();
  expect(page.url()).toBe(stage.at("/vault?scope=bin"));
  expect(requests.some((address) => address.endsWith(`${id}?payloads=true`))).toBe(true);
  expect((await read(id)).status).toBe(404);
});

test.each([
  ["light", 1_440],
  ["light", 390],
  ["dark", 1_440],
  ["dark", 390],
] as const)("axe finds nothing serious in %s at %d px", async (scheme, width) => {
  const { id } = await write(stage.gateway, {
    title: "W".repeat(300),
    text: `${"x".repeat(20_000)} the end`,
  });
  const { page, complaints } = await stage.open(`/vault/documents/${id}?start=5&end=15000`, {
    scheme,
    width,
  });
  await text(page).locator("mark").first().waitFor();
  await noSidewaysScroll(page);
  expect(await axe(page)).toEqual([]);
  await page.getByRole("button", { name: "Replace" }).click();
  await dialog(page).waitFor();
  expect(await axe(page)).toEqual([]);
  expect(complaints).toEqual([]);
});
