import { openFilesReserve } from "../../base/open-files/reserve.ts";

/** Bytes an answer may have: 256 vectors of 8,192 numbers of 22 characters are 46 MB. The SDK alone would read 2 GB. */
const MOST_BYTES = 64 * 1024 * 1024;

/** A `fetch` whose answers end in a RangeError where they are too large, instead of filling the memory. */
export function boundedFetch(mostBytes: number = MOST_BYTES): typeof fetch {
  const bounded = async (
    input: string | URL | Request,
    init?: RequestInit | BunFetchRequestInit,
  ): Promise<Response> => {
    if (!openFilesReserve.hasRoom(1)) await openFilesReserve.untilRoom(init?.signal);
    const response = await fetch(input, init);
    if (!response.body) return response;
    let bytes = 0;
    const body = response.body.pipeThrough(
      new TransformStream<Uint8Array, Uint8Array>({
        transform(chunk, controller) {
          bytes += chunk.length;
          if (bytes > mostBytes) throw new RangeError("The answer is too large.");
          controller.enqueue(chunk);
        },
      }),
    );
    const { status, statusText, headers } = response;
    return new Response(body, { status, statusText, headers });
  };
  return Object.assign(bounded, { preconnect: fetch.preconnect });
}
