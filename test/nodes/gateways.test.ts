/** Gateways that share a store, as clients meet them. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { missingPostgres } from "../support/postgres/database.ts";

describe.skipIf(missingPostgres !== undefined)("two gateways with one store", () => {
  let started: TestNodes;

  beforeAll(async () => {
    started = await startNodes(2);
  });

  afterAll(() => started.stop());

  test("append to one ledger, without a gap", async () => {
    const [first, second] = started.nodes;
    if (!first || !second) throw new Error("two nodes were started");
    const seqs: number[] = [];
    for (let round = 0; round < 10; round++) {
      for (const node of [first, second]) {
        const { status, headers } = await node.call("GET", "/v1/agents");
        expect(status).toBe(200);
        seqs.push(Number(headers.get("gatehouse-ledger")));
      }
    }
    expect(seqs).toEqual(seqs.map((_, at) => (seqs[0] ?? 0) + at));
  });
});
