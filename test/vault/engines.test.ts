/** The same documents, boundaries and questions have the same answers on SQLite and on PostgreSQL. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import fc from "fast-check";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { createDatabase, missingPostgres, type TestDatabase } from "../support/postgres/database.ts";
import { AGENT_SCOPES, longText, MODES, must, remove, search, write } from "../support/vault.ts";
import { EMBEDDINGS } from "./boundary/support.ts";

setDefaultTimeout(120_000);

const PATHS = ["support", "support/north", "support-north", "sales", "/"] as const;
const WORDS = [
  "refund",
  "invoice",
  "warranty",
  "delivery",
  "vouchers",
  "\u00e9t\u00e9",
  "accounts",
  "42",
  "\u0001x",
];
/** Correct words, a typing error, and words that occur nowhere. */
const ASKED = [...WORDS, "invoce", "nothing", "the"];

const text = fc
  .array(fc.constantFrom(...WORDS), { minLength: 1, maxLength: 12 })
  .map((words) => `${words.join(" ")}.`);
const documents = fc.array(
  fc.record({
    text,
    title: fc.constantFrom("A note", "Refund", "The year"),
    scope: fc.constantFrom(...PATHS),
    metadata: fc.record({ lot: fc.integer({ min: 1, max: 2 }), even: fc.boolean() }),
  }),
  { minLength: 1, maxLength: 10 },
);
const questions = fc.array(
  fc.record({
    query: fc
      .array(fc.constantFrom(...ASKED), { minLength: 1, maxLength: 4 })
      .map((words) => words.join(" ")),
    mode: fc.constantFrom(...MODES),
    top_k: fc.constantFrom(1, 3, 20),
    scopes: fc.option(fc.subarray([...PATHS], { minLength: 1 }), { nil: undefined }),
    filter: fc.constantFrom({}, { lot: 1 }, { lot: 2, even: true }),
    max_chars: fc.option(fc.integer({ min: 1, max: 200 }), { nil: undefined }),
    isAgent: fc.boolean(),
  }),
  { minLength: 3, maxLength: 8 },
);

describe.skipIf(missingPostgres !== undefined).each(EMBEDDINGS)("with the vectors of %s", (kind) => {
  let upstream: FakeEmbeddings;
  let database: TestDatabase;
  let gateways: readonly [TestGateway, TestGateway];
  let runs = 0;

  beforeAll(async () => {
    // Not a multiple of four, in which segments have their vectors.
    upstream = startFakeEmbeddings({ dims: 30 });
    const yaml = [
      `providers: { up: { kind: openai-compatible, base_url: "${upstream.baseUrl}" } }`,
      "limits: { requests_per_minute: 1000000 }",
      ...(kind === "a model" ? ["embeddings: { model: up/words }"] : []),
    ].join("\n");
    database = await createDatabase();
    gateways = [await startGateway({ yaml, isOnFiles: true }), await startGateway({ yaml, database })];
  });
  afterAll(async () => {
    for (const gateway of gateways) await gateway.stop();
    await database.drop();
    await upstream.stop();
  });

  /** A workspace of each gateway's own: both do the same in it. */
  async function twins() {
    const name = `twin-${++runs}`;
    return Promise.all(
      gateways.map(async (gateway) => {
        const admin = await gateway.workspace(name);
        const agent = { name: "agent", owner: "tests", memory_scope: ["support"] };
        await must(gateway, [201], "POST", "/v1/agents", agent, admin);
        const token = { name: "agent", agent: "agent", scopes: AGENT_SCOPES };
        const issued = await must(gateway, [201], "POST", "/v1/tokens", token, admin);
        return { gateway, admin, agent: issued.secret as string };
      }),
    );
  }

  type Twin = Awaited<ReturnType<typeof twins>>[number];

  /** An answer with everything but ids and times, in which the engines may differ. */
  async function answerOf(
    { gateway, admin, agent }: Twin,
    { isAgent, ...question }: { isAgent: boolean; query: string },
  ) {
    const answer = await search(gateway, { ...question, explain: true }, isAgent ? agent : admin);
    const results = answer.results.map(({ document_id: _, chunk_id: __, explain, ...shown }) => ({
      ...shown,
      keyword: explain?.keyword,
      vector: explain?.vector,
      duplicates: explain?.duplicates.length,
    }));
    return { results, mode: answer.mode, explain: answer.explain };
  }

  test("answers have equal orders, scores, texts and explanations", async () => {
    await fc.assert(
      fc.asyncProperty(documents, questions, fc.nat(), async (written, asked, pick) => {
        const pair = await twins();
        for (const twin of pair) {
          const ids: string[] = [];
          for (const document of written) {
            ids.push((await write(twin.gateway, document, twin.admin)).id);
          }
          const at = pick % written.length;
          const id = ids[at] as string;
          const replacement = { ...written[at], text: "A replaced refund.", id };
          if (pick % 3 === 0) await write(twin.gateway, replacement, twin.admin);
          if (pick % 3 === 1) await remove(twin.gateway, id, "", twin.admin);
        }
        for (const question of asked) {
          const defined = JSON.parse(JSON.stringify(question)) as typeof question;
          const [files, shared] = await Promise.all(pair.map((twin) => answerOf(twin, defined)));
          expect(shared).toEqual(files as NonNullable<typeof files>);
        }
        const listed = await Promise.all(
          pair.map(({ gateway, agent }) => must(gateway, [200], "GET", "/v1/vault/scopes", undefined, agent)),
        );
        const counts = listed.map(({ data }) =>
          data.map(({ updated_at: _, ...each }: { updated_at: string }) => each),
        );
        expect(counts[1]).toEqual(counts[0]);
      }),
      { numRuns: 12 },
    );
  });

  test("also with many passages, of which only some are compared exactly", async () => {
    const pair = await twins();
    for (const { gateway, admin } of pair) {
      await write(gateway, { text: longText("refund", 200), scope: "support", metadata: { lot: 1 } }, admin);
      await write(gateway, { text: longText("invoice", 100), scope: "sales", metadata: { lot: 2 } }, admin);
    }
    for (const query of ["refund10x3 refund20x4", "paragraph 7 of invoice", "refund"]) {
      for (const mode of MODES) {
        for (const filter of [{}, { lot: 2 }]) {
          const question = { query, mode, filter, top_k: 40, isAgent: false };
          const [files, shared] = await Promise.all(pair.map((twin) => answerOf(twin, question)));
          expect(shared).toEqual(files as NonNullable<typeof files>);
        }
      }
    }
  });
});
