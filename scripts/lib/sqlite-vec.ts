/**
 * Prints the path of sqlite-vec's library for a platform, such as `linux-x64`, `linux-arm64-musl` or `darwin-arm64`:
 * from node_modules, else from the package, fetched once into .tools/. Prints nothing where there is none, and says so:
 * what is built then searches words alone.
 */
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";

const SUFFIXES: Readonly<Record<string, string>> = { linux: "so", darwin: "dylib", windows: "dll" };

const root = join(import.meta.dir, "..", "..");
const [target = ""] = process.argv.slice(2);
const [system = "", machine = ""] = target.split("-");
const cpu = machine === "x86_64" ? "x64" : machine === "aarch64" ? "arm64" : machine;
const name = `sqlite-vec-${system}-${cpu}`;
const file = `vec0.${SUFFIXES[system] ?? "so"}`;

/** The packages hold libraries for glibc. */
const path = target.includes("musl") ? undefined : (inModules() ?? fetched());
if (path) console.log(path);
else console.error(`There is no sqlite-vec for ${target}: the program will search words alone.`);

function inModules(): string | undefined {
  const installed = join(root, "node_modules", name, file);
  return existsSync(installed) ? installed : undefined;
}

function fetched(): string | undefined {
  const version = require(join(root, "node_modules/sqlite-vec/package.json")).version as string;
  const home = join(root, ".tools", `${name}-${version}`);
  const library = join(home, "node_modules", name, file);
  if (existsSync(library)) return library;
  mkdirSync(home, { recursive: true });
  // The one package alone, whatever this machine is.
  const npmOs = system === "windows" ? "win32" : system;
  const added = Bun.spawnSync(
    [process.execPath, "add", "--no-save", `--os=${npmOs}`, `--cpu=${cpu}`, `${name}@${version}`],
    { cwd: home, stdout: "ignore", stderr: "ignore" },
  );
  return added.success && existsSync(library) ? library : undefined;
}
