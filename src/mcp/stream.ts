/** Bun sends the headers with the first byte of the body. Without this, a quiet stream would look unopened. */
const OPENED = new TextEncoder().encode(": open\n\n");

/** An open stream. */
export interface OpenedEventStream {
  readonly response: Response;
  /** Ends the stream. What it has sent can still be read. */
  readonly end: () => void;
}

/** Wraps a stream, with a comment at its start. `ended` is called once it is over, whoever ended it. */
export function opened(response: Response, ended: () => void): OpenedEventStream {
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
    // The pending read then reports the end. An error of a stream that is already broken does not matter.
    end: () => void reader?.cancel().catch(() => {}),
  };
}
