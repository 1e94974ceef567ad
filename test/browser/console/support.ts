/** What tests of the console need: a whole gateway, a scripted model and a real browser. */
import type { Page } from "playwright-core";
import { type BrowserPage, type PageOptions, startBrowser, type TestBrowser } from "../../support/browser.ts";
import type { FakeModel } from "../../support/fake-model.ts";
import type { TestGateway } from "../../support/gateway.ts";
import { type StageOptions, startStage } from "../../tasks/support.ts";

/** The models of two tiers and their credits per 1,000 tokens. The first model of tier 1 falls back to the second. */
const TIERS = { 1: ["small", "spare"], 2: ["large"] } as const;
const PRICES = { small: [0.1, 0.4], spare: [0.2, 0.8], large: [1, 4] } as const;

export interface TestConsole {
  readonly gateway: TestGateway;
  /** Answers for `up/small` and `up/spare` of tier 1, and `up/large` of tier 2. */
  readonly model: FakeModel;
  readonly browser: TestBrowser;
  /** The address of a console page: `at("/tasks")` is `{url}/console/tasks`, and `at()` is the first page. */
  at(path?: string): string;
  /**
   * Signs in as a person does, on the sign-in page shown at the current address (or at the first page), and waits
   * until that page is gone. `secret` is a token's; default: the admin's.
   */
  signIn(page: Page, secret?: string): Promise<void>;
  /** Opens a path of the console, signed in. */
  open(path?: string, options?: PageOptions & { readonly secret?: string }): Promise<BrowserPage>;
  close(): Promise<void>;
}

/** One console for a test file. `options` go to its gateway; a clock given here applies to the server only. */
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
