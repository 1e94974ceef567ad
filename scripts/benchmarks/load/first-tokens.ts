import Type, { type Static } from "typebox";
import { validator } from "../../../src/base/schema.ts";
import { Samples } from "../statistics.ts";
import { connect } from "./connection.ts";
import type { FirstTokensJob, firstTokensResult } from "./jobs.ts";
import { requestText } from "./request.ts";

const LONGEST_MS = 30_000;
/** More than callers can dispatch in the longest round. */
const MOST_TASKS = 100_000;
const dispatched = validator(Type.Object({ id: Type.String() }));

/** Dispatches tasks, and reads each on two servers at once until both have sent its end. */
export async function firstTokens(job: FirstTokensJob): Promise<Static<typeof firstTokensResult.schema>> {
  const own = new Samples(MOST_TASKS);
  const other = new Samples(MOST_TASKS);
  const added = new Samples(MOST_TASKS);
  const deadline = performance.now() + job.seconds * 1000;
  let tasks = 0;
  const call = async () => {
    do {
      const begun = performance.now();
      const { id } = dispatched.parse(JSON.parse((await ask(job.port, job.request, { status: 202 })).text));
      const request = requestText("GET", `/v1/tasks/${id}/events`, { token: job.token });
      const [here, there] = await Promise.all(
        [job.port, job.otherPort].map((port) => ask(port, request, { status: 200, first: job.first })),
      );
      for (const stream of [here, there]) {
        if (!stream?.text.includes(job.text)) throw new Error("a stream does not contain the expected text");
      }
      const hereAt = firstOf(here);
      const thereAt = firstOf(there);
      own.add(hereAt - begun);
      other.add(thereAt - begun);
      added.add(thereAt - hereAt);
      tasks++;
    } while (performance.now() < deadline);
  };
  await Promise.all(Array.from({ length: job.callers }, call));
  return { tasks, own: percentiles(own), other: percentiles(other), added: percentiles(added) };
}

interface Answer {
  readonly text: string;
  readonly firstAt: number | null;
}

/** Sends a request on a connection of its own, and reads the whole answer. */
async function ask(
  port: number,
  request: string,
  { status: expected, first }: { readonly status: number; readonly first?: string },
): Promise<Answer> {
  const end = Promise.withResolvers<number>();
  let text = "";
  let firstAt: number | null = null;
  const connection = await connect(port, {
    body(bytes) {
      text += bytes.toString("latin1");
      if (first !== undefined && firstAt === null && text.includes(first)) firstAt = performance.now();
    },
    end: end.resolve,
    broken: (problem) => end.reject(new Error(problem)),
  });
  const patience = setTimeout(() => end.reject(new Error("an answer did not end in time")), LONGEST_MS);
  connection.send(Buffer.from(request));
  try {
    const status = await end.promise;
    if (status !== expected)
      throw new Error(`status ${status} instead of ${expected}: ${text.slice(0, 500)}`);
    return { text, firstAt };
  } finally {
    clearTimeout(patience);
    connection.close();
  }
}

function firstOf(answer: Answer | undefined): number {
  if (answer === undefined || answer.firstAt === null) throw new Error("an answer without a first token");
  return answer.firstAt;
}

function percentiles(samples: Samples): { p50: number | null; p99: number | null } {
  return { p50: samples.percentile(50), p99: samples.percentile(99) };
}
