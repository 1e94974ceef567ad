import type { LinkedToken } from "../access/sign-in-links.ts";
import { DEFAULT_WORKSPACE } from "../access/workspaces.ts";
import { every, within } from "../base/clock.ts";
import { startFetchThread } from "../base/open-files/thread.ts";
import { type Config, publicUrl } from "../config/config.ts";
import type { Doors } from "../doors.ts";
import type { FeedHub } from "../feed/hub.ts";
import { type ConnectionPlan, checkPlan, reportPlan } from "../http/connections/plan.ts";
import { type Listener, listen } from "../http/listen.ts";
import type { Metrics } from "../http/metrics.ts";
import { consoleLink, consoleUrl } from "../http/routes/console-links.ts";
import { failPending } from "../notify/deliveries.ts";
import { removeRestoredNote } from "../store/backup/restored-note.ts";
import type { ReopenReason } from "../store/file-store.ts";
import { removeRuntime, writeRuntime } from "../store/runtime.ts";
import { purgeKeys } from "../tasks/queue/idempotency.ts";
import type { Evidence } from "./evidence.ts";
import type { GateParts } from "./gate.ts";
import type { Platform } from "./platform.ts";
import type { Store } from "./store.ts";
import type { Work } from "./work.ts";

export interface Gateway {
  /** Answers a request as the server would, without listening. For the command line when no server runs. */
  handle(request: Request): Promise<Response>;
  /** A secret that identifies the command line on the same machine; new at each start. */
  readonly operatorSecret: string;
  /** Resumes what an earlier process left unfinished, without listening. For callers of `handle`. */
  work(): Promise<void>;
  /** Starts the work and listens. @returns the URL at which clients reach the server */
  start(): Promise<string>;
  /**
   * An address that signs a browser in as the admin token that this start created, once and within 30 minutes. Null
   * if no token was created, or the server is not listening yet.
   */
  consoleLink(): Promise<string | null>;
  /**
   * Accepts no new work. Resolves when the in-flight calls have ended or `drain_seconds` have passed. Reads, cancels,
   * stops and decisions are still served, and `/readyz` returns 503.
   */
  drain(): Promise<void>;
  /**
   * Stops listening, interrupts running work (a later start resumes it from its last saved step), and releases the
   * data directory. Called again, it returns the same stop.
   * @returns the number of stops, cancels and other decisions that are lost because the store could not be written
   */
  stop(): Promise<{ readonly lostDecisions: number }>;
  /**
   * Resolves once a listening gateway refuses all writes until its store is opened again, since only startup checks the
   * stored data: `stop` this gateway and open another one. A foreign write has been recorded by then.
   */
  readonly mustReopen: Promise<ReopenReason>;
}

/** State that changes while the gateway runs, and that other parts ask for. */
export interface ServerState {
  listener: Listener | null;
  isDraining: boolean;
}

export interface LifecycleParts {
  readonly config: Config;
  readonly platform: Platform;
  readonly store: Store;
  readonly evidence: Evidence;
  readonly gate: GateParts;
  readonly work: Work;
  readonly feed: FeedHub;
  readonly metrics: Metrics;
  readonly doors: Doors;
  readonly plan: ConnectionPlan | null;
  readonly server: ServerState;
  /** The admin token that this start created; null if it created none. */
  readonly createdAdmin: LinkedToken | null;
}

/** Why unfinished work of a backup is not continued: after the backup, the original may have continued it. */
const RESTORED = "It had not ended when the backup was made from which this server was restored.";
const NOT_POSTED = "not posted: the server was restored from a backup";
const HOUSEKEEPING_MS = 5_000;
/** The lease of the node that renews all tokens once too many have ended. */
const RENEWS_TOKENS = "token.renew";

/** Phase 7: start, drain and stop. A stop is a start in reverse: the network first, the store last. */
export function createLifecycle(parts: LifecycleParts): Gateway {
  const { config, platform, store, evidence, feed, metrics, doors, plan, server } = parts;
  const { clock, ids, log } = platform;
  const { db, nodes } = store;
  const { workspaces, ledgers, webhook, histories, watch } = evidence;
  const { tokens, tokenRenewal, sessions, links, usageSlots, refused, late } = parts.gate;
  const { forgetting, embedding, vault, direct, tools, openedTasks, background, runs } = parts.work;
  const { checkpoints } = ledgers;
  const { tasks, events, approvalService, quoted, expiry } = openedTasks;
  const { app, mcp, openCalls, operatorSecret } = doors;
  let endHousekeeping = () => {};
  let stopping: ReturnType<Gateway["stop"]> | null = null;

  async function keepHouse(): Promise<void> {
    const defaultId = workspaces.find(DEFAULT_WORKSPACE)?.id;
    try {
      await tokens.saveLastUsed();
      await sessions.keepHouse();
      if (defaultId !== undefined) await refused.sweep(defaultId);
      await direct.keepHouse();
      await embedding.flushUsage();
      await purgeKeys(db, clock.now());
      await approvalService.expire();
      await usageSlots.keepHouse();
      if (nodes.leases.has(RENEWS_TOKENS)) await tokenRenewal.keepHouse();
      await histories.keepHouse();
    } catch (error) {
      log.warn("housekeeping failed; it will be tried again", { error });
    }
  }

  async function work(): Promise<void> {
    await direct.reportLost();
    await vault.start();
    const { restored } = store;
    const endReason = restored?.unfinished === "end" ? RESTORED : null;
    if (restored && endReason !== null) {
      await runs.skip(Date.parse(restored.restored_at));
      await db.tx(null, async (tx) => {
        for (const { id } of workspaces.list()) failPending(tx, id, NOT_POSTED);
      });
    }
    await tasks.start(endReason);
    await background.start(endReason);
    if (restored) removeRestoredNote(config.dataDir);
    quoted.start();
    webhook?.wake();
  }

  async function start(): Promise<string> {
    if (plan) checkPlan(plan);
    await work();
    await checkpoints.recordRule();
    checkpoints.start();
    watch.start();
    forgetting.start();
    expiry.start();
    runs.start();
    await startFetchThread();
    const listener = listen(app, config.listen, { plan, calls: openCalls, metrics, ids, clock, log });
    server.listener = listener;
    const url = publicUrl(config, listener.port);
    writeRuntime(config.dataDir, { pid: process.pid, url: listener.url, secret: operatorSecret });
    nodes.leases.hold(RENEWS_TOKENS, () => () => {});
    endHousekeeping = every(clock, HOUSEKEEPING_MS, () => void keepHouse());
    if (plan) reportPlan(plan, log);
    log.info("gatehouse is ready", { url, data: config.dataDir });
    return url;
  }

  async function stop(): ReturnType<Gateway["stop"]> {
    const { listener } = server;
    server.isDraining = true;
    feed.end();
    endHousekeeping();
    listener?.refuse();
    await mcp.stop();
    await runs.stop();
    events.end();
    await background.stop();
    // Stopped together, because tasks wait for slots that clients' calls hold.
    await Promise.all([tasks.stop(), direct.running.stop()]);
    await direct.stop();
    await tools.stop();
    await listener?.close();
    const lostDecisions = await late.stop();
    // Before the vault's threads end, since everything they have open ends with them.
    await watch.stop();
    await quoted.stop();
    await expiry.stop();
    await vault.stop();
    await forgetting.stop();
    await keepHouse();
    await checkpoints.stop();
    await webhook?.close();
    feed.flush();
    if (listener) removeRuntime(config.dataDir);
    await store.close();
    return { lostDecisions };
  }

  return {
    handle: (request) => app.handle(request),
    operatorSecret,
    work,
    start,
    async consoleLink() {
      const { createdAdmin } = parts;
      if (createdAdmin === null || !server.listener) return null;
      const { port } = server.listener;
      const maker = { actor: "system", ledgerSeq: null };
      const { secret } = await db.tx(null, (tx) => links.create(tx, createdAdmin, maker, links.expiry()));
      return consoleLink(consoleUrl(config, port), secret);
    },
    async drain() {
      server.isDraining = true;
      feed.end();
      await within(clock, config.drainSeconds * 1_000, [runs.stop(), tasks.drain(), direct.running.drain()]);
    },
    stop() {
      stopping ??= stop();
      return stopping;
    },
    mustReopen: evidence.mustReopen,
  };
}
