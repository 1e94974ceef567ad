/** Vertex AI with a service account, for clients: its access tokens, its vectors and its continued answers. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { VERTEX } from "../models/providers/scripts.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { startRecordingUpstream } from "../support/recording-upstream.ts";

const TOKEN = "ya29.minted-by-google-0123456789";
const upstream = startRecordingUpstream();
const { privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2_048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});
const account = (path: string) =>
  JSON.stringify({
    ...{ type: "service_account", client_email: "gate@example.org", private_key: privateKey },
    token_uri: `${upstream.url}${path}`,
  });
const provider = (tokens: string) =>
  `{ kind: vertex, project: p-1, location: global, base_url: "${upstream.url}/v1", credentials: ${JSON.stringify(account(tokens))} }`;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({
    yaml: `
providers:
  v: ${provider("/token")}
  slow: ${provider("/never")}
tiers:
  1: { models: [v/gemini-x] }
`,
  });
  await gateway.agent("clerk");
});
beforeEach(() => {
  upstream.requests.length = 0;
});
afterAll(async () => {
  await gateway.stop();
  await upstream.close();
});

/** Answers requests for tokens, and answers all other requests with `answer`. */
function script(answer: () => Response, token: (path: string) => Response | Promise<Response> = issue): void {
  upstream.answer(({ path }) => (path === "/token" || path === "/never" ? token(path) : answer()));
}
const issue = () => Response.json({ access_token: TOKEN, expires_in: 3_599 });
const toModels = () => upstream.requests.filter(({ path }) => path.startsWith("/v1/"));

const MESSAGES = [{ role: "user", content: "hello" }];
const HEADERS = { "gatehouse-agent": "clerk" };
const complete = (body: object) =>
  gateway.call("POST", "/v1/chat/completions", {
    ...{ body: { model: "v/gemini-x", messages: MESSAGES, ...body }, headers: HEADERS },
  });
const embed = (model: string) =>
  gateway.call("POST", "/v1/embeddings", { body: { model, input: ["hi"] }, headers: HEADERS });

test("an access token that was issued for a provider is masked in its errors, in every form", async () => {
  const forms = [TOKEN, Buffer.from(TOKEN).toString("base64"), encodeURIComponent(`Bearer ${TOKEN}`)];
  script(() => VERTEX.failing(400, `no ${forms.join(" ")} here`));
  const answers = [await complete({}), await complete({ stream: true }), await embed("v/text-embedding-1")];
  for (const { status, body } of answers) {
    expect([status, JSON.stringify(body)]).toEqual([400, expect.stringContaining("[redacted]")]);
    for (const form of forms) expect(JSON.stringify(body)).not.toContain(form);
  }
  const { body: entries } = await gateway.call("GET", "/v1/ledger?limit=200");
  expect(JSON.stringify(entries)).not.toContain(TOKEN);
});

test("models that make vectors share their provider, however many names clients invent", async () => {
  let issued = 0;
  script(
    () =>
      Response.json({ predictions: [{ embeddings: { values: [3, 4], statistics: { token_count: 1 } } }] }),
    () => {
      issued++;
      return issue();
    },
  );
  for (const name of ["a", "b", "c"]) expect((await embed(`v/text-embedding-${name}`)).status).toBe(200);
  expect(toModels()).toHaveLength(3);
  expect(issued).toBeLessThanOrEqual(1);
});

test("a stop ends a call that waits for an access token, and nothing is sent", async () => {
  const asked = Promise.withResolvers<void>();
  const issuing = Promise.withResolvers<Response>();
  script(
    () => VERTEX.whole("too late"),
    () => {
      asked.resolve();
      return issuing.promise;
    },
  );
  const waiting = complete({ model: "slow/gemini-x" });
  await asked.promise;
  await gateway.call("POST", "/v1/agents/clerk/stop");
  const { status, headers } = await waiting;
  expect([status, headers.get("gatehouse-code")]).toEqual([409, "agent_stopped"]);
  await gateway.call("POST", "/v1/agents/clerk/resume");

  // The next call uses the token that the first one requested.
  script(() => VERTEX.whole("hello"));
  issuing.resolve(issue());
  expect((await complete({ model: "slow/gemini-x" })).status).toBe(200);
  expect(toModels()).toHaveLength(1);
});

test("an answer that its provider would continue in another request ends at its maximum length", async () => {
  const usageMetadata = { promptTokenCount: 7, candidatesTokenCount: 3, totalTokenCount: 10 };
  const continued = {
    candidates: [
      {
        ...{ content: { role: "model", parts: [{ text: "Half" }] }, index: 0 },
        ...{ finishReason: "CONTINUATION", continuationToken: "t" },
      },
    ],
    usageMetadata,
  };
  script(() => Response.json(continued));
  const whole = await complete({ messages: [{ role: "user", content: 'say "continuationToken"' }] });
  expect(whole.body).toMatchObject({
    choices: [{ message: { content: "Half" }, finish_reason: "length" }],
    usage: { prompt_tokens: 7, completion_tokens: 3 },
  });
  script(
    () =>
      new Response(`data: ${JSON.stringify(continued)}\n\n`, {
        headers: { "content-type": "text/event-stream" },
      }),
  );
  const { body: streamed } = await complete({ stream: true });
  expect(streamed).toContain('"content":"Half"');
  expect(streamed).toContain('"finish_reason":"length"');
  expect(streamed).toContain("[DONE]");
  expect(toModels()).toHaveLength(2);
  const { body } = await gateway.call("GET", "/v1/ledger?action=model.call&limit=4&order=desc");
  expect(body.data.map(({ phase }: { phase: string }) => phase)).toEqual([
    ...["outcome", "intent", "outcome", "intent"],
  ]);
  expect(body.data[0]).toMatchObject({
    detail: { input_tokens: 7, output_tokens: 3, usage: "reported" },
  });
});
