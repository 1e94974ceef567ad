import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";

/** What the bare server is told to answer. */
export const bareConfig = validator(
  Type.Object({
    /** An agent as Gatehouse shows it. */
    agent: Type.Optional(Type.Object({})),
    /** The JSON schema of a task's request, as in Gatehouse's OpenAPI document. */
    taskSchema: Type.Optional(Type.Object({})),
    /** The answer to a task's request. */
    accepted: Type.Optional(Type.Object({})),
    /** What each reader of `/events` gets, a frame each, after `waitMs`. */
    frames: Type.Optional(Type.Array(Type.String())),
    waitMs: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
);

/** The tools that the bare MCP server lists. A call of any of them tells the time. */
export const bareMcpConfig = validator(
  Type.Object({
    tools: Type.Array(
      Type.Object({ name: Type.String(), inputSchema: Type.Object({ type: Type.Literal("object") }) }),
    ),
  }),
);

/** How the upstream's tool is called directly, and how that went; times in milliseconds. */
export const directJob = validator(
  Type.Object({ concurrency: Type.Integer({ minimum: 1 }), seconds: Type.Number({ minimum: 0 }) }),
);
export const directResult = validator(
  Type.Object({
    perSecond: Type.Number(),
    p50: Type.Union([Type.Number(), Type.Null()]),
    p99: Type.Union([Type.Number(), Type.Null()]),
  }),
);

const count = Type.Integer({ minimum: 1 });

/** What the upstream that is stopped can be asked. */
export const overseenJob = validator(
  Type.Union([
    Type.Object({ kind: Type.Literal("listen") }),
    /** Waits for so many calls that are out, and forgets all that have ended. */
    Type.Object({ kind: Type.Literal("until-open"), count }),
    /** Posts, and waits until so many calls have ended. */
    Type.Object({ kind: Type.Literal("press"), url: Type.String(), token: Type.String(), count }),
    Type.Object({ kind: Type.Literal("last-closed"), count }),
  ]),
);
export type OverseenJob = Static<typeof overseenJob.schema>;
/** Milliseconds after the post: the end of the last call, and the answer. */
export const overseenPressed = validator(Type.Object({ closed: Type.Number(), answered: Type.Number() }));

/** Where a server listens. */
export const listening = validator(Type.Object({ port: Type.Integer() }));
