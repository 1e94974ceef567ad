/** Vectors from a configured model: at once, later, from another model, and never twice for the same text. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "../../src/base/log.ts";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { longText, remove, search, write } from "../support/vault.ts";
import { until } from "../tasks/support.ts";
import { blockLibrary, leftovers, openFile } from "./files-support.ts";

let clock: FakeClock;
let dataDir: string;
let one: FakeEmbeddings;
let two: FakeEmbeddings;
let gateway: TestGateway | null;
let logged: { level: string; message: string }[];

const record =
  (level: string) =>
  (message: string): void =>
    void logged.push({ level, message });
const log: Log = {
  debug: record("debug"),
  info: record("info"),
  warn: record("warn"),
  error: record("error"),
};

beforeEach(() => {
  clock = new FakeClock();
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-embed-"));
  one = startFakeEmbeddings({ dims: 64 });
  two = startFakeEmbeddings({ dims: 32 });
  logged = [];
  gateway = null;
});

afterEach(async () => {
  await gateway?.stop();
  await one.stop();
  await two.stop();
  rmSync(dataDir, { recursive: true, force: true });
});

/**
 * Stops the running gateway and starts another. `model` null means the default; `providers` are the configured ones.
 */
async function start(
  model: string | null,
  providers: readonly string[] = ["one", "two"],
): Promise<TestGateway> {
  await gateway?.stop();
  gateway = null;
  const urls: Record<string, string> = { one: one.baseUrl, two: two.baseUrl };
  const yaml = [
    "providers:",
    ...providers.map((name) => `  ${name}: { kind: openai-compatible, base_url: "${urls[name]}" }`),
    'tiers: { 1: { models: ["builtin/extractive"] } }',
    "limits: { requests_per_minute: 1000000 }",
    ...(model === null ? [] : [`embeddings: { model: ${model} }`]),
  ].join("\n");
  gateway = await startGateway({ dataDir, yaml, clock, log });
  return gateway;
}

interface SpaceRow {
  readonly name: string;
  readonly state: string;
  readonly dimensions: number;
  readonly vectors: number;
  readonly pending: number;
}

function spaces(): SpaceRow[] {
  const file = openFile(dataDir);
  try {
    return file
      .query<Omit<SpaceRow, "vectors">, []>(
        `SELECT id, name, state, dimensions,
           (SELECT count(*) FROM vault_pending AS p WHERE p.space_id = s.id) AS pending
         FROM vault_spaces AS s ORDER BY id`,
      )
      .all()
      .map(({ name, ...row }) => {
        const { id, ...rest } = row as typeof row & { id: number };
        const vectors =
          rest.dimensions === 0
            ? 0
            : (file.query<{ n: number }, []>(`SELECT count(*) AS n FROM vault_vectors_${id}`).get()?.n ?? -1);
        return { name: name.split("|")[0] ?? "", ...rest, vectors };
      });
  } finally {
    file.close();
  }
}

const active = () => spaces().find(({ state }) => state === "active");

/** Advances the clock in steps until the condition holds. Requests over the network are real. */
const waitFor = (condition: () => boolean | Promise<boolean>, step = 1_000) =>
  until(() => {
    clock.advance(step);
    return condition();
  });

/** Advances the clock while a call waits for a failing model. */
async function passing<T>(work: Promise<T>): Promise<T> {
  let isOver = false;
  void work
    .catch(() => {})
    .finally(() => {
      isOver = true;
    });
  await until(() => {
    clock.advance(500);
    return isOver;
  });
  return work;
}

const texts = () => one.requests.flatMap(({ input }) => input);

test("the model's dimension is learned, documents get vectors at once, and questions find them", async () => {
  const it = await start("one/small");
  expect(spaces()).toMatchObject([{ name: "one/small", state: "active", dimensions: 0 }]);
  const written = await write(it, { title: "Boats", text: "A sloop has one mast." });
  expect(written.vectors).toBe("ready");
  await write(it, { title: "Trains", text: "A wagon has four axles." });
  expect(spaces()).toMatchObject([{ name: "one/small", dimensions: 64, vectors: 2, pending: 0 }]);
  const { results, mode } = await search(it, { query: "one mast", mode: "vector" });
  expect(mode).toBe("vector");
  expect(results[0]?.document_id).toBe(written.id);
});

describe("a model that cannot be reached", () => {
  test("delays no document: words find it, and its vectors follow by themselves", async () => {
    const it = await start("one/small");
    await write(it, { title: "Before", text: "A barge has no mast." });
    one.always({ status: 503 });
    const written = await passing(write(it, { title: "Boats", text: "A sloop has one mast." }));
    expect(written.vectors).toBe("pending");
    const found = await passing(search(it, { query: "sloop mast" }));
    expect(found.mode).toBe("keyword");
    expect(found.results[0]?.document_id).toBe(written.id);
    await passing(write(it, { title: "More", text: "A yawl has two masts." }));
    one.always({});
    await waitFor(() => active()?.pending === 0);
    expect(active()?.vectors).toBe(3);
    expect((await it.call("GET", `/v1/vault/documents/${written.id}`)).body.vectors).toBe("ready");
    expect((await search(it, { query: "sloop mast" })).mode).toBe("hybrid");
  });

  test("and hangs is waited for at most ten seconds", async () => {
    const it = await start("one/small");
    one.always({ hang: true });
    const writing = write(it, { title: "Boats", text: "A sloop has one mast." });
    await one.arrived(1);
    clock.advance(10_000);
    expect((await writing).vectors).toBe("pending");
    // The next writer does not wait at all. Both documents get their vectors in the background.
    expect((await write(it, { title: "More", text: "A yawl has two masts." })).vectors).toBe("pending");
    one.always({});
    await waitFor(() => active()?.pending === 0);
  });

  test("from the first start on is used once it appears", async () => {
    one.always({ status: 503 });
    const it = await start("one/small");
    await passing(write(it, { title: "Boats", text: "A sloop has one mast." }));
    expect(active()).toMatchObject({ dimensions: 0, pending: 1 });
    one.always({});
    await waitFor(() => active()?.vectors === 1);
  });
});

describe("equal text", () => {
  test("is embedded once per workspace, even within a document", async () => {
    const it = await start("one/small");
    await write(it, { title: "Boats", text: "A sloop has one mast." });
    const asked = one.requests.length;
    const again = await write(it, { title: "Boats", text: "A sloop has one mast." });
    expect(again.vectors).toBe("ready");
    expect(one.requests.length).toBe(asked);
    expect(active()).toMatchObject({ vectors: 2, pending: 0 });
    const other = await it.workspace("other");
    await write(it, { title: "Boats", text: "A sloop has one mast." }, other);
    expect(one.requests.length).toBe(asked + 1);
  });

  test("is not embedded again by the background fill either", async () => {
    const it = await start("one/small");
    one.always({ status: 503 });
    for (let n = 0; n < 3; n++) await passing(write(it, { title: "Boats", text: "A sloop has one mast." }));
    const before = one.requests.length;
    one.always({});
    await waitFor(() => active()?.vectors === 3);
    const made = one.requests.slice(before).flatMap(({ input }) => input);
    expect(made.filter((text) => text.includes("sloop"))).toHaveLength(1);
  });
});

test("a text that the model refuses does not keep the others from their vectors, and is not retried constantly", async () => {
  const it = await start("one/small");
  one.always(({ input }) => (input.some((text) => text.includes("forbidden")) ? { status: 400 } : {}));
  const text = Array.from({ length: 6 }, (_, n) => longText(n === 3 ? "forbidden" : `p${n}`, 3)).join("\n\n");
  const written = await passing(write(it, { title: "Mixed", text }));
  await waitFor(() => allRefused() && (active()?.vectors ?? 0) + (active()?.pending ?? 0) === written.chunks);
  expect(active()?.pending).toBeGreaterThan(0);
  expect(active()?.vectors).toBeGreaterThan(written.chunks / 2);
  // From now on the text is left alone for a day.
  const asked = one.requests.length;
  for (let n = 0; n < 50; n++) await waitFor(() => true);
  expect(one.requests.length).toBe(asked);
  one.always({});
  clock.advance(86_400_000);
  await waitFor(() => active()?.pending === 0);

  /** Whether every text still without a vector was sent separately and postponed. */
  function allRefused(): boolean {
    const file = openFile(dataDir);
    const { n } = file
      .query<{ n: number }, []>("SELECT count(*) AS n FROM vault_pending WHERE retry_at = 0")
      .get() ?? { n: -1 };
    file.close();
    return n === 0;
  }
});

test("the first passages of a long document get their vectors at once, the rest in the background", async () => {
  const it = await start("one/small");
  const written = await write(it, { title: "Long", text: longText("slab", 400) });
  expect(written.chunks).toBeGreaterThan(256);
  expect(written.vectors).toBe("pending");
  await waitFor(() => active()?.pending === 0);
  expect(active()?.vectors).toBe(written.chunks);
  expect(new Set(texts()).size).toBe(written.chunks);
});

describe("another model", () => {
  async function filledWithOne(count = 3): Promise<string[]> {
    const it = await start("one/small");
    const ids: string[] = [];
    for (let n = 0; n < count; n++) {
      ids.push((await write(it, { title: `Boat ${n}`, text: `Vessel number${n} has ${n} masts.` })).id);
    }
    return ids;
  }

  test("is filled while the old one answers, then replaces it at once", async () => {
    const ids = await filledWithOne();
    two.always({ status: 503 });
    const it = await start("two/other");
    const found = await search(it, { query: "number1", mode: "vector" });
    expect([found.mode, found.results[0]?.document_id]).toEqual(["vector", ids[1]]);
    expect(one.requests.at(-1)?.input).toEqual(["number1"]);
    // A document written in the meantime gets both.
    const late = await passing(write(it, { title: "Boat 9", text: "Vessel number9 has 9 masts." }));
    await waitFor(() => spaces().find(({ name }) => name === "one/small")?.vectors === 4);
    expect((await search(it, { query: "number9", mode: "vector" })).results[0]?.document_id).toBe(late.id);
    two.always({});
    await waitFor(() => active()?.name === "two/other");
    expect(spaces()).toMatchObject([
      { name: "one/small", state: "kept", vectors: 4 },
      { name: "two/other", state: "active", dimensions: 32, vectors: 4, pending: 0 },
    ]);
    const asked = one.requests.length;
    expect((await search(it, { query: "number2", mode: "vector" })).results[0]?.document_id).toBe(ids[2]);
    expect(one.requests.length).toBe(asked);
  });

  test("whose predecessor's provider is gone leaves only words until it is filled", async () => {
    const ids = await filledWithOne();
    two.always({ status: 503 });
    const it = await start("two/other", ["two"]);
    const found = await search(it, { query: "number1" });
    expect([found.mode, found.results[0]?.document_id]).toEqual(["keyword", ids[1]]);
    two.always({});
    await waitFor(() => active()?.name === "two/other");
    expect((await search(it, { query: "number1" })).mode).toBe("hybrid");
  });

  test("and back: kept vectors are used, and only missing ones requested", async () => {
    await filledWithOne();
    let it = await start("two/other");
    await waitFor(() => active()?.name === "two/other");
    const late = await write(it, { title: "Boat 9", text: "Vessel number9 has 9 masts." });
    const asked = texts().length;
    it = await start("one/small");
    await waitFor(() => active()?.name === "one/small");
    expect(texts().slice(asked)).toEqual(["Boat 9\n\nVessel number9 has 9 masts."]);
    expect(active()?.vectors).toBe(4);
    expect((await search(it, { query: "number9", mode: "vector" })).results[0]?.document_id).toBe(late.id);
  });

  test("lexical, a model, lexical again, a third: the previous one stays, older ones are removed from the file", async () => {
    let it = await start(null);
    for (let n = 0; n < 5; n++) await write(it, { title: `Boat ${n}`, text: `Vessel number${n} has masts.` });
    expect(spaces()).toMatchObject([{ name: "builtin/lexical", state: "active", vectors: 5 }]);
    it = await start("one/small");
    expect((await search(it, { query: "number2", mode: "vector" })).mode).toBe("vector");
    await waitFor(() => active()?.name === "one/small");
    it = await start(null);
    await write(it, { title: "Boat 7", text: "Vessel number7 has masts." });
    await waitFor(() => active()?.name === "builtin/lexical");
    expect(active()).toMatchObject({ vectors: 6, pending: 0 });
    it = await start("two/other");
    await waitFor(() => active()?.name === "two/other");
    await waitFor(() => spaces().length === 2);
    expect(spaces()).toMatchObject([
      { name: "builtin/lexical", state: "kept", vectors: 6 },
      { name: "two/other", state: "active", vectors: 6 },
    ]);
    const file = openFile(dataDir);
    const tables = file
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE name LIKE 'vault_vectors_2%'")
      .all();
    file.close();
    expect(tables).toEqual([]);
  });

  test("does not bring back documents deleted while it is filled", async () => {
    const ids = await filledWithOne(4);
    const gate = Promise.withResolvers<void>();
    two.always({ gate: gate.promise });
    const it = await start("two/other");
    clock.advance(0);
    await two.arrived(1);
    await remove(it, ids[1] ?? "");
    await passing(write(it, { id: ids[2], title: "Instead", text: "A replacement." }));
    gate.resolve();
    two.always({});
    await waitFor(() => active()?.name === "two/other" && active()?.pending === 0);
    expect(active()?.vectors).toBe(3);
    const file = openFile(dataDir);
    const orphans = file
      .query("SELECT passage FROM vault_vectors_2 WHERE passage NOT IN (SELECT key FROM vault_chunks)")
      .all();
    file.close();
    expect(orphans).toEqual([]);
  });
});

test("a model whose dimension has changed is logged as an error, and search by words continues", async () => {
  let it = await start("one/small");
  await write(it, { title: "Boats", text: "A sloop has one mast." });
  await gateway?.stop();
  gateway = null;
  await one.stop();
  one = startFakeEmbeddings({ dims: 48 });
  it = await start("one/small");
  const written = await write(it, { title: "More", text: "A yawl has two masts." });
  expect(written.vectors).toBe("pending");
  const found = await search(it, { query: "yawl" });
  expect([found.mode, found.results[0]?.document_id]).toEqual(["keyword", written.id]);
  expect(logged.filter(({ level }) => level === "error").map(({ message }) => message)).toContain(
    "the embedding model has changed; word search still works",
  );
  expect(active()).toMatchObject({ dimensions: 64, vectors: 1, pending: 1 });
});

describe("without sqlite-vec", () => {
  test.each([
    ["builtin/lexical", null],
    ["a model", "one/small"],
  ])("%s: words are searched, and a later start with it fills the vectors in", async (_, model) => {
    const path = blockLibrary(dataDir);
    let it = await start(model);
    expect(logged.map(({ message }) => message)).toContain("the vault searches only words");
    const { id } = await write(it, { title: "Boats", text: "A sloop has one mast." });
    const other = await write(it, { title: "More", text: "A yawl has two masts." });
    for (const mode of ["hybrid", "vector", "keyword"]) {
      const found = await search(it, { query: "sloop", mode });
      expect([found.mode, found.results[0]?.document_id]).toEqual(["keyword", id]);
    }
    await remove(it, other.id);
    expect(one.requests).toHaveLength(0);
    rmSync(path, { recursive: true });
    it = await start(model);
    await waitFor(() => active()?.pending === 0);
    expect(active()?.vectors).toBe(1);
    expect((await search(it, { query: "sloop", mode: "vector" })).results[0]?.document_id).toBe(id);
  });

  test("a deleted document is hidden at once, and its vectors are removed by the next start that has it", async () => {
    let it = await start(null);
    const source_uri = "https://hoard.example/parchment";
    const { id } = await write(it, {
      title: "Boats of Ambrosius",
      text: "A sloop has one mast.",
      source_uri,
    });
    await write(it, { title: "More", text: "A yawl has two masts." });
    await gateway?.stop();
    gateway = null;
    const path = blockLibrary(dataDir);
    it = await start(null);
    await remove(it, id);
    expect(leftovers(dataDir, { title: "of Ambrosius", text: "A sloop has", source_uri })).toEqual([]);
    expect((await search(it, { query: "sloop" })).results).toEqual([]);
    rmSync(path, { recursive: true });
    it = await start(null);
    expect(active()).toMatchObject({ vectors: 1, pending: 0 });
  });

  test("then another model with it: both spaces have their tables", async () => {
    const path = blockLibrary(dataDir);
    let it = await start(null);
    await write(it, { title: "Boats", text: "A sloop has one mast." });
    rmSync(path, { recursive: true });
    one.always({ status: 503 });
    it = await start("one/small");
    await passing(write(it, { title: "More", text: "A yawl has two masts." }));
    one.always({});
    await waitFor(() => active()?.name === "one/small");
    expect(active()?.vectors).toBe(2);
  });
});
