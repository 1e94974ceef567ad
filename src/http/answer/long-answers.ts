import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import { takeTurn } from "../../base/inflow.ts";
import type { Log } from "../../base/log.ts";
import { type FairPlace, FairPlaces } from "../../limits/fair-places.ts";
import type { StreamReply } from "../endpoint.ts";
import { IDLE_SECONDS } from "../listen.ts";
import { headersOf, type Reply } from "./answer.ts";
import { Backlog } from "./backlog.ts";
import { type DownloadParts, downloadStream, StalledReader } from "./download.ts";
import { type BodyParts, jsonParts, textParts } from "./json-parts.ts";

/**
 * The maximum number of characters encoded at a time and sent in one piece. Bun keeps a piece until the client has
 * read it.
 */
const CHUNK = 64 * 1024;
const MIB = 1024 * 1024;
/**
 * Maximum number of characters of all long responses in progress. Each stays in memory until its client has read it.
 */
const WHOLE = 256 * MIB;
/** For one workspace: three documents of the largest size, and a little more. */
const PER_WORKSPACE = 64 * MIB;
const RETRY_SECONDS = 5;
const ENCODER = new TextEncoder();

/** The request that is answered. */
export interface AnsweredRequest {
  readonly workspaceId: number;
  readonly requestId: string;
  readonly request: Pick<Request, "method" | "signal">;
}

export interface LongAnswersParts {
  readonly clock: Clock;
  readonly log: Log;
  /** Characters. */
  readonly perWorkspace?: number;
  readonly whole?: number;
}

/**
 * Responses that are too long to be sent in one piece: they are written as the client reads them, and workspaces
 * share a limited amount of memory for them. Every response with a body passes through here.
 */
export class LongAnswers {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open: FairPlaces<number>;

  constructor({ clock, log, perWorkspace = PER_WORKSPACE, whole = WHOLE }: LongAnswersParts) {
    this.#clock = clock;
    this.#log = log;
    this.#open = new FairPlaces({ perHolder: perWorkspace, total: whole, refused: tooMany });
  }

  /** Characters of the long responses in progress. */
  get held(): number {
    return this.#open.taken;
  }

  /**
   * The same reply, streamed if it is long. A call with a method other than GET has already had its effect, so its answer
   * is never refused: the workspace's oldest answers are broken off instead.
   * @throws Problem 429 `rate_limited` if the workspace's clients have too much left to read
   */
  reply(answered: AnsweredRequest, reply: Reply): Reply | StreamReply {
    const parts = longParts(reply);
    if (!parts) return reply;
    const { workspaceId, request } = answered;
    const isRead = request.method === "GET" || request.method === "HEAD";
    const place = this.#open.take(workspaceId, parts.length, !isRead);
    return {
      abandon: place.release,
      stream: (own, expire) => {
        const body = this.#download(answered, encoded(workspaceId, parts), {
          breakable: (breakOff) => place.endsBy(() => breakOff(new LostPlace())),
          ended() {
            place.release();
            // The connection may serve other calls, and must not be kept for a client that is gone.
            expire(IDLE_SECONDS);
          },
        });
        return new Response(body, { status: reply.status, headers: headersOf(reply, own) });
      },
    };
  }

  /**
   * The same body, read at once and sent in parts. Parts that the client has not read yet also count as memory. None
   * is refused, because the calls have already been made.
   */
  relay(answered: AnsweredRequest, source: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    let breakOff = (_: Error): void => {};
    const backlog = new Backlog(source, {
      free: CHUNK,
      hold: (bytes) => this.hold(answered.workspaceId, bytes),
      lost: () => breakOff(new LostPlace()),
    });
    async function* slices(): AsyncGenerator<Uint8Array, void> {
      for await (const chunk of backlog.chunks()) yield* slicesOf(chunk);
    }
    return this.#download(answered, slices(), {
      breakable: (given) => {
        breakOff = given;
      },
      stop: () => backlog.stop(),
      ended: () => {},
    });
  }

  /**
   * A place for a part of a stream that waits for its client. MUST be released. Never refused: the workspace's oldest
   * answers are broken off instead.
   */
  hold(workspaceId: number, length: number): FairPlace<number> {
    return this.#open.take(workspaceId, length, true);
  }

  #download(
    { requestId, request }: AnsweredRequest,
    chunks: AsyncGenerator<Uint8Array, void>,
    parts: Pick<DownloadParts, "breakable" | "ended"> & Partial<Pick<DownloadParts, "stop">>,
  ): ReadableStream<Uint8Array> {
    const log = this.#log;
    return downloadStream(chunks, {
      clock: this.#clock,
      signal: request.signal,
      stop: () => {},
      ...parts,
      failed(error) {
        const isExpected =
          error instanceof StalledReader || error instanceof LostPlace || error instanceof Problem;
        log[isExpected ? "warn" : "error"]("a long answer was interrupted", { request_id: requestId, error });
      },
    });
  }
}

/** The memory went to another answer. */
class LostPlace extends Error {
  override readonly name = "LostPlace";

  constructor() {
    super("newer answers needed the memory");
  }
}

/** Null if the reply is short. */
function longParts({ text, json, body }: Reply): BodyParts | null {
  if (text !== undefined) return text.length > CHUNK ? textParts(text) : null;
  if (json !== undefined) return json.length > CHUNK ? json : null;
  const parts = jsonParts(body);
  return parts.length > CHUNK ? parts : null;
}

/**
 * Chunks take turns with all other work, because Bun asks for megabytes ahead of a reader, and a workspace may have
 * many readers.
 */
async function* encoded(workspaceId: number, { parts }: BodyParts): AsyncGenerator<Uint8Array, void> {
  for (const chunk of chunksOf(parts())) {
    yield chunk;
    const turn = takeTurn(workspaceId, { bytes: chunk.length });
    if (turn) await turn;
  }
}

function* chunksOf(parts: Iterable<string | Uint8Array>): Generator<Uint8Array, void> {
  let chunk = "";
  for (const part of parts) {
    if (typeof part === "string") chunk += part;
    if (chunk !== "" && (chunk.length >= CHUNK || typeof part !== "string")) {
      yield ENCODER.encode(chunk);
      chunk = "";
    }
    if (typeof part !== "string") yield* slicesOf(part);
  }
  if (chunk !== "") yield ENCODER.encode(chunk);
}

function* slicesOf(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let start = 0; start < bytes.length; start += CHUNK) yield bytes.subarray(start, start + CHUNK);
}

function tooMany(isOwn: boolean): Problem {
  return new Problem(
    "rate_limited",
    isOwn
      ? "The workspace's clients have too many long answers left to read. Retry when they have read them."
      : "The server has too many long answers in progress. Retry shortly.",
    { headers: { "Retry-After": String(RETRY_SECONDS) } },
  );
}
