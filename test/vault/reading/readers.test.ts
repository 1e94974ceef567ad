/** Several processes that read: a workspace never takes all of them, and one that is given up harms nobody else. */
import { afterEach, expect, test } from "bun:test";
import { DocumentReaders, type DocumentReadersOptions } from "../../../src/vault/reading/readers.ts";
import { gate } from "../../tasks/support.ts";
import { bytesRequest, command, endlessPdf, PDF, textRequest } from "./support.ts";

const pools: DocumentReaders[] = [];

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
});

const endless = () => bytesRequest(endlessPdf(), PDF);
const short = textRequest("a,b\n1,2");

test("a workspace whose documents never end leaves a reader to the others", async () => {
  const readers = open();
  const settled: string[] = [];
  const hung = Array.from({ length: 4 }, () => readers.prepare(endless(), { workspaceId: 1 }));
  for (const each of hung) each.catch(() => settled.push("hung"));
  for (let n = 0; n < 5; n++) {
    expect((await readers.prepare(short, { workspaceId: 2 })).characters).toBe(10);
  }
  expect(settled).toEqual([]);
});

test("with one reader workspaces take turns, however many documents one has waiting", async () => {
  const readers = open({ most: 1 });
  const order: string[] = [];
  const send = (name: string, workspaceId: number) =>
    readers.prepare(short, { workspaceId }).then(() => order.push(name));
  const all = [...["a1", "a2", "a3", "a4"].map((name) => send(name, 1)), send("b1", 2), send("c1", 3)];
  await Promise.all(all);
  // The first one had begun when the others came.
  expect(order).toEqual(["a1", "a2", "b1", "c1", "a3", "a4"]);
});

test("a document that takes all of its time is given up, and those behind it are read by another process", async () => {
  const failures: number[] = [];
  const readers = open({
    most: 1,
    timeFor: ({ content }) => (content.kind === "base64" ? 500 : 300_000),
    failed: (workspaceId) => failures.push(workspaceId),
  });
  const asked = [endless(), short, endless(), short].map((request, n) =>
    readers.prepare(request, { workspaceId: n }).then(
      ({ characters }) => characters,
      (error) => String(error),
    ),
  );
  const late = "JobOverLimit: took longer than 0.5 seconds";
  expect(await Promise.all(asked)).toEqual([late, 10, late, 10]);
  expect(failures).toEqual([0, 2]);
});

test("what is over the number that may wait is refused, and other workspaces' documents are not", async () => {
  const readers = open({ most: 1 });
  const send = (workspaceId: number) =>
    readers.prepare(endless(), { workspaceId }).then(
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

test("a process without a document is ended after a while, and the next document starts another", async () => {
  const readers = open({ idleMs: 0 });
  for (let n = 0; n < 3; n++) {
    expect((await readers.prepare(short, { workspaceId: 1 })).characters).toBe(10);
    const later = gate();
    setTimeout(later.open, 20);
    await later.opened;
  }
});
