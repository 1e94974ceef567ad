import { Elysia } from "elysia";
import Type from "typebox";
import { optionalTimestamp, timestamp } from "../../base/clock.ts";
import { isId } from "../../base/ids.ts";
import type { Schedule } from "../../tasks/schedules/schedule.ts";
import type { Schedules } from "../../tasks/schedules/schedules.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, pageOf } from "../answer/page.ts";
import { refuseTwice } from "../body/body.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

const FIELDS = {
  name: Type.String({ minLength: 1, maxLength: 100, pattern: "^[^\\x00-\\x1f\\x7f]+$" }),
  agent: Type.String({ minLength: 1, maxLength: 63 }),
  prompt: Type.String({ minLength: 1, maxLength: 1_000_000 }),
  cron: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "Minute, hour, day, month, weekday; or a name such as `@daily`.",
  }),
};
const OPTIONAL = {
  timezone: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 64,
      description: "An IANA time zone, such as `Europe/Berlin`. Default: `UTC`.",
    }),
  ),
  tools: Type.Optional(
    Type.Array(Type.String({ minLength: 1, maxLength: 128 }), {
      maxItems: 128,
      description: "Tools each task may call. Default: none.",
    }),
  ),
  metadata: Type.Optional(
    Type.Record(Type.String({ pattern: "^[\\s\\S]{1,64}$" }), Type.String({ maxLength: 512 }), {
      additionalProperties: false,
      maxProperties: 16,
    }),
  ),
  missed: Type.Optional(
    Type.Enum(["skip", "once"], {
      description:
        "What happens to runs missed while the server was down: `skip` (the default) drops them; `once` runs the task once to catch up.",
    }),
  ),
  status: Type.Optional(Type.Enum(["active", "paused"])),
};
const Tier = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });
const ScheduleCreate = Type.Object(
  { ...FIELDS, ...OPTIONAL, tier: Type.Optional(Tier) },
  { additionalProperties: false },
);
const ScheduleChange = Type.Object(
  {
    name: Type.Optional(FIELDS.name),
    agent: Type.Optional(FIELDS.agent),
    prompt: Type.Optional(FIELDS.prompt),
    cron: Type.Optional(FIELDS.cron),
    ...OPTIONAL,
    tier: Type.Optional(Type.Union([Tier, Type.Null()])),
  },
  { additionalProperties: false },
);
const tag = "Schedules";

/** Tasks that run at set times. */
export function scheduleRoutes(endpoints: EndpointContext, { schedules }: { readonly schedules: Schedules }) {
  const create = endpoint(
    endpoints,
    {
      action: "schedule.create",
      scope: "tasks:write",
      summary: "Dispatch a task at set times, with the rights that this token has at those times",
      tag,
      body: ScheduleCreate,
      status: 201,
    },
    async ({ call, body }) => {
      refuseTwice("/tools", body.tools);
      const schedule = await schedules.create(call, {
        name: body.name,
        agent: body.agent,
        prompt: body.prompt,
        cron: body.cron,
        timezone: body.timezone ?? "UTC",
        tier: body.tier ?? null,
        tools: body.tools ?? [],
        metadata: body.metadata ?? {},
        missed: body.missed ?? "skip",
        status: body.status ?? "active",
      });
      return {
        status: 201,
        body: viewSchedule(schedule),
        headers: { Location: `/v1/schedules/${schedule.id}` },
      };
    },
  );

  const list = endpoint(
    endpoints,
    {
      action: "schedule.list",
      scope: "tasks:read",
      summary: "List schedules, newest first",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const before = decodeCursor(cursor, (key) => isId("sch", key));
      const found = await schedules.list(call.caller, limit, before);
      return { status: 200, body: pageOf(found.schedules, found.more, ({ id }) => id, viewSchedule) };
    },
  );

  const read = endpoint(
    endpoints,
    { action: "schedule.read", scope: "tasks:read", summary: "Read a schedule", tag, status: 200 },
    async ({ call, params: { id = "" } }) => ({
      status: 200,
      body: viewSchedule(await schedules.get(call, id)),
    }),
  );

  const change = endpoint(
    endpoints,
    {
      action: "schedule.update",
      scope: "tasks:write",
      summary: "Change a schedule; from then on it runs with the rights of this token",
      tag,
      body: ScheduleChange,
      status: 200,
    },
    async ({ call, body, params: { id = "" } }) => {
      refuseTwice("/tools", body.tools);
      return { status: 200, body: viewSchedule(await schedules.change(call, id, body)) };
    },
  );

  const remove = endpoint(
    endpoints,
    {
      action: "schedule.delete",
      scope: "tasks:write",
      summary: "Delete a schedule; tasks that it has dispatched continue",
      tag,
      status: 204,
    },
    async ({ call, params: { id = "" } }) => {
      await schedules.delete(call, id);
      return { status: 204 };
    },
  );

  return new Elysia({ prefix: "/v1/schedules" })
    .get("", list.handle, list.hook)
    .post("", create.handle, create.hook)
    .get("/:id", read.handle, read.hook)
    .patch("/:id", change.handle, change.hook)
    .delete("/:id", remove.handle, remove.hook);
}

function viewSchedule(schedule: Schedule) {
  const { last } = schedule;
  return {
    id: schedule.id,
    name: schedule.name,
    agent: schedule.agent,
    prompt: schedule.prompt,
    cron: schedule.cron,
    timezone: schedule.timezone,
    tier: schedule.tier,
    tools: schedule.tools,
    metadata: schedule.metadata,
    missed: schedule.missed,
    status: schedule.status,
    version: schedule.version,
    created_by: schedule.createdBy,
    runs_as: schedule.runsAs,
    created_at: timestamp(schedule.createdAt),
    updated_at: timestamp(schedule.updatedAt),
    next_run_at: optionalTimestamp(schedule.nextAt),
    last_run: last && { scheduled_at: timestamp(last.at), task: last.task, code: last.code },
  };
}
