import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { Problem } from "../../src/base/errors.ts";
import { readJson } from "../../src/http/body/body.ts";
import { readBytes } from "../../src/http/body/bytes.ts";
import { BodyShares, type OpenBody } from "../../src/http/body/shares.ts";
import { FakeClock } from "../support/clock.ts";

const KIB = 1024;
const FULL = { code: "rate_limited", headers: { "Retry-After": "1", Connection: "close" } };

function open(sizes: { readonly whole?: number; readonly perWorkspace?: number } = {}) {
  const clock = new FakeClock();
  return { clock, shares: new BodyShares({ clock, ...sizes }) };
}

/** Opens a body that holds this many bytes, and records why it is abandoned. */
function holding(shares: BodyShares, workspaceId: number, bytes: number) {
  const body = shares.open(workspaceId);
  const told: Problem[] = [];
  body.refused = (problem) => void told.push(problem);
  body.take(bytes);
  return { body, told };
}

const refusalOf = (body: OpenBody, bytes: number): unknown => {
  try {
    body.take(bytes);
    return null;
  } catch (error) {
    return error;
  }
};

describe("the memory for incoming bodies", () => {
  test("is never used up by one workspace, which has a cap of its own", () => {
    const { shares } = open({ whole: 400, perWorkspace: 300 });
    const hog = [100, 100, 100].map((bytes) => holding(shares, 1, bytes));
    expect(refusalOf(shares.open(1), 1)).toMatchObject(FULL);
    holding(shares, 2, 100);
    expect(hog.flatMap(({ told }) => told)).toEqual([]);
    expect(shares.held).toBe(400);
  });

  test("is taken from the workspace with the most, largest body first, for one below its equal share", () => {
    const { shares } = open({ whole: 400, perWorkspace: 300 });
    const hog = [50, 150, 100].map((bytes) => holding(shares, 1, bytes));
    const other = holding(shares, 2, 100);
    const third = holding(shares, 3, 30);
    expect(hog.map(({ told }) => told.map(({ code }) => code))).toEqual([[], ["rate_limited"], []]);
    expect([other.told, third.told]).toEqual([[], []]);
    expect(shares.held).toBe(280);
    // A body that was abandoned receives nothing more.
    expect(refusalOf(hog[1]?.body as OpenBody, 1)).toMatchObject(FULL);
  });

  test("is not taken for one that has its equal share", () => {
    const { shares } = open({ whole: 400, perWorkspace: 300 });
    const hog = holding(shares, 1, 200);
    const other = holding(shares, 2, 200);
    expect(refusalOf(other.body, 1)).toMatchObject(FULL);
    expect([hog.told, other.told]).toEqual([[], []]);
    other.body.close();
    holding(shares, 1, 100);
    expect(shares.held).toBe(300);
  });

  test("whatever bodies come and go, no more memory is used than exists, and no workspace below an equal share is refused", () => {
    const step = fc.record({
      workspace: fc.integer({ min: 1, max: 4 }),
      bytes: fc.integer({ min: 1, max: 120 }),
      closes: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { shares } = open({ whole: 400, perWorkspace: 300 });
        const bodies: { workspace: number; body: OpenBody; held: number }[] = [];
        const heldBy = (workspace: number): number =>
          bodies.filter((each) => each.workspace === workspace).reduce((sum, { held }) => sum + held, 0);
        for (const { workspace, bytes, closes } of steps) {
          if (closes) {
            const at = bodies.findIndex((each) => each.workspace === workspace);
            bodies.splice(at, at < 0 ? 0 : 1)[0]?.body.close();
            continue;
          }
          const body = shares.open(workspace);
          const entry = { workspace, body, held: 0 };
          body.refused = () => void bodies.splice(bodies.indexOf(entry), 1);
          const before = heldBy(workspace);
          const workspaces = new Set([workspace, ...bodies.map((each) => each.workspace)]).size;
          bodies.push(entry);
          const refusal = refusalOf(body, bytes);
          if (refusal === null) entry.held = bytes;
          else {
            expect(before + bytes).toBeGreaterThan(Math.min(300, 400 / workspaces));
            bodies.splice(bodies.indexOf(entry), 1);
            body.close();
          }
          const held = bodies.reduce((sum, each) => sum + each.held, 0);
          expect(shares.held).toBe(held);
          expect(held).toBeLessThanOrEqual(400);
          for (const each of [1, 2, 3, 4]) expect(heldBy(each)).toBeLessThanOrEqual(300);
        }
        for (const { body } of bodies) body.close();
        expect(shares.held).toBe(0);
      }),
    );
  });
});

describe("a body that trickles", () => {
  test("is abandoned after at most two windows, whatever came before, and then holds no memory", () => {
    const { clock, shares } = open();
    const { body, told } = holding(shares, 1, 500 * KIB);
    body.came(500 * KIB);
    for (let second = 0; second < 35; second++) {
      clock.advance(1_000);
      if (told.length === 0) body.came(1);
    }
    expect(told.map(({ code, status }) => [code, status])).toEqual([["invalid_json", 400]]);
    expect(told[0]?.message).toBe("The body arrived too slowly: send at least 60 KiB every 15 s.");
    expect(shares.held).toBe(0);
  });

  test("fast enough, is read for as long as it takes", () => {
    const { clock, shares } = open();
    const { body, told } = holding(shares, 1, 100 * KIB);
    for (let second = 0; second < 1_000; second++) {
      body.came(4.1 * KIB);
      clock.advance(1_000);
    }
    expect(told).toEqual([]);
    body.close();
  });

  test("is not abandoned because the event loop stood still: checks are counted, not time", () => {
    const { shares } = open();
    // A clock whose timers fire late: after 60 s only one of them is due.
    const late = new FakeClock();
    const after = late.after.bind(late);
    late.after = (_ms, task) => after(60_000, task);
    const slow = new BodyShares({ clock: late });
    const { told } = holding(slow, 1, KIB);
    late.advance(60_000);
    late.advance(60_000);
    expect(told).toEqual([]);
    expect(shares.held).toBe(0);
  });
});

describe("reading a body", () => {
  const json = (body: string | ReadableStream<Uint8Array>, length?: number) =>
    new Request("http://gate/", {
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        ...(length === undefined ? {} : { "content-length": String(length) }),
      },
    });

  /** A body that sends these parts, and then nothing until it is ended. */
  function trickle(parts: readonly number[]) {
    const { promise, resolve } = Promise.withResolvers<void>();
    const sent = Promise.withResolvers<void>();
    const state = { cancelled: false };
    let at = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const part = parts[at++];
          if (part !== undefined) {
            controller.enqueue(new Uint8Array(part).fill(32));
            return;
          }
          sent.resolve();
          await promise;
          controller.enqueue(new TextEncoder().encode("{}"));
          controller.close();
        },
        cancel() {
          state.cancelled = true;
          resolve();
        },
      },
      { highWaterMark: 0 },
    );
    return { body, sent: sent.promise, end: resolve, state };
  }

  test("counts memory held, not bytes received: parts of one byte take at most twice their bytes", async () => {
    const { shares } = open();
    const many = trickle(new Array<number>(20_000).fill(1));
    const reading = readJson(json(many.body), { workspaceId: 1, shares });
    await many.sent;
    expect(shares.held).toBeGreaterThanOrEqual(20_000);
    expect(shares.held).toBeLessThanOrEqual(40_000);
    many.end();
    expect(await reading).toEqual({});
    expect(shares.held).toBe(0);
  });

  test("that arrives too slowly ends with 400, and the rest is discarded", async () => {
    const { clock, shares } = open();
    const slow = trickle([100]);
    const reading = readJson(json(slow.body), { workspaceId: 1, shares });
    await slow.sent;
    clock.advance(35_000);
    await expect(reading).rejects.toMatchObject({ code: "invalid_json", headers: { Connection: "close" } });
    expect([shares.held, slow.state.cancelled]).toEqual([0, true]);
  });

  test("of a workspace over its share ends with 429 once another workspace needs the room", async () => {
    const { shares } = open({ whole: 256 * KIB, perWorkspace: 192 * KIB });
    const hog = trickle([150 * KIB]);
    const held = readJson(json(hog.body), { workspaceId: 1, shares });
    await hog.sent;
    const small = `{"a":"${"x".repeat(60 * KIB)}"}`;
    const other = trickle([50 * KIB]);
    const second = readJson(json(other.body), { workspaceId: 2, shares });
    await other.sent;
    expect(await readJson(json(small, small.length), { workspaceId: 3, shares })).toHaveProperty("a");
    await expect(held).rejects.toMatchObject(FULL);
    other.end();
    expect(await second).toEqual({});
    expect([shares.held, hog.state.cancelled]).toEqual([0, true]);
  });

  test("frees its memory however it ends", async () => {
    const { shares } = open({ whole: 1_000 });
    for (const text of ['{"a":1}', "{", "", `${"[".repeat(101)}`]) {
      await readJson(json(text, text.length), { workspaceId: 1, shares }).catch(() => {});
      expect(shares.held).toBe(0);
    }
    const read = (body: Request) => readJson(body, { workspaceId: 1, shares, limit: 10_000 });
    await expect(read(json("[]", 1_100))).rejects.toMatchObject(FULL);
    await expect(read(json(trickle([20_000]).body))).rejects.toMatchObject({ code: "body_too_large" });
    expect(shares.held).toBe(0);
  });
});

test("a body of a few bytes is read even if all memory is used, so a stop always works", async () => {
  const { shares } = open({ whole: 400, perWorkspace: 300 });
  holding(shares, 1, 300);
  const request = (text: string) =>
    new Request("http://127.0.0.1/", {
      ...{ method: "POST", body: text },
      headers: { "content-length": String(text.length) },
    });
  const read = (text: string) => readBytes(request(text), 10_000, shares.open(1));
  expect(new TextDecoder().decode(await read('{"reason":"now"}'))).toBe('{"reason":"now"}');
  await expect(read("x".repeat(1_025))).rejects.toMatchObject(FULL);
});

describe("bodies that end at the same moment", () => {
  /** For each body, the turn of the event loop in which it has been parsed. */
  async function turnsOf(texts: readonly string[]): Promise<readonly number[]> {
    const { shares } = open();
    let turn = 0;
    let isCounting = true;
    const next = (): void => {
      turn += 1;
      if (isCounting) setImmediate(next);
    };
    setImmediate(next);
    try {
      return await Promise.all(
        texts.map(async (body, index) => {
          const headers = { "content-type": "application/json" };
          const request = new Request("http://localhost/", { method: "POST", headers, body });
          await readJson(request, { workspaceId: index % 2, shares });
          return turn;
        }),
      );
    } finally {
      isCounting = false;
    }
  }

  const wide = `[${Array.from({ length: 32_000 }, () => "1").join(",")}]`;

  test("are parsed in different turns of the event loop if they have many members", async () => {
    const turns = await turnsOf(Array.from({ length: 20 }, () => wide));
    expect(new Set(turns).size).toBeGreaterThanOrEqual(19);
  });

  test("are parsed together if they are short", async () => {
    const turns = await turnsOf(Array.from({ length: 20 }, () => '{"a":1}'));
    expect(new Set(turns).size).toBeLessThanOrEqual(3);
  });
});
