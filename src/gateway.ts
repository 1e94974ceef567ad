import { createAgents } from "./access/agents.ts";
import { createSessions } from "./access/sessions.ts";
import { SignInLinks } from "./access/sign-in-links.ts";
import { createTokens } from "./access/tokens.ts";
import { DEFAULT_WORKSPACE, openWorkspaces } from "./access/workspaces.ts";
import { type Clock, every, systemClock, within } from "./base/clock.ts";
import { createIds, type RandomSource, systemRandom } from "./base/ids.ts";
import { createLog, type Log } from "./base/log.ts";
import { openFilesLimit } from "./base/open-files/count.ts";
import { startFetchThread } from "./base/open-files/thread.ts";
import { type Config, publicUrl } from "./config/config.ts";
import { openConnectors } from "./connectors/open.ts";
import { reportLost } from "./connectors/open-calls.ts";
import { openDoors } from "./doors.ts";
import { openFeed } from "./feed/open.ts";
import { ensureAdmin } from "./gate/admin.ts";
import { createGate } from "./gate/gate.ts";
import { LateRecords } from "./gate/late.ts";
import { LedgerHistories } from "./gate/ledger-histories.ts";
import { createLimitNotices } from "./gate/notices.ts";
import { openBudgets } from "./gate/open-budgets.ts";
import { createRefusedCallers } from "./gate/refused.ts";
import { endReplayedTokens } from "./gate/replayed-tokens.ts";
import { UsageSlots } from "./gate/usage/slots.ts";
import { checkPlan, planConnections, reportPlan } from "./http/connections/plan.ts";
import { type Listener, listen } from "./http/listen.ts";
import { createMetrics } from "./http/metrics.ts";
import { consoleLink, consoleUrl } from "./http/routes/console-links.ts";
import { openLedger } from "./ledger/open.ts";
import { openSealedRows } from "./ledger/sealed-rows.ts";
import { LedgerWatch } from "./ledger/watch.ts";
import { modelRequests, REQUEST_LIMIT_VARIABLE } from "./limits/request-plan.ts";
import type { CreateFixtures } from "./mcp/fixtures.ts";
import { createModelDoor } from "./models/door.ts";
import { openEmbedding } from "./models/embed/open.ts";
import { Announcements } from "./notify/announce.ts";
import { openWebhook } from "./notify/open.ts";
import { claimDirectory } from "./store/claim.ts";
import type { Db } from "./store/db.ts";
import { databasePath } from "./store/directory.ts";
import { Forgetting } from "./store/forgetting.ts";
import { isWritable } from "./store/prove.ts";
import { removeRuntime, writeRuntime } from "./store/runtime.ts";
import type { SealedRowsCheck } from "./store/seals/unsealed-rows.ts";
import { openSecretKey } from "./store/secret-key.ts";
import { openSqlite } from "./store/sqlite/open.ts";
import { subscribeFeed, subscribeMetrics, subscribeWebhook } from "./subscriptions.ts";
import { approvalChanges, approvalsPending, taskChanges, taskUsage } from "./tasks/feed.ts";
import { purgeKeys } from "./tasks/idempotency.ts";
import { openTasks } from "./tasks/open.ts";
import { openSchedules } from "./tasks/schedules/open.ts";
import { openVault } from "./vault/vault.ts";

/** Everything the program takes from the machine, replaceable in tests. */
export interface Surroundings {
  readonly clock?: Clock;
  readonly random?: RandomSource;
  readonly log?: Log;
  /**
   * Called with the first admin token's secret just before it is stored. Without it, as for a single command, this
   * start creates no admin token.
   */
  readonly handOverAdmin?: (secret: string) => void;
  /** Creates a new signing key for the ledgers if it is lost. Nothing then vouches for the new key. */
  readonly replaceLostLedgerKey?: boolean;
  /**
   * Called with the rows whose seals do not match. They are sealed as they are unless it throws. Entries of the ledger
   * that were changed no longer keep the gateway from opening.
   */
  readonly acceptRows?: (check: SealedRowsCheck) => void;
  /** Tools, resources and prompts that MCP's conformance suite requires. Only for tests. */
  readonly mcpFixtures?: CreateFixtures;
}

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
  consoleLink(): string | null;
  /**
   * Accepts no new work. Resolves when the in-flight calls have ended or `drain_seconds` have passed. Reads, cancels,
   * stops and decisions are still served, and `/readyz` answers 503.
   */
  drain(): Promise<void>;
  /**
   * Stops listening, interrupts running work (a later start resumes it from its last saved step), and releases the
   * data directory. Called again, it returns the same stop.
   * @returns the number of stops, cancels and other decisions that are lost because the store could not be written
   */
  stop(): Promise<{ readonly lostDecisions: number }>;
  /**
   * Resolves once a listening gateway has recorded that another program wrote to its database. All writes are refused
   * from then on, since only a start compares what is stored: `stop` this gateway, and open another one.
   */
  readonly foreignWrite: Promise<void>;
}

const HOUSEKEEPING_MS = 5_000;
const HOUR_MS = 3_600_000;

/**
 * The composition root: creates every part in the order of its dependencies.
 * @throws OperatorError if the data directory is in use, cannot be written or belongs to a newer version
 */
export async function openGateway(config: Config, surroundings: Surroundings = {}): Promise<Gateway> {
  const { clock = systemClock, random = systemRandom, handOverAdmin, acceptRows } = surroundings;
  const log = surroundings.log ?? createLog(config.logLevel, clock);
  const ids = createIds(clock, random);

  const lock = claimDirectory(config.dataDir, log);
  let opened: Db | undefined;
  try {
    // Left by a killed server. Another program may be listening at its address now.
    removeRuntime(config.dataDir);
    const database = databasePath(config.dataDir);
    const secretKey = openSecretKey({ ...config, random });
    const seals = { key: secretKey, acceptRows };
    const db = openSqlite(database, { libraries: config.dataDir, seals });
    opened = db;
    if (db.vectors.problem !== null) {
      log.warn("the vault searches only words", { problem: db.vectors.problem });
    }
    const workspaces = await openWorkspaces(db, clock, config.limits);
    const metrics = createMetrics();
    const noticed = (kind: string) => metrics.storeDisturbances.inc({ kind });
    const ledgers = await openLedger({
      db,
      directory: config.dataDir,
      config: config.ledger,
      clock,
      random,
      log,
      workspaces: () => workspaces.list(),
      nameOf: (id) => workspaces.get(id).name,
      noticed,
      replaceLostKey: surroundings.replaceLostLedgerKey ?? false,
    });
    const { ledger, checkpoints, heads, lists, faults } = ledgers;
    const { instance } = ledgers.keys;
    const { notify, dataDir } = config;
    const webhook = openWebhook({ config: notify, dataDir, db, clock, ids, random, log, instance });
    const announcements = new Announcements(webhook, (id) => workspaces.get(id).name);
    await openSealedRows({
      ...{ db, ledger, key: secretKey, log, noticed },
      workspaces: () => workspaces.list(),
    });
    const agents = createAgents(db, clock, workspaces);
    const tokens = createTokens(db, clock, ids, random);
    const workspaceIds = () => workspaces.list().map(({ id }) => id);
    const acceptChanged = acceptRows !== undefined;
    const histories = new LedgerHistories({ db, ledger, heads, log, acceptChanged });
    await histories.read(workspaces.list());
    await endReplayedTokens({ db, tokens, clock, histories }, workspaces.list());
    const lifetimeMs = config.console.sessionHours * HOUR_MS;
    const sessions = createSessions({ db, tokens, clock, ids, random, lifetimeMs });
    const links = new SignInLinks(clock, random);

    const notices = createLimitNotices(ledger, clock, log);
    subscribeWebhook(announcements, { notices }, ledgers, workspaces);
    const budgets = openBudgets({
      ...{ ledger, workspaces, clock, log, announcements, toolPrices: config.toolPrices },
    });
    const usageSlots = new UsageSlots(db, clock, workspaceIds);
    const refused = createRefusedCallers(ledger, clock);
    const late = new LateRecords(db, clock, log);
    const foreignWrite = Promise.withResolvers<void>();
    const ledgerWatch = new LedgerWatch({
      ...{ db, ledger, heads, clock, log, noticed, workspaceIds },
      foreignWrite: foreignWrite.resolve,
    });
    const gate = createGate({
      ...{ db, ledger, tokens, sessions, links, workspaces, notices, refused, late, clock, log },
    });

    let listener: Listener | null = null;
    const plan = planConnections(openFilesLimit());
    const ownFiles = plan && plan.openFiles - plan.connections;
    const door = await createModelDoor(
      config,
      clock,
      modelRequests(Bun.env[REQUEST_LIMIT_VARIABLE], ownFiles),
    );
    const forgetting = new Forgetting({ db, clock, log });
    const embedding = await openEmbedding({ config, db, clock, random, log });
    const vault = await openVault({
      db,
      clock,
      ids,
      log,
      random,
      forgetting,
      database,
      extension: db.vectors.path,
      // Resolved from here: in the compiled program, this module and the worker's are in the same folder.
      program: new URL("./vault/worker.ts", import.meta.url),
      main: new URL("./main.ts", import.meta.url),
      reading: config.vault,
      embedder: embedding.embedder,
      formerEmbedder: embedding.formerEmbedder,
    });
    const tools = await openConnectors({
      secretKey,
      ...{ config, db, ledger, budgets, agents, tokens, workspaces, vault, clock, ids, random, log },
      instance,
      main: new URL("./main.ts", import.meta.url),
      listening: () => listener?.port ?? null,
    });
    const openedTasks = openTasks({
      ...{ db, ledger, lists, faults, histories, budgets, workspaces, agents, tokens, door, notices },
      ...{ clock, ids, log, forgetting },
      tools: tools.registry,
      nodeCeiling: config.limits.runningTasksPerNode,
      queueLimit: config.limits.queuedTasks,
      payloadDays: config.ledger.payloadDays,
      approvalExpiresMs: config.approvals.expireHours * HOUR_MS,
      hooks: {
        ending: (tx, task) => announcements.taskFinished(tx, task),
        approvalRequired: (tx, call) => announcements.approvalRequired(tx, call),
      },
    });

    const { tasks, signals, desk, calls, quoted, expiry } = openedTasks;
    tools.calls.askThrough(calls);
    const { schedules, runs } = openSchedules({
      ...{ db, ledger, gate, tokens, workspaces, agents, door, tasks, forgetting, clock, ids, log },
      ...{ lists, faults, tools: tools.registry },
    });
    const feed = openFeed({
      ...{ clock, log, agents, tokens, sessions, workspaces, ledger },
      tasks: (workspaceId, ids) => taskChanges(db, workspaceId, ids),
      approvals: (workspaceId, keys) => approvalChanges(db, workspaceId, keys),
      approvalsPending: (workspaceId, agent) => approvalsPending(db, workspaceId, agent),
      connectorStatus: (workspaceId, name) => tools.connectors.statusOf(workspaceId, name),
      usage: (workspaceId, agent) => ({
        ...taskUsage(openedTasks.tasks.scheduler, workspaceId, agent),
        requests_left: gate.requestsLeft(workspaceId),
        requests_per_minute: workspaces.get(workspaceId).limits.requestsPerMinute,
      }),
    });
    const sources = { workspaces, notices, budgets, vault, connectors: tools.connectors, tasks: signals };
    subscribeFeed(feed, sources);
    subscribeMetrics(metrics, sources);

    let isDraining = false;
    const { app, mcp, openCalls, operatorSecret } = openDoors({
      ...{ config, db, ledgers, agents, tokens, workspaces, metrics, budgets, gate, door, vault, tools },
      ...{ feed, openedTasks, schedules, clock, ids, random, log, sessions, links, plan },
      mcpFixtures: surroundings.mcpFixtures,
      consoleUrl: () => listener && consoleUrl(config, listener.port),
      webhookDue: () => webhook?.wake(),
      readiness: {
        isDraining: () => isDraining,
        failing: async () => [
          ...((await isWritable(db, clock, log)) ? [] : ["store"]),
          ...(listener?.connections?.isExhausted ? ["open_files"] : []),
          ...(ledgerWatch.continued.size > 0 ? ["ledger"] : []),
        ],
      },
    });

    const admin = { db, ledger, tokens, workspaces, histories, random, log };
    const handedOver = handOverAdmin ? await ensureAdmin(admin, config.adminToken, handOverAdmin) : null;
    let endHousekeeping = () => {};

    async function keepHouse(): Promise<void> {
      const defaultId = workspaces.find(DEFAULT_WORKSPACE)?.id;
      try {
        await tokens.saveLastUsed();
        await sessions.keepHouse();
        if (defaultId !== undefined) await refused.sweep(defaultId);
        await tools.keepHouse();
        await embedding.flushUsage();
        await purgeKeys(db, clock.now());
        await desk.expire();
        await usageSlots.keepHouse();
        await histories.keepHouse();
      } catch (error) {
        log.warn("housekeeping failed; it will be tried again", { error });
      }
    }

    async function work(): Promise<void> {
      const lost = { db, ledger, lists, budgets, clock, log };
      for (const { id } of workspaces.list()) await reportLost(lost, id);
      await vault.start();
      await tasks.start();
      quoted.start();
      webhook?.wake();
    }

    let stopping: ReturnType<Gateway["stop"]> | null = null;
    async function stop() {
      isDraining = true;
      feed.end();
      endHousekeeping();
      listener?.refuse();
      await mcp.stop();
      await runs.stop();
      await tasks.stop();
      await tools.stop();
      await listener?.close();
      const lostDecisions = await late.stop();
      // Before the vault's threads end, since whatever they have open ends with them.
      await ledgerWatch.stop();
      await quoted.stop();
      await expiry.stop();
      await vault.stop();
      await forgetting.stop();
      await keepHouse();
      await checkpoints.stop();
      await webhook?.close();
      if (listener) removeRuntime(config.dataDir);
      await db.close();
      lock.release();
      return { lostDecisions };
    }

    return {
      handle: (request) => app.handle(request),
      operatorSecret,
      work,
      async start() {
        if (plan) checkPlan(plan);
        await work();
        await checkpoints.recordRule();
        checkpoints.start();
        ledgerWatch.start();
        forgetting.start();
        expiry.start();
        runs.start();
        await startFetchThread();
        listener = listen(app, config.listen, { plan, calls: openCalls, metrics, ids, clock, log });
        const url = publicUrl(config, listener.port);
        writeRuntime(config.dataDir, { pid: process.pid, url: listener.url, secret: operatorSecret });
        endHousekeeping = every(clock, HOUSEKEEPING_MS, () => void keepHouse());
        if (plan) reportPlan(plan, log);
        log.info("gatehouse is ready", { url, data: config.dataDir });
        return url;
      },
      consoleLink() {
        if (!handedOver || !listener) return null;
        const { secret } = links.create(handedOver, { actor: "system", ledgerSeq: null });
        return consoleLink(consoleUrl(config, listener.port), secret);
      },
      async drain() {
        isDraining = true;
        feed.end();
        await within(clock, config.drainSeconds * 1_000, [runs.stop(), tasks.drain(), tools.calls.drain()]);
      },
      stop() {
        stopping ??= stop();
        return stopping;
      },
      foreignWrite: foreignWrite.promise,
    };
  } catch (error) {
    await opened?.close();
    lock.release();
    throw error;
  }
}
