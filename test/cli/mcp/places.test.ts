/**
 * The same behaviour in all three modes: the gateway inside the process, the data directory's server, and a server's
 * URL.
 */
import { afterAll, afterEach, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import type { ServerProcess } from "../../support/process.ts";
import { type Desk, openDesk } from "../support.ts";
import { connect, endAll, INITIALIZE, INITIALIZED, type Place, request, speak, UPSTREAM } from "./support.ts";

setDefaultTimeout(60_000);

describe.each([
  ["inside the process", "free"],
  ["to the server on the data directory", "server"],
  ["to the URL of GATEHOUSE_URL", "url"],
])("%s", (_, where) => {
  let desk: Desk;
  let server: ServerProcess | undefined;
  let place: Place;

  beforeAll(async () => {
    desk = openDesk();
    const token = (await desk.out(["token", "create", "--name", "client", "--scope", "admin"])).trim();
    await desk.out(["connector", "add", "fake", "--", process.execPath, UPSTREAM, "plain"]);
    if (where !== "free") server = await desk.serve();
    const url = where === "url" ? { GATEHOUSE_URL: server?.url ?? "", GATEHOUSE_DATA: "elsewhere" } : {};
    place = { cwd: desk.cwd, token, env: url };
  });
  afterEach(endAll);
  afterAll(() => desk.clear());

  test("a wrong token is refused with a message, each request is answered, and the end is quiet", async () => {
    const spoken = await speak({ ...place, token: "gth_wrong" });
    spoken.write(INITIALIZE, request(2, "tools/list"));
    expect(await spoken.answer("hello")).toMatchObject({ error: { data: { code: "invalid_token" } } });
    expect(await spoken.answer(2)).toMatchObject({ error: { message: expect.stringContaining("session") } });
    spoken.end();
    expect((await spoken.ended()).code).toBe(0);
  });

  test("progress comes before the answer, in order", async () => {
    const spoken = await speak(place);
    const params = {
      name: "fake__progress",
      arguments: { steps: 3, text: "on" },
      _meta: { progressToken: "p" },
    };
    spoken.write(INITIALIZE, INITIALIZED, request(1, "tools/call", params));
    spoken.end();
    const { answers } = await spoken.ended();
    const steps = answers.flatMap(({ method, params }) => (method ? [params?.message] : []));
    expect(steps).toEqual(["step 1 on", "step 2 on", "step 3 on"]);
    expect(answers.at(-1)?.id).toBe(1);
  });

  test("lists, calls, receives progress, and cancelling reaches the upstream", async () => {
    const { client, stderr } = await connect(place);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain("fake__echo");
    const echoed = await client.callTool({ name: "fake__echo", arguments: { text: "héllo\u2028" } });
    expect(echoed.content).toEqual([{ type: "text", text: "héllo\u2028" }]);

    const began = Promise.withResolvers<void>();
    const given = new AbortController();
    const hanging = client.callTool(
      { name: "fake__progress", arguments: { steps: 1, hang: true } },
      undefined,
      { signal: given.signal, onprogress: () => began.resolve() },
    );
    await began.promise;
    given.abort("enough");
    expect(await hanging.catch(String)).toContain("enough");
    // The upstream handles one message after another, so it receives this call after the cancellation.
    let heard = "";
    for (let tries = 0; tries < 50 && !heard.includes("cancelled"); tries++) {
      heard = JSON.stringify(await client.callTool({ name: "fake__heard", arguments: {} }));
    }
    expect(heard).toContain("notifications/cancelled");
    await client.close();
    expect(stderr()).toBe("");
  });

  test("requests made before the input ends are answered, in whatever order", async () => {
    const spoken = await speak(place);
    const texts = Array.from({ length: 20 }, (_, index) => `text ${index}`);
    spoken.write(
      INITIALIZE,
      INITIALIZED,
      ...texts.map((text, index) =>
        request(index, "tools/call", { name: "fake__echo", arguments: { text } }),
      ),
    );
    spoken.end();
    const { code, answers, stderr } = await spoken.ended();
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    expect(byId.get("hello")?.result).toMatchObject({ serverInfo: { name: "gatehouse" } });
    for (const [index, text] of texts.entries()) {
      expect(byId.get(index)?.result).toMatchObject({ content: [{ type: "text", text }] });
    }
  });

  test("standard output is only JSON-RPC, whatever arrives; a line of 20 MB is refused and the next one accepted", async () => {
    const spoken = await speak(place);
    const text = "x".repeat(20 * 1024 * 1024);
    spoken.write(
      "no json",
      "",
      "[]",
      "null",
      '{"id":{}}',
      `${INITIALIZE}\r`,
      INITIALIZED,
      request("big", "tools/call", { name: "fake__echo", arguments: { text } }),
      `[${request("one", "ping")},${request("two", "ping")}]`,
    );
    expect((await spoken.answer("big")).error?.message).toContain("bytes");
    expect(await spoken.answer("one")).toMatchObject({ result: {} });
    expect(await spoken.answer("two")).toMatchObject({ result: {} });
    // Just below the size limit of a message: it arrives whole.
    const large = "y".repeat(9 * 1024 * 1024);
    spoken.write(request("large", "tools/call", { name: "fake__echo", arguments: { text: large } }));
    expect((await spoken.answer("large")).result).toBeDefined();
    spoken.end();
    expect((await spoken.ended()).code).toBe(0);
  });

  test.each(["SIGTERM", "SIGINT"] as const)(
    "%s ends it, and answers the pending requests",
    async (signal) => {
      const spoken = await speak(place);
      spoken.write(INITIALIZE, INITIALIZED);
      await spoken.answer("hello");
      spoken.write(request(1, "tools/call", { name: "fake__hang", arguments: {} }), request(2, "ping"));
      await spoken.answer(2);
      spoken.kill(signal);
      const { code, answers } = await spoken.ended();
      expect(code).toBe(0);
      expect(answers.find(({ id }) => id === 1)?.error?.message).toBeString();
    },
  );
});
