import type { Page } from "playwright-core";
import { startBrowser, type TestBrowser } from "../../../test/support/browser.ts";
import { findChromium } from "../../../test/support/chromium.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { Skipped } from "../report.ts";

/** The baseline: a response from the same server that the browser shows without loading or running anything else. */
export const PLAIN = "/livez";

/** A person signed in to a gateway's console, in a real browser. */
export class Visitor {
  readonly #browser: TestBrowser;
  readonly #address: string;
  readonly page: Page;

  private constructor(browser: TestBrowser, address: string, page: Page) {
    this.#browser = browser;
    this.#address = address;
    this.page = page;
  }

  /** @throws Skipped if this machine has no browser */
  static async arrive({ port, admin }: Pick<Gatehouse, "port" | "admin">): Promise<Visitor> {
    if (findChromium() === undefined) throw new Skipped("there is no Chromium on PATH");
    const browser = await startBrowser();
    const { page } = await browser.page({ motion: "no-preference" });
    const visitor = new Visitor(browser, `http://127.0.0.1:${port}`, page);
    await visitor.go("/console");
    await page.getByLabel("Token", { exact: true }).fill(admin);
    const button = page.getByRole("button", { name: "Sign in", exact: true });
    await button.click();
    await button.waitFor({ state: "hidden" });
    return visitor;
  }

  async go(path: string): Promise<void> {
    await this.page.goto(this.#address + path);
  }

  /** Forgets all loaded files, but stays signed in. */
  async forget(): Promise<void> {
    const protocol = await this.page.context().newCDPSession(this.page);
    await protocol.send("Network.clearBrowserCache");
    await protocol.detach();
  }

  /** When the page first showed something, in milliseconds after its address was requested. */
  firstPaint(): Promise<number> {
    return this.until(`performance.getEntriesByName("first-contentful-paint")[0]?.startTime`);
  }

  /** Evaluates an expression at every frame, and returns its value as soon as it is above 0. */
  until(expression: string): Promise<number> {
    return this.page.evaluate<number>(`new Promise((resolve) => {
      (function look() {
        const value = ${expression};
        if (value > 0) resolve(value);
        else requestAnimationFrame(look);
      })();
    })`);
  }

  leave(): Promise<void> {
    return this.#browser.close();
  }
}
