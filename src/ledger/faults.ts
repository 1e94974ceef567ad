import type { Log } from "../base/log.ts";
import type { Ledger } from "./ledger.ts";
import { LedgerChanged } from "./ledger-changed.ts";

/**
 * `entry_changed`: an entry, a leaf or a tile is not the one that was signed. `index_changed`: the index hides entries.
 * `expiry_changed`: the note of a run that erases texts for their age is not one that a server wrote. `approval_changed`: the
 * row of an approval does not agree with the entries that it names. `schedule_changed`: the row of a schedule does not agree with
 * the entry that made it or changed it last.
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
  /** The first entry that it concerns, when one is known. */
  readonly seq?: number | undefined;
}

export interface LedgerFaultsParts {
  readonly ledger: Pick<Ledger, "record">;
  readonly log: Log;
  /** Told of each fault once, for the metrics. */
  noticed(kind: FaultKind): void;
}

/** Faults that are remembered, so that each is named once in the life of a process. */
const REMEMBERED = 1_000;

/**
 * Names what reading a ledger has found to be changed: in the log, in the metrics, and in an entry of that ledger
 * (`ledger.` and the kind of the fault, such as `ledger.entry_changed`).
 */
export class LedgerFaults {
  readonly #parts: LedgerFaultsParts;
  readonly #known = new Set<string>();

  constructor(parts: LedgerFaultsParts) {
    this.#parts = parts;
  }

  /** Never throws, and waits for nothing. */
  report(workspaceId: number, { kind, message, seq }: LedgerFault): void {
    const { ledger, log, noticed } = this.#parts;
    const key = `${workspaceId} ${kind} ${seq ?? 0}`;
    if (this.#known.has(key) || this.#known.size >= REMEMBERED) return;
    this.#known.add(key);
    noticed(kind);
    log.error("the ledger was changed in the database's file; see `gatehouse ledger verify`", {
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
      .catch((error: unknown) => log.warn("a change of the ledger was only logged", { error }));
  }
}

/** Reports an error of a read if it means that the store was changed; ignores all others. Never throws. */
export function reportChanged(
  faults: Pick<LedgerFaults, "report">,
  workspaceId: number,
  error: unknown,
): void {
  if (!(error instanceof LedgerChanged)) return;
  faults.report(workspaceId, { kind: "entry_changed", message: error.message, seq: error.seq });
}
