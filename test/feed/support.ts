import { silentLog } from "../../src/base/log.ts";
import type { ChannelParts, FeedLookup, Topic } from "../../src/feed/channel.ts";
import type { FeedEvent, FeedEventName } from "../../src/feed/events.ts";
import { FeedHub } from "../../src/feed/hub.ts";
import type { FeedReader } from "../../src/feed/reader.ts";
import type { FeedRights } from "../../src/feed/rights.ts";
import { FakeClock } from "../support/clock.ts";

export const EVERYTHING: FeedRights = { scopes: ["admin"], agent: null, boundary: ["/"], until: Infinity };

export interface Told {
  readonly id: number;
  readonly name: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  readonly data: any;
}

/** A hub on a stopped clock, whose lookups return what `present` contains. */
export interface HubBench {
  readonly hub: FeedHub;
  readonly clock: FakeClock;
  /** Results of lookups, by topic and key. */
  readonly present: Map<string, FeedEvent>;
  /** Every lookup made, as `topic:key`. */
  readonly looked: string[];
  /** Numbers of the usage event; settable. */
  usage: { tasks_running: number; tasks_queued: number; requests_left: number; requests_per_minute: number };
  pending: number;
  /** Lookups fail while this is set. */
  isBroken: boolean;
  /** Advances the clock, and waits until everything that this triggers has ended. */
  pass(ms: number): Promise<void>;
  timers(): number;
}

export function openHub(): HubBench {
  let timers = 0;
  const clock = new (class extends FakeClock {
    override after(ms: number, task: () => void): () => void {
      timers += 1;
      let isOver = false;
      const over = () => {
        if (!isOver) timers -= 1;
        isOver = true;
      };
      const cancel = super.after(ms, () => {
        over();
        task();
      });
      return () => {
        over();
        cancel();
      };
    }
  })();
  const lookup =
    (topic: Topic): FeedLookup =>
    async (_, keys) => {
      if (bench.isBroken) throw new Error("the store cannot be read");
      bench.looked.push(...keys.map((key) => `${topic}:${key}`));
      return keys.flatMap((key) => bench.present.get(`${topic}:${key}`) ?? []);
    };
  const parts: ChannelParts = {
    ...{ clock, log: silentLog },
    lookups: {
      task: lookup("task"),
      approval: lookup("approval"),
      agent: lookup("agent"),
      connector: lookup("connector"),
      workspace: lookup("workspace"),
    },
    usage: () => bench.usage,
    approvalsPending: async () => bench.pending,
  };
  const bench: HubBench = {
    ...{ hub: new FeedHub(parts), clock, present: new Map(), looked: [], pending: 0, isBroken: false },
    usage: { tasks_running: 0, tasks_queued: 0, requests_left: 600, requests_per_minute: 600 },
    async pass(ms) {
      clock.advance(ms);
      await new Promise((resolve) => setImmediate(resolve));
    },
    timers: () => timers,
  };
  return bench;
}

/** Reads that a reader has not answered yet. */
const asked = new WeakMap<FeedReader, ReturnType<FeedReader["next"]>>();

/** A reader's next frames, reusing a pending read; null once it is closed. */
export function next(reader: FeedReader): ReturnType<FeedReader["next"]> {
  const frames = asked.get(reader) ?? reader.next();
  asked.set(reader, frames);
  return frames;
}

/** Everything that a reader can deliver now; empty if nothing is queued. */
export async function read(reader: FeedReader): Promise<Told[]> {
  const told: Told[] = [];
  for (;;) {
    const nothing = new Promise<"nothing">((resolve) => setImmediate(() => resolve("nothing")));
    const frames = await Promise.race([next(reader), nothing]);
    if (frames === "nothing") return told;
    asked.delete(reader);
    if (frames === null) return told;
    for (const frame of frames) told.push(...parse(frame));
  }
}

function parse(bytes: Uint8Array): Told[] {
  const frames = new TextDecoder().decode(bytes).split("\n\n");
  if (frames.pop() !== "") throw new Error("a frame has no end");
  return frames.map((frame) => {
    const [, id, name, data] = /^id: (\d+)\nevent: (\S+)\ndata: (.*)$/.exec(frame) ?? [];
    if (name === undefined || data === undefined) throw new Error(`not a frame: ${JSON.stringify(frame)}`);
    return { id: Number(id), name, data: JSON.parse(data) };
  });
}

/** The names of these events, without the usage event that every reader gets first. */
export function names(told: readonly Told[]): string[] {
  return told.map(({ name }) => name).filter((name) => name !== "usage");
}

const TASK = {
  ...{ agent: "a", tier: 1, model: null, credits_consumed: 0, steps: 0, error: null, created_by: "system" },
  ...{ created_at: "2026-01-01T00:00:00.000Z", started_at: null, finished_at: null },
};

export function task(id: string, status: string, agent = 1): FeedEvent {
  return { name: "task.changed", key: id, agent, data: { ...TASK, id, status } };
}

/** One event of each name, as small as possible. */
export function eventOf(name: FeedEventName, audience: Pick<FeedEvent, "agent" | "path"> = {}): FeedEvent {
  const given = { key: "k", ...audience };
  switch (name) {
    case "task.changed":
      return { name, ...given, data: { ...TASK, id: "t", status: "queued" } };
    case "approval.changed": {
      const data = { task: "t", call_id: "c", agent: "a", tool: "x.y", status: "pending" };
      return { name, ...given, data };
    }
    case "agent.changed":
      return { name, ...given, data: { name: "a", status: "active", version: 1 } };
    case "workspace.changed":
      return { name, ...given, data: { status: "active" } };
    case "connector.changed":
      return { name, ...given, data: { name: "c", status: "ready" } };
    case "model.called": {
      const data = { agent: "a", intent: 1, model: "p/m", dialect: "messages", status: "failed" } as const;
      return { name, ...given, data };
    }
    case "token.changed":
      return { name, ...given, data: {} };
    case "document.changed":
      return { name, ...given, data: { id: "d", scope: audience.path ?? "x", change: "written" } };
    case "usage": {
      const data = { tasks_running: 0, tasks_queued: 0, requests_left: 0, requests_per_minute: 0 };
      return { name, ...given, data };
    }
    case "limit.exceeded":
      return { name, ...given, data: { limit: "requests", enforcement: "soft" } };
    case "budget.spent":
      return { name, ...given, data: { budget: "agent_day", agent: "a", percent: 100 } };
    case "ledger.grown":
      return { name, ...given, data: { size: 1 } };
  }
}
