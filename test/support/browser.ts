/** A real browser for tests: the Chromium of this machine, without a window, driven by playwright-core. */
import { type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { findChromium } from "./chromium.ts";

/** Of one step: for a machine that is slow and busy. What does come is never waited for. */
const LONGEST_MS = 60_000;
const ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];
/** What the browser says of a request that the page itself gave up, such as a stream of a page that was left. */
const GIVEN_UP = "net::ERR_ABORTED";

export interface PageOptions {
  /** Of the window, in CSS pixels. Default: 1440 × 900. */
  readonly width?: number;
  readonly height?: number;
  /** Default: light. */
  readonly scheme?: "light" | "dark";
  /** Whether motion is reduced, as a person may ask for it. Default: yes, so that nothing has to be waited for. */
  readonly motion?: "reduce" | "no-preference";
  /** An IANA time zone. Default: UTC. */
  readonly zone?: string;
  /** It has no network: files alone can be opened. */
  readonly offline?: boolean;
}

/** A page in a context of its own: no cookie and nothing stored is shared with another one. */
export interface BrowserPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /**
   * What the browser complains of: errors and warnings in its console, what the page's policy forbids among them,
   * exceptions that nobody caught, requests that failed. A test that provokes some takes them out.
   */
  readonly complaints: string[];
  /** Addresses that were asked for, oldest first, the page's own among them. */
  readonly requests: string[];
  close(): Promise<void>;
}

export interface TestBrowser {
  page(options?: PageOptions): Promise<BrowserPage>;
  /** Ends it, with all of its pages. */
  close(): Promise<void>;
}

/** One for a test file: it takes a second to start. @throws Error where this machine has none, or it does not start */
export async function startBrowser(): Promise<TestBrowser> {
  const executablePath = findChromium();
  if (executablePath === undefined)
    throw new Error("there is no Chromium here: apt-get install chromium-headless-shell");
  const browser = await chromium.launch({ executablePath, args: ARGUMENTS, timeout: LONGEST_MS });
  return {
    async page({ width = 1_440, height = 900, scheme = "light", motion = "reduce", ...options } = {}) {
      const context = await browser.newContext({
        viewport: { width, height },
        colorScheme: scheme,
        reducedMotion: motion,
        locale: "en-GB",
        timezoneId: options.zone ?? "UTC",
        offline: options.offline ?? false,
      });
      context.setDefaultTimeout(LONGEST_MS);
      const { complaints, requests } = watch(context);
      return { page: await context.newPage(), context, complaints, requests, close: () => context.close() };
    },
    close: () => browser.close(),
  };
}

function watch(context: BrowserContext) {
  const complaints: string[] = [];
  const requests: string[] = [];
  context.on("console", (message) => {
    const type = message.type();
    if (type === "error" || type === "warning") complaints.push(`${type}: ${message.text()}`);
  });
  context.on("weberror", (error) => void complaints.push(`exception: ${error.error().message}`));
  context.on("request", (request) => void requests.push(request.url()));
  context.on("requestfailed", (request) => {
    const reason = request.failure()?.errorText ?? "no reason";
    if (reason !== GIVEN_UP) complaints.push(`failed: ${request.method()} ${request.url()}: ${reason}`);
  });
  return { complaints, requests };
}

/**
 * Resolves once `element` also matches `selector`, e.g. `:focus` or `[aria-invalid=true]`. A page sets such things some
 * frames after it has shown the words that belong to them. @throws a timeout that names both
 */
export async function becomes(element: Locator, selector: string): Promise<void> {
  await element.and(element.page().locator(selector)).waitFor({ state: "attached" });
}

/** Waits for what no event of the browser tells of. @throws Error where it does not come to pass in a minute */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  const last = performance.now() + LONGEST_MS;
  while (!(await condition())) {
    if (performance.now() > last) throw new Error("it did not come to pass");
    await Bun.sleep(10);
  }
}

/**
 * How far the page can be scrolled sideways, and what sticks out of the window; null where nothing does and it cannot.
 * What scrolls by itself inside of the page, such as a wide table, does not count.
 */
export async function sidewaysScroll(page: Page): Promise<string | null> {
  return page.evaluate<string | null>(`(() => {
    const root = document.scrollingElement;
    const width = root.clientWidth;
    if (root.scrollWidth <= width) return null;
    const name = ({ localName, id, className }) =>
      localName + (id ? "#" + id : "") +
      (typeof className === "string" && className ? "." + className.trim().split(/\\s+/).join(".") : "");
    const wide = [...document.body.querySelectorAll("*")]
      .filter((element) => element.getBoundingClientRect().right + scrollX > width + 0.5);
    const deepest = wide.filter((element) => !wide.some((other) => other !== element && element.contains(other)));
    return root.scrollWidth + " px in a window of " + width + ": " + deepest.slice(0, 5).map(name).join(", ");
  })()`);
}

/** @throws Error that names what is wider than the window */
export async function noSidewaysScroll(page: Page): Promise<void> {
  const found = await sidewaysScroll(page);
  if (found !== null) throw new Error(`${page.url()} can be scrolled sideways: ${found}`);
}
