/**
 * Paths as raw bytes on a connection: the server routes exactly the path that a proxy in front has checked, or none.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ledger } from "../tasks/support.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("clerk");
});
afterAll(() => gateway.stop());

/**
 * Sends the request line as it is.
 * @returns the status, and the problem's code if there is one
 */
async function ask(method: string, target: string, host?: string): Promise<readonly (number | string)[]> {
  const { host: own, port } = new URL(gateway.url);
  const socket = connect(Number(port), "127.0.0.1");
  const head = [
    `${method} ${target} HTTP/1.1`,
    `Host: ${host ?? own}`,
    `Authorization: Bearer ${gateway.admin}`,
    "Content-Length: 0",
    "Connection: close",
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n`, "latin1");
  let answer = "";
  for await (const data of socket) answer += data;
  const code = /"code":"(\w+)"/.exec(answer)?.[1];
  return [Number(answer.slice(9, 12)), ...(code === undefined ? [] : [code])];
}

const NOT_FOUND = [404, "not_found"] as const;

test("a Host that is invalid in a URL does not open another way", async () => {
  for (const host of ["[", "]", "%", ":"]) {
    for (const step of ["%2e%2e", "%2E%2e", ".%2e"]) {
      const [status] = await ask("GET", `/x/${step}/v1/agents`, host);
      expect([host, step, status === 404 || status === 400]).toEqual([host, step, true]);
    }
  }
});

describe("a path that matches a route only after normalisation is not found", () => {
  const STEPS = ["..", "%2e%2e", "%2E%2E", "%2e%2E", ".%2e", "%2e.", ".%2E", "%2E."];
  test.each(STEPS)("%s up", async (step) => {
    for (const target of [
      `/x/${step}/v1/agents`,
      `/public/a/${step}/${step}/v1/agents`,
      `/${step}/v1/agents`,
      `/v1/tasks/${step}/agents`,
      `/v1/agents/clerk/${step}`,
      `/v1/agents/${step}/agents`,
      `/v1/agents/x/${step}/clerk`,
      `/console/${step}/v1/agents`,
      `/docs/${step}/v1/agents`,
      `/v1/tokens/${step}/agents?limit=1`,
      `/v1/agents/x/${step}/`,
    ]) {
      expect([target, await ask("GET", target)]).toEqual([target, NOT_FOUND]);
    }
  });

  test.each([".", "%2e", "%2E"])("%s in its place", async (dot) => {
    for (const target of [`/${dot}/v1/agents`, `/v1/${dot}/agents`, `/v1/agents/clerk/${dot}`]) {
      expect([target, await ask("GET", target)]).toEqual([target, NOT_FOUND]);
    }
    // Here it is a name, which no agent has.
    expect(await ask("GET", `/v1/agents/${dot}`)).toEqual([404, "agent_not_found"]);
    expect(await ask("POST", `/v1/agents/${dot}`)).toEqual(NOT_FOUND);
    expect(await ask("POST", `/v1/agents/${dot}/stop`)).toEqual([404, "agent_not_found"]);
  });

  test.each([
    ["a backslash", "/v1\\agents"],
    ["a backslash at the beginning", "\\v1\\agents"],
    ["a step between backslashes", "/x\\..\\v1\\agents"],
    ["an encoded backslash", "/v1%5cagents"],
    ["an encoded slash", "/v1%2fagents"],
    ["an encoded slash in upper case", "/v1%2Fagents"],
    ["an encoded letter", "/v1/%61gents"],
    ["two slashes", "/v1//agents"],
    ["two slashes at the beginning", "//v1/agents"],
    ["two slashes at the end", "/v1/agents//"],
    ["two slashes and a step", "/v1/agents//.."],
    ["a step after an encoded slash", "/x%2f..%2fv1/agents"],
    ["a name with a semicolon", "/v1/agents;x"],
    ["more segments than are examined", `${"/x".repeat(20)}${"/..".repeat(20)}/v1/agents`],
  ])("%s: %s", async (_name, target) => {
    const [status] = await ask("GET", target);
    expect(status === 400 || status === 404).toBe(true);
  });

  test("whatever the host name", async () => {
    for (const host of ["a b", "a/b", "[::1", "x@y"]) {
      expect(await ask("GET", "/x/%2e%2e/v1/agents", host)).toEqual(NOT_FOUND);
    }
  });

  test("and no agents are read", async () => {
    const before = (await ledger(gateway)).filter(({ action }) => action === "agent.read").length;
    await ask("GET", "/x/%2e%2e/v1/agents");
    const after = (await ledger(gateway)).filter(({ action }) => action === "agent.read").length;
    expect(after).toBe(before);
  });
});

describe("a path as sent is routed as before", () => {
  test.each([
    ["GET", "/v1/agents", 200],
    ["GET", "/v1/agents/", 200],
    ["GET", "/v1/agents?limit=1", 200],
    ["GET", "/v1/agents/?limit=1&x=/../y", 422],
    ["GET", "/v1/agents/clerk", 200],
    ["GET", "/v1/agents/clerk/", 200],
    ["GET", "/v1/agents/cl%65rk", 200],
    ["HEAD", "/v1/agents", 200],
    ["HEAD", "/v1/agents/", 200],
    ["PUT", "/v1/agents", 405],
    ["PUT", "/v1/agents/", 405],
    ["PUT", "/v1/agents/clerk", 405],
    ["OPTIONS", "/v1/tasks/x/events", 405],
    ["GET", "/console/", 200],
    ["GET", "/console/tasks/some/where", 200],
    ["GET", "/livez", 200],
    ["POST", "/mcp/", 400],
    ["GET", "http://other.example/v1/agents", 200],
  ])("%s %s answers %i", async (method, target, status) => {
    expect((await ask(method, target))[0]).toBe(status);
  });

  test("an encoded slash stays part of a name", async () => {
    expect(
      (await gateway.call("POST", "/v1/agents", { body: { name: "a/b", owner: "o", memory_scope: "a" } }))
        .status,
    ).toBe(422);
    expect(await ask("GET", "/v1/agents/a%2Fb")).toEqual([404, "agent_not_found"]);
    expect(await ask("PUT", "/v1/agents/a%2Fb")).toEqual([405, "method_not_allowed"]);
  });
});
