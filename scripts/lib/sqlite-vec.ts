/**
 * Prints the path of sqlite-vec's library for a platform, such as `linux-x64`, `linux-arm64-musl` or `darwin-arm64`:
 * from node_modules, or else from the package, which is downloaded once into .tools/. If there is no library for the
 * platform, prints no path and reports it; the built program then searches only by words. Fails if there is one but
 * it cannot be obtained.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const SUFFIXES: Readonly<Record<string, string>> = { linux: "so", darwin: "dylib", windows: "dll" };
/** Platforms that have a package. The packages contain libraries for glibc. */
const KNOWN = /^(linux-(x64|arm64)|darwin-(x64|arm64)|windows-x64)(-(baseline|modern|glibc))*$/;

const root = join(import.meta.dir, "..", "..");
const target = (process.argv[2] ?? "").replace("x86_64", "x64").replace("aarch64", "arm64");

if (KNOWN.test(target)) {
  const [system = "", cpu = ""] = target.split("-");
  console.log(find(system, cpu));
} else console.error(`There is no sqlite-vec for ${target}: the program will search by words only.`);

function find(system: string, cpu: string): string {
  const name = `sqlite-vec-${system}-${cpu}`;
  const file = join("node_modules", name, `vec0.${SUFFIXES[system]}`);
  const installed = join(root, file);
  if (existsSync(installed)) return installed;
  const version = versionOf(join(root, "node_modules/sqlite-vec/package.json"));
  const home = join(root, ".tools", `${name}-${version}`);
  const fetched = join(home, file);
  if (!existsSync(fetched))
    fetchPackage(home, `${name}@${version}`, system === "windows" ? "win32" : system, cpu);
  if (!existsSync(fetched)) throw new Error(`${name}@${version} contains no ${file}`);
  return fetched;
}

function versionOf(path: string): string {
  const { version }: { version?: unknown } = JSON.parse(readFileSync(path, "utf8"));
  if (typeof version !== "string") throw new Error(`${path} names no version`);
  return version;
}

/**
 * Installs only this package, whatever this machine's platform is.
 * @throws Error with the installer's output
 */
function fetchPackage(home: string, name: string, os: string, cpu: string): void {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, "package.json"), "{}\n");
  const added = Bun.spawnSync([process.execPath, "add", "--exact", `--os=${os}`, `--cpu=${cpu}`, name], {
    cwd: home,
    stderr: "pipe",
  });
  if (!added.success) throw new Error(`${name} cannot be fetched:\n${added.stderr.toString()}`);
}
