import { writeSync } from "node:fs";

const STANDARD_ERROR = 2;

/**
 * Whoever reads standard output may go before its end, as `head` does. The verb goes on to its end without it: documents
 * are added and a gateway closes in order whether or not anybody watches. Any other failure, such as a full disk, ends the
 * verb with 1. A log that cannot be written (its reader has gone, its disk is full) never ends a server.
 */
export function allowFailingOutput(): void {
  let isReported = false;
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE" || isReported) return;
    isReported = true;
    process.exitCode = 1;
    tell(`gatehouse: standard output cannot be written (${error.code ?? error.message})`);
  });
  process.stderr.on("error", () => {
    // There is nowhere left to say it.
  });
}

function tell(line: string): void {
  try {
    writeSync(STANDARD_ERROR, `${line}\n`);
  } catch {
    // There is nowhere left to say it. The exit code still does.
  }
}

/** What a command was asked to print goes to standard output, alone. */
export function print(text: string): void {
  process.stdout.write(`${text}\n`);
}

export function printJson(value: unknown): void {
  print(JSON.stringify(value, null, 2));
}

/** Rows in columns as wide as their widest cell. */
export function printTable(header: readonly string[], rows: readonly (readonly string[])[]): void {
  const all = [header, ...rows];
  const widths = header.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0)));
  for (const row of all)
    print(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join("  ")
        .trimEnd(),
    );
}
