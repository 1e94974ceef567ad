import { Elysia } from "elysia";
import Type from "typebox";
import { invalidField, Problem } from "../../base/errors.ts";
import { findEntries, findEntry, type StoredEntry } from "../../ledger/query.ts";
import type { Db } from "../../store/db.ts";
import { type Door, endpoint } from "../endpoint.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, pageUpTo } from "../page.ts";

const DAY_MS = 86_400_000;
const Time = Type.String({ minLength: 1, maxLength: 40 });
const text = (description: string) =>
  Type.Optional(Type.String({ minLength: 1, maxLength: 200, description }));
const EntriesQuery = Type.Object(
  {
    ...PAGE,
    agent: text("Entries about this agent."),
    actor: text("Entries of this actor, such as `token:tok_…` or `user:ada`."),
    action: text("Entries of this action, such as `task.dispatch`."),
    tier: Type.Optional(Type.Integer({ minimum: 1 })),
    date: Type.Optional(Type.String({ pattern: "^\\d{4}-\\d{2}-\\d{2}$", description: "A UTC day." })),
    from: Type.Optional(Time),
    to: Type.Optional(Time),
    order: Type.Optional(Type.Enum(["asc", "desc"])),
    format: Type.Optional(Type.Enum(["json"])),
  },
  { additionalProperties: false },
);
const RFC3339 =
  /^(?<day>\d{4}-\d{2}-\d{2})[Tt](?:[01]\d|2[0-3]):\d{2}:\d{2}(?:\.\d{1,3}(?<finer>\d{0,6}))?(?:[Zz]|[+-]\d{2}:\d{2})$/;
const SEQ = /^[1-9]\d{0,14}$/;

export function ledgerRoutes(door: Door, { db }: { readonly db: Db }) {
  const tag = "Ledger";

  const list = endpoint(
    door,
    {
      action: "ledger.read",
      scope: "ledger:read",
      summary:
        "Read entries, oldest first unless `order=desc`. A page of a filtered search may hold fewer than `limit`, or " +
        "none: it goes on as long as there is a `next_cursor`",
      tag,
      query: EntriesQuery,
      status: 200,
    },
    async ({ call, query, request }) => {
      const { limit = DEFAULT_LIMIT, order = "asc", agent, actor, action, tier } = query;
      const cursor = decodeCursor(query.cursor, (key) => SEQ.test(key));
      const found = await findEntries(
        db,
        call.caller.workspaceId,
        { agent, actor, action, tier, ...timeRange(query.date, query.from, query.to) },
        { order, limit, after: cursor === undefined ? undefined : Number(cursor) },
        request.signal,
      );
      const next = found.next === null ? null : String(found.next);
      return { status: 200, body: pageUpTo(found.entries, next, viewEntry) };
    },
  );

  const read = endpoint(
    door,
    {
      action: "ledger.read",
      scope: "ledger:read",
      summary: "Read one entry with exactly the bytes that are hashed",
      tag,
      status: 200,
    },
    async ({ call, params: { seq = "" } }) => {
      const entry = SEQ.test(seq) ? await findEntry(db, call.caller.workspaceId, Number(seq)) : undefined;
      if (!entry) throw new Problem("not_found", `There is no entry ${JSON.stringify(seq)}.`);
      return {
        status: 200,
        body: { ...viewEntry(entry), bytes: Buffer.from(entry.bytes).toString("base64") },
      };
    },
  );

  return new Elysia({ prefix: "/v1/ledger" }).get("", list.handle, list.hook).get("/:seq", read.handle, {
    ...read.hook,
    detail: { ...read.hook.detail, operationId: "ledger_entry" },
  });
}

/** Both conditions hold where a day and a range are given. */
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

/** Milliseconds, rounded up: an entry's time has no finer part, so that it is before a time exactly when it is before this. */
function instant(path: string, text: string): number {
  // A `+` of an offset arrives as a space where the client did not encode it.
  const given = text.replace(" ", "+");
  const parts = RFC3339.exec(given)?.groups;
  const time = parts?.day !== undefined && isDay(parts.day) ? Date.parse(given) : Number.NaN;
  if (Number.isNaN(time) || Math.abs(time) > 253_402_300_799_999) {
    throw invalidField(path, "must be an RFC 3339 time, such as 2026-01-31T08:00:00Z");
  }
  return /[1-9]/.test(parts?.finer ?? "") ? time + 1 : time;
}

/** False for 30 February, which `Date.parse` takes for a day in March. */
function isDay(text: string): boolean {
  const day = Date.parse(`${text}T00:00:00.000Z`);
  return !Number.isNaN(day) && new Date(day).toISOString().startsWith(text);
}

const ABSENT = {
  ref: null,
  code: null,
  request_id: null,
  agent: null,
  tier: null,
  model: null,
  task: null,
  tool: null,
  input_hash: null,
  output_hash: null,
  credits: null,
  oversight: null,
  detail: null,
};

/** The entry as JSON with every field of the contract; null where the stored bytes leave one out. */
function viewEntry(entry: StoredEntry): object {
  return { ...ABSENT, ...(JSON.parse(entry.bytes) as object), leaf: Buffer.from(entry.leaf).toString("hex") };
}
