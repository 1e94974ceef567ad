/** A real browser for tests: this machine's Chromium, headless, driven by playwright-core. */
import { type BrowserContext, chromium, type Locator, type Page } from "playwright-core";
import { findChromium } from "./chromium.ts";

/** The limit for one step, generous for slow and busy machines. A step that succeeds never waits for it. */
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
/** The browser's error for a request that the page itself aborted, such as the stream of a page that was left. */
const GIVEN_UP = "net::ERR_ABORTED";

export interface PageOptions {
  /** Width of the window in CSS pixels. Default: 1440 × 900. */
  readonly width?: number;
  readonly height?: number;
  /** Default: light. */
  readonly scheme?: "light" | "dark";
  /**
   * Whether the page should reduce motion, as a person can request. Default: yes, so that tests need not wait for
   * animations.
   */
  readonly motion?: "reduce" | "no-preference";
  /** An IANA time zone. Default: UTC. */
  readonly zone?: string;
  /** Without a network, so that only files can be opened. */
  readonly offline?: boolean;
}

/** A page in a separate context, which shares no cookies or storage with other pages. */
export interface BrowserPage {
  readonly page: Page;
  readonly context: BrowserContext;
  /**
   * Complaints of the browser: errors and warnings in its console, including violations of the content security
   * policy, uncaught exceptions and failed requests. A test that provokes some removes them from the list.
   */
  readonly complaints: string[];
  /** Requested addresses, oldest first, including the page's own. */
  readonly requests: string[];
  close(): Promise<void>;
}

export interface TestBrowser {
  page(options?: PageOptions): Promise<BrowserPage>;
  /** Closes the browser and all of its pages. */
  close(): Promise<void>;
}

/**
 * Starts a browser for a test file, which takes a second.
 * @throws Error if this machine has no Chromium, or if it does not start
 */
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
 * Resolves once `element` also matches `selector`, e.g. `:focus` or `[aria-invalid=true]`. A page sets such states a
 * few frames after it has shown the text that goes with them.
 * @throws a timeout that names both
 */
export async function becomes(element: Locator, selector: string): Promise<void> {
  await element.and(element.page().locator(selector)).waitFor({ state: "attached" });
}

/**
 * Waits for something that no browser event reports.
 * @throws Error if it does not happen within a minute
 */
export async function eventually(condition: () => boolean | Promise<boolean>): Promise<void> {
  const last = performance.now() + LONGEST_MS;
  while (!(await condition())) {
    if (performance.now() > last) throw new Error("it did not happen");
    await Bun.sleep(10);
  }
}

/**
 * How far the page can be scrolled sideways, and what sticks out of the window; null if it cannot be scrolled.
 * Elements that scroll inside the page, such as a wide table, do not count.
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
