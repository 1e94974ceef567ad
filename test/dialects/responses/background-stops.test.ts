/** Stops of many background responses, whose ends take turns. */
import { afterEach, describe, expect, test } from "bun:test";
import { ResponseStore } from "../../../src/dialects/responses/stored/store.ts";
import { until } from "../../support/until.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";

const NEVER = new Promise(() => {});
/** The most ends that may be in progress at once, in all workspaces. */
const AT_ONCE = 64;
const QUEUED = 150;

const { readDispatch } = ResponseStore.prototype;
let stage: ResponsesStage | undefined;
let releaseAll = () => {};
afterEach(async () => {
  ResponseStore.prototype.readDispatch = readDispatch;
  releaseAll();
  await stage?.stop();
  stage = undefined;
});

/** Holds the ends of responses where they read their entries, and counts them. */
function holdEnds() {
  const gates = new Map<number, PromiseWithResolvers<void>>();
  const counts = { inProgress: 0, most: 0 };
  ResponseStore.prototype.readDispatch = async function (this: ResponseStore, workspaceId, seq) {
    counts.inProgress += 1;
    counts.most = Math.max(counts.most, counts.inProgress);
    await gates.get(workspaceId)?.promise;
    await new Promise((resolve) => setImmediate(resolve));
    counts.inProgress -= 1;
    return readDispatch.call(this, workspaceId, seq);
  };
  releaseAll = () => {
    for (const { resolve } of gates.values()) resolve();
  };
  return {
    counts,
    hold: (workspaceId: number) => gates.set(workspaceId, Promise.withResolvers()),
    release: (workspaceId: number) => gates.get(workspaceId)?.resolve(),
  };
}

/** Responses that wait behind one in progress. */
async function queue(
  { gateway, upstream }: ResponsesStage,
  count: number,
  { token, admin = gateway.admin }: { readonly token: string; readonly admin?: string },
): Promise<string[]> {
  upstream.script("first", { events: eventsOf(responseOf([textItem("Hello")])), gate: NEVER });
  const limits = { concurrent_tasks: 1, enforcement: "enforced" };
  await gateway.call("PATCH", "/v1/workspace", { token: admin, body: { limits } });
  const body = { model: "up/first", input: "Hello", background: true };
  const dispatch = async () =>
    (await gateway.call("POST", "/v1/responses", { token, body })).body.id as string;
  const first = await dispatch();
  const status = async () => (await gateway.call("GET", `/v1/responses/${first}`, { token })).body.status;
  await until(async () => (await status()) === "in_progress");
  return Promise.all(Array.from({ length: count }, dispatch));
}

describe("the ends of many queued responses are not written all at once:", () => {
  test.each([
    ["a workspace is stopped", "POST", "/v1/workspace/stop", "/v1/workspace/resume"],
    ["an agent is stopped", "POST", "/v1/agents/clerk/stop", "/v1/agents/clerk/resume"],
    ["an agent is archived", "DELETE", "/v1/agents/clerk", null],
  ])("%s", async (_, method, stop, resume) => {
    stage = await openResponsesStage();
    const { gateway } = stage;
    const token = stage.clerk;
    const ids = await queue(stage, QUEUED, { token });
    const { counts, hold, release } = holdEnds();
    hold(1);
    expect((await gateway.call(method, stop)).status).toBeLessThan(300);
    await until(() => counts.inProgress > 0);
    // All have ended for their readers. The one that was running ends beside them.
    if (resume !== null) expect((await stage.ask("GET", `/${ids.at(-1)}`)).body.status).toBe("cancelled");
    expect(counts.inProgress).toBeLessThanOrEqual(AT_ONCE + 1);
    release(1);
    if (resume !== null) expect((await gateway.call("POST", resume)).status).toBe(200);
    const ended = async () => {
      const path = "/v1/ledger?action=response.dispatch&limit=200&order=desc";
      const { body } = await gateway.call("GET", path);
      return body.data.filter(({ code }: { code?: string }) => code === "agent_stopped").length;
    };
    await until(async () => (await ended()) === QUEUED + 1);
    expect(counts.most).toBeLessThanOrEqual(AT_ONCE + 1);
  });

  test("and a response of another workspace ends before them", async () => {
    stage = await openResponsesStage();
    const { gateway } = stage;
    const admin = await gateway.workspace("other");
    const [other = ""] = await queue(stage, 1, { token: admin, admin });
    await queue(stage, QUEUED, { token: stage.clerk });
    const { hold, release } = holdEnds();
    hold(1);
    expect((await gateway.call("POST", "/v1/workspace/stop")).status).toBe(200);
    const cancelled = await gateway.call("POST", `/v1/responses/${other}/cancel`, { token: admin });
    expect(cancelled.body.status).toBe("cancelled");
    release(1);
  });
});
