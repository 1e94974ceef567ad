/**
 * "Nobody revokes, rotates or issues more than they hold, nor issues a token for another `person` without `admin`."
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { signIn } from "../access/session-support.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";
import { type ApprovalStage, startApprovals } from "../tasks/approvals/support.ts";

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("clerk");
});
afterAll(() => gateway.stop());

interface Issued {
  readonly id: string;
  readonly secret: string;
}

const post = (path: string, body: object, token?: string) =>
  gateway.call("POST", path, { body, ...(token === undefined ? {} : { token }) });
const issue = async (body: object): Promise<Issued> =>
  (await post("/v1/tokens", { name: "t", scopes: ["tokens:write"], ...body })).body as Issued;
const works = async ({ secret }: Issued) =>
  (await gateway.call("GET", "/v1/session", { token: secret })).status === 200;

function expectMissing({ status, body }: Answered, scope: string): void {
  expect([status, body.code]).toEqual([403, "scope_missing"]);
  expect(body.detail).toContain(scope);
}

describe("revoking a token or ending a session needs the token's scopes", () => {
  test.each<[string, string[], string[], string]>([
    ["admin", ["tokens:write"], ["admin"], "admin"],
    ["a scope that is not held", ["tokens:write"], ["tokens:write", "settings:write"], "settings:write"],
    ["a wider glob", ["tokens:write", "tools:vault.s*"], ["tools:vault.*"], "tools:vault.*"],
  ])("%s is refused", async (_, held, target, missing) => {
    const weak = await issue({ scopes: held });
    const strong = await issue({ scopes: target });
    const browser = await signIn(gateway, strong.secret);
    expectMissing(await gateway.call("DELETE", `/v1/tokens/${strong.id}`, { token: weak.secret }), missing);
    expectMissing(
      await gateway.call("DELETE", `/v1/sessions/${browser.id}`, { token: weak.secret }),
      missing,
    );
    expect([await works(strong), (await browser.ask("GET", "/v1/session")).status]).toEqual([true, 200]);
  });

  test("of an agent's token, although it acts as the same agent", async () => {
    const weak = await issue({ agent: "clerk", scopes: ["tokens:write"] });
    const strong = await issue({ agent: "clerk", scopes: ["tokens:write", "ledger:read"] });
    expectMissing(
      await gateway.call("DELETE", `/v1/tokens/${strong.id}`, { token: weak.secret }),
      "ledger:read",
    );
    expect(await works(strong)).toBe(true);
  });

  test("the same, a lesser one and itself are allowed", async () => {
    const weak = await issue({ scopes: ["tokens:write", "tasks:read"] });
    for (const target of [await issue({ scopes: ["tokens:write", "tasks:read"] }), await issue({}), weak]) {
      expect((await gateway.call("DELETE", `/v1/tokens/${target.id}`, { token: weak.secret })).status).toBe(
        204,
      );
    }
  });

  test("a signed-in browser may sign out, whatever its token's rights", async () => {
    const browser = await signIn(gateway, (await issue({ scopes: ["admin"] })).secret);
    expect((await browser.ask("DELETE", "/v1/session")).status).toBe(204);
  });
});

describe("a token for a person", () => {
  const held = { scopes: ["tokens:write", "approvals:write"] };
  const wanted = { name: "second", scopes: ["approvals:write"] };

  test.each<[string, object, object]>([
    ["another person", { person: "Ada" }, { person: "Bob" }],
    ["any person, by a token without one", {}, { person: "Bob" }],
    ["a person with the token's name", { name: "Bob" }, { person: "Bob" }],
    ["the same person in another role", { person: "Ada", role: "clerk" }, { person: "Ada", role: "head" }],
    ["nobody, in a role that is not held", { person: "Ada" }, { role: "head" }],
  ])("is not issued for %s without admin", async (_, holder, more) => {
    const { secret } = await issue({ ...held, ...holder });
    const answer = await post("/v1/tokens", { ...wanted, ...more }, secret);
    expectMissing(answer, "admin");
  });

  test.each<[string, object, object]>([
    ["under another name", { name: "holder" }, { name: "Bob" }],
    ["under its own name", { name: "holder" }, { name: "holder" }],
    ["with additional scopes", { name: "holder" }, { scopes: ["approvals:write", "tokens:write"] }],
  ])(
    "that may approve is not issued %s by a token without a person, whose decisions would count under that name",
    async (_, holder, more) => {
      const { secret } = await issue({ ...held, ...holder });
      expectMissing(await post("/v1/tokens", { ...wanted, ...more }, secret), "admin");
    },
  );

  test("that may not approve is issued by a token without a person", async () => {
    const { secret } = await issue({ scopes: ["tokens:write", "approvals:write", "tasks:read"] });
    const made = await post("/v1/tokens", { name: "Bob", scopes: ["tasks:read"] }, secret);
    expect([made.status, made.body.person]).toEqual([201, null]);
  });

  test("is not issued by an admin token that acts as an agent", async () => {
    const { secret } = await issue({ agent: "clerk", scopes: ["admin"] });
    const body = { name: "second", agent: "clerk", scopes: ["approvals:write"] };
    expectMissing(await post("/v1/tokens", { ...body, person: "Bob" }, secret), "admin");
    expectMissing(await post("/v1/tokens", { ...body, role: "head" }, secret), "admin");
    expect((await post("/v1/tokens", body, secret)).status).toBe(201);
  });

  test.each<[string, object]>([
    ["another person", { person: "Bob" }],
    ["the same person in another role", { person: "Ada", role: "head" }],
  ])("is not taken over by rotating the token of %s without admin", async (_, more) => {
    const { secret } = await issue({ ...held, person: "Ada", role: "clerk" });
    const theirs = await issue({ ...wanted, ...more });
    expectMissing(await post(`/v1/tokens/${theirs.id}/rotate`, {}, secret), "admin");
    expect(await works(theirs)).toBe(true);
  });

  test.each<[string, object]>([
    ["the same scopes", {}],
    ["fewer scopes", { scopes: ["approvals:write"] }],
    ["the same role", { role: "head" }],
    ["the same name", { name: "holder" }],
  ])(
    "is not taken over by rotating a token without a person, with %s, whose decisions count under its own name",
    async (_, more) => {
      for (const holder of [{}, { person: "Ada" }]) {
        const { secret } = await issue({ ...held, ...holder, name: "holder", role: "head" });
        const theirs = await issue({ ...held, name: "Dr. Bob", ...more });
        expectMissing(await post(`/v1/tokens/${theirs.id}/rotate`, {}, secret), "admin");
        expect(await works(theirs)).toBe(true);
      }
    },
  );

  test("without a person is rotated by itself and by an admin", async () => {
    const own = await issue(held);
    const again = await post(`/v1/tokens/${own.id}/rotate`, {}, own.secret);
    const { secret: admin } = await issue({ scopes: ["admin"] });
    const byAdmin = await post(`/v1/tokens/${own.id}/rotate`, {}, admin);
    expect([again.status, byAdmin.status]).toEqual([200, 200]);
  });

  test("is issued and rotated for oneself, for nobody, and for anybody by an admin", async () => {
    const own = { person: "Ada", role: "clerk" };
    const { secret } = await issue({ ...held, ...own });
    const admin = await issue({ scopes: ["admin"], person: "Eve" });
    for (const [by, more] of [
      [secret, own],
      [secret, {}],
      [admin.secret, { person: "Bob", role: "head" }],
    ] as const) {
      const made = await post("/v1/tokens", { ...wanted, ...more }, by);
      const rotated = await post(`/v1/tokens/${made.body.id}/rotate`, {}, by);
      expect([made.status, rotated.status]).toEqual([201, 200]);
    }
  });

  test("belongs to the issuer's person if it names nobody, whatever its name", async () => {
    const { secret } = await issue({ ...held, person: "Ada", role: "clerk" });
    const made = await post("/v1/tokens", { ...wanted, name: "Dr. Bob" }, secret);
    expect(made.body).toMatchObject({ name: "Dr. Bob", person: "Ada", role: "clerk" });
  });

  test("a refused one leaves no token behind, and is in the ledger", async () => {
    const { id, secret } = await issue({ ...held, person: "Ada" });
    await post("/v1/tokens", { ...wanted, name: "left", person: "Bob" }, secret);
    const { data } = (await gateway.call("GET", "/v1/tokens?limit=200")).body;
    expect(data.map(({ name }: { name: string }) => name)).not.toContain("left");
    const entries = (await gateway.call("GET", `/v1/ledger?actor=token:${id}`)).body.data;
    expect(entries).toMatchObject([{ action: "token.issue", outcome: "denied", code: "scope_missing" }]);
  });
});

describe("a token that expires issues none that outlives it", () => {
  const hour = 3_600_000;
  const issuing = { scopes: ["tokens:write", "tasks:read"] };

  test("not one that requests it", async () => {
    const { secret } = await issue({ ...issuing, expires_in: "1h" });
    const made = await post(
      "/v1/tokens",
      { name: "longer", scopes: ["tasks:read"], expires_in: "2h" },
      secret,
    );
    expect([made.status, made.body.errors?.[0]?.path]).toEqual([422, "/expires_in"]);
  });

  test("nor one without an expiry: it ends with its issuer", async () => {
    const issuer = await issue({ ...issuing, expires_in: "1h" });
    const made = await post("/v1/tokens", { name: "same", scopes: ["tasks:read"] }, issuer.secret);
    const { expires_at } = issuer as Issued & { readonly expires_at: string };
    expect(made.body.expires_at).toBe(expires_at);
  });

  test("or take over one by rotating it, not even with admin; it can rotate itself", async () => {
    const admin = { scopes: ["admin"], expires_in: "1h" };
    const { id, secret } = await issue(admin);
    const lasting = await issue({ scopes: ["admin"] });
    const refused = await post(`/v1/tokens/${lasting.id}/rotate`, {}, secret);
    expect([refused.status, refused.body.errors?.[0]?.path]).toEqual([422, "/id"]);
    expect(await works(lasting)).toBe(true);
    const own = await post(`/v1/tokens/${id}/rotate`, {}, secret);
    expect([own.status, await works(own.body)]).toEqual([200, true]);
  });

  test("a shorter one is issued as requested", async () => {
    const { secret } = await issue({ ...issuing, expires_in: "2h" });
    const made = await post(
      "/v1/tokens",
      { name: "shorter", scopes: ["tasks:read"], expires_in: "1h" },
      secret,
    );
    const { created_at, expires_at } = made.body;
    expect(Date.parse(expires_at) - Date.parse(created_at)).toBe(hour);
  });
});

describe("a replaced secret in its grace period", () => {
  const issuing = { scopes: ["tokens:write", "tasks:read"] };
  const inGrace = async (more: object = {}) => {
    const { id, secret } = await issue({ ...issuing, ...more });
    const browser = await signIn(gateway, secret);
    const { body } = await post(`/v1/tokens/${id}/rotate`, { grace: "10m" });
    const until = Date.now() + 600_000;
    return { id, until, old: secret, present: { id, secret: body.secret as string }, browser };
  };

  test.each(["by itself", "by a session"])("does not rotate its token, %s", async (by) => {
    const { id, old, present, browser } = await inGrace();
    const answer =
      by === "by itself"
        ? await post(`/v1/tokens/${id}/rotate`, {}, old)
        : await browser.ask("POST", `/v1/tokens/${id}/rotate`, {});
    expect([answer.status, answer.body.errors?.[0]?.path]).toEqual([422, "/id"]);
    expect(await works(present)).toBe(true);
    expect((await post(`/v1/tokens/${id}/rotate`, {}, present.secret)).status).toBe(200);
  });

  test("does not rotate it either if the token ends within the period", async () => {
    const { id, old, present } = await inGrace({ expires_in: "5m" });
    expect((await post(`/v1/tokens/${id}/rotate`, {}, old)).status).toBe(422);
    expect(await works(present)).toBe(true);
  });

  test("neither rotates nor issues another token that outlives it, even through a session", async () => {
    const { until, old, browser } = await inGrace();
    const lasting = await issue(issuing);
    expect((await post(`/v1/tokens/${lasting.id}/rotate`, {}, old)).status).toBe(422);
    const wanted = { name: "next", scopes: ["tasks:read"] };
    expect((await post("/v1/tokens", { ...wanted, expires_in: "1h" }, old)).status).toBe(422);
    for (const made of [
      await post("/v1/tokens", wanted, old),
      await browser.ask("POST", "/v1/tokens", { body: wanted }),
    ]) {
      expect(made.status).toBe(201);
      expect(Date.parse(made.body.expires_at)).toBeLessThanOrEqual(until);
    }
  });

  test("does not restrict the new one, nor a session without a rotation", async () => {
    const { present } = await inGrace();
    const wanted = { name: "lasting", scopes: ["tasks:read"] };
    const browser = await signIn(gateway, (await issue(issuing)).secret);
    for (const made of [
      await post("/v1/tokens", wanted, present.secret),
      await browser.ask("POST", "/v1/tokens", { body: wanted }),
    ]) {
      expect([made.status, made.body.expires_at]).toEqual([201, null]);
    }
  });
});

describe("if two people have to approve", () => {
  let stage: ApprovalStage;
  beforeAll(async () => {
    stage = await startApprovals({ approvals_required: 2 });
  });
  afterAll(() => stage.stop());

  const approve = { decision: "approve" };
  const token = (more: object) =>
    stage.gateway.token({ scopes: ["approvals:write", "tokens:write"], ...more });

  test("one holder of two tokens counts once, with and without a person", async () => {
    const asked = await stage.ask();
    const ada = await token({ person: "Ada" });
    expect((await stage.decide(asked.path, approve, ada)).body.status).toBe("pending");

    const again = await token({ person: "Ada", name: "another" });
    expect((await stage.decide(asked.path, approve, again)).body.code).toBe("approval_decided");

    const issued = async (body: object) =>
      stage.gateway.call("POST", "/v1/tokens", {
        token: ada,
        body: { name: "Bob", scopes: ["approvals:write"], ...body },
      });
    expect((await issued({ person: "Bob" })).body.code).toBe("scope_missing");
    const unnamed = await issued({});
    expect(unnamed.status).toBe(201);
    const answer = await stage.decide(asked.path, approve, unnamed.body.secret);
    // The token has its issuer as its person, who has already approved.
    expect([answer.status, answer.body.code]).toEqual([409, "approval_decided"]);
    expect(stage.tools.calls).toEqual([]);
    expect((await stage.decide(asked.path, approve, await token({ person: "Bob" }))).body.status).toBe(
      "approved",
    );
  });

  test("a name with invisible characters is not a second person's", async () => {
    const asked = await stage.ask();
    const made = stage.tools.calls.length;
    const ada = await token({ person: "Ada" });
    expect((await stage.decide(asked.path, approve, ada)).body.status).toBe("pending");
    for (const person of ["Ada\u200b", "A\u00adda", "Ada\ufe0f", "A\u0000da"]) {
      const again = await token({ person, name: "another" });
      expect((await stage.decide(asked.path, approve, again)).body.code).toBe("approval_decided");
    }
    expect(stage.tools.calls).toHaveLength(made);
    await stage.decide(asked.path, { decision: "deny" }, ada);
  });

  test("two tokens without a person approve nothing, but may deny", async () => {
    const asked = await stage.ask();
    for (const name of ["one", "two"]) {
      const answer = await stage.decide(asked.path, approve, await token({ name }));
      expect([answer.status, answer.body.code]).toEqual([403, "person_required"]);
    }
    const denied = await stage.decide(asked.path, { decision: "deny" }, await token({ name: "one" }));
    expect(denied.body.status).toBe("denied");
  });
});
