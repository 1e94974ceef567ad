import type { OpenApiDefinition } from "../definition/definition.ts";
import { DocumentFault } from "./fault.ts";

/** Stores the origin permanently with the connector's definition. Rejects if it cannot be stored. */
export type PinOrigin = (origin: string) => Promise<void>;

/**
 * Where the connector's `auth` may be sent: to `base_url` if there is one, otherwise to the origin that the document
 * named when it was first read. Whoever serves the document may change it, but only that origin was authorised with
 * the connector.
 */
export class AuthOrigin {
  readonly #pin: PinOrigin;
  /** Whether the document decides where calls go, and so where the secret would go. */
  readonly #isNamedByDocument: boolean;
  #origin: string | undefined;

  constructor(definition: Omit<OpenApiDefinition, "spec">, pin: PinOrigin) {
    this.#pin = pin;
    this.#isNamedByDocument = definition.auth !== null && definition.baseUrl === null;
    this.#origin = definition.authOrigin;
  }

  /** Whether it is not yet known where `auth` may go, because the document was never read. */
  get isOpen(): boolean {
    return this.#isNamedByDocument && this.#origin === undefined;
  }

  /** Whether calls below this base URL carry `auth`. */
  covers(base: string): boolean {
    return !this.#isNamedByDocument || new URL(base).origin === this.#origin;
  }

  /** @param server the document's own @throws DocumentFault if its origin is not the authorised one */
  check(server: string): void {
    if (this.isOpen || this.covers(server)) return;
    throw new DocumentFault(
      `its document names a server at ${new URL(server).origin} now, but its auth was authorised only for ${this.#origin}: to send it to the new one, remove the connector and create it again`,
    );
  }

  /**
   * Stores the origin after the document was read and found usable. MUST NOT be called again before it has resolved.
   * @throws as `pin` does
   */
  async settle(server: string): Promise<void> {
    if (!this.isOpen) return;
    const { origin } = new URL(server);
    // Stored before it is used: otherwise, after a crash, another origin could take its place.
    await this.#pin(origin);
    this.#origin = origin;
  }
}
