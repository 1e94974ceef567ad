/** What passes through a dialect is byte-identical, and a forbidden model is never seen by a provider. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import fc from "fast-check";
import { allowsModel, allowsTier, type TierPolicy } from "../../src/access/tier-policy.ts";
import { type DialectStage, openDialectStage } from "./support.ts";

let stage: DialectStage;
let received: { readonly body: string; readonly headers: Headers }[] = [];
let answerBytes: readonly Buffer[] = [];
let answerType = "text/event-stream";
const raw = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    received.push({ body: await request.text(), headers: request.headers });
    const parts = answerBytes;
    const stream = new ReadableStream<Uint8Array>({
      async start(controller) {
        for (const part of parts) {
          controller.enqueue(new Uint8Array(part));
          await Bun.sleep(0);
        }
        controller.close();
      },
    });
    return new Response(stream, { headers: { "content-type": answerType, "x-upstream": "1" } });
  },
});
beforeAll(async () => {
  stage = await openDialectStage({
    providers: `  raw: { kind: openai-compatible, base_url: "http://127.0.0.1:${raw.port}/v1", api_key: sk-raw }`,
  });
});
afterAll(async () => {
  await stage.stop();
  await raw.stop(true);
});

async function post(body: string, token = stage.gateway.admin, headers: Record<string, string> = {}) {
  const response = await fetch(`${stage.gateway.url}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
    body,
  });
  return { response, bytes: Buffer.from(await response.arrayBuffer()) };
}

/** The members of a request that are inspected. */
const READ = new Set(["model", "stream", "stream_options", "n", "max_tokens", "max_completion_tokens"]);

const chunk = fc.record({
  choices: fc.constant([{ index: 0, delta: { content: "x" }, finish_reason: null as string | null }]),
  unknown: fc.jsonValue(),
});
const STOP = { choices: [{ index: 0, delta: {}, finish_reason: "stop" }] };

test("a stream's bytes are passed back as they arrive, wherever the network splits them", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(chunk, { maxLength: 5 }),
      fc.array(fc.nat({ max: 900 }), { maxLength: 6 }),
      async (chunks, cuts) => {
        const events = [...chunks, STOP].map((each) => `data: ${JSON.stringify(each)}\n\n`);
        const bytes = Buffer.from(`: a comment\n\n${events.join("")}data: [DONE]\n\n`);
        const places = [...new Set([0, ...cuts.filter((cut) => cut < bytes.length)])].sort((a, b) => a - b);
        answerBytes = places.map((from, index) => bytes.subarray(from, places[index + 1]));
        const sent = JSON.stringify({ model: "raw/any", stream: true, messages: [] });
        const { response, bytes: passed } = await post(sent);
        expect(response.status).toBe(200);
        expect(passed.toString()).toBe(bytes.toString());
        expect(response.headers.get("x-upstream")).toBeNull();
      },
    ),
    { numRuns: 60 },
  );
});

test("a request's bytes are passed on except for the model's name, and none of the client's headers are", async () => {
  answerBytes = [Buffer.from('{"choices":[]}')];
  answerType = "application/json";
  await fc.assert(
    fc.asyncProperty(
      fc.dictionary(fc.string(), fc.jsonValue()),
      fc.nat({ max: 3 }),
      async (other, indent) => {
        const rest = Object.fromEntries(
          Object.entries(other).filter(([name]) => !READ.has(name.toLowerCase())),
        );
        const body = JSON.stringify({ ...rest, model: "raw/the-model" }, null, indent);
        received = [];
        const { response } = await post(body, stage.gateway.admin, { "x-client": "1", cookie: "a=b" });
        expect(response.status).toBe(200);
        expect(received).toHaveLength(1);
        expect(received[0]?.body).toBe(body.replace('"raw/the-model"', '"the-model"'));
        expect(received[0]?.headers.get("authorization")).toBe("Bearer sk-raw");
        expect(received[0]?.headers.get("x-client")).toBeNull();
        expect(received[0]?.headers.get("cookie")).toBeNull();
      },
    ),
    { numRuns: 60 },
  );
});

const TIERS: Record<number, string[]> = {
  1: ["up/first", "up/second"],
  2: ["up/large", "up/priced"],
};
const NAMES = [
  "gpt-5",
  "gpt-x",
  "best",
  "tier:1",
  "tier:2",
  "small",
  "large",
  "first",
  "up/first",
  "up/large",
  "up/free",
  "UP/first",
];
const globs = fc.subarray(["*", "up/*", "up/f*", "up/large", "*second", "up/gpt-*"]);

test("a model that the policy forbids is never seen by a provider", async () => {
  let agents = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.option(fc.subarray([1, 2]), { nil: null }),
      globs,
      globs,
      fc.constantFrom(...NAMES),
      async (tiers, allow, deny, model) => {
        const name = `made-${agents++}`;
        const policy: TierPolicy = { tiers, models: { allow, deny } };
        await stage.gateway.agent(name, {
          tier_policy: { ...(tiers ? { tiers } : {}), models: { allow, deny } },
        });
        for (const first of ["first", "large"]) stage.upstream.script(first, { status: 500 });
        const before = stage.upstream.requests.length;
        await post(
          JSON.stringify({ model, messages: [{ role: "user", content: "x" }] }),
          stage.gateway.admin,
          {
            "gatehouse-agent": name,
          },
        );
        for (const seen of stage.upstream.requests.slice(before).map(({ model: own }) => `up/${own}`)) {
          expect(allowsModel(policy, seen)).toBe(true);
          const carriers = Object.entries(TIERS).filter(([, models]) => models.includes(seen));
          const isCarried =
            carriers.length === 0 || carriers.some(([tier]) => allowsTier(policy, Number(tier)));
          expect(isCarried).toBe(true);
        }
      },
    ),
    { numRuns: 80 },
  );
});
