import { join } from "node:path";
import type { Subprocess } from "bun";
import Type, { type Static, type TSchema } from "typebox";
import { type Validator, validator } from "../../../src/base/schema.ts";
import type { Household } from "./household.ts";

const FOLDER = join(import.meta.dir, "..");
/** Far longer than any job takes. A stuck worker must not hold up the run forever. */
const LONGEST_ANSWER_MS = 180_000;

const reply = validator(
  Type.Object({ value: Type.Optional(Type.Unknown()), error: Type.Optional(Type.String()) }),
);

/** A script of this folder in a separate process, which is asked with lines of JSON. */
export class Worker {
  readonly #name: string;
  readonly #child: Subprocess<"pipe", "pipe", "inherit">;
  readonly #household: Household;
  readonly #lines: AsyncGenerator<string>;

  private constructor(name: string, child: Subprocess<"pipe", "pipe", "inherit">, household: Household) {
    this.#name = name;
    this.#child = child;
    this.#household = household;
    this.#lines = linesOf(child.stdout);
  }

  /** @param placed the command as it should be run, for example on one core */
  static start(
    household: Household,
    script: string,
    placed: (command: readonly string[]) => readonly string[],
  ): Worker {
    const command = placed([process.execPath, "--no-env-file", join(FOLDER, script)]);
    const child = Bun.spawn([...command], {
      cwd: FOLDER,
      env: { PATH: "", NODE_ENV: "production" },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    household.adopt(child);
    return new Worker(script, child, household);
  }

  get pid(): number {
    return this.#child.pid;
  }

  /**
   * Asks one question at a time.
   * @throws Error if the worker fails, ends, or answers something that `expected` does not accept
   */
  async ask<Schema extends TSchema>(message: object, expected: Validator<Schema>): Promise<Static<Schema>> {
    this.#child.stdin.write(`${JSON.stringify(message)}\n`);
    await this.#child.stdin.flush();
    const patience = setTimeout(() => this.#child.kill("SIGKILL"), LONGEST_ANSWER_MS);
    const line = await this.#lines.next();
    clearTimeout(patience);
    if (line.done === true) throw new Error(`${this.#name} ended in the middle of its work`);
    const { value, error } = reply.parse(JSON.parse(line.value));
    if (error !== undefined) throw new Error(`${this.#name}: ${error}`);
    return expected.parse(value);
  }

  async end(): Promise<void> {
    await this.#household.end(this.#child);
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of stream) {
    const lines = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
}
