import { ConnectorError } from "../source.ts";

/** Statuses whose answers have no body (Fetch standard, "null body status"): none can be given to them. */
const WITHOUT_BODY: ReadonlySet<number> = new Set([101, 204, 205, 304]);
const LEAST_STATUS = 200;
const LAST_STATUS = 599;

/** A body that nobody has read, cancelled or aborted, and that nobody can any more. */
const forgotten = new FinalizationRegistry<() => void>((letGo) => letGo());

/**
 * The same response, whose slot is given back as soon as its body has been read to the end, has failed or was cancelled, or
 * the signal aborts; where somebody just drops it, when its memory is collected. Nothing is read before it is asked for.
 *
 * @param release gives the slot back. MUST bear to be called again. Not called where this throws
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
  // Nobody wants it any more: that its connection broke as well changes nothing.
  const drop = () => void reader.cancel().catch(() => {});
  if (status < LEAST_STATUS || status > LAST_STATUS) {
    drop();
    throw new ConnectorError("refused", `The server answered with status ${status}, which there is not.`);
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
    // The stream, since a reader may hold it without the response. It MUST NOT be reached from what is kept here.
    if (held.body) forgotten.register(held.body, letGo(reader, release), key);
  }
  return held;
}

function letGo(reader: Pick<ReadableStreamDefaultReader, "cancel">, release: () => void): () => void {
  return () => {
    release();
    // As above: nobody can want it any more.
    reader.cancel().catch(() => {});
  };
}
