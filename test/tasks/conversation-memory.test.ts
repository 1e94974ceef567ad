/** The memory that all conversations in progress may use, by workspace and in total. */
import { describe, expect, test } from "bun:test";
import type { AgentDenied, Message } from "../../src/agents/index.ts";
import { ConversationMemory } from "../../src/tasks/run/conversation-memory.ts";

const LIMITS = { ordinary: 1_000, perWorkspace: 20_000, whole: 30_000 };

function bench() {
  const room = new ConversationMemory(LIMITS);
  const lost: number[] = [];
  const open = (workspaceId: number, id = workspaceId) => {
    const messages: Message[] = [];
    const conversation = room.open(workspaceId, () => void lost.push(id));
    return {
      grow(characters: number) {
        messages.push({ role: "user", text: "x".repeat(characters) });
        conversation.hold([...messages]);
      },
      close: () => conversation.close(),
    };
  };
  return { room, lost, open };
}

function codeOf(call: () => void): string {
  try {
    call();
    return "held";
  } catch (error) {
    return `${(error as AgentDenied).code}: ${(error as AgentDenied).message}`;
  }
}

describe("conversations in progress", () => {
  test("of ordinary length do not count, however many there are", () => {
    const { room, open } = bench();
    for (let at = 0; at < 1_000; at++) open(at % 3).grow(900);
    expect(room.held).toBe(0);
  });

  test("count as they grow, each message once, until they end", () => {
    const { room, open } = bench();
    const one = open(1);
    one.grow(1_000);
    const first = room.held;
    expect(first).toBeLessThan(100);
    one.grow(5_000);
    expect(room.held).toBeGreaterThanOrEqual(first + 5_000);
    expect(room.held).toBeLessThan(first + 5_100);
    one.close();
    expect(room.held).toBe(0);
  });

  test("of one workspace end past its share, and others continue", () => {
    const { lost, open } = bench();
    open(1, 10).grow(10_000);
    open(1, 11).grow(10_000);
    expect(codeOf(() => open(1, 12).grow(10_000))).toBe(
      "conversations_full: The workspace's conversations in progress are too long in total.",
    );
    expect(codeOf(() => open(2).grow(10_000))).toBe("held");
    expect(lost).toEqual([]);
  });

  test("past the limit, a workspace below its share takes memory from the one with the most", () => {
    const { room, lost, open } = bench();
    open(1, 10).grow(9_000);
    open(1, 11).grow(9_000);
    open(2, 20).grow(9_000);
    expect(codeOf(() => open(3, 30).grow(9_000))).toBe("held");
    expect(lost).toEqual([10]);
    expect(room.held).toBeLessThanOrEqual(LIMITS.whole);
    expect(codeOf(() => open(1, 12).grow(9_000))).toContain("The server's conversations");
  });

  test("count what they had before a refused addition, and not the addition", () => {
    const { room } = bench();
    const [one, two] = [room.open(1, () => {}), room.open(1, () => {})];
    one.add(9_000);
    two.add(9_000);
    const before = room.held;
    expect(codeOf(() => two.add(9_000))).toContain("conversations_full");
    expect(room.held).toBe(before);
    two.add(1_000);
    expect(room.held).toBe(before + 1_000);
  });
});
