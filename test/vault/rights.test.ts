/** The rights that count are those at the moment of the write, not those at the moment of the request. */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { databasePath } from "../../src/store/directory.ts";
import { WorkerThreads } from "../../src/vault/worker-threads.ts";
import { vaultFaults } from "../faults/vault-support.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { type Answered, startGateway, type TestGateway } from "../support/gateway.ts";
import { AGENT_SCOPES, idsOf, longText, remove, search, write } from "../support/vault.ts";
import { dispatch, ended, type Gate, gate, ledger, unsettled, yamlOf } from "../tasks/support.ts";
import { openFile } from "./files-support.ts";

const MARK = "zyxomatic kerfuffle";
const SHORT = `Note: ${MARK}.`;
/** Written in slices, which must be removed again. */
const LONG = `${MARK} ${longText("slab", 150)}`;

let dataDir: string;
let embeddings: FakeEmbeddings;
let chat: FakeModel;
let gateway: TestGateway;
let token: string;

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-rights-"));
  embeddings = startFakeEmbeddings();
  chat = startFakeModel();
  const providers = { words: `{ kind: openai-compatible, base_url: "${embeddings.baseUrl}" }` };
  const yaml = `${yamlOf(chat.url, { tiers: { 1: ["a"] }, providers })}embeddings: { model: words/small }\n`;
  // The clock is stopped, so nothing times out, however slow this machine is.
  gateway = await startGateway({ isOnFiles: true, dataDir, yaml, clock: new FakeClock() });
  await gateway.agent("clerk", { memory_scope: ["support", "sales"] });
  token = await gateway.token({ agent: "clerk", scopes: AGENT_SCOPES });
});

afterEach(async () => {
  await gateway.stop();
  await embeddings.stop();
  await chat.close();
  rmSync(dataDir, { recursive: true, force: true });
});

/** Changes to the agent while its call waits, and the call's answer afterwards. */
const CHANGES = [
  {
    name: "whose memory was changed",
    method: "PATCH",
    path: "/v1/agents/clerk",
    body: { memory_scope: ["legal", "sales"] },
    written: [403, "scope_forbidden"],
    removed: [404, "not_found"],
  },
  {
    name: "whose memory was narrowed",
    method: "PATCH",
    path: "/v1/agents/clerk",
    body: { memory_scope: "support/below" },
    written: [403, "scope_forbidden"],
    removed: [404, "not_found"],
  },
  {
    name: "that was archived",
    method: "DELETE",
    path: "/v1/agents/clerk",
    written: [401, "invalid_token"],
    removed: [401, "invalid_token"],
  },
] as const;
type Change = (typeof CHANGES)[number];

async function make(change: Change): Promise<void> {
  const { status } = await gateway.call(change.method, change.path, "body" in change ? change : {});
  expect([200, 204]).toContain(status);
}

const post = (body: object): Promise<Answered> =>
  gateway.call("POST", "/v1/vault/documents", {
    token,
    body: { title: "A note", scope: "support", ...body },
  });
const codeOf = ({ status, body }: Answered) => [status, body?.code];

/** Runs `meanwhile` while the call waits for the embedding model's answer. */
async function whileEmbedding<T>(call: () => Promise<T>, meanwhile: () => Promise<void>): Promise<T> {
  const end = gate();
  const before = embeddings.requests.length;
  embeddings.always({ gate: end.opened });
  const calling = call();
  await embeddings.arrived(before + 1);
  await meanwhile();
  embeddings.always({});
  end.open();
  return calling;
}

/** Runs `meanwhile` while the call, past all its own checks, waits for the index without the document. */
async function whileIndexing<T>(call: () => Promise<T>, meanwhile: () => Promise<void>): Promise<T> {
  const asked: Gate = gate();
  const end = gate();
  const original = WorkerThreads.prototype.do;
  const spy = spyOn(WorkerThreads.prototype, "do").mockImplementation(async function (
    this: WorkerThreads,
    ...args: Parameters<typeof original>
  ) {
    if (args[0] === "without") {
      asked.open();
      await end.opened;
    }
    return original.apply(this, args);
  } as typeof original);
  try {
    const calling = call();
    await asked.opened;
    await meanwhile();
    end.open();
    return await calling;
  } finally {
    spy.mockRestore();
  }
}

function expectNothing(): void {
  const file = openFile(dataDir);
  for (const table of ["documents", "chunks", "pages", "segments", "metadata", "pending", "vectors_1"]) {
    expect([table, file.query(`SELECT count(*) AS n FROM vault_${table}`).get()]).toEqual([table, { n: 0 }]);
  }
  file.close();
}

async function expectUntouched(id: string): Promise<void> {
  const { status, body } = await gateway.call("GET", `/v1/vault/documents/${id}`);
  expect([status, body.title, body.text]).toEqual([200, "Mine", "The old text."]);
  expect(vaultFaults(databasePath(dataDir))).toEqual([]);
  expect(unsettled(await ledger(gateway))).toEqual([]);
}

const old = async () => (await write(gateway, { title: "Mine", text: "The old text." })).id;

test("a waiting call that keeps its rights succeeds", async () => {
  const answer = await whileEmbedding(
    () => post({ text: SHORT }),
    async () => {
      await gateway.call("PATCH", "/v1/agents/clerk", { body: { memory_scope: ["support", "legal"] } });
    },
  );
  expect(answer.status).toBe(201);
  const removed = await whileIndexing(
    () => gateway.call("DELETE", `/v1/vault/documents/${answer.body.id}`, { token }),
    async () => {},
  );
  expect(removed.status).toBe(204);
});

describe.each(CHANGES)("an agent $name", (change) => {
  test.each([
    ["short", SHORT],
    ["long", LONG],
  ])("has not written the %s document that its token was about to write", async (_, text) => {
    const answer = await whileEmbedding(
      () => post({ text, metadata: { keeper: "clerk" } }),
      () => make(change),
    );
    expect(codeOf(answer)).toEqual([...change.written]);
    expect(JSON.stringify(answer.body)).not.toContain("support");
    expectNothing();
    const entry = (await ledger(gateway)).find(({ action }) => action === "vault.write");
    expect(entry).toMatchObject({ outcome: "denied", code: change.written[1] });
  });

  test("replaces nothing, whenever it lost its rights", async () => {
    const id = await old();
    const waits = change === CHANGES[0] ? [whileEmbedding, whileIndexing] : [whileIndexing];
    for (const wait of waits) {
      const answer = await wait(
        () => post({ id, title: "Theirs", text: SHORT }),
        () => make(change),
      );
      expect(codeOf(answer)).toEqual([...change.written]);
      await expectUntouched(id);
      if (waits.length > 1)
        await gateway.call("PATCH", "/v1/agents/clerk", { body: { memory_scope: "support" } });
    }
    expect((await search(gateway, { query: MARK, mode: "keyword" })).results).toEqual([]);
  });

  test("deletes nothing, and does not learn that a document exists", async () => {
    const id = await old();
    const answer = await whileIndexing(
      () => gateway.call("DELETE", `/v1/vault/documents/${id}`, { token }),
      () => make(change),
    );
    expect(codeOf(answer)).toEqual([...change.removed]);
    await expectUntouched(id);
    const { results } = await search(gateway, { query: "old text", mode: "keyword" });
    expect(idsOf(results)).toEqual([id]);
  });

  test("writes nothing with its tool", async () => {
    const args = { title: "Learnt", text: SHORT, scope: "support" };
    chat.script("a", (_request, index) =>
      index === 0 ? { toolCalls: [{ name: "vault__write", arguments: args }] } : { chunks: ["Done."] },
    );
    const id = await whileEmbedding(
      () => dispatch(gateway, { agent: "clerk", tools: ["vault.write"] }),
      () => make(change),
    );
    const task = await ended(gateway, id);
    // Archiving an agent stops its tasks, and the outcome of their tool calls is then unknown.
    const status = change.method === "DELETE" ? "unknown" : "failed";
    expect(task.tools_called).toMatchObject([{ tool: "vault.write", status }]);
    // The tool may continue after its task ends. A deletion made now is handled after it.
    await remove(gateway, await old());
    expectNothing();
    expect(unsettled(await ledger(gateway))).toEqual([]);
  });
});

test("a document moves out of a scope only while both are inside", async () => {
  const id = await old();
  for (const memory_scope of ["sales", "support"]) {
    await gateway.call("PATCH", "/v1/agents/clerk", { body: { memory_scope: ["support", "sales"] } });
    const answer = await whileIndexing(
      () => post({ id, scope: "sales", title: "Moved", text: SHORT }),
      async () => {
        await gateway.call("PATCH", "/v1/agents/clerk", { body: { memory_scope } });
      },
    );
    expect(codeOf(answer)).toEqual([403, "scope_forbidden"]);
    await expectUntouched(id);
  }
});
