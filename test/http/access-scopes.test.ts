import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { type ContractRoute, NAMED_SCOPES, prepare, ROUTES, UNSCOPED } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
let fill: (path: string) => string;
/** Secrets of tokens with a single scope, and of tokens with every scope except that one. */
const only = new Map<string, string>();
const without = new Map<string, string>();

beforeAll(async () => {
  gateway = await startGateway();
  ({ fill } = await prepare(gateway, "agent"));
  for (const scope of NAMED_SCOPES) {
    only.set(scope, await gateway.token({ scopes: [scope] }));
    without.set(
      scope,
      await gateway.token({ scopes: [...NAMED_SCOPES.filter((each) => each !== scope), "tools:*"] }),
    );
  }
});
afterAll(() => gateway.stop());

const ask = (route: ContractRoute, token: string | undefined) =>
  gateway.call(route.method, fill(route.path), {
    token: token ?? null,
    ...(route.body ? { body: route.body } : {}),
  });
const SCOPED = ROUTES.flatMap(({ scope, ...route }) => (scope === null ? [] : [{ ...route, scope }]));
const rows = SCOPED.map((route) => [`${route.method} ${route.path}`, route] as const);

describe("a token with every scope except the required one is refused, and told which", () => {
  test.each(rows)("%s", async (_, route) => {
    const answer = await ask(route, without.get(route.scope));
    expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
    expect(answer.body.detail).toContain(route.scope);
  });
});

describe("that scope alone suffices", () => {
  test.each(rows)("%s", async (_, route) => {
    const answer = await ask(route, only.get(route.scope));
    expect(answer.status).toBe(route.status);
  });
});

test("a refused call changes nothing", async () => {
  const body = { name: "never", owner: "tests", memory_scope: "support" };
  await gateway.call("POST", "/v1/agents", { token: without.get("agents:write") ?? null, body });
  expect((await gateway.call("GET", "/v1/agents/never")).status).toBe(404);
});

test("admin stands for every scope", async () => {
  const again = await prepare(gateway, "second");
  const admin = await gateway.token({ scopes: ["admin"] });
  for (const { method, path, body, status } of ROUTES) {
    const answer = await gateway.call(method, again.fill(path), {
      token: admin,
      ...(body ? { body: "name" in body ? { ...body, name: "made_again" } : body } : {}),
    });
    expect([method, path, answer.status]).toEqual([method, path, status]);
  }
});

test("tools:* includes no other scope, and a scope for reading none for writing", async () => {
  const tools = await gateway.token({ scopes: ["tools:*"] });
  for (const { method, path, body, scope } of SCOPED) {
    const answer = await gateway.call(method, fill(path), { token: tools, ...(body ? { body } : {}) });
    expect([scope, answer.status]).toEqual([scope, 403]);
  }
});

describe("every operation of the OpenAPI document needs the scope that it names", () => {
  test("and each names it, in the contract's words", async () => {
    const { body } = await gateway.call("GET", "/openapi.json");
    let seen = 0;
    for (const [path, item] of Object.entries<Record<string, { description: string }>>(body.paths)) {
      for (const [method, { description }] of Object.entries(item)) {
        seen += 1;
        const scope = /`([a-z]+:[a-z]+)`/.exec(description)?.[1] ?? "none";
        if (scope === "none") {
          expect(UNSCOPED).toContain(`${method.toUpperCase()} ${path}`);
          continue;
        }
        expect(NAMED_SCOPES as readonly string[]).toContain(scope);
        const answer = await gateway.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "1"), {
          token: without.get(scope) ?? null,
          ...(method === "get" ? {} : { body: {} }),
        });
        // Existing clients get errors in the form that they know.
        const code = answer.body?.code ?? answer.body?.error?.code;
        expect([method, path, answer.status, code]).toEqual([method, path, 403, "scope_missing"]);
      }
    }
    expect(seen).toBeGreaterThanOrEqual(ROUTES.length);
  });
});
