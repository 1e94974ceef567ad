/** Events of tasks, read and resumed on other nodes than the one that runs them. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { allEvents, outline, type ReadEvent, readEvents } from "../support/events.ts";
import { type FakeModel, startFakeModel } from "../support/fake-model.ts";
import type { TestGateway } from "../support/gateway.ts";
import { startNodes, type TestNodes } from "../support/nodes.ts";
import { startPacedModel } from "../support/paced-model.ts";
import { missingPostgres } from "../support/postgres/database.ts";
import { until } from "../support/until.ts";
import { dispatch, ended, openEvents, yamlOf } from "../tasks/support.ts";

setDefaultTimeout(60_000);

const ASKS = { chunks: ["let me look"], toolCalls: [{ name: "time__now", arguments: {} }] };

/** A stream that is read as it arrives. */
function follow(response: Response) {
  const events: ReadEvent[] = [];
  const done = (async () => {
    for await (const event of readEvents(response)) events.push(event);
  })();
  done.catch(() => {});
  return {
    events,
    done,
    text: () => textOf(events),
    saw: (text: string) => until(() => textOf(events).includes(text)),
  };
}

const textOf = (events: readonly ReadEvent[]) =>
  events.flatMap(({ event, data }) => (event === "output.delta" ? [data.text] : [])).join("");
const idsOf = (events: readonly ReadEvent[]) => events.map(({ id }) => id);
const rising = (events: readonly ReadEvent[]) =>
  idsOf(events).every((id, at, ids) => at === 0 || id > (ids[at - 1] ?? 0));

describe.skipIf(missingPostgres !== undefined)("events of a task that another node runs", () => {
  let upstream: FakeModel;
  let model: ReturnType<typeof startPacedModel>;
  let started: TestNodes;
  let first: TestGateway;
  let second: TestGateway;

  beforeAll(async () => {
    upstream = startFakeModel();
    model = startPacedModel();
    const providers = { slow: `{ kind: openai-compatible, base_url: "${model.url}" }` };
    const yaml = yamlOf(upstream.url, {
      tiers: { 1: ["a"], 2: ["slow/slow"] },
      providers,
      limits: { concurrent_tasks: 50 },
    });
    started = await startNodes(2, { yaml });
    [first, second] = started.nodes as [TestGateway, TestGateway];
    await first.agent("plain");
    await first.agent("careful", { approvals: ["time.*"] });
    await until(async () => (await second.call("GET", "/v1/agents/careful")).status === 200);
  });

  afterAll(async () => {
    await started.stop();
    await upstream.close();
    await model.close();
  });

  test("are those of its own node, once it has ended", async () => {
    upstream.script("a", (_request, call) => (call % 2 === 0 ? ASKS : { chunks: ["no", "on"] }));
    const id = await dispatch(first, { agent: "plain", tools: ["time.now"] });
    await ended(first, id);
    const own = await allEvents(await openEvents(first, id));
    expect(outline(own).at(-1)).toBe("task.finished");
    expect(await allEvents(await openEvents(second, id))).toEqual(own);
    for (let after = 0; after <= own.length + 1; after++) {
      const rest = await allEvents(await openEvents(second, id, { "last-event-id": String(after) }));
      expect(rest).toEqual(own.slice(after));
    }
  });

  test("arrive while the model answers, and the stream ends with the task", async () => {
    model.answer(["one ", "two ", "three ", "four"]);
    const id = await dispatch(first, { agent: "plain", tier: 2 });
    const reader = follow(await openEvents(second, id));
    const own = follow(await openEvents(first, id));
    model.send(1);
    await reader.saw("one ");
    model.send(1);
    await reader.saw("one two ");
    expect(outline(reader.events)).toEqual(["task.created", "task.started", "output.delta"]);
    model.send(3);
    await Promise.all([reader.done, own.done]);
    expect(reader.events.at(-1)?.event).toBe("task.finished");
    expect(reader.text()).toBe("one two three four");
    expect(reader.events.at(-1)?.data.output).toBe("one two three four");
    expect(reader.events).toEqual(own.events);
    expect(await allEvents(await openEvents(first, id))).toEqual(own.events);
  });

  test("are resumed there in the middle of an answer, after the last one that was read here", async () => {
    model.answer(["a", "b", "c", "d", "e"]);
    const id = await dispatch(first, { agent: "plain", tier: 2 });
    const own = follow(await openEvents(first, id));
    model.send(2);
    await own.saw("ab");
    const last = own.events.at(-1)?.id ?? 0;
    const rest = follow(await openEvents(second, id, { "last-event-id": String(last) }));
    model.send(1);
    await rest.saw("c");
    const again = follow(
      await openEvents(second, id, { "last-event-id": String(rest.events.at(-1)?.id ?? 0) }),
    );
    model.send(3);
    await Promise.all([own.done, rest.done, again.done]);
    expect([...own.events.filter((event) => event.id <= last), ...rest.events]).toEqual(own.events);
    expect(again.text()).toBe("de");
    expect(rising(own.events)).toBe(true);
  });

  test("arrive word by word, as they do on its own node", async () => {
    const words = Array.from({ length: 20 }, (_, at) => `w${at} `);
    model.answer(words);
    const id = await dispatch(first, { agent: "plain", tier: 2 });
    const own = follow(await openEvents(first, id));
    const reader = follow(await openEvents(second, id));
    await until(() => reader.events.length > 0);
    for (const word of words) {
      model.send(1);
      // Both, before the model says more.
      await Promise.all([own.saw(word), reader.saw(word)]);
    }
    model.send(1);
    await Promise.all([own.done, reader.done]);
    expect(reader.events).toEqual(own.events);
  });

  test("are stored in few rows, without gaps or repetitions, however often they were stored early", async () => {
    const words = Array.from({ length: 30 }, (_, at) => `word ${at} `);
    model.answer(words);
    const id = await dispatch(first, { agent: "plain", tier: 2 });
    const reader = follow(await openEvents(second, id));
    for (const word of words) {
      model.send(1);
      await reader.saw(word);
    }
    model.send(1);
    await reader.done;
    const rows = await started.database.query<{ first: string; last: string }>(
      `SELECT first_id AS first, last_id AS last FROM task_events WHERE task_id = '${id}' ORDER BY first_id`,
    );
    expect(rows.length).toBeLessThan(10);
    const events = await allEvents(await openEvents(first, id));
    expect(idsOf(events)).toEqual(events.map((_, at) => at + 1));
    expect(events).toEqual(reader.events);
    expect(textOf(events)).toBe(words.join(""));
  });

  test("go on when its node drains and this one takes the task over", async () => {
    const third = await started.add();
    model.answer(["one ", "two "]);
    const id = await dispatch(third, { agent: "plain", tier: 2 });
    const reader = follow(await openEvents(second, id));
    const own = follow(await openEvents(third, id));
    model.send(1);
    await reader.saw("one ");
    await own.saw("one ");
    const before = reader.events.at(-1)?.id ?? 0;
    const drained = third.gateway.stop();
    await until(() => reader.events.some(({ event }) => event === "output.reset"));
    // The reader there is sent away, and resumes here.
    await own.done.catch(() => {});
    const last = own.events.at(-1)?.id ?? 0;
    const resumed = follow(await openEvents(first, id, { "last-event-id": String(last) }));
    model.send(3);
    await Promise.all([reader.done, resumed.done, drained]);
    expect(rising(reader.events)).toBe(true);
    const again = reader.events.slice(reader.events.findIndex(({ event }) => event === "output.reset"));
    expect(again[0]?.id).toBeGreaterThan(before);
    expect(textOf(again)).toBe("one two ");
    expect(again.at(-1)?.data).toMatchObject({ status: "succeeded", output: "one two " });
    expect(resumed.events).toEqual(reader.events.filter((event) => event.id > last));
  });

  test("of a background response arrive there while it is made, and end with it", async () => {
    const clerk = await first.token({ scopes: ["models:call"] });
    model.answer(["good ", "evening"]);
    const headers = { authorization: `Bearer ${clerk}`, "content-type": "application/json" };
    const body = { model: "slow/slow", input: "hi", background: true, stream: true };
    const own = await fetch(`${first.url}/v1/responses`, {
      ...{ method: "POST", headers, body: JSON.stringify(body) },
    });
    let id = "";
    let ownText = "";
    let text = "";
    const read = async (response: Response, take: (part: string) => void) => {
      const decoder = new TextDecoder();
      for await (const part of response.body ?? []) take(decoder.decode(part, { stream: true }));
    };
    const ownDone = read(own, (part) => {
      ownText += part;
      id = /"id":"(resp_[^"]+)"/.exec(ownText)?.[1] ?? "";
    });
    await until(() => id !== "");
    const reader = await fetch(`${second.url}/v1/responses/${id}?stream=true`, { headers });
    expect(reader.status).toBe(200);
    const done = read(reader, (part) => {
      text += part;
    });
    model.send(1);
    await until(() => text.includes('"good "'));
    expect(text).not.toContain("evening");
    model.send(2);
    await Promise.all([ownDone, done]);
    const without = (stream: string) => stream.replaceAll(/^: .*\n\n/gm, "");
    expect(without(text)).toContain("event: response.completed");
    expect(without(text)).toBe(without(ownText));
  });

  test("include a person's decision that was made on the other node", async () => {
    upstream.script("a", (_request, call) => (call % 2 === 0 ? ASKS : { chunks: ["done"] }));
    const id = await dispatch(first, { agent: "careful", tools: ["time.now"] });
    const own = follow(await openEvents(first, id));
    const reader = follow(await openEvents(second, id));
    const asked = (events: readonly ReadEvent[]) =>
      events.find(({ event }) => event === "approval.required")?.data.call_id as string | undefined;
    await until(() => asked(reader.events) !== undefined && asked(own.events) !== undefined);
    const answer = await second.call("POST", `/v1/tasks/${id}/approvals/${asked(reader.events)}`, {
      body: { decision: "deny" },
    });
    expect(answer.status).toBe(200);
    const decided = (events: readonly ReadEvent[]) =>
      events.some(({ event }) => event === "approval.decided");
    await until(() => decided(own.events) && decided(reader.events));
    expect(reader.events.slice(0, own.events.length)).toEqual(own.events.slice(0, reader.events.length));
    expect(rising(own.events)).toBe(true);
    await first.call("POST", `/v1/tasks/${id}/cancel`);
  });
});
