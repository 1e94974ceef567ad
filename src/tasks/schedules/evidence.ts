import type { LedgerFaults } from "../../ledger/faults.ts";
import { isHashOf } from "../../ledger/payload.ts";
import { parseErasure } from "../../ledger/proof/erasure.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import type { Sql } from "../../store/db.ts";
import type { Schedule } from "./schedule.ts";

export interface ScheduleEvidenceParts {
  readonly db: Pick<Sql, "get">;
  readonly lists: Pick<LedgerLists, "read" | "size">;
  readonly faults: Pick<LedgerFaults, "report">;
}

/** The fields of an entry about a schedule, as this program writes them. */
interface ScheduleEntry {
  readonly seq: number;
  readonly action: string;
  readonly outcome: string;
  readonly actor: string;
  readonly agent?: string;
  readonly tier?: number;
  readonly input_hash?: string;
  readonly detail?: {
    readonly schedule?: string;
    readonly cron?: string;
    readonly timezone?: string;
    readonly missed?: string;
    readonly status?: string;
    readonly version?: number;
    readonly tools?: string;
  };
}

/** The maximum number of schedules remembered as proven. If there are more, all are forgotten. */
const PROVEN_LIMIT = 10_000;
const CHANGES = ["schedule.create", "schedule.update", "schedule.delete"] as const;

/**
 * Compares schedules with the ledger. A schedule runs with a person's rights but its row is not signed. It runs only
 * if the newest entry about it shows that this actor requested it, with these times. The prompt is compared as long
 * as its salted hash can be computed: its salt is erased `payload_days` after the change.
 *
 * The search goes back to the schedule's last change, once per schedule and process. It takes 1 ms for each block of
 * 256 entries not checked since the start.
 */
export class ScheduleEvidence {
  readonly #parts: ScheduleEvidenceParts;
  /** Schedules as they were proven, by workspace and id. */
  readonly #proven = new Map<string, string>();

  constructor(parts: ScheduleEvidenceParts) {
    this.#parts = parts;
  }

  /**
   * Whether the stored schedule agrees with the ledger. Reports it if not.
   * @throws LedgerChanged
   */
  async isProven(schedule: Schedule): Promise<boolean> {
    const { workspaceId, id } = schedule;
    const key = `${workspaceId} ${id}`;
    // Fields written by a run are not part of anyone's request.
    const now = JSON.stringify({ ...schedule, nextAt: null, last: null });
    if (this.#proven.get(key) === now) return true;
    const entry = await this.#newest(workspaceId, id);
    const problem = await this.#problemOf(schedule, entry);
    if (problem === null) {
      if (this.#proven.size >= PROVEN_LIMIT) this.#proven.clear();
      this.#proven.set(key, now);
      return true;
    }
    this.#proven.delete(key);
    this.#parts.faults.report(workspaceId, {
      kind: "schedule_changed",
      message: `the stored schedule ${id} ${problem}; it is paused until someone changes it`,
      seq: entry?.seq,
    });
    return false;
  }

  /** The last entry that created, changed or deleted it. */
  async #newest(workspaceId: number, id: string): Promise<ScheduleEntry | undefined> {
    const last = await this.#parts.lists.size(workspaceId);
    let newest: ScheduleEntry | undefined;
    for (const action of CHANGES) {
      const span = { first: (newest?.seq ?? 0) + 1, last, order: "desc" } as const;
      const found = await this.#search(workspaceId, action, span, id);
      if (found) newest = found;
    }
    return newest;
  }

  async #search(
    workspaceId: number,
    action: string,
    span: { readonly first: number; readonly last: number; readonly order: "desc" },
    id: string,
  ): Promise<ScheduleEntry | undefined> {
    if (span.first > span.last) return undefined;
    for await (const entries of this.#parts.lists.read(workspaceId, { action }, span)) {
      for (const { bytes } of entries) {
        const entry = JSON.parse(bytes) as ScheduleEntry;
        if (entry.outcome === "succeeded" && entry.detail?.schedule === id) return entry;
      }
    }
    return undefined;
  }

  async #problemOf(schedule: Schedule, entry: ScheduleEntry | undefined): Promise<string | null> {
    if (!entry || entry.action === "schedule.delete") return "was never created, or was deleted";
    const { detail = {} } = entry;
    if (entry.actor !== schedule.runsAs) return "runs as an actor that did not request it";
    const isSame =
      detail.version === schedule.version &&
      detail.cron === schedule.cron &&
      detail.timezone === schedule.timezone &&
      detail.missed === schedule.missed &&
      detail.status === schedule.status &&
      (entry.tier ?? null) === schedule.tier &&
      (entry.agent ?? schedule.agent) === schedule.agent &&
      // Entries from earlier versions do not name the tools.
      (detail.tools ?? toolsOf(schedule)) === toolsOf(schedule);
    if (!isSame) return "differs from what was requested";
    return (await this.#hasPrompt(schedule, entry)) ? null : "has a prompt that was not requested";
  }

  async #hasPrompt(
    { workspaceId, prompt }: Schedule,
    { seq, input_hash: hash }: ScheduleEntry,
  ): Promise<boolean> {
    const row = await this.#parts.db.get<{ salt: Uint8Array }>(
      "SELECT salt FROM payloads WHERE workspace_id = $1 AND seq = $2 AND kind = 'input'",
      [workspaceId, seq],
    );
    return row ? isHashOf(hash, row.salt, prompt) : this.#wasErased(workspaceId, seq);
  }

  /** Whether the ledger records that the prompt's copy in the payloads was erased. */
  async #wasErased(workspaceId: number, seq: number): Promise<boolean> {
    const span = { first: seq + 1, last: await this.#parts.lists.size(workspaceId), order: "desc" } as const;
    if (span.first > span.last) return false;
    for (const action of ["payload.expire", "payload.erase"]) {
      for await (const entries of this.#parts.lists.read(workspaceId, { action }, span)) {
        for (const { bytes } of entries) {
          const erasure = parseErasure(JSON.parse(bytes) as object);
          if (erasure === null) continue;
          if ("upTo" in erasure ? erasure.upTo >= seq : erasure.payloads.some((named) => named.seq === seq))
            return true;
        }
      }
    }
    return false;
  }
}

/** A schedule's tools in the form used in its entries. */
export function toolsOf({ tools }: Pick<Schedule, "tools">): string {
  return tools.join(" ");
}
