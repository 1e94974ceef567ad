/**
 * Which encoding of a console file is sent, and when a browser is told that its copy is current (RFC 9110, 12.5.3 and
 * 13.1.2).
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { startGateway, type TestGateway } from "../support/gateway.ts";

let gateway: TestGateway;
let file: string;
beforeAll(async () => {
  gateway = await startGateway();
  file = /\/console\/assets\/[\w-]+\.js/.exec(await (await get("/console")).text())?.[0] ?? "";
});
afterAll(() => gateway.stop());

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(gateway.url + path, { headers, decompress: false });
const form = async (coding: string) =>
  (await get(file, { "accept-encoding": coding })).headers.get("content-encoding");
const tag = async (coding: string) =>
  (await get(file, { "accept-encoding": coding })).headers.get("etag") ?? "";

test.each(["gzip;q=0", "gzip; q=0.000, *", "br", "*;q=0", "identity", "gzipped", "br, gzip;q=0", ""])(
  "a client that sends Accept-Encoding: %s gets no gzip",
  async (coding) => {
    expect(await form(coding)).toBeNull();
  },
);

test.each(["gzip", "GZIP;q=0.5", "x-gzip", "*", "br;q=0, *;q=0.1", "deflate, gzip ; q=1.0, br"])(
  "a client that sends Accept-Encoding: %s gets gzip",
  async (coding) => {
    expect(await form(coding)).toBe("gzip");
  },
);

test("each form has a strong tag of its own", async () => {
  const [plain, packed] = [await tag("identity"), await tag("gzip")];
  expect(plain).toMatch(/^"[a-z0-9]+"$/);
  expect(packed).toBe(`${plain.slice(0, -1)}-gz"`);
});

describe("a file is sent again to a client whose copy has", () => {
  test.each([
    ["nothing", () => ""],
    ["another one", () => '"other"'],
    ["its tag without quotes", (own: string) => own.replaceAll('"', "")],
    ["a part of its tag", (own: string) => `${own.slice(0, -2)}"`],
    ["its tag inside another", (own: string) => `"x${own.replaceAll('"', "")}"`],
  ])("%s", async (_, write) => {
    for (const path of [file, "/console"]) {
      const headers = { "accept-encoding": "gzip" };
      const own = (await get(path, headers)).headers.get("etag") ?? "";
      expect((await get(path, { ...headers, "if-none-match": write(own) })).status).toBe(200);
    }
  });

  test("the tag of the other form", async () => {
    const [plain, packed] = [await tag("identity"), await tag("gzip")];
    const ask = async (coding: string, known: string) =>
      (await get(file, { "accept-encoding": coding, "if-none-match": known })).status;
    expect([await ask("gzip", plain), await ask("identity", packed)]).toEqual([200, 200]);
  });
});

describe("a file is not sent again to a client whose copy has", () => {
  test.each([
    ["its tag", (own: string) => own],
    ["its tag as a weak one", (own: string) => `W/${own}`],
    ["a list with it", (own: string) => `"a, b", W/"other",${own}`],
    ["a list with it as a weak one", (own: string) => `"other" , W/${own}, "last"`],
    ["anything", () => "*"],
  ])("%s", async (_, write) => {
    for (const coding of ["gzip", "identity"]) {
      for (const path of [file, "/console"]) {
        const headers = { "accept-encoding": coding };
        const own = (await get(path, headers)).headers.get("etag") ?? "";
        const again = await get(path, { ...headers, "if-none-match": write(own) });
        expect([again.status, again.headers.get("etag"), await again.text()]).toEqual([304, own, ""]);
        expect(again.headers.get("vary")).toBe("accept-encoding");
      }
    }
  });
});

test("a missing file is not cached, because a later program may have it", async () => {
  const { status, headers } = await get("/console/assets/nothing.js");
  expect([status, headers.get("cache-control")]).toEqual([404, "no-store"]);
});
