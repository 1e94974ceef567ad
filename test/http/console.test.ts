import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

/** How the console's page and files are served. Tests of what they do are in test/browser/console. */
let gateway: TestGateway;
beforeAll(async () => {
  gateway = await startGateway();
});
afterAll(() => gateway.stop());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, { headers, decompress: false });

/** The files that a page refers to. */
function namedIn(html: string): string[] {
  return [...html.matchAll(/(?:src|href)="([^"]+)"/g)].flatMap((match) => match[1] ?? []);
}

async function assetPaths(): Promise<string[]> {
  const html = await (await get("/console")).text();
  return namedIn(html).filter((path) => path.startsWith("/console/assets/"));
}

describe("refused", () => {
  test.each([
    ["another method", "POST", "/console", 405],
    ["another method below it", "DELETE", "/console/tasks", 405],
    ["another method for a file", "PUT", "/console/assets/a.js", 405],
    ["a file that does not exist", "GET", "/console/assets/nothing.js", 404],
    ["a file outside of it", "GET", "/console/assets/..%2f..%2fpackage.json", 404],
    ["an object's own property", "GET", "/console/assets/constructor", 404],
  ])("%s", async (_, method, path, status) => {
    const answer = await fetch(gateway.url + path, { method });
    expect(answer.status).toBe(status);
    expect(answer.headers.get("gatehouse-request-id")).toMatch(/^req_/);
    if (status === 405) expect(answer.headers.get("allow")).toBe("GET, HEAD");
  });
});

describe("the page", () => {
  test.each(["/console", "/console/", "/console/tasks", "/console/ledger/12", "/console/no/such/page"])(
    "is at %s, even for users who are not signed in",
    async (path) => {
      const answer = await get(path);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(answer.headers.get("cache-control")).toBe("no-cache");
      expect(await answer.text()).toBe(await (await get("/console")).text());
    },
  );

  test("refers only to its own files, and to /docs without scripts, and runs nothing inline", async () => {
    const html = await (await get("/console")).text();
    const elsewhere = namedIn(html).filter((path) => !path.startsWith("/console/assets/"));
    expect(elsewhere).toEqual(["/docs"]);
    expect(html).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\son\w+=|\sstyle=/);
  });

  test("is not a recorded call: it leaves no entry, and does not count against a limit", async () => {
    const newest = async () =>
      (await gateway.call("GET", "/v1/ledger?order=desc&limit=1")).body.data[0].seq as number;
    const before = await newest();
    const answer = await get("/console");
    expect(answer.headers.get("ratelimit")).toBeNull();
    // The one new entry is the first of the two reads of the ledger.
    expect(await newest()).toBe(before + 1);
  });
});

describe("every file", () => {
  test("allows scripts, styles and calls only from this server, and no text as markup", async () => {
    const paths = ["/console", ...(await assetPaths())];
    expect(paths.length).toBeGreaterThan(2);
    for (const path of paths) {
      const { headers } = await get(path);
      const policy = (headers.get("content-security-policy") ?? "").split("; ");
      expect(policy).toContain("default-src 'none'");
      expect(policy).toContain("script-src 'self'");
      expect(policy).toContain("connect-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(policy).toContain("require-trusted-types-for 'script'");
      expect(policy.join()).not.toMatch(/unsafe|https?:|\*/);
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("referrer-policy")).toBe("no-referrer");
    }
  });

  test("is compressed for clients that accept it, and the same for others", async () => {
    for (const path of ["/console", ...(await assetPaths())]) {
      const plain = await get(path, { "accept-encoding": "identity" });
      expect(plain.headers.get("content-encoding")).toBeNull();
      const packed = await get(path, { "accept-encoding": "br, gzip" });
      expect(packed.headers.get("content-encoding")).toBe("gzip");
      expect(packed.headers.get("vary")).toBe("accept-encoding");
      const bytes = Bun.gunzipSync(new Uint8Array(await packed.arrayBuffer()));
      expect(Buffer.from(bytes).equals(Buffer.from(await plain.arrayBuffer()))).toBe(true);
    }
  });

  test("is cached forever under a name derived from its content, and not sent again", async () => {
    for (const path of await assetPaths()) {
      const first = await get(path);
      expect(first.headers.get("cache-control")).toBe("public, max-age=31536000, immutable");
      const again = await get(path, { "if-none-match": first.headers.get("etag") ?? "" });
      expect(again.status).toBe(304);
      expect(await again.text()).toBe("");
    }
  });

  test("names no other host", async () => {
    const waiting = await assetPaths();
    const seen = new Set(waiting);
    for (let path = waiting.pop(); path !== undefined; path = waiting.pop()) {
      const text = await (await get(path, { "accept-encoding": "identity" })).text();
      // Addresses that are mentioned but never requested: XML namespaces, examples, the homes of packages and
      // specifications.
      const hosts = [...text.matchAll(/https?:\/\/([\w.-]+\.\w+)/g)].map((match) => match[1] ?? "");
      const asked = hosts.filter(
        (host) =>
          !/^(www\.w3\.org|github\.com|www\.standardwebhooks\.com|(\w+\.)?example\.(org|com))$/.test(host),
      );
      expect({ path, asked }).toEqual({ path, asked: [] });
      for (const [next] of text.matchAll(/\/console\/assets\/[\w-]+\.(?:js|css)/g)) {
        if (!seen.has(next)) waiting.push(next);
        seen.add(next);
      }
    }
    expect(seen.size).toBeGreaterThan(10);
  });
});
