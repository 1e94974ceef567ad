import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Bundles `main.ts` and its imports into one script for browsers. Runs as a macro while the program is built. When
 * run from source, it runs when `page.ts` is first loaded.
 *
 * @throws Error with the bundler's message
 */
export function builtScript(): string {
  const entry = join(import.meta.dir, "main.ts");
  const built = Bun.spawnSync([
    process.execPath,
    "build",
    "--target=browser",
    "--format=esm",
    "--minify",
    "--no-env-file",
    entry,
  ]);
  const script = built.stdout.toString();
  if (!built.success || script === "") {
    throw new Error(`the page that verifies bundles could not be built: ${built.stderr.toString()}`);
  }
  return script;
}

/** Licences of code inside the packages below. Licences with identical wording are not repeated. */
const INNER =
  "csv-stringify contains the packages buffer (c) Feross Aboukhadijeh, MIT, and ieee754 (c) 2008 Fair Oaks Labs, Inc., BSD-3-Clause.";
const PACKAGES = ["@noble/hashes", "@zip.js/zip.js", "csv-stringify", "typebox"];

/**
 * The licences of the packages in the script, which require them to be distributed with it. Runs at the same time as
 * `builtScript`.
 *
 * @throws Error if a package has no licence
 */
export function licences(): string {
  const texts = PACKAGES.map((name) => {
    const folder = dirname(Bun.resolveSync(`${name}/package.json`, import.meta.dir));
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry));
    if (file === undefined) throw new Error(`${name} has no licence`);
    return `${name}\n\n${readFileSync(join(folder, file), "utf8").trim()}`;
  });
  return [...texts, INNER].join("\n\n");
}
