/** The texts that a request refers to are read only once its call has a concurrency slot. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { until } from "../../support/until.ts";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";

let stage: ResponsesStage;
beforeAll(async () => {
  stage = await openResponsesStage({ settings: "limits: { queued_tasks: 1 }\n" });
  const limits = { concurrent_tasks: 1, enforcement: "enforced" };
  await stage.gateway.call("PATCH", "/v1/workspace", { body: { limits } });
});
afterAll(() => stage.stop());

const code = ({ response }: { response: Response }) => response.headers.get("gatehouse-code");

test.each([true, false])(
  "past the limit, a conversation that does not exist is not searched for (stream: %p)",
  async (stream) => {
    stage.upstream.script("first", { events: eventsOf(responseOf([textItem("one")])), hangAfter: 2 });
    stage.upstream.script("next", { response: responseOf([textItem("two")]) });
    const leave = new AbortController();
    const open = await fetch(`${stage.gateway.url}/v1/responses`, {
      ...{ method: "POST", signal: leave.signal },
      headers: { "content-type": "application/json", authorization: `Bearer ${stage.clerk}` },
      body: JSON.stringify({ model: "up/first", input: "x", stream: true }),
    });
    await open.body?.getReader().read();
    const continuing = JSON.stringify({
      ...{ model: "up/first", input: "x", stream, previous_response_id: "resp_none" },
    });
    const waiting = stage.post(continuing);
    await until(async () => (await stage.gateway.call("GET", "/v1/workspace")).body.usage.tasks_queued === 1);
    expect(code(await stage.post(continuing))).toBe("queue_full");
    leave.abort();
    expect(code(await waiting)).toBe("not_found");
    // The slot is free again.
    const whole = await stage.post(JSON.stringify({ model: "up/next", input: "x" }));
    expect(whole.response.status).toBe(200);
  },
);
