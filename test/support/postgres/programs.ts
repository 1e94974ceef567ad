import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";

/** The oldest version that Gatehouse supports. */
const OLDEST = 15;
/** Debian's packages install each major version in a folder of its own. */
const DEBIAN = "/usr/lib/postgresql";

/** The folder with the newest `initdb` and `postgres` of this machine, or undefined if there is none. */
export function findPostgres(): string | undefined {
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN) : [];
  const newest = versions
    .map(Number)
    .filter((version) => version >= OLDEST && existsSync(join(DEBIAN, String(version), "bin", "initdb")))
    .sort((a, b) => b - a)[0];
  return newest === undefined ? undefined : join(DEBIAN, String(newest), "bin");
}

/** What runs a server's program as a user other than root, which PostgreSQL refuses. Empty for other users. */
export function asServerUser(): readonly string[] {
  if (process.getuid?.() !== 0) return [];
  return ["setpriv", `--reuid=${serverUser()}`, "--clear-groups", "--"];
}

/** Debian's packages add the user `postgres`. Any user but root will do. */
export function serverUser(): string {
  const found = Bun.spawnSync(["id", "-u", "postgres"], { stderr: "ignore" });
  return found.success ? found.stdout.toString().trim() : "65534";
}
