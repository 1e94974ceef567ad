import { Elysia } from "elysia";
import Type from "typebox";
import type { Agents } from "../../access/agents.ts";
import type { Caller } from "../../access/caller.ts";
import { invalidField, Problem } from "../../base/errors.ts";
import type { LedgerLists } from "../../ledger/reading/lists.ts";
import type { NamedTask } from "../../ledger/reading/query.ts";
import type { Db } from "../../store/db.ts";
import { findTaskFacts } from "../../tasks/rows/tasks.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, pageUpTo } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { isSeq, viewEntry } from "../ledger/entry.ts";
import { detailOf, type LedgerExportParts, LedgerExports } from "../ledger/export.ts";
import { chooseFormat, LEDGER_FORMATS, LEDGER_MEDIA_TYPES } from "../ledger/format.ts";
import { type OwnEntries, ownEntries, seesEntry } from "../ledger/own-entries.ts";
import { instant, isDay } from "../time.ts";

const DAY_MS = 86_400_000;
const Time = Type.String({ minLength: 1, maxLength: 40 });
const text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 200, description }));
const EntriesQuery = Type.Object(
  {
    ...PAGE,
    agent: text("Entries about this agent."),
    actor: text("Entries caused by this actor, such as `token:tok_…` or `user:ada`."),
    action: text("Entries with this action, such as `task.dispatch`."),
    task: text("Entries that name this task, even if it ended long ago. Not supported for `article14`."),
    outside_tasks: Type.Optional(
      Type.Boolean({
        description:
          "`true`: only entries that do not name a task. With `action=model.call`: clients' own model calls. Not supported for " +
          "`article14`.",
      }),
    ),
    tier: Type.Optional(Type.Integer({ minimum: 1 })),
    date: Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "A UTC day." })),
    from: Type.Optional(Time),
    to: Type.Optional(Time),
    order: Type.Optional(Type.Enum(["asc", "desc"])),
    format: Type.Optional(
      Type.Enum([...LEDGER_FORMATS], {
        description:
          "Default: the format that the Accept header prefers, else `json`. `ndjson` and `csv` are complete unless `limit` is " +
          "given; then the header Gatehouse-Next-Cursor has the next cursor. `article14` is a zip file.",
      }),
    ),
  },
  { additionalProperties: false },
);

export interface LedgerRouteParts extends LedgerExportParts {
  readonly agents: Pick<Agents, "byId">;
  readonly lists: LedgerLists;
}

export function ledgerRoutes(endpoints: EndpointContext, parts: LedgerRouteParts) {
  const { db, lists, agents } = parts;
  const exports = new LedgerExports(parts);
  const tag = "Ledger";

  const list = endpoint(
    endpoints,
    {
      action: "ledger.read",
      scope: "ledger:read",
      summary:
        "Read entries, oldest first unless `order=desc`. A page of a filtered list may have fewer than `limit` entries, or " +
        "none: continue while there is a `next_cursor`",
      tag,
      query: EntriesQuery,
      headers: { Accept: "The format, unless the query specifies one." },
      formats: Object.values(LEDGER_MEDIA_TYPES),
      status: 200,
    },
    async ({ call, query, request }) => {
      const { workspaceId } = call.caller;
      const { limit, order, actor, action, tier, date, task } = query;
      const own = await ownEntries(agents, call.caller);
      const cursor = decodeCursor(query.cursor, isSeq);
      const after = cursor === undefined ? undefined : Number(cursor);
      const chosen = chooseFormat(query.format, request.headers.get("accept"));
      const outsideTasks = query.outside_tasks === true ? (true as const) : undefined;
      const times = timeRange(date, query.from, query.to);
      const asked = { agent: query.agent, actor, action, tier, outsideTasks, ...times };
      const isOutside = own !== null && !overlaps(own, asked);
      const named = task === undefined ? undefined : await namedTask(db, call.caller, task);
      const filter = {
        ...asked,
        ...(own && { agent: own.agent, agentSince: own.since, from: later(own.since, asked.from) }),
        task: isOutside ? null : named,
      };
      if (chosen.format !== "json") {
        return exports.reply(call, request, chosen, {
          asked,
          filter,
          own,
          isOutside,
          date,
          task,
          order,
          limit,
          after,
        });
      }
      call.about({ detail: detailOf("json", { asked, own, date, task, order, limit, after }) });
      const page = { order: order ?? "asc", limit: limit ?? DEFAULT_LIMIT, after };
      const found = await lists.find(workspaceId, filter, page, request.signal);
      const next = found.next === null ? null : String(found.next);
      return {
        status: 200,
        body: pageUpTo(found.entries, next, ({ seq }) => String(seq), viewEntry),
        headers: { vary: "accept" },
      };
    },
  );

  const read = endpoint(
    endpoints,
    {
      action: "ledger.read",
      scope: "ledger:read",
      operationId: "ledger_entry",
      summary: "Read one entry with the exact bytes that are hashed",
      tag,
      status: 200,
    },
    async ({ call, params: { seq = "" } }) => {
      const own = await ownEntries(agents, call.caller);
      const entry = isSeq(seq) ? await lists.entry(call.caller.workspaceId, Number(seq)) : undefined;
      if (!entry || !seesEntry(own, entry)) {
        throw new Problem("not_found", `There is no entry ${JSON.stringify(seq)}.`);
      }
      call.about({ detail: { target_seq: entry.seq } });
      return {
        status: 200,
        body: { ...viewEntry(entry), bytes: Buffer.from(entry.bytes).toString("base64") },
      };
    },
  );

  return new Elysia({ prefix: "/v1/ledger" })
    .get("", list.handle, list.hook)
    .get("/:seq", read.handle, read.hook);
}

/** Null if the workspace has no such task, or the task belongs to an agent other than the one the caller acts as. */
async function namedTask(db: Db, { workspaceId, agent }: Caller, id: string): Promise<NamedTask | null> {
  const task = await findTaskFacts(db, workspaceId, id);
  return task && (!agent || agent.id === task.agentId)
    ? { id: task.id, agent: task.agent, dispatchSeq: task.dispatchSeq }
    : null;
}

/** Whether a caller limited to its own entries may see any of the requested entries. */
function overlaps(
  own: OwnEntries,
  { agent, to }: { readonly agent: string | undefined; readonly to: string | undefined },
): boolean {
  return (agent === undefined || agent === own.agent) && (to === undefined || to > own.since);
}

/** The later of two RFC 3339 times in UTC with milliseconds. */
function later(time: string, other: string | undefined): string {
  return other === undefined || other < time ? time : other;
}

/** If several conditions are given, all must be met. */
function timeRange(date: string | undefined, from: string | undefined, to: string | undefined) {
  let start = from === undefined ? undefined : instant("/from", from);
  let end = to === undefined ? undefined : instant("/to", to);
  if (date !== undefined) {
    if (!isDay(date)) throw invalidField("/date", "is not a day");
    const day = Date.parse(`${date}T00:00:00.000Z`);
    start = Math.max(day, start ?? day);
    end = Math.min(day + DAY_MS, end ?? day + DAY_MS);
  }
  return {
    from: start === undefined ? undefined : new Date(start).toISOString(),
    to: end === undefined ? undefined : new Date(end).toISOString(),
  };
}
