/** A program's output on standard error, as it is shown: no part of a secret, wherever the text was cut. */
import { describe, expect, test } from "bun:test";
import { Inflow } from "../../../src/base/inflow.ts";
import { createMask } from "../../../src/base/masking/mask.ts";
import { StderrLog } from "../../../src/connectors/mcp-upstream/stdio/stderr-log.ts";
import { FakeClock } from "../../support/clock.ts";
import { open } from "./support.ts";

const SECRET = `${"0123456789".repeat(9)}-the-end`;

function saying() {
  const lines: unknown[] = [];
  const log = {
    info() {},
    warn() {},
    error() {},
    debug: (_: string, fields: unknown) => void lines.push(fields),
  };
  const clock = new FakeClock();
  const parts = { clock, inflow: new Inflow(clock, 1), log, mask: createMask([SECRET]), name: "up" };
  return { said: new StderrLog(parts), lines };
}
const bytes = (text: string) => new TextEncoder().encode(text);

describe("the end of its output", () => {
  test("shows no remainder of a secret that was cut, although masking moves it closer", () => {
    const { said } = saying();
    // So many secrets that the text left after masking is shorter than the limit.
    said.push(bytes(`${SECRET}\n`.repeat(400)));
    expect(said.tail().replaceAll("[redacted]", "").trim()).toBe("");
    expect(said.tail()).toStartWith("[redacted]");
  });

  test("shows nothing of a secret that was not completely written", () => {
    const { said } = saying();
    said.push(bytes(`key: ${SECRET.slice(0, 60)}`));
    expect(said.tail()).toBe("key:");
  });

  test("is complete if short, and has 4,096 characters if long", () => {
    const { said } = saying();
    said.push(bytes("cannot log in\n"));
    expect(said.tail()).toBe("cannot log in");
    said.push(bytes("x".repeat(100_000)));
    expect(said.tail()).toBe("x".repeat(4_096));
  });
});

describe("a line of its output in the log", () => {
  test("shows no part of a secret at the cut, even if it arrives in pieces", () => {
    const { said, lines } = saying();
    said.push(bytes(SECRET.repeat(10)));
    said.push(bytes(SECRET.repeat(200)));
    said.push(bytes("\nnext\n"));
    expect(lines).toEqual([
      { connector: "up", line: "[redacted]" },
      { connector: "up", line: "next" },
    ]);
  });

  test("is cut at 1,000 characters", () => {
    const { said, lines } = saying();
    said.push(bytes(`${"x".repeat(5_000)}\n`));
    expect(lines).toEqual([{ connector: "up", line: "x".repeat(1_000) }]);
  });
});

test("a real program's last output is masked, and not part of the error that anyone may read", async () => {
  const words = "process.stderr.write(process.env.KEY.repeat(300)); process.exitCode = 3";
  await using up = open(
    { type: "stdio", command: process.execPath, args: ["-e", words], env: { KEY: SECRET } },
    { mask: createMask([SECRET]) },
  );
  const error = await up.list().then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({
    message: "The program of the connector up ended with code 3.",
    output: "[redacted]",
  });
});
