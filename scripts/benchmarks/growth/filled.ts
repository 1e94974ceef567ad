import { statSync } from "node:fs";
import Type from "typebox";
import { validator } from "../../../src/base/schema.ts";
import { databasePath } from "../../../src/store/directory.ts";
import { requestText } from "../load/request.ts";
import type { Gatehouse } from "../processes/gatehouse.ts";
import { createAgent, settings } from "../setup.ts";
import { ingest, VaultClient } from "../vault/client.ts";
import { Passages } from "../vault/passages.ts";
import type { Workshop } from "../workshop.ts";
import { done, written } from "./jobs.ts";
import {
  agentName,
  DOCUMENTS_PER_AGENT,
  ENTRIES_PER_TASK,
  type HistorySize,
  scopeOf,
  sizeText,
} from "./size.ts";

/** A data directory with a history that ends now. */
export interface FilledHistory {
  readonly size: HistorySize;
  readonly dataDir: string;
  /** Bytes of its database before and after the documents were added. */
  readonly bytes: { readonly filled: number; readonly withDocuments: number };
  /** Some of its tasks, oldest first. */
  readonly tasks: readonly string[];
  /** Searches by an agent, within its own scope. */
  readonly searches: readonly string[];
}

/** Tasks that one request to the worker writes, so that none takes longer than it may. */
const SLICE = 5_000;
/** Tasks that are remembered, to be read again. */
const SAMPLES = 200;
const ENTRIES_OF_RUN = 4;
const TASK_MS = 500;
const QUERIES = 200;

const issued = validator(Type.Object({ secret: Type.String() }));

/** Fills a data directory, and adds its documents and the settings of the measured server. */
export async function fillHistory(
  workshop: Workshop,
  size: HistorySize,
  upstream: number,
): Promise<FilledHistory> {
  const dataDir = workshop.folder();
  const tasks = await fill(workshop, dataDir, size, Date.now() - size.tasks * TASK_MS);
  const filled = sizeOf(dataDir);
  const gatehouse = await workshop.gatehouse({ dataDir, yaml: settings({ upstream }) });
  const searches = await prepare(gatehouse, size, Passages.of(workshop.collections));
  await gatehouse.stop();
  return { size, dataDir, bytes: { filled, withDocuments: sizeOf(dataDir) }, tasks, searches };
}

/** Bytes of the database of a directory that is not open. */
export function sizeOf(dataDir: string): number {
  return statSync(databasePath(dataDir)).size;
}

/** Fills an empty folder. @returns ids of some of the tasks, oldest first */
export async function fill(
  workshop: Workshop,
  dataDir: string,
  { entries, tasks, agents }: HistorySize,
  startsAt: number,
): Promise<string[]> {
  const begun = performance.now();
  const worker = workshop.worker("growth/worker.ts");
  await worker.ask({ kind: "open", dataDir, agents, startsAt }, done);
  const slice = Math.max(1, Math.min(SLICE, Math.ceil(tasks / SAMPLES)));
  const ids: string[] = [];
  const others = ENTRIES_PER_TASK - ENTRIES_OF_RUN;
  for (let left = tasks; left > 0; left -= slice) {
    const count = Math.min(slice, left);
    const { task } = await worker.ask({ kind: "write", tasks: count, others: count * others }, written);
    if (task !== null) ids.push(task);
  }
  if (tasks === 0) await worker.ask({ kind: "write", tasks: 0, others: entries }, written);
  await worker.ask({ kind: "close" }, done);
  await worker.end();
  const seconds = ((performance.now() - begun) / 1_000).toFixed(1);
  console.error(`  ${sizeText({ entries, tasks })} were written in ${seconds} s`);
  return ids;
}

/** @returns the searches */
async function prepare(
  gatehouse: Gatehouse,
  { documents }: HistorySize,
  passages: Passages,
): Promise<string[]> {
  await createAgent(gatehouse);
  // The budget is never spent, but it is checked before each call.
  await gatehouse.call(200, "PATCH", "/v1/workspace", { budget: { credits_per_month: 1_000_000_000 } });
  await ingest(new VaultClient(gatehouse.port, gatehouse.admin), documents, (index) => ({
    ...passages.passage(index),
    scope: scopeOf(Math.floor(index / DOCUMENTS_PER_AGENT)),
  }));
  const token = { name: "searcher", agent: agentName(0), scopes: ["vault:read"] };
  const { secret } = issued.parse(await gatehouse.call(201, "POST", "/v1/tokens", token));
  return Array.from({ length: QUERIES }, (_, index) =>
    requestText("POST", "/v1/vault/search", {
      token: secret,
      body: { query: passages.query(index), top_k: 10 },
    }),
  );
}
