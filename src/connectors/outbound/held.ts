import { ConnectorError } from "../source.ts";

/** Statuses whose responses have no body (Fetch standard, "null body status"). */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);
const LEAST_STATUS = 200;
const LAST_STATUS = 599;

/** Bodies that nobody has read, cancelled or aborted, and that are no longer reachable. */
const forgotten = new FinalizationRegistry<() => void>((letGo) => letGo());

/**
 * The same response, whose slot is released as soon as its body was read to the end, failed or was cancelled, or the
 * signal aborts. If the response is just dropped, the slot is released when its memory is collected. Nothing is read
 * ahead.
 *
 * @param release releases the slot. MUST tolerate repeated calls. Not called if this throws
 * @throws ConnectorError `refused` for a status that no Response can have
 */
export function holdUntilRead(
  response: Response,
  release: () => void,
  signal?: AbortSignal | null,
): Response {
  const { status, statusText, headers, body } = response;
  if (!body) {
    release();
    return response;
  }
  const reader = body.getReader();
  // Nobody needs the body any more, so it does not matter if its connection breaks as well.
  const drop = () => void reader.cancel().catch(() => {});
  if (status < LEAST_STATUS || status > LAST_STATUS) {
    drop();
    throw new ConnectorError("refused", `The server answered with the invalid status ${status}.`);
  }
  const key = {};
  const end = (): void => {
    forgotten.unregister(key);
    signal?.removeEventListener("abort", end);
    release();
  };
  if (WITHOUT_BODY.has(status)) {
    drop();
    end();
    return new Response(null, { status, statusText, headers });
  }
  const held = new Response(
    new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          try {
            const { done, value } = await reader.read();
            if (!done) {
              controller.enqueue(value);
              return;
            }
            controller.close();
          } catch (error) {
            controller.error(error);
          }
          end();
        },
        async cancel(reason) {
          end();
          await reader.cancel(reason);
        },
      },
      { highWaterMark: 0 },
    ),
    { status, statusText, headers },
  );
  if (signal?.aborted) end();
  else {
    signal?.addEventListener("abort", end, { once: true });
    // Registers the stream: a reader may hold it without the response. The values kept here MUST NOT reference it.
    if (held.body) forgotten.register(held.body, letGo(reader, release), key);
  }
  return held;
}

function letGo(reader: Pick<ReadableStreamDefaultReader, "cancel">, release: () => void): () => void {
  return () => {
    release();
    // As above: nobody can need it any more.
    reader.cancel().catch(() => {});
  };
}
