import { type Clock, timestamp } from "../../base/clock.ts";
import type { Sql } from "../../store/db.ts";
import { entryTest } from "../entry-filter.ts";
import { type AdmitRead, EvidenceReader } from "../evidence.ts";
import { evidencePages, evidenceSpan } from "../evidence-pages.ts";
import type { LedgerHeads } from "../heads.ts";
import type { LedgerKeys } from "../keys.ts";
import { rootAt } from "../proofs.ts";
import type { EntryFilter } from "../query.ts";
import { TreeReader } from "../tiles.ts";
import { zip } from "./archive.ts";
import { bundleFiles } from "./contents.ts";
import { readEntryFields } from "./format/entry.ts";
import type { Span } from "./format/erasures.ts";

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
  /** `from` and `to` as the filter of a list has them, also where a day was asked for; `from` is the earlier one. */
  readonly filter: Omit<EntryFilter, "oversight" | "task">;
  /**
   * All that whoever takes the bundle away may see: an agent's entries from a time on. `filter` MUST name the agent, and no earlier
   * time. Nothing else of other entries is in the bundle than their leaf hashes.
   */
  readonly seesOnly?: { readonly agent: string; readonly since: string } | undefined;
  /** The UTC day that was asked for, for the manifest. */
  readonly date?: string | undefined;
  /** Who takes the bundle away. */
  readonly exportedBy: {
    readonly actor: string;
    readonly person?: string | undefined;
    readonly role?: string | undefined;
  };
  /** Entries of the ledger that are looked at. Default: all that there are when the first bytes are asked for. */
  readonly size?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called before each block of entries is read. What it throws breaks the bundle off. */
  readonly admit?: AdmitRead | undefined;
}

/**
 * The Article 14 bundle of a workspace: a zip that proves, with no server, what the ledger says of a time. It is made as it
 * is read: a reader that takes nothing makes it wait, one that leaves ends it, and memory does not grow with its length.
 * The ledger may grow meanwhile; what came later is not in it. What goes into it is read from the entries' own bytes, each
 * of which is held against the signed tree, and from no index.
 *
 * @throws RangeError where `from` is not before `to`
 * @throws LedgerChanged where the store has others than were signed
 * @throws Error where the store cannot be read, where the signing key was changed meanwhile, and where `signal` is aborted:
 *   what came until then is no whole archive
 */
export async function* openBundle(
  parts: BundleParts,
  request: BundleRequest,
): AsyncGenerator<Uint8Array, void> {
  const { db, heads, clock } = parts;
  const { workspace, filter } = request;
  if (filter.from !== undefined && filter.to !== undefined && filter.from >= filter.to) {
    throw new RangeError("a bundle's period has to end after it begins");
  }
  const tree = await rootAt(new TreeReader(db, workspace.id), heads.committed(workspace.id), request.size);
  const { size, root } = tree;
  const evidence = await EvidenceReader.open(db, workspace.id, tree, () => {
    request.signal?.throwIfAborted();
    return request.admit?.();
  });
  const span = await evidenceSpan(evidence, filter);
  // The ledger's time does not go back where the clock was set back: a bundle is not older than what it holds.
  const newest = size > 0 ? await evidence.entry(size) : undefined;
  const newestAt = Date.parse((newest && readEntryFields(newest.bytes)?.ts) ?? "");
  const now = Math.max(clock.now(), Number.isNaN(newestAt) ? 0 : newestAt);
  // A time in which nothing happened lies between two entries.
  const shown = { first: span.first, last: Math.max(span.last, span.first - 1) };
  const range = request.seesOnly ? await widened(evidence, request, request.seesOnly) : shown;
  const snapshot = { size, root, ...range, shown, at: timestamp(now) };
  yield* zip(bundleFiles(parts, request, evidence, snapshot), now, request.signal);
}

/**
 * The entries just outside of a range are in the bundle, to show that the period ends there. This range ends at entries that may be
 * seen, or at the ledger's ends; what lies between them and the period is withheld like the rest.
 */
async function widened(
  evidence: EvidenceReader,
  { filter: { from, to } }: BundleRequest,
  { agent, since }: { readonly agent: string; readonly since: string },
): Promise<Span> {
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
