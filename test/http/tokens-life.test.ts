import { Database } from "bun:sqlite";
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../support/until.ts";

const MINUTE = 60_000;
const clock = new FakeClock();
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ clock });
  await gateway.agent("agent");
});
afterAll(() => gateway.stop());

async function issue(more: object = {}): Promise<{ id: string; secret: string }> {
  return (await gateway.call("POST", "/v1/tokens", { body: { name: "t", scopes: ["tasks:read"], ...more } }))
    .body;
}
const works = async (secret: string) =>
  (await gateway.call("GET", "/v1/tasks", { token: secret })).status === 200;
const rotate = (id: string, body?: object) =>
  gateway.call("POST", `/v1/tokens/${id}/rotate`, body ? { body } : {});
const listed = async (id: string) =>
  (await gateway.call("GET", "/v1/tokens?limit=200")).body.data.find(
    (token: { id: string }) => token.id === id,
  );

describe("a token works until it expires, to the millisecond", () => {
  test.each([
    ["30s", 30_000],
    ["10m", 600_000],
    ["12h", 43_200_000],
    ["90d", 7_776_000_000],
    ["2w", 1_209_600_000],
  ])("%s", async (expires_in, ms) => {
    const { secret } = await issue({ expires_in });
    expect(await works(secret)).toBe(true);
    clock.setWall(clock.now() + ms - 1);
    expect(await works(secret)).toBe(true);
    clock.setWall(clock.now() + 1);
    expect(await works(secret)).toBe(false);
  });

  test("0s expires at once", async () => {
    expect(await works((await issue({ expires_in: "0s" })).secret)).toBe(false);
  });

  test("without an expiry it stays valid", async () => {
    const { secret } = await issue();
    clock.setWall(clock.now() + 20 * 365 * 86_400_000);
    expect(await works(secret)).toBe(true);
  });
});

describe("rotating", () => {
  test.each([
    ["a grace that is not a duration", { grace: "soon" }],
    ["a grace that is a number", { grace: 10 }],
    ["a negative grace", { grace: "-1m" }],
    ["a grace past the end of the calendar", { grace: "999999999w" }],
  ])("is refused for %s, and the secret stays valid", async (_, body) => {
    const { id, secret } = await issue();
    const answer = await rotate(id, body);
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "/grace"]);
    expect(await works(secret)).toBe(true);
  });

  test.each([
    ["no body", undefined],
    ["an empty one", {}],
    ["a grace of zero", { grace: "0m" }],
  ])("with %s ends the old secret at once", async (_, body) => {
    const { id, secret } = await issue({ person: "Ada" });
    expect(await works(secret)).toBe(true);
    const answer = await rotate(id, body);
    expect(answer.status).toBe(200);
    expect(answer.body).toMatchObject({ id, name: "t", person: "Ada", scopes: ["tasks:read"] });
    expect(answer.body.secret).not.toBe(secret);
    expect([await works(secret), await works(answer.body.secret)]).toEqual([false, true]);
  });

  test("with a grace of 10m lets the old secret work for exactly that long", async () => {
    const { id, secret } = await issue();
    const { body } = await rotate(id, { grace: "10m" });
    clock.advance(10 * MINUTE - 1);
    expect([await works(secret), await works(body.secret)]).toEqual([true, true]);
    clock.advance(1);
    expect([await works(secret), await works(body.secret)]).toEqual([false, true]);
  });

  test("again within the grace leaves at most two secrets", async () => {
    const { id, secret } = await issue();
    const second = (await rotate(id, { grace: "10m" })).body.secret;
    const third = (await rotate(id, { grace: "10m" })).body.secret;
    expect([await works(secret), await works(second), await works(third)]).toEqual([false, true, true]);
  });

  test("keeps the expiry, for the old secret and the new", async () => {
    const { id, secret } = await issue({ expires_in: "5m" });
    const { body } = await rotate(id, { grace: "10m" });
    expect(body.expires_at).toBe(new Date(clock.now() + 5 * MINUTE).toISOString());
    clock.advance(5 * MINUTE);
    expect([await works(secret), await works(body.secret)]).toEqual([false, false]);
  });

  test("by the token itself: its own new secret works", async () => {
    const { id, secret } = await issue({ scopes: ["tokens:write", "tasks:read"] });
    const answer = await gateway.call("POST", `/v1/tokens/${id}/rotate`, { token: secret });
    expect(answer.status).toBe(200);
    expect([await works(secret), await works(answer.body.secret)]).toEqual([false, true]);
  });
});

describe("revoking", () => {
  test("ends a token at once, including its secret in grace, and removes it from the list", async () => {
    const { id, secret } = await issue();
    const second = (await rotate(id, { grace: "10m" })).body.secret;
    expect([await works(secret), await works(second)]).toEqual([true, true]);
    const answer = await gateway.call("DELETE", `/v1/tokens/${id}`);
    expect([answer.status, answer.body]).toEqual([204, null]);
    expect([await works(secret), await works(second)]).toEqual([false, false]);
    expect(await listed(id)).toBeUndefined();
  });

  test("twice, or rotating a revoked token, answers 404", async () => {
    const { id } = await issue();
    await gateway.call("DELETE", `/v1/tokens/${id}`);
    expect((await gateway.call("DELETE", `/v1/tokens/${id}`)).body.code).toBe("not_found");
    expect((await rotate(id)).body.code).toBe("not_found");
  });
});

describe("last_used_at", () => {
  test("is null at first, then the time of the last call, including refused ones", async () => {
    const { id, secret } = await issue();
    expect((await listed(id)).last_used_at).toBeNull();
    clock.advance(1_234);
    await works(secret);
    expect((await listed(id)).last_used_at).toBe(new Date(clock.now()).toISOString());
    clock.advance(1_234);
    const refused = await gateway.call("GET", "/v1/agents", { token: secret });
    expect(refused.status).toBe(403);
    expect((await listed(id)).last_used_at).toBe(new Date(clock.now()).toISOString());
  });

  test("persists once housekeeping has run", async () => {
    const { id, secret } = await issue();
    await works(secret);
    const used = new Date(clock.now()).toISOString();
    clock.advance(5_000);
    const file = new Database(databasePath(gateway.dataDir), { readonly: true });
    const stored = file.query<{ last_used_at: number | null }, [string]>(
      "SELECT last_used_at FROM tokens WHERE id = ?",
    );
    await until(() => stored.get(id)?.last_used_at === Date.parse(used));
    file.close();
    expect((await listed(id)).last_used_at).toBe(used);
  });
});
