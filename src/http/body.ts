import { invalidField, Problem } from "../base/errors.ts";
import { isNestedTooDeep, MAX_NESTING } from "../base/nesting.ts";

/** Bytes of a JSON body (contract, section 3). */
export const BODY_LIMIT = 10 * 1024 * 1024;

/** Bytes of all bodies that are being read at once: trickled on a hundred connections they would fill the memory. */
const IN_FLIGHT_LIMIT = 256 * 1024 * 1024;
/** A body declared as no longer than this is taken in one go, and counted whole from its beginning. */
const SMALL_BODY = 64 * 1024;
const RETRY_SECONDS = 1;

/** Bytes that bodies hold now, over all of the process. */
export class BodyBudget {
  readonly #limit: number;
  #held = 0;

  constructor(limit = IN_FLIGHT_LIMIT) {
    this.#limit = limit;
  }

  get held(): number {
    return this.#held;
  }

  /** @throws Problem 429 `rate_limited` */
  take(bytes: number): void {
    if (this.#held + bytes > this.#limit) {
      throw new Problem("rate_limited", "The server is reading as many bodies as it can hold.", {
        headers: { "Retry-After": String(RETRY_SECONDS) },
      });
    }
    this.#held += bytes;
  }

  release(bytes: number): void {
    this.#held -= bytes;
  }
}

const inFlight = new BodyBudget();

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i;
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/**
 * The parsed body.
 * @throws Problem 415 `unsupported_media_type`, 413 `body_too_large`, 400 `invalid_json` (empty, not UTF-8, broken), 429
 * `rate_limited` (too many at once)
 */
export async function readJson(request: Request, limit = BODY_LIMIT, budget = inFlight): Promise<unknown> {
  const type = request.headers.get("content-type");
  // What is not there has no type either.
  if (type === null && isEmpty(request)) throw invalidJson("The body is empty.");
  if (type === null || !JSON_TYPE.test(type)) {
    throw new Problem("unsupported_media_type", "Send the body as Content-Type: application/json.");
  }
  if ((request.headers.get("content-encoding") ?? "identity") !== "identity") {
    throw new Problem("unsupported_media_type", "Send the body without Content-Encoding.");
  }
  let held = 0;
  const take = (bytes: number) => {
    budget.take(bytes);
    held += bytes;
  };
  try {
    return parseBytes(await readBytes(request, limit, take));
  } finally {
    budget.release(held);
  }
}

function parseBytes(bytes: Uint8Array): unknown {
  if (bytes.length === 0) throw invalidJson("The body is empty.");
  if (isNestedTooDeep(bytes)) {
    throw new Problem("nested_too_deep", `JSON may have ${MAX_NESTING} levels of nesting.`);
  }
  const text = decode(bytes);
  const value = parse(text);
  // Only an escape can make half a character out of valid UTF-8; it could not be stored as it is.
  if (SURROGATE_ESCAPE.test(text)) refuseLoneSurrogates(value);
  return value;
}

/** True where the head of the request says that no body follows. */
export function isEmpty(request: Request): boolean {
  return request.headers.get("content-length") === "0" || request.body === null;
}

async function readBytes(
  request: Request,
  limit: number,
  take: (bytes: number) => void,
): Promise<Uint8Array> {
  const declared = request.headers.get("content-length");
  if (declared !== null) {
    if (Number(declared) > limit) throw tooLarge(limit);
    if (Number(declared) <= SMALL_BODY) {
      take(Number(declared));
      return request.bytes();
    }
  }
  if (!request.body) return new Uint8Array();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of request.body) {
    length += chunk.length;
    if (length > limit) throw tooLarge(limit);
    take(chunk.length);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    throw invalidJson("The body is not UTF-8.");
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw invalidJson("The body is not valid JSON.");
  }
}

function refuseLoneSurrogates(root: unknown): void {
  const waiting = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string" && !value.isWellFormed()) {
      throw invalidJson("A string of the body holds half of a surrogate pair.");
    }
    if (typeof value !== "object" || value === null) continue;
    // One by one: a list of a million items is more than a call takes as arguments.
    if (Array.isArray(value)) for (const item of value) waiting.push(item);
    else for (const [key, item] of Object.entries(value)) waiting.push(key, item);
  }
}

function invalidJson(detail: string): Problem {
  return new Problem("invalid_json", detail);
}

function tooLarge(limit: number): Problem {
  return new Problem("body_too_large", `A body may have ${limit} bytes.`);
}

/**
 * Refuses a list that names a thing twice. In place of a schema's `uniqueItems`, whose errors the validator finds by
 * comparing each item with each: 16,000 equal ones in a body held up every other call for two seconds.
 *
 * @throws Problem 422 `validation_failed`
 */
export function refuseTwice(path: string, items: readonly (string | number)[] = []): void {
  const twice = items.findIndex((item, index) => items.indexOf(item) < index);
  if (twice >= 0) throw invalidField(`${path}/${twice}`, "is given twice");
}
