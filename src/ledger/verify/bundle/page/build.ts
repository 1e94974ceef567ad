import { join } from "node:path";

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
