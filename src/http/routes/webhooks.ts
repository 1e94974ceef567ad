import { Elysia } from "elysia";
import Type from "typebox";
import { type Clock, optionalTimestamp, timestamp } from "../../base/clock.ts";
import { isId } from "../../base/ids.ts";
import { type Delivery, listDeliveries, redeliver } from "../../notify/deliveries.ts";
import { NOTICE_TYPES } from "../../notify/notice-types.ts";
import type { Db } from "../../store/db.ts";
import { DEFAULT_LIMIT, decodeCursor, LIST_QUERY, page } from "../answer/page.ts";
import { type EndpointContext, endpoint } from "../endpoint.ts";

export interface WebhookRouteParts {
  readonly db: Db;
  readonly clock: Clock;
  /** The configured URL that notices are posted to; null if there is none. */
  readonly url: string | null;
  /** Called when a delivery has become due. */
  wake(): void;
}

/** The configured webhook, and the deliveries of this workspace. */
export function webhookRoutes(endpoints: EndpointContext, { db, clock, url, wake }: WebhookRouteParts) {
  const tag = "Webhooks";

  const read = endpoint(
    endpoints,
    {
      action: "webhook.read",
      scope: "settings:write",
      summary: "Read the address that notices are posted to, and the types of notices",
      tag,
      status: 200,
    },
    async () => ({ status: 200, body: viewWebhook(url) }),
  );

  const list = endpoint(
    endpoints,
    {
      action: "webhook.list",
      scope: "settings:write",
      summary: "List past and pending deliveries to the webhook, newest first",
      tag,
      query: LIST_QUERY,
      status: 200,
    },
    async ({ call, query: { limit = DEFAULT_LIMIT, cursor } }) => {
      const before = decodeCursor(cursor, (key) => isId("msg", key));
      const found = await listDeliveries(db, call.caller.workspaceId, limit, before);
      return { status: 200, body: page(found, limit, ({ id }) => id, viewDelivery) };
    },
  );

  const again = endpoint(
    endpoints,
    {
      action: "webhook.redeliver",
      scope: "settings:write",
      summary: "Post a delivery again, with the same `webhook-id`",
      tag,
      bodyOptional: true,
      body: Type.Object({}, { additionalProperties: false }),
      status: 202,
    },
    async ({ call, params: { id = "" } }) => {
      const delivery = await call.commit(async (tx) => {
        const found = await redeliver(tx, call.caller.workspaceId, id, clock.now());
        call.about({ detail: { delivery: found.id, type: found.type } });
        tx.onCommit(wake);
        return found;
      });
      return { status: 202, body: viewDelivery(delivery) };
    },
  );

  return new Elysia({ prefix: "/v1/webhooks" })
    .get("", read.handle, read.hook)
    .get("/deliveries", list.handle, list.hook)
    .post("/deliveries/:id/redeliver", again.handle, again.hook);
}

/**
 * The configured webhook, which all workspaces share. Its URL is a secret, because services put credentials into its
 * path or query: `url` has only the origin, followed by `/…`.
 */
export function viewWebhook(configured: string | null) {
  if (configured === null) return { configured: false, url: null, events: [] };
  const { origin, pathname, search } = new URL(configured);
  const events: readonly string[] = NOTICE_TYPES;
  return { configured: true, url: pathname + search === "/" ? origin : `${origin}/…`, events };
}

/** One delivery of a notice, as listed by the delivery log. */
export function viewDelivery(delivery: Delivery) {
  return {
    id: delivery.id,
    type: delivery.type,
    status: delivery.status,
    attempts: delivery.attempts,
    created_at: timestamp(delivery.createdAt),
    last_attempt_at: optionalTimestamp(delivery.attemptedAt),
    last_status: delivery.lastStatus,
    last_error: delivery.lastError,
    next_at: optionalTimestamp(delivery.nextAt),
  };
}
