/** Where our reader of streams differs from the package on purpose: it loses nothing that has arrived, and wraps no error. */
import { expect, test } from "bun:test";
import { bothModels, eventStream, type StreamedAnswer, streamedBy } from "./both.ts";

const encoder = new TextEncoder();
const event = (value: object) => `data: ${JSON.stringify(value)}\n\n`;
const chunk = (delta: object) => event({ choices: [{ delta }] });
const TEXT = chunk({ content: "a" });
const END = JSON.stringify({ choices: [{ delta: {}, finish_reason: "stop" }] });
const UNNAMED = { tool_calls: [{ function: { arguments: "{}" } }] };

class BrokenConnection extends Error {
  override readonly name = "BrokenConnection";
}
const broken = new BrokenConnection("gone");

const shown = ({ parts, failure }: StreamedAnswer) => ({
  texts: parts.flatMap((part) => Reflect.get(Object(part), "delta") ?? []).join(""),
  end: Reflect.get(Object(Reflect.get(Object(parts.at(-1)), "finishReason")), "unified") ?? null,
  failure: Reflect.get(Object(failure), "name") ?? null,
});

type Shown = ReturnType<typeof shown>;

test.each<[string, (string | Error)[], { ours: Shown; theirs: Shown }]>([
  [
    "the text of a chunk whose tool call has no name",
    [chunk({ content: "a", ...UNNAMED })],
    {
      ours: { texts: "a", end: null, failure: "AI_InvalidResponseDataError" },
      theirs: { texts: "", end: null, failure: "AI_InvalidResponseDataError" },
    },
  ],
  [
    "the last event, if CR ends its line and the stream",
    [TEXT, `data: ${END}\r\r`],
    { ours: { texts: "a", end: "stop", failure: null }, theirs: { texts: "a", end: "error", failure: null } },
  ],
  [
    "the error of the connection, which the package wraps",
    [TEXT, broken],
    {
      ours: { texts: "a", end: null, failure: "BrokenConnection" },
      theirs: { texts: "a", end: null, failure: "AI_APICallError" },
    },
  ],
])("%s", async (_, body, expected) => {
  const bytes = body.map((part) => (typeof part === "string" ? encoder.encode(part) : part));
  const { ours, theirs } = bothModels(() => eventStream(bytes));
  expect({
    ours: shown(await streamedBy(ours, { includeRawChunks: false })),
    theirs: shown(await streamedBy(theirs, { includeRawChunks: false })),
  }).toEqual(expected);
});
