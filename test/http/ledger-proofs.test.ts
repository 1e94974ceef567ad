import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { createPublicKey, verify } from "node:crypto";
import { isConsistent, rootOfInclusion } from "../../src/ledger/proof/check.ts";
import { parseSignedCheckpoint } from "../../src/ledger/proof/checkpoint.ts";
import { parseVerifierKey, signersOf } from "../../src/ledger/proof/note.ts";
import { sha256, TREE } from "../../src/ledger/tree-hash.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
let vkey: string;

beforeAll(async () => {
  gateway = await startGateway();
  for (let call = 0; call < 300; call++) await gateway.call("GET", "/v1/agents");
  vkey = (await gateway.call("GET", "/v1/ledger/key")).body.vkey;
});
afterAll(() => gateway.stop());

/** The tree head in a note, once its signature is verified. */
async function headOf(note: string, key = vkey) {
  const { note: signed, checkpoint } = parseSignedCheckpoint(note);
  const known = parseVerifierKey(sha256, key);
  expect(checkpoint.origin).toBe(known.name);
  const signers = await signersOf(signed, [known], (publicKey, message, signature) =>
    verify(
      null,
      message,
      createPublicKey({
        key: Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), publicKey]),
        format: "der",
        type: "spki",
      }),
      signature,
    ),
  );
  expect(signers).toHaveLength(1);
  return checkpoint;
}

const hashes = (list: string[]) => list.map((each) => Uint8Array.fromBase64(each));

describe("refused", () => {
  test.each([
    ["/v1/ledger/999999/proof", 404, "not_found", undefined],
    ["/v1/ledger/0/proof", 404, "not_found", undefined],
    ["/v1/ledger/x/proof", 404, "not_found", undefined],
    ["/v1/ledger/-1/proof", 404, "not_found", undefined],
    ["/v1/ledger/1/proof?size=3", 422, "validation_failed", "/size"],
    ["/v1/ledger/consistency", 422, "validation_failed", "/from"],
    ["/v1/ledger/consistency?from=-1", 422, "validation_failed", "/from"],
    ["/v1/ledger/consistency?from=1.5", 422, "validation_failed", "/from"],
    ["/v1/ledger/consistency?from=5&to=4", 422, "validation_failed", "/from"],
    ["/v1/ledger/consistency?from=999999", 422, "validation_failed", "/from"],
    ["/v1/ledger/consistency?from=1&to=999999", 422, "validation_failed", "/to"],
  ])("%s: %d", async (path, status, code, field) => {
    const { status: answered, body } = await gateway.call("GET", path);
    expect([answered, body.code, body.errors?.[0]?.path]).toEqual([status, code, field]);
  });

  test("the rotation of the key, to everyone except the operator on the machine", async () => {
    const { status } = await gateway.call("POST", "/operator/ledger/rotate-key");
    expect(status).toBe(404);
  });
});

describe("every entry's proof leads to the root that the checkpoint signs", () => {
  test.each([1, 2, 5, 255, 256, 257, 300])("%d", async (seq) => {
    const { status, headers, body } = await gateway.call("GET", `/v1/ledger/${seq}/proof`);
    expect(status).toBe(200);
    expect(headers.get("gatehouse-ledger")).not.toBeNull();
    const head = await headOf(body.checkpoint);
    expect(body).toMatchObject({ seq, size: head.size });
    const entry = (await gateway.call("GET", `/v1/ledger/${seq}`)).body;
    const leaf = TREE.leaf(Uint8Array.fromBase64(entry.bytes));
    expect(body.leaf).toBe(leaf.toHex());
    expect(entry.leaf).toBe(leaf.toHex());
    expect(rootOfInclusion(TREE, leaf, seq - 1, head.size, hashes(body.inclusion))).toEqual(head.root);
  });

  test("and as an equivalent tlog-proof", async () => {
    const { headers, body } = await gateway.call("GET", "/v1/ledger/7/proof", {
      headers: { accept: "text/plain" },
    });
    expect(headers.get("content-type")).toStartWith("text/plain");
    const [first, index, ...rest] = (body as string).split("\n");
    expect([first, index]).toEqual(["c2sp.org/tlog-proof@v1", "index 6"]);
    const end = rest.indexOf("");
    const head = await headOf(rest.slice(end + 1).join("\n"));
    const { leaf } = (await gateway.call("GET", "/v1/ledger/7")).body;
    const proof = hashes(rest.slice(0, end));
    expect(rootOfInclusion(TREE, Uint8Array.fromHex(leaf), 6, head.size, proof)).toEqual(head.root);
  });

  test.each([["*/*"], ["application/json"], ["application/json, text/plain"]])(
    "JSON for %s",
    async (accept) => {
      const { body } = await gateway.call("GET", "/v1/ledger/7/proof", { headers: { accept } });
      expect(body.seq).toBe(7);
    },
  );
});

test("a checkpoint covers the present tree, is plain text, and reading it is recorded", async () => {
  const { status, headers, body } = await gateway.call("GET", "/v1/ledger/checkpoint");
  expect([status, headers.get("content-type")]).toEqual([200, "text/plain; charset=utf-8"]);
  const head = await headOf(body);
  expect(Number(headers.get("gatehouse-ledger"))).toBe(head.size + 1);
  const entry = (await gateway.call("GET", `/v1/ledger/${head.size + 1}`)).body;
  expect(entry).toMatchObject({ action: "ledger.checkpoint", outcome: "succeeded" });
});

describe("an older and a newer checkpoint are proved to belong to one ledger", () => {
  test("the previous one and the present one", async () => {
    const older = await headOf((await gateway.call("GET", "/v1/ledger/checkpoint")).body);
    await gateway.call("GET", "/v1/agents");
    const { body } = await gateway.call("GET", `/v1/ledger/consistency?from=${older.size}`);
    const newer = await headOf(body.checkpoint);
    expect(body).toMatchObject({ from: older.size, to: newer.size });
    expect(newer.size).toBeGreaterThan(older.size);
    expect(isConsistent(TREE, older, newer, hashes(body.consistency))).toBe(true);
    const wrong = { size: older.size, root: newer.root };
    expect(isConsistent(TREE, wrong, newer, hashes(body.consistency))).toBe(false);
  });

  test.each([
    [0, 10],
    [10, 10],
    [3, 256],
    [256, 300],
  ])("those of %d and %d entries", async (from, to) => {
    const { body } = await gateway.call("GET", `/v1/ledger/consistency?from=${from}&to=${to}`);
    const newer = await headOf(body.checkpoint);
    expect(newer.size).toBe(to);
    const before = await gateway.call("GET", `/v1/ledger/consistency?from=0&to=${from}`);
    const older = await headOf(before.body.checkpoint);
    expect(isConsistent(TREE, older, newer, hashes(body.consistency))).toBe(true);
  });
});

test("tenants have their own trees, and keys with different names", async () => {
  const token = await gateway.workspace("tenant");
  const own = (await gateway.call("GET", "/v1/ledger/key", { token })).body.vkey as string;
  expect(own.split("+")[0]).toBe(vkey.split("+")[0]?.replace(/default$/, "tenant"));
  const head = await headOf((await gateway.call("GET", "/v1/ledger/checkpoint", { token })).body, own);
  expect(head.size).toBeLessThan(10);
  expect((await gateway.call("GET", "/v1/ledger/200/proof", { token })).status).toBe(404);
});

test("a new key: the old verifier key stays known, and new signatures are by the new key", async () => {
  const operator = { token: gateway.gateway.operatorSecret, headers: { "gatehouse-operator": "ada" } };
  const rotated = await gateway.call("POST", "/operator/ledger/rotate-key", operator);
  expect(rotated.status).toBe(200);
  const { body } = await gateway.call("GET", "/v1/ledger/key");
  expect(body).toEqual({ vkey: rotated.body.vkey, former_vkeys: [vkey] });
  expect(body.vkey).not.toBe(vkey);
  await headOf((await gateway.call("GET", "/v1/ledger/checkpoint")).body, body.vkey);
  const entries = await gateway.call("GET", "/v1/ledger?action=ledger.rotate_key");
  expect(entries.body.data).toContainEqual(
    expect.objectContaining({ actor: "user:ada", detail: { from: vkey, to: body.vkey } }),
  );
});
