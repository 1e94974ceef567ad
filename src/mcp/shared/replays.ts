import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { BusMessage } from "../../nodes/bus.ts";
import type { Nodes } from "../../nodes/nodes.ts";
import { type Db, StoreUnavailable } from "../../store/db.ts";
import { rpcResponse, streamComplete } from "../reply.ts";
import { RPC } from "../rpc-error.ts";
import { isComplete, type McpSession } from "../session.ts";
import {
  answerReplay,
  countParts,
  deleteReplay,
  endReplay,
  insertPart,
  insertReplay,
  type Replay,
  type ReplayState,
  replayState,
  takeParts,
} from "./replay-rows.ts";

/** How long a node waits for an answer from the node that has the events, which may have died. */
const ANSWER_MS = 5_000;
/** How often rows are checked, in case a message about them was lost. */
const LOOK_MS = 1_000;
const KEEP_ALIVE_MS = 10_000;
/** A reader that has taken nothing for this long gets no more. Its client may resume again. */
const STUCK_MS = 60_000;
/** The maximum number of parts that wait for their reader. Each has at most one event. */
const MOST_PARTS = 16;

const REPLAY = "mcp.replay";
/** To the reader: there is something new. */
const SENT = "mcp.replay_sent";
/** To the sender: parts were read, or the reader has left. */
const READ = "mcp.replay_read";

const KEEP_ALIVE = new TextEncoder().encode(": keep-alive\n\n");
const COMMENT = ":".charCodeAt(0);

type ReplayKey = Pick<Replay, "id" | "workspaceId">;

export interface ReplayParts {
  readonly db: Db;
  readonly nodes: Pick<Nodes, "id" | "bus" | "beat" | "list">;
  readonly clock: Clock;
  readonly log: Log;
  /** Begins the ids of this node's events. */
  readonly eventPrefix: string;
  /** The session with this hash, if this node serves it. */
  served(hash: string): McpSession | undefined;
}

/**
 * Streams that a client resumes on another node than the one that has its events. Events stay in memory, so that a call
 * costs nothing. If they are needed elsewhere, the node that has them writes them as rows, which the other one reads and
 * deletes. The rows belong to both nodes, and end with either of them.
 */
export class Replays {
  readonly #parts: ReplayParts;
  /** What is called with messages about a replay. */
  readonly #waiting = new Map<string, () => void>();
  /** Rows that could not be deleted while the store was away. */
  #leftOver: ReplayKey[] = [];
  readonly #ends: (() => void)[];
  readonly #stopping = new AbortController();

  constructor(parts: ReplayParts) {
    this.#parts = parts;
    const { bus, beat } = parts.nodes;
    const wake = ({ replay }: BusMessage) => this.#waiting.get(String(replay))?.();
    this.#ends = [
      bus.listen(REPLAY, (message) => this.#take(message)),
      bus.listen(SENT, wake),
      bus.listen(READ, wake),
      beat.listen(() => void this.#deleteLeftOver()),
    ];
  }

  stop(): void {
    this.#stopping.abort();
    for (const end of this.#ends) end();
    for (const wake of this.#waiting.values()) wake();
  }

  /** Resumes a stream after an event of another node. @throws StoreUnavailable */
  async read(workspaceId: number, session: string, event: string): Promise<Response> {
    const { db, nodes, clock } = this.#parts;
    if ((await nodes.list()).every(({ id }) => id === nodes.id)) return unknownEvent();
    const key: ReplayKey = { id: crypto.randomUUID(), workspaceId };
    await insertReplay(db, { ...key, reader: nodes.id });
    const news = new News(clock);
    this.#waiting.set(key.id, news.note);
    nodes.bus.send(REPLAY, { replay: key.id, workspace: workspaceId, session, event }, { isUrgent: true });
    const giveUpAt = clock.monotonic() + ANSWER_MS;
    let state: ReplayState | undefined;
    try {
      do {
        await news.wait();
        state = await replayState(db, key);
      } while (state?.status === null && clock.monotonic() < giveUpAt && !this.#stopping.signal.aborted);
    } finally {
      if (state?.status !== 200) {
        this.#waiting.delete(key.id);
        await this.#delete(key);
      }
    }
    if (state?.status === 200) return this.#streamOf(key, news);
    if (state?.status === 405) return streamComplete();
    if (state?.status === 409) return rpcResponse(409, RPC.server, "The stream is still connected.");
    return unknownEvent();
  }

  /** The frames of a replay. Ends when the sender has ended it or is gone. */
  async *#read(key: ReplayKey, news: News, left: AbortSignal): AsyncGenerator<Uint8Array> {
    const { db, nodes, clock } = this.#parts;
    let sentAt = clock.monotonic();
    try {
      while (!this.#stopping.signal.aborted && !left.aborted) {
        const state = await replayState(db, key);
        const parts = state ? await db.tx(null, (tx) => takeParts(tx, key, MOST_PARTS)) : [];
        if (parts.length > 0) nodes.bus.send(READ, { replay: key.id });
        else if (!state || state.ended) return;
        for (const part of parts) yield part;
        if (parts.length > 0) {
          sentAt = clock.monotonic();
          continue;
        }
        await news.wait();
        if (clock.monotonic() - sentAt < KEEP_ALIVE_MS) continue;
        sentAt = clock.monotonic();
        yield KEEP_ALIVE;
      }
    } finally {
      this.#waiting.delete(key.id);
      await this.#delete(key);
      nodes.bus.send(READ, { replay: key.id });
    }
  }

  #take({ replay: id, workspace: workspaceId, session, event }: BusMessage): void {
    if (typeof id !== "string" || typeof workspaceId !== "number") return;
    if (typeof event !== "string" || !event.startsWith(this.#parts.eventPrefix)) return;
    const served = this.#parts.served(String(session));
    this.#send({ id, workspaceId }, served, event).catch((error: unknown) => {
      this.#parts.log.warn("a stream of MCP could not be resumed on another node", { error });
    });
  }

  async #send(key: ReplayKey, session: McpSession | undefined, event: string): Promise<void> {
    const { db, nodes } = this.#parts;
    const response = await resume(session, event);
    const isAwaited = await answerReplay(db, key, nodes.id, response.status);
    nodes.bus.send(SENT, { replay: key.id }, { isUrgent: true });
    const reader = response.body?.getReader();
    if (!session || response.status !== 200 || !isAwaited || !reader) {
      await reader?.cancel();
      return;
    }
    session.streams += 1;
    // A reader that has left is noticed at once if a message says so, and otherwise with the next keep-alive.
    this.#waiting.set(key.id, () => void this.#stopIfLeft(key, reader));
    try {
      let seq = 0;
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        const isAlive =
          next.value[0] === COMMENT
            ? (await replayState(db, key)) !== undefined
            : await insertPart(db, key, seq++, next.value);
        if (!isAlive) break;
        nodes.bus.send(SENT, { replay: key.id }, { isUrgent: true });
        if (!(await this.#hasRoom(key))) break;
      }
      await endReplay(db, key);
      nodes.bus.send(SENT, { replay: key.id }, { isUrgent: true });
    } finally {
      this.#waiting.delete(key.id);
      session.streams -= 1;
      session.lastSeenAt = this.#parts.clock.monotonic();
      await reader.cancel();
    }
  }

  async #stopIfLeft(key: ReplayKey, reader: { cancel(): Promise<void> }): Promise<void> {
    try {
      if ((await replayState(this.#parts.db, key)) === undefined) await reader.cancel();
    } catch (error) {
      this.#parts.log.debug("whether a stream is still read is unknown", { error });
    }
  }

  /** Waits until parts have been read. Returns false if that takes too long, or this node stops. */
  async #hasRoom(key: ReplayKey): Promise<boolean> {
    const { db, clock } = this.#parts;
    const giveUpAt = clock.monotonic() + STUCK_MS;
    while ((await countParts(db, key)) >= MOST_PARTS) {
      if (this.#stopping.signal.aborted || clock.monotonic() >= giveUpAt) return false;
      await this.#pause();
    }
    return true;
  }

  /** If the store is away now, the rows are deleted with a later beat. */
  async #delete(key: ReplayKey): Promise<void> {
    try {
      await deleteReplay(this.#parts.db, key);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      this.#leftOver.push(key);
    }
  }

  async #deleteLeftOver(): Promise<void> {
    for (const key of this.#leftOver.splice(0)) await this.#delete(key);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => void this.#parts.clock.after(LOOK_MS / 4, resolve));
  }

  #streamOf(key: ReplayKey, news: News): Response {
    const left = new AbortController();
    const frames = this.#read(key, news, left.signal);
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        const next = await frames.next();
        if (next.done) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        left.abort();
        news.note();
        await frames.return(undefined);
      },
    });
    const headers = { "content-type": "text/event-stream", "cache-control": "no-cache, no-transform" };
    return new Response(body, { headers });
  }
}

/** Whether there may be something new. A message that arrives while nobody waits is not forgotten. */
class News {
  readonly #clock: Clock;
  #isDue = false;
  #wake: (() => void) | null = null;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  readonly note = (): void => {
    this.#isDue = true;
    this.#wake?.();
  };

  /** Resolves with the next message, and after a while without one. */
  async wait(): Promise<void> {
    if (!this.#isDue) {
      const waited = Promise.withResolvers<void>();
      this.#wake = waited.resolve;
      const cancel = this.#clock.after(LOOK_MS, waited.resolve);
      await waited.promise;
      cancel();
      this.#wake = null;
    }
    this.#isDue = false;
  }
}

/** Resumes a stream of a session that this node serves. */
async function resume(session: McpSession | undefined, event: string): Promise<Response> {
  if (session?.by.kind !== "streamable") return new Response(null, { status: 400 });
  if (isComplete(session, event)) return streamComplete();
  const headers = { accept: "text/event-stream", "mcp-session-id": session.id, "last-event-id": event };
  return session.by.transport.handleRequest(new Request("http://localhost/", { headers }));
}

function unknownEvent(): Response {
  return rpcResponse(400, RPC.server, "The event is no longer available.");
}
