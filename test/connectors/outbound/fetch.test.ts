import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { asConnectorError } from "../../../src/connectors/outbound/errors.ts";
import type { Resolve } from "../../../src/connectors/outbound/fetch.ts";
import { type TestOutbound, testOutbound } from "../../support/outbound.ts";
import { faultOf } from "./support.ts";

interface Seen {
  readonly method: string;
  readonly path: string;
  readonly host: string | null;
  readonly authorization: string | null;
  readonly body: string;
}

/** Requests that the server received. */
let seen: Seen[] = [];
let server: Bun.Server<undefined>;
const outbounds: TestOutbound[] = [];

beforeAll(() => {
  server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const url = new URL(request.url);
      seen.push({
        method: request.method,
        path: `${url.pathname}${url.search}`,
        host: request.headers.get("host"),
        authorization: request.headers.get("authorization"),
        body: await request.text(),
      });
      const [, status = "", to = ""] = /^\/(\d{3})\/(.*)$/.exec(url.pathname + url.search) ?? [];
      if (status !== "")
        return new Response("moved", {
          status: Number(status),
          headers: { location: decodeURIComponent(to) },
        });
      return new Response("here");
    },
  });
});

afterEach(() => {
  seen = [];
});

afterAll(async () => {
  for (const each of outbounds) each.close();
  await server.stop(true);
});

function outbound(resolve?: Resolve, allow: readonly string[] = []): TestOutbound {
  const made = testOutbound({ allow, ...(resolve ? { resolve } : {}) });
  outbounds.push(made);
  return made;
}

/** A resolver that returns these answers one after another. */
function answers(...each: readonly (readonly string[])[]): Resolve & { asked: string[] } {
  const asked: string[] = [];
  const left = [...each];
  const resolve = async (host: string): Promise<readonly string[]> => {
    asked.push(host);
    return left.shift() ?? [];
  };
  return Object.assign(resolve, { asked });
}

const at = (name: string, path = "/") => `http://${name}:${server.port}${path}`;
const here = (path = "/") => at("127.0.0.1", path);
const FORBIDDEN =
  "The URL leads to name.test, a link-local, metadata or multicast address, which connectors may not reach (see connectors.allow_addresses).";

describe("nothing is sent", () => {
  test.each([
    [["169.254.169.254"]],
    [["127.0.0.1", "169.254.169.254"]],
    [["fe80::1", "127.0.0.1"]],
    [["::ffff:169.254.169.254"]],
    [["fe80::1%eth0"]],
    [["0.0.0.0"]],
    [["not an address"]],
  ])("if a name resolves to %j", async (addresses) => {
    expect(await faultOf(outbound(answers(addresses)).fetch(at("name.test")))).toEqual([
      "forbidden_address",
      FORBIDDEN,
    ]);
    expect(seen).toEqual([]);
  });

  test("if a name does not resolve", async () => {
    expect(await faultOf(outbound(answers([])).fetch(at("name.test")))).toEqual([
      "unreachable",
      "The name name.test has no address.",
    ]);
  });

  test("to a URL that is refused itself, without resolving its name", async () => {
    const resolve = answers(["127.0.0.1"]);
    const { fetch } = outbound(resolve);
    expect((await faultOf(fetch(at("user:pass@name.test"))))[0]).toBe("forbidden_address");
    expect((await faultOf(fetch("file:///etc/hostname")))[0]).toBe("forbidden_address");
    expect((await faultOf(fetch(at("metadata.google.internal"))))[0]).toBe("forbidden_address");
    expect(resolve.asked).toEqual([]);
  });

  test("if the caller aborted before or while the name was resolved", async () => {
    const reason = new Error("enough");
    const { fetch } = outbound(() => new Promise(() => {}));
    expect(await fetch(here(), { signal: AbortSignal.abort(reason) }).catch((error) => error)).toBe(reason);
    const giveUp = new AbortController();
    const asking = fetch(at("name.test"), { signal: giveUp.signal }).catch((error) => error);
    giveUp.abort(reason);
    expect(await asking).toBe(reason);
    expect(seen).toEqual([]);
  });
});

describe("the connection goes to the address that was checked", () => {
  test("even if the name is unknown elsewhere", async () => {
    const resolve = answers(["127.0.0.1"]);
    const response = await outbound(resolve).fetch(at("name.test", "/x?y=1"), {
      method: "POST",
      headers: { authorization: "Bearer a", host: "other.test" },
      body: "sent",
    });
    expect(await response.text()).toBe("here");
    const host = `name.test:${server.port}`;
    expect(seen).toEqual([{ method: "POST", path: "/x?y=1", host, authorization: "Bearer a", body: "sent" }]);
    expect(resolve.asked).toEqual(["name.test"]);
  });

  test("and a name is resolved again each time, but only the checked answer is used", async () => {
    const { fetch } = outbound(answers(["127.0.0.1"], ["169.254.169.254"], ["127.0.0.1"]));
    expect(await faultOf(fetch(at("name.test")))).toEqual(["none", "status 200"]);
    expect((await faultOf(fetch(at("name.test"))))[0]).toBe("forbidden_address");
    expect(await faultOf(fetch(at("name.test")))).toEqual(["none", "status 200"]);
    expect(seen).toHaveLength(2);
  });

  test("the next address is tried if one accepts no connection, and it is reported if none does", async () => {
    expect(await faultOf(outbound(answers(["::1", "127.0.0.1"])).fetch(at("name.test")))).toEqual([
      "none",
      "status 200",
    ]);
    const closed = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    const { port } = closed;
    await closed.stop(true);
    const asking = outbound(answers(["127.0.0.1", "::1"])).fetch(`http://name.test:${port}/?key=SECRET`);
    const error = asConnectorError(await asking.catch((cause) => cause), "The connector github");
    expect(error.fault).toBe("unreachable");
    expect(error.message).not.toContain("SECRET");
  });

  test("bypassing any proxy of the environment", async () => {
    const before = { ...process.env };
    try {
      const proxy = "http://127.0.0.1:9";
      Object.assign(process.env, {
        HTTP_PROXY: proxy,
        http_proxy: proxy,
        HTTPS_PROXY: proxy,
        ALL_PROXY: proxy,
      });
      expect(await faultOf(outbound().fetch(here()))).toEqual(["none", "status 200"]);
    } finally {
      for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]) delete process.env[name];
      Object.assign(process.env, before);
    }
  });

  test("a name of this machine is resolved by the system", async () => {
    expect(await faultOf(outbound().fetch(at("localhost")))).toEqual(["none", "status 200"]);
  });
});

describe("a redirect is refused", () => {
  const redirect = (status: number, to: string) => here(`/${status}/${encodeURIComponent(to)}`);
  const origin = () => `The server at http://127.0.0.1:${server.port}`;

  test.each([
    [
      "to another host",
      "GET",
      302,
      "http://other.example/x?key=SECRET",
      "redirects to another host, http://other.example, which is not followed.",
    ],
    [
      "to a metadata address",
      "GET",
      302,
      "http://169.254.169.254/latest?SECRET",
      "redirects to another host, http://169.254.169.254, which is not followed.",
    ],
    [
      "to another port",
      "GET",
      307,
      "http://127.0.0.1:1/",
      "redirects to another host, http://127.0.0.1:1, which is not followed.",
    ],
    [
      "to another scheme",
      "GET",
      301,
      "https://127.0.0.1/",
      "redirects to another host, https://127.0.0.1, which is not followed.",
    ],
    [
      "to a file",
      "GET",
      302,
      "file:///etc/SECRET",
      "redirects to another host, null, which is not followed.",
    ],
    ["to an invalid URL", "GET", 302, "http://[SECRET", "redirects to an invalid URL."],
    [
      "that would turn a POST into a GET",
      "POST",
      302,
      "/x",
      "redirects a POST with status 302, which would make it a GET.",
    ],
    [
      "that would turn a DELETE into a GET",
      "DELETE",
      303,
      "/x",
      "redirects a DELETE with status 303, which would make it a GET.",
    ],
    [
      "of a POST to another host",
      "POST",
      307,
      "http://other.example/",
      "redirects to another host, http://other.example, which is not followed.",
    ],
  ])("%s", async (_, method, status, to, words) => {
    const asked = outbound().fetch(redirect(status, to), { method, headers: { authorization: "Bearer a" } });
    expect(await faultOf(asked)).toEqual(["refused", `${origin()} ${words}`]);
    expect(seen).toHaveLength(1);
  });

  test("after the third", async () => {
    let to = "/end";
    for (let hop = 0; hop < 4; hop++) to = `/302/${encodeURIComponent(to)}`;
    expect(await faultOf(outbound().fetch(here(to)))).toEqual([
      "refused",
      `${origin()} redirects more than 3 times.`,
    ]);
    expect(seen).toHaveLength(4);
  });

  test("whose name now resolves to a forbidden address", async () => {
    const { fetch } = outbound(answers(["127.0.0.1"], ["169.254.169.254"]));
    expect(await faultOf(fetch(at("name.test", "/302/%2Fend")))).toEqual(["forbidden_address", FORBIDDEN]);
    expect(seen).toHaveLength(1);
  });
});

describe("a redirect within the origin", () => {
  test.each([301, 302, 303, 307, 308])("is followed for a GET with %p", async (status) => {
    const response = await outbound().fetch(here(`/${status}/${encodeURIComponent("/end?x=1")}`), {
      headers: { authorization: "Bearer a" },
    });
    expect(await response.text()).toBe("here");
    expect(seen.at(-1)).toMatchObject({ method: "GET", path: "/end?x=1", authorization: "Bearer a" });
  });

  test.each([307, 308])("is followed for a POST with %p, body and all", async (status) => {
    await outbound().fetch(here(`/${status}/${encodeURIComponent("/end")}`), {
      method: "POST",
      body: "sent",
    });
    expect(seen.at(-1)).toMatchObject({ method: "POST", path: "/end", body: "sent" });
  });

  test("at most three times, to a URL without a user", async () => {
    const end = `http://user:pass@127.0.0.1:${server.port}/end`;
    let to = end;
    for (let hop = 0; hop < 3; hop++) to = `/302/${encodeURIComponent(to)}`;
    expect(await faultOf(outbound().fetch(here(to)))).toEqual(["none", "status 200"]);
    expect(seen.at(-1)).toMatchObject({ path: "/end", authorization: null });
  });

  test("without a location is an ordinary answer", async () => {
    const bare = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: () => new Response("x", { status: 302 }),
    });
    expect(await faultOf(outbound().fetch(`http://127.0.0.1:${bare.port}/`))).toEqual(["none", "status 302"]);
    await bare.stop(true);
  });
});

test("an address that the configuration allows is reached, by name and directly", async () => {
  // Otherwise all of 0.0.0.0/8 is refused. Systems treat this address as loopback.
  const { fetch } = outbound(answers(["0.0.0.0"]), ["0.0.0.0"]);
  expect(await faultOf(fetch(at("name.test")))).toEqual(["none", "status 200"]);
  expect(await faultOf(fetch(at("0.0.0.0")))).toEqual(["none", "status 200"]);
  expect((await faultOf(outbound().fetch(at("0.0.0.0"))))[0]).toBe("forbidden_address");
});
