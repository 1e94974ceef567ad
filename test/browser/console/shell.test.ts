/** The frame of every page, on a small screen and without a mouse. */
import { afterAll, beforeAll, setDefaultTimeout, test } from "bun:test";
import { eventually } from "../../support/browser.ts";
import { openConsole, type TestConsole } from "./support.ts";

setDefaultTimeout(60_000);
let stage: TestConsole;
beforeAll(async () => {
  stage = await openConsole();
});
afterAll(() => stage.close());

test("the menu takes the focus when it opens, and returns it when it closes", async () => {
  const { page, close } = await stage.open("/settings/about", { width: 390, height: 800 });
  const menu = page.getByRole("navigation", { name: "Pages" });
  const hasFocus = (selector: string) =>
    page.evaluate<boolean>(`document.activeElement.matches(${JSON.stringify(selector)})`);
  await page.getByRole("button", { name: "Menu" }).focus();
  for (const leave of ["key", "button"]) {
    await page.keyboard.press("Enter");
    await menu.waitFor();
    await eventually(() => hasFocus("#menu li:first-child a"));
    if (leave === "key") await page.keyboard.press("Escape");
    else await page.getByRole("button", { name: "Menu" }).click();
    await menu.waitFor({ state: "hidden" });
    await eventually(() => hasFocus(".menu-button"));
  }
  // The focus moves to the page that was opened.
  await page.keyboard.press("Enter");
  await eventually(() => hasFocus("#menu li:first-child a"));
  await page.keyboard.press("Enter");
  await page.waitForURL(stage.at());
  await eventually(() => hasFocus("#content"));
  await close();
});

test("a page whose script fails to load says so; the menu still works, and the page opens at the next attempt", async () => {
  const { page, close } = await stage.open("/settings/about");
  await page.route("**/*.js", (route) => route.abort());
  const open = (name: string) =>
    page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }).click();
  await open("Agents");
  await page.getByRole("heading", { name: "This page could not be loaded" }).waitFor();
  await page.unroute("**/*.js");
  await open("Vault");
  await page.getByRole("heading", { level: 1, name: "Vault" }).waitFor();
  await open("Agents");
  await page.getByRole("heading", { level: 1, name: "Agents" }).waitFor();
  await close();
});
