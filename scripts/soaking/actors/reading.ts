import type { Life } from "../life.ts";
import type { AskedTask, TaskReader } from "../task.ts";
import type { World } from "../world.ts";

const PAUSE_MS = 40;
const AT_ONCE = 40;

/** Resumes the streams of tasks that have not ended, each where its reader was at the end of the last life. */
export async function readStreams(world: World, life: Life): Promise<void> {
  while (!life.isOver) {
    const readers = world.asked.flatMap((task) => (task.reader ? [{ task, reader: task.reader }] : []));
    const busy = readers.filter(({ reader }) => reader.isReading).length;
    const next = readers
      .filter(({ task, reader }) => task.id !== null && reader.finished === 0 && !reader.isReading)
      .slice(0, Math.max(0, AT_ONCE - busy));
    for (const { task, reader } of next) world.inLife(readOn(life, task, reader));
    await life.pause(PAUSE_MS);
  }
}

async function readOn(life: Life, { id }: AskedTask, reader: TaskReader): Promise<void> {
  reader.isReading = true;
  if (reader.lastId > 0) reader.resumed++;
  const headers: Record<string, string> = reader.lastId > 0 ? { "last-event-id": String(reader.lastId) } : {};
  const path = `/v1/tasks/${id}/events`;
  const mayBeCut = await life.follow("GET", path, { headers }, { event: (event) => reader.read(event) });
  reader.isReading = false;
  if (reader.finished === 0 && !mayBeCut) {
    reader.faults.add(`the stream ended at event ${reader.lastId}, without task.finished`);
  }
}
