import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";

/** What the bare server should answer. */
export const bareConfig = validator(
  Type.Object({
    /** An agent as Gatehouse shows it. */
    agent: Type.Optional(Type.Object({})),
    /** The JSON schema of a task's request, as in Gatehouse's OpenAPI document. */
    taskSchema: Type.Optional(Type.Object({})),
    /** The answer to a task's request. */
    accepted: Type.Optional(Type.Object({})),
    /** Sent to each reader of `/events`, as one frame each, after `waitMs`. */
    frames: Type.Optional(Type.Array(Type.String())),
    waitMs: Type.Optional(Type.Integer({ minimum: 0 })),
  }),
);

/** The proxy's upstream, and its ledger's file if it has one. */
export const proxyConfig = validator(
  Type.Object({ upstream: Type.Integer(), ledger: Type.Optional(Type.String()) }),
);

/** The tools that the bare MCP server lists. Calling any of them returns the time. */
export const bareMcpConfig = validator(
  Type.Object({
    tools: Type.Array(
      Type.Object({ name: Type.String(), inputSchema: Type.Object({ type: Type.Literal("object") }) }),
    ),
  }),
);

/** How to call the upstream's tool directly, and the result. Times are in milliseconds. */
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

/** Jobs of the upstream whose calls are stopped. */
export const overseenJob = validator(
  Type.Union([
    Type.Object({ kind: Type.Literal("listen") }),
    /** Waits for this many calls in flight, and forgets all that have ended. */
    Type.Object({ kind: Type.Literal("until-open"), count }),
    /** Sends a POST and waits until this many calls have ended. */
    Type.Object({ kind: Type.Literal("press"), url: Type.String(), token: Type.String(), count }),
    Type.Object({ kind: Type.Literal("last-closed"), count }),
  ]),
);
export type OverseenJob = Static<typeof overseenJob.schema>;
/** Milliseconds from the POST to the end of the last call, and to the answer. */
export const overseenPressed = validator(Type.Object({ closed: Type.Number(), answered: Type.Number() }));

/** The port on which a server listens. */
export const listening = validator(Type.Object({ port: Type.Integer() }));
