/**
 * A vector is reused only within its scope; otherwise an answer's timing would reveal whether a text is known
 * elsewhere.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { storeRows } from "../support/store-rows.ts";
import { remove, type Written, write as writeTo } from "../support/vault.ts";
import { until } from "../tasks/support.ts";

let clock: FakeClock;
let embeddings: FakeEmbeddings;
let gateway: TestGateway;

beforeEach(async () => {
  clock = new FakeClock();
  embeddings = startFakeEmbeddings();
  const provider = `up: { kind: openai-compatible, base_url: "${embeddings.baseUrl}" }`;
  gateway = await startGateway({
    clock,
    yaml: `providers:\n  ${provider}\nembeddings: { model: up/words }\n`,
  });
});

afterEach(async () => {
  await gateway.stop();
  await embeddings.stop();
});

const write = (scope: string, more: object = {}): Promise<Written> =>
  writeTo(gateway, { title: "Boats", text: "A sloop has one mast.", scope, ...more });
const asked = () => embeddings.requests.length;

test("the same title and text is embedded once in a scope", async () => {
  for (let n = 0; n < 3; n++) expect((await write("support")).vectors).toBe("ready");
  expect(asked()).toBe(1);
});

test("even if the document is replaced within its scope", async () => {
  const { id } = await write("support");
  await write("support", { id });
  expect(asked()).toBe(1);
});

describe("the same title and text is embedded again", () => {
  test.each(["support/below", "supportx", "suppor", "sales", "/"])("in %s, after support", async (scope) => {
    await write("support");
    expect((await write(scope)).vectors).toBe("ready");
    expect(asked()).toBe(2);
    await write(scope);
    expect(asked()).toBe(2);
  });

  test("in a scope that the document is moved to", async () => {
    const { id } = await write("support");
    await write("sales", { id });
    expect(asked()).toBe(2);
  });

  test("in the same scope of another workspace", async () => {
    await write("support");
    const other = await gateway.workspace("other");
    await writeTo(gateway, { title: "Boats", text: "A sloop has one mast.", scope: "support" }, other);
    expect(asked()).toBe(2);
  });

  test("after its document was deleted", async () => {
    await remove(gateway, (await write("support")).id);
    await write("support");
    expect(asked()).toBe(2);
  });

  test("under another title", async () => {
    await write("support");
    await write("support", { title: "Ships" });
    expect(asked()).toBe(2);
  });
});

test("vectors that are filled in later are requested once in each scope too", async () => {
  // After the first failure the model is left alone for a while, so the other calls do not wait for it.
  embeddings.script({ status: 429, headers: { "retry-after": "90" } });
  for (const scope of ["support", "sales", "support", "sales", "support"]) {
    expect((await write(scope)).vectors).toBe("pending");
  }
  expect(asked()).toBe(1);
  await until(async () => {
    // In steps so small that a node whose reports take their time does not give its work up.
    clock.advance(500);
    const [row] = await storeRows<{ n: number }>(gateway, "SELECT count(*) AS n FROM vault_pending");
    return Number(row?.n) === 0;
  });
  const texts = embeddings.requests.slice(1).flatMap(({ input }) => input);
  expect(texts).toEqual(Array(2).fill("Boats\n\nA sloop has one mast."));
});
