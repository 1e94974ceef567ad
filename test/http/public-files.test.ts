/**
 * Files that anyone may read: compressed once, revalidated, and sent in parts to a limited number of strangers at
 * once.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { PublicFiles, publicFile } from "../../src/http/answer/public-files.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

const PER_ADDRESS = 64;
const AT_ONCE = 128;
const BUNDLE = "/docs/swagger-ui-bundle.js";

let gateway: TestGateway;
const sockets: Socket[] = [];
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(async () => {
  for (const socket of sockets) socket.destroy();
  await gateway.stop();
});

const ask = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, { headers, decompress: false });

describe.each(["/openapi.json", BUNDLE, "/docs/swagger-ui.css", "/docs", "/console"])("%s", (path) => {
  test("is compressed for clients that accept it, and identical for others", async () => {
    const packed = await ask(path, { "accept-encoding": "gzip, br" });
    const plain = await ask(path, { "accept-encoding": "identity" });
    expect([packed.headers.get("content-encoding"), plain.headers.get("content-encoding")]).toEqual([
      "gzip",
      null,
    ]);
    const text = await plain.text();
    expect(new TextDecoder().decode(Bun.gunzipSync(await packed.arrayBuffer()))).toBe(text);
    expect(packed.headers.get("vary")).toBe("accept-encoding");
  });

  test("is not sent again to a client that has it", async () => {
    for (const encoding of ["gzip", "identity"]) {
      const first = await ask(path, { "accept-encoding": encoding });
      const etag = first.headers.get("etag") ?? "";
      expect([etag === "", (await first.bytes()).length === 0]).toEqual([false, false]);
      const again = await ask(path, { "accept-encoding": encoding, "if-none-match": etag });
      expect([again.status, await again.text()]).toEqual([304, ""]);
    }
  });
});

test("a limited number of strangers may leave answers unread; further ones are told to retry, and probes are answered", async () => {
  const { hostname, port } = new URL(gateway.url);
  const seen = { 200: 0, 429: 0 };
  const heads = await Promise.all(
    Array.from({ length: PER_ADDRESS * 2 }, () => {
      const socket = connect({ host: hostname, port: Number(port) });
      sockets.push(socket);
      socket.on("error", () => {});
      // The window is small, so the system itself buffers little of the file.
      socket.write(`GET ${BUNDLE} HTTP/1.1\r\nhost: x\r\n\r\n`);
      return new Promise<string>((resolve) =>
        socket.once("data", (data) => {
          socket.pause();
          resolve(data.toString("latin1"));
        }),
      );
    }),
  );
  for (const head of heads) {
    const status = head.slice(9, 12);
    if (status !== "200" && status !== "429") throw new Error(head);
    seen[status] += 1;
    if (status === "429") expect(head).toMatch(/retry-after: 1\r\n/i);
  }
  expect((await fetch(`${gateway.url}/livez`)).status).toBe(200);
  // Data that the system has buffered for a reader is no longer held here, so others may have had its slot.
  expect(seen[200]).toBeGreaterThanOrEqual(PER_ADDRESS);
  for (const socket of sockets.splice(0)) socket.destroy();
  let status = 429;
  while (status === 429) {
    const answer = await ask(BUNDLE);
    ({ status } = answer);
    await answer.bytes();
  }
  expect(status).toBe(200);
}, 60_000);

describe("of larger files", () => {
  const reading = async () => {
    const clock = new FakeClock();
    const files = new PublicFiles({ clock, ids: () => "req_1" });
    const file = await publicFile(new Uint8Array(300_000), { "content-type": "text/plain" });
    const from = (address: string, method = "GET") =>
      files.answer(
        {
          request: new Request("http://gate/file", { method }),
          // Only what a file's route needs from the server.
          server: { requestIP: () => ({ address, port: 1, family: "IPv4" }), timeout() {} } as never,
        },
        file,
      );
    return { clock, files, from };
  };

  test("one address reads a limited number at once, and another address is still served", async () => {
    const { files, from } = await reading();
    const open = Array.from({ length: PER_ADDRESS }, () => from("10.0.0.1"));
    const refused = from("10.0.0.1");
    expect([refused.status, refused.headers.get("retry-after"), refused.headers.get("connection")]).toEqual([
      429,
      "1",
      "close",
    ]);
    expect(await refused.json()).toMatchObject({ code: "rate_limited", request_id: "req_1" });
    for (let at = PER_ADDRESS; at < AT_ONCE; at++) expect(from("10.0.0.2").status).toBe(200);
    // All slots are taken: the oldest of the address with the most goes to an address that has none.
    expect((await from("10.0.0.3").bytes()).length).toBe(300_000);
    await expect(open[0]?.bytes()).rejects.toThrow("another reader needed the place");
    expect((await open[1]?.bytes())?.length).toBe(300_000);
    expect(files.open).toBe(AT_ONCE - 2);
  });

  test("a reader that reads nothing for half a minute loses its slot; HEAD takes none", async () => {
    const { clock, files, from } = await reading();
    from("10.0.0.1");
    expect((await from("10.0.0.1", "HEAD")).status).toBe(200);
    expect(files.open).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    clock.advance(30_000);
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
    expect(files.open).toBe(0);
  });
});
