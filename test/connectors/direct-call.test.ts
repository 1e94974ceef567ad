/** Calls outside of tasks that end early: how they are answered, and what the ledger records. */
import { describe, expect, test } from "bun:test";
import { silentLog } from "../../src/base/log.ts";
import { ConnectorError, type ToolAnswer } from "../../src/connectors/source.ts";
import { localCallOwners } from "../../src/gate/direct/call-owners.ts";
import { reportLostCalls } from "../../src/gate/direct/open-calls.ts";
import { gate } from "../tasks/support.ts";
import { said } from "./bench.ts";
import {
  agent,
  BY_CLIENT,
  bench,
  budgets,
  call,
  change,
  direct,
  type End,
  outcome,
  upstream,
  useDirectCalls,
} from "./direct-call-support.ts";

useDirectCalls();

test("a call whose outcome cannot be written is not reported as done, and the next start reports it", async () => {
  upstream(async () => {
    bench.file.run("CREATE TRIGGER full BEFORE INSERT ON ledger BEGIN SELECT RAISE(ABORT, 'full'); END");
    return said("done");
  });
  await expect(call("up.echo")).rejects.toMatchObject({ status: 503, code: "ledger_unavailable" });
  bench.file.run("DROP TRIGGER full");
  await reportLostCalls(
    { ...bench, owners: localCallOwners(await bench.histories()), budgets, log: silentLog },
    1,
  );
  expect(outcome()).toEqual({ outcome: "failed", code: "unknown" });
});

test("a call that is still reading its agent when a drain begins is refused", async () => {
  upstream(async () => said("done"));
  const answer = call("up.echo");
  const drained = direct.running.drain();
  await expect(answer).rejects.toMatchObject({ code: "draining" });
  await drained;
  expect(bench.entries()).toEqual([]);
});

const FROM_HERE: End[] = [
  ["a stop of its agent", () => direct.running.stopAgent(1, agent.id)],
  ["the end of the process", () => void direct.stop()],
];

describe("a call of an upstream that ignores cancellation", () => {
  const began = (): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    upstream(() => {
      resolve();
      return new Promise(() => {});
    });
    return promise;
  };

  test.each(BY_CLIENT)("is cancelled by %s, with no code except the gateway's own", async (_, end) => {
    const begun = began();
    const abort = new AbortController();
    const answer = call("up.echo", abort);
    await begun;
    end(abort);
    expect(await answer).toMatchObject({ isError: true });
    expect(outcome()).toEqual({ outcome: "cancelled", code: undefined });
  });

  test("is cancelled by a stop of its agent, and refused to the caller with this message", async () => {
    const begun = began();
    const answer = call("up.echo");
    await begun;
    direct.running.stopAgent(1, agent.id);
    await expect(answer).rejects.toMatchObject({ code: "agent_stopped" });
    expect(outcome()).toEqual({ outcome: "cancelled", code: "agent_stopped" });
  });

  test("is cancelled by the end of the process, which waits for its outcome", async () => {
    const begun = began();
    const answer = call("up.echo");
    await begun;
    await direct.stop();
    expect(outcome()).toEqual({ outcome: "cancelled", code: "shutdown" });
    expect(await answer).toMatchObject({ isError: true });
  });

  test("is not ended by a stop of another agent, or of another workspace's agent", async () => {
    const answered = gate();
    const begun = gate();
    upstream(async () => {
      begun.open();
      await answered.opened;
      return said("hi");
    });
    const answer = call("up.echo");
    await begun.opened;
    direct.running.stopAgent(1, agent.id + 1);
    direct.running.stopAgent(2, agent.id);
    answered.open();
    expect(await answer).toEqual(said("hi"));
    expect(outcome()).toEqual({ outcome: "succeeded", code: undefined });
  });
});

describe("a built-in tool that completes its work anyway has succeeded, and its caller is told so, although it was ended by", () => {
  test.each([...BY_CLIENT, ...FROM_HERE])("%s", async (_, end) => {
    const abort = new AbortController();
    let isAnswered = false;
    const answer = call("own.change", abort).finally(() => {
      isAnswered = true;
    });
    await change.begun;
    end(abort);
    await new Promise(setImmediate);
    expect([isAnswered, change.isDone]).toEqual([false, false]);
    change.open();
    expect((await answer).structuredContent).toEqual({ done: true });
    expect(outcome()).toEqual({ outcome: "succeeded", code: undefined });
  });
});

describe("the stored output is the caller's whole answer if it is", () => {
  const text = (words: string) => ({ type: "text", text: words });
  const sum = { sum: 3, of: ["a", "b"] };
  async function keptOf(answer: ToolAnswer): Promise<string> {
    upstream(async () => answer);
    expect(await call("up.echo")).toEqual(answer);
    return bench.payload(2, "output") ?? "";
  }

  test.each<[what: string, answer: ToolAnswer]>([
    ["a text and a different structure", { content: [text("three")], structuredContent: sum }],
    [
      "a text that equals the structure, with other spacing",
      { content: [text('{ "n": 3 }')], structuredContent: { n: 3 } },
    ],
    ["an empty text and a structure", { content: [text("")], structuredContent: sum }],
    ["several texts", { content: [text("one"), text("two")] }],
    ["several texts and a structure", { content: [text("one"), text("two")], structuredContent: sum }],
    ["only a structure", { content: [], structuredContent: sum }],
    ["nothing at all", { content: [] }],
    ["an image", { content: [{ type: "image", data: "aGk=", mimeType: "image/png" }] }],
    ["a link with a text", { content: [{ type: "resource_link", text: "one", uri: "file:///x" }] }],
    ["a text that contains more", { content: [{ ...text("one"), annotations: { audience: ["user"] } }] }],
    ["a non-text that claims to be text", { content: [{ type: "text", text: 3 }] }],
  ])("unchanged: %s", async (_, answer) => {
    expect(JSON.parse(await keptOf(answer))).toEqual(answer);
  });

  const json = JSON.stringify(sum);
  test.each<[what: string, answer: ToolAnswer, kept: string]>([
    ["a text that equals the structure", { content: [text(json)], structuredContent: sum }, json],
    ["a text", { content: [text("three")] }, "three"],
    ["an empty text", { content: [text("")] }, ""],
    ["a failure's text", { content: [text("no")], isError: true }, "no"],
  ])("as text: %s", async (_, answer, kept) => {
    expect(await keptOf(answer)).toBe(kept);
  });

  test("the message of a connector's failure", async () => {
    upstream(() => Promise.reject(new ConnectorError("unreachable", "The connector up cannot be reached.")));
    const answer = await call("up.echo");
    expect(answer).toEqual({ ...said("The connector up cannot be reached."), isError: true });
    expect(outcome()).toEqual({ outcome: "failed", code: "unreachable" });
    expect(bench.payload(2, "output")).toBe("The connector up cannot be reached.");
  });
});
