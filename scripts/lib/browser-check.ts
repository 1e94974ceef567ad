import { findChromium } from "../../test/support/chromium.ts";
import { provide } from "./apt.ts";

/** Tests of pages, in a real browser. */
export const BROWSER_TESTS = "test/browser";

/** Ensures that there is a browser, because playwright-core, which drives it, does not include one: see `provide`. */
export function prepareBrowser(say: (text: string) => void, inCi: boolean): Promise<string | undefined> {
  return provide(["chromium-headless-shell"], whatIsMissing, say, inCi);
}

function whatIsMissing(): string | undefined {
  return findChromium() === undefined ? "there is no Chromium on PATH" : undefined;
}
