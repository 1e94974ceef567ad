import { afterAll, describe, expect, test } from "bun:test";
import { createServer, type Server, type Socket } from "node:net";
import { asConnectorError } from "../../../src/connectors/outbound/errors.ts";
import { ConnectorError, type ConnectorFault } from "../../../src/connectors/source.ts";
import { testOutbound } from "../../support/outbound.ts";

const servers: Server[] = [];
const outbound = testOutbound();

afterAll(() => {
  outbound.close();
  for (const server of servers) server.close();
});

/** Starts a server that treats each client in the given way once the client has sent something. @returns the port */
async function behaving(behave: (socket: Socket) => void): Promise<number> {
  const server = createServer((socket) => {
    // The other side may leave during a write.
    socket.on("error", () => {});
    socket.once("data", () => behave(socket));
  });
  servers.push(server);
  const { promise, resolve } = Promise.withResolvers<void>();
  server.listen(0, "127.0.0.1", resolve);
  await promise;
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("no port");
  return address.port;
}

async function thrown(url: string, signal?: AbortSignal): Promise<ConnectorError> {
  const asking = outbound.fetch(url, signal ? { signal } : {}).then((response) => response.text());
  return asConnectorError(await asking.catch((error) => error), "The connector github");
}

describe("what really happens on a connection", () => {
  const cases: [name: string, behave: (socket: Socket) => void, fault: ConnectorFault, words: string][] = [
    ["it is closed at once", (socket) => socket.destroy(), "unreachable", "closed the connection"],
    [
      "it is closed in the middle",
      (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nSECRET"),
      "unreachable",
      "closed the connection",
    ],
    ["its headers never end", (socket) => flood(socket), "too_large", "sent headers that are too large"],
    [
      "its answer is compressed",
      (socket) => socket.end("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 6\r\n\r\nSECRET"),
      "invalid_answer",
      "compressed its answer, although the request asked it not to",
    ],
  ];
  test.each(cases)("%s", async (_, behave, fault, words) => {
    const error = await thrown(`http://127.0.0.1:${await behaving(behave)}/?key=SECRET`);
    expect([error.fault, error.message]).toEqual([fault, `The connector github ${words}.`]);
    expect(error.cause).toBeUndefined();
  });

  test("nobody listens", async () => {
    const port = await behaving(() => {});
    await new Promise((resolve) => servers.pop()?.close(resolve));
    const error = await thrown(`http://127.0.0.1:${port}/?key=SECRET`);
    expect([error.fault, error.message]).toEqual([
      "unreachable",
      "The connector github cannot be reached: the connection was refused.",
    ]);
  });

  test("the caller gives up, because of time or by choice", async () => {
    const url = `http://127.0.0.1:${await behaving(() => {})}/`;
    const late = new DOMException("SECRET", "TimeoutError");
    expect((await thrown(url, AbortSignal.abort(late))).fault).toBe("timeout");
    expect((await thrown(url, AbortSignal.abort())).fault).toBe("cancelled");
    const giveUp = new AbortController();
    const asking = thrown(`http://127.0.0.1:${await behaving(() => giveUp.abort())}/`, giveUp.signal);
    expect((await asking).fault).toBe("cancelled");
  });
});

function flood(socket: Socket): void {
  socket.write("HTTP/1.1 200 OK\r\n");
  const more = (): void => {
    while (socket.writable && socket.write(`x: ${"y".repeat(60_000)}\r\n`)) {}
  };
  socket.on("drain", more);
  more();
}

describe("by its code", () => {
  const withCode = (code: unknown, cause?: unknown) =>
    Object.assign(new Error("fetching https://a.example/?key=SECRET", { cause }), { code });

  test.each([
    ["ENOTFOUND", "unreachable", "cannot be reached: its name cannot be resolved"],
    ["EHOSTUNREACH", "unreachable", "cannot be reached: there is no route to its address"],
    ["ECONNRESET", "unreachable", "closed the connection"],
    ["ETIMEDOUT", "timeout", "did not answer in time"],
    ["CERT_REVOKED", "unreachable", "has a certificate that is not accepted (CERT_REVOKED)"],
    [
      "INVALID_PURPOSE_ISSUER",
      "unreachable",
      "has a certificate that is not accepted (INVALID_PURPOSE_ISSUER)",
    ],
    ["ESOMETHING", "unreachable", "cannot be reached (ESOMETHING)"],
    ["key=SECRET in a code", "unreachable", "cannot be reached"],
    [23, "unreachable", "cannot be reached"],
  ] as const)("%s", (code, fault, words) => {
    for (const error of [withCode(code), new Error("SECRET", { cause: withCode(code) })]) {
      const mapped = asConnectorError(error, "The server");
      expect([mapped.fault, mapped.message]).toEqual([fault, `The server ${words}.`]);
      expect(mapped.cause).toBeUndefined();
    }
  });
});

test("a ConnectorError is kept unchanged, also as a cause", () => {
  const error = new ConnectorError("too_large", "In its own words.");
  expect(asConnectorError(error, "x")).toBe(error);
  expect(asConnectorError(new Error("y", { cause: error }), "x")).toBe(error);
});

test("an error that is not the network's keeps its cause, for the log", () => {
  const error = new TypeError("undefined is not a function");
  expect(asConnectorError(error, "The server")).toMatchObject({ fault: "unreachable", cause: error });
  expect(asConnectorError("text", "The server").message).toBe("The server cannot be reached.");
});
