import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Server } from "bun";
import type { Clock } from "../../base/clock.ts";
import { Problem } from "../../base/errors.ts";
import type { Ids } from "../../base/ids.ts";
import { FairPlaces } from "../../limits/fair-places.ts";
import { isKnown, takesGzip } from "../console/negotiate.ts";
import { IDLE_SECONDS } from "../listen.ts";
import { problemResponse } from "./answer.ts";
import { downloadStream } from "./download.ts";

/** A file that anyone may read. Compressed once, since every current browser accepts gzip. */
export interface PublicFile {
  /** Headers for both encodings, except the entity tag. */
  readonly headers: Readonly<Record<string, string>>;
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly gzip: Uint8Array<ArrayBuffer>;
  /** Strong entity tags. They identify bytes, so each encoding has its own (RFC 9110, section 8.8.3.3). */
  readonly plainTag: string;
  readonly gzipTag: string;
}

const compress = promisify(gzip);

/** Compresses in another thread: a script of 1.7 MB takes 120 ms. */
export async function publicFile(
  bytes: Uint8Array<ArrayBuffer>,
  headers: Readonly<Record<string, string>>,
): Promise<PublicFile> {
  const hash = Bun.hash(bytes).toString(36);
  return {
    plainTag: `"${hash}"`,
    gzipTag: `"${hash}-gz"`,
    headers: { ...headers, vary: "accept-encoding" },
    plain: bytes,
    gzip: new Uint8Array(await compress(bytes, { level: 9 })),
  };
}

/** Creates a value on the first request for it. After a failure, the next request tries again. */
export function madeOnce<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let made: Promise<Made> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** The maximum number of bytes sent in one piece. Bun keeps a piece until the client has read it. */
const CHUNK = 64 * 1024;
/** The maximum number of larger files read at once, by one address and by all. A browser asks for 6 at once. */
const PER_ADDRESS = 64;
const AT_ONCE = 128;
/** A reader that reads nothing for this long is abandoned. */
const STALL_MS = 30_000;
const RETRY_SECONDS = 1;

/** The parts of Elysia's context that a file's route uses. */
export interface FileRequest {
  readonly request: Request;
  readonly server: Server<unknown> | null;
}

/**
 * Serves files to anyone. Only their readers' addresses are known, so the number of large files read at once is
 * limited, by address and in total. They are sent part by part, with other work in between.
 */
export class PublicFiles {
  readonly #clock: Clock;
  readonly #ids: Ids;
  readonly #places = new FairPlaces<string>({ perHolder: PER_ADDRESS, total: AT_ONCE, refused: tooMany });

  constructor({ clock, ids }: { readonly clock: Clock; readonly ids: Ids }) {
    this.#clock = clock;
    this.#ids = ids;
  }

  /** Number of large files being read. */
  get open(): number {
    return this.#places.taken;
  }

  answer(asked: FileRequest, file: PublicFile): Response {
    const { headers: sent } = asked.request;
    const isPacked = takesGzip(sent.get("accept-encoding"));
    const etag = isPacked ? file.gzipTag : file.plainTag;
    const requestId = this.#ids("req");
    const headers: Record<string, string> = { ...file.headers, etag, "gatehouse-request-id": requestId };
    if (isKnown(sent.get("if-none-match"), etag)) return new Response(null, { status: 304, headers });
    if (isPacked) headers["content-encoding"] = "gzip";
    const bytes = isPacked ? file.gzip : file.plain;
    if (bytes.length <= CHUNK || asked.request.method === "HEAD") return new Response(bytes, { headers });
    try {
      return new Response(this.#stream(asked, bytes), { headers });
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      return problemResponse(error, { "gatehouse-request-id": requestId }, requestId);
    }
  }

  /** @throws Problem 429 `rate_limited` */
  #stream({ request, server }: FileRequest, bytes: Uint8Array<ArrayBuffer>): ReadableStream<Uint8Array> {
    const place = this.#places.take(server?.requestIP(request)?.address ?? "local");
    server?.timeout(request, 0);
    return downloadStream(inParts(bytes), {
      clock: this.#clock,
      signal: request.signal,
      stallMs: STALL_MS,
      stop: () => {},
      breakable: (breakOff) => place.endsBy(() => breakOff(new Error("another reader needed the place"))),
      // The bytes are in memory, so only the reader can fail, and logging that would let anyone fill the log.
      failed: () => {},
      ended() {
        place.release();
        server?.timeout(request, IDLE_SECONDS);
      },
    });
  }
}

async function* inParts(bytes: Uint8Array): AsyncGenerator<Uint8Array, void> {
  for (let start = 0; start < bytes.length; start += CHUNK) {
    yield bytes.subarray(start, start + CHUNK);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

function tooMany(): Problem {
  return new Problem("rate_limited", "Too many files are being read at once. Retry shortly.", {
    headers: { "Retry-After": String(RETRY_SECONDS), Connection: "close" },
  });
}
