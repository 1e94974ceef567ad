import type { Clock } from "../base/clock.ts";
import { Problem } from "../base/errors.ts";
import type { Log } from "../base/log.ts";
import type { Call } from "../gate/call.ts";
import type { Reply } from "./answer.ts";
import type { JsonParts } from "./connector-view.ts";
import { downloadStream, OpenDownloads, StalledReader } from "./download.ts";
import type { StreamReply } from "./endpoint.ts";
import { IDLE_SECONDS } from "./listen.ts";

/** Maximum characters of a response sent in one piece. */
const IN_ONE_PIECE = 1024 * 1024;
/** Characters encoded at a time. */
const CHUNK = 64 * 1024;
const JSON_TYPE = { "content-type": "application/json" };
const ENCODER = new TextEncoder();

/**
 * Responses that may have megabytes. Beyond a certain length they are written as the client reads them, and only so
 * many at once.
 */
export class LongAnswers {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #open = new OpenDownloads({ what: "long answers", perWorkspace: 8, perNode: 64 });

  constructor({ clock, log }: { readonly clock: Clock; readonly log: Log }) {
    this.#clock = clock;
    this.#log = log;
  }

  /** @throws Problem 429 `rate_limited` for too many long responses */
  reply(call: Call, request: Request, status: number, json: JsonParts): Reply | StreamReply {
    if (json.length <= IN_ONE_PIECE) {
      return { status, text: [...json.parts()].join(""), headers: JSON_TYPE };
    }
    const { requestId, caller } = call;
    const release = this.#open.take(caller.workspaceId, requestId);
    const [clock, log] = [this.#clock, this.#log];
    return {
      abandon: release,
      stream(own, expire) {
        const body = downloadStream(encoded(json), {
          clock,
          signal: request.signal,
          stop: () => {},
          failed(error) {
            const isExpected = error instanceof StalledReader || error instanceof Problem;
            log[isExpected ? "warn" : "error"]("a long answer was interrupted", {
              request_id: requestId,
              error,
            });
          },
          ended() {
            release();
            // The connection may serve other calls, and must not be kept for a client that is gone.
            expire(IDLE_SECONDS);
          },
        });
        return new Response(body, { status, headers: { ...own, ...JSON_TYPE } });
      },
    };
  }
}

async function* encoded(json: JsonParts): AsyncGenerator<Uint8Array, void> {
  let chunk = "";
  for (const part of json.parts()) {
    chunk += part;
    if (chunk.length < CHUNK) continue;
    yield ENCODER.encode(chunk);
    chunk = "";
  }
  if (chunk !== "") yield ENCODER.encode(chunk);
}
