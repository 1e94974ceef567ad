import { expect, test } from "bun:test";
import fc from "fast-check";
import { FrameMeter } from "../../src/base/event-frames.ts";
import { awsFrame } from "../support/aws.ts";

const NAME = { ":event-type": "messageStart" };

test("the length of a frame is known from its first bytes", () => {
  const frame = Buffer.alloc(12);
  frame.writeUInt32BE(0xffff_ffff);
  expect(new FrameMeter().add(frame).bytes).toBe(0xffff_ffff);
});

test("JSON that is too deep is found in a frame's payload alone", () => {
  const deep = "[".repeat(300) + "]".repeat(300);
  expect(new FrameMeter({ levels: 200 }).add(awsFrame(NAME, deep)).excess).toBe("levels");
  expect(new FrameMeter({ levels: 200 }).add(awsFrame({ name: deep }, "{}")).excess).toBeNull();
});

test("limits apply to each frame, however the bytes are divided", () => {
  const frames = fc.array(
    fc.record({
      headers: fc.dictionary(fc.string({ minLength: 1, maxLength: 9 }), fc.string()),
      members: fc.nat(20),
    }),
    { maxLength: 6 },
  );
  fc.assert(
    fc.property(frames, fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1 }), (all, cuts) => {
      const parts = all.map(({ headers, members }) =>
        awsFrame(headers, `[${Array(members).fill(0).join()}]`),
      );
      const bytes = Buffer.concat(parts);
      const meter = new FrameMeter({ members: 10 });
      let found = 0;
      let most = 0;
      let excess: unknown = null;
      for (let at = 0, cut = 0; at < bytes.length; cut++) {
        const length = cuts[cut % cuts.length] ?? 1;
        const measure = meter.add(bytes.subarray(at, at + length));
        found += measure.frames;
        most = Math.max(most, measure.bytes);
        excess ??= measure.excess;
        at += length;
      }
      expect(found).toBe(parts.length);
      expect(most).toBe(Math.max(0, ...parts.map(({ length }) => length)));
      expect(excess !== null).toBe(all.some(({ members }) => members > 10));
    }),
  );
});
