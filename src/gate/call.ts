import { isAgentName } from "../access/agents.ts";
import type { Caller } from "../access/caller.ts";
import { timestamp } from "../base/clock.ts";
import { redact } from "../base/log.ts";
import type { Channel, Detail, Draft, Oversight } from "../ledger/entry.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { Db, Tx } from "../store/db.ts";

/** What a call is about, as its ledger entry shows it. */
export interface Subject {
  readonly action?: string;
  readonly agent?: string;
  readonly tier?: number;
  readonly model?: string;
  readonly task?: string;
  readonly tool?: string;
  readonly detail?: Detail;
  readonly oversight?: Oversight;
}

/** Appends the call's entry at this point of its transaction, and answers its seq. Once a call. */
export type Record = (more?: Partial<Draft>) => Promise<number>;

/** One call on its way: who makes it, and how it writes. Handlers get nothing else of the gate. */
export class Call {
  readonly caller: Caller;
  readonly requestId: string;
  readonly channel: Channel;
  readonly #action: string;
  readonly #db: Db;
  readonly #ledger: Ledger;
  #subject: Subject = {};
  #seq: number | null = null;

  constructor(
    from: { caller: Caller; requestId: string; channel: Channel; action: string },
    db: Db,
    ledger: Ledger,
  ) {
    this.caller = from.caller;
    this.requestId = from.requestId;
    this.channel = from.channel;
    this.#action = from.action;
    this.#db = db;
    this.#ledger = ledger;
  }

  /** The seq of this call's entry, once it is on disk. */
  get ledgerSeq(): number | null {
    return this.#seq;
  }

  /** Adds to what the entry will say, also when the call is refused after this. */
  about(subject: Subject): void {
    this.#subject = { ...this.#subject, ...subject };
  }

  /** Names the person behind a decision. */
  decided(decision: string, now: number): void {
    const { person, name, role } = this.caller;
    this.about({
      oversight: {
        person: person ?? name,
        ...(role === null ? {} : { role }),
        decision,
        decided_at: timestamp(now),
      },
    });
  }

  /**
   * Does the call's writing and records it, in one transaction. Where `work` does not call `record` itself, the entry
   * follows its writes.
   */
  async commit<T>(work: (tx: Tx, record: Record) => Promise<T>): Promise<T> {
    let seq: number | null = null;
    const value = await this.#db.tx(async (tx) => {
      const record: Record = async (more = {}) => {
        if (seq !== null) throw new Error("a call has one entry");
        seq = await this.#ledger.append(tx, this.caller.workspaceId, {
          ...this.draft("succeeded"),
          ...more,
        });
        return seq;
      };
      const done = await work(tx, record);
      if (seq === null) await record();
      return done;
    });
    this.#seq = seq;
    return value;
  }

  /** Records that what the call asks for is about to be done; resolves with the entry's seq once it is on disk. */
  async intend(input: string): Promise<number> {
    if (this.#seq !== null) throw new Error("a call has one entry");
    const draft: Draft = { ...this.draft("allowed"), phase: "intent", input };
    this.#seq = await this.#ledger.record(this.caller.workspaceId, draft);
    return this.#seq;
  }

  /** Records a call that wrote nothing, or one that was refused. */
  async record(outcome: Draft["outcome"], code?: string): Promise<void> {
    this.#seq = await this.#ledger.record(this.caller.workspaceId, this.draft(outcome, code));
  }

  draft(outcome: Draft["outcome"], code?: string): Draft {
    const subject = this.#subject;
    return {
      phase: "single",
      action: subject.action ?? this.#action,
      outcome,
      code,
      channel: this.channel,
      requestId: this.requestId,
      actor: this.caller.actor,
      agent: agentOf(subject.agent ?? this.caller.agent?.name),
      tier: subject.tier,
      model: subject.model,
      task: subject.task,
      tool: subject.tool,
      detail: subject.detail,
      oversight: subject.oversight,
    };
  }
}

/** What a client names stays in the ledger for ever: only what can be an agent's name, and no secret put in its place. */
function agentOf(name: string | undefined): string | undefined {
  return name !== undefined && isAgentName(name) && redact(name) === name ? name : undefined;
}
