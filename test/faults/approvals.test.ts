/** People make decisions while the store cannot be written, and while the process is killed. */
import { afterEach, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createSecret } from "../../src/access/secret.ts";
import { systemRandom } from "../../src/base/ids.ts";
import { startFakeModel } from "../support/fake-model.ts";
import { serve, tempDir } from "../support/process.ts";
import { startScriptedMcp } from "../support/scripted-mcp.ts";
import { dispatch, ledger, until } from "../tasks/support.ts";
import { type FullDiskStage, startFullDiskStage } from "./full-disk-support.ts";
import { settings } from "./support.ts";

setDefaultTimeout(60_000);

describe("with a full disk", () => {
  let stage: FullDiskStage;
  afterEach(() => stage.stop());

  async function ask(): Promise<{ id: string; path: string }> {
    stage = await startFullDiskStage();
    await stage.gateway.agent("careful", { approvals: ["time.*"] });
    stage.model.script("a", () => ({ toolCalls: [{ name: "time__now", arguments: {} }] }));
    const id = await dispatch(stage.gateway, { agent: "careful", tools: ["time.now"] });
    let path = "";
    await until(async () => {
      const { data } = (await stage.gateway.call("GET", "/v1/approvals")).body;
      path = data[0] ? `/v1/tasks/${id}/approvals/${data[0].call_id}` : "";
      return path !== "";
    });
    return { id, path };
  }

  test.each(["approve", "deny"])("%s is refused, and changes nothing", async (decision) => {
    const { id, path } = await ask();
    await stage.fill();
    const refused = await stage.gateway.call("POST", path, { body: { decision } });
    expect([refused.status, refused.body.code]).toEqual([503, "ledger_unavailable"]);
    await stage.free();
    expect((await stage.gateway.call("GET", "/v1/approvals")).body.data).toMatchObject([{ task: id }]);
    expect((await stage.gateway.call("POST", path, { body: { decision: "deny" } })).status).toBe(200);
  });

  test.each([
    ["a cancel", (id: string) => `/v1/tasks/${id}/cancel`, "task.cancel"],
    ["a stop", () => "/v1/agents/careful/stop", "oversight.stop"],
  ])("%s takes effect, is recorded late, and nobody can approve after it", async (_, pathOf, action) => {
    const { id, path } = await ask();
    await stage.fill();
    const ended = await stage.gateway.call("POST", pathOf(id));
    expect(ended.status).toBe(200);
    await stage.free();
    const late = await stage.gateway.call("POST", path, { body: { decision: "approve" } });
    expect([late.status, late.body.code]).toEqual([409, "approval_decided"]);
    await stage.untilLater(async () =>
      (await ledger(stage.gateway)).some((entry) => entry.action === action),
    );
    await stage.untilLater(
      async () => (await stage.gateway.call("GET", `/v1/tasks/${id}`)).body.finished_at !== null,
    );
    const entries = await ledger(stage.gateway);
    expect(entries.some((entry) => entry.action === "tool.call" && entry.phase === "intent")).toBe(false);
  });
});

test("an approval survives a killed process: the next process takes the decision, and the call is made once", async () => {
  const directory = tempDir();
  const fake = startFakeModel();
  const tools = startScriptedMcp(["send"]);
  fake.script("talks", ({ body }) =>
    body.messages.at(-1)?.role === "tool"
      ? { chunks: ["done"] }
      : { toolCalls: [{ name: "up__send", arguments: {} }] },
  );
  const data = join(directory.path, "gatehouse-data");
  mkdirSync(data, { mode: 0o700 });
  writeFileSync(join(data, "gatehouse.yaml"), settings(fake));
  const admin = createSecret(systemRandom);
  const options = { cwd: directory.path, env: { GATEHOUSE_ADMIN_TOKEN: admin } };
  let server = await serve([], options);
  const call = async (
    method: string,
    path: string,
    body?: object,
    // biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary JSON.
  ): Promise<{ status: number; body: any }> => {
    const headers = { authorization: `Bearer ${admin}`, "content-type": "application/json" };
    const answer = await fetch(server.url + path, {
      method,
      headers,
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    return { status: answer.status, body: await answer.json() };
  };
  const kill = async () => {
    await server.end("SIGKILL");
    server = await serve([], options);
  };
  try {
    const transport = { type: "http", url: tools.url };
    expect((await call("POST", "/v1/connectors", { name: "up", kind: "mcp", transport })).status).toBe(201);
    const agent = {
      name: "careful",
      owner: "me",
      memory_scope: "a",
      approvals: ["up.*"],
      approvals_required: 2,
    };
    expect((await call("POST", "/v1/agents", agent)).status).toBe(201);
    const token = (person: string) =>
      call("POST", "/v1/tokens", { name: person, person, scopes: ["approvals:write"] });
    const secrets = [(await token("Ann")).body.secret, (await token("Bo")).body.secret];
    const { id } = (await call("POST", "/v1/tasks", { agent: "careful", prompt: "hi", tools: ["up.send"] }))
      .body;
    const pending = async () => (await call("GET", "/v1/approvals")).body.data;
    await until(async () => (await pending()).length === 1);
    const [asked] = await pending();
    for (const [index, secret] of secrets.entries()) {
      await kill();
      const before = ["Ann", "Bo"].slice(0, index);
      const approved = before.map((person) => ({ person, decided_at: expect.any(String) }));
      expect(await pending()).toEqual([{ ...asked, approved_by: approved }]);
      const answer = await fetch(`${server.url}/v1/tasks/${id}/approvals/${asked.call_id}`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: JSON.stringify({ decision: "approve", arguments_hash: asked.arguments_hash }),
      });
      expect(await answer.json()).toMatchObject({ status: index === 0 ? "pending" : "approved" });
    }
    await kill();
    await until(async () => (await call("GET", `/v1/tasks/${id}`)).body.finished_at !== null);
    const task = (await call("GET", `/v1/tasks/${id}`)).body;
    // The process was killed around the call. Nobody knows whether the call was made, so it is not repeated.
    expect(["succeeded", "unknown"]).toContain(task.tools_called[0].status);
    expect(tools.calls.length).toBeLessThanOrEqual(1);
    if (task.tools_called[0].status === "succeeded") expect(tools.calls).toHaveLength(1);
    expect(task).toMatchObject({ status: "succeeded", output: "done" });
  } finally {
    await server.end("SIGKILL");
    fake.close();
    await tools.close();
    directory.remove();
  }
});
