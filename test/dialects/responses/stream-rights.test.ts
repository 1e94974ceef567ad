/** Streams of background responses end with the rights of the token that opened them, in whichever header it was. */
import { afterEach, describe, expect, test } from "bun:test";
import {
  eventsOf,
  openResponsesStage,
  type ResponsesStage,
  responseOf,
  textItem,
} from "../responses-support.ts";

const NEVER = new Promise(() => {});

let stage: ResponsesStage;
afterEach(() => stage.stop());

const HEADERS: [name: string, of: (secret: string) => Record<string, string>][] = [
  ["as a bearer token", (secret) => ({ authorization: `Bearer ${secret}` })],
  ["as x-api-key", (secret) => ({ "x-api-key": secret })],
  ["as x-api-key beside a placeholder", (secret) => ({ authorization: "Bearer dummy", "x-api-key": secret })],
  ["as x-api-key beside another scheme", (secret) => ({ authorization: "Basic eDp5", "x-api-key": secret })],
];
const ENDS: [name: string, end: (id: string) => Promise<unknown>][] = [
  ["is revoked", (id) => stage.gateway.call("DELETE", `/v1/tokens/${id}`)],
  ["is rotated", (id) => stage.gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: {} })],
];

describe.each(HEADERS)("a stream whose token came %s", (_, headersOf) => {
  test.each(ENDS)("begins, and ends when the token %s", async (_name, end) => {
    stage = await openResponsesStage();
    const { gateway, upstream, clerk } = stage;
    upstream.script("first", { events: eventsOf(responseOf([textItem("Good evening")])), gate: NEVER });
    const { body: token } = await gateway.call("POST", "/v1/tokens", {
      body: { name: "short", agent: "clerk", scopes: ["models:call"] },
    });
    const request = { model: "up/first", input: "Good morning", background: true, stream: true };
    const url = `${gateway.url}/v1/responses`;
    const headers = { "content-type": "application/json", ...headersOf(token.secret) };
    // Another token dispatches the response that is read, so that its end does not end the response.
    const dispatched = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${clerk}` },
      body: JSON.stringify(request),
    });
    const first = await dispatched.body?.getReader().read();
    const [id] = /resp_\w+/.exec(Buffer.from(first?.value ?? []).toString()) ?? [];
    const opened = await Promise.all([
      fetch(url, { method: "POST", headers, body: JSON.stringify(request) }),
      fetch(`${url}/${id}?stream=true`, { headers }),
    ]);
    expect(opened.map(({ status }) => status)).toEqual([200, 200]);
    const readers = opened.map((response) => response.body?.getReader());
    for (const reader of readers) expect((await reader?.read())?.done).toBe(false);
    await end(token.id);
    // The provider never answers, so each stream that is not ended stays open.
    for (const reader of readers) {
      let part = await reader?.read();
      while (part?.done === false) part = await reader?.read();
      expect(part?.done).toBe(true);
    }
  });
});
