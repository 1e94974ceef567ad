import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Subprocess } from "bun";
import { createSecret } from "../../../src/access/secret.ts";
import { systemRandom } from "../../../src/base/ids.ts";
import type { Household } from "./household.ts";

const ROOT = join(import.meta.dir, "..", "..", "..");
/** What `scripts/build` makes. */
export const BINARY = join(ROOT, "dist", "gatehouse");
const READY_MS = 30_000;
const READY = /^\{.*"message":"gatehouse is ready".*"url":"http:\/\/127\.0\.0\.1:(\d+)".*\}$/m;
const ERROR_EXCERPT = 2_000;

/** The command that starts the program, either as built or from the sources. */
export function programOf(binary: boolean, preload?: string): readonly string[] {
  const loaded = preload === undefined ? [] : ["--preload", preload];
  if (!binary) return [process.execPath, "--no-env-file", ...loaded, join(ROOT, "src", "main.ts")];
  if (!existsSync(BINARY)) throw new Error("there is no dist/gatehouse yet: run scripts/build");
  return [BINARY];
}

export interface GatehouseOptions {
  /** The text of gatehouse.yaml. */
  readonly yaml?: string;
  /** An existing data directory, which is not removed. */
  readonly dataDir?: string;
  /** A module that Bun loads before the program. Only for a program that runs from its sources. */
  readonly preload?: string;
  /** The admin token's secret, if other servers share it. */
  readonly admin?: string;
  /** Further environment variables. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A gateway in a separate process, on any free port of 127.0.0.1, with an admin token. */
export class Gatehouse {
  readonly #child: Subprocess<"ignore", "ignore", "pipe">;
  readonly #household: Household;
  readonly #isOwnFolder: boolean;
  /** The data directory. */
  readonly folder: string;
  readonly port: number;
  readonly admin: string;

  private constructor(
    child: Subprocess<"ignore", "ignore", "pipe">,
    household: Household,
    { folder, isOwn }: { readonly folder: string; readonly isOwn: boolean },
    port: number,
    admin: string,
  ) {
    this.#child = child;
    this.#household = household;
    this.folder = folder;
    this.#isOwnFolder = isOwn;
    this.port = port;
    this.admin = admin;
  }

  /** Resolves as soon as the server reports that it is ready. */
  static async start(
    household: Household,
    program: readonly string[],
    { yaml = "", dataDir, admin = createSecret(systemRandom), env = {} }: GatehouseOptions = {},
  ): Promise<Gatehouse> {
    const folder = dataDir ?? household.folder();
    if (yaml !== "") writeFileSync(join(folder, "gatehouse.yaml"), yaml);
    const child = Bun.spawn([...program, "serve", "--data", folder, "--listen", "127.0.0.1:0"], {
      cwd: folder,
      // Nothing else from this environment: a provider's key, for example, must not change the measurement.
      env: { PATH: "", HOME: folder, NODE_ENV: "production", GATEHOUSE_ADMIN_TOKEN: admin, ...env },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    household.adopt(child);
    const port = await portOf(child);
    return new Gatehouse(child, household, { folder, isOwn: dataDir === undefined }, port, admin);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /**
   * Makes one call as the admin.
   * @throws Error if the answer has another status
   */
  async call(status: number, method: string, path: string, body?: object): Promise<unknown> {
    const response = await fetch(`http://127.0.0.1:${this.port}${path}`, {
      method,
      headers: { authorization: `Bearer ${this.admin}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    if (response.status !== status) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return text === "" ? null : JSON.parse(text);
  }

  /** @throws Error if it does not stop properly, because the measurement cannot be trusted then */
  async stop(): Promise<void> {
    const code = await this.#household.end(this.#child);
    if (this.#isOwnFolder) this.#household.remove(this.folder);
    if (code !== 0) throw new Error(`gatehouse did not stop cleanly (exit code ${code ?? "none: killed"})`);
  }
}

/** Reads the log up to the line with the server's address, and continues to drain it. */
async function portOf(child: Subprocess<"ignore", "ignore", "pipe">): Promise<number> {
  const patience = setTimeout(() => child.kill("SIGKILL"), READY_MS);
  const reader = child.stderr.getReader();
  const decoder = new TextDecoder();
  let log = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`gatehouse did not start: ${log.slice(-ERROR_EXCERPT)}`);
    log += decoder.decode(value, { stream: true });
    const port = READY.exec(log)?.[1];
    if (port === undefined) continue;
    clearTimeout(patience);
    void drain(reader);
    return Number(port);
  }
}

async function drain(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}
