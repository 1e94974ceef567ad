import { OperatorError } from "../../base/errors.ts";
import { stoppedBySignals } from "../interruption.ts";
import { refusal, withGateway } from "../operator.ts";
import { type ConfigOptions, resolveConfig } from "../options.ts";
import { type OutputFile, openOutputFile } from "../output-file.ts";

export const EXPORT_FORMATS = ["article14", "ndjson", "csv", "json"] as const;
const FILTERS = ["from", "to", "date", "agent", "actor", "action", "tier"] as const;

export interface ExportOptions
  extends ConfigOptions,
    Readonly<Partial<Record<(typeof FILTERS)[number], string>>> {
  readonly output: string;
  readonly format: (typeof EXPORT_FORMATS)[number];
  readonly workspace: string;
}

/** Exports the ledger, or the entries that match the filters, to a file that appears once it is complete. */
export async function exportLedger(options: ExportOptions): Promise<void> {
  const { output, format } = options;
  if (output === "-" && format === "article14" && process.stdout.isTTY) {
    throw new OperatorError(
      "an Article 14 bundle is a zip file, which cannot be written to a terminal",
      "name a file with --output",
      2,
    );
  }
  const { config } = await resolveConfig(options);
  await withGateway(config, options.workspace, async (api) => {
    const response = await api.fetch("GET", `/v1/ledger?${queryOf(options)}`);
    if (!response.ok) throw await refusal(response);
    await save(response, options);
  });
}

async function save(response: Response, { output, format }: ExportOptions): Promise<void> {
  const progress = new BytesWritten(process.stderr, () => performance.now());
  const stop = stoppedBySignals("stopped before the export was complete");
  let file: OutputFile | undefined;
  try {
    const chunks = read(response, stop.signal);
    file = await openOutputFile(output);
    for await (const bytes of format === "json" ? asArray(chunks) : chunks) {
      if (!(await file.write(bytes))) return;
      if (output !== "-") progress.add(bytes.length);
    }
    await file.keep();
  } catch (error) {
    await file?.discard();
    // Nobody has read the body yet.
    await response.body?.cancel().catch(() => {});
    throw error;
  } finally {
    progress.end();
    stop.release();
  }
}

/** JSON output is built here from lines, because the server offers a list only in pages. */
function queryOf(options: ExportOptions): URLSearchParams {
  const query = new URLSearchParams({ format: options.format === "json" ? "ndjson" : options.format });
  for (const name of FILTERS) {
    const value = options[name];
    if (value !== undefined) query.set(name, value);
  }
  return query;
}

/** @throws OperatorError if the answer is incomplete (its end marker is missing) or this process gets a signal */
async function* read({ body }: Response, signal: AbortSignal): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader();
  if (!reader) return;
  const leave = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    for (;;) {
      const next = await reader.read().catch((error: unknown) => {
        throw brokenOff(error);
      });
      if (signal.aborted) throw signal.reason;
      if (next.done) return;
      yield next.value;
    }
  } finally {
    signal.removeEventListener("abort", leave);
    leave();
  }
}

function brokenOff(error: unknown): OperatorError {
  // The message of a lost connection is meant for programmers.
  const isLost = error instanceof Error && "code" in error;
  const why = isLost ? String(error.code) : error instanceof Error ? error.message : String(error);
  return new OperatorError(
    `the export was interrupted (${why})`,
    "check the server's log and try again; incomplete files are not kept",
  );
}

/** Turns lines into a JSON array, as they arrive. */
async function* asArray(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const [decoder, encoder] = [new TextDecoder(), new TextEncoder()];
  yield encoder.encode("[\n");
  // Hold back each line break until another line follows.
  let held = "";
  for await (const bytes of lines) {
    const text = held + decoder.decode(bytes, { stream: true });
    held = text.endsWith("\n") ? "\n" : "";
    yield encoder.encode(text.slice(0, text.length - held.length).replaceAll("\n", ",\n"));
  }
  yield encoder.encode(`${held}]\n`);
}

const REDRAW_MS = 100;
const CLEAR = "\r\u001B[2K";

/** Shows the number of bytes so far on standard error, if it is a terminal. */
class BytesWritten {
  readonly #to: NodeJS.WriteStream;
  readonly #now: () => number;
  #bytes = 0;
  #drawnAt = Number.NEGATIVE_INFINITY;

  constructor(to: NodeJS.WriteStream, now: () => number) {
    this.#to = to;
    this.#now = now;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    if (!this.#to.isTTY || this.#now() - this.#drawnAt < REDRAW_MS) return;
    this.#drawnAt = this.#now();
    this.#to.write(`${CLEAR}${(this.#bytes / 1e6).toFixed(1)} MB written`);
  }

  end(): void {
    if (this.#drawnAt !== Number.NEGATIVE_INFINITY) this.#to.write(CLEAR);
  }
}
