/** A task that crashes the process each time it runs is abandoned, and the tasks after it run. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { chainFaults } from "../ledger/support.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import { run, type ServerProcess, serve, tempDir } from "../support/process.ts";
import { until } from "../support/until.ts";
import { readFile, settings, unsettled } from "./support.ts";

setDefaultTimeout(120_000);

const directory = tempDir();
const data = join(directory.path, "gatehouse-data");
const admin = createSecret(systemRandom);
const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } };
let fake: FakeModel;
let server: ServerProcess;

beforeAll(() => {
  fake = startFakeModel();
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(
    join(data, "gatehouse.yaml"),
    `${settings(fake)}limits: { concurrent_tasks: 1, enforcement: enforced }\n`,
  );
});
afterAll(async () => {
  await fake.close();
  directory.remove();
});

async function call(method: string, path: string, body?: object) {
  const answer = await fetch(server.url + path, {
    method,
    headers: { authorization: `Bearer ${admin}`, "content-type": "application/json" },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  return { status: answer.status, body: (await answer.json()) as any };
}

async function dispatch(prompt: string): Promise<string> {
  const { body } = await call("POST", "/v1/tasks", { agent: "helper", prompt, tier: 1 });
  return body.id;
}

const asked = (prompt: string) =>
  fake.requests.filter(({ body }) => body.messages.some(({ content }) => content === prompt)).length;

test("a task whose step has killed the process three times fails as interrupted, and the others run once", async () => {
  // The process is killed each time it asks for the poison, before the answer.
  fake.script("talks", ({ body }) =>
    body.messages.some(({ content }) => content === "poison") ? { hang: true } : { chunks: ["fine"] },
  );
  server = await serve([], options);
  await call("POST", "/v1/agents", { name: "helper", owner: "tests", memory_scope: "/" });
  const poison = await dispatch("poison");
  const others = [await dispatch("one"), await dispatch("two"), await dispatch("three")];
  for (let death = 1; death <= 3; death++) {
    await until(() => asked("poison") === death);
    expect((await call("GET", `/v1/tasks/${poison}`)).body.status).toBe("running");
    for (const id of others) expect((await call("GET", `/v1/tasks/${id}`)).body.status).toBe("queued");
    await server.end("SIGKILL");
    server = await serve([], options);
  }
  for (const id of others) {
    await until(async () => (await call("GET", `/v1/tasks/${id}`)).body.finished_at !== null);
    expect((await call("GET", `/v1/tasks/${id}`)).body).toMatchObject({
      status: "succeeded",
      output: "fine",
    });
  }
  const ended = (await call("GET", `/v1/tasks/${poison}`)).body;
  expect(ended).toMatchObject({ status: "failed", error: { code: "interrupted" } });
  expect(ended.error.message).toContain("3 times");
  expect(["poison", "one", "two", "three"].map(asked)).toEqual([3, 1, 1, 1]);
  expect(await server.end("SIGTERM")).toBe(0);

  const { entries, rows } = readFile(join(data, "gatehouse.db"));
  expect(unsettled(entries)).toEqual([]);
  expect(chainFaults(rows)).toEqual([]);
  const verified = await run(["ledger", "verify", "--data", data], options);
  expect(`${verified.code} ${verified.stderr}`).toBe("0 ");
});
