import { join } from "node:path";
import { seeded } from "../../test/faults/support.ts";
import type { ReadEvent } from "../../test/support/events.ts";
import { keepDocuments } from "./actors/archiving.ts";
import { decide } from "./actors/deciding.ts";
import { dispatchTasks } from "./actors/dispatching.ts";
import { callOverMcp } from "./actors/mcp-client.ts";
import { allowEnough, raiseAllowance } from "./actors/paying.ts";
import { readStreams } from "./actors/reading.ts";
import { resumeAgent, resumeWorkspace, stopAndResume, stopWorkspaceAndResume } from "./actors/stopping.ts";
import { type OrderlyEnd, readEvidenceFile, readOrderlyEnd } from "./evidence-file.ts";
import { type Fault, Faults } from "./faults.ts";
import type { Life } from "./life.ts";
import { KilledServer, type Lived } from "./server.ts";
import { startUpstreams } from "./upstreams.ts";
import { furnish, settings, type World } from "./world.ts";

/**
 * The greatest length of a life; most are much shorter. On a slow machine it is `LIFE_STARTS` times the duration of
 * the start.
 */
const LIFE_MS = 1_500;
const LIFE_STARTS = 5;
/** In one of this many rounds, the server is also killed while it starts. */
const STARTING = 4;
/** One life in this many ends in an orderly way, by SIGTERM. */
const ORDERLY = 5;
/**
 * One round in this many begins a series of kills that come too soon for most steps to end, so that tasks are hit
 * several times in one step.
 */
const ROW = 8;
const ROW_KILLS = 4;
const ROW_LIFE_MS = 200;
const ALL_ENDED_MS = 120_000;

export interface SoakRun {
  readonly kills: number;
  readonly seed: number;
  readonly binary: boolean;
  readonly tasksARound: number;
  /** `performance.now()` after which nothing more is killed. */
  readonly until: number;
  /** Called with the server before its first start, so that whoever interrupts the soak can end it. */
  readonly prepared?: (server: KilledServer) => void;
  /** Called after each kill. */
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

/** What is left at the end, as seen by clients and in the file itself. */
export interface Seen {
  readonly world: World;
  /** Every existing task, by id. */
  readonly tasks: ReadonlyMap<string, TaskView>;
  /** All events of each task, by the task's id. */
  readonly events: ReadonlyMap<string, readonly ReadEvent[]>;
  readonly replays: readonly {
    readonly key: string;
    readonly id: string;
    readonly replayed: string | null;
  }[];
  /** Each document's text by id; null if the document does not exist. */
  readonly documents: ReadonlyMap<string, string | null>;
  readonly creditsThisMonth: number;
  readonly file: ReturnType<typeof readEvidenceFile>;
}

/** Everything that is left of a single server. */
export interface Evidence extends Seen {
  /** Sizes of the data directory's files after the last, orderly end, by name. */
  readonly sizes: ReadonlyMap<string, number>;
  readonly kills: number;
  /** Every process of the server, in order. */
  readonly lives: readonly Lived[];
  /** The lives that ended by SIGTERM, except the last. */
  readonly orderlyEnds: readonly OrderlyEnd[];
  readonly startTimes: readonly number[];
  /** The greatest size in bytes of SQLite's log after a kill. */
  readonly greatestLog: number;
  readonly server: KilledServer;
}

/**
 * Works with a server and kills it this many times. Then lets it finish everything that it has begun, and collects
 * what is left.
 */
export async function soak({
  kills,
  seed,
  binary,
  tasksARound,
  until,
  prepared,
  progress,
}: SoakRun): Promise<Evidence> {
  const random = seeded(seed);
  const faults = new Faults();
  const upstreams = startUpstreams(seeded(seed + 1));
  using server = await KilledServer.prepare(binary, (checkpoints) => settings(upstreams, checkpoints));
  prepared?.(server);
  const database = join(server.data, "gatehouse.db");
  const working = new Set<Promise<void>>();
  const dropped = (what: string) => faults.add("answers", what);
  let life = await server.start(dropped);
  const world: World = {
    ...{ random, faults, upstreams, asked: [], ownCalls: [], documents: [], decided: new Map() },
    stops: { asked: 0, mayHold: false },
    ...(await furnish(life, upstreams)),
    inLife(work) {
      const tracked = work.finally(() => working.delete(tracked));
      working.add(tracked);
    },
  };
  let done = 0;
  let greatestLog = 0;
  const verify = async (): Promise<void> => {
    const problem = await server.verify();
    if (problem !== null) faults.add("ledger", problem);
  };
  const killed = async (): Promise<void> => {
    done++;
    faults.round = done;
    await verify();
    greatestLog = Math.max(greatestLog, server.sizes().get("gatehouse.db-wal") ?? 0);
    progress(done, world, faults.found);
  };
  const orderlyEnds: OrderlyEnd[] = [];
  const endInOrder = async (): Promise<void> => {
    // Half of the servers get the signal twice, so that work in progress is interrupted.
    const code = await server.stop(random() < 0.5 ? random() * 300 : null);
    await Promise.all(working);
    if (code !== 0) faults.add("end", `after kill ${done} SIGTERM ended it with exit code ${code}`);
    const end = readOrderlyEnd(database);
    orderlyEnds.push(end);
    for (const text of end.faults) faults.add("end", text);
    await verify();
  };
  let soon = 0;
  while (done < kills && performance.now() < until) {
    live(world, life, tasksARound);
    if (soon > 0) soon--;
    else if (random() * ROW < 1) soon = ROW_KILLS;
    const longest = soon > 0 ? ROW_LIFE_MS : Math.max(LIFE_MS, LIFE_STARTS * (server.startTimes.at(-1) ?? 0));
    await Bun.sleep(20 + random() ** 1.5 * longest);
    if (soon === 0 && random() * ORDERLY < 1) await endInOrder();
    else {
      await server.kill();
      await Promise.all(working);
      await killed();
    }
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
  // Before anyone else opens the database, because even a reader creates files.
  const sizes = server.sizes();
  if (code !== 0) faults.add("end", `the last server ended with exit code ${code}`);
  await verify();
  await upstreams.close();
  return {
    ...left,
    world,
    file: readEvidenceFile(database),
    sizes,
    kills: done,
    ...{ lives: server.lives, orderlyEnds },
    startTimes: server.startTimes,
    greatestLog,
    server,
  };
}

/** Lets everybody work until the life ends. */
export function live(world: World, life: Life, tasksARound: number): void {
  world.inLife(dispatchTasks(world, life, tasksARound));
  world.inLife(readStreams(world, life));
  world.inLife(decide(world, life));
  world.inLife(keepDocuments(world, life));
  world.inLife(stopAndResume(world, life));
  world.inLife(stopWorkspaceAndResume(world, life));
  world.inLife(raiseAllowance(world, life));
  for (const token of world.clients) world.inLife(callOverMcp(world, life, token));
}

export type Left = Pick<Seen, "tasks" | "events" | "replays" | "documents" | "creditsThisMonth">;

/** Dispatches nothing new except what was never answered, and waits until every task has ended. */
export async function finish(world: World, life: Life): Promise<Left> {
  await resumeWorkspace(world, life);
  await resumeAgent(life);
  await allowEnough(world, life);
  // From here on nothing starts by itself, so the list of ended tasks will be complete.
  const deleted = await life.call("DELETE", `/v1/schedules/${world.schedule}`);
  if (deleted?.status !== 204) world.faults.add("end", `the schedule cannot be deleted: ${deleted?.status}`);
  world.inLife(readStreams(world, life));
  world.inLife(decide(world, life));
  await dispatchTasks(world, life, 0);
  const deadline = performance.now() + ALL_ENDED_MS;
  let all = await listed(life);
  while (all.some(isOpen) && performance.now() < deadline) {
    await life.pause(250);
    all = await listed(life);
  }
  const open = all.filter(isOpen);
  for (const { id, status } of open) world.faults.add("tasks", `${id} has not ended: it is ${status}`);
  const tasks = new Map<string, TaskView>();
  const events = new Map<string, ReadEvent[]>();
  for (const { id } of all.filter((task) => !isOpen(task))) {
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

/**
 * Lists tasks of every status at once. With one list for each status, a task that moves between them could be missed.
 */
async function listed(life: Life): Promise<TaskView[]> {
  const found: TaskView[] = [];
  let cursor = "";
  do {
    const answer = await life.call("GET", `/v1/tasks?limit=200${cursor}`);
    if (answer?.status !== 200) throw new Error(`the tasks cannot be listed: ${answer?.status}`);
    const { data, next_cursor } = answer.body as { data: TaskView[]; next_cursor: string | null };
    found.push(...data);
    cursor = next_cursor === null ? "" : `&cursor=${next_cursor}`;
  } while (cursor !== "");
  return found;
}

function isOpen({ status }: TaskView): boolean {
  return status === "queued" || status === "running" || status === "awaiting_approval";
}
