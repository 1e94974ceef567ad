import { expect, test } from "bun:test";
import { LogOutput } from "../../src/base/log-output.ts";

/** A stream whose reader takes a line only when told to. */
function stuckStream() {
  const written: string[] = [];
  const waiting: (() => void)[] = [];
  return {
    written,
    write(line: string, done: () => void) {
      written.push(line);
      waiting.push(done);
    },
    take(count = waiting.length) {
      for (const done of waiting.splice(0, count)) done();
    },
  };
}

const leftOut = (count: number) => `${count} left out`;

test("beyond the cap lines are dropped, and counted once the reader continues", () => {
  const stream = stuckStream();
  const output = new LogOutput(stream, leftOut, 10);
  for (let i = 0; i < 100; i++) output.write(`line${i % 10}`);
  expect(stream.written).toHaveLength(3);
  stream.take();
  expect(stream.written.slice(3)).toEqual(["97 left out"]);
  stream.take();
  output.write("another");
  expect(stream.written.at(-1)).toBe("another");
  stream.take();
  expect(stream.written).toHaveLength(5);
});

test("a reader that keeps up gets every line", () => {
  const stream = stuckStream();
  const output = new LogOutput(stream, leftOut, 10);
  for (let i = 0; i < 100; i++) {
    output.write("line");
    stream.take();
  }
  expect(stream.written).toEqual(Array.from({ length: 100 }, () => "line"));
});
