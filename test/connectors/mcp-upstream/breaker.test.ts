import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { systemRandom } from "../../../src/base/ids.ts";
import { Breaker, type Permit } from "../../../src/connectors/mcp-upstream/breaker.ts";
import { FakeClock } from "../../support/clock.ts";

/** Fills the bytes with ones, which gives the longest wait at each step. */
const longest = (bytes: Uint8Array): void => void bytes.fill(0xff);
const shortest = (bytes: Uint8Array): void => void bytes.fill(0);

function made(random = longest): { breaker: Breaker; clock: FakeClock } {
  const clock = new FakeClock();
  return { breaker: new Breaker(clock, random), clock };
}

function enter(breaker: Breaker): Permit {
  const permit = breaker.enter();
  if (!permit) throw new Error("it was expected to let the call in");
  return permit;
}

describe("a failed connect", () => {
  test("leaves the upstream alone for 250 ms, doubling up to 30 s", () => {
    const { breaker, clock } = made();
    const waits = Array.from({ length: 10 }, () => {
      breaker.connectFailed();
      const wait = breaker.waitMs();
      clock.advance(wait);
      expect(breaker.waitMs()).toBe(0);
      return wait;
    });
    expect(waits).toEqual([250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000]);
  });

  test("waits for at least half of that", () => {
    const { breaker } = made(shortest);
    breaker.connectFailed();
    expect(breaker.waitMs()).toBe(125);
  });

  test("is forgotten after the next success", () => {
    const { breaker, clock } = made();
    breaker.connectFailed();
    clock.advance(250);
    breaker.connected();
    breaker.connectFailed();
    expect(breaker.waitMs()).toBe(250);
    expect(breaker.failures).toBe(1);
  });
});

describe("calls without an answer", () => {
  test("open it after five in a row", () => {
    const { breaker } = made();
    expect(Array.from({ length: 5 }, () => breaker.lost(enter(breaker)))).toEqual([
      false,
      false,
      false,
      false,
      true,
    ]);
    expect(breaker.waitMs()).toBe(250);
  });

  test("do not open it if one was answered in between", () => {
    const { breaker } = made();
    for (let call = 0; call < 4; call += 1) breaker.lost(enter(breaker));
    breaker.answered(enter(breaker));
    expect(breaker.lost(enter(breaker))).toBe(false);
    expect(breaker.waitMs()).toBe(0);
  });

  test("that were in flight together count as one failure", () => {
    const { breaker } = made();
    const permits = Array.from({ length: 20 }, () => enter(breaker));
    for (const permit of permits) breaker.lost(permit);
    expect(breaker.waitMs()).toBe(250);
    expect(breaker.failures).toBe(1);
  });
});

describe("once open", () => {
  function opened(): { breaker: Breaker; clock: FakeClock } {
    const parts = made();
    for (let call = 0; call < 5; call += 1) parts.breaker.lost(enter(parts.breaker));
    parts.clock.advance(250);
    parts.breaker.connected();
    return parts;
  }

  test("one call at a time tries it", () => {
    const { breaker } = opened();
    const trial = enter(breaker);
    expect(breaker.enter()).toBeUndefined();
    breaker.withdrawn(trial);
    expect(breaker.enter()).toEqual({ trial: true });
  });

  test("an answered trial closes it", () => {
    const { breaker } = opened();
    breaker.answered(enter(breaker));
    expect([breaker.enter(), breaker.enter()]).toEqual([{ trial: false }, { trial: false }]);
  });

  test("an unanswered trial opens it for twice as long", () => {
    const { breaker } = opened();
    expect(breaker.lost(enter(breaker))).toBe(true);
    expect(breaker.waitMs()).toBe(500);
  });
});

test("whatever happens, it waits at most 30 s, and then allows calls again", () => {
  const step = fc.constantFrom(
    "enter",
    "answered",
    "lost",
    "withdrawn",
    "connected",
    "connectFailed",
    "wait",
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const { breaker, clock } = made(systemRandom);
      const out: Permit[] = [];
      for (const each of steps) {
        if (each === "enter") {
          const permit = breaker.enter();
          if (permit) out.push(permit);
        } else if (each === "connected" || each === "connectFailed") breaker[each]();
        else if (each === "wait") clock.advance(100);
        else {
          const permit = out.pop();
          if (permit) breaker[each](permit);
        }
        expect(breaker.waitMs()).toBeLessThanOrEqual(30_000);
        expect(out.filter(({ trial }) => trial).length).toBeLessThanOrEqual(1);
      }
      for (const permit of out) breaker.withdrawn(permit);
      clock.advance(30_000);
      expect(breaker.waitMs()).toBe(0);
      expect(breaker.enter()).toBeDefined();
    }),
  );
});
