import { join } from "node:path";
import { readFile, seeded } from "../../test/faults/support.ts";
import type { ReadEvent } from "../../test/support/events.ts";
import { keepDocuments } from "./actors/archiving.ts";
import { decide } from "./actors/deciding.ts";
import { dispatchTasks } from "./actors/dispatching.ts";
import { callOverMcp } from "./actors/mcp-client.ts";
import { readStreams } from "./actors/reading.ts";
import { resumeAgent, stopAndResume } from "./actors/stopping.ts";
import { type Fault, Faults } from "./faults.ts";
import type { Life } from "./life.ts";
import { KilledServer } from "./server.ts";
import { startUpstreams } from "./upstreams.ts";
import { furnish, settings, type World } from "./world.ts";

/** Lives are so long at most, most of them much shorter; or so many times what the start took, on a slow machine. */
const LIFE_MS = 1_500;
const LIFE_STARTS = 5;
/** In one of so many rounds it is killed while it starts as well. */
const STARTING = 4;
const ALL_ENDED_MS = 120_000;

export interface SoakRun {
  readonly kills: number;
  readonly seed: number;
  readonly binary: boolean;
  readonly tasksARound: number;
  /** Performance time after which nothing more is killed. */
  readonly until: number;
  /** Told after each kill. */
  progress(kills: number, soFar: Evidence["world"], faults: readonly Fault[]): void;
}

export interface TaskView {
  readonly id: string;
  readonly status: string;
  readonly output: string | null;
  readonly credits_consumed: number;
  readonly error: { readonly code: string } | null;
  readonly tools_called: readonly { readonly status: string; readonly tool: string }[];
}

/** All that is left at the end, as clients and the file itself show it. */
export interface Evidence {
  readonly world: World;
  /** Every task that is there, by its id. */
  readonly tasks: ReadonlyMap<string, TaskView>;
  /** From the first event on, by the task's id. */
  readonly events: ReadonlyMap<string, readonly ReadEvent[]>;
  readonly replays: readonly {
    readonly key: string;
    readonly id: string;
    readonly replayed: string | null;
  }[];
  /** Texts of the documents, null where there is none, by id. */
  readonly documents: ReadonlyMap<string, string | null>;
  readonly creditsThisMonth: number;
  readonly file: ReturnType<typeof readFile>;
  /** Of the data directory after the last, orderly end, by name. */
  readonly sizes: ReadonlyMap<string, number>;
  readonly kills: number;
  readonly startTimes: readonly number[];
  /** Bytes of the log of SQLite, at most, after a kill. */
  readonly greatestLog: number;
  readonly server: KilledServer;
}

/** Works with a server and kills it, so many times; then lets it end all that it has begun, and gathers what is left. */
export async function soak({
  kills,
  seed,
  binary,
  tasksARound,
  until,
  progress,
}: SoakRun): Promise<Evidence> {
  const random = seeded(seed);
  const faults = new Faults();
  const upstreams = startUpstreams(seeded(seed + 1));
  using server = await KilledServer.prepare(binary, (checkpoints) => settings(upstreams, checkpoints));
  const working = new Set<Promise<void>>();
  const dropped = (what: string) => faults.add("answers", what);
  let life = await server.start(dropped);
  const world: World = {
    ...{ random, faults, upstreams, asked: [], ownCalls: [], documents: [], decided: new Map() },
    ...(await furnish(life, upstreams)),
    inLife(work) {
      const tracked = work.finally(() => working.delete(tracked));
      working.add(tracked);
    },
  };
  let done = 0;
  let greatestLog = 0;
  const killed = async (): Promise<void> => {
    done++;
    faults.round = done;
    const problem = await server.verify();
    if (problem !== null) faults.add("ledger", problem);
    greatestLog = Math.max(greatestLog, server.sizes().get("gatehouse.db-wal") ?? 0);
    progress(done, world, faults.found);
  };
  while (done < kills && performance.now() < until) {
    live(world, life, tasksARound);
    const longest = Math.max(LIFE_MS, LIFE_STARTS * (server.startTimes.at(-1) ?? 0));
    await Bun.sleep(20 + random() ** 1.5 * longest);
    await server.kill();
    await Promise.all(working);
    await killed();
    if (done < kills && random() * STARTING < 1) {
      await server.killWhileStarting(random() * Math.min(...server.startTimes) * 1.2);
      await killed();
    }
    life = await server.start(dropped);
  }
  faults.round = null;
  const left = await finish(world, life);
  const code = await server.stop();
  await Promise.all(working);
  // Before anybody else opens the database: who only reads it makes files as well.
  const sizes = server.sizes();
  if (code !== 0) faults.add("end", `the last server ended with exit code ${code}`);
  const problem = await server.verify();
  if (problem !== null) faults.add("ledger", problem);
  await upstreams.close();
  return {
    ...left,
    world,
    file: readFile(join(server.data, "gatehouse.db")),
    sizes,
    kills: done,
    startTimes: server.startTimes,
    greatestLog,
    server,
  };
}

function live(world: World, life: Life, tasksARound: number): void {
  world.inLife(dispatchTasks(world, life, tasksARound));
  world.inLife(readStreams(world, life));
  world.inLife(decide(world, life));
  world.inLife(keepDocuments(world, life));
  world.inLife(stopAndResume(world, life));
  for (const token of world.clients) world.inLife(callOverMcp(world, life, token));
}

type Left = Pick<Evidence, "tasks" | "events" | "replays" | "documents" | "creditsThisMonth">;

/** With nothing new but what was never answered: every task comes to its end. */
async function finish(world: World, life: Life): Promise<Left> {
  await resumeAgent(life);
  world.inLife(readStreams(world, life));
  world.inLife(decide(world, life));
  await dispatchTasks(world, life, 0);
  const deadline = performance.now() + ALL_ENDED_MS;
  let open = await listed(life, ["queued", "running", "awaiting_approval"]);
  while (open.length > 0 && performance.now() < deadline) {
    await life.pause(250);
    open = await listed(life, ["queued", "running", "awaiting_approval"]);
  }
  for (const { id, status } of open) world.faults.add("tasks", `${id} has not ended: it is ${status}`);
  const tasks = new Map<string, TaskView>();
  const events = new Map<string, ReadEvent[]>();
  for (const { id } of await listed(life, ["succeeded", "failed", "cancelled"])) {
    tasks.set(id, (await life.call("GET", `/v1/tasks/${id}`))?.body as TaskView);
    const own: ReadEvent[] = [];
    await life.follow("GET", `/v1/tasks/${id}/events`, {}, { event: (event) => own.push(event) });
    events.set(id, own);
  }
  const replays = [];
  for (const { plan, body } of world.asked) {
    const again = await life.call("POST", "/v1/tasks", { body, headers: { "idempotency-key": plan.key } });
    const { id } = (again?.body ?? { id: "" }) as { id: string };
    replays.push({ key: plan.key, id, replayed: again?.headers.get("idempotency-replayed") ?? null });
  }
  const documents = new Map<string, string | null>();
  for (const { id } of world.documents) {
    const answer = await life.call("GET", `/v1/vault/documents/${id}`);
    documents.set(id, answer?.status === 200 ? (answer.body as { text: string }).text : null);
  }
  const workspace = (await life.call("GET", "/v1/workspace"))?.body as {
    usage: { credits_this_month: number };
  };
  return { tasks, events, replays, documents, creditsThisMonth: workspace.usage.credits_this_month };
}

async function listed(life: Life, statuses: readonly string[]): Promise<TaskView[]> {
  const found: TaskView[] = [];
  for (const status of statuses) {
    let cursor = "";
    do {
      const answer = await life.call("GET", `/v1/tasks?limit=200&status=${status}${cursor}`);
      if (answer?.status !== 200) throw new Error(`the tasks cannot be listed: ${answer?.status}`);
      const { data, next_cursor } = answer.body as { data: TaskView[]; next_cursor: string | null };
      found.push(...data);
      cursor = next_cursor === null ? "" : `&cursor=${next_cursor}`;
    } while (cursor !== "");
  }
  return found;
}
