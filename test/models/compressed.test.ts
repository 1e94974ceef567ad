/** Compressed answers are refused unread: Bun would inflate them before any limit on their bytes applies. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { systemClock } from "../../src/base/clock.ts";
import { createOutbound } from "../../src/connectors/outbound/fetch.ts";
import { ownAddress } from "../../src/connectors/outbound/own-address.ts";
import { cappedFetch } from "../../src/models/capped-fetch.ts";
import { boundedFetch } from "../../src/models/embed/fetch.ts";

const TEXT = "x".repeat(1_000_000);
const BODIES: Readonly<Record<string, Uint8Array | string>> = {
  br: brotliCompressSync(TEXT),
  gzip: gzipSync(TEXT),
  identity: TEXT,
};

let server: Bun.Server<undefined>;
let asked: (string | null)[];
beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      asked.push(request.headers.get("accept-encoding"));
      const encoding = new URL(request.url).searchParams.get("as") ?? "identity";
      return new Response(BODIES[encoding], { headers: { "content-encoding": encoding } });
    },
  });
});
beforeEach(() => {
  asked = [];
});
afterAll(() => server.stop(true));

const outbound = createOutbound({
  allow: ["127.0.0.1"],
  instance: "0123456789abcdef",
  own: ownAddress({ host: "127.0.0.1", port: 1 }, () => null),
});

const FETCHES: readonly [string, (url: string) => Promise<Response>][] = [
  ["a model's", (url) => cappedFetch("openai", systemClock)(url, { headers: { "accept-encoding": "br" } })],
  ["an embedding model's", (url) => boundedFetch(systemClock)(url)],
  ["a connector's", (url) => outbound.fetchFor(1)(url, { headers: { "accept-encoding": "br" } })],
];

test.each(FETCHES)(
  "%s compressed answer is refused, and compression was not requested",
  async (_, fetching) => {
    for (const encoding of ["br", "gzip"]) {
      const failure = await fetching(`${server.url.origin}/?as=${encoding}`).then(
        () => null,
        (error: unknown) => String(error),
      );
      expect(failure).toContain("compressed");
    }
    const plain = await fetching(`${server.url.origin}/?as=identity`);
    expect((await plain.text()).length).toBe(TEXT.length);
    expect(asked).toEqual(["identity", "identity", "identity"]);
  },
);
