/** An upstream on a real port that keeps each request as it was received, and answers as a script says. */

export interface RecordedRequest {
  readonly method: string;
  /** Path and query, as received. */
  readonly path: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type UpstreamAnswer = (request: RecordedRequest, index: number) => Response | Promise<Response>;

export interface RecordingUpstream {
  /** Without a path. */
  readonly url: string;
  /** Oldest first. */
  readonly requests: RecordedRequest[];
  /** Answers requests from now on, and restarts their count at 0. */
  answer(answer: UpstreamAnswer): void;
  close(): Promise<void>;
}

export function startRecordingUpstream(): RecordingUpstream {
  const requests: RecordedRequest[] = [];
  let answer: UpstreamAnswer = () => new Response("nothing is scripted", { status: 500 });
  let index = 0;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    development: false,
    error: (error) => new Response(String(error), { status: 500 }),
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const recorded = {
        method: request.method,
        path: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: await request.text(),
      };
      requests.push(recorded);
      return answer(recorded, index++);
    },
  });
  return {
    url: `http://127.0.0.1:${server.port}`,
    requests,
    answer(next) {
      answer = next;
      index = 0;
    },
    close: () => server.stop(true),
  };
}
