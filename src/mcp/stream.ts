/** Bun sends the headers with the body's first byte: a quiet stream would look unopened without this. */
const OPENED = new TextEncoder().encode(": open\n\n");

/** A stream that was opened. */
export interface OpenedStream {
  readonly response: Response;
  /** Ends it. What it has brought so far may still be read. */
  readonly end: () => void;
}

/** The same stream, with a comment first; `ended` is called once it is over, whoever ended it. */
export function opened(response: Response, ended: () => void): OpenedStream {
  const reader = response.body?.getReader();
  let isOver = false;
  const over = (): void => {
    if (isOver) return;
    isOver = true;
    ended();
  };
  const body = new ReadableStream<Uint8Array>({
    start: (controller) => controller.enqueue(OPENED),
    async pull(controller) {
      try {
        const next = await reader?.read();
        if (next?.value && !next.done) {
          controller.enqueue(next.value);
          return;
        }
        over();
        controller.close();
      } catch (error) {
        over();
        throw error;
      }
    },
    async cancel(reason) {
      over();
      await reader?.cancel(reason);
    },
  });
  return {
    response: new Response(body, { status: response.status, headers: response.headers }),
    // The read that waits is told that nothing more comes. That the stream is broken by then changes nothing.
    end: () => void reader?.cancel().catch(() => {}),
  };
}
