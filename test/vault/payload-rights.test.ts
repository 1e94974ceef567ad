/**
 * `?payloads=true` erases what other agents' tasks may quote, so it needs the right to erase payloads as well as the
 * right to delete.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { must, write } from "../support/vault.ts";
import { ledger } from "../tasks/support.ts";

let gateway: TestGateway;

beforeAll(async () => {
  gateway = await startGateway();
  await gateway.agent("clerk");
});
afterAll(() => gateway.stop());

const TOKENS = [
  ["only vault:write", { scopes: ["vault:write"] }],
  ["all scopes for documents and the ledger", { scopes: ["vault:read", "vault:write", "ledger:read"] }],
  ["an agent's token", { agent: "clerk", scopes: ["vault:read", "vault:write"] }],
] as const;

describe.each(TOKENS)("with %s", (_, request) => {
  test("?payloads=true is refused before anything is done, and without it the document is deleted", async () => {
    const token = await gateway.token(request);
    const { id } = await write(gateway, { text: "A heron stands." });
    const path = `/v1/vault/documents/${id}`;
    const refused = await gateway.call("DELETE", `${path}?payloads=true`, { token });
    expect([refused.status, refused.body.code]).toEqual([403, "scope_missing"]);
    expect(refused.body.detail).toContain("settings:write");
    await must(gateway, [200], "GET", path);
    const entry = (await ledger(gateway)).findLast(({ action }) => action === "vault.delete");
    expect(entry).toMatchObject({ outcome: "denied", code: "scope_missing", detail: { document: id } });
    await must(gateway, [204], "DELETE", `${path}?payloads=false`, undefined, token);
    await must(gateway, [404], "GET", path);
  });

  test("the existence of a document is not revealed", async () => {
    const token = await gateway.token(request);
    const { id } = await write(gateway, { text: "A heron stands." });
    const never = id.replace(/.{6}$/, "000000");
    const [one, other] = [
      await gateway.call("DELETE", `/v1/vault/documents/${id}?payloads=true`, { token }),
      await gateway.call("DELETE", `/v1/vault/documents/${never}?payloads=true`, { token }),
    ];
    expect([other.status, other.body.code, other.body.detail]).toEqual([403, one.body.code, one.body.detail]);
  });
});

test("with vault:write and settings:write it is done", async () => {
  const token = await gateway.token({ scopes: ["vault:write", "settings:write"] });
  const { id } = await write(gateway, { text: "A heron stands." });
  await must(gateway, [204], "DELETE", `/v1/vault/documents/${id}?payloads=true`, undefined, token);
  await must(gateway, [404], "GET", `/v1/vault/documents/${id}`);
});

test("with only settings:write nothing is deleted, either way", async () => {
  const token = await gateway.token({ scopes: ["settings:write"] });
  const { id } = await write(gateway, { text: "A heron stands." });
  for (const query of ["", "?payloads=true"]) {
    const { status, body } = await gateway.call("DELETE", `/v1/vault/documents/${id}${query}`, { token });
    expect([status, body.code]).toEqual([403, "scope_missing"]);
  }
  await must(gateway, [200], "GET", `/v1/vault/documents/${id}`);
});
