/** Several reading processes: no workspace ever takes all of them, and an abandoned one affects nobody else. */
import { afterEach, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { JobOverLimit } from "../../../src/reading/job-errors.ts";
import { DocumentReaders, type DocumentReadersOptions } from "../../../src/vault/reading/document-readers.ts";
import { until } from "../../tasks/support.ts";
import { bytesRequest, command, endlessPdf, PDF, textRequest } from "./support.ts";

const pools: DocumentReaders[] = [];
const folders: string[] = [];

function open(options: Partial<DocumentReadersOptions> = {}): DocumentReaders {
  const readers = new DocumentReaders({
    command: command(),
    most: 2,
    timeFor: () => 300_000,
    waiting: { perWorkspace: 8, total: 100 },
    idleMs: 60_000,
    failed: () => {},
    ...options,
  });
  pools.push(readers);
  return readers;
}

afterEach(async () => {
  await Promise.all(pools.splice(0).map((readers) => readers.stop()));
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
});

const endless = () => bytesRequest(endlessPdf(), PDF);
const short = textRequest("a,b\n1,2");

test("a workspace whose documents never end leaves a reader for the others", async () => {
  const readers = open();
  const settled: string[] = [];
  const hung = Array.from({ length: 4 }, () => readers.do(endless(), { workspaceId: 1 }));
  for (const each of hung) each.catch(() => settled.push("hung"));
  for (let n = 0; n < 5; n++) {
    expect((await readers.do(short, { workspaceId: 2 })).characters).toBe(10);
  }
  expect(settled).toEqual([]);
});

test("with one reader, workspaces take turns, however many documents one has waiting", async () => {
  const readers = open({ most: 1 });
  const order: string[] = [];
  const send = (name: string, workspaceId: number) =>
    readers.do(short, { workspaceId }).then(() => order.push(name));
  const all = [...["a1", "a2", "a3", "a4"].map((name) => send(name, 1)), send("b1", 2), send("c1", 3)];
  await Promise.all(all);
  // The first document had begun when the others arrived.
  expect(order).toEqual(["a1", "a2", "b1", "c1", "a3", "a4"]);
});

test("a document that uses all its time is abandoned, and those after it are read by another process", async () => {
  const failures: number[] = [];
  const readers = open({
    most: 1,
    timeFor: ({ content }) => (content.kind === "base64" ? 500 : 300_000),
    failed: (workspaceId) => failures.push(workspaceId),
  });
  const asked = [endless(), short, endless(), short].map((request, n) =>
    readers.do(request, { workspaceId: n }).then(
      ({ characters }) => characters,
      (error) => String(error),
    ),
  );
  const late = "JobOverLimit: took longer than 0.5 seconds";
  expect(await Promise.all(asked)).toEqual([late, 10, late, 10]);
  expect(failures).toEqual([0, 2]);
});

test("documents beyond the queue's limit are refused, but not other workspaces' documents", async () => {
  const readers = open({ most: 1 });
  const send = (workspaceId: number) =>
    readers.do(endless(), { workspaceId }).then(
      () => "read",
      (error) => error.code ?? error.name,
    );
  const own = Array.from({ length: 10 }, () => send(1));
  expect(await own[9]).toBe("queue_full");
  const other = send(2);
  await readers.stop();
  expect(await Promise.all([...own, other])).toEqual([
    ...Array(9).fill("StoreUnavailable"),
    "queue_full",
    "StoreUnavailable",
  ]);
});

/**
 * A pool whose processes write their pid before they read.
 * @returns the pool, with the pids so far in the order of their starts
 */
function openListed(options: Partial<DocumentReadersOptions> = {}) {
  const folder = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  folders.push(folder);
  const list = join(folder, "pids");
  const script = 'list=$1; shift; echo $$ >> "$list"; exec "$@"';
  const readers = open({ command: ["/bin/sh", "-c", script, "sh", list, ...command()], ...options });
  return { readers, pids: () => readFileSync(list, "utf8").trim().split("\n").map(Number) };
}

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

test("an idle process is ended after a while, and the next document starts another", async () => {
  const { readers, pids } = openListed({ idleMs: 0 });
  for (let n = 1; n <= 3; n++) {
    expect((await readers.do(short, { workspaceId: 1 })).characters).toBe(10);
    await until(() => !pids().some(isRunning));
    expect(new Set(pids()).size).toBe(n);
  }
});

test("a process that has read a document reads the next one", async () => {
  const { readers, pids } = openListed();
  for (let n = 0; n < 3; n++) await readers.do(short, { workspaceId: 1 });
  expect(pids()).toHaveLength(1);
});

test("a document is read by another process if an idle one was killed before it", async () => {
  const { readers, pids } = openListed();
  await readers.do(short, { workspaceId: 1 });
  const [idle = 0] = pids();
  process.kill(idle, "SIGKILL");
  // At once, while nothing here has noticed the kill yet.
  expect((await readers.do(short, { workspaceId: 1 })).characters).toBe(10);
  expect(pids()).toHaveLength(2);
});

test("a document is retried only once", async () => {
  const { readers, pids } = openListed({ most: 1 });
  await readers.do(short, { workspaceId: 1 });
  const reading = readers.do(endless(), { workspaceId: 1 }).catch(String);
  process.kill(pids()[0] ?? 0, "SIGKILL");
  await until(() => pids().length === 2);
  process.kill(pids()[1] ?? 0, "SIGKILL");
  expect(await reading).toMatch(
    /^(?:JobOverLimit: ends the process|ReaderFailed: a reading process did not start)/,
  );
  expect(pids()).toHaveLength(2);
});

test("workspaces whose documents were abandoned delay each other, and leave a reader to all others", async () => {
  let allowed = 200;
  const readers = open({ timeFor: () => allowed });
  for (const workspaceId of [1, 2, 3]) {
    const given = readers.do(endless(), { workspaceId }).catch((error: unknown) => error);
    expect(await given).toBeInstanceOf(JobOverLimit);
  }
  allowed = 300_000;
  const ended: number[] = [];
  for (const workspaceId of [1, 2, 3, 1, 2, 3]) {
    // These end when the pool does.
    void readers.do(endless(), { workspaceId }).catch(() => ended.push(workspaceId));
  }
  expect((await readers.do(short, { workspaceId: 4 })).characters).toBe(10);
  expect(ended).toEqual([]);
});
