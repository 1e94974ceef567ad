import type { ReadOnlyDatabase } from "../../store/sqlite/read-only.ts";
import { SALT_BYTES } from "../payload.ts";
import { type ErasedPayload, type PayloadKind, parseErasure } from "../proof/erasure.ts";
import { Bits } from "./bits.ts";
import type { VerifiedEntryFields } from "./form.ts";
import { counted, type VerificationReport } from "./report.ts";
import type { TreePosition } from "./walk.ts";

// Reads in the order of the key, so nothing is sorted in memory. Rows that are missing from the key's index are found
// when the pages are checked (`checkedTables`).
const ROWS =
  "SELECT seq, kind, salt, CAST(body AS BLOB) AS body FROM main.payloads INDEXED BY sqlite_autoindex_payloads_1" +
  " WHERE workspace_id = $1 ORDER BY seq, kind";
const KINDS = ["input", "output"] as const;

interface PayloadRow {
  readonly seq: number;
  readonly kind: unknown;
  readonly salt: unknown;
  readonly body: unknown;
}

/**
 * Compares the texts kept alongside the entries with the salted hashes in the entries. A text that is present must
 * match its hash. A text that is absent must have been erased according to a record.
 */
export class PayloadCheck {
  readonly #report: VerificationReport;
  readonly #rows: Generator<PayloadRow, void>;
  /** The last entry whose payloads an unfinished run may have erased because of their age. */
  readonly #expiring: number;
  #next: PayloadRow | null;
  readonly #kept = new Bits();
  readonly #missing = new Bits();
  /** The last entry with unknown contents. It may have been the record of an erasure. */
  #lastUnknown = 0;
  #erased = 0;
  #unvouched = 0;
  /** The last record of an early version that no checkpoint covers. */
  #unvouchedNumber = 0;
  #expired = 0;

  constructor(database: ReadOnlyDatabase, workspaceId: number, expiring: number, report: VerificationReport) {
    this.#report = report;
    this.#rows = database.rows<PayloadRow>(ROWS, [workspaceId]);
    this.#expiring = expiring;
    this.#next = this.#read();
  }

  /** MUST be called with each step, in order. */
  take({ seq, entry }: TreePosition): void {
    for (; this.#next && this.#next.seq < seq; this.#next = this.#read()) this.#reportOrphan(this.#next);
    const there: PayloadRow[] = [];
    for (; this.#next?.seq === seq; this.#next = this.#read()) there.push(this.#next);
    if (!entry) {
      this.#lastUnknown = seq;
      return;
    }
    for (const row of there) this.#compare(entry, row);
    for (const kind of KINDS) {
      if (entry[`${kind}_hash`] === undefined) continue;
      const isThere = there.some((row) => row.kind === kind);
      (isThere ? this.#kept : this.#missing).add(bitOf({ seq, kind }));
    }
    this.#account(entry);
  }

  /** Number of texts erased according to records that no valid checkpoint covers. */
  get unvouched(): number {
    return this.#unvouched;
  }

  /** Called when a valid checkpoint covers all steps so far. */
  vouched(): void {
    this.#unvouched = 0;
    this.#lastUnknown = Math.max(this.#lastUnknown, this.#unvouchedNumber);
  }

  /** @param changed The first entry that was changed or is missing; records from there on account for nothing */
  end(changed: number): void {
    for (; this.#next && this.#next.seq < changed; this.#next = this.#read()) this.#reportOrphan(this.#next);
    if (changed === Number.POSITIVE_INFINITY) this.#reportMissing();
    if (this.#kept.size > 0 || this.#erased > 0) {
      this.#report.fact(
        "Texts",
        `${counted(this.#kept.size)} present, ${counted(this.#erased)} erased on record`,
      );
    }
  }

  #reportMissing(): void {
    let expiring = 0;
    let unknown = 0;
    for (const bit of this.#missing.within(0, Number.MAX_SAFE_INTEGER)) {
      const { seq, kind } = payloadOf(bit);
      if (seq <= this.#expiring) {
        expiring += 1;
      } else if (seq < this.#lastUnknown) {
        unknown += 1;
      } else {
        this.#report.tampered(
          "payload_missing",
          `The ${kind} of entry ${seq} is missing, and no entry records that it was erased.`,
          seq,
        );
      }
    }
    if (unknown > 0) {
      this.#report.undecided(
        "payload_unaccounted",
        `${counted(unknown)} texts are missing. The record of their erasure may be among the entries that are missing or changed, or was written by an early version, which recorded only how many were erased.`,
      );
    }
    if (expiring > 0) {
      this.#report.undecided(
        "payload_expiring",
        `${counted(expiring)} texts up to entry ${this.#expiring} are missing. They are being erased because of their age, and the record is written at the end: verify again then. If no server is running, start one, so the run can finish.`,
      );
    }
  }

  /** Closes the query. */
  close(): void {
    this.#rows.return();
  }

  #read(): PayloadRow | null {
    const next = this.#rows.next();
    return next.done ? null : next.value;
  }

  #compare(entry: VerifiedEntryFields, row: PayloadRow): void {
    const kind = KINDS.find((each) => each === row.kind);
    const hash = kind && entry[`${kind}_hash`];
    if (hash === undefined) {
      this.#report.tampered(
        "payload_surplus",
        `There is a text of entry ${entry.seq} (${JSON.stringify(String(row.kind).slice(0, 20))}) that the entry does not mention: it was added.`,
        entry.seq,
      );
    } else if (hashOf(row) !== hash) {
      this.#report.tampered(
        "payload_changed",
        `The ${kind} of entry ${entry.seq} does not match its hash in the entry: the text or its salt was changed.`,
        entry.seq,
      );
    }
  }

  /** Texts that an entry records as erased are not missing, and must not be present. */
  #account(entry: VerifiedEntryFields): void {
    const erasure = parseErasure(entry);
    if (erasure === null) {
      // Records of early versions contain a number instead of names. No current program writes such a record; those
      // that exist are signed at startup.
      if (entry.action === "payload.erase" && typeof entry.detail?.payloads === "number") {
        this.#unvouchedNumber = entry.seq;
      }
      return;
    }
    if ("payloads" in erasure) {
      for (const payload of erasure.payloads) this.#erase(bitOf(payload), entry.seq);
      return;
    }
    const [first, end] = [
      bitOf({ seq: this.#expired, kind: "input" }),
      bitOf({ seq: erasure.upTo + 1, kind: "input" }),
    ];
    for (const bits of [this.#missing, this.#kept]) {
      for (const bit of bits.within(first, end)) this.#erase(bit, entry.seq);
    }
    this.#expired = Math.max(this.#expired, erasure.upTo + 1);
  }

  #erase(bit: number, record: number): void {
    if (this.#missing.has(bit)) {
      this.#missing.delete(bit);
      this.#erased += 1;
      this.#unvouched += 1;
    } else if (this.#kept.has(bit)) {
      const { seq, kind } = payloadOf(bit);
      this.#report.tampered(
        "payload_surplus",
        `The ${kind} of entry ${seq} exists, although entry ${record} records that it was erased: it was restored.`,
        seq,
      );
    }
  }

  #reportOrphan({ seq }: PayloadRow): void {
    this.#report.tampered("payload_surplus", `There is a text for entry ${seq}, which does not exist.`, seq);
  }
}

/** Checks the salt's length, because a longer or shorter salt could shift the boundary between salt and text. */
function hashOf({ salt, body }: PayloadRow): string | null {
  if (!(salt instanceof Uint8Array) || !(body instanceof Uint8Array) || salt.length !== SALT_BYTES)
    return null;
  return new Bun.CryptoHasher("sha256").update(salt).update(body).digest("hex");
}

function bitOf({ seq, kind }: ErasedPayload): number {
  return seq * 2 + (kind === "input" ? 0 : 1);
}

function payloadOf(bit: number): ErasedPayload {
  const kind: PayloadKind = bit % 2 === 0 ? "input" : "output";
  return { seq: Math.floor(bit / 2), kind };
}
