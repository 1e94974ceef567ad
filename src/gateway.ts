import { isCutOff } from "./access/trust.ts";
import { type Clock, systemClock } from "./base/clock.ts";
import { createIds, type RandomSource, systemRandom } from "./base/ids.ts";
import { createLog, type Log } from "./base/log.ts";
import { openFilesLimit } from "./base/open-files/count.ts";
import type { Config } from "./config/config.ts";
import { openDoors } from "./doors.ts";
import { ensureAdmin } from "./gate/admin.ts";
import { openEvidence } from "./gateway/evidence.ts";
import { openGate } from "./gateway/gate.ts";
import { createLifecycle, type Gateway, type ServerState } from "./gateway/lifecycle.ts";
import type { Platform } from "./gateway/platform.ts";
import { openSharedStore } from "./gateway/shared-store.ts";
import { openStore } from "./gateway/store.ts";
import { openSubscriptions } from "./gateway/subscriptions.ts";
import { openWork } from "./gateway/work.ts";
import { planConnections } from "./http/connections/plan.ts";
import { createMetrics } from "./http/metrics.ts";
import { consoleUrl } from "./http/routes/console-links.ts";
import type { CreateFixtures } from "./mcp/fixtures.ts";
import { SharedClock } from "./nodes/shared/shared-clock.ts";
import { isWritable } from "./store/prove.ts";
import type { SealedRowsCheck } from "./store/seals/unsealed-rows.ts";

export type { Gateway } from "./gateway/lifecycle.ts";

/** The parts of the machine that a start uses, replaceable in tests, and the operator's wishes for this start. */
export interface GatewayOptions {
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
   * Called with the rows whose seals do not match. They are sealed unchanged unless it throws. Entries of the ledger
   * that were changed no longer keep the gateway from opening.
   */
  readonly acceptRows?: (check: SealedRowsCheck) => void;
  /** Runs the work of each transaction twice and undoes the first run. Only for tests. */
  readonly rerunWork?: boolean;
  /** Tools, resources and prompts that MCP's conformance suite requires. Only for tests. */
  readonly mcpFixtures?: CreateFixtures;
}

/**
 * The composition root: creates every part, in startup order. A phase uses only parts created by earlier
 * phases.
 * @throws OperatorError if the data directory is in use, cannot be written or belongs to a newer version
 */
export async function openGateway(config: Config, options: GatewayOptions = {}): Promise<Gateway> {
  const { acceptRows, handOverAdmin, mcpFixtures } = options;
  const platform = platformOf(config, options);
  const { clock, random, ids, log } = platform;
  const metrics = createMetrics();
  const plan = planConnections(openFilesLimit());
  const server: ServerState = { listener: null, isDraining: false };
  // Resolved from here: in the compiled program, this module and the workers' are in the same folder.
  const main = new URL("./main.ts", import.meta.url);
  const vaultWorker = new URL("./vault/worker.ts", import.meta.url);
  const syncWorker = new URL("./store/sqlite/sync-worker.ts", import.meta.url);

  const store = config.store
    ? await openSharedStore(config, config.store, platform)
    : await openStore(config, platform, { ...options, syncWorker });
  try {
    const evidence = await openEvidence(config, platform, store, metrics, {
      replaceLostKey: options.replaceLostLedgerKey ?? false,
      acceptChanged: acceptRows !== undefined,
    });
    const gate = await openGate(config, platform, store, evidence);
    const listening = () => server.listener?.port ?? null;
    const work = await openWork(config, platform, store, evidence, gate, {
      ...{ main, vaultWorker, plan, listening },
    });
    const feed = openSubscriptions(platform, store, evidence, gate, work, metrics);
    const { db, nodes } = store;
    nodes.countTasks(() => work.openedTasks.tasks.scheduler.totalRunning);
    const { workspaces, ledgers, histories, webhook, watch } = evidence;
    const doors = openDoors({
      ...{
        config,
        db,
        nodes,
        ledgers,
        workspaces,
        metrics,
        feed,
        clock,
        ids,
        random,
        log,
        plan,
        mcpFixtures,
      },
      ...gate,
      ...work,
      consoleUrl: () => server.listener && consoleUrl(config, server.listener.port),
      webhookDue: () => webhook?.wake(),
      readiness: {
        isDraining: () => server.isDraining,
        failing: async () => [
          ...(isCutOff(store.nodes.bus) || !(await isWritable(db, clock, log)) ? ["store"] : []),
          ...(server.listener?.connections?.isExhausted ? ["open_files"] : []),
          ...(watch.continued.size > 0 ? ["ledger"] : []),
        ],
      },
    });
    const { ledger } = ledgers;
    const admin = { db, ledger, tokens: gate.tokens, workspaces, histories, random, log };
    const createdAdmin = handOverAdmin ? await ensureAdmin(admin, config.adminToken, handOverAdmin) : null;
    return createLifecycle({
      ...{ config, platform, store, evidence, gate, work, feed, metrics, doors, plan, server, createdAdmin },
    });
  } catch (error) {
    await store.close();
    throw error;
  }
}

function platformOf(config: Config, { clock: given, random = systemRandom, log }: GatewayOptions): Platform {
  const clock = given ?? (config.store ? new SharedClock() : systemClock);
  return { clock, random, ids: createIds(clock, random), log: log ?? createLog(config.logLevel, clock) };
}
