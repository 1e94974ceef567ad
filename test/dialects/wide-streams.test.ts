/** Streams whose events are each small enough to be read, but together have too many members to be merged at once. */
import { describe, expect, test } from "bun:test";
import { ChatStreamReader } from "../../src/dialects/chat/stream.ts";
import type { StreamReader } from "../../src/dialects/dialect.ts";
import { MessagesStreamReader } from "../../src/dialects/messages/stream.ts";
import { ResponsesStreamReader } from "../../src/dialects/responses/stream.ts";

const EVENTS = 5;
/** Fewer than one event may have, and more than a fifth of what an answer may have. */
const WIDE = 20_000;

const list = (item: string) => `[${`${item},`.repeat(WIDE / 2)}0]`;
const names = (of: (at: number) => string, from: number) =>
  Array.from({ length: WIDE / 4 }, (_, at) => `${JSON.stringify(of(from * WIDE + at))}:"x"`).join(",");

const MESSAGE = [
  '{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":1}}}',
  '{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}',
];
const MESSAGE_END = ['{"type":"content_block_stop","index":0}', '{"type":"message_stop"}'];
const citation = (value: string) => () =>
  `{"type":"content_block_delta","index":0,"delta":{"type":"citations_delta","citation":${value}}}`;

type Kind = [name: string, event: (at: number) => string];
const READERS: [name: string, reader: () => StreamReader, first: string[], last: string[], kinds: Kind[]][] =
  [
    [
      "messages",
      () => new MessagesStreamReader(),
      MESSAGE,
      MESSAGE_END,
      [
        ["citations with lists", citation(list("[]"))],
        ["citations with objects", citation(list("{}"))],
        ["citations with texts", citation(list('""'))],
        ["members", (at) => `{"type":"message_delta","delta":{"m${at}":${list("0")}}}`],
        ["members of usage", (at) => `{"type":"message_delta","usage":{"m${at}":${list("[]")}}}`],
        ["numbers as names", (at) => `{"type":"message_delta","delta":{${names((n) => `${7 * n}`, at)}}}`],
        ["names", (at) => `{"type":"message_delta","usage":{${names((n) => `a${n}`, at)}}}`],
        [
          "blocks",
          (at) =>
            `{"type":"content_block_start","index":${at + 1},"content_block":{"type":"x","y":${list("{}")}}}`,
        ],
      ],
    ],
    [
      "chat",
      () => new ChatStreamReader(false, 1),
      ['{"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}'],
      [],
      [
        ["members", (at) => `{"choices":[],"m${at}":${list("[]")}}`],
        ["members of usage", (at) => `{"choices":[],"usage":{"m${at}":${list("{}")}}}`],
        ["members of choices", (at) => `{"choices":[{"index":0,"delta":{},"m${at}":${list('""')}}]}`],
        [
          "members of tool calls",
          (at) => `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":${at},"m":${list("[]")}}]}}]}`,
        ],
      ],
    ],
    [
      "responses",
      () => new ResponsesStreamReader(),
      [],
      [],
      [
        [
          "items",
          (at) =>
            `{"type":"response.output_item.added","output_index":${at},"item":{"type":"x","y":${list("[]")}}}`,
        ],
        ["texts", (at) => `{"type":"x","y":[${Array.from({ length: WIDE }, (_, n) => `"${at} ${n}"`)}]}`],
      ],
    ],
  ];

const CASES = READERS.flatMap(([name, reader, first, last, kinds]) =>
  kinds.map(([kind, event]) => [name, kind, reader, first, event, last] as const),
);
const turns = () => undefined;
const joined = (events: readonly string[]) => Buffer.from(events.map((data) => `data: ${data}\n\n`).join(""));

describe("the evidence is the events themselves", () => {
  test.each(CASES)(
    "for a stream of %s with too many %s",
    async (_name, _kind, reader, first, event, last) => {
      const events = joined([...first, ...Array.from({ length: EVENTS }, (_, at) => event(at)), ...last]);
      const { text } = await reader().answerOf(events, turns);
      expect(text === events.toString()).toBe(true);
    },
  );
});

test("arguments of tools that have too many members together are kept as texts", async () => {
  const events = [MESSAGE[0] ?? ""];
  const input = list("[]");
  for (let index = 0; index < EVENTS; index++) {
    events.push(
      `{"type":"content_block_start","index":${index},"content_block":{"type":"tool_use","input":{}}}`,
      `{"type":"content_block_delta","index":${index},"delta":{"type":"input_json_delta","partial_json":"${input}"}}`,
      `{"type":"content_block_stop","index":${index}}`,
    );
  }
  const { text } = await new MessagesStreamReader().answerOf(
    joined([...events, '{"type":"message_stop"}']),
    turns,
  );
  const inputs = JSON.parse(text).content.map((block: { input: unknown }) => typeof block.input);
  expect(inputs).toEqual(["object", "object", "string", "string", "string"]);
});

describe("the usage of a message", () => {
  const delta = (usage: object) => joined([JSON.stringify({ type: "message_delta", usage })]);
  const rounds = (count: number) =>
    Array.from({ length: count }, () => ({ type: "message", input_tokens: 1, output_tokens: 2 }));

  test("is counted once, however many events follow that report nothing", () => {
    const reader = new MessagesStreamReader();
    reader.read(delta({ iterations: rounds(100) }));
    const { usage } = reader;
    expect(usage).toMatchObject({ inputTokens: { total: 100 }, outputTokens: { total: 200 } });
    for (let times = 0; times < 3; times++) reader.read(delta({}));
    expect(reader.usage).toBe(usage);
  });

  test("is not believed if it has too many iterations to be counted repeatedly", () => {
    const reader = new MessagesStreamReader();
    reader.read(delta({ input_tokens: 1, output_tokens: 1, iterations: rounds(129) }));
    expect(reader.usage).toMatchObject({
      inputTokens: { total: undefined },
      outputTokens: { total: undefined },
    });
  });

  test("keeps only as many names as a message has", () => {
    const reader = new MessagesStreamReader();
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, at) => [`n${at}`, at]));
    reader.read(delta({ input_tokens: 1, output_tokens: 1 }));
    reader.read(delta({ ...many, output_tokens: 2 }));
    expect(reader.usage?.outputTokens.total).toBe(2);
    expect(Object.keys(reader.usage?.raw ?? {}).length).toBe(128);
  });
});
