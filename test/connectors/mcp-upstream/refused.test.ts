/** A call answered with an error status: whether it is repeated, and how much of the answer is shown. */
import { describe, expect, test } from "bun:test";
import { createMask } from "../../../src/base/masking/mask.ts";
import { refusedStatus } from "../../../src/connectors/mcp-upstream/http/refused.ts";
import { startFakeMcp } from "../../support/fake-mcp/http.ts";
import { faultOf, open, textOf } from "./support.ts";

const rpcError = (message: string) =>
  JSON.stringify({ jsonrpc: "2.0", error: { code: -32000, message }, id: null });

/** An upstream that has forgotten its first session and reports it with this body. */
function forgetful(body: string) {
  let forgets = false;
  const fake = startFakeMcp({
    fault: (_, request) =>
      forgets && request.headers.get("mcp-session-id") === "session-1"
        ? { kind: "status", status: 400, body }
        : undefined,
  });
  const up = open({ type: "http", url: fake.url, headers: {} });
  return {
    up,
    calls: () => fake.heard.filter((method) => method === "tools/call").length,
    handshakes: () => fake.heard.filter((method) => method === "initialize").length,
    forget() {
      forgets = true;
    },
    async [Symbol.asyncDispose]() {
      await up[Symbol.asyncDispose]();
      await fake.close();
    },
  };
}

describe("a call that is answered with 400", () => {
  test.each([
    ["by a tool that acted and mentions a session", rpcError("the checkout session could not be closed")],
    ["with words around an SDK's message", rpcError("Error: Session not found in the shop")],
    ["with an SDK's message in other letter case", "SESSION NOT FOUND"],
    ["with an SDK's message in another place", JSON.stringify({ message: "Session not found" })],
    ["with an SDK's message inside a list", `[${rpcError("Session not found")}]`],
    ["with an SDK's message, and more than is read", `Session not found${" ".repeat(20_000)}.`],
    ["with nothing", ""],
  ])("%s is made once, and refused", async (_, body) => {
    await using upstream = forgetful(body);
    await upstream.up.list();
    upstream.forget();
    expect(await faultOf(upstream.up.call("echo"))).toStartWith(
      "refused: The connector up answered with status 400",
    );
    expect([upstream.calls(), upstream.handshakes()]).toEqual([1, 1]);
  });

  test.each([
    "Bad Request: No valid session ID provided",
    "Bad Request: No valid session ID",
    "Bad Request: Mcp-Session-Id header is required",
    "Bad Request: Missing session ID",
    "Bad Request: Server not initialized",
    "Session not found",
  ])("with exactly %j, as a JSON-RPC error or as text, is repeated in a new session", async (phrase) => {
    for (const body of [rpcError(phrase), `${phrase}\n`]) {
      await using upstream = forgetful(body);
      await upstream.up.list();
      upstream.forget();
      const answers = await Promise.all([1, 2, 3].map((text) => upstream.up.call("echo", { text })));
      expect(answers.map(textOf)).toEqual(["1", "2", "3"]);
      expect(upstream.handshakes()).toBe(2);
    }
  });
});

describe("of an upstream's text with an error status", () => {
  const SECRET = "s3cr3t of the connector, forty-two letters";
  const parts = { name: "up", mask: createMask([SECRET]) };
  const said = async (body: string | ReadableStream<Uint8Array>) =>
    (await refusedStatus(new Response(body, { status: 500 }), false, parts)).message.slice(
      "The connector up answered with status 500".length,
    );

  test("no part of a secret shows, wherever reading stops", async () => {
    for (let shown = 1; shown < SECRET.length; shown++) {
      const blanks = " ".repeat(16_384 - shown);
      expect(await said(`${blanks}${SECRET}`)).toBe("");
    }
    expect(await said(`${" ".repeat(16_384 - SECRET.length)}${SECRET} and more`)).toBe(": [redacted]");
  });

  test("nor if the connection breaks in the middle of one", async () => {
    const broken = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(new TextEncoder().encode(`no: ${SECRET.slice(0, 30)}`)),
      pull: (controller) => controller.error(new Error("broken on purpose")),
    });
    expect(await said(broken)).toBe(": no:");
  });

  test("a secret with blanks is found before blanks are collapsed", async () => {
    const mask = createMask(["two  blanks and\tmore"]);
    const response = new Response("no: two  blanks and\tmore!", { status: 500 });
    const { message } = await refusedStatus(response, false, { ...parts, mask });
    expect(message).toEndWith(": no: [redacted]!");
  });

  test("300 characters show, with blanks collapsed", async () => {
    expect(await said("a \n\t b")).toBe(": a b");
    expect(await said("x".repeat(20_000))).toBe(`: ${"x".repeat(300)}…`);
  });
});
