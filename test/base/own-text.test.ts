import { expect, test } from "bun:test";
import { join } from "node:path";

const OWN_TEXT = join(import.meta.dir, "..", "..", "src", "base", "own-text.ts");
const MIB = 1024 * 1024;
/** The length of each text, and the number of texts. */
const [LENGTH, TEXTS] = [4 * MIB, 100];

/**
 * Keeps the first thousand characters of each long text.
 * @returns the bytes of memory that this takes
 */
function memoryOf(keep: string): number {
  const program = `
    import { ownText } from ${JSON.stringify(OWN_TEXT)};
    const kept = [];
    for (let index = 0; index < ${TEXTS}; index++) {
      const text = JSON.parse('"' + String(index).padEnd(${LENGTH}, "x") + '"').slice(0, 1_000);
      kept.push(${keep});
      Bun.gc(true);
    }
    console.log(process.memoryUsage.rss(), kept.length);`;
  const { stdout } = Bun.spawnSync([process.execPath, "--no-env-file", "-e", program]);
  return Number(stdout.toString().split(" ")[0]);
}

test("a copied text does not keep the longer text that it was cut from", () => {
  expect(memoryOf("ownText(text)")).toBeLessThan((LENGTH * TEXTS) / 2);
}, 60_000);
