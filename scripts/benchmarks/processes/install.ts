import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";

const PATIENCE_MS = 300_000;

const versions = Type.Record(Type.String(), Type.String());
const wanted = validator(
  Type.Object({ dependencies: versions, optionalDependencies: Type.Optional(versions) }),
);
const present = validator(Type.Object({ version: Type.String() }));

/**
 * Ensures that a folder's node_modules has the package in the version that its package.json pins. npm installs it if available,
 * because hnswlib then has to be compiled and npm brings what that needs; otherwise Bun does.
 * @returns null, or why it is not there
 */
export async function installed(folder: string, name: string): Promise<string | null> {
  if (isInstalled(folder, name)) return null;
  const npm = Bun.which("npm");
  const command =
    npm === null
      ? [process.execPath, "install", "--no-save"]
      : [npm, "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error"];
  console.error(`  installing into ${folder}`);
  const child = Bun.spawn(command, {
    cwd: folder,
    // Some packages report their installation to a statistics service otherwise.
    env: { ...process.env, SCARF_ANALYTICS: "false" },
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    timeout: PATIENCE_MS,
  });
  const errors = await new Response(child.stderr).text();
  await child.exited;
  if (isInstalled(folder, name)) return null;
  const said = errors.trim().split("\n").at(-1) ?? "";
  return `${name} could not be installed here${said === "" ? "" : `: ${said}`}`;
}

/** The packages that a folder's package.json pins and that must be there. */
export function pinnedPackages(folder: string): string[] {
  return Object.keys(wanted.parse(read(join(folder, "package.json"))).dependencies);
}

function isInstalled(folder: string, name: string): boolean {
  const { dependencies, optionalDependencies } = wanted.parse(read(join(folder, "package.json")));
  const version = dependencies[name] ?? optionalDependencies?.[name];
  const path = join(folder, "node_modules", name, "package.json");
  return existsSync(path) && present.parse(read(path)).version === version;
}

function read(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}
