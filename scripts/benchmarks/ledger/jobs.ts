/** The jobs of the ledger's worker, and their results. */
import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";

const seconds = Type.Number({ minimum: 0, maximum: 60 });
const Appends = Type.Object({
  kind: Type.Literal("appends"),
  /** Append through the ledger, or into a plain SQLite table as fast as one caller can write. */
  into: Type.Enum(["ledger", "table"]),
  /** The folder for the files, which are opened once and kept open. */
  folder: Type.String({ minLength: 1 }),
  /** Rows per transaction when appending to a table. */
  rows: Type.Integer({ minimum: 1, maximum: 1024 }),
  callers: Type.Integer({ minimum: 1, maximum: 1024 }),
  seconds,
});
const Fill = Type.Object({
  kind: Type.Literal("fill"),
  /** An empty folder, which becomes a data directory. */
  dataDir: Type.String({ minLength: 1 }),
  entries: Type.Integer({ minimum: 1 }),
});
const Proofs = Type.Object({
  kind: Type.Literal("proofs"),
  dataDir: Type.String({ minLength: 1 }),
  seconds,
});

export const job = validator(Type.Union([Appends, Fill, Proofs]));
export type Job = Static<typeof job.schema>;
export type AppendsJob = Static<typeof Appends>;
export type FillJob = Static<typeof Fill>;
export type ProofsJob = Static<typeof Proofs>;

export const appendsResult = validator(Type.Object({ perSecond: Type.Number() }));
/** `startedAt` is the first entry's time in milliseconds; the last entry's time is now. */
export const fillResult = validator(Type.Object({ seconds: Type.Number(), startedAt: Type.Integer() }));
/** Times in milliseconds. */
export const proofsResult = validator(Type.Object({ p50: Type.Number(), p99: Type.Number() }));
