import { ByteBlocks } from "../../base/byte-blocks.ts";
import { Problem } from "../../base/errors.ts";
import { takeTurn } from "../../base/inflow.ts";
import type { OpenBody } from "./shares.ts";

/** A body declared no longer than this is read in one go. Its whole length is counted from the start. */
const SMALL_BODY = 64 * 1024;

/** A body of so few bytes is not counted: a stop must work even if its workspace has used all its memory. */
const TINY_BODY = 1024;

/**
 * Reads the bytes of a body. Memory is counted as it is allocated while the bytes arrive. Joining them at the end
 * happens in a single turn, so only one body at a time needs that extra memory.
 * @throws Problem 413 `body_too_large`; 499 `client_closed`; whatever `body` throws
 */
export async function readBytes(request: Request, limit: number, body: OpenBody): Promise<Uint8Array> {
  const header = request.headers.get("content-length");
  const declared = header === null ? null : Number(header);
  if (declared !== null && declared > limit) throw tooLarge(limit);
  try {
    if (declared !== null && declared <= SMALL_BODY) {
      if (declared > TINY_BODY) body.take(declared);
      return await takeWhole(request, body);
    }
    return request.body ? await collect(request.body, limit, body) : new Uint8Array();
  } catch (error) {
    if (error instanceof Problem || !request.signal.aborted) throw error;
    throw new Problem("client_closed", "The client closed the connection before it had sent the whole body.");
  }
}

function takeWhole(request: Request, body: OpenBody): Promise<Uint8Array> {
  return new Promise((resolve, reject) => {
    body.refused = reject;
    request.bytes().then(resolve, reject);
  });
}

async function collect(
  stream: ReadableStream<Uint8Array>,
  limit: number,
  body: OpenBody,
): Promise<Uint8Array> {
  const reader = stream.getReader();
  let refusal: Problem | null = null;
  // Nothing more is read, so a connection error no longer matters.
  const letGo = (): void => void reader.cancel().catch(() => {});
  body.refused = (problem) => {
    refusal = problem;
    letGo();
  };
  const blocks = new ByteBlocks((bytes) => body.take(bytes));
  try {
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (blocks.length + part.value.length > limit) throw tooLarge(limit);
      blocks.add(part.value);
      body.came(part.value.length);
      // A client may send chunks of one byte without a pause. Bun joins those that arrive in the meantime.
      const wait = takeTurn(body.workspaceId, { bytes: part.value.length, messages: 1 });
      if (wait) await wait;
    }
  } catch (error) {
    letGo();
    throw refusal ?? error;
  }
  // A cancelled reader reports the end of the body.
  if (refusal) throw refusal;
  return blocks.joined();
}

function tooLarge(limit: number): Problem {
  return new Problem("body_too_large", `The body is too large: at most ${limit} bytes are allowed.`);
}
