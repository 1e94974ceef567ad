import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Runs while the program is built (a macro), and where the sources run as they are: when `page.ts` is first loaded. Makes one
 * script of `main.ts` and all that it imports, for browsers.
 *
 * @throws Error with what the bundler says
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

/** Whose code is in the page besides ours. Licences of the same words are not repeated. */
const INNER =
  "csv-stringify holds the packages buffer (c) Feross Aboukhadijeh, MIT, and ieee754 (c) 2008 Fair Oaks Labs, Inc., BSD-3-Clause.";
const PACKAGES = ["@noble/hashes", "@zip.js/zip.js", "csv-stringify", "typebox"];

/**
 * Runs as `builtScript` does. The licences of what is in the script, which ask to be handed on with it.
 *
 * @throws Error where a package has none
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
