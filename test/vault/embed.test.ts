/** Vectors from a configured model: at once or later, and never twice for the same text. */
import { describe, expect, test } from "bun:test";
import { longText, search, write } from "../support/vault.ts";
import {
  active,
  clock,
  dataDir,
  one,
  passing,
  spaces,
  start,
  texts,
  useGateway,
  waitFor,
} from "./embed-support.ts";
import { openFile } from "./files-support.ts";

useGateway();

test("the model's dimension is learned, documents get vectors at once, and questions find them", async () => {
  const it = await start("one/small");
  expect(spaces()).toMatchObject([{ name: "one/small", state: "active", dimensions: 0 }]);
  const written = await write(it, { title: "Boats", text: "A sloop has one mast." });
  expect(written.vectors).toBe("ready");
  await write(it, { title: "Trains", text: "A wagon has four axles." });
  expect(spaces()).toMatchObject([{ name: "one/small", dimensions: 64, vectors: 2, pending: 0 }]);
  const { results, mode } = await search(it, { query: "one mast", mode: "vector" });
  expect(mode).toBe("vector");
  expect(results[0]?.document_id).toBe(written.id);
});

describe("a model that cannot be reached", () => {
  test("delays no document: words find it, and its vectors follow automatically", async () => {
    const it = await start("one/small");
    await write(it, { title: "Before", text: "A barge has no mast." });
    one.always({ status: 503 });
    const written = await passing(write(it, { title: "Boats", text: "A sloop has one mast." }));
    expect(written.vectors).toBe("pending");
    const found = await passing(search(it, { query: "sloop mast" }));
    expect(found.mode).toBe("keyword");
    expect(found.results[0]?.document_id).toBe(written.id);
    await passing(write(it, { title: "More", text: "A yawl has two masts." }));
    one.always({});
    await waitFor(() => active()?.pending === 0);
    expect(active()?.vectors).toBe(3);
    expect((await it.call("GET", `/v1/vault/documents/${written.id}`)).body.vectors).toBe("ready");
    expect((await search(it, { query: "sloop mast" })).mode).toBe("hybrid");
  });

  test("and hangs is waited for at most ten seconds", async () => {
    const it = await start("one/small");
    one.always({ hang: true });
    const writing = write(it, { title: "Boats", text: "A sloop has one mast." });
    await one.arrived(1);
    clock.advance(10_000);
    expect((await writing).vectors).toBe("pending");
    // The next writer does not wait at all. Both documents get their vectors in the background.
    expect((await write(it, { title: "More", text: "A yawl has two masts." })).vectors).toBe("pending");
    one.always({});
    await waitFor(() => active()?.pending === 0);
  });

  test("from the first start on is used once it appears", async () => {
    one.always({ status: 503 });
    const it = await start("one/small");
    await passing(write(it, { title: "Boats", text: "A sloop has one mast." }));
    expect(active()).toMatchObject({ dimensions: 0, pending: 1 });
    one.always({});
    await waitFor(() => active()?.vectors === 1);
  });
});

describe("equal text", () => {
  test("is embedded once per workspace, even within a document", async () => {
    const it = await start("one/small");
    await write(it, { title: "Boats", text: "A sloop has one mast." });
    const asked = one.requests.length;
    const again = await write(it, { title: "Boats", text: "A sloop has one mast." });
    expect(again.vectors).toBe("ready");
    expect(one.requests.length).toBe(asked);
    expect(active()).toMatchObject({ vectors: 2, pending: 0 });
    const other = await it.workspace("other");
    await write(it, { title: "Boats", text: "A sloop has one mast." }, other);
    expect(one.requests.length).toBe(asked + 1);
  });

  test("is not embedded again by the background fill either", async () => {
    const it = await start("one/small");
    one.always({ status: 503 });
    for (let n = 0; n < 3; n++) await passing(write(it, { title: "Boats", text: "A sloop has one mast." }));
    const before = one.requests.length;
    one.always({});
    await waitFor(() => active()?.vectors === 3);
    const made = one.requests.slice(before).flatMap(({ input }) => input);
    expect(made.filter((text) => text.includes("sloop"))).toHaveLength(1);
  });
});

test("a text that the model refuses does not keep others from getting vectors, and is not retried constantly", async () => {
  const it = await start("one/small");
  one.always(({ input }) => (input.some((text) => text.includes("forbidden")) ? { status: 400 } : {}));
  const text = Array.from({ length: 6 }, (_, n) => longText(n === 3 ? "forbidden" : `p${n}`, 3)).join("\n\n");
  const written = await passing(write(it, { title: "Mixed", text }));
  await waitFor(() => allRefused() && (active()?.vectors ?? 0) + (active()?.pending ?? 0) === written.chunks);
  expect(active()?.pending).toBeGreaterThan(0);
  expect(active()?.vectors).toBeGreaterThan(written.chunks / 2);
  // From now on the text is left alone for a day.
  const asked = one.requests.length;
  for (let n = 0; n < 50; n++) await waitFor(() => true);
  expect(one.requests.length).toBe(asked);
  one.always({});
  // Second by second, a day takes half a minute on a busy machine.
  clock.suspend(86_400_000);
  await waitFor(() => active()?.pending === 0);

  /** Whether every text still without a vector was sent separately and postponed. */
  function allRefused(): boolean {
    const file = openFile(dataDir);
    const { n } = file
      .query<{ n: number }, []>("SELECT count(*) AS n FROM vault_pending WHERE retry_at = 0")
      .get() ?? { n: -1 };
    file.close();
    return n === 0;
  }
});

test("the first passages of a long document get their vectors at once, the rest in the background", async () => {
  const it = await start("one/small");
  const written = await write(it, { title: "Long", text: longText("slab", 400) });
  expect(written.chunks).toBeGreaterThan(256);
  expect(written.vectors).toBe("pending");
  await waitFor(() => active()?.pending === 0);
  expect(active()?.vectors).toBe(written.chunks);
  expect(new Set(texts()).size).toBe(written.chunks);
});
