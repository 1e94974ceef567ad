import type { Clock } from "../base/clock.ts";
import type { Channel, EntryDraft } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import { MinuteTally } from "../limits/tally.ts";

/** Sources counted separately per minute. Beyond that, they are counted together. */
const SOURCE_LIMIT = 1_000;

export interface RefusedCall {
  readonly source: string;
  readonly requestId: string;
  readonly channel: Channel;
}

export interface RefusedCallers {
  /** Records a source's first refusal in a minute and returns its seq. Counts the others and returns null. */
  note(workspaceId: number, call: RefusedCall, code: string): Promise<number | null>;
  /** Records the counts of past minutes. Called every few seconds. */
  sweep(workspaceId: number): Promise<void>;
}

/** Records refused unauthenticated calls: a flood of them must neither fill the ledger nor go unrecorded. */
export function createRefusedCallers(ledger: Pick<Ledger, "record">, clock: Clock): RefusedCallers {
  const tally = new MinuteTally(SOURCE_LIMIT);
  /** Counts of past minutes that are not on disk yet. */
  const unsaid = new Map<string, number>();

  function keep(source: string, count: number): void {
    const key = unsaid.has(source) || unsaid.size < SOURCE_LIMIT ? source : MinuteTally.overflow;
    unsaid.set(key, (unsaid.get(key) ?? 0) + count);
  }

  function draft(source: string, more: Partial<EntryDraft> & { count?: number }): EntryDraft {
    const { count, ...fields } = more;
    return {
      phase: "single",
      action: "auth.refused",
      outcome: "denied",
      channel: "rest",
      actor: "anonymous",
      detail: { source, count },
      ...fields,
    };
  }

  return {
    async note(workspaceId, call, code) {
      const now = clock.now();
      const notice = tally.note(call.source, now);
      if (notice.kind === "counted") return null;
      if (notice.before > 0) keep(notice.key, notice.before);
      return ledger.record(
        workspaceId,
        draft(notice.key, { code, channel: call.channel, requestId: call.requestId }),
      );
    },
    async sweep(workspaceId) {
      for (const { key, count } of tally.ended(clock.now())) keep(key, count);
      for (const [key, count] of [...unsaid]) {
        unsaid.delete(key);
        try {
          await ledger.record(workspaceId, draft(key, { count }));
        } catch (error) {
          keep(key, count);
          throw error;
        }
      }
    },
  };
}
