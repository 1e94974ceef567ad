/** Each workspace's share of the connections for calls. */
import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { Problem } from "../../../src/base/errors.ts";
import { OpenCalls } from "../../../src/http/connections/open-calls.ts";

/** Open calls of clients; the test decides when they leave. */
function start(limit: number) {
  const clients = new Map<Request, number>();
  const calls = new OpenCalls(limit);
  calls.attach((request) => {
    const port = clients.get(request);
    return port === undefined ? null : { address: "127.0.0.1", port };
  });
  let port = 0;
  /** @returns the request, or the refusal that ends it */
  const begin = (workspaceId: number, isUrgent = false): Request | Problem => {
    const request = new Request("http://gate/v1/agents");
    clients.set(request, ++port);
    calls.add(request, isUrgent);
    try {
      calls.claim(request, workspaceId);
      return request;
    } catch (error) {
      clients.delete(request);
      if (error instanceof Problem) return error;
      throw error;
    }
  };
  const end = (): Request[] =>
    calls.excess().map(({ request }) => {
      calls.drop(request);
      clients.delete(request);
      return request;
    });
  return { calls, begin, end, leave: (request: Request) => clients.delete(request) };
}

const REFUSED = {
  code: "rate_limited",
  isRecorded: false,
  headers: { "Retry-After": "1", Connection: "close" },
};

describe("a workspace", () => {
  test("may have all places while no other workspace calls, and no more", () => {
    const { begin, end } = start(16);
    for (let call = 0; call < 16; call++) expect(begin(1)).toBeInstanceOf(Request);
    expect(begin(1)).toMatchObject(REFUSED);
    expect(end()).toEqual([]);
  });

  test("with less than its share is served beyond the limit, and the workspace with the most loses its oldest calls", () => {
    const { calls, begin, end } = start(16);
    const held = Array.from({ length: 16 }, () => begin(1));
    expect(begin(2)).toBeInstanceOf(Request);
    expect(calls.isPastLimit).toBe(true);
    // One for the call beyond the limit, and one to make room for the next caller.
    expect<unknown>(end()).toEqual(held.slice(0, 2));
    expect(calls.isPastLimit).toBe(false);
    expect(begin(2)).toBeInstanceOf(Request);
    expect(begin(1)).toMatchObject(REFUSED);
  });

  test("is served at once when its own calls are over", () => {
    const { begin, leave } = start(16);
    const held = Array.from({ length: 16 }, () => begin(1));
    for (const request of held) if (request instanceof Request) leave(request);
    for (let call = 0; call < 16; call++) expect(begin(1)).toBeInstanceOf(Request);
  });

  test("may always make calls that end work, and these are never ended for others", () => {
    const { begin, end } = start(16);
    const stops = Array.from({ length: 20 }, () => begin(1, true));
    for (const stop of stops) expect(stop).toBeInstanceOf(Request);
    expect(begin(2)).toBeInstanceOf(Request);
    expect(end()).toEqual([]);
  });

  test("that only sends refused calls causes one search through all calls per many of them", () => {
    const limit = 6_400;
    let looks = 0;
    const calls = new OpenCalls(limit);
    const clients = new WeakSet<Request>();
    calls.attach((request) => {
      looks += 1;
      return clients.has(request) ? { address: "127.0.0.1", port: 1 } : null;
    });
    const begin = () => {
      const request = new Request("http://gate/v1/agents");
      clients.add(request);
      calls.add(request, false);
      calls.claim(request, 1);
    };
    for (let call = 0; call < limit; call++) begin();
    looks = 0;
    for (let call = 0; call < 1_000; call++) expect(begin).toThrow(Problem);
    expect(looks).toBeLessThan(12 * (limit + 1_000));
  });
});

test("whatever calls come and go, a workspace with no more than an equal share is never refused and loses no call", () => {
  const step = fc.record({
    workspace: fc.integer({ min: 1, max: 4 }),
    does: fc.constantFrom("calls", "calls", "calls", "leaves", "look"),
  });
  fc.assert(
    fc.property(fc.array(step, { minLength: 60, maxLength: 120 }), (steps) => {
      const limit = 12;
      const { begin, end, leave } = start(limit);
      const open: { workspace: number; request: Request }[] = [];
      const heldBy = (workspace: number) => open.filter((each) => each.workspace === workspace).length;
      const share = (): number => limit / Math.max(1, new Set(open.map(({ workspace }) => workspace)).size);
      for (const { workspace, does } of steps) {
        if (does === "leaves") {
          const at = open.findIndex((each) => each.workspace === workspace);
          const [left] = open.splice(at, at < 0 ? 0 : 1);
          if (left) leave(left.request);
        } else if (does === "look") {
          for (const request of end()) {
            const at = open.findIndex((each) => each.request === request);
            const lost = open[at]?.workspace ?? 0;
            expect(heldBy(lost)).toBeGreaterThan(share());
            open.splice(at, 1);
          }
          expect(open.length).toBeLessThanOrEqual(limit);
        } else {
          const workspaces = new Set([workspace, ...open.map((each) => each.workspace)]).size;
          const request = begin(workspace);
          if (request instanceof Request) open.push({ workspace, request });
          else {
            expect(open.length).toBeGreaterThanOrEqual(limit);
            expect(heldBy(workspace) + 1).toBeGreaterThan(limit / workspaces);
          }
        }
      }
    }),
    { numRuns: 300 },
  );
});
