import Type from "typebox";
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

/** Where a server listens. */
export const listening = validator(Type.Object({ port: Type.Integer() }));
