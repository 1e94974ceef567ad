import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Subprocess } from "bun";

const PATIENCE_MS = 10_000;

/** Every process and folder of a run, so that none outlives it, even after Ctrl-C or a failure. */
export class Household {
  readonly #children = new Set<Subprocess>();
  readonly #folders = new Set<string>();

  constructor() {
    process.on("exit", () => this.#clear());
    for (const [signal, code] of [
      ["SIGINT", 130],
      ["SIGTERM", 143],
      ["SIGHUP", 129],
    ] as const) {
      process.on(signal, () => process.exit(code));
    }
  }

  /** Creates a folder, which is removed at the end. */
  folder(): string {
    const path = mkdtempSync(join(tmpdir(), "gatehouse-bench-"));
    this.#folders.add(path);
    return path;
  }

  remove(folder: string): void {
    rmSync(folder, { recursive: true, force: true });
    this.#folders.delete(folder);
  }

  adopt(child: Subprocess): void {
    this.#children.add(child);
    void child.exited.then(() => this.#children.delete(child));
  }

  /**
   * Asks the process to end, and kills it if it does not.
   * @returns its exit code; null if it had to be killed
   */
  async end(child: Subprocess): Promise<number | null> {
    child.kill("SIGTERM");
    const impatience = setTimeout(() => child.kill("SIGKILL"), PATIENCE_MS);
    await child.exited;
    clearTimeout(impatience);
    return child.exitCode;
  }

  #clear(): void {
    for (const child of this.#children) child.kill("SIGKILL");
    for (const folder of this.#folders) rmSync(folder, { recursive: true, force: true });
  }
}
