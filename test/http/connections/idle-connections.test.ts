import { describe, expect, test } from "bun:test";
import { IdleConnectionFinder } from "../../../src/http/connections/idle-connections.ts";
import type { InboundSocket } from "../../../src/http/connections/inbound-sockets.ts";

const socket = (port: number, address = "10.0.0.1"): InboundSocket => ({ descriptor: port, address, port });
const ports = (sockets: readonly InboundSocket[]) => sockets.map(({ port }) => port);

describe("a connection is not idle", () => {
  test("at the first check: its client may have just connected", () => {
    const { open, idle } = new IdleConnectionFinder().look([socket(1)], []);
    expect([open, idle]).toEqual([1, []]);
  });

  test("while it has a call", () => {
    const finder = new IdleConnectionFinder();
    finder.look([socket(1)], [{ address: "10.0.0.1", port: 1 }]);
    expect(finder.look([socket(1)], [{ address: "10.0.0.1", port: 1 }]).idle).toEqual([]);
  });

  test("if a call came and went between two checks", () => {
    const finder = new IdleConnectionFinder();
    finder.look([socket(1)], []);
    finder.noteCall({ address: "10.0.0.1", port: 1 });
    expect(finder.look([socket(1)], []).idle).toEqual([]);
    expect(finder.look([socket(1)], []).idle).toEqual([]);
    expect(ports(finder.look([socket(1)], []).idle)).toEqual([1]);
  });

  test("if the server writes its address differently from the system", () => {
    const finder = new IdleConnectionFinder();
    const calling = [{ address: "::ffff:10.0.0.1", port: 1 }];
    finder.look([socket(1)], calling);
    expect(finder.look([socket(1)], calling).idle).toEqual([]);
  });

  test("if there was no check for a while: the next check is the first of two", () => {
    const finder = new IdleConnectionFinder();
    finder.look([socket(1)], []);
    finder.forget();
    expect(finder.isLooking).toBe(false);
    expect(finder.look([socket(1)], []).idle).toEqual([]);
  });
});

test("a client's call protects its own connection, not another's from the same port", () => {
  const finder = new IdleConnectionFinder();
  const calling = [{ address: "10.0.0.1", port: 1 }];
  const sockets = [socket(1), socket(1, "10.0.0.2")];
  finder.look(sockets, calling);
  expect(finder.look(sockets, calling).idle.map(({ address }) => address)).toEqual(["10.0.0.2"]);
});

test("the connections of the client with the most come first", () => {
  const finder = new IdleConnectionFinder();
  const sockets = [socket(1), socket(2, "10.0.0.2"), socket(3, "10.0.0.2"), socket(4)];
  const more = [...sockets, socket(5, "10.0.0.2")];
  finder.look(more, []);
  expect(ports(finder.look(more, []).idle)).toEqual([2, 3, 5, 1, 4]);
});
