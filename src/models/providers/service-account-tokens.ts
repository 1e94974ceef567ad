import { sign } from "node:crypto";
import { APICallError } from "@ai-sdk/provider";
import { Type } from "typebox";
import type { Clock } from "../../base/clock.ts";
import { parseJson } from "../../base/json-limits.ts";
import { validator } from "../../base/schema.ts";
import type { ServiceAccountKey } from "../../config/service-account-key.ts";
import { boundedFetch } from "../embed/fetch.ts";
import type { IssuedSecrets } from "./issued-secrets.ts";

const SCOPE = "https://www.googleapis.com/auth/cloud-platform";
/** The longest lifetime that Google gives a token. */
const LIFE_SECONDS = 3_600;
/** A token is replaced this long before it expires, so that no request carries a token that expires in transit. */
const SPARE_MS = 5 * 60_000;
const TIMEOUT_MS = 30_000;
const MOST_BYTES = 64 * 1024;

const answer = validator(
  Type.Object({
    access_token: Type.String({ pattern: "^[!-~]{1,8192}$" }),
    expires_in: Type.Optional(Type.Number({ minimum: 0 })),
  }),
);

interface IssuedToken {
  readonly text: string;
  /** Milliseconds since the Unix epoch. */
  readonly until: number;
}

/**
 * Access tokens of a Google service account: requested with a signed JWT (RFC 7523), and kept until shortly before
 * they expire. Concurrent calls without a token share one request.
 */
export class ServiceAccountTokens {
  readonly #key: ServiceAccountKey;
  readonly #clock: Clock;
  readonly #fetch: typeof fetch;
  readonly #issued: IssuedSecrets;
  #token: IssuedToken | null = null;
  #request: Promise<IssuedToken> | null = null;

  /** @param issued receives every token */
  constructor(key: ServiceAccountKey, clock: Clock, issued: IssuedSecrets) {
    this.#issued = issued;
    this.#key = key;
    this.#clock = clock;
    this.#fetch = boundedFetch(clock, MOST_BYTES);
  }

  /**
   * @throws APICallError, or fetch's errors, if no token is issued; their messages contain nothing from the answer
   */
  async current(): Promise<string> {
    if (this.#token && this.#clock.now() < this.#token.until) return this.#token.text;
    this.#request ??= this.#issue().finally(() => {
      this.#request = null;
    });
    this.#token = await this.#request;
    return this.#token.text;
  }

  async #issue(): Promise<IssuedToken> {
    const { tokenUri } = this.#key;
    const asked = this.#clock.now();
    const timeout = new AbortController();
    const cancel = this.#clock.after(TIMEOUT_MS, () =>
      timeout.abort(new DOMException("No access token was issued in time.", "TimeoutError")),
    );
    try {
      const response = await this.#fetch(tokenUri, {
        method: "POST",
        body: new URLSearchParams({
          grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
          assertion: this.#assertion(asked),
        }),
        redirect: "error",
        signal: timeout.signal,
      });
      const text = await response.text();
      const issued = response.ok ? parseJson(text) : null;
      if (!answer.is(issued)) throw refused(tokenUri, response.status);
      const life = (issued.expires_in ?? LIFE_SECONDS) * 1_000;
      this.#issued.add(issued.access_token, asked + life);
      return { text: issued.access_token, until: asked + life - SPARE_MS };
    } catch (error) {
      throw timeout.signal.aborted ? timeout.signal.reason : error;
    } finally {
      cancel();
    }
  }

  #assertion(now: number): string {
    const { clientEmail, privateKey, privateKeyId, tokenUri } = this.#key;
    const iat = Math.floor(now / 1_000);
    const header = { alg: "RS256", typ: "JWT", ...(privateKeyId === undefined ? {} : { kid: privateKeyId }) };
    const claims = { iss: clientEmail, scope: SCOPE, aud: tokenUri, iat, exp: iat + LIFE_SECONDS };
    const signed = `${encoded(header)}.${encoded(claims)}`;
    return `${signed}.${sign("RSA-SHA256", Buffer.from(signed), privateKey).toString("base64url")}`;
  }
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

/** Google returns 400 for a key that was deleted. Routes treat that as a refusal of the credentials. */
function refused(url: string, status: number): APICallError {
  const isRefusal = status >= 400 && status < 500 && status !== 429;
  return new APICallError({
    message: "No access token was issued for the service account.",
    url,
    requestBodyValues: {},
    statusCode: isRefusal ? 401 : status === 200 ? 502 : status,
  });
}
