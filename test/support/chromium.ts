/**
 * Names under which systems install Chromium. Debian's headless build comes first, because it takes half the time for
 * the same pages.
 */
const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/** The path of this machine's Chromium, or undefined if there is none. */
export function findChromium(): string | undefined {
  for (const name of NAMES) {
    const path = Bun.which(name);
    if (path !== null) return path;
  }
  return undefined;
}
