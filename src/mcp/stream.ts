/** Bun sends the headers with the body's first byte: a quiet stream would look unopened without this. */
const OPENED = new TextEncoder().encode(": open\n\n");

/** The same stream, with a comment first; `ended` is called once it is over, whoever ended it. */
export function opened(response: Response, ended: () => void): Response {
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
  return new Response(body, { status: response.status, headers: response.headers });
}
