/** A document is read in a process that is ended if it exceeds a limit of memory or time, whatever the format. */
import { afterEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import { JobOverLimit, JobRefused } from "../../../src/reading/job-errors.ts";
import { ReaderFailed } from "../../../src/reading/reader.ts";
import { prepareDocument } from "../../../src/vault/prepare/prepare.ts";
import { DocumentReader } from "../../../src/vault/reading/document-readers.ts";
import { longText } from "../../support/vault.ts";
import { until } from "../../tasks/support.ts";
import {
  bomb,
  bytesRequest,
  command,
  DOCX,
  docx,
  endlessPdf,
  MIB,
  PDF,
  pdf,
  textRequest,
} from "./support.ts";

/** Far more time than any of these takes: each document ends by reaching its memory limit or with a refusal. */
const LONG_MS = 300_000;
const LOW = 256 * MIB;

const readers: DocumentReader[] = [];

function start(ceiling?: number): DocumentReader {
  const reader = new DocumentReader(command(ceiling));
  readers.push(reader);
  return reader;
}

afterEach(async () => {
  for (const reader of readers.splice(0)) {
    reader.end();
    await reader.ended();
  }
});

const read = (reader: DocumentReader, request = textRequest("a,b\n1,2"), ms = LONG_MS) =>
  reader.read(request, ms).catch((error: unknown) => error);

describe("a document that exceeds its memory limit is abandoned, and its process is gone", () => {
  test.each([
    ["a page that expands to 2 GiB", () => bytesRequest(pdf(bomb(2_048), "/Filter [/Fl /Fl]"), PDF)],
    ["a million cells in one row", () => bytesRequest(docx(row(1_000_000)), DOCX)],
    ["two million attributes", () => bytesRequest(docx(attributes(2_000_000)), DOCX)],
    ["ten million empty values", () => textRequest(",".repeat(10_000_000))],
    ["a value of ten million characters", () => textRequest("‹".repeat(10_000_000))],
    ["four million cells of HTML", () => textRequest(`<tr>${"<td>a".repeat(4_000_000)}`, "text/html")],
    ["eight million headings", () => textRequest("#\n".repeat(8_000_000), "text/markdown")],
  ])(
    "%s",
    async (_, request) => {
      const reader = start(LOW);
      const error = await read(reader, request());
      // A reader may also refuse the document earlier, by counting. That is just as good.
      if (error instanceof JobRefused) return;
      expect(error).toBeInstanceOf(JobOverLimit);
      expect(String(error)).toContain("takes more than 256 MiB of memory");
      expect(reader.isUsable).toBe(false);
      await reader.ended();
      expect(existsSync(`/proc/${reader.pid}`)).toBe(false);
    },
    120_000,
  );

  test.skipIf(process.platform !== "linux")("and the kernel itself refuses it more", async () => {
    const reader = start(LOW);
    await read(reader);
    const limits = readFileSync(`/proc/${reader.pid}/limits`, "utf8");
    const data = Number(/^Max data size +(\d+)/m.exec(limits)?.[1]);
    const status = readFileSync(`/proc/${reader.pid}/status`, "utf8");
    const taken = Number(/^VmData:\s+(\d+) kB/m.exec(status)?.[1]) * 1024;
    // The engine reserves gigabytes of address space that it never uses, so only what may be added counts.
    expect(data - taken).toBeLessThanOrEqual(LOW);
    expect(limits).toMatch(/^Max core file size +0 +0 /m);
  });
});

describe("elements without text take no memory: they are read within the lowest limit", () => {
  const text = "<w:p><w:r><w:t>hello</w:t></w:r></w:p>";
  test.each([
    ["seven and a half million empty elements", `${text}${"<a/>".repeat(7_500_000)}`, 5],
    ["two hundred thousand paragraphs", text.repeat(200_000), 200_000 * 7 - 2],
  ])(
    "%s in a small DOCX",
    async (_, body, characters) => {
      const file = docx(body);
      expect(file.length).toBeLessThan(64 * 1024);
      const answer = await read(start(LOW), bytesRequest(file, DOCX));
      expect(answer).toMatchObject({ characters });
    },
    120_000,
  );
});

describe("a document that exceeds its time limit is abandoned, and its process is gone", () => {
  test("a page that is never drawn", async () => {
    const reader = start();
    await read(reader);
    const error = await read(reader, bytesRequest(endlessPdf(), PDF), 500);
    expect(String(error)).toBe("JobOverLimit: took longer than 0.5 seconds");
    expect(reader.isUsable).toBe(false);
    await reader.ended();
  });
});

describe("a reading process", () => {
  test.each([
    ["plain text", textRequest("Hello.\n\nA \u{1f600} smile.", "text/plain")],
    [
      "a pair across two pages",
      textRequest(`${"x".repeat(8_191)}\u{1f600}${"y".repeat(9_000)}`, "text/plain"),
    ],
    ["a lone surrogate", textRequest("a \ud800 b", "text/plain")],
    ["several segments", textRequest(longText("slab", 700), "text/markdown")],
    ["values", textRequest("name,city\nAnna,Berlin\nÖzgür,İzmir")],
    ["bytes", bytesRequest(docx("<w:p><w:r><w:t>Hello</w:t></w:r></w:p>"), DOCX)],
  ])("returns the same as this process: %s", async (_, request) => {
    const { vectors, segments, passages, ...rest } = await prepareDocument(request);
    const answer = await start().read(request, LONG_MS);
    expect(plain(answer)).toMatchObject(plain(rest));
    expect(answer.passages.map(plain)).toEqual(passages.map(plain));
    expect(answer.segments.map(plain)).toEqual(segments.map(plain));
    expect([...answer.vectors]).toEqual([...vectors]);
  });

  test("refuses an unreadable document, names the field, and reads the next one", async () => {
    const reader = start();
    const error = await read(reader, bytesRequest(Buffer.from("no zip"), DOCX));
    expect(error).toMatchObject({
      name: "JobRefused",
      field: "/content_base64",
      message: "is not a zip file",
    });
    expect(reader.isUsable).toBe(true);
    expect(await read(reader)).toMatchObject({ characters: 10 });
  });

  test("that is killed fails its own document", async () => {
    const reader = start();
    await read(reader);
    const reading = read(reader, bytesRequest(endlessPdf(), PDF));
    process.kill(reader.pid, "SIGKILL");
    expect(String(await reading)).toBe("JobOverLimit: ends the process that reads it");
    expect(reader.isUsable).toBe(false);
  });

  test("that cannot start is the program's fault, not the document's", async () => {
    const reader = new DocumentReader([process.execPath, "-e", "throw new Error('no start')"]);
    const error = await read(reader);
    expect(error).toBeInstanceOf(ReaderFailed);
    expect(String(error)).toContain("no start");
    expect(() => new DocumentReader(["/nowhere/gatehouse"])).toThrow();
  });

  test.skipIf(process.platform !== "linux")(
    "knows no variable or file of the server, and can open none",
    async () => {
      const reader = start();
      await read(reader);
      expect(readFileSync(`/proc/${reader.pid}/environ`, "utf8")).toBe("DO_NOT_TRACK=1\0");
      expect(readlinkSync(`/proc/${reader.pid}/cwd`)).toBe("/");
      expect(readFileSync(`/proc/${reader.pid}/limits`, "utf8")).toMatch(/^Max open files +0 +0 /m);
      const open = readdirSync(`/proc/${reader.pid}/fd`).map((fd) =>
        readlinkSync(`/proc/${reader.pid}/fd/${fd}`),
      );
      const foreign = open.filter((path) => path.startsWith("/") && !path.startsWith("/dev/"));
      // Its own status file, which tells it how much memory it uses.
      expect(foreign).toEqual([`/proc/${reader.pid}/status`]);
    },
  );

  test.skipIf(process.platform === "win32")(
    "is gone when the process that started it is killed, even in the middle of a document",
    async () => {
      const program = `
        import { DocumentReader } from ${JSON.stringify(pathOf("src/vault/reading/document-readers.ts"))};
        import { bytesRequest, command, endlessPdf, PDF, textRequest } from ${JSON.stringify(pathOf("test/vault/reading/support.ts"))};
        const reader = new DocumentReader(command());
        await reader.read(textRequest("a,b"), 60_000);
        void reader.read(bytesRequest(endlessPdf(), PDF), 600_000);
        console.log(reader.pid);
      `;
      const server = Bun.spawn([process.execPath, "--no-env-file", "-e", program], { stdout: "pipe" });
      const { value } = await server.stdout.getReader().read();
      const pid = Number(new TextDecoder().decode(value));
      expect(isRunning(pid)).toBe(true);
      server.kill("SIGKILL");
      await server.exited;
      await until(() => !isRunning(pid));
    },
  );
});

function row(cells: number): string {
  return `<w:tbl><w:tr>${"<w:tc><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>".repeat(cells)}</w:tr></w:tbl>`;
}

function attributes(count: number): string {
  return `<w:p ${Array.from({ length: count }, (_, n) => `a${n}="1"`).join(" ")}/>`;
}

function pathOf(path: string): string {
  return Bun.fileURLToPath(new URL(`../../../${path}`, import.meta.url));
}

/** Bytes as hex, because a view of a larger buffer should equal a copy. */
function plain(value: object): object {
  return Object.fromEntries(
    Object.entries(value).map(([key, each]) => [
      key,
      each instanceof Uint8Array ? Buffer.from(each).toString("hex") : each,
    ]),
  );
}

/** Whether the process is running: not gone, and not a zombie. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== "linux") return true;
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
}
