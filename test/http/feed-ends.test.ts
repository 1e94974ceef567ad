import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { signIn } from "../access/session-support.ts";
import { FakeClock } from "../support/clock.ts";
import { startGateway, type TestGateway } from "../support/gateway.ts";
import { until } from "../tasks/support.ts";
import { type FeedClient, openFeed, settled } from "./feed-support.ts";

setDefaultTimeout(60_000);

const WORKSPACE_STREAMS = 2_000;

let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway({ yaml: "limits: { requests_per_minute: 1000000 }" });
});
afterAll(() => gateway.stop());

const issue = async (request: object): Promise<{ id: string; secret: string }> =>
  (await gateway.call("POST", "/v1/tokens", { body: { name: "ending", ...request } })).body;

/** Opens a feed and waits for its first event, by which time the caller's rights have been looked up. */
async function openedFeed(secret = gateway.admin): Promise<FeedClient> {
  const feed = await openFeed(gateway, secret);
  await feed.saw("usage");
  return feed;
}

describe("a stream ends, and events caused by the same change are not sent", () => {
  test("when its token is revoked", async () => {
    const { id, secret } = await issue({ scopes: ["tokens:write"] });
    const [feed, other] = [await openedFeed(secret), await openedFeed()];
    await gateway.call("DELETE", `/v1/tokens/${id}`);
    await feed.ended;
    expect(feed.named("token.changed")).toEqual([]);
    await settled(gateway, [other]);
    expect(other.named("token.changed")).toHaveLength(1);
    other.leave();
    expect((await gateway.call("GET", "/v1/events", { token: secret })).status).toBe(401);
  });

  test("when the secret that opened it becomes invalid, and not before", async () => {
    const { id, secret } = await issue({ scopes: ["tools:*"] });
    const old = await openedFeed(secret);
    const first = await gateway.call("POST", `/v1/tokens/${id}/rotate`, { body: { grace: "10m" } });
    const fresh = await openedFeed(first.body.secret);
    await settled(gateway, [old, fresh]);
    await gateway.call("POST", `/v1/tokens/${id}/rotate`);
    await Promise.all([old.ended, fresh.ended]);
  });

  test("when its agent is archived", async () => {
    await gateway.agent("leaving");
    const feed = await openedFeed((await issue({ agent: "leaving" })).secret);
    await gateway.call("DELETE", "/v1/agents/leaving");
    await feed.ended;
  });

  test("when its browser signs out, but not another's", async () => {
    const { secret } = await issue({ scopes: ["agents:read"] });
    const [browser, other] = [await signIn(gateway, secret), await signIn(gateway, secret)];
    /**
     * Reads the rest of a stream after its first usage event, as text, until the text contains these words or the
     * stream ends.
     */
    async function listen({ cookie }: typeof browser) {
      const headers = { cookie, "sec-fetch-site": "same-origin" };
      const { status, body } = await fetch(`${gateway.url}/v1/events`, { headers });
      expect(status).toBe(200);
      const reader = body?.pipeThrough(new TextDecoderStream()).getReader();
      const until = async (words: string | null) => {
        for (let text = ""; ; ) {
          const part = await reader?.read();
          if (part === undefined || part.done) return "ended";
          text += part.value;
          if (words !== null && text.includes(words)) return "told";
        }
      };
      expect(await until("event: usage")).toBe("told");
      return until;
    }
    const [ends, stays] = [await listen(browser), await listen(other)];
    expect((await browser.ask("DELETE", "/v1/session")).status).toBe(204);
    expect(await ends(null)).toBe("ended");
    await gateway.agent("seen");
    expect(await stays('"seen"')).toBe("told");
  });

  test("when its token expires", async () => {
    const clock = new FakeClock();
    const own = await startGateway({ clock });
    const secret = await own.token({ scopes: ["agents:read"], expires_in: "30s" });
    const [feed, other] = [await openFeed(own, secret), await openFeed(own)];
    /** Advances time until both have received this event. Their rights are known by then. */
    const told = async (clients: readonly FeedClient[], name: string) => {
      await until(() => {
        clock.advance(100);
        return clients.every((client) => client.named(name).length > 0);
      });
    };
    await told([feed, other], "usage");
    clock.advance(30_000);
    await feed.ended;
    await own.agent("later");
    await told([other], "agent.changed");
    expect(feed.named("agent.changed")).toEqual([]);
    other.leave();
    await own.stop();
  });
});

test("beyond 2,000 streams of a workspace none is opened, for tasks or the feed; closing one makes room", async () => {
  const secret = await gateway.workspace("many");
  const headers = { authorization: `Bearer ${secret}` };
  const ask = (path: string, signal?: AbortSignal) =>
    gateway.gateway.handle(new Request(`http://gate${path}`, { headers, ...(signal ? { signal } : {}) }));
  const clients = Array.from({ length: WORKSPACE_STREAMS }, () => new AbortController());
  const opened = await Promise.all(clients.map(({ signal }) => ask("/v1/events", signal)));
  expect(new Set(opened.map(({ status }) => status))).toEqual(new Set([200]));
  expect((await ask("/v1/events")).status).toBe(429);
  await gateway.call("POST", "/v1/agents", {
    token: secret,
    body: { name: "plain", owner: "tests", memory_scope: "/" },
  });
  const dispatch = (query: string) =>
    gateway.call("POST", `/v1/tasks${query}`, { token: secret, body: { agent: "plain", prompt: "hi" } });
  expect((await dispatch("?stream=true")).status).toBe(429);
  const { body } = await dispatch("");
  expect((await ask(`/v1/tasks/${body.id}/events`)).status).toBe(429);
  clients[0]?.abort();
  await until(async () => {
    const answer = await ask("/v1/events");
    await answer.body?.cancel();
    return answer.status === 200;
  });
  for (const client of clients) client.abort();
});

test("a draining server ends every feed, and opens none", async () => {
  const own = await startGateway();
  const feed = await openFeed(own);
  const drained = own.gateway.drain();
  await feed.ended;
  const refused = await own.call("GET", "/v1/events");
  expect([refused.status, refused.body.code, refused.headers.get("retry-after")]).toEqual([
    503,
    "draining",
    "5",
  ]);
  await drained;
  await own.stop();
});
