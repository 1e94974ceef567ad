/** An upstream with an endless streamed answer, in whatever dialect its events are written. */
export interface EndlessModel {
  readonly sent: { readonly events: number };
  /** Ends in `/v1`. */
  readonly url: string;
  close(): Promise<void>;
}

/**
 * Sends the event of each number, from 0, as the reader asks for more, and counts them.
 * @param enough events after which it stops by itself, so that a failing test ends
 */
export function startEndlessModel(eventOf: (number: number) => string, enough = 50_000): EndlessModel {
  const sent = { events: 0 };
  const encoder = new TextEncoder();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    fetch: () =>
      new Response(
        new ReadableStream(
          {
            async pull(controller) {
              // Lets another call of this server, or of the gateway in the same process, run in between.
              await new Promise((resolve) => setImmediate(resolve));
              if (sent.events === enough) controller.close();
              else controller.enqueue(encoder.encode(eventOf(sent.events++)));
            },
          },
          { highWaterMark: 0 },
        ),
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
  return { sent, url: `http://127.0.0.1:${server.port}/v1`, close: () => server.stop(true) };
}
