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
  for (const scope of [...NAMED_SCOPES, "admin"]) {
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
/** The endpoints of existing clients have errors in their form, and the code in a header. */
const codeOf = ({ headers, body }: Awaited<ReturnType<typeof ask>>) =>
  headers.get("gatehouse-code") ?? body?.code;
const SCOPED = ROUTES.flatMap(({ scope, ...route }) => (scope === null ? [] : [{ ...route, scope }]));
/** Routes for which either of two scopes is enough. */
const EITHER = [
  ["/v1/models", "agents:read", "models:call"],
  ["/v1/models/builtin/extractive", "agents:read", "models:call"],
  ["/v1/models/tier:1", "agents:read", "models:call"],
] as const;
const rows = SCOPED.map((route) => [`${route.method} ${route.path}`, route] as const);

describe("a token with every scope except the required one is refused, and told which", () => {
  test.each(rows)("%s", async (_, route) => {
    const answer = await ask(route, without.get(route.scope));
    expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
    expect(answer.body.detail).toContain(route.scope);
  });
});

describe("only that scope is needed", () => {
  test.each(rows)("%s", async (_, route) => {
    const answer = await ask(route, only.get(route.scope));
    expect(answer.status).toBe(route.status);
  });
});

test.each(EITHER)("GET %s needs %s or %s, and is refused without both", async (path, one, other) => {
  const neither = NAMED_SCOPES.filter((scope) => scope !== one && scope !== other);
  const answer = await gateway.call("GET", path, {
    token: await gateway.token({ scopes: [...neither, "tools:*"] }),
  });
  expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
  for (const scope of [one, other]) {
    expect(answer.body.detail).toContain(scope);
    const enough = await gateway.call("GET", path, { token: await gateway.token({ scopes: [scope] }) });
    expect(enough.status).toBe(200);
  }
});

test("a refused call changes nothing", async () => {
  const body = { name: "never", owner: "tests", memory_scope: "support" };
  await gateway.call("POST", "/v1/agents", { token: without.get("agents:write") ?? null, body });
  expect((await gateway.call("GET", "/v1/agents/never")).status).toBe(404);
});

test("admin implies every scope", async () => {
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
        const needs = /^Needs the scope (.*?)\./.exec(description)?.[1] ?? "";
        const scopes: readonly string[] = [...needs.matchAll(/`([a-z]+(?::[a-z]+)?)`/g)].map(
          ([, scope = ""]) => scope,
        );
        if (scopes.length === 0) {
          expect(UNSCOPED).toContain(`${method.toUpperCase()} ${path}`);
          continue;
        }
        expect([...NAMED_SCOPES, "admin"]).toEqual(expect.arrayContaining([...scopes]));
        const others = NAMED_SCOPES.filter((scope) => !scopes.includes(scope));
        const answer = await gateway.call(method.toUpperCase(), path.replaceAll(/\{\w+\}/g, "1"), {
          token: await gateway.token({ scopes: [...others, "tools:*"] }),
          ...(method === "get" ? {} : { body: {} }),
        });
        expect([method, path, answer.status, codeOf(answer)]).toEqual([method, path, 403, "scope_missing"]);
      }
    }
    expect(seen).toBeGreaterThanOrEqual(ROUTES.length);
  });
});
