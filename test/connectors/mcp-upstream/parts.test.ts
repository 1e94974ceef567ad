import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { createMask } from "../../../src/base/masking/mask.ts";
import { Changes } from "../../../src/connectors/mcp-upstream/changes.ts";
import { Deadline } from "../../../src/connectors/mcp-upstream/deadline.ts";
import { ListenBackoff } from "../../../src/connectors/mcp-upstream/http/listening.ts";
import { progressTo } from "../../../src/connectors/mcp-upstream/progress.ts";
import { childEnvironment } from "../../../src/connectors/mcp-upstream/stdio/environment.ts";
import { LineSplitter } from "../../../src/connectors/mcp-upstream/stdio/lines.ts";
import { FakeClock } from "../../support/clock.ts";

describe("a child's environment", () => {
  const own = { PATH: "/bin", HOME: "/home/me", GATEHOUSE_MASTER_KEY: "secret", SYSTEMROOT: "C:\\Windows" };
  const env = { TOKEN: "t" };
  test.each([
    ["by path: only what is declared", "/usr/bin/env", env, "linux", { TOKEN: "t" }],
    ["the same by relative path", "./server", env, "linux", { TOKEN: "t" }],
    ["by name: PATH and HOME", "npx", env, "linux", { TOKEN: "t", PATH: "/bin", HOME: "/home/me" }],
    ["a declared PATH stays", "npx", { PATH: "/opt" }, "darwin", { PATH: "/opt", HOME: "/home/me" }],
    [
      "on Windows: variables without which nothing starts",
      "C:/s.exe",
      {},
      "win32",
      { PATH: "/bin", SYSTEMROOT: "C:\\Windows" },
    ],
  ] as const)("%s", (_, command, declared, platform, expected) => {
    expect(childEnvironment({ type: "stdio", command, args: [], env: declared }, own, { platform })).toEqual(
      expected,
    );
  });
});

describe("lines", () => {
  const read = (lines: LineSplitter, chunks: readonly Uint8Array[]): string[] =>
    chunks.flatMap((chunk) => [...lines.push(chunk)]);

  test("that are too long are refused, even in pieces", () => {
    expect(() => read(new LineSplitter(10), [Buffer.from("12345678901\n")])).toThrow("longer than 10 bytes");
    expect(() => read(new LineSplitter(10), [Buffer.from("123456"), Buffer.from("78901")])).toThrow(
      "longer than 10 bytes",
    );
    expect(read(new LineSplitter(10), [Buffer.from("1234567890\n12"), Buffer.from("34567890\n")])).toEqual([
      "1234567890",
      "1234567890",
    ]);
  });

  test("are the same however the bytes are cut", () => {
    fc.assert(
      fc.property(fc.array(fc.string({ unit: "binary" })), fc.array(fc.nat(20)), (texts, cuts) => {
        const whole = texts.map((text) => text.replaceAll("\n", " "));
        let rest: Uint8Array = Buffer.from(whole.map((text) => `${text}\n`).join(""), "utf8");
        const chunks: Uint8Array[] = [];
        for (const cut of cuts) {
          chunks.push(rest.subarray(0, cut));
          rest = rest.subarray(cut);
        }
        expect(read(new LineSplitter(1_000), [...chunks, rest])).toEqual(
          whole.map((text) => text.toWellFormed()),
        );
      }),
    );
  });

  test("of many pieces are joined only once", () => {
    const lines = new LineSplitter(64 * 1024 * 1024);
    const piece = Buffer.alloc(1_024, "x");
    for (let count = 0; count < 32_768; count += 1) expect([...lines.push(piece)]).toEqual([]);
    expect([...lines.push(Buffer.from("\n"))].map((line) => line.length)).toEqual([32 * 1024 * 1024]);
  });
});

describe("a deadline", () => {
  function made(): { clock: FakeClock; deadline: Deadline; expired: string[] } {
    const clock = new FakeClock();
    const expired: string[] = [];
    return {
      clock,
      expired,
      deadline: new Deadline(clock, { silenceMs: 100, totalMs: 1_000 }, (what) => expired.push(what)),
    };
  }

  test("passes if nothing happens", () => {
    const { clock, expired } = made();
    clock.advance(99);
    expect(expired).toEqual([]);
    clock.advance(1);
    expect(expired).toEqual(["silence"]);
  });

  test("restarts with each sign of life, but not forever", () => {
    const { clock, deadline, expired } = made();
    for (let sign = 0; sign < 12 && expired.length === 0; sign += 1) {
      clock.advance(90);
      deadline.heard();
    }
    expect(expired).toEqual(["total"]);
    expect(clock.monotonic()).toBe(1_080);
  });

  test("does not pass after its end", () => {
    const { clock, deadline, expired } = made();
    deadline.end();
    clock.advance(5_000);
    expect(expired).toEqual([]);
  });
});

test("changes of the tools are reported once, at most every 5 s", () => {
  const clock = new FakeClock();
  let told = 0;
  const changes = new Changes(clock, () => {
    told += 1;
  });
  for (let times = 0; times < 10; times += 1) changes.noticed();
  clock.advance(199);
  expect(told).toBe(0);
  clock.advance(1);
  expect(told).toBe(1);
  changes.noticed();
  clock.advance(4_999);
  expect(told).toBe(1);
  clock.advance(1);
  expect(told).toBe(2);
  changes.noticed();
  changes.end();
  changes.noticed();
  clock.advance(60_000);
  expect(told).toBe(2);
});

test("an upstream that changes endlessly is listed less and less often, down to once an hour", () => {
  const clock = new FakeClock();
  const times: number[] = [];
  const changes = new Changes(clock, () => {
    times.push(clock.monotonic());
    changes.noticed();
  });
  changes.noticed();
  for (let minute = 0; minute < 24 * 60; minute += 1) clock.advance(60_000);
  const between = times.slice(1).map((time, index) => (time - (times[index] ?? 0)) / 1_000);
  expect(between.slice(0, 8)).toEqual([5, 5, 5, 5, 5, 10, 20, 40]);
  expect(between.at(-1)).toBe(3_600);
  expect(times.length).toBeLessThan(40);
  changes.end();
});

test("after a quiet time, a change is reported at once", () => {
  const clock = new FakeClock();
  let told = 0;
  const changes = new Changes(clock, () => {
    told += 1;
  });
  for (let times = 0; times < 20; times += 1) {
    changes.noticed();
    clock.advance(3_600_000);
  }
  const before = told;
  clock.advance(1);
  changes.noticed();
  clock.advance(200);
  expect(told).toBe(before + 1);
  changes.end();
});

test("a flood of progress is thinned out, and its texts are masked and cut", () => {
  const clock = new FakeClock();
  const told: unknown[] = [];
  const pass = progressTo((progress) => told.push(progress), { clock, mask: createMask(["hunter22"]) });
  for (let step = 0; step < 1_000; step += 1) pass({ progress: step });
  expect(told).toHaveLength(50);
  clock.advance(1_000);
  pass({ progress: 1, total: 2, message: `hunter22 ${"x".repeat(2_000)}` });
  expect(told.at(-1)).toEqual({ progress: 1, total: 2, message: `[redacted] ${"x".repeat(989)}…` });
});

test("a stream that keeps ending is opened less and less often", () => {
  const clock = new FakeClock();
  const listening = new ListenBackoff(clock);
  const open = (): number => {
    const wait = listening.waitMs(false);
    clock.advance(wait);
    return wait;
  };
  expect(Array.from({ length: 8 }, open)).toEqual([0, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000]);
  clock.advance(60_000);
  expect(open()).toBe(0);
  expect(listening.waitMs(true)).toBe(200);
});
