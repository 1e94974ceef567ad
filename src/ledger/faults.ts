import type { Log } from "../base/log.ts";
import type { Ledger } from "./ledger.ts";
import { LedgerChanged } from "./ledger-changed.ts";

/**
 * `entry_changed`: an entry, a leaf or a tile is not the one that was signed. `index_changed`: the index hides
 * entries. `expiry_changed`: the note about a run that erases old texts was not written by a server.
 * `approval_changed`: an approval's row does not match the entries it names. `schedule_changed`: a schedule's row
 * does not match the entry that created or last changed it.
 */
export type FaultKind =
  | "entry_changed"
  | "index_changed"
  | "expiry_changed"
  | "approval_changed"
  | "schedule_changed";

export interface LedgerFault {
  readonly kind: FaultKind;
  readonly message: string;
  /** The first entry concerned, if known. */
  readonly seq?: number | undefined;
}

export interface LedgerFaultsParts {
  readonly ledger: Pick<Ledger, "record">;
  readonly log: Log;
  /** Called once for each fault, for the metrics. */
  noticed(kind: FaultKind): void;
}

/** Maximum number of faults remembered, so that a process reports each one only once. */
const REMEMBERED = 1_000;

/**
 * Reports changes found while reading a ledger: in the log, in the metrics and in an entry of that ledger (`ledger.`
 * followed by the kind of fault, such as `ledger.entry_changed`).
 */
export class LedgerFaults {
  readonly #parts: LedgerFaultsParts;
  readonly #known = new Set<string>();

  constructor(parts: LedgerFaultsParts) {
    this.#parts = parts;
  }

  /** Never throws, and does not wait. */
  report(workspaceId: number, { kind, message, seq }: LedgerFault): void {
    const { ledger, log, noticed } = this.#parts;
    const key = `${workspaceId} ${kind} ${seq ?? 0}`;
    if (this.#known.has(key) || this.#known.size >= REMEMBERED) return;
    this.#known.add(key);
    noticed(kind);
    log.error("the ledger was changed in the database file; run `gatehouse ledger verify`", {
      workspace: workspaceId,
      kind,
      seq,
      problem: message,
    });
    ledger
      .record(workspaceId, {
        phase: "single",
        action: `ledger.${kind}`,
        outcome: "failed",
        channel: "system",
        actor: "system",
        detail: { problem: message, target_seq: seq },
      })
      .catch((error: unknown) =>
        log.warn("a change to the ledger was logged but could not be recorded", { error }),
      );
  }
}

/** Reports an error of a read if it means that the store was changed, and ignores all others. Never throws. */
export function reportChanged(
  faults: Pick<LedgerFaults, "report">,
  workspaceId: number,
  error: unknown,
): void {
  if (!(error instanceof LedgerChanged)) return;
  faults.report(workspaceId, { kind: "entry_changed", message: error.message, seq: error.seq });
}
