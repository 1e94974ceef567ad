/** Answers of several megabytes: written only as they are read, and only so many at once. */
import { expect, test } from "bun:test";
import { Problem } from "../../src/base/errors.ts";
import { silentLog } from "../../src/base/log.ts";
import type { JsonParts } from "../../src/http/connector-view.ts";
import { LongAnswers } from "../../src/http/long-json.ts";
import { openCallBench } from "../connectors/bench.ts";
import { FakeClock } from "../support/clock.ts";

const MIB = 1024 * 1024;
const PER_WORKSPACE = 8;
const request = () => new Request("http://127.0.0.1/");

/** Parts of 64 Ki characters, with a count of those produced. */
function parts(length: number): JsonParts & { readonly made: number } {
  const seen = { made: 0 };
  return {
    length,
    get made() {
      return seen.made;
    },
    *parts() {
      for (let left = length; left > 0; left -= 65_536) {
        seen.made += 1;
        yield "x".repeat(65_536);
      }
    },
  };
}

test("long answers of a workspace are refused beyond a number at once; short ones never are, and places are freed", async () => {
  const bench = await openCallBench();
  const answers = new LongAnswers({ clock: new FakeClock(), log: silentLog });
  const reply = (length: number) =>
    answers.reply(bench.call("connector.list"), request(), 200, parts(length));
  const open = Array.from({ length: PER_WORKSPACE }, () => reply(2 * MIB));
  expect(() => reply(2 * MIB)).toThrow(
    new Problem(
      "rate_limited",
      "The workspace already has 8 long answers in progress. Retry when one is done.",
    ),
  );
  expect(reply(MIB)).toMatchObject({ status: 200, headers: { "content-type": "application/json" } });
  for (const each of open) if ("stream" in each) each.abandon();
  expect(reply(2 * MIB)).toHaveProperty("stream");
  await bench.close();
});

test("a long answer is produced as it is read, and is complete", async () => {
  const bench = await openCallBench();
  const answers = new LongAnswers({ clock: new FakeClock(), log: silentLog });
  const json = parts(64 * MIB);
  const reply = answers.reply(bench.call("connector.list"), request(), 201, json);
  if (!("stream" in reply)) throw new Error("it is long");
  expect(json.made).toBe(0);
  const response = reply.stream({ "gatehouse-request-id": "req_1" }, () => {});
  expect([response.status, response.headers.get("content-type")]).toEqual([201, "application/json"]);
  const reader = response.body?.getReader();
  await reader?.read();
  expect(json.made).toBeLessThan(10);
  await reader?.cancel();
  const whole = answers.reply(bench.call("connector.list"), request(), 200, parts(2 * MIB));
  const text = "stream" in whole ? await whole.stream({}, () => {}).text() : "";
  expect(text).toHaveLength(2 * MIB);
  await bench.close();
});
