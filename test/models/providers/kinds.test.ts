/**
 * The providers azure, bedrock and vertex in front of scripted upstreams: the requests that they get, and the results
 * of their answers.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { createPublicKey, generateKeyPairSync, verify } from "node:crypto";
import type { LanguageModelV4CallOptions, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { OPEN_POLICY } from "../../../src/access/tier-policy.ts";
import { systemClock } from "../../../src/base/clock.ts";
import type { ProviderConfig } from "../../../src/config/config.ts";
import { createModelGateway } from "../../../src/models/gateway.ts";
import { expectedAuthorization } from "../../support/aws.ts";
import { type RecordedRequest, startRecordingUpstream } from "../../support/recording-upstream.ts";
import { dispatch, ended, ledger, type Stage, startStage, unsettled } from "../../tasks/support.ts";
import { AZURE, BEDROCK, frames, type KindScript, VERTEX } from "./scripts.ts";

const upstream = startRecordingUpstream();
const { publicKey, privateKey } = generateKeyPairSync("rsa", {
  modulusLength: 2_048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
});
const CREDENTIALS = JSON.stringify({
  type: "service_account",
  ...{
    client_email: "gate@example.iam.gserviceaccount.com",
    private_key: privateKey,
    private_key_id: "key-1",
  },
  token_uri: `${upstream.url}/token`,
});
const AWS = { id: "AKIAEXAMPLEEXAMPLE", secret: "aws-secret-hunter22", region: "eu-central-1" };

/** Everything that the packages would read by themselves. None of it may be sent anywhere. */
const FOREIGN: Readonly<Record<string, string>> = {
  ...{ AWS_BEARER_TOKEN_BEDROCK: "foreign-bearer", AWS_ACCESS_KEY_ID: "foreign-id" },
  ...{ AWS_SECRET_ACCESS_KEY: "foreign-secret", AWS_SESSION_TOKEN: "foreign-session" },
  ...{ AWS_REGION: "foreign-region", AWS_ENDPOINT_URL: "http://127.0.0.1:1/foreign" },
  ...{ AWS_ENDPOINT_URL_BEDROCK_RUNTIME: "http://127.0.0.1:1/foreign" },
  ...{ AZURE_API_KEY: "foreign-key", AZURE_RESOURCE_NAME: "foreign-resource" },
  ...{ GOOGLE_VERTEX_API_KEY: "foreign-key", GOOGLE_VERTEX_PROJECT: "foreign-project" },
  ...{ GOOGLE_VERTEX_LOCATION: "foreign-location", GOOGLE_CLIENT_EMAIL: "foreign@example.org" },
  ...{ GOOGLE_PRIVATE_KEY: "foreign", GOOGLE_GENERATIVE_AI_API_KEY: "foreign-key" },
  ...{ OPENAI_API_KEY: "foreign-key", OPENAI_BASE_URL: "http://127.0.0.1:1/foreign" },
  ...{ ANTHROPIC_API_KEY: "foreign-key", ANTHROPIC_BASE_URL: "http://127.0.0.1:1/foreign" },
};
const before = new Map(Object.keys(FOREIGN).map((name) => [name, process.env[name]]));

interface Kind {
  readonly script: KindScript;
  /** Without kind, timeout and base URL. */
  readonly fields: Partial<ProviderConfig>;
  readonly yaml: string;
  /** The base URL's path. */
  readonly path: string;
  readonly whole: string;
  readonly streamed: string;
  /** The relevant headers of each request. */
  readonly headers: Readonly<Record<string, string | undefined>>;
}

const bedrockPath = (verb: string) => `/model/anthropic.claude-x-v1%3A0/${verb}`;
const MODEL: Readonly<Record<string, string>> = {
  bedrock: "anthropic.claude-x-v1:0",
  keyed: "anthropic.claude-x-v1:0",
};
const modelOf = (kind: string) => MODEL[kind] ?? "m-1";

const KINDS: Readonly<Record<string, Kind>> = {
  azure: {
    script: AZURE,
    fields: { kind: "azure", apiKey: "azure-key", apiVersion: "preview" },
    yaml: "kind: azure, api_key: azure-key, api_version: preview",
    path: "/openai/v1",
    whole: "/openai/v1/responses?api-version=preview",
    streamed: "/openai/v1/responses?api-version=preview",
    headers: { "api-key": "azure-key", authorization: undefined },
  },
  bedrock: {
    script: BEDROCK,
    fields: {
      ...{ kind: "bedrock", region: AWS.region, accessKeyId: AWS.id },
      ...{ secretAccessKey: AWS.secret, sessionToken: "aws-session" },
    },
    yaml: `kind: bedrock, region: ${AWS.region}, access_key_id: ${AWS.id}, secret_access_key: ${AWS.secret}, session_token: aws-session`,
    path: "",
    whole: bedrockPath("converse"),
    streamed: bedrockPath("converse-stream"),
    headers: { "x-amz-security-token": "aws-session" },
  },
  keyed: {
    script: BEDROCK,
    fields: { kind: "bedrock", region: AWS.region, apiKey: "bedrock-key" },
    yaml: `kind: bedrock, region: ${AWS.region}, api_key: bedrock-key`,
    path: "",
    whole: bedrockPath("converse"),
    streamed: bedrockPath("converse-stream"),
    headers: {
      authorization: "Bearer bedrock-key",
      "x-amz-security-token": undefined,
      "x-amz-date": undefined,
    },
  },
  vertex: {
    script: VERTEX,
    fields: { kind: "vertex", credentials: CREDENTIALS, project: "p-1234", location: "europe-west4" },
    yaml: `kind: vertex, credentials: ${JSON.stringify(CREDENTIALS)}, project: p-1234, location: europe-west4`,
    path: "/v1beta1/projects/p-1234/locations/europe-west4/publishers/google",
    whole: "/v1beta1/projects/p-1234/locations/europe-west4/publishers/google/models/m-1:generateContent",
    streamed:
      "/v1beta1/projects/p-1234/locations/europe-west4/publishers/google/models/m-1:streamGenerateContent?alt=sse",
    headers: { authorization: "Bearer vertex-token", "x-goog-api-key": undefined },
  },
  express: {
    script: VERTEX,
    fields: { kind: "vertex", apiKey: "vertex-key" },
    yaml: "kind: vertex, api_key: vertex-key",
    path: "/v1/publishers/google",
    whole: "/v1/publishers/google/models/m-1:generateContent",
    streamed: "/v1/publishers/google/models/m-1:streamGenerateContent?alt=sse",
    headers: { "x-goog-api-key": "vertex-key", authorization: undefined },
  },
};
const NAMES = Object.keys(KINDS);
const kindOf = (name: string): Kind => {
  const kind = KINDS[name];
  if (!kind) throw new Error(name);
  return kind;
};

/** Answers requests for models as `answer` specifies, and always answers requests for tokens. */
function answer(answering: (request: RecordedRequest, index: number) => Response | Promise<Response>): void {
  let calls = 0;
  upstream.answer((request) =>
    request.path === "/token"
      ? Response.json({ access_token: "vertex-token", expires_in: 3_599, token_type: "Bearer" })
      : answering(request, calls++),
  );
}
const toModels = () => upstream.requests.filter(({ path }) => path !== "/token");

const ASK: LanguageModelV4CallOptions = {
  prompt: [{ role: "user", content: [{ type: "text", text: "hello" }] }],
};

async function openModel(name: string) {
  const { fields, path } = kindOf(name);
  const config = { kind: "openai", timeoutMs: 60_000, baseUrl: upstream.url + path, ...fields } as const;
  const gateway = await createModelGateway(
    {
      providers: new Map([[name, config]]),
      tiers: new Map([[1, { tier: 1, name: "one", models: [`${name}/${modelOf(name)}`] }]]),
      ...{ aliases: new Map(), prices: new Map(), priceList: { unknown: "free" as const } },
    },
    systemClock,
    16,
  );
  const [model] = gateway.open(() => OPEN_POLICY, 1, 1);
  if (!model) throw new Error("no model");
  return model.model;
}

let stage: Stage;
beforeAll(async () => {
  Object.assign(process.env, FOREIGN);
  stage = await startStage({
    tiers: Object.fromEntries(NAMES.map((name, at) => [at + 1, [`${name}/${modelOf(name)}`, "fallback"]])),
    providers: Object.fromEntries(
      NAMES.map((name) => {
        const { yaml, path } = kindOf(name);
        return [name, `{ ${yaml}, base_url: "${upstream.url}${path}" }`];
      }),
    ),
  });
  stage.upstream.script("fallback", { chunks: ["from the fallback"] });
  await stage.gateway.agent("plain");
});
beforeEach(() => {
  upstream.requests.length = 0;
});
afterAll(async () => {
  for (const [name, value] of before) {
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
  }
  await stage.stop();
  await upstream.close();
});

async function run(kind: string, fields: object = {}) {
  const tier = NAMES.indexOf(kind) + 1;
  return ended(stage.gateway, await dispatch(stage.gateway, { agent: "plain", tier, ...fields }));
}

describe.each(NAMES)("%s", (name) => {
  const { script, whole, streamed, headers } = kindOf(name);

  test("a forbidden model is never sent", async () => {
    answer(() => script.streamed("never"));
    const agent = `careful-${name}`;
    await stage.gateway.agent(agent, { tier_policy: { models: { deny: [`${name}/*`] } } });
    const task = await run(name, { agent });
    expect(task).toMatchObject({ status: "succeeded", output: "from the fallback" });
    expect(upstream.requests).toEqual([]);
  });

  test.each([
    [400, "http_400", "failed"],
    [403, "http_403", "succeeded"],
    [429, "rate_limited", "succeeded"],
    [500, "http_500", "succeeded"],
  ])("its %d ends as %s, and its message is shown nowhere", async (status, reason, result) => {
    answer(() => script.failing(status, "secret words of the provider"));
    const task = await run(name);
    expect(task.status).toBe(result);
    expect(JSON.stringify(task)).not.toContain("secret words");
    expect(toModels()).toHaveLength(1);
    const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task.id);
    const [failed] = entries.filter(({ phase, action }) => phase === "outcome" && action === "model.call");
    expect(failed).toMatchObject({ outcome: "failed", code: reason, credits: 0 });
    expect(unsettled(entries)).toEqual([]);
  });

  test.each([
    ["is cut", () => script.cut("half an answer")],
    [
      "sends something other than it claims",
      () => new Response("{}", { headers: { "content-type": "text/html" } }),
    ],
    ["redirects", () => new Response(null, { status: 307, headers: { location: "/elsewhere" } })],
  ])("an answer that %s is never used", async (_, answering) => {
    answer(answering);
    expect(await run(name)).toMatchObject({ status: "succeeded", output: "from the fallback" });
    expect(toModels().map(({ path }) => path)).toEqual([streamed]);
  });

  test("it is sent exactly the configured credentials, at the configured address", async () => {
    answer(({ path }) =>
      path === streamed && streamed !== whole ? script.streamed("a") : script.whole("a"),
    );
    const model = await openModel(name);
    const { content, usage } = await model.doGenerate(ASK);
    expect(content).toMatchObject([{ type: "text", text: "a" }]);
    expect(usage).toMatchObject({
      inputTokens: { total: 1_000, cacheRead: 600 },
      outputTokens: { total: 50 },
    });
    answer(() => script.streamed("b"));
    const { stream } = await model.doStream(ASK);
    const parts: LanguageModelV4StreamPart[] = await Array.fromAsync(stream);
    expect(parts.filter(({ type }) => type === "text-delta")).toMatchObject([{ delta: "b" }]);
    expect(parts.at(-1)).toMatchObject({
      type: "finish",
      usage: { inputTokens: { total: 1_000, cacheRead: 600 }, outputTokens: { total: 50 } },
    });
    expect(toModels().map(({ method, path }) => `${method} ${path}`)).toEqual([
      `POST ${whole}`,
      `POST ${streamed}`,
    ]);
    for (const request of upstream.requests) {
      expect(JSON.stringify(request)).not.toMatch(/foreign/);
      expect(request.headers["accept-encoding"]).toBe("identity");
    }
    for (const request of toModels()) {
      for (const [header, value] of Object.entries(headers)) expect(request.headers[header]).toBe(value);
      expect(request.body).toContain("hello");
      if (name === "bedrock") {
        expect(request.headers["x-amz-date"]).toMatch(/^\d{8}T\d{6}Z$/);
        expect(request.headers.authorization).toBe(expectedAuthorization(request, AWS));
      }
    }
  });

  test("a task calls tools with it", async () => {
    answer((_, index) =>
      index === 0 ? script.calling({ name: "time__now", arguments: {} }) : script.streamed("it is late"),
    );
    const task = await run(name, { tools: ["time.now"] });
    expect(task).toMatchObject({ status: "succeeded", output: "it is late" });
    const [first, second] = toModels().map(({ body }) => body);
    expect(first).toContain("time__now");
    expect(second).toContain("time__now");
    const entries = (await ledger(stage.gateway)).filter((entry) => entry.task === task.id);
    expect(
      entries.filter(({ action, phase }) => action === "model.call" && phase === "outcome"),
    ).toMatchObject([
      {
        outcome: "succeeded",
        model: `${name}/${modelOf(name)}`,
        detail: { input_tokens: 1_000, output_tokens: 50 },
      },
      {
        outcome: "succeeded",
        model: `${name}/${modelOf(name)}`,
        detail: { input_tokens: 1_000, output_tokens: 50 },
      },
    ]);
  });
});

describe("a service account", () => {
  const claims = (part: string | undefined) => JSON.parse(Buffer.from(part ?? "", "base64url").toString());

  test("requests one token, with a signed JWT, however many calls need it", async () => {
    answer(() => VERTEX.whole("a"));
    const model = await openModel("vertex");
    await Promise.all([1, 2, 3].map(() => model.doGenerate(ASK)));
    const tokens = upstream.requests.filter(({ path }) => path === "/token");
    expect(tokens).toHaveLength(1);
    const form = new URLSearchParams(tokens[0]?.body);
    expect(form.get("grant_type")).toBe("urn:ietf:params:oauth:grant-type:jwt-bearer");
    const [head, body, signature = ""] = (form.get("assertion") ?? "").split(".");
    expect(claims(head)).toEqual({ alg: "RS256", typ: "JWT", kid: "key-1" });
    const { iat, exp, ...rest } = claims(body);
    expect(rest).toEqual({
      iss: "gate@example.iam.gserviceaccount.com",
      scope: "https://www.googleapis.com/auth/cloud-platform",
      aud: `${upstream.url}/token`,
    });
    expect(exp - iat).toBe(3_600);
    const signed = Buffer.from(`${head}.${body}`);
    expect(
      verify("RSA-SHA256", signed, createPublicKey(publicKey), Buffer.from(signature, "base64url")),
    ).toBe(true);
  });

  test.each([
    ["is refused", () => Response.json({ error: "invalid_grant" }, { status: 400 }), "http_401"],
    ["fails", () => new Response("", { status: 503 }), "http_503"],
    ["brings no token", () => Response.json({ hello: 1 }), "http_502"],
    ["is redirected", () => Response.redirect("http://127.0.0.1:1/", 302), "error"],
  ])("whose token request %s sends nothing to the model", async (_, token, reason) => {
    const { path, fields } = kindOf("vertex");
    upstream.answer((request) => (request.path === "/token" ? token() : VERTEX.streamed("never")));
    const other = await startStage({
      tiers: { 1: ["vertex/m-1", "fallback"] },
      providers: {
        vertex: `{ kind: vertex, project: p-1234, location: global, base_url: "${upstream.url}${path}", credentials: ${JSON.stringify(fields.credentials)} }`,
      },
    });
    other.upstream.script("fallback", { chunks: ["from the fallback"] });
    await other.gateway.agent("plain");
    const task = await ended(other.gateway, await dispatch(other.gateway, { agent: "plain" }));
    expect(task).toMatchObject({ status: "succeeded", output: "from the fallback" });
    expect(toModels()).toEqual([]);
    const entries = await ledger(other.gateway);
    expect(entries.find(({ phase, model }) => phase === "outcome" && model === "vertex/m-1")?.code).toBe(
      reason,
    );
    await other.stop();
  });
});

test("an address in a tool's result is not fetched", async () => {
  const elsewhere = startRecordingUpstream();
  elsewhere.answer(() => new Response("x", { headers: { "content-type": "image/png" } }));
  answer(() => VERTEX.whole("a"));
  const model = await openModel("vertex");
  const url = new URL(`${elsewhere.url}/picture.png`);
  const output = {
    type: "content" as const,
    value: [{ type: "file" as const, mediaType: "image/png", data: { type: "url" as const, url } }],
  };
  const call = { toolCallId: "1", toolName: "look" };
  const sending = model.doGenerate({
    prompt: [
      { role: "user", content: [{ type: "text", text: "look" }] },
      { role: "assistant", content: [{ type: "tool-call", ...call, input: {} }] },
      { role: "tool", content: [{ type: "tool-result", ...call, output }] },
    ],
  });
  await Promise.resolve(sending).catch(() => {});
  expect(elsewhere.requests).toEqual([]);
  await elsewhere.close();
});

test("a tuned model of vertex fails on its own, and the rest of its tier is used", async () => {
  const model = await (async () => {
    const { path } = kindOf("express");
    const config = { kind: "vertex", timeoutMs: 60_000, baseUrl: upstream.url + path, apiKey: "k" } as const;
    const gateway = await createModelGateway(
      {
        providers: new Map([["v", config]]),
        tiers: new Map([[1, { tier: 1, name: "one", models: ["v/endpoints/1", "v/m"] }]]),
        ...{ aliases: new Map(), prices: new Map(), priceList: { unknown: "free" as const } },
      },
      systemClock,
      16,
    );
    return gateway.open(() => OPEN_POLICY, 1, 1);
  })();
  expect(model).toHaveLength(2);
  const failure = await Promise.resolve(model[0]?.model.doStream(ASK)).catch((error: unknown) => error);
  expect(String(failure)).toContain("tuned models");
});

test.each([
  [
    "a frame of 64 MiB that never arrives",
    [Buffer.from([4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Buffer.alloc(4_096)],
  ],
  ["a frame of no bytes", [Buffer.alloc(64)]],
  ["bytes that are not frames", [Buffer.alloc(4_096, "x")]],
])("%s ends bedrock's stream", async (_, parts) => {
  answer(() => frames(parts));
  expect(await run("bedrock")).toMatchObject({ status: "succeeded", output: "from the fallback" });
});
