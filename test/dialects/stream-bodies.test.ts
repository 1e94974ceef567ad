/** The request of a stream takes its share of the memory for bodies until the stream has ended. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { type DialectStage, openDialectStage } from "./support.ts";

setDefaultTimeout(120_000);
const BODY_BYTES = 9_900_000;
/** A workspace's share is 192 MiB, and all of them have 256 MiB. */
const OF_ONE = Math.floor((192 * 1024 * 1024) / BODY_BYTES);
const OF_ALL = Math.floor((256 * 1024 * 1024) / BODY_BYTES);

let stage: DialectStage;
beforeAll(async () => {
  stage = await openDialectStage({ settings: "limits: { concurrent_tasks: 100 }\n" });
  stage.upstream.script("held", { chunks: ["one ", "two "], hangAfter: 1 });
});
const leaving: (() => void)[] = [];
afterAll(async () => {
  for (const leave of leaving) leave();
  await stage.stop();
});

const BODY = new Blob([
  JSON.stringify({
    ...{ model: "up/held", stream: true, messages: [{ role: "user", content: "hi" }] },
    padding: "x".repeat(BODY_BYTES - 120),
  }),
]);

interface OpenStream {
  readonly status: number;
  /** What has arrived after the first event, once the stream has ended. */
  readonly rest: Promise<string>;
  leave(): void;
}

async function open(token: string): Promise<OpenStream> {
  const client = new AbortController();
  leaving.push(() => client.abort());
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    ...{ method: "POST", body: BODY, signal: client.signal },
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
  });
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  await reader?.read();
  const rest = async (): Promise<string> => {
    let text = "";
    for (let part = await reader?.read(); part && !part.done; part = await reader?.read()) text += part.value;
    return text;
  };
  return { status: response.status, rest: rest().catch(() => "left"), leave: () => client.abort() };
}

test("open streams share the memory for bodies, and a workspace below its share ends a stream of another one", async () => {
  const streams: OpenStream[] = [];
  const { admin } = stage.gateway;
  for (let count = 0; count < OF_ONE; count++) streams.push(await open(admin));
  expect(streams.map(({ status }) => status)).toEqual(Array(OF_ONE).fill(200));
  expect((await open(admin)).status).toBe(429);

  const [first] = streams.splice(0, 1);
  first?.leave();
  await first?.rest;
  let again = await open(admin);
  while (again.status === 429) again = await open(admin);
  streams.push(again);

  const other = await stage.gateway.workspace("other");
  const others: OpenStream[] = [];
  for (let count = OF_ONE; count <= OF_ALL; count++) others.push(await open(other));
  expect(others.map(({ status }) => status)).toEqual(Array(others.length).fill(200));
  const ended = await Promise.race(streams.map(({ rest }) => rest));
  const last = ended.trimEnd().split("\n\n").at(-1) ?? "";
  expect(JSON.parse(last.replace("data: ", "")).error.code).toBe("rate_limited");
});
