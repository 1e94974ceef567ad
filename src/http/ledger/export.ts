import { type Clock, timestamp } from "../../base/clock.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import { type Log, redact } from "../../base/log.ts";
import type { Call } from "../../gate/call.ts";
import type { BundleParts } from "../../ledger/article14/bundle.ts";
import type { Detail } from "../../ledger/entry.ts";
import { type LedgerFaults, reportChanged } from "../../ledger/faults.ts";
import type { TreeHead } from "../../ledger/proof/check.ts";
import { entryTest } from "../../ledger/reading/entry-filter.ts";
import { type AdmitRead, EvidenceReader } from "../../ledger/reading/evidence.ts";
import { evidenceLooks, evidenceSpan } from "../../ledger/reading/evidence-pages.ts";
import { collectPage, type EntryFilter, type ScanResult } from "../../ledger/reading/query.ts";
import type { Db } from "../../store/db.ts";
import type { Reply } from "../answer/answer.ts";
import { downloadStream, OpenDownloads, StalledReader } from "../answer/download.ts";
import { encodeCursor } from "../answer/page.ts";
import type { StreamReply } from "../endpoint.ts";
import { IDLE_SECONDS } from "../listen.ts";
import { viewEntry } from "./entry.ts";
import { ENTRY_FORMATS, type EntryFormat, type NegotiatedFormat } from "./format.ts";
import type { OwnEntries } from "./own-entries.ts";

export interface LedgerExportParts {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly heads: BundleParts["heads"];
  readonly faults: Pick<LedgerFaults, "report">;
  readonly keys: BundleParts["keys"];
  /** Days that prompts, outputs and arguments are kept. */
  readonly payloadDays: number;
}

/** The entries that a request asks for. */
export interface LedgerSelection {
  /** The caller's conditions, with the requested day as `from` and `to`. */
  readonly asked: Pick<EntryFilter, "agent" | "actor" | "action" | "tier" | "outsideTasks" | "from" | "to">;
  /** `asked`, narrowed to what the caller may see. */
  readonly filter: Omit<EntryFilter, "oversight">;
  /** Everything that the caller may see; `filter` matches nothing else. */
  readonly own?: OwnEntries | null | undefined;
  /** Whether the caller asks only for entries that it may not see. If so, the response has none. */
  readonly isOutside?: boolean | undefined;
  /** The requested UTC day; `filter` contains its bounds. */
  readonly date?: string | undefined;
  /** The requested task; `filter` contains what is known about it. */
  readonly task?: string | undefined;
  readonly order?: "asc" | "desc" | undefined;
  /** Entries per page. If unset, the response contains all entries. */
  readonly limit?: number | undefined;
  /** Continues after this seq. */
  readonly after?: number | undefined;
}

interface Download {
  readonly extension: string;
  readonly contentType: string;
  readonly chunks: AsyncGenerator<Uint8Array, void>;
}

/** The maximum number of blocks that one page reads, at about 0.8 ms each. The next page continues from there. */
const PAGE_BLOCKS = 256;
const ENCODER = new TextEncoder();

/**
 * The ledger in formats other than JSON: one page, or everything that a filter matches, produced while it is read.
 */
export class LedgerExports {
  readonly #parts: LedgerExportParts;
  readonly #open = new OpenDownloads();

  constructor(parts: LedgerExportParts) {
    this.#parts = parts;
  }

  /**
   * The ledger in its present state. Entries appended later, including the call's own, are not in the response.
   *
   * @throws Problem 422 `validation_failed` for options that the format does not support; 429 `rate_limited` for too
   *   many exports
   */
  async reply(
    call: Call,
    request: Request,
    chosen: NegotiatedFormat,
    selection: LedgerSelection,
  ): Promise<Reply | StreamReply> {
    const { format } = chosen;
    if (format === "json") throw new Error("a JSON list is not an export");
    const signed = await this.#parts.heads.committed(call.caller.workspaceId);
    const { size } = signed;
    call.about({ detail: detailOf(format, selection, size) });
    if (format === "article14") {
      call.about({ action: "ledger.export" });
      refusePage(selection);
      refuseOutside(selection);
      return this.#whole(call, request, selection, (signal) =>
        this.#bundle(call, signal, chosen, selection, size),
      );
    }
    const made = ENTRY_FORMATS[format];
    if (selection.limit !== undefined)
      return this.#page(call, request, chosen, made, selection.limit, selection, signed);
    return this.#whole(call, request, selection, (signal) => ({
      extension: made.extension,
      contentType: chosen.contentType,
      chunks: this.#entries(call, signal, made, selection, signed),
    }));
  }

  async #page(
    call: Call,
    request: Request,
    { contentType }: NegotiatedFormat,
    format: EntryFormat,
    limit: number,
    selection: LedgerSelection,
    signed: TreeHead,
  ): Promise<Reply> {
    const { order = "asc", after } = selection;
    const page = { order, limit, after, looks: PAGE_BLOCKS };
    const looks = this.#looks(call, request.signal, selection, signed);
    const found = await this.#reported(
      call,
      collectPage(call.caller.workspaceId, looks, page, request.signal),
    );
    return {
      status: 200,
      text: format.head() + format.lines(found.entries.map(viewEntry)),
      headers: {
        "content-type": contentType,
        vary: "accept",
        ...(found.next === null ? {} : { "gatehouse-next-cursor": encodeCursor(String(found.next)) }),
      },
    };
  }

  async #reported<T>({ caller }: Call, reading: Promise<T>): Promise<T> {
    try {
      return await reading;
    } catch (error) {
      reportChanged(this.#parts.faults, caller.workspaceId, error);
      throw error;
    }
  }

  #whole(
    call: Call,
    request: Request,
    selection: LedgerSelection,
    open: (signal: AbortSignal) => Download,
  ): StreamReply {
    const { clock, faults, log } = this.#parts;
    const { requestId, caller } = call;
    const release = this.#open.take(caller.workspaceId, requestId);
    const filename = fileNameOf(caller.workspace, selection.filter, clock.now());
    return {
      abandon: release,
      stream(own, expire) {
        // Also stops reading if the client is abandoned or the stream is cancelled without the request.
        const stopped = new AbortController();
        const { extension, contentType, chunks } = open(stopped.signal);
        const body = downloadStream(whileAllowed(call, chunks), {
          clock,
          signal: request.signal,
          stop: () => stopped.abort(),
          failed(error) {
            reportChanged(faults, caller.workspaceId, error);
            const isExpected = error instanceof StalledReader || error instanceof Problem;
            log[isExpected ? "warn" : "error"]("an export was interrupted", { request_id: requestId, error });
          },
          ended() {
            release();
            // The connection may serve other calls, and must not be kept for a client that is gone.
            expire(IDLE_SECONDS);
          },
        });
        return new Response(body, {
          headers: {
            ...own,
            "content-type": contentType,
            "content-disposition": `attachment; filename="${filename}.${extension}"`,
            vary: "accept",
          },
        });
      },
    };
  }

  /** Matches the entries' own bytes, each checked against the signed tree, because an export is evidence. */
  async *#entries(
    call: Call,
    signal: AbortSignal,
    format: EntryFormat,
    selection: LedgerSelection,
    signed: TreeHead,
  ): AsyncGenerator<Uint8Array, void> {
    const head = format.head();
    if (head !== "") yield ENCODER.encode(head);
    for await (const { entries } of this.#looks(call, signal, selection, signed)) {
      if (entries.length > 0) yield ENCODER.encode(format.lines(entries.map(viewEntry)));
    }
  }

  /** The matching entries, a block at a time. Their own bytes are matched, never an index. @throws LedgerChanged */
  async *#looks(
    call: Call,
    signal: AbortSignal,
    { filter, isOutside, task, order = "asc", after }: LedgerSelection,
    signed: TreeHead,
  ): AsyncGenerator<ScanResult, void> {
    if (isOutside) return;
    const evidence = await EvidenceReader.open(
      this.#parts.db,
      call.caller.workspaceId,
      signed,
      admission(call, signal),
    );
    const { from, to, task: _, ...fields } = filter;
    let { first, last } = await evidenceSpan(evidence, { from, to });
    if (after !== undefined) {
      if (order === "asc") first = Math.max(first, after + 1);
      else last = Math.min(last, after - 1);
    }
    const span = { first, last, order };
    yield* evidenceLooks(evidence, span, entryTest({ ...fields, task }));
  }

  #bundle(
    call: Call,
    signal: AbortSignal,
    { contentType }: NegotiatedFormat,
    { filter: { task: _, ...filter }, own, date }: LedgerSelection,
    size: number,
  ): Download {
    const { workspaceId: id, workspace: name, actor, person, role } = call.caller;
    const { db, heads, keys, clock, payloadDays } = this.#parts;
    async function* chunks(): AsyncGenerator<Uint8Array, void> {
      // Archive code is loaded only when needed.
      const { openBundle } = await import("../../ledger/article14/bundle.ts");
      yield* openBundle(
        { db, heads, keys, clock, payloadDays },
        {
          workspace: { id, name },
          filter,
          seesOnly: own ?? undefined,
          date,
          exportedBy: { actor, person: person ?? undefined, role: role ?? undefined },
          size,
          signal,
          admit: admission(call, signal),
        },
      );
    }
    return { extension: "zip", contentType, chunks: chunks() };
  }
}

/** Allows blocks to be read until the signal is aborted or the caller's token or session ends. */
function admission(call: Call, signal: AbortSignal): AdmitRead {
  return () => {
    signal.throwIfAborted();
    return call.requireRights();
  };
}

/**
 * The same chunks, while the caller's token or session is valid.
 * @throws Problem 401 `invalid_token` once it has ended
 */
async function* whileAllowed(
  call: Call,
  chunks: AsyncGenerator<Uint8Array, void>,
): AsyncGenerator<Uint8Array, void> {
  for await (const chunk of chunks) {
    const asked = call.requireRights();
    if (asked) await asked;
    yield chunk;
  }
}

/** A bundle covers a whole span, in ledger order. */
function refusePage({ asked: { from, to, outsideTasks }, task, order, limit, after }: LedgerSelection): void {
  if (from !== undefined && to !== undefined && from >= to) {
    throw invalidField(
      "/to",
      "must be later than `from` in an Article 14 export, and within `date` if that is given",
    );
  }
  // A verifier knows which filters a manifest may name. A task is not one of them.
  if (task !== undefined)
    throw invalidField(
      "/task",
      "is not supported in an Article 14 export: filter by the task's agent instead",
    );
  if (outsideTasks) throw invalidField("/outside_tasks", "is not supported in an Article 14 export");
  if (order === "desc") throw invalidField("/order", "must be asc in an Article 14 export");
  if (limit !== undefined)
    throw invalidField("/limit", "is not supported in an Article 14 export, which is always complete");
  if (after !== undefined)
    throw invalidField("/cursor", "is not supported in an Article 14 export, which is always complete");
}

/**
 * Refuses an empty bundle, because it would be a signed statement that nothing is known about an agent.
 * @throws Problem 404 `agent_not_found`
 */
function refuseOutside({ isOutside, asked: { agent }, own }: LedgerSelection): void {
  if (!isOutside) return;
  const isOther = agent !== undefined && agent !== own?.agent;
  const name = JSON.stringify(isOther ? agent : own?.agent);
  const detail = isOther
    ? `There is no agent named ${name}.`
    : `There was no agent named ${name} at that time.`;
  throw new Problem("agent_not_found", detail);
}

/** The detail of the entry that records the read. `size` is the ledger's size, if it was fixed. */
export function detailOf(
  format: string,
  { asked, own, date, task, order, limit, after }: Omit<LedgerSelection, "filter">,
  size?: number,
): Detail {
  const { actor, action, tier, outsideTasks, from, to } = asked;
  // An agent's token can read the entries that name it, which must not reveal another agent's name.
  const agent = own ? own.agent : asked.agent;
  const filters = {
    agent: agent && redact(agent),
    actor: actor && redact(actor),
    action: action && redact(action),
    tier,
    task: task && redact(task),
    outside_tasks: outsideTasks && 1,
    date,
    from,
    to,
  };
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  return { format, size, order, limit, after, ...(isFiltered ? { filters } : {}) };
}

/**
 * For example `gatehouse-default-20260101T000000Z-20260201T000000Z`: no character is special in a shell or a header.
 */
function fileNameOf(workspace: string, { from, to }: EntryFilter, now: number): string {
  const compact = (time: string) => time.replace(/\.\d+/, "").replace(/[-:]/g, "");
  return `gatehouse-${workspace}-${from === undefined ? "start" : compact(from)}-${compact(to ?? timestamp(now))}`;
}
