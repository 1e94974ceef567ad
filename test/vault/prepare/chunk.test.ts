import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { type Chunk, chunkDocument } from "../../../src/vault/prepare/chunk.ts";
import type { Block, ReadDocument } from "../../../src/vault/read/document.ts";
import { readText } from "../../../src/vault/read/read.ts";

const MAX = 2_000;
const TARGET = 1_200;
const OVERLAP = 150;

const sentence = (n: number) => `Sentence number ${n} says a little about this subject, no more. `;
const prose = (length: number) =>
  Array.from({ length: Math.ceil(length / 60) }, (_, n) => sentence(n))
    .join("")
    .slice(0, length - 1)
    .trimEnd()
    .concat(".");

async function passages(
  text: string,
  type = "text/markdown",
): Promise<{ text: string; chunks: readonly Chunk[]; parts: string[] }> {
  const document = await readText(text, type);
  const chunks = chunkDocument(document);
  return {
    text: document.text,
    chunks,
    parts: chunks.map(({ start, end }) => document.text.slice(start, end)),
  };
}

describe("stays in one piece:", () => {
  test.each([
    ["a line", "one line", "text/plain"],
    ["an abstract", prose(1_500), "text/plain"],
    ["paragraphs that fit", `${prose(900)}\n\n${prose(900)}`, "text/plain"],
    [
      "sections that fit",
      `# A\n\n${prose(500)}\n\n## B\n\n${prose(500)}\n\n# C\n\n${prose(500)}`,
      "text/markdown",
    ],
    ["text as long as a passage may be", "a".repeat(MAX), "text/plain"],
  ])("%s", async (_, text, type) => {
    const { parts } = await passages(text, type);
    expect(parts).toEqual([text]);
  });
});

test("a document without text has no passages", () => {
  expect(chunkDocument({ text: "", blocks: [] })).toEqual([]);
  expect(chunkDocument({ text: " \n ", blocks: [] })).toEqual([]);
});

test("long sections are separate passages, with the headings above them", async () => {
  const text = `# Guide\n\n## Install\n\n${prose(900)}\n\n### On *Linux* ###\n\n${prose(1_400)}\n\n## Use\n\n${prose(1_900)}`;
  const { chunks, parts } = await passages(text);
  expect(parts.map((part) => part.slice(0, 12))).toEqual([
    "# Guide\n\n## ",
    "### On *Linu",
    "## Use\n\nSent",
  ]);
  expect(chunks.map(({ headings }) => headings)).toEqual([[], ["Guide", "Install"], ["Guide"]]);
});

test("a passage in the middle of a section has its heading", async () => {
  const { chunks } = await passages(
    `# Guide\n\n${prose(500)}\n\n## Use\n\n${prose(3_000)}\n\n# End\n\n${prose(900)}`,
  );
  const use = ["Guide", "Use"];
  expect(chunks.map(({ headings }) => headings)).toEqual([[], ["Guide"], use, use, []]);
});

test("small neighbours share a passage, and no heading stands alone", async () => {
  const small = Array.from({ length: 30 }, (_, n) => `## Part ${n}\n\n${sentence(n)}`).join("\n\n");
  const { parts } = await passages(`# All\n\n${small}`);
  expect(parts.length).toBeLessThan(4);
  for (const part of parts) {
    expect(part).toMatch(/^#/);
    expect(part).toEndWith(".");
    expect(part.length).toBeGreaterThan(600);
  }
});

test("a remainder that is too short joins the previous passage", async () => {
  const { parts } = await passages(`# A\n\n${prose(1_700)}\n\n# B\n\n${prose(1_500)}\n\n# C\n\nShort.`);
  expect(parts.length).toBe(2);
  expect(parts[1]).toEndWith("Short.");
});

test("long text is cut between sentences, and the next passage repeats the last ones", async () => {
  const { chunks, parts } = await passages(prose(10_000), "text/plain");
  expect(parts.length).toBeGreaterThan(7);
  for (const [index, part] of parts.entries()) {
    expect(part).toStartWith("Sentence");
    expect(part).toEndWith(".");
    const next = chunks[index + 1];
    if (next !== undefined) expect((chunks[index]?.end ?? 0) - next.start).toBeGreaterThan(0);
  }
});

test("Chinese and Japanese are cut between sentences", async () => {
  const { parts } = await passages("これは文です。「それも文です。」".repeat(300), "text/plain");
  for (const part of parts) expect(part).toMatch(/^(?:これ|「).*[。」]$/s);
});

test("code is cut between lines", async () => {
  const { parts } = await passages(`\`\`\`\n${"call(a.b, c); // d. e\n".repeat(200)}\`\`\``, "text/markdown");
  for (const part of parts.slice(1)) expect(part).toStartWith("call(");
});

test("rows stay whole and are not repeated", async () => {
  const csv = `id,text\n${Array.from({ length: 100 }, (_, n) => `${n},${prose(80 + (n % 7) * 60)}`).join("\n")}`;
  const { parts } = await passages(csv, "text/csv");
  expect(parts.join("\n")).toBe((await readText(csv, "text/csv")).text);
  for (const part of parts) {
    expect(part).toStartWith("id: ");
    expect(part.length).toBeLessThanOrEqual(TARGET);
  }
});

test("text after a row repeats nothing of the row", () => {
  const text = `${"a row ".repeat(76)}${"Is it? ".repeat(600)}`;
  const blocks: Block[] = [
    { kind: "row", level: 0, start: 0, end: 456 },
    { kind: "code", level: 0, start: 456, end: 600 },
  ];
  const chunks = chunkDocument({ text, blocks });
  expect(chunks[0]).toEqual({ start: 0, end: 600, headings: [] });
  expect(chunks.slice(1).every(({ start }) => start >= 456)).toBe(true);
});

test("a row longer than a passage is cut", async () => {
  const { parts } = await passages(`id,text\n1,short\n2,${prose(5_000)}\n3,short`, "text/csv");
  expect(parts.length).toBeGreaterThan(3);
  for (const part of parts) expect(part.length).toBeLessThanOrEqual(MAX);
});

test("front matter is in no passage", async () => {
  const { parts } = await passages(`---\nsecret: a\n---\n# A\n\n${prose(3_000)}`);
  expect(parts.join(" ")).not.toContain("secret");
});

test("a character as readers see it is not cut", async () => {
  for (const cluster of ["👨‍👩‍👧‍👦", "e\u0301", "🇩🇪", "क्षि"]) {
    const { parts } = await passages(cluster.repeat(3_000), "text/plain");
    for (const part of parts) expect(part.replaceAll(cluster, "")).toBe("");
  }
});

test.each([
  ["no white space", "a"],
  ["points", "."],
  ["white space", " \n "],
  ["sentence marks that end nothing", ".)。」"],
  ["marks that combine", "\u0301"],
])("20 million characters of %s are split, too", async (_, piece) => {
  const text = `a${piece.repeat(Math.floor(19_999_998 / piece.length))}b`;
  expect(chunkDocument(await readText(text)).at(-1)?.end).toBe(text.length);
});

const hostilePiece = fc.oneof(
  { weight: 4, arbitrary: fc.string({ unit: "binary", maxLength: 30 }) },
  fc.constantFrom(
    "\n",
    "\n\n",
    " ",
    ". ",
    "。",
    "」",
    "! \u00A0",
    "😀",
    "👨‍👩‍👧‍👦",
    "\u0301",
    "\uFEFF",
    "\u2028",
    "- ",
    "| a | b |",
  ),
  fc.integer({ min: 1, max: 6 }).map((level) => `\n\n${"#".repeat(level)} Title\n\n`),
  fc
    .tuple(
      fc.constantFrom("a", "word ", " ", "漢", "Is it? ", "\n", "😀", "e\u0301"),
      fc.integer({ min: 1, max: 900 }),
    )
    .map(([piece, count]) => piece.repeat(count)),
);
const hostileText = fc.array(hostilePiece, { maxLength: 40 }).map((pieces) => pieces.join("").toWellFormed());

const KINDS = ["heading", "paragraph", "code", "row"] as const;

/** `at`, or the position before it if `at` is inside a surrogate pair. */
const characterStart = (text: string, at: number) =>
  /^[\uDC00-\uDFFF]/.test(text.slice(at, at + 1)) ? at - 1 : at;

/** Any text with any blocks that are permitted. */
const documents = fc
  .tuple(
    hostileText,
    fc.array(fc.tuple(fc.nat(), fc.constantFrom(...KINDS), fc.integer({ min: 1, max: 6 })), {
      maxLength: 30,
    }),
  )
  .map(([text, marks]): ReadDocument => {
    const places = marks.map(([at]) => characterStart(text, at % (text.length + 1))).sort((a, b) => a - b);
    const blocks = places.slice(1).flatMap((end, index): Block[] => {
      const [, kind, level] = marks[index] ?? [0, "paragraph" as const, 0];
      const start = places[index] ?? 0;
      // Blocks need not cover the whole text.
      if (index % 5 === 4) return [];
      return [{ kind, level: kind === "heading" ? level : 0, start, end }];
    });
    return { text, blocks };
  });

describe("whatever the document,", () => {
  const holds = (property: (document: ReadDocument, chunks: readonly Chunk[]) => void) =>
    fc.assert(
      fc.property(documents, (document) => property(document, chunkDocument(document))),
      { numRuns: 300 },
    );

  test("passages are in bounds and start and end with text", () => {
    holds(({ text }, chunks) => {
      for (const { start, end } of chunks) {
        expect(end - start).toBeGreaterThan(0);
        expect(end - start).toBeLessThanOrEqual(MAX);
        expect(text.slice(start, end)).toBe(text.slice(start, end).trim());
      }
    });
  });

  test("surrogate pairs stay together", () => {
    holds(({ text }, chunks) => {
      for (const { start, end } of chunks) expect(text.slice(start, end).isWellFormed()).toBe(true);
    });
  });

  test("passages ascend, and repeat little", () => {
    holds((_, chunks) => {
      for (const [index, next] of chunks.slice(1).entries()) {
        const before = chunks[index];
        expect(next.start).toBeGreaterThan(before?.start ?? 0);
        expect(next.end).toBeGreaterThan(before?.end ?? 0);
        expect((before?.end ?? 0) - next.start).toBeLessThanOrEqual(OVERLAP);
      }
    });
  });

  test("all text from the first block on is in a passage", () => {
    holds(({ text, blocks }, chunks) => {
      let at = blocks[0]?.start ?? 0;
      for (const { start, end } of chunks) {
        if (start > at) expect(text.slice(at, start).trim()).toBe("");
        at = end;
      }
      expect(text.slice(at).trim()).toBe("");
    });
  });

  test("no row is repeated", () => {
    holds(({ blocks }, chunks) => {
      const rows = blocks.filter(({ kind }) => kind === "row");
      for (const [index, next] of chunks.slice(1).entries()) {
        const end = chunks[index]?.end ?? 0;
        if (end <= next.start) continue;
        expect(rows.some((row) => row.start < end && row.end > next.start && row.end === end)).toBe(false);
      }
    });
  });
});
