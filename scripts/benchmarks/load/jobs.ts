/** The load generator's jobs, and their results. Times are in milliseconds. */
import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";

/** A port of 127.0.0.1, the only host that is ever contacted. */
const port = Type.Integer({ minimum: 1, maximum: 65_535 });
/** The whole request, head and body, as sent over the wire. */
const request = Type.String({ minLength: 1 });
const target = { port, request };
const Exchanges = Type.Object({
  kind: Type.Literal("exchanges"),
  port,
  /** Further servers that take turns with the first: the next connection leads to the next one. */
  otherPorts: Type.Optional(Type.Array(port)),
  /** One request for all connections, or a list for each connection, which it repeats in order. */
  request: Type.Union([request, Type.Array(Type.Array(request, { minItems: 1 }), { minItems: 1 })]),
  /** Each connection sends its next request when it has read the whole answer to the previous one (a closed loop). */
  connections: Type.Integer({ minimum: 1, maximum: 1024 }),
  /** The minimum time between two requests of a connection, for a server that should not be as busy as it can be. */
  paceMs: Type.Optional(Type.Number({ minimum: 0, maximum: 10_000 })),
  /**
   * Makes times count from when a request was due, `paceMs` after the one before was, even if the connection was still
   * waiting for that one's answer (an open loop). Otherwise a slow server would be asked later, and look faster.
   */
  countsFromDue: Type.Optional(Type.Boolean()),
  seconds: Type.Number({ minimum: 0, maximum: 60 }),
  /** The connections start evenly spread over this time, so that they do not run in step. */
  spreadMs: Type.Number({ minimum: 0, maximum: 10_000 }),
  expect: Type.Object({
    status: Type.Integer(),
    /** The length of the answer's body; omitted if it varies. */
    bytes: Type.Optional(Type.Integer({ minimum: 0 })),
    /** ASCII strings that each body must contain. Bodies are kept to their end only if there are any. */
    texts: Type.Array(Type.String()),
    /** ASCII whose arrival counts as the first token. */
    first: Type.Optional(Type.String({ minLength: 1 })),
  }),
});
const Readers = Type.Object({
  kind: Type.Literal("readers"),
  ...target,
  readers: Type.Integer({ minimum: 1, maximum: 1024 }),
  /** ASCII whose arrival at any reader starts the measurement. */
  first: Type.String({ minLength: 1 }),
  /** ASCII that the streams must contain. */
  text: Type.String({ minLength: 1 }),
});
const Hold = Type.Object({
  kind: Type.Literal("hold"),
  port,
  /** One request for all streams, or a list whose requests the streams take in turn. */
  request: Type.Union([request, Type.Array(request, { minItems: 1 })]),
  count: Type.Integer({ minimum: 1, maximum: 10_000 }),
  /** Whether the readers take only a little of what they are sent, once a second. */
  slowly: Type.Optional(Type.Boolean()),
});
const FirstTokens = Type.Object({
  kind: Type.Literal("first-tokens"),
  ...target,
  /** Where each task is also read, besides the server that it was dispatched to. */
  otherPort: port,
  token: Type.String(),
  callers: Type.Integer({ minimum: 1, maximum: 64 }),
  /** No task is dispatched later. */
  seconds: Type.Number({ minimum: 0, maximum: 60 }),
  /** ASCII whose arrival counts as the first token. */
  first: Type.String({ minLength: 1 }),
  /** ASCII that the streams must contain. */
  text: Type.String({ minLength: 1 }),
});
const LetGo = Type.Object({ kind: Type.Literal("let-go") });

export const job = validator(Type.Union([Exchanges, Readers, FirstTokens, Hold, LetGo]));
export type ExchangesJob = Static<typeof Exchanges>;
export type ReadersJob = Static<typeof Readers>;
export type FirstTokensJob = Static<typeof FirstTokens>;
export type HoldJob = Static<typeof Hold>;
export type Job = Static<typeof job.schema>;

const milliseconds = Type.Union([Type.Number(), Type.Null()]);
/** `measured` and the percentiles cover answers within the time; `answered` also counts later ones. */
export const exchangesResult = validator(
  Type.Object({
    measured: Type.Integer(),
    answered: Type.Integer(),
    seconds: Type.Number(),
    p50: milliseconds,
    p99: milliseconds,
    /** Percentiles of the time to the first token, if there is one. */
    first50: milliseconds,
    first99: milliseconds,
    /** What went wrong, and how often. Anything in here makes the other numbers worthless. */
    problems: Type.Array(Type.Object({ text: Type.String(), count: Type.Integer() })),
  }),
);
export type ExchangesResult = Static<typeof exchangesResult.schema>;

export const readersResult = validator(
  Type.Object({
    /** The number of different bodies received, apart from comments: 1 if all readers got the same bytes. */
    bodies: Type.Integer(),
    /** From the arrival of `first` at any reader until the last reader's end. */
    seconds: Type.Number(),
  }),
);

const percentiles = Type.Object({ p50: milliseconds, p99: milliseconds });
/** Times to the first token on each server, and the difference task by task. */
export const firstTokensResult = validator(
  Type.Object({ tasks: Type.Integer(), own: percentiles, other: percentiles, added: percentiles }),
);

export const holdResult = validator(Type.Object({ open: Type.Integer() }));
