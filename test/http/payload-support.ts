import { Database } from "bun:sqlite";
import { afterEach, beforeEach } from "bun:test";
import { databasePath } from "../../src/store/directory.ts";
import { FakeClock } from "../support/clock.ts";
import { allEvents } from "../support/events.ts";
import { type Entry, ledger, openEvents, type Stage, startStage } from "../tasks/support.ts";
import { leftovers } from "../vault/files-support.ts";

export let stage: Stage;

export let clock: FakeClock;

export const PROMPT = "whither goes the obnubilated quagga";

export const ASIDE = "Let me look at the verisimilitude.";

export const ARGUMENT = "Antarctica/Troll";

export const ANSWER = "It went to the gossamer vaultling, they say.";

export const TEXTS = { PROMPT, ASIDE, ARGUMENT, ANSWER };

export const TASK = { agent: "scout", prompt: PROMPT, tools: ["time.now"] };

/** Scripts a model that writes a text, asks for the time in a place with a recognisable name, and answers. */
export function script(): void {
  stage.upstream.script("a", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: [ANSWER.slice(0, 10), ANSWER.slice(10)] }
      : { chunks: [ASIDE], toolCalls: [{ name: "time__now", arguments: { time_zone: ARGUMENT } }] },
  );
}

export const erase = (seq: number | string, token?: string) =>
  stage.gateway.call("DELETE", `/v1/ledger/${seq}/payload`, token === undefined ? {} : { token });

export const read = async (id: string) => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body;

export const events = async (id: string) => allEvents(await openEvents(stage.gateway, id));

export const left = (texts: Readonly<Record<string, string>> = TEXTS) =>
  leftovers(stage.gateway.dataDir, texts);

/** A task's entries by their meaning. */
export async function entriesOf(task: string) {
  const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task);
  const seqOf = (action: string, phase: string) =>
    entries.find((entry) => entry.action === action && entry.phase === phase)?.seq ?? 0;
  return {
    dispatch: seqOf("task.dispatch", "intent"),
    finish: seqOf("task.dispatch", "outcome"),
    model: seqOf("model.call", "intent"),
    call: seqOf("tool.call", "intent"),
    result: seqOf("tool.call", "outcome"),
  };
}

export const lastErasure = async (): Promise<Entry | undefined> =>
  (await ledger(stage.gateway)).findLast(({ action }) => action === "payload.erase");

/** The payloads in the file. */
export function payloads(): { seq: number; kind: string }[] {
  const file = new Database(databasePath(stage.gateway.dataDir), { readonly: true });
  try {
    return file.query<{ seq: number; kind: string }, []>("SELECT seq, kind FROM payloads ORDER BY seq").all();
  } finally {
  }
}

/** Starts a gateway for each test of a file. */
export function useStage(): void {
  beforeEach(async () => {
    clock = new FakeClock();
    stage = await startStage({ clock, tiers: { 1: ["a"] } });
    await stage.gateway.agent("scout", { max_steps: 100 });
  });
  afterEach(() => stage.stop());
}
