import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { NAMED_SCOPES, ROUTES } from "../access/routes.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

describe("probes", () => {
  test.each(["/livez", "/readyz"])("%s answers without a token, and with a wrong one", async (path) => {
    for (const token of [null, "gth_unknown"]) {
      const { status, body, headers } = await gateway.call("GET", path, { token });
      expect([status, body, headers.get("content-type")]).toEqual([
        200,
        { status: "ok" },
        "application/json",
      ]);
    }
  });
});

describe("metrics", () => {
  let otherAdmin: Promise<string>;
  beforeAll(() => {
    otherAdmin = gateway.workspace("metrics");
  });
  const forwarded: readonly (readonly [header: string, value: string])[] = [
    ["x-forwarded-for", "203.0.113.9"],
    ["x-forwarded-for", "127.0.0.1"],
    ["x-forwarded-for", ""],
    ["forwarded", "for=203.0.113.9"],
    ["x-real-ip", "203.0.113.9"],
    ["via", "1.1 proxy"],
    ["x-forwarded-proto", "https"],
    ["x-forwarded-host", "gate.example"],
    ["cf-connecting-ip", "203.0.113.9"],
    ["true-client-ip", "203.0.113.9"],
    // A request from a connector of another Gatehouse on this machine.
    ["gatehouse-via", "0123456789abcdef"],
    // A page whose host name was made to resolve to this server (DNS rebinding).
    ["host", "attacker.example:8420"],
  ];
  describe.each(forwarded.map(([header, value]) => ({ header, value })))(
    "that were forwarded for somebody else ($header: $value)",
    ({ header, value }) => {
      const ask = (token: string | null) =>
        gateway.call("GET", "/metrics", { token, headers: { [header]: value } });
      test("are refused without a token, and with an unknown one", async () => {
        const none = await ask(null);
        const unknown = await ask("gth_unknown");
        expect([none.body.code, unknown.body.code]).toEqual(["unauthenticated", "invalid_token"]);
        for (const { status, headers } of [none, unknown]) {
          expect([status, headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
        }
      });
      test("are refused to a token with every scope except admin, which is named", async () => {
        const answer = await ask(await gateway.token({ scopes: [...NAMED_SCOPES, "tools:*"] }));
        expect([answer.status, answer.body.code]).toEqual([403, "scope_missing"]);
        expect(answer.body.detail).toContain("admin");
      });
      test("are refused to another workspace's admin, because they cover all workspaces", async () => {
        const answer = await ask(await otherAdmin);
        expect([answer.status, answer.body.code]).toEqual([403, "operator_only"]);
      });
      test("are available to an admin, and the call is recorded", async () => {
        const answer = await ask(gateway.admin);
        expect(answer.status).toBe(200);
        const seq = answer.headers.get("gatehouse-ledger");
        const { body } = await gateway.call("GET", `/v1/ledger/${seq}`);
        expect(body).toMatchObject({ action: "metrics.read", outcome: "succeeded" });
      });
    },
  );
  test("are available to anyone on this machine, in Prometheus's text format", async () => {
    const { status, body, headers } = await gateway.call("GET", "/metrics", { token: null });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toStartWith("text/plain; version=0.0.4");
    for (const line of (body as string).split("\n").filter((line) => line !== "")) {
      expect(line).toMatch(/^(# (HELP|TYPE) [a-z_]+ .+|[a-z_]+(\{[^}]*\})? [0-9.e+-]+|[a-z_]+\{.*\} \d+)$/);
    }
    expect(body).toContain("gatehouse_http_requests_total");
  });
});

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly in: string; readonly name: string; readonly required: boolean }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema: { readonly type: string } }> };
  readonly responses: Record<string, object>;
  readonly security: readonly object[];
}

describe("/openapi.json", () => {
  let document: { openapi: string; paths: Record<string, Record<string, Operation>>; components: object };
  beforeAll(async () => {
    const answer = await gateway.call("GET", "/openapi.json", { token: null });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/json"]);
    document = answer.body;
  });
  const operations = () =>
    Object.entries(document.paths).flatMap(([path, item]) =>
      Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
    );

  test("is OpenAPI 3.1, of this version", () => {
    expect(document.openapi).toMatch(/^3\.1\.\d+$/);
    expect(document).toMatchObject({ info: { title: "Gatehouse", version: expect.any(String) } });
  });

  test.each(ROUTES.map(({ method, path, body }) => ({ method, path, body })))(
    "has $method $path",
    ({ method, path, body }) => {
      const place = path
        .replace(/:agent|:connector/, "{name}")
        .replace(/\?.*$/, "")
        .replace("call_none", "{call_id}")
        .replace("msg_none", "{id}")
        .replace("time.now", "{name}")
        .replace("builtin%2Fextractive", "{id}")
        .replace(/:\w+|(?<=ledger\/)1(?=$|\/)/, path.startsWith("/v1/ledger") ? "{seq}" : "{id}");
      const operation = document.paths[place]?.[method.toLowerCase()];
      expect(operation).toBeDefined();
      if (body) expect(operation?.requestBody?.content["application/json"]?.schema.type).toBe("object");
      expect(operation?.security).toContainEqual({ token: [] });
      expect(operation?.responses).toHaveProperty("default");
    },
  );

  test("names each operation once, declares each path parameter, and starts each path with /v1", () => {
    const ids = operations().map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    for (const { path, operation } of operations()) {
      expect(path).toMatch(/^\/v1(\/[a-z_]+|\/\{[a-z_]+\})+$/);
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1] ?? "");
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(declared.map(({ name }) => name)).toEqual(inPath);
      for (const { required } of declared) expect(required).toBe(true);
    }
  });

  test("lists query parameters and headers as well as path parameters", () => {
    const names = (path: string) => document.paths[path]?.get?.parameters?.map(({ name }) => name);
    expect(names("/v1/agents")).toEqual(["limit", "cursor"]);
    expect(names("/v1/tasks/{id}/events")).toEqual(["id", "after", "Last-Event-ID"]);
    expect(names("/v1/ledger")).toEqual(
      expect.arrayContaining(["agent", "actor", "tier", "date", "from", "to"]),
    );
  });

  test("has no broken reference", () => {
    for (const [, reference] of JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)) {
      let place: unknown = document;
      for (const key of (reference ?? "").replace(/^#\//, "").split("/")) {
        place = typeof place === "object" && place !== null ? Reflect.get(place, key) : undefined;
      }
      expect([reference, typeof place]).toEqual([reference, "object"]);
    }
  });

  test("hides the operator's routes", () => {
    expect(JSON.stringify(document)).not.toContain("/operator");
  });
});

describe("/docs", () => {
  test("is a page that loads only from this server", async () => {
    const page = await gateway.call("GET", "/docs", { token: null });
    expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.body).not.toMatch(/(?:https?:)?\/\/[a-z]/i);
    const linked = [...(page.body as string).matchAll(/(?:src|href)="(\/[^"]*)"/g)].map(
      (match) => match[1] ?? "",
    );
    expect(linked.length).toBeGreaterThanOrEqual(3);
    for (const path of linked) {
      const asset = await gateway.call("GET", path, { token: null });
      expect([path, asset.status]).toEqual([path, 200]);
    }
    const init = await gateway.call("GET", "/docs/init.js");
    expect(init.body).not.toMatch(/https?:/);
  });
});

test("the document names the headers that tasks read, and the streams that they answer with", async () => {
  const { paths } = (await gateway.call("GET", "/openapi.json", { token: null })).body;
  const headers = (operation: { parameters: { in: string; name: string }[] }) =>
    operation.parameters.filter((each) => each.in === "header").map((each) => each.name);
  expect(headers(paths["/v1/tasks"].post)).toEqual(["Idempotency-Key"]);
  expect(Object.keys(paths["/v1/tasks"].post.responses).sort()).toEqual(["200", "202", "default"]);
  const events = paths["/v1/tasks/{id}/events"].get;
  expect(headers(events)).toEqual(["Last-Event-ID"]);
  expect(Object.keys(events.responses["200"].content)).toEqual(["text/event-stream"]);
});
