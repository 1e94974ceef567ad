/** One request, as a receiver gets it. */
export interface Posted {
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  readonly body: {
    readonly type: string;
    readonly timestamp: string;
    readonly data: Record<string, unknown>;
  };
}

/**
 * A receiver of webhooks. It answers 200, or first the contents of `answers`. With `only`, it records only that type.
 */
export interface FakeReceiver {
  readonly url: string;
  readonly posted: Posted[];
  readonly answers: (() => Response | Promise<Response>)[];
  close(): Promise<void>;
}

export function startReceiver(only?: string): FakeReceiver {
  const posted: Posted[] = [];
  const answers: FakeReceiver["answers"] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const text = await request.text();
      const body = JSON.parse(text) as Posted["body"];
      if (only !== undefined && body.type !== only) return new Response("ok");
      posted.push({ headers: Object.fromEntries(request.headers), text, body });
      return (answers.shift() ?? (() => new Response("ok")))();
    },
  });
  return {
    url: `http://hook:s3cret@127.0.0.1:${server.port}/path?key=s3cret`,
    posted,
    answers,
    close: () => server.stop(true),
  };
}

export { until } from "../support/until.ts";
