/** Each workspace's share of the open streams. */
import { expect, test } from "bun:test";
import fc from "fast-check";
import { OpenStreams, type StreamPlace } from "../../src/http/streams/open-streams.ts";

test("the oldest stream of the workspace with the most ends for one with fewer", () => {
  const streams = new OpenStreams(4, 4);
  const ended: string[] = [];
  const open = (workspace: number, name: string) => streams.take(workspace).endsBy(() => ended.push(name));
  for (const name of ["a", "b", "c", "d"]) open(1, name);
  open(2, "e");
  open(2, "f");
  expect(ended).toEqual(["a", "b"]);
  expect(() => open(2, "g")).toThrow("too many open streams");
  expect(() => open(1, "h")).toThrow("too many open streams");
  expect(ended).toEqual(["a", "b"]);
});

test("a stream that lost its place before it began ends at its beginning", () => {
  const streams = new OpenStreams(2, 2);
  const first = streams.take(1);
  streams.take(1);
  streams.take(2);
  const ended: string[] = [];
  first.endsBy(() => ended.push("first"));
  expect(ended).toEqual(["first"]);
  // The stream has no slot to give back.
  first.release();
  expect(() => streams.take(1)).toThrow("too many open streams");
});

test("whatever streams come and go, no more are open than allowed, and no workspace below an equal share is refused", () => {
  const step = fc.record({ workspace: fc.integer({ min: 1, max: 4 }), closes: fc.boolean() });
  fc.assert(
    fc.property(fc.array(step, { minLength: 40, maxLength: 80 }), (steps) => {
      const streams = new OpenStreams(6, 8);
      const open: { workspace: number; place: StreamPlace }[] = [];
      /** How many streams the workspace held when one of them was ended for another workspace. */
      const lost: number[] = [];
      const heldBy = (workspace: number) => open.filter((each) => each.workspace === workspace).length;
      for (const { workspace, closes } of steps) {
        if (closes) {
          const at = open.findIndex((each) => each.workspace === workspace);
          open.splice(at, at < 0 ? 0 : 1)[0]?.place.release();
          continue;
        }
        const workspaces = new Set([workspace, ...open.map((each) => each.workspace)]).size;
        const wanted = heldBy(workspace) + 1;
        lost.length = 0;
        try {
          const place = streams.take(workspace);
          const entry = { workspace, place };
          place.endsBy(() => {
            lost.push(heldBy(workspace));
            open.splice(open.indexOf(entry), 1);
          });
          open.push(entry);
        } catch {
          expect(wanted).toBeGreaterThan(Math.min(6, 8 / workspaces));
        }
        for (const held of lost) expect(held).toBeGreaterThan(8 / workspaces);
        expect(open.length).toBeLessThanOrEqual(8);
      }
    }),
    { numRuns: 300 },
  );
});
