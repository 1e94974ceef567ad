/** What tests of the console stand on: a whole gateway, a model that is scripted, and a real browser. */
import type { Page } from "playwright-core";
import { type BrowserPage, type PageOptions, startBrowser, type TestBrowser } from "../../support/browser.ts";
import type { FakeModel } from "../../support/fake-model.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { type StageOptions, startStage } from "../../tasks/support.ts";

/** Credits per 1,000 tokens of the models of two tiers: the second one of the first tier is what the first falls back to. */
const TIERS = { 1: ["small", "spare"], 2: ["large"] } as const;
const PRICES = { small: [0.1, 0.4], spare: [0.2, 0.8], large: [1, 4] } as const;

export interface TestConsole {
  readonly gateway: TestGateway;
  /** Answers for `up/small` and `up/spare` of tier 1, and `up/large` of tier 2. */
  readonly model: FakeModel;
  readonly browser: TestBrowser;
  /** Where a page of the console is: `at("/tasks")` is `{url}/console/tasks`, and `at()` its first page. */
  at(path?: string): string;
  /**
   * Signs in as a person does, on the sign-in page of the address that is open, or of the first page, and waits until that
   * page has made room. `secret` is a token's; default: the admin's.
   */
  signIn(page: Page, secret?: string): Promise<void>;
  /** A page that is signed in, at a path of the console. */
  open(path?: string, options?: PageOptions & { readonly secret?: string }): Promise<BrowserPage>;
  close(): Promise<void>;
}

/** One for a test file. `options` go to its gateway; a clock that is given stands still for the server alone. */
export async function openConsole(options: StageOptions = {}): Promise<TestConsole> {
  const stage = await startStage({ tiers: TIERS, prices: PRICES, ...options });
  const { gateway, upstream: model } = stage;
  const browser = await startBrowser().catch(async (error: unknown) => {
    await stage.stop();
    throw error;
  });
  const at = (path = ""): string => `${gateway.url}/console${path}`;

  async function signIn(page: Page, secret = gateway.admin): Promise<void> {
    if (!page.url().startsWith(at())) await page.goto(at());
    const button = page.getByRole("button", { name: "Sign in", exact: true });
    await page.getByLabel("Token", { exact: true }).fill(secret);
    await button.click();
    await button.waitFor({ state: "hidden" });
  }

  return {
    gateway,
    model,
    browser,
    at,
    signIn,
    async open(path = "", { secret, ...pageOptions } = {}) {
      const opened = await browser.page(pageOptions);
      await opened.page.goto(at(path));
      await signIn(opened.page, secret);
      return opened;
    },
    async close() {
      await browser.close();
      await stage.stop();
    },
  };
}
