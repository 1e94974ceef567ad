import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import type { ToolProgress } from "../../../src/connectors/source.ts";
import { fasterClock, faultOf, open, openFake, pidOf, quickClock, SECRET, textOf } from "./support.ts";

describe("a program that cannot be used", () => {
  test.each([
    [
      "is not found on PATH",
      "no-such-program-here",
      '"no-such-program-here" of the connector up was not found on PATH',
    ],
    ["is not found by its path", "/no/such/program", '"/no/such/program" of the connector up was not found'],
    ["is not a program", import.meta.path, "of the connector up cannot be started (EACCES)"],
  ])("%s", async (_, command, words) => {
    await using up = open({ type: "stdio", command, args: [], env: {} });
    const fault = await faultOf(up.list());
    expect(fault).toStartWith("unreachable: The program ");
    expect(fault).toContain(words);
  });

  test("ends at once: its output is in the log without its secret, and not in the error", async () => {
    await using up = openFake("ends");
    expect(await faultOf(up.list())).toBe("unreachable: The program of the connector up ended with code 3.");
    expect(up.logged).toContainEqual({
      level: "warn",
      message: "a connector's program ended",
      fields: { connector: "up", how: "with code 3", output: "cannot log in with [redacted]" },
    });
    expect(JSON.stringify(up.logged)).not.toContain(SECRET);
  });

  test("prints nothing that is JSON-RPC", async () => {
    await using up = openFake("garbage", {}, { clock: quickClock });
    expect(await faultOf(up.list())).toBe(
      "invalid_answer: The connector up sent 100 messages in a row that are not JSON-RPC.",
    );
  });

  test("does not answer the handshake", async () => {
    await using up = openFake("silent", {}, { handshakeMs: 50 });
    expect(await faultOf(up.list())).toBe(
      "timeout: The connector up did not finish the handshake within 50 ms.",
    );
  });

  test("has a minute for the handshake, because it may first have to be installed", async () => {
    await using up = openFake("silent", {}, { clock: fasterClock(1_000), timeoutMs: 1_000 });
    expect(await faultOf(up.list())).toBe(
      "timeout: The connector up did not finish the handshake within 60000 ms.",
    );
  });

  test("speaks an unknown version", async () => {
    await using up = openFake("plain", { version: "1999-01-01" });
    expect(await faultOf(up.list())).toBe(
      "invalid_answer: The connector up did not answer the handshake as MCP requires: Server's protocol version is not supported: 1999-01-01",
    );
  });

  test("writes an endless line", async () => {
    await using up = openFake("blares");
    expect(await faultOf(up.list())).toBe(
      "too_large: The program of the connector up wrote a line of more than 16 MiB.",
    );
  });
});

describe("a call", () => {
  test("that the upstream refuses carries its message, without the secret in it", async () => {
    await using up = openFake("plain");
    expect(await faultOf(up.call("fail"))).toBe(
      "refused: The connector up answered with error -32000: refused with [redacted]",
    );
  });

  test("whose program ends midway is not repeated, and the next call starts it again", async () => {
    await using up = openFake("plain");
    const first = await pidOf(up);
    expect(await faultOf(up.call("exit"))).toBe(
      "unreachable: The program of the connector up ended with code 1. It is unknown whether the call was carried out.",
    );
    expect(await pidOf(up)).not.toBe(first);
    expect(JSON.parse(textOf(await up.call("heard")))).toMatchObject([
      { method: "notifications/initialized" },
    ]);
  });

  test.each([
    ["a result that is not an object", "garbled", {}],
    ["a task", "task", {}],
    ["invalid content", "wrong", { result: { content: "text" } }],
    ["nothing", "wrong", { result: {} }],
  ])("answered with %s is refused, and the connection continues", async (_, name, input) => {
    await using up = openFake("plain");
    const pid = await pidOf(up);
    expect(await faultOf(up.call(name, input))).toStartWith("invalid_answer: The connector up ");
    expect(await pidOf(up)).toBe(pid);
  });

  test("answered with too long a line ends the program", async () => {
    await using up = openFake("plain");
    const pid = await pidOf(up);
    expect(await faultOf(up.call("big", { characters: 17 * 1024 * 1024 }))).toStartWith("too_large: ");
    expect(await pidOf(up)).not.toBe(pid);
  });

  test("to a program that does not read fails when too much is queued", async () => {
    await using up = openFake("deaf", {}, { clock: quickClock, timeoutMs: 1_000_000 });
    const text = "x".repeat(20 * 1024 * 1024);
    const faults = await Promise.all(
      [1, 2, 3, 4].map((call) =>
        call < 4
          ? up.call("echo", { text }).catch(() => "")
          : faultOf(up.call("echo", { text }).finally(() => up.source.close())),
      ),
    );
    expect(faults[3]).toStartWith(
      "unreachable: The program of the connector up does not read its input: 64 MiB are waiting.",
    );
  });

  test("receives its progress, including the last", async () => {
    await using up = openFake("plain");
    const told: ToolProgress[] = [];
    await up.call("progress", { steps: 3, text: SECRET }, { progress: (progress) => told.push(progress) });
    expect(told).toEqual(
      [1, 2, 3].map((step) => ({ progress: step, total: 3, message: `step ${step} [redacted]` })),
    );
  });

  test("that is cancelled notifies the upstream", async () => {
    await using up = openFake("plain");
    const caller = new AbortController();
    const call = up.call(
      "progress",
      { steps: 1, hang: true },
      { signal: caller.signal, progress: () => caller.abort() },
    );
    expect(await faultOf(call)).toBe("cancelled: The call to the connector up was cancelled.");
    const heard = JSON.parse(textOf(await up.call("heard")));
    expect(heard.at(-1)).toMatchObject({ method: "notifications/cancelled", params: { requestId: 1 } });
  });

  test("that was already cancelled is not made", async () => {
    await using up = openFake("plain");
    expect(await faultOf(up.call("echo", {}, { signal: AbortSignal.abort() }))).toStartWith("cancelled: ");
  });
});

describe("the upstream", () => {
  test("may print a greeting on its standard output", async () => {
    await using up = openFake("greets");
    expect(textOf(await up.call("echo", { text: "hi" }))).toBe("hi");
  });

  test("that requests a sample from a model gets none", async () => {
    await using up = openFake("plain");
    await up.call("ask");
    expect(JSON.parse(textOf(await up.call("heard"))).at(-1)).toEqual({
      jsonrpc: "2.0",
      id: "mine",
      error: { code: -32601, message: "Method not found" },
    });
  });

  test("that reports changed tools several times is listed once", async () => {
    const told = Promise.withResolvers<void>();
    let times = 0;
    await using up = openFake(
      "plain",
      {},
      {
        toolsChanged: () => {
          times += 1;
          told.resolve();
        },
      },
    );
    await up.call("change");
    await told.promise;
    expect(times).toBe(1);
  });

  test("finds only the declared variables in its environment", async () => {
    await using up = openFake("plain");
    const environment = readFileSync(`/proc/${await pidOf(up)}/environ`, "utf8");
    expect(environment).toBe(`SECRET=${SECRET}\0`);
    expect(textOf(await up.call("env"))).toBe('{"SECRET":"[redacted]"}');
  });

  test("is found on PATH, and then gets PATH and HOME", async () => {
    const environment = { PATH: process.env.PATH, HOME: "/home/me", OTHER: "1" };
    const args = ["-c", "cat /proc/$$/environ >&2"];
    await using up = open({ type: "stdio", command: "sh", args, env: { A: "1" } }, { environment });
    await faultOf(up.list());
    const { fields } = await up.logs(({ message }) => message === "a connector's program ended");
    expect(fields.output).toContain("A=1");
    expect(fields.output).toContain("HOME=/home/me");
    expect(fields.output).not.toContain("OTHER");
  });
});
