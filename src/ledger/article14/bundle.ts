import { type Clock, timestamp } from "../../base/clock.ts";
import type { Sql } from "../../store/db.ts";
import type { LedgerHeads } from "../heads/heads.ts";
import type { LedgerKeys } from "../keys/keys.ts";
import { entryTest } from "../reading/entry-filter.ts";
import { type AdmitRead, EvidenceReader } from "../reading/evidence.ts";
import { evidencePages, evidenceSpan } from "../reading/evidence-pages.ts";
import { rootAt } from "../reading/proofs.ts";
import type { EntryFilter } from "../reading/query.ts";
import { TreeReader } from "../tiles.ts";
import { zip } from "./archive.ts";
import { bundleFiles } from "./contents.ts";
import { readEntryFields } from "./format/entry.ts";
import type { SeqSpan } from "./format/erasures.ts";

export interface BundleParts {
  readonly db: Pick<Sql, "all" | "get">;
  readonly heads: Pick<LedgerHeads, "committed">;
  readonly keys: Pick<LedgerKeys, "originOf" | "sign" | "signBytes" | "verifierKeys">;
  readonly clock: Pick<Clock, "now">;
  /** Days for which prompts, outputs and arguments are kept. */
  readonly payloadDays: number;
}

export interface BundleRequest {
  readonly workspace: { readonly id: number; readonly name: string };
  /** `from` and `to` are set as in a list's filter, even if a day was requested; `from` is the earlier one. */
  readonly filter: Omit<EntryFilter, "oversight" | "task">;
  /**
   * The limit on what the exporter may see: one agent's entries from a given time on. `filter` MUST name that agent
   * and no earlier time. For all other entries, the bundle contains only the leaf hashes.
   */
  readonly seesOnly?: { readonly agent: string; readonly since: string } | undefined;
  /** The UTC day requested, for the manifest. */
  readonly date?: string | undefined;
  /** The exporter. */
  readonly exportedBy: {
    readonly actor: string;
    readonly person?: string | undefined;
    readonly role?: string | undefined;
  };
  /** Number of the ledger's entries to consider. Default: all that exist when the first bytes are requested. */
  readonly size?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called before each block of entries is read. If it throws, the bundle is aborted. */
  readonly admit?: AdmitRead | undefined;
}

/**
 * The Article 14 bundle of a workspace: a zip that proves, without a server, what the ledger recorded in a period. It
 * is produced as it is read: a slow reader slows it down, a reader that leaves ends it, and memory use does not
 * depend on its length. Entries appended during the export are not included. All contents are read from the entries'
 * own bytes, each checked against the signed tree, and never from an index.
 *
 * @throws RangeError if `from` is not before `to`
 * @throws LedgerChanged if the store does not contain the signed entries
 * @throws Error if the store cannot be read, if the signing key changed during the export, and if `signal` is
 *   aborted. The bytes returned until then are not a complete archive.
 */
export async function* openBundle(
  parts: BundleParts,
  request: BundleRequest,
): AsyncGenerator<Uint8Array, void> {
  const { db, heads, clock } = parts;
  const { workspace, filter } = request;
  if (filter.from !== undefined && filter.to !== undefined && filter.from >= filter.to) {
    throw new RangeError("a bundle's period must end after it begins");
  }
  const committed = await heads.committed(workspace.id);
  const tree = await rootAt(new TreeReader(db, workspace.id), committed, request.size);
  const { size, root } = tree;
  const evidence = await EvidenceReader.open(db, workspace.id, tree, () => {
    request.signal?.throwIfAborted();
    return request.admit?.();
  });
  const span = await evidenceSpan(evidence, filter);
  // The ledger's times never go back, even if the clock was set back. So a bundle is never older than its entries.
  const newest = size > 0 ? await evidence.entry(size) : undefined;
  const newestAt = Date.parse((newest && readEntryFields(newest.bytes)?.ts) ?? "");
  const now = Math.max(clock.now(), Number.isNaN(newestAt) ? 0 : newestAt);
  // A period without entries lies between two entries.
  const shown = { first: span.first, last: Math.max(span.last, span.first - 1) };
  const range = request.seesOnly ? await widened(evidence, request, request.seesOnly) : shown;
  const snapshot = { size, root, ...range, shown, at: timestamp(now) };
  yield* zip(bundleFiles(parts, request, evidence, snapshot), now, request.signal);
}

/**
 * A bundle includes the entries just outside its range, to prove that the period ends there. Therefore this range
 * ends at entries that the exporter may see, or at the ledger's ends. Entries between them and the period are
 * withheld like all others.
 */
async function widened(
  evidence: EvidenceReader,
  { filter: { from, to } }: BundleRequest,
  { agent, since }: { readonly agent: string; readonly since: string },
): Promise<SeqSpan> {
  const isOwn = entryTest({ agent, agentSince: since });
  const before = await nearest({ from: since, to: from }, "desc");
  const after = to === undefined ? undefined : await nearest({ from: to }, "asc");
  return { first: (before ?? 0) + 1, last: (after ?? evidence.size + 1) - 1 };

  async function nearest(
    time: Pick<EntryFilter, "from" | "to">,
    order: "asc" | "desc",
  ): Promise<number | undefined> {
    const span = await evidenceSpan(evidence, time);
    for await (const [entry] of evidencePages(evidence, { ...span, order }, isOwn)) {
      if (entry) return entry.seq;
    }
    return undefined;
  }
}
