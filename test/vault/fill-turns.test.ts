/**
 * Missing vectors are filled in by turns, so one workspace's document does not wait behind everything that another
 * workspace wrote.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { FakeClock } from "../support/clock.ts";
import { type FakeEmbeddings, startFakeEmbeddings } from "../support/fake-embeddings.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../tasks/support.ts";

setDefaultTimeout(60_000);

let clock: FakeClock;
let embeddings: FakeEmbeddings;
let gateway: TestGateway;
let other: string;

beforeEach(async () => {
  clock = new FakeClock();
  embeddings = startFakeEmbeddings();
  const provider = `up: { kind: openai-compatible, base_url: "${embeddings.baseUrl}" }`;
  gateway = await startGateway({
    clock,
    yaml: `providers:\n  ${provider}\nembeddings: { model: up/words }\n`,
  });
  other = await gateway.workspace("other");
  await write(gateway.admin, "first", "Some vectors, so that their dimension is known.");
});
afterEach(async () => {
  await gateway.stop();
  await embeddings.stop();
});

async function write(token: string, title: string, text: string): Promise<string> {
  const body = { title, text, scope: "notes" };
  const answer = await gateway.call("POST", "/v1/vault/documents", { token, body });
  expect(answer.status).toBe(201);
  return answer.body.id;
}

/** Several passages, each containing the name. */
const longText = (name: string): string =>
  Array.from({ length: 600 }, (_, at) => `${name} ${at} ${"word ".repeat(60)}`).join("\n\n");

test("a document of another workspace is among the first, though ten were written before it", async () => {
  embeddings.always({ status: 400 });
  // After a refusal, the model is not asked for the following passages.
  for (let number = 0; number < 10; number++)
    await write(gateway.admin, `busy${number}`, longText(`busy${number}`));
  const id = await write(other, "calm", "calm words");
  const before = embeddings.requests.length;
  embeddings.always({});
  const waits = async (): Promise<boolean> => {
    clock.advance(1_000);
    const { body } = await gateway.call("GET", `/v1/vault/documents/${id}`, { token: other });
    return (
      body.pending === 0 ||
      embeddings.requests.slice(before).some(({ input }) => input.some((text) => text.includes("calm words")))
    );
  };
  await until(waits);
  expect(embeddings.requests.slice(before).length).toBeLessThan(10);
});
