import Type from "typebox";
import { validator } from "../base/schema.ts";
import type { FeedEvent } from "./events.ts";

const TEXT_OR_NULL = Type.Union([Type.String(), Type.Null()]);
const ENFORCEMENT = Type.Enum(["soft", "enforced"]);
/** The agent that an event concerns: see `FeedEvent`. */
const AGENT = Type.Optional(Type.Union([Type.String(), Type.Integer(), Type.Null()]));

/** The events that nodes publish to each other. Anyone who can use the database could send one. */
const PUBLISHED = validator(
  Type.Union([
    Type.Object({
      name: Type.Literal("document.changed"),
      key: Type.String(),
      path: Type.String(),
      data: Type.Object({
        id: Type.String(),
        scope: Type.String(),
        change: Type.Enum(["written", "deleted"]),
      }),
    }),
    Type.Object({
      name: Type.Literal("limit.exceeded"),
      key: Type.String(),
      data: Type.Object({ limit: Type.String(), enforcement: ENFORCEMENT }),
    }),
    Type.Object({
      name: Type.Literal("budget.spent"),
      key: Type.String(),
      agent: AGENT,
      data: Type.Object({
        budget: Type.Enum(["agent_day", "workspace_month"]),
        agent: TEXT_OR_NULL,
        percent: Type.Integer(),
      }),
    }),
    Type.Object({
      name: Type.Literal("model.called"),
      key: Type.String(),
      agent: AGENT,
      data: Type.Object({
        agent: TEXT_OR_NULL,
        intent: Type.Integer(),
        model: Type.String(),
        dialect: Type.String(),
        status: Type.Enum(["succeeded", "failed", "cancelled"]),
      }),
    }),
  ]),
);

/** Reads an event that another node has published. Undefined if it is not one. */
export function publishedEvent(text: string): FeedEvent | undefined {
  try {
    const event: unknown = JSON.parse(text);
    return PUBLISHED.is(event) ? event : undefined;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return undefined;
  }
}
