import { invalidField, Problem } from "../base/errors.ts";
import { findExcess, MAX_MEMBERS, MAX_NESTING } from "../base/nesting.ts";
import { readBytes } from "./body-bytes.ts";
import type { BodyShares } from "./body-shares.ts";

/** Bytes of a JSON body (contract, section 3). */
export const BODY_LIMIT = 10 * 1024 * 1024;

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i;
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** Whose body it is, and where its bytes are counted. */
export interface BodyReading {
  readonly workspaceId: number;
  readonly shares: BodyShares;
  /** Bytes that it may have. */
  readonly limit?: number | undefined;
  /** Members that its JSON may have. Default: MAX_MEMBERS. */
  readonly members?: number | undefined;
}

/**
 * The parsed body.
 * @throws Problem 415 `unsupported_media_type`, 413 `body_too_large` (bytes, or members of JSON), 400 `invalid_json` (empty, not UTF-8, broken, too slow),
 * 400 `nested_too_deep`, 429 `rate_limited` (its workspace holds too much), 499 `client_closed`
 */
export async function readJson(
  request: Request,
  { workspaceId, shares, limit = BODY_LIMIT, members = MAX_MEMBERS }: BodyReading,
): Promise<unknown> {
  const type = request.headers.get("content-type");
  // What is not there has no type either.
  if (type === null && isEmpty(request)) throw invalidJson("The body is empty.");
  if (type === null || !JSON_TYPE.test(type)) {
    throw new Problem("unsupported_media_type", "Send the body as Content-Type: application/json.");
  }
  if ((request.headers.get("content-encoding") ?? "identity") !== "identity") {
    throw new Problem("unsupported_media_type", "Send the body without Content-Encoding.");
  }
  const body = shares.open(workspaceId);
  try {
    return parseBytes(await readBytes(request, limit, body), members);
  } finally {
    body.close();
  }
}

function parseBytes(bytes: Uint8Array, members: number): unknown {
  if (bytes.length === 0) throw invalidJson("The body is empty.");
  const excess = findExcess(bytes, { members });
  if (excess === "levels") {
    throw new Problem(
      "nested_too_deep",
      `The body is nested too deeply: JSON may have ${MAX_NESTING} levels.`,
    );
  }
  if (excess) {
    throw new Problem("body_too_large", `The body has too many members: JSON may have ${members} members.`);
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
