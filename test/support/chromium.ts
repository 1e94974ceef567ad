/** Names under which systems install it: Debian's build without a window first, which takes half as long for the same pages. */
const NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/** The path of this machine's Chromium; undefined where it has none. */
export function findChromium(): string | undefined {
  for (const name of NAMES) {
    const path = Bun.which(name);
    if (path !== null) return path;
  }
  return undefined;
}
