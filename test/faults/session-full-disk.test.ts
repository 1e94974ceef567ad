/**
 * A full disk: no sign-in goes unrecorded, a link that signed nobody in stays valid, and signing out takes effect.
 */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { type Browser, linkFor, OWN_PAGE, signIn } from "../access/session-support.ts";
import { until } from "../tasks/support.ts";
import { type FullDiskStage, type LateEntry, startFullDiskStage } from "./full-disk-support.ts";

setDefaultTimeout(60_000);

let stage: FullDiskStage;
beforeEach(async () => {
  stage = await startFullDiskStage();
});
afterEach(() => stage.stop());

/** Whether a session is valid, tested with what works on a full disk: stopping the agent. */
const canStop = async (browser: Browser) =>
  (await browser.ask("POST", "/v1/agents/helper/stop")).status === 200;
const openIds = async (): Promise<string[]> =>
  (await stage.gateway.call("GET", "/v1/sessions")).body.data.map(({ id }: { id: string }) => id);
/** Recorded ends, without refused ones. */
async function recorded(action: string): Promise<LateEntry[]> {
  const { body } = await stage.gateway.call("GET", `/v1/ledger?action=${action}&limit=200`);
  return body.data.filter(({ outcome }: LateEntry) => outcome === "succeeded");
}

test("signing in is refused, and works again once there is room", async () => {
  const { gateway } = stage;
  const link = await linkFor(gateway);
  const browser = await signIn(gateway);
  await stage.fill();
  const refused = [
    await gateway.call("POST", "/v1/session"),
    await gateway.call("POST", "/v1/session", { token: link }),
    await browser.ask("GET", "/v1/session"),
  ];
  for (const { status, body, headers } of refused) {
    expect([status, body.code, headers.get("retry-after")]).toEqual([503, "ledger_unavailable", "5"]);
    expect(headers.has("set-cookie")).toBe(false);
  }
  await stage.free();
  expect(await openIds()).toEqual([browser.id]);
  expect((await browser.ask("GET", "/v1/session")).status).toBe(200);
  await signIn(gateway, link);
  expect((await gateway.call("POST", "/v1/session", { token: link })).status).toBe(401);
});

test("signing out, or ending another's session, takes effect at once, and is recorded once there is room", async () => {
  const { gateway, clock } = stage;
  await gateway.agent("helper");
  // The two that stay are the oldest, so in the list those that end come before them.
  const [oldest, steady, used, unused, other] = [
    await signIn(gateway),
    await signIn(gateway),
    await signIn(gateway),
    await signIn(gateway),
    await signIn(gateway),
  ];
  for (const browser of [used, other, steady])
    expect((await browser.ask("GET", "/v1/session")).status).toBe(200);
  const listening = new AbortController();
  const feeds = [used, steady].map(async ({ cookie }) => {
    const { url } = gateway;
    const headers = { ...OWN_PAGE, cookie };
    const stream = await fetch(`${url}/v1/events`, { headers, signal: listening.signal });
    return {
      isOver: stream.text().then(
        () => true,
        () => false,
      ),
    };
  });
  const [ofUsed, ofSteady] = await Promise.all(feeds);
  await stage.fill();
  const decidedAt = new Date(clock.now()).toISOString();
  for (const browser of [used, unused]) {
    const { status, headers } = await browser.ask("DELETE", "/v1/session");
    const name = browser.cookie.slice(0, browser.cookie.indexOf("="));
    expect([status, headers.get("set-cookie"), headers.get("gatehouse-ledger")]).toEqual([
      204,
      `${name}=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict`,
      null,
    ]);
  }
  expect((await steady.ask("DELETE", `/v1/sessions/${other.id}`)).status).toBe(204);
  let hasEnded = false;
  void ofUsed?.isOver.then((isOver) => {
    hasEnded = isOver;
  });
  // The stream ends early, and not because it reached its own expiry. A feed gathers for 100 ms before it checks.
  const soon = clock.now() + 5_000;
  await until(() => {
    if (clock.now() < soon) clock.advance(100);
    return hasEnded;
  });
  for (const browser of [used, unused, other]) expect(await canStop(browser)).toBe(false);
  expect(await canStop(steady)).toBe(true);
  // The browser drops the cookie even if its session has already ended.
  const again = await used.ask("DELETE", "/v1/session");
  expect(again.status).toBeGreaterThanOrEqual(400);
  expect(again.headers.get("set-cookie")).toContain("Max-Age=0");

  await stage.free();
  // This is true even before the ends are written.
  expect(await openIds()).toEqual([steady.id, oldest.id]);
  const page = (await gateway.call("GET", "/v1/sessions?limit=1")).body;
  expect([page.data[0].id, page.next_cursor]).toEqual([steady.id, expect.any(String)]);
  expect((await gateway.call("DELETE", `/v1/sessions/${used.id}`)).status).toBe(404);
  expect((await used.ask("GET", "/v1/session")).status).toBe(401);
  await stage.untilLater(async () => (await recorded("session.revoke")).length > 0);
  const ends = [...(await recorded("session.delete")), ...(await recorded("session.revoke"))];
  expect(ends).toMatchObject(
    [used, unused, other].map(({ id }) => ({
      outcome: "succeeded",
      detail: { session: id, late_ms: expect.any(Number) },
    })),
  );
  // Signing out is not an act of oversight.
  for (const { oversight } of ends) expect(oversight ?? null).toBeNull();
  expect(
    stage.lines.filter(({ message }) => message === "a decision is in effect but not recorded yet"),
  ).toContainEqual(
    expect.objectContaining({ action: "session.delete", session: used.id, decided_at: decidedAt }),
  );
  // A browser that has not signed out still receives its feed.
  listening.abort();
  expect(await ofSteady?.isOver).toBe(false);
  await stage.restart();
  expect(await openIds()).toEqual([steady.id, oldest.id]);
});
