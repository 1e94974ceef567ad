/** What survives a restart of connectors, and what does not. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { GatewayOptions } from "../../src/gateway.ts";
import { addConnector, connect } from "../mcp/support.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { ENGINE } from "../support/postgres/engine.ts";
import { type ScriptedMcp, startScriptedMcp } from "../support/scripted-mcp.ts";
import { ledger } from "../tasks/support.ts";

const FAKE_STDIO = join(import.meta.dir, "..", "support", "fake-mcp", "stdio.ts");

let dataDir: string;
let gateway: TestGateway;
let upstream: ScriptedMcp;
beforeEach(async () => {
  dataDir = mkdtempSync(join(tmpdir(), "gatehouse-test-"));
  gateway = await startGateway({ dataDir });
  upstream = startScriptedMcp(["echo"]);
});
afterEach(async () => {
  await gateway.stop();
  await upstream.close();
  rmSync(dataDir, { recursive: true, force: true });
});

async function restart(options: GatewayOptions = {}): Promise<void> {
  await gateway.stop();
  await startAgain(options);
}

async function startAgain(options: GatewayOptions = {}): Promise<void> {
  const { admin } = gateway;
  const again = await startGateway({ dataDir, ...options });
  gateway = {
    ...again,
    admin,
    call: (method, path, options) => again.call(method, path, { token: admin, ...options }),
  };
}

/** Pids of the processes that have this word in their arguments. */
function processesOf(marker: string): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(marker);
    } catch {
      // The process has ended since it was listed.
      return false;
    }
  });
}

async function shown(name: string) {
  const { body } = await gateway.call("GET", "/v1/connectors");
  return body.data.find((each: { name: string }) => each.name === name);
}

test("a connector is unchanged, and its upstream is not contacted before the first call", async () => {
  await addConnector(gateway, "up", upstream.url, { scopes: ["ec*"] });
  const before = await shown("up");
  const heard = upstream.heard.length;
  await restart();
  expect(await shown("up")).toEqual(before);
  const client = await connect(gateway);
  expect(await client.toolNames()).toContain("up__echo");
  expect(upstream.heard.length).toBe(heard);
  expect((await client.call("up__echo", { a: 1 })).content[0].text).toBe('echo {"a":1}');
});

test("a program is started only by its first call, and ends with the gateway or its connector", async () => {
  const marker = `marker-${crypto.randomUUID()}`;
  const transport = {
    type: "stdio",
    command: process.execPath,
    args: [FAKE_STDIO, "plain", "{}", marker],
    env: { SECRET: "x" },
  };
  const made = await gateway.call("POST", "/v1/connectors", {
    body: { name: "child", kind: "mcp", transport },
  });
  expect(made.body.status).toBe("ready");
  expect(processesOf(marker)).toHaveLength(1);
  await restart();
  expect(processesOf(marker)).toEqual([]);
  const client = await connect(gateway);
  expect(await client.toolNames()).toContain("child__echo");
  expect(processesOf(marker)).toEqual([]);
  expect((await client.call("child__echo", { text: "hi" })).content[0].text).toBe("hi");
  expect(processesOf(marker)).toHaveLength(1);
  expect((await gateway.call("DELETE", "/v1/connectors/child")).status).toBe(204);
  expect(processesOf(marker)).toEqual([]);
});

test("a removed connector does not come back", async () => {
  await addConnector(gateway, "up", upstream.url);
  await gateway.call("DELETE", "/v1/connectors/up");
  await restart();
  expect(await shown("up")).toBeUndefined();
});

test("the result of a refresh persists, including that it cannot be reached", async () => {
  await addConnector(gateway, "up", upstream.url);
  upstream.list(["echo", "more"]);
  await gateway.call("POST", "/v1/connectors/up/refresh");
  await restart();
  expect((await shown("up")).tools).toHaveLength(2);
  await upstream.close();
  await gateway.call("POST", "/v1/connectors/up/refresh");
  await restart();
  expect(await shown("up")).toMatchObject({ status: "unreachable", tools: [{}, {}] });
});

function keyTests(): void {
  const path = () => join(dataDir, "secrets.key");

  test("belongs only to the owner", async () => {
    await addConnector(gateway, "up", upstream.url);
    expect(statSync(path()).mode & 0o777).toBe(0o600);
  });

  test("is refused if it differs; accepting the rows leaves connectors disabled, and everything else works", async () => {
    await addConnector(gateway, "up", upstream.url);
    await gateway.stop();
    rmSync(path());
    await expect(startGateway({ dataDir })).rejects.toThrow("sealed with another key");
    await startAgain({ acceptRows: () => {} });
    expect((await shown("up")).status).toBe("disabled");
    expect((await shown("up")).error).toContain("key");
    const client = await connect(gateway);
    const answer = await client.call("up__echo");
    expect(answer.isError).toBe(true);
    expect((await client.call("time__now")).structuredContent.now).toBeString();
    const refreshed = await gateway.call("POST", "/v1/connectors/up/refresh");
    expect([refreshed.status, refreshed.body.status]).toEqual([200, "disabled"]);
    expect((await gateway.call("DELETE", "/v1/connectors/up")).status).toBe(204);
    expect((await addConnector(gateway, "up", upstream.url)).status).toBe("ready");
  });

  test("once the right one is restored, the connectors work again", async () => {
    await addConnector(gateway, "up", upstream.url);
    await gateway.stop();
    const key = readFileSync(path());
    rmSync(path());
    await expect(startGateway({ dataDir })).rejects.toThrow("sealed with another key");
    writeFileSync(path(), key, { mode: 0o600 });
    await startAgain();
    const client = await connect(gateway);
    expect((await client.call("up__echo")).content[0].text).toBe("echo {}");
    expect((await shown("up")).status).toBe("ready");
  });

  test("if programs have since been forbidden, disables only those", async () => {
    const transport = { type: "stdio", command: process.execPath, args: [FAKE_STDIO] };
    await gateway.call("POST", "/v1/connectors", { body: { name: "child", kind: "mcp", transport } });
    await addConnector(gateway, "up", upstream.url);
    writeFileSync(join(dataDir, "gatehouse.yaml"), "connectors: { stdio: none }\n");
    await restart();
    expect((await shown("child")).status).toBe("disabled");
    expect((await shown("up")).status).toBe("ready");
    const refused = await gateway.call("POST", "/v1/connectors", {
      body: { name: "more", kind: "mcp", transport },
    });
    expect([refused.status, refused.body.errors[0].path]).toEqual([422, "/transport/type"]);
  });
}

// It is a file only beside a store in files.
if (process.env[ENGINE] !== "postgres") describe("the key of the secrets", keyTests);

test("the ledger has who added it and when, but not its address or credentials", async () => {
  const transport = { type: "http", url: upstream.url, headers: { Authorization: "Bearer hunter22-long" } };
  await gateway.call("POST", "/v1/connectors", {
    body: { name: "up", kind: "mcp", transport, scopes: ["e*"] },
  });
  const entries = (await ledger(gateway)).filter(({ action }) => action.startsWith("connector."));
  expect(entries).toMatchObject([
    {
      action: "connector.authorise",
      outcome: "succeeded",
      detail: { connector: "up", kind: "mcp", scopes: "e*" },
    },
    {
      action: "connector.refresh",
      outcome: "succeeded",
      actor: "system",
      detail: { status: "ready", tools: 1 },
    },
  ]);
  expect(JSON.stringify(entries)).not.toContain(upstream.url);
  expect(JSON.stringify(entries)).not.toContain("hunter22");
});
