/** Adding documents to the vault: files chosen or dropped, and pasted texts. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { Page } from "playwright-core";
import { axe } from "../../support/axe.ts";
import { eventually, noSidewaysScroll } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";
import { docx, drop, file, HAS_RUN, IMAGE, pdf, SCRIPT } from "./vault-files.ts";

setDefaultTimeout(90_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

const input = (page: Page) => page.locator('input[type="file"]').first();
const dialog = (page: Page) => page.getByRole("dialog");
const upload = (page: Page, name: string) =>
  page.locator("section").filter({ hasText: "Uploads" }).getByRole("listitem").filter({ hasText: name });
const listed = (page: Page, title: string) =>
  page.getByRole("region", { name: "Documents" }).getByRole("link", { name: title, exact: true });

interface Stored {
  readonly id: string;
  readonly title: string;
  readonly scope: string;
  readonly content_type: string;
  readonly metadata: object;
  readonly source_uri: string | null;
}

/** The documents of a scope according to REST, by title. */
async function storedIn(scope: string): Promise<ReadonlyMap<string, Stored>> {
  const { body } = await stage.gateway.call("GET", `/v1/vault/documents?scope=${scope}`);
  return new Map((body.data as Stored[]).map((document) => [document.title, document]));
}

async function textOf(stored: Stored | undefined): Promise<string> {
  return (await stage.gateway.call("GET", `/v1/vault/documents/${stored?.id}`)).body.text;
}

describe("a file is refused", () => {
  test("with an explanation before it is sent, if its type cannot be read, or it is empty or too large", async () => {
    const { page, requests } = await stage.open("/vault");
    await page.getByRole("heading", { name: "The vault is empty" }).waitFor();
    await drop(page, [
      { name: "photo.png", text: "x" },
      { name: "empty.txt", text: "" },
      { name: "big.pdf", zeros: 40_000_000 },
    ]);
    await dialog(page).getByText("Left out. Files of this type cannot be read.").waitFor();
    await dialog(page).getByText("Left out. The file is empty.").waitFor();
    await dialog(page).getByText("Left out. Too large: 40 MB. The limit is 39 MB.").waitFor();
    expect(await dialog(page).getByRole("button", { name: "Add 0 documents" }).isDisabled()).toBe(true);
    expect(requests.filter((address) => address.endsWith("/v1/vault/documents"))).toEqual([]);
  });

  test("without a scope, and with an invalid scope", async () => {
    const { page } = await stage.open("/vault");
    await input(page).setInputFiles([file("a.txt", "text")]);
    await dialog(page).getByRole("button", { name: "Add 1 document" }).click();
    await dialog(page).getByText("Enter a scope").waitFor();
    await dialog(page).getByLabel("Scope").fill("Legal Contracts");
    await dialog(page).getByRole("button", { name: "Add 1 document" }).click();
    await dialog(page).getByText("Use a path such as legal/contracts").waitFor();
    expect(await dialog(page).getByLabel("Scope").inputValue()).toBe("Legal Contracts");
  });

  test("by the server, each with its reason, while the others are added", async () => {
    const { page } = await stage.open("/vault?scope=refused");
    await input(page).setInputFiles([
      file("broken.pdf", "no PDF at all"),
      file("binary.txt", "NUL \0 inside"),
      file("fine.txt", "A fine text."),
    ]);
    await dialog(page).getByRole("button", { name: "Add 3 documents" }).click();
    await upload(page, "broken.pdf").getByText("The file is not a PDF file that can be read").waitFor();
    await upload(page, "binary.txt").getByText("The file has a NUL character").waitFor();
    await upload(page, "fine").getByText("Added, 1 passage").waitFor();
    await page.getByText("3 files: 1 added, 2 failed").waitFor();
    expect([...(await storedIn("refused")).keys()]).toEqual(["fine"]);
  });
});

test("files of every kind are added to the chosen scope under their names, and their scripts stay text", async () => {
  const { page } = await stage.open("/vault?scope=kinds");
  await page.getByRole("heading", { name: "No documents here" }).waitFor();
  await input(page).setInputFiles([
    file("plain.txt", `Plain ${SCRIPT}`),
    file(`${IMAGE}.md`, `# Heading\n\n${IMAGE}`),
    file("page.html", `<h1>Page</h1>${SCRIPT}<p>Shown.</p>${IMAGE}`),
    file("sheet.csv", "name,value\nrow,1\n"),
    file("paper.PDF", pdf("A printed line")),
    file("letter.docx", docx("A written line")),
  ]);
  expect(await dialog(page).getByLabel("Scope").inputValue()).toBe("kinds");
  await dialog(page).getByRole("button", { name: "Add 6 documents" }).click();
  await page.getByText("6 files: 6 added").waitFor();
  for (const title of ["plain", IMAGE, "page", "sheet", "paper", "letter"])
    await listed(page, title).waitFor();
  const stored = await storedIn("kinds");
  expect([...stored.values()].map(({ title, content_type }) => `${title} ${content_type}`).sort()).toEqual(
    [
      `${IMAGE} text/markdown`,
      "letter application/vnd.openxmlformats-officedocument.wordprocessingml.document",
      "page text/html",
      "paper application/pdf",
      "plain text/plain",
      "sheet text/csv",
    ].sort(),
  );
  expect(await textOf(stored.get("paper"))).toBe("A printed line");
  expect(await textOf(stored.get("letter"))).toBe("A written line");
  await upload(page, "plain").getByRole("link", { name: "plain" }).click();
  const text = page.getByRole("region", { name: "Text of the document" });
  await text.waitFor();
  expect(await text.textContent()).toBe(`Plain ${SCRIPT}`);
  expect(await page.evaluate<boolean>(HAS_RUN)).toBe(false);
});

test("files dropped anywhere on the page are added completely, whatever their length", async () => {
  const { page } = await stage.open("/vault?scope=dropped");
  // Longer than a slice of base64, with characters of more than one byte.
  const text = "Ein längerer Text über Rückgaben – Zeile für Zeile.\n".repeat(70_000);
  await drop(page, [
    { name: "long.txt", text },
    { name: "short.md", text: "# Short" },
  ]);
  await dialog(page).getByRole("button", { name: "Add 2 documents" }).click();
  await page.getByText("2 files: 2 added").waitFor();
  const stored = await storedIn("dropped");
  expect((await textOf(stored.get("long"))) === text).toBe(true);
  await page.getByRole("button", { name: "Clear" }).click();
  await page.getByRole("heading", { name: "Uploads" }).waitFor({ state: "hidden" });
});

test("two files are sent at a time, and a cancelled one is not added", async () => {
  const { page } = await stage.open("/vault?scope=queue");
  const held: (() => void)[] = [];
  await page.route("**/v1/vault/documents", async (route) => {
    if (route.request().method() !== "POST") return route.continue();
    await new Promise<void>((resolve) => held.push(resolve));
    // A request that has been cancelled cannot be continued.
    return route.continue().catch(() => undefined);
  });
  await input(page).setInputFiles(["one", "two", "three"].map((name) => file(`${name}.txt`, `Text ${name}`)));
  await dialog(page).getByRole("button", { name: "Add 3 documents" }).click();
  await eventually(() => held.length === 2);
  await upload(page, "three.txt").getByText("Waiting").waitFor();
  await page.getByRole("button", { name: "Cancel one.txt" }).click();
  await upload(page, "one.txt").getByText("Cancelled. Nothing was added").waitFor();
  await eventually(() => held.length === 3);
  for (const release of held) release();
  await page.getByText("3 files: 2 added").waitFor();
  expect([...(await storedIn("queue")).keys()].sort()).toEqual(["three", "two"]);
});

test("a file that could not be sent is sent again once the server answers", async () => {
  const { page, context } = await stage.open("/vault?scope=again");
  await input(page).setInputFiles([file("late.txt", "Late, but there.")]);
  await context.setOffline(true);
  await dialog(page).getByRole("button", { name: "Add 1 document" }).click();
  await upload(page, "late.txt").getByText("The server does not answer.").waitFor();
  await context.setOffline(false);
  await page.getByRole("button", { name: "Try again: late.txt" }).click();
  await upload(page, "late").getByText("Added, 1 passage").waitFor();
  expect([...(await storedIn("again")).keys()]).toEqual(["late"]);
});

describe("a pasted text", () => {
  test("keeps the input if the server refuses it, with the reason at its field", async () => {
    const { page } = await stage.open("/vault?scope=pasted");
    await page.getByRole("button", { name: "Paste text" }).click();
    await dialog(page).getByLabel("Title").fill("Not JSON");
    await dialog(page).getByLabel("Kind of text").selectOption("JSON");
    await dialog(page).getByLabel("Text", { exact: true }).fill("{ open");
    await dialog(page).getByRole("button", { name: "Add the document" }).click();
    const field = dialog(page)
      .locator(".field", { has: page.locator("textarea") })
      .last();
    await field.locator(".error").waitFor();
    expect(await dialog(page).getByLabel("Text", { exact: true }).inputValue()).toBe("{ open");
    expect((await storedIn("pasted")).size).toBe(0);
  });

  test("is discarded only after confirmation", async () => {
    const { page } = await stage.open("/vault?scope=pasted");
    await page.getByRole("button", { name: "Paste text" }).click();
    const form = page.getByRole("dialog", { name: "Add text to the vault" });
    await form.getByLabel("Text", { exact: true }).fill("Long in the making.");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Keep editing" }).click();
    expect(await form.getByLabel("Text", { exact: true }).inputValue()).toBe("Long in the making.");
    await form.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Discard" }).click();
    await form.waitFor({ state: "detached" });
  });

  test("is added with its source and metadata by keyboard", async () => {
    const { page } = await stage.open("/vault?scope=pasted");
    await page.getByRole("button", { name: "Paste text" }).focus();
    await page.keyboard.press("Enter");
    await dialog(page).waitFor();
    await page.keyboard.type("A note");
    for (const typed of [null, "https://example.com/a", 'lang=en\nyear=2026\nzip="01"', null, "By hand."]) {
      await page.keyboard.press("Tab");
      if (typed !== null) await page.keyboard.type(typed);
    }
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await listed(page, "A note").waitFor();
    const stored = (await storedIn("pasted")).get("A note");
    expect(stored).toMatchObject({
      scope: "pasted",
      source_uri: "https://example.com/a",
      metadata: { lang: "en", year: 2026, zip: "01" },
    });
    expect(await textOf(stored)).toBe("By hand.");
  });
});

test.each([
  ["light", 390],
  ["dark", 1_440],
] as const)("axe finds nothing serious in %s at %d px", async (scheme, width) => {
  const { page } = await stage.open("/vault?scope=shown", { scheme, width });
  await input(page).setInputFiles([file("a".repeat(120).concat(".txt"), "x"), file("photo.png", "x")]);
  await dialog(page).waitFor();
  await noSidewaysScroll(page);
  expect(await axe(page)).toEqual([]);
  await dialog(page).getByRole("button", { name: "Add 1 document" }).click();
  await page.getByText("1 file: 1 added").waitFor();
  await noSidewaysScroll(page);
  expect(await axe(page)).toEqual([]);
});
