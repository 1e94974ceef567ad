/** The jobs of the peers' program, and their results. */
import Type, { type Static } from "typebox";
import { validator } from "../../../../src/base/schema.ts";

const Open = Type.Object({
  kind: Type.Literal("open"),
  peer: Type.Union([Type.Literal("lancedb"), Type.Literal("hnswlib")]),
  /** A folder that the program may write to. */
  folder: Type.String({ minLength: 1 }),
  /** The folder of collections from which passages are made; null if there is none. */
  collections: Type.Union([Type.String(), Type.Null()]),
  passages: Type.Integer({ minimum: 1 }),
});
/** Passages `from` up to `to`, without `to` itself. */
const Add = Type.Object({ kind: Type.Literal("add"), from: Type.Integer(), to: Type.Integer() });
const Finish = Type.Object({ kind: Type.Literal("finish") });
const Query = Type.Object({
  text: Type.String({ minLength: 1 }),
  scope: Type.Union([Type.Integer({ minimum: 0 }), Type.Null()]),
});
/** One search at a time, using these queries in turn. */
const Search = Type.Object({
  kind: Type.Literal("search"),
  queries: Type.Array(Query, { minItems: 1 }),
  k: Type.Integer({ minimum: 1 }),
  seconds: Type.Number({ minimum: 0 }),
});
/** The part of the true nearest neighbours that is found, over these queries. */
const Recall = Type.Object({
  kind: Type.Literal("recall"),
  queries: Type.Array(Query, { minItems: 1 }),
  k: Type.Integer({ minimum: 1 }),
});

export const peerJob = validator(Type.Union([Open, Add, Finish, Search, Recall]));
export type PeerJob = Static<typeof peerJob.schema>;
export type OpenJob = Static<typeof Open>;
export type PeerQuery = Static<typeof Query>;

export const done = validator(Type.Object({}));
const milliseconds = Type.Union([Type.Number(), Type.Null()]);
export const searched = validator(
  Type.Object({ perSecond: Type.Number(), p50: milliseconds, p99: milliseconds }),
);
export const recalled = validator(Type.Object({ recall: Type.Number() }));
/** `seconds` is the peer's own time, without making the vectors. */
export const finished = validator(Type.Object({ seconds: Type.Number() }));
