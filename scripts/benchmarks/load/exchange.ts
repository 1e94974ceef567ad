import type { ExchangesJob } from "./jobs.ts";

/** Checks the answers of a connection one after another, and returns what is wrong with each. */
export class Exchange {
  readonly #expect: ExchangesJob["expect"];
  readonly #keepsText: boolean;
  #length = 0;
  #text = "";
  #firstAt: number | null = null;

  constructor(expect: ExchangesJob["expect"]) {
    this.#expect = expect;
    this.#keepsText = expect.texts.length > 0 || expect.first !== undefined;
  }

  /** When the first token arrived. */
  get firstAt(): number | null {
    return this.#firstAt;
  }

  begin(): void {
    this.#length = 0;
    this.#text = "";
    this.#firstAt = null;
  }

  body(bytes: Buffer): void {
    this.#length += bytes.length;
    if (!this.#keepsText) return;
    this.#text += bytes.toString("latin1");
    const { first } = this.#expect;
    if (first !== undefined && this.#firstAt === null && this.#text.includes(first)) {
      this.#firstAt = performance.now();
    }
  }

  /**
   * Call this at the end of an answer.
   * @returns what is wrong with the answer, or null
   */
  problem(status: number): string | null {
    const expect = this.#expect;
    if (status !== expect.status) return `status ${status} instead of ${expect.status}`;
    if (expect.bytes !== undefined && this.#length !== expect.bytes) return "a body of another length";
    if (expect.texts.some((text) => !this.#text.includes(text))) return "a body that is not as expected";
    if (expect.first !== undefined && this.#firstAt === null) return "an answer without a first token";
    return null;
  }
}
