import { Elysia } from "elysia";
import Type from "typebox";
import { invalidField } from "../../base/errors.ts";
import { isId } from "../../base/ids.ts";
import type { TaskService } from "../../tasks/service.ts";
import { TASK_STATUSES } from "../../tasks/task.ts";
import { viewTask, viewTaskBriefly } from "../../tasks/view.ts";
import { DEFAULT_LIMIT, decodeCursor, PAGE, pageOf } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";
import { type EventReplyParts, eventReply } from "../streams/event-reply.ts";
import { streamMemory } from "../streams/stream-memory.ts";
import { dispatchRequest, TaskCreate } from "../task-body.ts";

const StreamQuery = Type.Object(
  { stream: Type.Optional(Type.Boolean({ description: "Answer with the task's events as they happen." })) },
  { additionalProperties: false },
);
const EventsQuery = Type.Object(
  { after: Type.Optional(Type.Integer({ minimum: 0, description: "Like the header Last-Event-ID." })) },
  { additionalProperties: false },
);
const KEY_FORM = /^[\x21-\x7e]{1,255}$/;
const STREAM_PARAMETER = /[?&]stream=true(?:&|$)/;

export interface TaskRouteParts extends EventReplyParts {
  readonly tasks: TaskService;
}

export function taskRoutes(endpoints: EndpointContext, { tasks, ...replies }: TaskRouteParts) {
  const { streams } = replies;
  const tag = "Tasks";

  const create = endpoint(
    endpoints,
    {
      action: "task.dispatch",
      scope: "tasks:write",
      summary: "Dispatch a task; `stream=true` answers with its events",
      tag,
      counted: (request) => !STREAM_PARAMETER.test(request.url),
      body: TaskCreate,
      query: StreamQuery,
      headers: {
        "Idempotency-Key":
          "1 to 255 printable characters. The same key and body within 24 hours return the first task.",
      },
      streams: true,
      status: 202,
    },
    async ({ call, body, query, request }) => {
      const dispatched = dispatchRequest(body);
      const key = idempotencyKey(request.headers);
      // Taken before anything is dispatched, so a refused stream has not started a task.
      const place = query.stream === true ? streams.take(call.caller.workspaceId) : null;
      const { id, replayed } = await tasks.dispatch(call, dispatched, key).catch((error: unknown) => {
        place?.release();
        throw error;
      });
      const headers = {
        Location: `/v1/tasks/${id}`,
        "Gatehouse-Task-Id": id,
        ...(replayed ? { "Idempotency-Replayed": "true" } : {}),
      };
      if (place === null) return { status: 202, body: { id, status: "queued" }, headers };
      const { caller } = call;
      const memory = streamMemory(endpoints.bodies, caller.workspaceId, place);
      const reader = tasks.read({ workspaceId: caller.workspaceId, id }, 0, memory);
      return eventReply(replies, { caller, request }, { place, memory }, reader, headers);
    },
  );

  const list = endpoint(
    endpoints,
    {
      action: "task.list",
      scope: "tasks:read",
      summary: "List tasks, newest first; a page ends early if its texts would exceed 4 MiB",
      tag,
      query: Type.Object(
        {
          ...PAGE,
          agent: Type.Optional(Type.String({ minLength: 1, maxLength: 63 })),
          status: Type.Optional(Type.Enum([...TASK_STATUSES])),
        },
        { additionalProperties: false },
      ),
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor, agent, status } }) => {
      const before = decodeCursor(cursor, (key) => isId("task", key));
      const found = await tasks.list(call.caller, { agent, status }, limit, before);
      return { status: 200, body: pageOf(found.tasks, found.more, (task) => task.id, viewTaskBriefly) };
    },
  );

  const read = endpoint(
    endpoints,
    { action: "task.read", scope: "tasks:read", summary: "Read a task", tag, status: 200 },
    async ({ call, params: { id = "" } }) => {
      const task = await tasks.get(call.caller, id);
      await tasks.name(call, task);
      return { status: 200, body: viewTask(task) };
    },
  );

  const events = endpoint(
    endpoints,
    {
      action: "task.events",
      scope: "tasks:read",
      summary: "Read a task's events, from the start or after Last-Event-ID",
      tag,
      counted: false,
      query: EventsQuery,
      headers: { "Last-Event-ID": "The id of the last event that was read; `after` takes precedence." },
      streams: true,
      status: 200,
    },
    async ({ call, params: { id = "" }, query, request }) => {
      const after = query.after ?? lastEventId(request.headers);
      const task = await tasks.facts(call.caller, id);
      await tasks.name(call, task);
      const { caller } = call;
      const place = streams.take(caller.workspaceId);
      const memory = streamMemory(endpoints.bodies, caller.workspaceId, place);
      const reader = tasks.read(task, after, memory);
      return eventReply(replies, { caller, request }, { place, memory }, reader);
    },
  );

  const cancel = endpoint(
    endpoints,
    {
      action: "task.cancel",
      urgent: true,
      scope: "tasks:write",
      summary: "Cancel a task",
      tag,
      bodyOptional: true,
      body: Type.Object({}, { additionalProperties: false }),
      status: 200,
    },
    async ({ call, params: { id = "" } }) => ({
      status: 200,
      body: viewTaskBriefly(await tasks.cancel(call, id)),
    }),
  );

  return new Elysia({ prefix: "/v1/tasks" })
    .post("", create.handle, create.hook)
    .get("", list.handle, list.hook)
    .get("/:id", read.handle, read.hook)
    .get("/:id/events", events.handle, events.hook)
    .post("/:id/cancel", cancel.handle, cancel.hook);
}

function idempotencyKey(headers: Headers): string | undefined {
  const key = headers.get("idempotency-key");
  if (key === null) return undefined;
  if (!KEY_FORM.test(key))
    throw invalidField("Idempotency-Key", "must be 1 to 255 printable ASCII characters");
  return key;
}

function lastEventId(headers: Headers): number {
  const text = headers.get("last-event-id");
  if (text === null || text === "") return 0;
  if (!/^\d{1,15}$/.test(text)) throw invalidField("Last-Event-ID", "must be the id of an event");
  return Number(text);
}
