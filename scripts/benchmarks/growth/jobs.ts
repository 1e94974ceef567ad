/** The jobs of the worker that fills a data directory, in this order, and their results. */
import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";

const count = Type.Integer({ minimum: 0 });
const Open = Type.Object({
  kind: Type.Literal("open"),
  /** An empty folder, which becomes a data directory. */
  dataDir: Type.String({ minLength: 1 }),
  agents: Type.Integer({ minimum: 1 }),
  /** When the history begins. The clock of the filled directory continues from there. */
  startsAt: Type.Integer({ minimum: 0 }),
});
const Write = Type.Object({
  kind: Type.Literal("write"),
  tasks: count,
  /** Entries besides those of the tasks. */
  others: count,
});
const Close = Type.Object({ kind: Type.Literal("close") });

export const job = validator(Type.Union([Open, Write, Close]));
export type OpenJob = Static<typeof Open>;
export type WriteJob = Static<typeof Write>;

export const done = validator(Type.Object({}));
/** A task of those written, to be read again. */
export const written = validator(Type.Object({ task: Type.Union([Type.String(), Type.Null()]) }));
