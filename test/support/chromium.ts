/** Names under which systems install it. */
const NAMES = ["chromium", "chromium-browser", "google-chrome"];

/** The path of this machine's Chromium; undefined where it has none. */
export function findChromium(): string | undefined {
  for (const name of NAMES) {
    const path = Bun.which(name);
    if (path !== null) return path;
  }
  return undefined;
}
