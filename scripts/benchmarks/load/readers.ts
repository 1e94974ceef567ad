import type { Static } from "typebox";
import { connect } from "./connection.ts";
import type { ReadersJob, readersResult } from "./jobs.ts";

const LONGEST_MS = 60_000;
const COMMENT = /^: [^\n]*\n\n/gm;

/** Reads one event stream with many readers at once, each to its end, and compares what they received. */
export async function readTogether({
  port,
  request,
  readers,
  first,
  text: expected,
}: ReadersJob): Promise<Static<typeof readersResult.schema>> {
  let firstAt: number | null = null;
  let opened = 0;
  let openedAtFirst = 0;

  async function readOne(): Promise<Buffer> {
    const parts: Buffer[] = [];
    const end = Promise.withResolvers<void>();
    const connection = await connect(port, {
      body(bytes) {
        if (parts.length === 0) opened++;
        if (firstAt === null && bytes.includes(first)) {
          firstAt = performance.now();
          openedAtFirst = opened;
        }
        parts.push(Buffer.from(bytes));
      },
      end: (status) => (status === 200 ? end.resolve() : end.reject(new Error(`status ${status}`))),
      broken: (problem) => end.reject(new Error(problem)),
    });
    const patience = setTimeout(() => end.reject(new Error("a reader's stream did not end")), LONGEST_MS);
    connection.send(Buffer.from(request));
    await end.promise;
    clearTimeout(patience);
    connection.close();
    return Buffer.concat(parts);
  }

  const bodies = await Promise.all(Array.from({ length: readers }, readOne));
  const endedAt = performance.now();
  if (firstAt === null) throw new Error("no reader received the frame that starts the measurement");
  if (openedAtFirst < readers) throw new Error(`only ${openedAtFirst} readers were there from the start`);
  // Keep-alive comments may come between any two frames.
  const texts = bodies.map((body) => body.toString("latin1").replace(COMMENT, ""));
  const [text = ""] = texts;
  if (!text.includes(expected)) throw new Error("a stream does not contain the expected text");
  return {
    bodies: new Set(texts).size,
    seconds: (endedAt - firstAt) / 1000,
  };
}
