import { invalidField, Problem } from "../../base/errors.ts";
import { takeTurn } from "../../base/inflow.ts";
import { type JsonExcess, JsonMeter, MAX_MEMBERS, MAX_NESTING } from "../../base/json-limits.ts";
import { readBytes } from "./bytes.ts";
import type { BodyShares, OpenBody } from "./shares.ts";

/** Maximum size of a JSON body in bytes (contract, section 3). */
const BODY_LIMIT = 10 * 1024 * 1024;

/** Bodies of at most this many bytes are parsed at once: the rest of the call takes longer than that. */
const SHORT_BODY = 4 * 1024;

const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?;?$/i;
const DECODER = new TextDecoder("utf-8", { fatal: true });
const SURROGATE_ESCAPE = /\\u[dD][89a-fA-F]/;

/** The workspace of a body, and where its memory is counted. */
export interface BodyReading {
  readonly workspaceId: number;
  readonly shares: BodyShares;
  /** Maximum bytes. Default: BODY_LIMIT. */
  readonly limit?: number | undefined;
  /** Maximum members in the JSON. Default: MAX_MEMBERS. */
  readonly members?: number | undefined;
}

/**
 * Reads and parses a JSON body.
 * @throws Problem 415 `unsupported_media_type`, 413 `body_too_large` (bytes or JSON members), 400 `invalid_json`
 *   (empty, not UTF-8, malformed or too slow), 400 `nested_too_deep`, 429 `rate_limited` (its workspace holds too
 *   much), 499 `client_closed`
 */
export async function readJson(
  request: Request,
  { workspaceId, shares, limit = BODY_LIMIT, members = MAX_MEMBERS }: BodyReading,
): Promise<unknown> {
  const type = request.headers.get("content-type");
  // A missing body has no type either.
  if (type === null && isEmpty(request)) throw invalidJson("The body is empty.");
  if (type === null || !JSON_TYPE.test(type)) {
    throw new Problem("unsupported_media_type", "Send the body as Content-Type: application/json.");
  }
  if ((request.headers.get("content-encoding") ?? "identity") !== "identity") {
    throw new Problem("unsupported_media_type", "Send the body without Content-Encoding.");
  }
  const body = shares.open(workspaceId);
  try {
    return await parseInTurn(await readBytes(request, limit, body), members, body);
  } finally {
    body.close();
  }
}

/** A JSON body that is still needed byte for byte. MUST be released. */
export interface RawBody {
  readonly bytes: Uint8Array;
  /** The bytes as parsed. */
  readonly value: unknown;
  /** Called once if the bytes are dropped because other requests need the memory: the call MUST then end. */
  onRefused(refused: (problem: Problem) => void): void;
  /**
   * Reserves more memory from the workspace's share, for text that the request refers to.
   * @throws Problem 429 `rate_limited`
   */
  hold(bytes: number): void;
  /** Releases the memory that the bytes take from their workspace's share. Safe to call more than once. */
  release(): void;
  /**
   * Keeps that memory counted beyond `release`, for text of the request that is still in memory. The bytes themselves
   * may already be dropped.
   * @returns a function that MUST be called once the text is no longer in memory. Safe to call more than once
   */
  keep(): () => void;
}

/**
 * Reads a JSON body and keeps its bytes. The media type is not checked: client libraries send the right one.
 * @throws Problem like `readJson`, except for the media type
 */
export async function readRawJson(
  request: Request,
  { workspaceId, shares, limit = BODY_LIMIT, members = MAX_MEMBERS }: BodyReading,
): Promise<RawBody> {
  const body = shares.open(workspaceId);
  try {
    const bytes = await readBytes(request, limit, body);
    const value = await parseInTurn(bytes, members, body);
    return {
      ...{ bytes, value, ...countedUse(body) },
      onRefused(refused) {
        body.refused = refused;
      },
    };
  } catch (error) {
    body.close();
    throw error;
  }
}

/** Not an async function, because functions created in one would hold the bytes. */
function countedUse(body: OpenBody): Pick<RawBody, "release" | "keep" | "hold"> {
  let users = 0;
  const keep = () => {
    users++;
    let isDone = false;
    return () => {
      if (isDone) return;
      isDone = true;
      if (--users === 0) body.close();
    };
  };
  return { release: keep(), keep, hold: (bytes) => body.take(bytes) };
}

/**
 * Parses a body that has arrived. Thousands of bodies may arrive at the same moment, so longer ones wait for a turn of
 * the event loop.
 */
async function parseInTurn(bytes: Uint8Array, members: number, body: OpenBody): Promise<unknown> {
  if (bytes.length === 0) throw invalidJson("The body is empty.");
  body.complete();
  const isLong = bytes.length > SHORT_BODY;
  const toMeasure = isLong && takeTurn(body.workspaceId, { bytes: bytes.length });
  if (toMeasure) await waitFor(toMeasure, body);
  const meter = new JsonMeter({ members });
  refuseExcess(meter.add(bytes), members);
  const toParse = isLong && takeTurn(body.workspaceId, { bytes: 0, members: meter.members });
  if (toParse) await waitFor(toParse, body);
  const text = decode(bytes);
  const value = parse(text);
  // In valid UTF-8, only an escape can produce a lone surrogate, which could not be stored unchanged.
  if (SURROGATE_ESCAPE.test(text)) refuseLoneSurrogates(value);
  return value;
}

/** @throws Problem 429 `rate_limited` if the body was dropped in the meantime, because others needed the room */
async function waitFor(turn: Promise<void>, body: OpenBody): Promise<void> {
  await turn;
  body.take(0);
}

function refuseExcess(excess: JsonExcess | null, members: number): void {
  if (excess === "levels") {
    throw new Problem(
      "nested_too_deep",
      `The body is nested too deeply: at most ${MAX_NESTING} levels are allowed.`,
    );
  }
  if (excess) {
    throw new Problem("body_too_large", `The body has too many members: at most ${members} are allowed.`);
  }
}

/** Whether the request's head shows that no body follows. */
export function isEmpty(request: Request): boolean {
  return request.headers.get("content-length") === "0" || request.body === null;
}

function decode(bytes: Uint8Array): string {
  try {
    return DECODER.decode(bytes);
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
      throw invalidJson("A string in the body contains a lone surrogate.");
    }
    if (typeof value !== "object" || value === null) continue;
    // Pushed one by one: a list of a million items has more items than a function call can take as arguments.
    if (Array.isArray(value)) for (const item of value) waiting.push(item);
    else for (const [key, item] of Object.entries(value)) waiting.push(key, item);
  }
}

function invalidJson(detail: string): Problem {
  return new Problem("invalid_json", detail);
}

/**
 * Rejects a list with duplicates. Replaces the schema keyword `uniqueItems`: to report its errors, the validator
 * compares every pair of items. 16,000 equal items in a body blocked every other call for two seconds.
 * @throws Problem 422 `validation_failed`
 */
export function refuseTwice(path: string, items: readonly (string | number)[] = []): void {
  const twice = items.findIndex((item, index) => items.indexOf(item) < index);
  if (twice >= 0) throw invalidField(`${path}/${twice}`, "is given twice");
}
