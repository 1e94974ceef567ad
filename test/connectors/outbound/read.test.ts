import { afterEach, describe, expect, test } from "bun:test";
import fc from "fast-check";
import { capBody } from "../../../src/base/capped-body.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { Inflow } from "../../../src/base/inflow.ts";
import { readCapped } from "../../../src/connectors/outbound/read.ts";
import { ConnectorError } from "../../../src/connectors/source.ts";
import { testOutbound } from "../../support/outbound.ts";
import { faultOf } from "./support.ts";

/** A capped body whose refusals name the cause. */
const capStream = (given: Response, bytes: number): Response =>
  capBody(given, {
    bytes,
    tooLarge: () => new ConnectorError("too_large", `The answer is larger than ${bytes} bytes.`),
    jsonTooLarge: () => new ConnectorError("nested_too_deep", "The answer is nested too deeply."),
    inflow: new Inflow(systemClock, 1),
  });

const encoder = new TextEncoder();

/** A response that sends these parts and then ends, or never ends. */
function response(parts: readonly string[], headers: Record<string, string> = {}, end = true) {
  const state = { read: 0, cancelled: false };
  const body = new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const part = parts[state.read++];
        if (part !== undefined) controller.enqueue(encoder.encode(part));
        else if (end) controller.close();
        else return new Promise(() => {});
        return undefined;
      },
      cancel() {
        state.cancelled = true;
      },
    },
    { highWaterMark: 0 },
  );
  return { response: new Response(body, { headers }), state };
}

const TOO_LARGE = ["too_large", "The answer is larger than 10 bytes."] as const;

describe("readCapped", () => {
  test("releases a body beyond its cap, without reading on", async () => {
    const { response: given, state } = response(["12345", "678901", "never read"]);
    expect(await faultOf(readCapped(given, 10))).toEqual(TOO_LARGE);
    expect(state).toEqual({ read: 2, cancelled: true });
  });

  test("releases a body that declares a larger size", async () => {
    const { response: given, state } = response(["1"], { "content-length": "11" });
    expect(await faultOf(readCapped(given, 10))).toEqual(TOO_LARGE);
    expect(state).toEqual({ read: 0, cancelled: true });
  });

  test.each([
    [
      "cancelled",
      new DOMException("x", "AbortError"),
      "The server did not answer before the request was cancelled.",
    ],
    ["timeout", new DOMException("x", "TimeoutError"), "The server did not answer in time."],
    ["refused", new ConnectorError("refused", "In its own words."), "In its own words."],
  ])(
    "releases the body when the signal says %s, before or during reading",
    async (fault, reason, message) => {
      const before = response(["1"]);
      expect(await faultOf(readCapped(before.response, 10, AbortSignal.abort(reason)))).toEqual([
        fault,
        message,
      ]);
      const meanwhile = response(["1"], {}, false);
      const giveUp = new AbortController();
      const reading = faultOf(readCapped(meanwhile.response, 10, giveUp.signal));
      giveUp.abort(reason);
      expect(await reading).toEqual([fault, message]);
      expect([before.state.cancelled, meanwhile.state.cancelled]).toEqual([true, true]);
    },
  );

  test("reads any other body completely", async () => {
    expect(await readCapped(new Response(null), 10)).toEqual(new Uint8Array());
    await fc.assert(
      fc.asyncProperty(fc.array(fc.string(), { maxLength: 8 }), async (parts) => {
        const bytes = encoder.encode(parts.join(""));
        expect(await readCapped(response(parts).response, bytes.length)).toEqual(bytes);
      }),
    );
  });
});

describe("capBody", () => {
  const events = { "content-type": "text/event-stream; charset=utf-8" };

  test.each([
    ["a body that is larger in total", {}, ["12345", "6789", "01"], "123456789"],
    ["an event that is larger, in one part", events, ["data: 12345"], ""],
    ["an event that is larger, in many", events, ["data:", "12\n", "345"], "data:12\n"],
    ["an event that ends in the part that exceeds the limit", events, ["data:12345\n\nx\n\n"], ""],
    ["a line without an end", events, ["x\n\n", "1234567890", "1"], "x\n\n1234567890"],
    ["lines that end in two characters", events, ["a\r\nb\r", "\nc\r\n", "d\r\n"], "a\r\nb\r\nc\r\n"],
    ["lines that are not blank", events, ["a\nb\nc\nd\ne\n", "f"], "a\nb\nc\nd\ne\n"],
    [
      "another type that resembles events",
      { "content-type": "application/json" },
      ["1\n\n2\n\n3\n\n4\n\n5"],
      "",
    ],
  ])("cuts off %s", async (_, headers, parts, before) => {
    const { response: given, state } = response(parts, headers, false);
    const reader = capStream(given, 10).body?.getReader();
    let text = "";
    const all = (async () => {
      for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) {
        text += new TextDecoder().decode(part.value);
      }
    })();
    expect(await faultOf(all)).toEqual(TOO_LARGE);
    expect(text).toBe(before);
    expect(state.cancelled).toBe(true);
  });

  test.each(["\n\n", "\r\r", "\r\n\r\n", "\n\r\n", "\r\n\n"])(
    "starts counting again after a blank line %j, however it is cut",
    async (blank) => {
      const text = `data:1234${blank}`.slice(0, 20).repeat(50);
      await fc.assert(
        fc.asyncProperty(fc.integer({ min: 1, max: 30 }), async (size) => {
          const parts = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
          expect(await capStream(response(parts, events).response, 13).text()).toBe(text);
        }),
        { numRuns: 30 },
      );
    },
  );

  test("passes on everything else", async () => {
    const given = new Response("12345", {
      status: 404,
      statusText: "No",
      headers: { "x-a": "b", "content-length": "5" },
    });
    const capped = capStream(given, 10);
    expect([capped.status, capped.statusText, capped.headers.get("x-a")]).toEqual([404, "No", "b"]);
    expect(capped.headers.get("content-length")).toBe("5");
    expect(await capped.text()).toBe("12345");
    const empty = new Response(null, { status: 202 });
    expect(capStream(empty, 10)).toBe(empty);
  });

  test("reads nothing before it is asked to, and notifies the upstream when its reader leaves", async () => {
    const { response: given, state } = response(["1", "2"], events, false);
    const reader = capStream(given, 10).body?.getReader();
    expect(state.read).toBe(0);
    await reader?.read();
    await reader?.cancel();
    expect(state).toEqual({ read: 1, cancelled: true });
  });
});

describe("a server that sends 100 MB", () => {
  const TOTAL = 100 * 1024 * 1024;
  const CAP = 1024 * 1024;
  /** The sockets' buffers on both sides when a reader leaves, plus the buffers of fetch. */
  const MOST_SENT = 24 * 1024 * 1024;
  let stop = async () => {};

  afterEach(() => stop());

  function flood(type: string) {
    const part = new Uint8Array(64 * 1024).fill(120);
    const state = { sent: 0 };
    const { promise: left, resolve: leave } = Promise.withResolvers<void>();
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () =>
        new Response(
          new ReadableStream({
            async pull(controller) {
              if (state.sent >= TOTAL) return controller.close();
              controller.enqueue(part);
              state.sent += part.length;
              // One turn of the event loop, in which the server notices that the other side has left.
              await new Promise<void>((resolve) => setImmediate(resolve));
            },
            cancel: () => leave(),
          }),
          { headers: { "content-type": type } },
        ),
    });
    const outbound = testOutbound();
    stop = async () => {
      outbound.close();
      await server.stop(true);
    };
    return { state, left, fetch: () => outbound.fetch(`http://127.0.0.1:${server.port}/`) };
  }

  test.each(["application/json", "text/event-stream"])("is left early: %s", async (type) => {
    const { state, left, fetch } = flood(type);
    const capped = capStream(await fetch(), CAP);
    expect((await faultOf(capped.bytes()))[0]).toBe("too_large");
    await left;
    expect(state.sent).toBeLessThan(MOST_SENT);
  });

  test("is abandoned early by readCapped", async () => {
    const { state, left, fetch } = flood("application/json");
    expect((await faultOf(readCapped(await fetch(), CAP)))[0]).toBe("too_large");
    await left;
    expect(state.sent).toBeLessThan(MOST_SENT);
  });

  test("sends no more than the buffers can take while nobody reads", async () => {
    const { state, left, fetch } = flood("text/event-stream");
    const reader = capStream(await fetch(), CAP).body?.getReader();
    await reader?.read();
    await reader?.cancel();
    await left;
    expect(state.sent).toBeLessThan(MOST_SENT);
  });

  test("is refused unread if it would have to be decompressed", async () => {
    const bomb = Bun.gzipSync(new Uint8Array(TOTAL));
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response(bomb, { headers: { "content-encoding": "gzip" } }),
    });
    const outbound = testOutbound();
    stop = async () => {
      outbound.close();
      await server.stop(true);
    };
    const refused = outbound.fetch(`http://127.0.0.1:${server.port}/`).catch(String);
    expect(await refused).toContain("The answer is compressed");
  });
});
