/**
 * The vault's threads: one that dies or hangs harms only its own call, the queue is bounded, and stopping ends
 * everything.
 */
import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { systemClock } from "../../src/base/clock.ts";
import { createIds, systemRandom } from "../../src/base/ids.ts";
import { silentLog } from "../../src/base/log.ts";
import { localNodes } from "../../src/nodes/local-nodes.ts";
import { Forgetting } from "../../src/store/forgetting.ts";
import { openSqlite } from "../../src/store/sqlite/open.ts";
import { openVault } from "../../src/vault/vault.ts";
import { WorkerThreads, type WorkerThreadsOptions } from "../../src/vault/worker-threads.ts";
import { startGateway } from "../support/gateway.ts";
import { tempDir } from "../support/process.ts";
import { SEALS } from "../support/seals.ts";
import { longText, remove, search, write } from "../support/vault.ts";
import { until } from "../tasks/support.ts";

/** A thread that follows the instructions in its job's text. */
const PROGRAM = `
  let setup;
  let jobs = 0;
  self.onmessage = (event) => {
    if (!setup) { setup = event.data; return; }
    const { id, request } = event.data;
    const [what, ms] = request.content.text.split(" ");
    if (what === "throw") throw new Error("a stray error");
    if (what === "exit") process.exit(3);
    if (what === "hang") for (;;);
    if (what === "wait") { const end = performance.now() + Number(ms); while (performance.now() < end); }
    jobs += 1;
    if (what === "count") { self.postMessage({ id, ok: true, answer: jobs }); return; }
    if (what === "fail") self.postMessage({ id, ok: false, failure: { message: "no", field: "/text", isStore: false } });
    else self.postMessage({ id, ok: true, answer: request.content.text });
  };
`;

let directory: ReturnType<typeof tempDir>;
let program: URL;
const workers: WorkerThreads[] = [];

beforeAll(() => {
  directory = tempDir();
  const path = join(directory.path, "thread.ts");
  writeFileSync(path, PROGRAM);
  program = pathToFileURL(path);
});

afterEach(() => {
  for (const worker of workers.splice(0)) void worker.stop();
});

afterAll(() => directory.remove());

function make(options: Partial<WorkerThreadsOptions> = {}): WorkerThreads {
  const setup = { index: null };
  const worker = new WorkerThreads({
    program,
    setup,
    threads: 1,
    cacheBytes: 0,
    timeoutMs: 60_000,
    atOnce: 1,
    waiting: { perWorkspace: 100, total: 100 },
    idleMs: 60_000,
    ...options,
  });
  workers.push(worker);
  return worker;
}

/** The answer, or the error's name and message. */
async function ask(worker: WorkerThreads, text: string): Promise<string> {
  const content = { kind: "text", text, type: "text/plain" } as const;
  try {
    return String(await worker.do("prepare", { document: 1, title: "", content }, { workspaceId: 1 }));
  } catch (error) {
    return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  }
}

test("a thread without a job is ended, and the next job starts another", async () => {
  const busy = make();
  expect([await ask(busy, "count"), await ask(busy, "count")]).toEqual(["1", "2"]);
  const idle = make({ idleMs: 0 });
  await until(async () => {
    // Leaves a moment in which there is no job.
    await new Promise((resolve) => setTimeout(resolve, 1));
    return (await ask(idle, "count")) === "1" && (await ask(idle, "count")) !== "3";
  });
  expect(await ask(idle, "still")).toBe("still");
});

describe("a thread that", () => {
  test.each([
    ["throws", "throw", "Error: a vault worker failed: "],
    ["ends by itself", "exit", "Error: a vault worker failed: "],
  ])("%s fails its call with an error, and the next one works", async (_, text, message) => {
    const worker = make();
    const asked = [ask(worker, "one"), ask(worker, text), ask(worker, "two")];
    const [one = "", failed = "", two = ""] = await Promise.all(asked);
    expect([one, two]).toEqual(["one", "two"]);
    expect(failed).toStartWith(message);
    expect(await ask(worker, "three")).toBe("three");
  });

  test("hangs is ended when its time is up, and the jobs after it are done by another", async () => {
    const worker = make({ timeoutMs: 1_500, atOnce: 8 });
    const texts = ["one", "hang", "two", "three"];
    const answers = await Promise.all(texts.map((text) => ask(worker, text)));
    expect(answers).toEqual(["one", "JobOverLimit: took longer than 1.5 seconds", "two", "three"]);
  });

  test("has much to do is not mistaken for one that hangs: each job has its own time", async () => {
    const worker = make({ timeoutMs: 1_500, atOnce: 64 });
    const answers = await Promise.all(Array.from({ length: 10 }, () => ask(worker, "wait 200")));
    expect(answers).toEqual(Array(10).fill("wait 200"));
  });

  test("refuses a job names the field at fault", async () => {
    expect(await ask(make(), "fail")).toBe("JobRefused: no");
  });
});

describe("two threads", () => {
  test("run two jobs at the same time, and the second is started only for a second job", async () => {
    const worker = make({ threads: 2 });
    expect([await ask(worker, "count"), await ask(worker, "count")]).toEqual(["1", "2"]);
    // While the first thread hangs, the other one, which is new, answers everything.
    const hung = ask(worker, "hang");
    expect([await ask(worker, "count"), await ask(worker, "count")]).toEqual(["1", "2"]);
    void worker.stop();
    expect(await hung).toBe("StoreUnavailable: the server is stopping");
  });

  test("of which one dies lose only its job", async () => {
    const worker = make({ threads: 2 });
    const asked = ["throw", "one", "two", "three"].map((text) => ask(worker, text));
    const [failed = "", ...others] = await Promise.all(asked);
    expect(failed).toStartWith("Error: a vault worker failed: ");
    expect(others).toEqual(["one", "two", "three"]);
  });
});

describe("a thread's queue", () => {
  const FULL = "Problem: The server's queue is full. Try again later.";

  test("is bounded; one more job is refused, with the time to try again", async () => {
    const worker = make({ waiting: { perWorkspace: 3, total: 100 } });
    const asked = Array.from({ length: 6 }, (_, n) => ask(worker, `job${n}`));
    expect(await Promise.all(asked)).toEqual(["job0", "job1", "job2", "job3", FULL, FULL]);
    expect(await ask(worker, "later")).toBe("later");
    const problem = await Promise.all(
      Array.from({ length: 6 }, () =>
        worker
          .do(
            "prepare",
            { document: 1, title: "", content: { kind: "text", text: "x", type: "text/plain" } },
            { workspaceId: 1 },
          )
          .catch((error) => error),
      ),
    );
    expect(problem.at(-1)).toMatchObject({
      code: "queue_full",
      status: 429,
      headers: { "Retry-After": "1" },
    });
  });

  test("is refused when the thread is stopped, including its current job; nothing is accepted afterwards", async () => {
    const worker = make({ atOnce: 2 });
    expect(await ask(worker, "ready")).toBe("ready");
    const asked = ["hang", "two", "three", "four"].map((text) => ask(worker, text));
    void worker.stop();
    const closed = "StoreUnavailable: the server is stopping";
    expect(await Promise.all(asked)).toEqual(Array(4).fill(closed));
    expect(await ask(worker, "five")).toBe(closed);
  });
});

describe("the gateway", () => {
  test("ends its threads when it stops, and leaves one file of the store", async () => {
    const dataDir = tempDir();
    const gateway = await startGateway({ isOnFiles: true, dataDir: dataDir.path, log: silentLog });
    const { id } = await write(gateway, { title: "One", text: "a sloop has one mast" });
    for (let n = 0; n < 10; n++) await write(gateway, { title: `${n}`, text: `yawl ${n}` });
    await search(gateway, { query: "mast" });
    await remove(gateway, id);
    await gateway.stop();
    expect(readdirSync(dataDir.path).filter((name) => name.startsWith("gatehouse.db"))).toEqual([
      "gatehouse.db",
    ]);
    dataDir.remove();
  });

  test("answers or refuses work in progress when it stops, and keeps what it had answered", async () => {
    const dataDir = tempDir();
    let gateway = await startGateway({ isOnFiles: true, dataDir: dataDir.path, log: silentLog });
    const writing = Array.from({ length: 30 }, (_, n) =>
      write(gateway, { title: `T${n}`, text: longText(`w${n}`, 20) }).catch((error: Error) => error),
    );
    await writing[0];
    const stopped = gateway.stop();
    const settled = await Promise.all(writing);
    await stopped;
    gateway = await startGateway({ isOnFiles: true, dataDir: dataDir.path, log: silentLog });
    for (const each of settled) {
      if (each instanceof Error) continue;
      expect((await gateway.call("GET", `/v1/vault/documents/${each.id}`)).status).toBe(200);
    }
    await gateway.stop();
    expect(readdirSync(dataDir.path).filter((name) => name.startsWith("gatehouse.db"))).toEqual([
      "gatehouse.db",
    ]);
    dataDir.remove();
  });
});

test("the characters of all documents in progress are bounded, and one workspace leaves room for others", async () => {
  const dataDir = tempDir();
  const path = join(dataDir.path, "gatehouse.db");
  const db = openSqlite(path, { seals: SEALS });
  const nodes = localNodes("node", systemClock);
  const vault = await openVault({
    db,
    nodes,
    clock: systemClock,
    ids: createIds(systemClock, systemRandom),
    log: silentLog,
    random: systemRandom,
    forgetting: new Forgetting({ files: db, clock: systemClock, log: silentLog }),
    index: { engine: "sqlite", database: path, extension: null },
    program: new URL("../../src/vault/worker.ts", import.meta.url),
    main: new URL("../../src/main.ts", import.meta.url),
    reading: { readers: 2, mostMs: 120_000, memoryBytes: 1_073_741_824 },
    embedder: null,
    formerEmbedder: async () => null,
  });
  const large = "x".repeat(100_000_000);
  /** Writes a document of an unreadable type, which ends soon, and returns the problem. */
  const send = (text: string, workspaceId = 1) =>
    vault
      .write(
        {
          workspaceId,
          boundary: ["/"],
          id: undefined,
          title: "Large",
          scope: "shelf",
          sourceUri: null,
          metadata: {},
          content: { kind: "text", text, type: "application/unknown" },
          createdBy: "tests",
        },
        (work) => db.tx(1, (tx) => work(tx, ["/"])),
        () => {},
      )
      .catch((error) => error);
  const answers = await Promise.all([send(large), send("short"), send(large, 2), send("short", 2)]);
  const refused = ["validation_failed", "queue_full", "queue_full", "validation_failed"];
  expect(answers.map(({ code }) => code)).toEqual(refused);
  expect(answers[1]).toMatchObject({ status: 429, headers: { "Retry-After": "1" } });
  expect((await send(`${large}${large}`)).code).toBe("validation_failed");
  await vault.stop();
  await nodes.close();
  await db.close();
  dataDir.remove();
});
