/** A model that sends each chunk of its answer when the test lets it. */
/** Chunks that the model sends one by one, each when the test lets it. */
function paced() {
  let left = 0;
  let wake = Promise.withResolvers<void>();
  return {
    /** Lets the model send this many more chunks. */
    send(chunks: number): void {
      left += chunks;
      wake.resolve();
      wake = Promise.withResolvers();
    },
    /** Resolves when a chunk may be sent; with false if the caller has hung up. */
    async taken(signal: AbortSignal): Promise<boolean> {
      const hungUp = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      while (left === 0 && !signal.aborted) await Promise.race([wake.promise, hungUp]);
      if (signal.aborted) return false;
      left -= 1;
      return true;
    },
  };
}

/** A model whose answer waits for the test before each of its chunks. */
export function startPacedModel() {
  const pace = paced();
  const encoder = new TextEncoder();
  let chunks: readonly string[] = [];
  const frame = (delta: object, finish: string | null = null) =>
    encoder.encode(
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 0, model: "slow", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: ({ signal }) =>
      new Response(
        new ReadableStream({
          async start(controller) {
            for (const content of chunks) {
              if (!(await pace.taken(signal))) return;
              controller.enqueue(frame({ role: "assistant", content }));
            }
            if (!(await pace.taken(signal))) return;
            controller.enqueue(frame({}, "stop"));
            controller.enqueue(encoder.encode("data: [DONE]\n\n"));
            controller.close();
          },
        }),
        { headers: { "content-type": "text/event-stream" } },
      ),
  });
  return {
    url: `http://127.0.0.1:${server.port}/v1`,
    send: pace.send,
    answer(with_: readonly string[]): void {
      chunks = with_;
    },
    close: () => server.stop(true),
  };
}
