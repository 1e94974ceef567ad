import { openWorkspaces } from "../access/workspaces.ts";
import type { Config } from "../config/config.ts";
import { LedgerHistories } from "../gate/ledger-histories.ts";
import type { Metrics } from "../http/metrics.ts";
import { openLedger } from "../ledger/open.ts";
import { recordRestoration } from "../ledger/restoration.ts";
import { openSealedRows } from "../ledger/sealed-rows.ts";
import { LedgerWatch } from "../ledger/watch.ts";
import { Announcements } from "../notify/announce.ts";
import { openWebhook } from "../notify/open.ts";
import { writeRestoredNote } from "../store/backup/restored-note.ts";
import type { ReopenReason } from "../store/file-store.ts";
import type { Platform } from "./platform.ts";
import type { Store } from "./store.ts";

export interface EvidenceOptions {
  readonly replaceLostKey: boolean;
  /** Whether the operator accepts the store as it is, including entries that were changed. */
  readonly acceptChanged: boolean;
}

export type Evidence = Awaited<ReturnType<typeof openEvidence>>;

/**
 * Phase 2: the ledgers, and the facts read from them at startup; the webhook, since its deliveries are written
 * with the entries.
 * @throws OperatorError if a ledger was changed, or its key is missing
 */
export async function openEvidence(
  config: Config,
  { clock, random, ids, log }: Platform,
  { db, files, nodes, restored, secretKey, keyStore, headStore, webhookSecrets }: Store,
  metrics: Metrics,
  { replaceLostKey, acceptChanged }: EvidenceOptions,
) {
  const workspaces = await openWorkspaces(db, clock, config.limits, nodes);
  const workspaceIds = () => workspaces.list().map(({ id }) => id);
  const nameOf = (id: number) => workspaces.get(id).name;
  const noticed = (kind: string) => metrics.storeDisturbances.inc({ kind });
  const ledgers = await openLedger({
    ...{ db, clock, random, log, nameOf, noticed, replaceLostKey },
    ...{ keyStore, headStore, nodes, config: config.ledger, workspaces: () => workspaces.list() },
  });
  const { ledger, heads } = ledgers;
  const { instance } = ledgers.keys;
  const webhook = await openWebhook({
    ...{ config: config.notify, secretStore: webhookSecrets, db, nodes, clock, ids, random, log, instance },
  });
  const announcements = new Announcements(webhook, nameOf);
  // Listens from now on, because the start itself writes entries and signs the first checkpoint of a ledger at once.
  ledgers.checkpoints.published.listen(({ workspaceId, head: { size, note } }) => {
    announcements.checkpoint(workspaceId, ledgers.keys.originOf(nameOf(workspaceId)), size, note);
  });
  await openSealedRows({
    ...{ db, ledger, key: secretKey, log, noticed, workspaces: () => workspaces.list() },
  });
  if (restored && !restored.recorded) {
    await recordRestoration({ db, ledger, workspaces: () => workspaces.list() }, restored);
    writeRestoredNote(config.dataDir, { ...restored, recorded: true });
  }
  const histories = new LedgerHistories({
    ...{ db, ledger, heads, faults: ledgers.faults, log, acceptChanged },
    ...{ isShared: nodes.isShared, grownElsewhere: ledgers.elsewhere.grown },
  });
  await histories.read(workspaces.list());
  db.seals.outdateTokens((token) => histories.isOutdated(token));
  const mustReopen = Promise.withResolvers<ReopenReason>();
  const watch = new LedgerWatch({
    ...{ db, files, ledger, heads, clock, log, noticed, workspaceIds },
    mustReopen: mustReopen.resolve,
  });
  return {
    ...{ workspaces, workspaceIds, ledgers, webhook, announcements, histories, watch },
    mustReopen: mustReopen.promise,
  };
}
