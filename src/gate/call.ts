import { isRecordedName } from "../access/agent-names.ts";
import type { Caller } from "../access/caller.ts";
import { type Clock, timestamp } from "../base/clock.ts";
import type { Via } from "../base/via.ts";
import type { Channel, Detail, EntryDraft, Oversight } from "../ledger/entry.ts";
import type { Admit, Ledger } from "../ledger/ledger.ts";
import { type Db, type Sql, StoreUnavailable, type Tx } from "../store/db.ts";
import { requireKnownRights, requireRights } from "./rights.ts";
import type { DecisionFields, LateRecords } from "./unwritten-decisions.ts";

/** The subject of a call, for its ledger entry. */
export interface CallSubject {
  readonly action?: string;
  readonly agent?: string;
  readonly tier?: number;
  readonly model?: string;
  readonly task?: string;
  readonly tool?: string;
  readonly detail?: Detail;
  readonly oversight?: Oversight;
}

/** Appends the call's entry at this point of its transaction and returns its seq. At most once per call. */
export type RecordEntry = (more?: Partial<EntryDraft>) => Promise<number>;

/**
 * A person's decision that takes effect when it is made: a stop, a cancel, signing out. Its entry is written in the
 * transaction that carries it out, immediately or, if the store cannot be written, late.
 */
export interface PersonDecision {
  /** Milliseconds since the Unix epoch. */
  readonly decidedAt: number;
  facts(): DecisionFields;
  /** Appends the entry. A late entry contains its delay in milliseconds (`detail.late_ms`). */
  write(tx: Tx): Promise<void>;
  /** Marks the decision as refused by the store: the call is answered before it is written. */
  defer(): void;
}

export interface CallParts {
  readonly caller: Caller;
  readonly requestId: string;
  readonly channel: Channel;
  readonly action: string;
  /** See `Operation.urgent`. */
  readonly isUrgent?: boolean;
  readonly via?: Via | undefined;
}

/** A call in progress: its caller, and its ways to write. Handlers see no other part of the gate. */
export class Call {
  readonly caller: Caller;
  readonly requestId: string;
  readonly channel: Channel;
  /** The Gatehouse instances that the request has passed through before. */
  readonly via: Via;
  readonly #action: string;
  readonly #isUrgent: boolean;
  readonly #db: Db;
  readonly #ledger: Ledger;
  readonly #late: LateRecords;
  readonly #count: (() => Promise<void>) | undefined;
  #subject: CallSubject = {};
  #seq: number | null = null;
  #isDeferred = false;

  constructor(from: CallParts, db: Db, ledger: Ledger, late: LateRecords, count?: () => Promise<void>) {
    this.#count = count;
    this.caller = from.caller;
    this.requestId = from.requestId;
    this.channel = from.channel;
    this.via = from.via ?? [];
    this.#action = from.action;
    this.#isUrgent = from.isUrgent ?? false;
    this.#db = db;
    this.#ledger = ledger;
    this.#late = late;
  }

  /** The seq of this call's entry, once it is on disk. */
  get ledgerSeq(): number | null {
    return this.#seq;
  }

  /**
   * Whether a decision of this call has taken effect but its entry will be written later. The answer does not wait
   * for it.
   */
  get isDeferred(): boolean {
    return this.#isDeferred;
  }

  /**
   * The same call in another workspace, with its own entry there. For decisions of the node's operator that cover
   * several workspaces.
   */
  elsewhere(workspace: { readonly id: number; readonly name: string }): Call {
    const caller = { ...this.caller, workspaceId: workspace.id, workspace: workspace.name };
    const { requestId, channel } = this;
    const from = { caller, requestId, channel, action: this.#action, isUrgent: this.#isUrgent };
    return new Call(from, this.#db, this.#ledger, this.#late);
  }

  /** The same call once more, with the same subject and its own entry: the next attempt to carry it out. */
  again(): Call {
    const { caller, requestId, channel, via } = this;
    const from = { caller, requestId, channel, via, action: this.#action, isUrgent: this.#isUrgent };
    const next = new Call(from, this.#db, this.#ledger, this.#late, this.#count);
    next.about(this.#subject);
    return next;
  }

  /**
   * Counts the call against its workspace's request limit. For an operation whose request body determines whether it
   * counts (`counted: "later"`).
   * @throws Problem 429 `rate_limited`
   */
  async count(): Promise<void> {
    await this.#count?.();
  }

  /** Adds to the call's entry, even if the call is refused later. */
  about(subject: CallSubject): void {
    this.#subject = { ...this.#subject, ...subject };
  }

  /**
   * Refuses the call if its caller's token or session has since ended, as `sql` sees it. `commit`, `intend`, `record`
   * and decisions call it themselves. Code that changes or sends something in another way MUST call it in the
   * transaction that does so. Undefined if the answer is known immediately. An urgent call outside of transactions has the
   * rights that were last read while the store cannot be read.
   * @throws Problem 401 `invalid_token`
   */
  requireRights(sql?: Sql): Promise<void> | undefined {
    if (sql) return requireRights(this.caller, sql);
    return this.#isUrgent
      ? requireKnownRights(this.caller, this.#db.urgent)
      : requireRights(this.caller, this.#db.urgent);
  }

  /**
   * Names the person behind a decision, which becomes this call's entry. The decision is final from here on, provided
   * that nothing is awaited before it takes effect: the end of the token later does not undo it.
   * @throws Problem 401 `invalid_token`
   */
  async decide(decision: string, clock: Clock): Promise<PersonDecision> {
    await this.requireRights();
    const { person, name, role } = this.caller;
    const decidedAt = clock.now();
    const oversight: Oversight = {
      person: person ?? name,
      ...(role === null ? {} : { role }),
      decision,
      decided_at: timestamp(decidedAt),
    };
    this.about({ oversight });
    return this.#decision(decidedAt, clock, { ...oversight });
  }

  /**
   * A caller's decision about its own access, such as signing out. It is not human oversight, but takes effect like a
   * decision.
   * @throws Problem 401 `invalid_token`
   */
  async decideOwn(facts: DecisionFields, clock: Clock): Promise<PersonDecision> {
    await this.requireRights();
    const decidedAt = clock.now();
    return this.#decision(decidedAt, clock, { ...facts, decided_at: timestamp(decidedAt) });
  }

  #decision(decidedAt: number, clock: Clock, told: DecisionFields): PersonDecision {
    return {
      decidedAt,
      facts: () => {
        const { action, actor, requestId, agent, task } = this.draft("succeeded");
        const { workspace } = this.caller;
        return { action, workspace, actor, ...told, agent, task, request_id: requestId };
      },
      defer: () => {
        this.#isDeferred = true;
      },
      write: async (tx) => {
        const draft = this.draft("succeeded");
        const detail = { ...draft.detail, late_ms: Math.max(0, clock.now() - decidedAt) };
        const seq = await this.#append(tx, this.#isDeferred ? { ...draft, detail } : draft);
        tx.onCommit(() => {
          this.#seq = seq;
        });
      },
    };
  }

  /**
   * Carries out a decision and records it as this call's entry, in one transaction. The caller's rights are not
   * checked again: they counted when the decision was made, and a decision already in effect is recorded. If the
   * store cannot be written, both are kept in memory and written later: see `isDeferred`.
   * @throws Problem 503 `ledger_unavailable` if too many decisions are already waiting
   */
  async commitDecision(decision: PersonDecision, work: (tx: Tx) => Promise<void>): Promise<void> {
    const write = async (tx: Tx) => {
      await work(tx);
      await decision.write(tx);
    };
    try {
      // Earlier decisions are written first, so the ledger has them in order.
      if (this.#late.size > 0) await this.#late.flush();
      await this.#db.tx(this.caller.workspaceId, write);
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error;
      decision.defer();
      this.#late.keep({ workspaceId: this.caller.workspaceId, write, facts: decision.facts() });
    }
  }

  /**
   * Writes the pending decisions. For a call that may undo one of them and so MUST follow it.
   * @throws StoreUnavailable
   */
  async commitEarlierDecisions(): Promise<void> {
    await this.#late.flush();
  }

  /**
   * Runs the call's writes and records it, in one transaction. If `work` does not call `record` itself, the entry
   * follows its writes.
   * @throws Problem 401 `invalid_token` if the caller's rights have ended; in that case nothing is written
   */
  async commit<T>(work: (tx: Tx, record: RecordEntry) => Promise<T>): Promise<T> {
    const { value, entry } = await this.#db.tx(this.caller.workspaceId, async (tx) => {
      let seq: number | null = null;
      const asked = this.requireRights(tx);
      if (asked) await asked;
      const record: RecordEntry = async (more = {}) => {
        if (seq !== null) throw new Error("a call can have only one entry");
        seq = await this.#append(tx, { ...this.draft("succeeded"), ...more });
        return seq;
      };
      const value = await work(tx, record);
      return { value, entry: seq ?? (await record()) };
    });
    this.#seq = entry;
    return value;
  }

  /**
   * Records that the call is about to be carried out. Resolves with the entry's seq once it is on disk.
   * @param admit also called in the entry's transaction; throws if the call must not be made after all
   * @throws Problem 401 `invalid_token` if the caller's rights have ended
   */
  async intend(input: string | undefined, admit?: Admit): Promise<number> {
    if (this.#seq !== null) throw new Error("a call can have only one entry");
    const draft: EntryDraft = { ...this.draft("allowed"), phase: "intent", input };
    const both: Admit = (tx) => {
      const asked = this.requireRights(tx);
      return asked ? asked.then(() => admit?.(tx)) : admit?.(tx);
    };
    this.#seq = await this.#ledger.record(this.caller.workspaceId, draft, both);
    return this.#seq;
  }

  /**
   * Records a call that wrote nothing, or that was refused.
   * @throws Problem 401 `invalid_token` if the outcome is `succeeded` but the caller's rights have ended
   */
  async record(outcome: EntryDraft["outcome"], code?: string): Promise<void> {
    const admit = outcome === "succeeded" ? this.#admit : undefined;
    this.#seq = await this.#ledger.record(this.caller.workspaceId, this.draft(outcome, code), admit);
  }

  readonly #admit = (tx: Tx): Promise<void> | undefined => this.requireRights(tx);

  #append(tx: Tx, draft: EntryDraft): Promise<number> {
    if (this.#seq !== null) throw new Error("a call can have only one entry");
    return this.#ledger.append(tx, this.caller.workspaceId, draft);
  }

  draft(outcome: EntryDraft["outcome"], code?: string): EntryDraft {
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

/**
 * Everything that a client sends stays in the ledger forever, so only valid agent names are recorded, and no secret
 * sent in place of one.
 */
function agentOf(name: string | undefined): string | undefined {
  return name !== undefined && isRecordedName(name) ? name : undefined;
}
