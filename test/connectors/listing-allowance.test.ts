/** A workspace can list its connectors' tools only at a limited rate, and not all connectors at once. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import type { Problem } from "../../src/base/errors.ts";
import {
  LISTING_RULE,
  LISTINGS_AT_ONCE,
  ListingAllowance,
} from "../../src/connectors/tools/listing-allowance.ts";
import { FakeClock } from "../support/clock.ts";
import { reseal, SEALS } from "../support/seals.ts";
import { gate, until } from "../tasks/support.ts";
import { type ConnectorBench, openConnectorBench, tool } from "./bench.ts";

let bench: ConnectorBench;
beforeEach(async () => {
  bench = await openConnectorBench();
});
afterEach(async () => {
  await bench.connectors.stop();
  await bench.close();
});

const refresh = (name: string) => bench.connectors.refresh(bench.call("connector.refresh"), name);
const refusal = (promise: Promise<unknown>) =>
  promise.then(
    () => "taken",
    ({ status, code, headers }: Problem) => [status, code, headers],
  );

test("refreshes past the allowance are refused before the upstream is asked, and accepted again later", async () => {
  let lists = 0;
  bench.script({
    async list() {
      lists += 1;
      return [tool("echo")];
    },
  });
  await bench.create("up");
  const most = LISTING_RULE.capacity;
  // Creating the connector was the first listing.
  for (let times = 1; times < most; times++) await refresh("up");
  expect(lists).toBe(most);
  expect(await refusal(refresh("up"))).toEqual([429, "rate_limited", { "Retry-After": "2" }]);
  expect(await refusal(bench.create("other"))).toEqual([429, "rate_limited", { "Retry-After": "2" }]);
  expect(lists).toBe(most);
  await bench.clock.advance(2_000);
  expect(await refusal(refresh("up"))).toBe("taken");
  expect(await refusal(refresh("up"))).toMatchObject([429, "rate_limited", {}]);
});

test("a limited number of a workspace's upstreams are listed at once; the rest wait, but not for other workspaces", async () => {
  const allowance = new ListingAllowance(new FakeClock());
  const { signal } = new AbortController();
  const held = gate();
  let began = 0;
  const list = async () => {
    began += 1;
    await held.opened;
  };
  const all = Array.from({ length: LISTINGS_AT_ONCE + 3 }, () => allowance.inTurn(1, signal, list));
  const leaving = new AbortController();
  const left = allowance.inTurn(1, leaving.signal, list).catch(({ fault }) => fault);
  await until(() => began === LISTINGS_AT_ONCE);
  await allowance.inTurn(2, signal, async () => {});
  leaving.abort();
  expect(await left).toBe("timeout");
  expect(began).toBe(LISTINGS_AT_ONCE);
  held.open();
  await Promise.all(all);
  expect(began).toBe(LISTINGS_AT_ONCE + 3);
});

test("unchanged tools are not written again", async () => {
  let tools = [tool("echo")];
  bench.script({ list: async () => tools.map((each) => ({ ...each })) });
  await bench.create("up");
  const written = () => bench.file.query<{ tools: string }, []>("SELECT tools FROM connectors").get()?.tools;
  expect(written()).toContain('"inputSchemaJson":"{');
  bench.file.run("UPDATE connectors SET tools = '[]'");
  reseal(bench.file, SEALS, "connectors");
  await refresh("up");
  expect(written()).toBe("[]");
  tools = [tool("other")];
  await refresh("up");
  expect(JSON.parse(written() ?? "")).toMatchObject([{ name: "other" }]);
});
