import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { blocksOf, encodeFrame, framesAfter } from "../../src/tasks/events/frames.ts";
import { EventLog } from "../../src/tasks/events/log.ts";
import { WholeCharacters } from "../../src/tasks/run/characters.ts";

const decode = (bytes: Uint8Array) => new TextDecoder("utf-8", { fatal: true }).decode(bytes);
const anyText = fc.oneof(
  fc.string({ unit: "binary" }),
  fc
    .array(fc.constantFrom("\n", "\r", "id: 5", "\n\nid: 9\n", "data:", "\u2028", "\ud83d", "\ude00", "x"))
    .map((all) => all.join("")),
);

describe("a frame", () => {
  test("has the standard's bytes, exactly three lines and an empty one, whatever the text", () => {
    fc.assert(
      fc.property(anyText, fc.integer({ min: 1 }), (text, id) => {
        const frame = decode(encodeFrame(id, "output.delta", { text }));
        expect(frame).toBe(`id: ${id}\nevent: output.delta\ndata: ${JSON.stringify({ text })}\n\n`);
        expect(frame.split(/\r\n|\n|\r/).length).toBe(5);
      }),
    );
  });
});

test("a block, cut after any id, is exactly the frames that follow", () => {
  const texts = fc.array(anyText, { maxLength: 12 });
  fc.assert(
    fc.property(
      texts,
      fc.integer({ min: 1, max: 100_000 }),
      fc.integer({ min: -2, max: 15 }),
      (all, first, at) => {
        const frames = all.map((text, index) => encodeFrame(first + index, "output.delta", { text }));
        const rest = framesAfter(Buffer.concat(frames), first + at);
        expect(decode(rest)).toBe(decode(Buffer.concat(frames.slice(Math.max(0, at + 1)))));
      },
    ),
  );
});

test("deltas contain whole characters, and together the same text, however it was cut", () => {
  const unit = fc.constantFrom("\ud83d", "\ude00", "😀", "a", "");
  fc.assert(
    fc.property(fc.array(fc.array(unit).map((units) => units.join(""))), (deltas) => {
      const characters = new WholeCharacters();
      const out = deltas.map((delta) => characters.take(delta));
      out.push(characters.rest());
      for (const text of out) expect(text.isWellFormed()).toBe(true);
      expect(out.join("")).toBe(deltas.join("").toWellFormed());
      expect(characters.rest()).toBe("");
    }),
  );
});

describe("an event log", () => {
  const texts = (frames: readonly Uint8Array[]) =>
    frames.map((frame) => /"text":"(\w*)"/.exec(decode(frame))?.[1]);

  test("returns what follows any id, and nothing for a future id", () => {
    const log = new EventLog(7);
    for (const text of ["a", "b", "c"]) log.publish("output.delta", { text });
    expect([log.nextId, log.savedUpTo]).toEqual([10, 6]);
    for (const [after, rest] of [
      [0, "abc"],
      [6, "abc"],
      [7, "bc"],
      [9, ""],
      [10, ""],
      [999, ""],
    ] as const) {
      expect(texts(log.after(after)).join("")).toBe(rest);
    }
  });

  test("wakes each waiting reader once, and none that has left, at the end of the turn or when it ends", async () => {
    const log = new EventLog(2);
    const woken: string[] = [];
    log.onChange(() => woken.push("stays"));
    const leave = log.onChange(() => woken.push("leaves"));
    leave();
    log.publish("output.delta", { text: "a" });
    log.publish("output.delta", { text: "b" });
    expect(woken).toEqual([]);
    await new Promise((resolve) => setImmediate(resolve));
    expect(woken).toEqual(["stays"]);
    log.onChange(() => woken.push("end"));
    log.close(null);
    expect(woken).toEqual(["stays", "end"]);
  });

  const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

  test("joins the text of one turn into one frame, sent at the turn's end or before another event", async () => {
    const log = new EventLog(2);
    for (const text of ["a", "b"]) log.publishText(text);
    expect(log.after(1)).toEqual([]);
    await turn();
    log.publishText("c");
    log.publish("output.reset", {});
    log.publishText("d");
    log.close(null);
    expect(texts(log.after(1))).toEqual(["ab", "c", undefined, "d"]);
  });

  test("makes no frame larger than a block, however much arrives at once", () => {
    const log = new EventLog(2);
    for (let index = 0; index < 200; index++) log.publishText("\u0001".repeat(1_000));
    log.flush();
    for (const frame of log.after(1)) expect(frame.length).toBeLessThanOrEqual(64 * 1024);
    expect(log.after(1).length).toBe(25);
  });

  test("makes few frames of many small deltas in separate turns, and loses nothing", async () => {
    const log = new EventLog(2);
    const deltas = 60_000;
    for (let index = 0; index < deltas; index++) {
      log.publishText("a");
      await turn();
    }
    log.flush();
    expect(log.after(1).length).toBeLessThan(20_050);
    const length = texts(log.after(1)).reduce((sum, text) => sum + (text?.length ?? 0), 0);
    expect(length).toBe(deltas);
  });

  test("continues where another node has stored events, once its own are stored, and wakes its readers", () => {
    const log = new EventLog(2);
    log.publish("output.delta", { text: "a" });
    log.skipTo(5);
    expect(log.nextId).toBe(3);
    let woken = 0;
    log.onChange(() => woken++);
    log.saved(2);
    expect([log.nextId, log.savedUpTo, log.letGoUpTo, woken]).toEqual([5, 4, 4, 1]);
    log.skipTo(4);
    expect(log.nextId).toBe(5);
  });

  test("accepts nothing more once it has ended", () => {
    const log = new EventLog(2);
    log.close(encodeFrame(2, "task.finished", {}));
    expect([log.closed, log.after(1).length]).toEqual([true, 1]);
    expect(() => log.publish("output.reset", {})).toThrow("ended");
  });
});

test("blocks contain every frame in order, and no block of several exceeds 64 KiB", () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 90_000 }), { maxLength: 40 }), (sizes) => {
      const frames = sizes.map((size, index) => new Uint8Array(size).fill(index));
      const blocks = [...blocksOf(frames)];
      expect(Buffer.compare(Buffer.concat(blocks.map(({ bytes }) => bytes)), Buffer.concat(frames))).toBe(0);
      expect(blocks.reduce((sum, block) => sum + block.frames, 0)).toBe(frames.length);
      for (const block of blocks)
        if (block.frames > 1) expect(block.bytes.length).toBeLessThanOrEqual(65_536);
    }),
    { numRuns: 100 },
  );
});
