/** Vectors when the configured model changes, and without sqlite-vec. */
import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { remove, search, write } from "../support/vault.ts";
import {
  active,
  changeDimension,
  clock,
  dataDir,
  logged,
  one,
  passing,
  spaces,
  start,
  stop,
  texts,
  two,
  useGateway,
  waitFor,
} from "./embed-support.ts";
import { blockLibrary, leftovers, openFile } from "./files-support.ts";

useGateway();

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
    await waitFor(async () => (await search(it, { query: "number1" })).mode === "hybrid");
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
  await stop();
  await changeDimension(48);
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
    await stop();
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
