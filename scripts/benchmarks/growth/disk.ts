import { alone, type Figure } from "../figures.ts";
import type { Workshop } from "../workshop.ts";
import { type FilledHistory, fill, sizeOf } from "./filled.ts";
import { ENTRIES_PER_TASK } from "./size.ts";

/** Entries of a directory that has nothing else. */
const ENTRIES = 50_000;
const ENTRIES_OF_RUN = 4;
const BYTES_PER_KB = 1_000;

/** Bytes on disk of an entry, and of a task with its rows, texts, events and the entries of its run. */
export async function diskFigures(
  workshop: Workshop,
  histories: readonly FilledHistory[],
): Promise<Figure[]> {
  const dataDir = workshop.folder();
  const size = { entries: ENTRIES, tasks: 0, agents: 1, documents: 0 };
  const empty = workshop.folder();
  await fill(workshop, empty, { ...size, entries: 0 }, Date.now());
  await fill(workshop, dataDir, size, Date.now());
  const entry = (sizeOf(dataDir) - sizeOf(empty)) / ENTRIES;
  const figure = (id: string, label: string, bytes: number) =>
    alone({ id: `growth.disk.${id}`, label: `disk of ${label}`, unit: "kB" }, [bytes / BYTES_PER_KB]);
  const ofOthers = (ENTRIES_PER_TASK - ENTRIES_OF_RUN) * entry;
  return [
    figure("entry", "an entry of a read", entry),
    ...histories.flatMap(({ size: { tasks, entries, documents }, bytes: { filled, withDocuments } }) => [
      figure(
        `task.${entries}`,
        `a task run with its 4 entries, of ${number(tasks)}`,
        filled / tasks - ofOthers,
      ),
      figure(
        `document.${entries}`,
        `a document, of ${number(documents)}`,
        (withDocuments - filled) / documents,
      ),
    ]),
  ];
}

function number(value: number): string {
  return value.toLocaleString("en-US");
}
