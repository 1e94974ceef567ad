import type { OpenApiDefinition } from "../definition.ts";
import { DocumentFault } from "./fault.ts";

/** Keeps the origin with the connector's definition, for good. Rejects where it cannot be kept. */
export type PinOrigin = (origin: string) => Promise<void>;

/**
 * Where the connector's `auth` may go: with `base_url` to that; else to the origin that the document named when it was read
 * first. Who serves the document may change it, but who let the connector in has agreed to that origin alone.
 */
export class AuthOrigin {
  readonly #pin: PinOrigin;
  /** The document names where calls go, and so where the secret would. */
  readonly #isNamedByDocument: boolean;
  #origin: string | undefined;

  constructor(definition: Omit<OpenApiDefinition, "spec">, pin: PinOrigin) {
    this.#pin = pin;
    this.#isNamedByDocument = definition.auth !== null && definition.baseUrl === null;
    this.#origin = definition.authOrigin;
  }

  /** The document was never read, so that nobody knows yet where `auth` may go. */
  get isOpen(): boolean {
    return this.#isNamedByDocument && this.#origin === undefined;
  }

  /** Whether calls to what is below this base carry `auth`. */
  covers(base: string): boolean {
    return !this.#isNamedByDocument || new URL(base).origin === this.#origin;
  }

  /** @param server the document's own @throws DocumentFault where it is at another origin than it was */
  check(server: string): void {
    if (this.isOpen || this.covers(server)) return;
    throw new DocumentFault(
      `its document names a server at ${new URL(server).origin} now, but its auth was authorised for ${this.#origin} alone: to have it sent to the new one, remove the connector and create it anew`,
    );
  }

  /** The document was read, and can be used. MUST not be called again before it has ended. @throws as `pin` does */
  async settle(server: string): Promise<void> {
    if (!this.isOpen) return;
    const { origin } = new URL(server);
    // Kept first: after a crash, another origin could take its place.
    await this.#pin(origin);
    this.#origin = origin;
  }
}
