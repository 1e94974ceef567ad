/** What the load generator can be asked, and what it answers. Times are in milliseconds. */
import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";

/** Of 127.0.0.1: nothing else is ever reached. */
const port = Type.Integer({ minimum: 1, maximum: 65_535 });
/** The whole request, head and body, as it goes over the wire. */
const request = Type.String({ minLength: 1 });
const target = { port, request };
const Exchanges = Type.Object({
  kind: Type.Literal("exchanges"),
  port,
  /** One for all; or a list for each connection, which asks them in turn and then begins again. */
  request: Type.Union([request, Type.Array(Type.Array(request, { minItems: 1 }), { minItems: 1 })]),
  /** Each sends its next request when it has read the whole answer to the last (a closed loop). */
  connections: Type.Integer({ minimum: 1, maximum: 1024 }),
  /** Time between two requests of a connection, at the least: then the server is not as busy as it can be. */
  paceMs: Type.Optional(Type.Number({ minimum: 0, maximum: 10_000 })),
  seconds: Type.Number({ minimum: 0, maximum: 60 }),
  /** The connections begin evenly spread over so long, so that they do not march in step. */
  spreadMs: Type.Number({ minimum: 0, maximum: 10_000 }),
  expect: Type.Object({
    status: Type.Integer(),
    /** Of the answer's body; left out where it differs from answer to answer. */
    bytes: Type.Optional(Type.Integer({ minimum: 0 })),
    /** ASCII that each body must hold. Only then are bodies kept until their end. */
    texts: Type.Array(Type.String()),
    /** ASCII whose arrival counts as the first token. */
    first: Type.Optional(Type.String({ minLength: 1 })),
  }),
});
const Readers = Type.Object({
  kind: Type.Literal("readers"),
  ...target,
  readers: Type.Integer({ minimum: 1, maximum: 1024 }),
  /** ASCII whose arrival at any reader starts the watch. */
  first: Type.String({ minLength: 1 }),
  /** ASCII that the streams must hold. */
  text: Type.String({ minLength: 1 }),
});
const Hold = Type.Object({
  kind: Type.Literal("hold"),
  port,
  /** One for all; or a list, whose requests the streams take in turn. */
  request: Type.Union([request, Type.Array(request, { minItems: 1 })]),
  count: Type.Integer({ minimum: 1, maximum: 10_000 }),
  /** Whether the readers take nothing of what they are sent but a little each second. */
  slowly: Type.Optional(Type.Boolean()),
});
const LetGo = Type.Object({ kind: Type.Literal("let-go") });

export const job = validator(Type.Union([Exchanges, Readers, Hold, LetGo]));
export type ExchangesJob = Static<typeof Exchanges>;
export type ReadersJob = Static<typeof Readers>;
export type HoldJob = Static<typeof Hold>;
export type Job = Static<typeof job.schema>;

const milliseconds = Type.Union([Type.Number(), Type.Null()]);
/** `measured` and the percentiles are of answers within the time; `answered` also counts those that came after it. */
export const exchangesResult = validator(
  Type.Object({
    measured: Type.Integer(),
    answered: Type.Integer(),
    seconds: Type.Number(),
    p50: milliseconds,
    p99: milliseconds,
    /** Of the time to the first token, where there is one. */
    first50: milliseconds,
    first99: milliseconds,
    /** What went wrong, and how often. Anything here makes the rest worthless. */
    problems: Type.Array(Type.Object({ text: Type.String(), count: Type.Integer() })),
  }),
);
export type ExchangesResult = Static<typeof exchangesResult.schema>;

export const readersResult = validator(
  Type.Object({
    /** Different bodies that were received, comments aside: 1 when all readers got the same bytes. */
    bodies: Type.Integer(),
    /** Frames that each reader got. */
    /** From the first frame that counts, at any reader, to the last reader's end. */
    seconds: Type.Number(),
  }),
);

export const holdResult = validator(Type.Object({ open: Type.Integer() }));
