/**
 * Connectors over stdio start programs on this machine. These tests check who may add them and who may read their
 * output.
 */

import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Log } from "../../src/base/log.ts";
import { databasePath } from "../../src/store/directory.ts";
import { seal, open as unseal } from "../../src/store/sealed-value.ts";
import { openSecretKey } from "../../src/store/secret-key.ts";
import { connect } from "../mcp/support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ENGINE } from "../support/postgres/engine.ts";
import { reseal } from "../support/seals.ts";
import { ledger } from "../tasks/support.ts";

const FAKE_STDIO = join(import.meta.dir, "..", "support", "fake-mcp", "stdio.ts");

let dataDir: string;
let outside: string;
let gateway: TestGateway;
let logged: string[];
let isRunning = false;
const note = (message: string, fields: object = {}) => void logged.push(JSON.stringify({ message, fields }));
const log: Log = { debug: () => {}, info: note, warn: note, error: note };

/** No earlier version stored anything in PostgreSQL. */
const testOnFiles = test.skipIf(process.env[ENGINE] === "postgres");

beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  outside = mkdtempSync(join(tmpdir(), "gatehouse-outside-"));
  // Programs may run as separate users.
  chmodSync(outside, 0o777);
  logged = [];
  gateway = await startGateway({ dataDir, log });
  isRunning = true;
});
afterEach(async () => {
  await stop();
  rmSync(dataDir, { recursive: true, force: true });
  rmSync(outside, { recursive: true, force: true });
});

/** Stops the gateway, so that the test can inspect its files before the next start. */
async function stop(): Promise<void> {
  if (isRunning) await gateway.stop();
  isRunning = false;
}

/** Restarts with another `connectors.stdio`. Tokens stay valid. */
async function restart(rule: "operator" | "all" | "none"): Promise<void> {
  const { admin } = gateway;
  await stop();
  const again = await startGateway({ dataDir, log, yaml: `connectors: { stdio: ${rule} }\n` });
  isRunning = true;
  gateway = {
    ...again,
    admin,
    call: (method, path, options) => again.call(method, path, { token: admin, ...options }),
  };
}

const fake = (...args: string[]) => ({
  type: "stdio",
  command: process.execPath,
  args: [FAKE_STDIO, ...args],
  env: { SECRET: "hunter22-long" },
});
const create = (body: object, options: object = {}) =>
  gateway.call("POST", "/v1/connectors", { body: { name: "up", kind: "mcp", ...body }, ...options });
const commandLine = (workspace: string) => ({
  token: gateway.gateway.operatorSecret,
  headers: { "gatehouse-operator": "ops", "gatehouse-workspace": workspace },
});
async function issue(token: string, request: object): Promise<string> {
  const { body } = await gateway.call("POST", "/v1/tokens", { token, body: { name: "test", ...request } });
  return body.secret;
}
async function shown(token: string, name = "up") {
  const { body } = await gateway.call("GET", "/v1/connectors", { token });
  return body.data.find((each: { name: string }) => each.name === name);
}

describe("a program is not started for", () => {
  const WHO: Record<string, () => Promise<string>> = {
    "a token of another workspace with connectors:write": async () =>
      issue(await gateway.workspace("tenant"), { scopes: ["connectors:write"] }),
    "an admin token of another workspace": () => gateway.workspace("tenant"),
    "a token of default that is not an admin's": () =>
      issue(gateway.admin, { scopes: ["connectors:write", "connectors:read", "settings:write"] }),
    "an admin token of default that acts as an agent": async () => {
      await gateway.agent("worker");
      return issue(gateway.admin, { agent: "worker", scopes: ["admin"] });
    },
  };

  test.each(Object.keys(WHO))("%s", async (who) => {
    const token = (await WHO[who]?.()) ?? "";
    const marker = join(outside, "started");
    const transport = { type: "stdio", command: "/bin/sh", args: ["-c", `echo > ${marker}`] };
    const answer = await create({ transport }, { token });
    expect([answer.status, answer.body.code]).toEqual([403, "operator_only"]);
    expect(existsSync(marker)).toBe(false);
    const refresh = await gateway.call("POST", "/v1/connectors/up/refresh", { token });
    expect(refresh.status).toBe(404);
  });

  test("anyone, if connectors.stdio is none", async () => {
    await restart("none");
    const answer = await create({ transport: fake("plain") });
    expect([answer.status, answer.body.errors[0].path]).toEqual([422, "/transport/type"]);
    const tenant = await gateway.workspace("tenant");
    expect((await create({ transport: fake("plain") }, { token: tenant })).body.code).toBe("operator_only");
  });

  test("an agent's token, even if connectors.stdio is all", async () => {
    await restart("all");
    await gateway.agent("worker");
    const token = await issue(gateway.admin, { agent: "worker", scopes: ["connectors:write"] });
    expect((await create({ transport: fake("plain") }, { token })).body.code).toBe("operator_only");
  });
});

test("the refusal is in the caller's ledger", async () => {
  const tenant = await gateway.workspace("tenant");
  await create({ transport: fake("plain") }, { token: tenant });
  const denied = (await ledger(gateway, tenant)).filter(({ action }) => action === "connector.authorise");
  expect(denied).toMatchObject([{ outcome: "denied", code: "operator_only", detail: { connector: "up" } }]);
});

describe("a program is started for", () => {
  test("an admin token of default", async () => {
    expect((await create({ transport: fake("plain") })).body.status).toBe("ready");
  });

  test("the command line, in any workspace", async () => {
    const tenant = await gateway.workspace("tenant");
    const answer = await create({ transport: fake("plain") }, commandLine("tenant"));
    expect([answer.status, answer.body.status]).toEqual([201, "ready"]);
    expect((await shown(tenant)).tools).not.toBeEmpty();
  });

  test("every workspace with connectors:write, if connectors.stdio is all", async () => {
    await restart("all");
    const token = await issue(await gateway.workspace("tenant"), { scopes: ["connectors:write"] });
    expect((await create({ transport: fake("plain") }, { token })).body.status).toBe("ready");
  });
});

describe("programs that were added before", () => {
  const marker = () => join(outside, "started");
  /** A program that records that it was started, and then serves. */
  const marking = () => ({
    type: "stdio",
    command: "/bin/sh",
    args: ["-c", `echo >> ${marker()}; exec "$0" "$@"`, process.execPath, FAKE_STDIO, "plain"],
    env: { SECRET: "x" },
  });

  async function expectDisabled(token: string, workspace: string) {
    const { status, error } = await shown(token);
    expect([status, error]).toEqual([
      "disabled",
      `It starts a program that the operator has not authorised. Remove the connector and ask the operator to add it again with: gatehouse connector add --workspace ${workspace}. Or set connectors.stdio to all.`,
    ]);
    rmSync(marker(), { force: true });
    const refreshed = await gateway.call("POST", "/v1/connectors/up/refresh", { token });
    expect([refreshed.status, refreshed.body.status]).toEqual([200, "disabled"]);
    const client = await connect(gateway, { token });
    expect((await client.call("up__echo")).isError).toBe(true);
    expect(existsSync(marker())).toBe(false);
  }

  /** Rewrites the connector as an earlier version stored it: without naming who authorised it. */
  async function asStoredBefore(name: string): Promise<void> {
    await stop();
    const file = new Database(databasePath(dataDir));
    const key = openSecretKey({ masterKey: undefined, dataDir });
    for (const row of file
      .query<{ id: number; workspace_id: number; definition: Uint8Array }, [string]>(
        "SELECT id, workspace_id, definition FROM connectors WHERE name = ?",
      )
      .all(name)) {
      const context = `connector\n${row.workspace_id}\n${name}`;
      const definition = JSON.parse(unseal(key, row.definition, context).toString());
      expect(definition.transport.addedBy).toBeString();
      delete definition.transport.addedBy;
      file.run("UPDATE connectors SET definition = ? WHERE id = ?", [
        seal(key, JSON.stringify(definition), context),
        row.id,
      ]);
    }
    reseal(file, dataDir, "connectors");
    file.close();
  }

  test("by another workspace are disabled and not started, until connectors.stdio is all", async () => {
    await restart("all");
    const tenant = await gateway.workspace("tenant");
    expect((await create({ transport: marking() }, { token: tenant })).body.status).toBe("ready");
    await restart("operator");
    await expectDisabled(tenant, "tenant");
    await restart("all");
    const client = await connect(gateway, { token: tenant });
    expect((await client.call("up__echo", { text: "hi" })).content[0].text).toBe("hi");
  });

  testOnFiles(
    "by another workspace, in an earlier version's data, are disabled and not started",
    async () => {
      await restart("all");
      const tenant = await gateway.workspace("tenant");
      await create({ transport: marking() }, { token: tenant });
      await asStoredBefore("up");
      await restart("operator");
      await expectDisabled(tenant, "tenant");
    },
  );

  testOnFiles(
    "by a token of default that was not an admin's, in an earlier version's data, are disabled",
    async () => {
      await restart("all");
      const token = await issue(gateway.admin, { scopes: ["connectors:write"] });
      await create({ transport: marking() }, { token });
      await asStoredBefore("up");
      await restart("operator");
      await expectDisabled(gateway.admin, "default");
    },
  );

  testOnFiles(
    "by the operator, in an earlier version's data, still work, whatever happened to the token",
    async () => {
      const tenant = await gateway.workspace("tenant");
      const second = await gateway.call("POST", "/v1/tokens", {
        body: { name: "second", scopes: ["admin"] },
      });
      await create({ transport: marking() }, { token: second.body.secret });
      await create({ transport: marking() }, commandLine("tenant"));
      await gateway.call("DELETE", `/v1/tokens/${second.body.id}`);
      await asStoredBefore("up");
      await restart("operator");
      for (const token of [gateway.admin, tenant]) {
        const client = await connect(gateway, { token });
        expect((await client.call("up__echo", { text: "hi" })).content[0].text).toBe("hi");
      }
    },
  );

  test("are all disabled if connectors.stdio is none", async () => {
    await create({ transport: marking() });
    rmSync(marker());
    await restart("none");
    expect(await shown(gateway.admin)).toMatchObject({
      status: "disabled",
      error: "It starts a program, but connectors.stdio is none.",
    });
    const client = await connect(gateway);
    expect((await client.call("up__echo")).isError).toBe(true);
    expect(existsSync(marker())).toBe(false);
  });
});

describe("the standard error of a program", () => {
  const REVERSED = [..."hunter22-long"].reverse().join("");
  const ENDED =
    "The program of the connector up ended with code 3. It is unknown whether the call was carried out.";
  /** A program that lists one tool. When the tool is called, it prints its secret backwards and exits. */
  const PROGRAM = `
    const say = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
    let rest = "";
    process.stdin.on("data", (chunk) => {
      const lines = (rest + chunk).split("\\n");
      rest = lines.pop();
      for (const { id, method, params } of lines.map((line) => JSON.parse(line))) {
        if (method === "initialize")
          say(id, { protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "x", version: "1" } });
        if (method === "tools/list") say(id, { tools: [{ name: "spell", inputSchema: { type: "object" } }] });
        if (method === "tools/call") {
          process.stderr.write([...process.env.SECRET].reverse().join("") + "\\n", () => process.exit(3));
        }
      }
    });`;

  async function ended() {
    const path = join(outside, "program.js");
    writeFileSync(path, PROGRAM);
    const transport = { ...fake(), args: [path] };
    expect((await create({ transport })).body.status).toBe("ready");
    const client = await connect(gateway);
    const answer = await client.call("up__spell");
    expect(answer.isError).toBe(true);
    return JSON.stringify(answer);
  }

  test("is shown to no caller of its tools and no reader of connectors except the operator", async () => {
    expect(await ended()).not.toContain(REVERSED);
    for (const scopes of [["connectors:read"], ["connectors:read", "connectors:write"]]) {
      const token = await issue(gateway.admin, { scopes });
      const { status, error } = await shown(token);
      expect([status, error]).toEqual(["unreachable", ENDED]);
    }
    expect((await shown(gateway.admin)).error).toBe(`${ENDED} Its program wrote: ${REVERSED}`);
  });

  test("is in the operator's log, and neither in the ledger nor in the database", async () => {
    await ended();
    expect(logged.filter((line) => line.includes(REVERSED)).join()).toContain("a connector's program ended");
    expect(JSON.stringify(await ledger(gateway))).not.toContain(REVERSED);
    await gateway.call("POST", "/v1/connectors/up/refresh");
    await stop();
    for (const file of new Bun.Glob("gatehouse.db*").scanSync(dataDir)) {
      expect(await Bun.file(join(dataDir, file)).text()).not.toContain(REVERSED);
    }
  });

  testOnFiles("is not shown again after a restart, when an earlier version stored it", async () => {
    await ended();
    await stop();
    const file = new Database(databasePath(dataDir));
    file.run("UPDATE connectors SET status = 'unreachable', error = ?", [`It said: ${REVERSED}`]);
    file.close();
    await restart("operator");
    const { status, error } = await shown(gateway.admin);
    expect([status, error]).toEqual(["unreachable", "It has not been reached yet."]);
  });
});
