import type { Subprocess } from "bun";
import type { Household } from "./household.ts";

const PATIENCE_MS = 5_000;

/** A program that watches a running process, such as strace. */
export class Tracer {
  readonly #child: Subprocess<"ignore", "ignore", "pipe">;

  /** Starts the command with `-p` and the process's id. */
  constructor(household: Household, command: readonly string[], pid: number) {
    this.#child = Bun.spawn([...command, "-p", String(pid)], {
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
    });
    household.adopt(this.#child);
  }

  /** Waits until the tracer's messages contain this. False if it ends or takes too long before that. */
  async printed(expected: RegExp): Promise<boolean> {
    const impatience = setTimeout(() => this.#child.kill("SIGINT"), PATIENCE_MS);
    const decoder = new TextDecoder();
    let text = "";
    for await (const bytes of this.#child.stderr) {
      text += decoder.decode(bytes, { stream: true });
      if (!expected.test(text)) continue;
      clearTimeout(impatience);
      return true;
    }
    clearTimeout(impatience);
    return false;
  }

  /** Lets go of the process, which runs on. */
  async detach(): Promise<void> {
    this.#child.kill("SIGINT");
    await this.#child.exited;
  }
}
