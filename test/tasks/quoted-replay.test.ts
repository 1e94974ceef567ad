/**
 * A restored note of an erasure, or a note that an earlier version wrote, erases only what is older than the
 * deletion.
 */
import { Database } from "bun:sqlite";
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { reseal } from "../support/seals.ts";
import { dispatch, ended, held, ledger, run, until, yamlOf } from "./support.ts";

setDefaultTimeout(60_000);

let upstream: FakeModel;
let gateway: TestGateway;
let directory: ReturnType<typeof tempDir>;
const start = () =>
  startGateway({
    isOnFiles: true,
    yaml: yamlOf(upstream.url, { tiers: { 1: ["a"] } }),
    dataDir: directory.path,
  });
beforeEach(async () => {
  upstream = startFakeModel();
  directory = tempDir();
  gateway = await start();
  await gateway.agent("finder", { memory_scope: "/" });
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  directory.remove();
});

interface Note {
  readonly key: string;
  readonly value: string;
  readonly seal: Uint8Array;
}

const NOTE = "SELECT key, value, seal FROM meta WHERE key LIKE 'quoted/%'";
const TEXT = { scope: "support", title: "Crates" };

function noteOf(): Note | null {
  using file = new Database(databasePath(directory.path), { readonly: true });
  return file.query<Note, []>(NOTE).get();
}

/** A task that finds a document and repeats it. */
function quote(text: string): Promise<{ readonly id: string; readonly output: string | null }> {
  let step = 0;
  upstream.script("a", () =>
    step++ === 0
      ? { toolCalls: [{ name: "vault__search", arguments: { query: text } }] }
      : { chunks: [text] },
  );
  return run(gateway, { agent: "finder", prompt: "find", tools: ["vault.search"] });
}

/** Deletes a document while a task runs, which keeps the note of the erasure, and ends that task. */
async function deletion(document: string): Promise<Note> {
  const running = held();
  upstream.script("a", running.script);
  const id = await dispatch(gateway, { agent: "finder", prompt: "long" });
  await running.asked;
  expect((await gateway.call("DELETE", `/v1/vault/documents/${document}?payloads=true`)).status).toBe(204);
  const note = noteOf();
  running.open();
  await ended(gateway, id);
  await until(async () => noteOf() === null);
  if (!note) throw new Error("there was no note");
  return note;
}

async function restartWith(edit: (file: Database) => void): Promise<void> {
  await gateway.stop();
  const file = new Database(databasePath(directory.path));
  edit(file);
  file.close();
  gateway = await start();
  await until(async () => noteOf() === null);
}

const outputOf = async (id: string) => (await gateway.call("GET", `/v1/tasks/${id}`)).body.output;
const insert = (file: Database, { key, value, seal }: Note) =>
  file.query("INSERT INTO meta (key, value, seal) VALUES (?, ?, ?)").run(key, value, seal);

test("a restored note erases no quotes of a document that was added again with the same id", async () => {
  const { body } = await gateway.call("POST", "/v1/vault/documents", { body: { ...TEXT, text: "alpha" } });
  const note = await deletion(body.id);
  await gateway.call("POST", "/v1/vault/documents", { body: { ...TEXT, id: body.id, text: "gamma" } });
  const later = await quote("gamma");
  expect(later.output).toBe("gamma");
  await restartWith((file) => insert(file, note));
  expect(await outputOf(later.id)).toBe("gamma");
  expect((await ledger(gateway)).filter(({ action }) => action === "payload.erase")).toHaveLength(1);
});

test("of an earlier version, it erases what is older than the deletion that its request made", async () => {
  const { body } = await gateway.call("POST", "/v1/vault/documents", { body: { ...TEXT, text: "alpha" } });
  const older = await quote("alpha");
  const note = await deletion(body.id);
  expect(await outputOf(older.id)).toBeNull();
  await gateway.call("POST", "/v1/vault/documents", { body: { ...TEXT, id: body.id, text: "gamma" } });
  const later = await quote("gamma");
  const { deletionSeq, ...former } = JSON.parse(note.value) as { deletionSeq: number };
  expect(deletionSeq).toBeGreaterThan(0);
  await restartWith((file) => {
    insert(file, { ...note, value: JSON.stringify(former) });
    reseal(file, directory.path, "meta");
  });
  expect(await outputOf(later.id)).toBe("gamma");
});
