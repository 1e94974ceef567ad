/** The fields of the providers azure, bedrock and vertex: errors name the field, secrets are shown nowhere. */
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { showConfig } from "../../src/config/show.ts";
import { load, problems } from "./support.ts";

const rsa = generateKeyPairSync("rsa", {
  modulusLength: 2_048,
  publicKeyEncoding: { type: "spki", format: "pem" },
  privateKeyEncoding: { type: "pkcs8", format: "pem" },
}).privateKey;
const account = (fields: object = {}) =>
  JSON.stringify({ type: "service_account", client_email: "a@b.example", private_key: rsa, ...fields });
const ACCOUNT = JSON.stringify(account());
const EXPECTED_ACCOUNT = "the JSON of a service account's key, with client_email and an RSA private_key";
const KEY = "a key of printable ASCII characters without spaces";
const ID = "an AWS access key id of 16 to 128 letters and digits";

const provider = (fields: string) => `providers: { p: { ${fields} } }`;

describe("refused:", () => {
  test.each<[fields: string, ...problems: string[]]>([
    [
      "kind: azure",
      `providers.p.api_key (F:1): is missing; kind azure needs it: expected ${KEY}`,
      "providers.p.resource (F:1): is missing; kind azure needs it: expected a resource's name: letters, digits and -, at most 63 characters",
    ],
    [
      "kind: azure, resource: r, api_key: ''",
      `providers.p.api_key (F:1): is missing; kind azure needs it: expected ${KEY}`,
    ],
    [
      "kind: azure, resource: a.b, api_key: k",
      'providers.p.resource (F:1): is "a.b"; expected a resource\'s name: letters, digits and -, at most 63 characters',
    ],
    [
      'kind: azure, resource: r, base_url: "https://x.example", api_key: k',
      "providers.p.resource (F:1): has no effect together with base_url; remove one of them",
    ],
    [
      'kind: azure, base_url: "https://r.openai.azure.com/openai", api_key: k',
      "providers.p.base_url (F:1): is not an address of Azure's v1 API; expected one that ends in /openai/v1",
    ],
    [
      "kind: bedrock, region: eu-central-1",
      `providers.p.api_key (F:1): is missing; kind bedrock needs it: expected ${KEY}, or access_key_id and secret_access_key instead`,
    ],
    [
      "kind: bedrock, api_key: k",
      "providers.p.region (F:1): is missing; kind bedrock needs it: expected an AWS region such as eu-central-1",
    ],
    [
      "kind: bedrock, region: eu-central-1, secret_access_key: s",
      `providers.p.access_key_id (F:1): is missing; kind bedrock needs it: expected ${ID}`,
    ],
    [
      "kind: bedrock, region: eu-central-1, api_key: k, session_token: t",
      "providers.p.session_token (F:1): has no effect together with api_key; remove one of them",
    ],
    [
      "kind: bedrock, region: evil.example/x, api_key: k",
      'providers.p.region (F:1): is "evil.example/x"; expected an AWS region such as eu-central-1',
    ],
    [
      "kind: vertex",
      `providers.p.api_key (F:1): is missing; kind vertex needs it: expected ${KEY}, or credentials instead`,
    ],
    [
      `kind: vertex, credentials: ${ACCOUNT}`,
      "providers.p.project (F:1): is missing; kind vertex needs it: expected a Google Cloud project, by id or number",
      "providers.p.location (F:1): is missing; kind vertex needs it: expected a location such as europe-west4 or global",
    ],
    [
      "kind: vertex, project: p-1, location: eu, credentials: nonsense",
      `providers.p.credentials (F:1): is [redacted]; expected ${EXPECTED_ACCOUNT}`,
    ],
    [
      `kind: vertex, project: p-1, location: eu, api_key: k`,
      "providers.p.project (F:1): has no effect together with api_key; remove one of them",
      "providers.p.location (F:1): has no effect together with api_key; remove one of them",
    ],
    [
      "kind: openai, api_key: k, region: eu-central-1",
      "providers.p.region (F:1): has no effect with kind openai; it belongs to kind bedrock",
    ],
    [
      "kind: azur",
      'providers.p.kind (F:1): is "azur"; expected one of openai-compatible, openai, azure, anthropic, google, bedrock, vertex',
    ],
  ])("%s", (fields, ...expected) => {
    expect(problems({ yaml: provider(fields) })).toEqual(expected);
  });

  test.each([
    ["no private key", account({ private_key: "" })],
    [
      "a key of another kind",
      account({
        private_key: generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }),
      }),
    ],
    ["an address for tokens that is none", account({ token_uri: "file:///etc/passwd" })],
  ])("a service account with %s", (_, json) => {
    const yaml = provider(`kind: vertex, project: p-1, location: eu, credentials: ${JSON.stringify(json)}`);
    expect(problems({ yaml })[0]).toBe(
      `providers.p.credentials (F:1): is [redacted]; expected ${EXPECTED_ACCOUNT}`,
    );
  });
});

test("a service account's key can be read from a file", () => {
  const yaml = provider('kind: vertex, project: p-1, location: eu, credentials: "$' + '{GOOGLE_KEY}"');
  const { config } = load({
    yaml,
    env: { GOOGLE_KEY_FILE: "/key.json" },
    files: { "/key.json": `${account()}\n` },
  });
  expect(config.providers.get("p")).toEqual({
    ...{ kind: "vertex", project: "p-1", location: "eu", credentials: account(), timeoutMs: 60_000 },
  });
});

test("secrets are shown nowhere", () => {
  const yaml = `providers:
  a: { kind: azure, resource: r, api_key: hunter-azure }
  b: { kind: bedrock, region: us-east-1, access_key_id: AKIAHUNTER22HUNTER22, secret_access_key: hunter-secret, session_token: hunter-session }
  v: { kind: vertex, project: p-1, location: eu, credentials: ${ACCOUNT} }
`;
  const shown = JSON.stringify(showConfig(load({ yaml }).values));
  expect(shown).not.toMatch(/hunter|HUNTER|PRIVATE KEY|b\.example/);
  expect(shown).toContain("us-east-1");
});
