import { Database } from "bun:sqlite";
import type { Row } from "../ledger/support.ts";
import type { FakeModel } from "../support/fake-model.ts";

/** A pseudo-random generator with a fixed seed (mulberry32). */
export function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export const WORDS = ["one ", "two ", "three ", "four ", "five ", "six ", "seven ", "eight."];

/** Models slow enough to be killed midway: one that talks, and one that calls a tool first. */
export function scriptSlowModels(fake: FakeModel): void {
  const talk = { chunks: WORDS, delayMs: 40 };
  fake.script("talks", talk);
  fake.script("calls", ({ body }) => {
    const last = body.messages.at(-1);
    const tool = (body.tools as { function: { name: string } }[] | undefined)?.[0]?.function.name ?? "";
    return last?.role === "tool" ? talk : { toolCalls: [{ name: tool, arguments: {} }] };
  });
}

export const settings = (fake: FakeModel) => `
providers: { fake: { kind: openai-compatible, base_url: "${fake.url}" } }
models: { fake/talks: { input: 1, output: 1 } }
tiers:
  1: { models: [fake/talks] }
  2: { models: [fake/calls] }
`;

export interface Entry {
  readonly seq: number;
  readonly phase: "single" | "intent" | "outcome";
  readonly ref?: number;
  readonly action: string;
  readonly outcome: string;
  readonly task?: string;
  readonly code?: string;
  readonly channel?: string;
  readonly tool?: string;
  readonly agent?: string;
  /** In millionths. */
  readonly credits?: number;
  readonly detail?: Readonly<Record<string, unknown>>;
}

/** Reads the database file of a server that has ended, with no code of the program. */
export function readFile(path: string) {
  const database = new Database(path, { readonly: true });
  const integrity = database.query("PRAGMA integrity_check").all();
  const foreignKeys = database.query("PRAGMA foreign_key_check").all();
  const rows = database.query<Row, []>("SELECT * FROM ledger ORDER BY workspace_id, seq").all();
  const tasks = database
    .query<{ id: string; status: string; finished_at: number | null; agent: string; credits: number }, []>(
      "SELECT * FROM tasks",
    )
    .all();
  /** What was sent to tools, models and people, by the entry's seq. */
  const inputs = new Map(
    database
      .query<{ seq: number; body: string }, []>("SELECT seq, body FROM payloads WHERE kind = 'input'")
      .all()
      .map(({ seq, body }) => [seq, body]),
  );
  /** In millionths, by the agent's id and day. */
  const spending = database
    .query<{ agent_id: number; day: string; credits: number }, []>("SELECT * FROM spending")
    .all();
  const keys = database.query<{ key: string; task_id: string }, []>("SELECT * FROM idempotency_keys").all();
  database.close();
  const entries = rows.map((row) => JSON.parse(row.bytes) as Entry);
  return { integrity, foreignKeys, rows, entries, tasks, keys, inputs, spending };
}

/** Intents that do not have exactly one outcome, with the number of outcomes. */
export function unsettled(entries: readonly Entry[]): string[] {
  const outcomes = Map.groupBy(
    entries.filter((entry) => entry.phase === "outcome"),
    (entry) => entry.ref,
  );
  return entries
    .filter((entry) => entry.phase === "intent")
    .filter((entry) => outcomes.get(entry.seq)?.length !== 1)
    .map(
      (entry) =>
        `${entry.seq} ${entry.action} of ${entry.task}: ${outcomes.get(entry.seq)?.length ?? 0} outcomes`,
    );
}
