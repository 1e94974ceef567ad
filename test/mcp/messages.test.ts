import { describe, expect, test } from "bun:test";
import { countCalls, initializeOf } from "../../src/mcp/messages.ts";

const call = { jsonrpc: "2.0", id: 1, method: "tools/list" };

describe("what counts against the limit", () => {
  test.each([
    ["a ping", { ...call, method: "ping" }, 0],
    ["that a call is cancelled", { jsonrpc: "2.0", method: "notifications/cancelled" }, 0],
    ["that the handshake is done", { jsonrpc: "2.0", method: "notifications/initialized" }, 0],
    ["an answer", { jsonrpc: "2.0", id: 1, result: {} }, 0],
    ["null", null, 0],
    ["a text", "tools/list", 0],
    ["an empty batch", [], 0],
    ["one request", call, 1],
    ["a method that is not text", { ...call, method: 1 }, 1],
    ["another notification", { jsonrpc: "2.0", method: "notifications/progress" }, 1],
    ["one with the id 0", { ...call, id: 0 }, 1],
    ["one with an empty id", { ...call, id: "" }, 1],
    ["a batch of all sorts", [call, { ...call, method: "ping" }, { method: "notifications/x" }, call, 7], 3],
  ])("%s", (_, body, expected) => {
    expect(countCalls(body)).toBe(expected);
  });
});

describe("the first message", () => {
  test.each([
    ["another request", call],
    ["nothing", null],
    ["a text", "initialize"],
    ["an empty batch", []],
  ])("does not exist in %s", (_, body) => {
    expect(initializeOf(body)).toBeUndefined();
  });

  const params = { protocolVersion: "2025-06-18", clientInfo: { name: "cursor", version: "1.2" } };
  test.each([
    ["says who it is", { params }, { protocol: "2025-06-18", client: "cursor 1.2" }],
    ["may say nothing", {}, { protocol: "", client: "" }],
    ["may say nonsense", { params: { protocolVersion: 7, clientInfo: "x" } }, { protocol: "", client: "" }],
    [
      "is cut",
      { params: { protocolVersion: "v".repeat(500), clientInfo: { name: "n".repeat(500) } } },
      { protocol: "v".repeat(100), client: "n".repeat(100) },
    ],
  ])("%s", (_, more, expected) => {
    const hello = { jsonrpc: "2.0", id: 1, method: "initialize", ...more };
    expect(initializeOf(hello)).toEqual(expected);
    expect(initializeOf([call, hello])).toEqual(expected);
  });
});
