import type { SqlValue } from "../db.ts";
import type { Answer, Connection } from "./driver.ts";
import { mustReconnect } from "./errors.ts";
import { encodeParameters, type Parameter } from "./values.ts";

const READS = /^\s*SELECT\b/i;

/** What went wrong in a transaction. */
export interface Failure {
  readonly error: unknown;
  /** Whether the statement was sent after the jobs had ended. */
  readonly isLast: boolean;
}

/** One transaction on the server, and the first thing that went wrong in it. */
export class Session {
  readonly #connection: Connection;
  readonly #unawaited: Promise<unknown>[] = [];
  #failure: Failure | null = null;
  #writes = 0;
  #jobsHaveEnded = false;
  #isLost = false;
  #isReleased = false;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  /** The first statement that failed. The transaction MUST NOT be committed after it. */
  get failure(): Failure | null {
    return this.#failure;
  }

  /** How many statements have been sent that may have written something. */
  get writes(): number {
    return this.#writes;
  }

  async send(sql: string, params?: readonly SqlValue[]): Promise<Answer> {
    return await this.#statement(sql, params);
  }

  /** Sends a statement whose answer nobody waits for. */
  write(sql: string, params?: readonly SqlValue[]): void {
    this.#unawaited.push(this.#statement(sql, params).catch(noted));
  }

  /** @throws EngineError if it has not begun. Nothing may be written before that: each statement would be a commit. */
  async begin(isolation: "READ COMMITTED" | "REPEATABLE READ", settings: string | null): Promise<void> {
    const begun = this.#control(`BEGIN ISOLATION LEVEL ${isolation}`);
    await (settings === null ? begun : Promise.all([begun, this.#control(settings)]));
  }

  endJobs(): void {
    this.#jobsHaveEnded = true;
  }

  /** @returns the server's name for what it did: it answers ROLLBACK without an error if a statement has failed */
  async commit(): Promise<string> {
    const [{ command }] = await Promise.all([this.#control("COMMIT"), ...this.#unawaited]);
    return command;
  }

  async rollback(): Promise<void> {
    await this.#control("ROLLBACK");
  }

  get isReleased(): boolean {
    return this.#isReleased;
  }

  /**
   * Gives the connection back. Later calls do nothing.
   * @param isUsable false if the transaction may still be open
   */
  release(isUsable: boolean): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#connection.release(isUsable && !this.#isLost);
  }

  /**
   * @throws the first failure of the transaction, if there is one
   * @throws RangeError if a parameter cannot be sent. The failure is known before anything else is sent.
   */
  #statement(sql: string, params: readonly SqlValue[] | undefined): Promise<Answer> {
    if (this.#failure) throw this.#failure.error;
    if (!READS.test(sql)) this.#writes += 1;
    let encoded: Parameter[];
    try {
      encoded = encodeParameters(params);
    } catch (error) {
      this.#fail(error, this.#jobsHaveEnded);
      throw error;
    }
    return this.#noteFailure(this.#connection.send(sql, encoded));
  }

  #control(sql: string): Promise<Answer> {
    return this.#noteFailure(this.#connection.send(sql));
  }

  async #noteFailure(answer: Promise<Answer>): Promise<Answer> {
    const isLast = this.#jobsHaveEnded;
    try {
      return await answer;
    } catch (error) {
      // What was sent before the failure was known is refused because of it.
      throw this.#fail(error, isLast).error;
    }
  }

  /** @returns the first failure */
  #fail(error: unknown, isLast: boolean): Failure {
    this.#failure ??= { error, isLast };
    if (mustReconnect(error)) this.#isLost = true;
    return this.#failure;
  }
}

/** The session has noted the error, which ends the transaction. */
function noted(): void {}
