import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/base/clock.ts";
import { createLog, type Log } from "../../src/base/log.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
/** The gateway's log lines with each field as it was passed, before any redaction. */
const lines: string[] = [];
const secrets: string[] = [];
const answers: string[] = [];

function capture(): Log {
  const at = (level: string) => (message: string, fields?: object) =>
    void lines.push(`${level} ${message} ${Bun.inspect(fields, { depth: 10 })}`);
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

beforeAll(async () => {
  gateway = await startGateway({ log: capture() });
  const { call } = gateway;
  await gateway.agent("agent");
  const keep = (answer: { body: { secret: string; id: string } }) => {
    secrets.push(answer.body.secret);
    return answer.body;
  };
  const scopes = ["tasks:read", "tokens:write", "ledger:read"];
  const one = keep(await call("POST", "/v1/tokens", { body: { name: "one", scopes } }));
  const two = keep(await call("POST", "/v1/tokens", { body: { name: "two", agent: "agent" } }));
  keep(await call("POST", `/v1/tokens/${one.id}/rotate`, { body: { grace: "10m" } }));
  keep(await call("POST", `/v1/tokens/${two.id}/rotate`));
  for (const token of secrets) {
    for (const path of ["/v1/tokens", "/v1/tasks", "/v1/agents", "/v1/ledger", "/v1/workspace"]) {
      answers.push(JSON.stringify(await call("GET", path, { token })));
    }
    // Places into which people put a secret by mistake.
    answers.push(JSON.stringify(await call("POST", "/v1/tokens", { token, raw: "{" })));
  }
  await call("DELETE", `/v1/tokens/${one.id}`);
  for (const path of ["/v1/tokens", "/v1/ledger?limit=200", "/v1/ledger?limit=200&order=desc"]) {
    answers.push(JSON.stringify((await call("GET", path)).body));
  }
});
afterAll(() => gateway.stop());

test("a secret is shown once: no later answer, list or ledger entry repeats it", () => {
  expect(secrets).toHaveLength(4);
  for (const secret of [...secrets, gateway.admin]) {
    for (const answer of answers) expect(answer).not.toContain(secret);
  }
  expect(answers.join()).not.toContain("gth_");
});

test("the log contains no secret, and would hide one that reached it", () => {
  for (const secret of [...secrets, gateway.admin]) {
    for (const line of lines) expect(line).not.toContain(secret);
  }
  let written = "";
  const log = createLog("debug", systemClock, (line) => {
    written += line;
  });
  log.error(`with ${gateway.admin}`, { nested: { secret: secrets[0] }, error: new Error(secrets[1]) });
  expect(written).not.toContain(gateway.admin);
  for (const secret of secrets) expect(written).not.toContain(secret);
});

test("the database's files contain a secret's SHA-256, but never the secret or its random part", () => {
  const files = readdirSync(gateway.dataDir).filter((name) => /\.db|sqlite/.test(name));
  expect(files.length).toBeGreaterThan(0);
  const bytes = Buffer.concat(files.map((name) => readFileSync(join(gateway.dataDir, name))));
  for (const secret of [...secrets, gateway.admin]) {
    expect(bytes.includes(secret)).toBe(false);
    expect(bytes.includes(secret.slice(4, 47))).toBe(false);
    expect(bytes.includes(new Bun.CryptoHasher("sha256").update(secret).digest())).toBe(true);
  }
});
