/** A disk that is full: nobody is signed in or out unrecorded, and a link that signed nobody in is still good. */
import { afterEach, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { linkFor, signIn } from "../access/session-support.ts";
import { type FullDiskStage, startFullDiskStage } from "./full-disk-support.ts";

setDefaultTimeout(60_000);

let stage: FullDiskStage;
beforeEach(async () => {
  stage = await startFullDiskStage();
});
afterEach(() => stage.stop());

test("signing in and out is refused, and works again by itself", async () => {
  const { gateway } = stage;
  const link = await linkFor(gateway);
  const browser = await signIn(gateway);
  await stage.fill();
  const refused = [
    await gateway.call("POST", "/v1/session"),
    await gateway.call("POST", "/v1/session", { token: link }),
    await browser.ask("GET", "/v1/session"),
    await browser.ask("DELETE", "/v1/session"),
  ];
  for (const { status, body, headers } of refused) {
    expect([status, body.code, headers.get("retry-after")]).toEqual([503, "ledger_unavailable", "5"]);
    expect(headers.has("set-cookie")).toBe(false);
  }
  await stage.free();
  const { body } = await gateway.call("GET", "/v1/sessions");
  expect(body.data.map(({ id }: { id: string }) => id)).toEqual([browser.id]);
  expect((await browser.ask("GET", "/v1/session")).status).toBe(200);
  const byLink = await signIn(gateway, link);
  expect((await gateway.call("POST", "/v1/session", { token: link })).status).toBe(401);
  expect((await browser.ask("DELETE", "/v1/session")).status).toBe(204);
  expect((await browser.ask("GET", "/v1/session")).status).toBe(401);
  expect((await byLink.ask("GET", "/v1/session")).status).toBe(200);
});
