import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { finishedTask } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
let task: string;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("agent", { tier_policy: { tiers: [1] }, tools: ["time.*"] });
  await gateway.agent("stopped");
  await gateway.agent("modelless", { tier_policy: { models: { deny: ["*"] } } });
  await gateway.agent("broke", { budget: { credits_per_day: 0 } });
  await gateway.call("POST", "/v1/agents/stopped/stop");
  task = await finishedTask(gateway, "agent");
});
afterAll(() => gateway.stop());

const dispatch = (more: object) => ({ body: { agent: "agent", prompt: "x", ...more } });
type Row = readonly [code: string, status: number, method: string, path: string, options?: object];
const ROWS: readonly Row[] = [
  ["invalid_json", 400, "POST", "/v1/agents", { raw: "" }],
  ["unauthenticated", 401, "GET", "/v1/agents", { token: null }],
  ["invalid_token", 401, "GET", "/v1/agents", { token: "gth_unknown" }],
  ["credits_exhausted", 402, "POST", "/v1/tasks", dispatch({ agent: "broke" })],
  ["tier_forbidden", 403, "POST", "/v1/tasks", dispatch({ tier: 2 })],
  ["model_forbidden", 403, "POST", "/v1/tasks", dispatch({ agent: "modelless" })],
  ["not_found", 404, "GET", "/v1/nothing"],
  ["not_found", 404, "GET", "/v1/tasks/task_0"],
  ["not_found", 404, "GET", "/v1/ledger/99999"],
  ["not_found", 404, "GET", "/v1/ledger/0"],
  ["not_found", 404, "GET", "/v1/ledger/1.0"],
  ["agent_not_found", 404, "GET", "/v1/agents/nobody"],
  ["agent_not_found", 404, "POST", "/v1/tasks", dispatch({ agent: "nobody" })],
  ["method_not_allowed", 405, "PUT", "/v1/agents"],
  ["agent_exists", 409, "POST", "/v1/agents", { body: { name: "agent", owner: "x", memory_scope: "/" } }],
  ["agent_stopped", 409, "POST", "/v1/tasks", dispatch({ agent: "stopped" })],
  ["task_finished", 409, "POST", "/v1/tasks/:task/cancel"],
  ["body_too_large", 413, "POST", "/v1/agents", { raw: new Uint8Array(10 * 1024 * 1024 + 1) }],
  [
    "unsupported_media_type",
    415,
    "POST",
    "/v1/agents",
    { raw: "x", headers: { "content-type": "text/csv" } },
  ],
  ["unknown_tier", 422, "POST", "/v1/tasks", dispatch({ tier: 9 })],
  ["unknown_tool", 422, "POST", "/v1/tasks", dispatch({ tools: ["time.never"] })],
  ["validation_failed", 422, "POST", "/v1/agents", { body: {} }],
];

describe("a refusal is a problem of RFC 9457 with exactly the contract's fields", () => {
  const rows = ROWS.map(([code, status, method, path, options = {}]) => ({
    code,
    status,
    method,
    path,
    options,
  }));
  test.each(rows)("$status $code: $method $path", async ({ code, status, method, path, options }) => {
    const answer = await gateway.call(method, path.replace(":task", task), options);
    expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect(answer.headers.get("content-type")).toBe("application/problem+json");
    const { errors, ...body } = answer.body;
    expect(body).toEqual({
      type: `urn:gatehouse:problem:${code}`,
      title: expect.stringMatching(/^[A-Z]/),
      status,
      detail: expect.stringMatching(/./),
      code,
      request_id: answer.headers.get("gatehouse-request-id"),
    });
    if (status !== 422) expect(errors).toBeUndefined();
    else
      for (const error of errors)
        expect(error).toEqual({ path: expect.any(String), message: expect.any(String) });
  });
});

describe("405 lists the path's methods in Allow", () => {
  test.each([
    ["PUT", "/v1/agents", "GET, HEAD, POST"],
    ["DELETE", "/v1/agents", "GET, HEAD, POST"],
    ["OPTIONS", "/v1/agents", "GET, HEAD, POST"],
    ["POST", "/v1/agents/agent", "DELETE, GET, HEAD, PATCH"],
    ["GET", "/v1/agents/agent/stop", "POST"],
    ["PATCH", "/v1/tasks", "GET, HEAD, POST"],
    ["DELETE", "/v1/tasks/x", "GET, HEAD"],
    ["GET", "/v1/tasks/x/cancel", "POST"],
    ["POST", "/v1/tasks/x/events", "GET, HEAD"],
    ["PUT", "/v1/tokens", "GET, HEAD, POST"],
    ["GET", "/v1/tokens/x", "DELETE"],
    ["DELETE", "/v1/workspace", "GET, HEAD, PATCH"],
    ["POST", "/v1/ledger", "GET, HEAD"],
    ["POST", "/v1/models", "GET, HEAD"],
    ["DELETE", "/v1/models/openai/gpt-5", "GET, HEAD"],
    ["DELETE", "/v1/models/openai%2Fgpt-5", "GET, HEAD"],
    ["POST", "/livez", "GET, HEAD"],
    ["POST", "/openapi.json", "GET, HEAD"],
    ["PUT", "/v1/agents/", "GET, HEAD, POST"],
  ])("%s %s", async (method, path, allow) => {
    const answer = await gateway.call(method, path);
    expect([answer.status, answer.body.code, answer.headers.get("allow")]).toEqual([
      405,
      "method_not_allowed",
      allow,
    ]);
  });
});

describe("404 for a path without methods", () => {
  test.each([
    "/",
    "/v1",
    "/v2/agents",
    "/v1/agent",
    "/V1/agents",
    "/v1/agents/agent/pause",
    "/v1/agents/agent/stop/now",
    "/v1//agents",
    "/v1/agents//stop",
    "/v1/agents/agent//stop",
    "/.env",
    "/docs/../../etc/passwd",
    "/docs/%2e%2e/%2e%2e/etc/passwd",
    "/docs/missing.js",
  ])("%s", async (path) => {
    for (const method of ["GET", "POST", "DELETE"]) {
      const answer = await gateway.call(method, path);
      expect([method, answer.status, answer.body.code]).toEqual([method, 404, "not_found"]);
      expect(answer.headers.get("allow")).toBeNull();
    }
  });
});

describe("requests that no careful client sends still get an answer", () => {
  /** Sends bytes as they are, without a client that might refuse to send them. */
  async function raw(request: string): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const socket = connect(Number(new URL(gateway.url).port), "127.0.0.1", () =>
      socket.write(request, "latin1"),
    );
    let answer = "";
    socket.on("data", (data) => {
      answer += data;
    });
    socket.on("end", () => resolve(answer));
    socket.on("error", reject);
    return promise;
  }
  const auth = () => `Authorization: Bearer ${gateway.admin}\r\nConnection: close\r\n\r\n`;

  test.each([
    ["an invalid Host", "GET /nothing HTTP/1.1\r\nHost: [bad\r\n", 404],
    ["an invalid Host, for another method", "PUT /v1/agents HTTP/1.1\r\nHost: [bad\r\n", 405],
    ["an invalid Host, for a call", "GET /v1/agents HTTP/1.1\r\nHost: [bad\r\n", 200],
    ["an absolute target", "GET http://elsewhere.example/v1/agents HTTP/1.1\r\nHost: x\r\n", 200],
    ["broken percent-encoding", "GET /v1/agents/%E0%A4%A HTTP/1.1\r\nHost: x\r\n", 404],
    ["a lone percent sign", "GET /v1/agents/% HTTP/1.1\r\nHost: x\r\n", 404],
    ["broken percent-encoding in the query", "GET /v1/agents?limit=%E0%A4%A HTTP/1.1\r\nHost: x\r\n", 422],
    ["bytes in no encoding in the query", "GET /v1/agents?\xff\xfe=1 HTTP/1.1\r\nHost: x\r\n", 422],
  ])("%s", async (_, head, status) => {
    const answer = await raw(head + auth());
    expect(answer).toStartWith(`HTTP/1.1 ${status} `);
    expect(answer.toLowerCase()).toContain("\r\ngatehouse-request-id: req_");
    expect(answer).not.toContain("    at ");
  });
});
