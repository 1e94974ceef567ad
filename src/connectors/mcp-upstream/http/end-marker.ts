import type { JSONRPCMessage } from "@modelcontextprotocol/sdk/types.js";

const METHOD = "gatehouse/stream_ended";
const FRAME = new TextEncoder().encode(
  `\n\nevent: message\ndata: ${JSON.stringify({ jsonrpc: "2.0", method: METHOD })}\n\n`,
);

/**
 * The stream with one more message at its end, even if it breaks. The SDK does not report when it has read a stream
 * to its end, and reads with some delay: a message inside the stream arrives after all that came before it. An
 * upstream that sends this message itself only loses its own answers.
 * @param broke called if the stream breaks; returns whether to add the marker. Otherwise the stream breaks for the
 *   SDK too, which then stops reading it
 */
export function markEnd(response: Response, broke: (error: unknown) => boolean): Response {
  const reader = response.body?.getReader();
  const body = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const part = await reader?.read();
          if (part?.value) {
            controller.enqueue(part.value);
            return;
          }
        } catch (error) {
          if (!broke(error)) {
            controller.error(error);
            return;
          }
        }
        controller.enqueue(FRAME);
        controller.close();
      },
      cancel: (reason) => reader?.cancel(reason),
    },
    { highWaterMark: 0 },
  );
  return new Response(body, { status: response.status, headers: response.headers });
}

export function isEndMarker(message: JSONRPCMessage): boolean {
  return "method" in message && message.method === METHOD;
}
