/** Stored texts are read in turns, so that other work is not delayed. */
import { expect, test } from "bun:test";
import { oneAtATime, readText } from "../../../src/dialects/responses/stored/text-reading.ts";
import { hashOf } from "../../../src/ledger/payload.ts";

const BODY = "x".repeat(1024 * 1024);
const SALT = new Uint8Array(16);
const TEXT = {
  ...{ workspaceId: 1, seq: 1, kind: "input" as const },
  hash: hashOf(SALT, BODY),
};

test("large texts are read in different turns of the event loop, however many are requested", async () => {
  let turn = 0;
  let isOver = false;
  const count = () => {
    turn++;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const read: number[] = [];
  const held: number[] = [];
  const sql = {
    async get<Row>(query: string): Promise<Row | undefined> {
      if (query.includes("octet_length")) return { bytes: BODY.length } as Row;
      return { salt: SALT, body: BODY } as Row;
    },
  };
  const texts = await Promise.all(
    Array.from({ length: 10 }, async () => {
      const text = await readText(sql, TEXT, (bytes) => void held.push(bytes));
      read.push(turn);
      return text;
    }),
  );
  isOver = true;
  expect(texts.every((text) => text === BODY)).toBe(true);
  expect(new Set(read).size).toBe(10);
  // Memory is reserved for the text and its parsed form.
  expect(held).toEqual(Array(10).fill(2 * BODY.length));
});

test("a text for which there is no memory is not read", async () => {
  let read = 0;
  const sql = {
    async get<Row>(query: string): Promise<Row | undefined> {
      if (!query.includes("octet_length")) read++;
      return { bytes: BODY.length } as Row;
    },
  };
  const refused = readText(sql, TEXT, () => {
    throw new Error("no memory");
  });
  await expect(refused).rejects.toThrow("no memory");
  expect(read).toBe(0);
});

test("texts that are dropped after being read take the memory of the largest one", () => {
  const held: number[] = [];
  const hold = oneAtATime((bytes) => void held.push(bytes));
  for (const bytes of [5, 3, 9, 9, 1]) hold(bytes);
  expect(held).toEqual([5, 4]);
});
